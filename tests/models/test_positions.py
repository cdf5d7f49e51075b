"""The table against the paper's two formulas (Vaswani et al. 2017, section 3.5)."""

import math

import pytest
import torch
from torch.testing import assert_close

from models.positions import sinusoidal


@pytest.mark.parametrize("embed_dim", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("tokens", [0, 1, 7, 101])
def test_the_formula_of_the_paper(tokens, embed_dim):
    table = sinusoidal(tokens, embed_dim)
    assert table.shape == (tokens, embed_dim) and table.dtype == torch.float32
    for position in range(tokens):
        for i in range((embed_dim + 1) // 2):
            angle = position / 10000 ** (2 * i / embed_dim)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            if 2 * i + 1 < embed_dim:
                assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_the_first_token_is_zeros_and_ones_in_turn():
    assert sinusoidal(3, 5)[0].tolist() == [0, 1, 0, 1, 0]


def test_the_first_two_columns_are_the_sine_and_cosine_of_the_position():
    position = torch.arange(7.0)
    assert_close(sinusoidal(7, 6)[:, 0], position.sin())
    assert_close(sinusoidal(7, 6)[:, 1], position.cos())


def test_how_alike_two_positions_are_depends_on_their_distance_alone():
    table = sinusoidal(23, 8).double()
    alike = table @ table.T
    for distance in range(23):
        diagonal = alike.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-5)


def test_a_longer_text_keeps_the_positions_of_a_shorter_one():
    assert torch.equal(sinusoidal(11, 6)[:5], sinusoidal(5, 6))

"""Each mask against a loop that spells its sentence out, for more queries than keys, fewer, and as many."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from models.attention import hide, mix, normalise, scale, similarity
from models.masks import causal, padding, prefix, window

SIZES = [(5, 7), (7, 5), (5, 5), (1, 3), (3, 1), (0, 2)]


def spelled_out(queries, keys, may_look):
    wanted = torch.empty(queries, keys, dtype=torch.bool)
    for query in range(queries):
        for key in range(keys):
            wanted[query, key] = may_look(query, key)
    return wanted


def same(visible, wanted):
    assert visible.dtype == torch.bool
    assert visible.shape == wanted.shape
    assert torch.equal(visible, wanted)


@pytest.mark.parametrize("queries, keys", SIZES)
def test_causal_sees_up_to_its_own_position(queries, keys):
    same(causal(queries, keys), spelled_out(queries, keys, lambda query, key: key in range(query + 1)))


@pytest.mark.parametrize("queries, keys", [(5, 7), (7, 5), (5, 5)])
def test_causal_is_torch_s_is_causal(queries, keys):
    q, k, v = (torch.randn(n, 3, dtype=torch.float64) for n in (queries, keys, keys))
    ours = mix(normalise(hide(scale(similarity(q, k), 3**-0.5), causal(queries, keys))), v)
    assert_close(ours, F.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.mark.parametrize("width", [0, 1, 2, 9])
@pytest.mark.parametrize("queries, keys", SIZES)
def test_window_sees_that_many_on_either_side(queries, keys, width):
    wanted = spelled_out(queries, keys, lambda query, key: key in range(query - width, query + width + 1))
    same(window(queries, keys, width), wanted)


@pytest.mark.parametrize("length", [0, 1, 3, 9])
@pytest.mark.parametrize("queries, keys", SIZES)
def test_prefix_sees_the_first_keys_and_the_past(queries, keys, length):
    first = range(length)
    wanted = spelled_out(queries, keys, lambda query, key: key in first or key in range(query + 1))
    same(prefix(queries, keys, length), wanted)


def test_a_window_of_nothing_sees_itself_and_a_prefix_of_nothing_is_causal():
    same(window(5, 5, 0), torch.eye(5, dtype=torch.bool))
    same(prefix(5, 7, 0), causal(5, 7))


def test_a_wide_window_and_a_long_prefix_see_everything():
    everything = torch.ones(5, 7, dtype=torch.bool)
    same(window(5, 7, 6), everything)
    same(prefix(5, 7, 7), everything)


def test_padding_hides_the_same_keys_from_everyone():
    keep = torch.tensor([[True, True, False], [True, False, False]])
    visible = padding(keep)
    assert visible.shape == (2, 1, 1, 3)
    for example, head, query, key in torch.cartesian_prod(*map(torch.arange, (2, 5, 7, 3))).tolist():
        assert visible.expand(2, 5, 7, 3)[example, head, query, key] == keep[example, key]


def test_padding_of_one_sequence_broadcasts_over_head_and_query():
    keep = torch.tensor([True, False, True])
    assert padding(keep).shape == (1, 1, 3)
    same(padding(keep).expand(2, 5, 3), keep.repeat(2, 5, 1))


def test_both_must_allow():
    keep = torch.tensor([[True, True, False, True, True], [False, True, True, True, False]])
    visible = causal(7, 5) & window(7, 5, 2) & padding(keep)
    assert visible.shape == (2, 1, 7, 5)
    for example in range(2):
        wanted = spelled_out(7, 5, lambda query, key: key <= query and query - key <= 2 and keep[example, key].item())
        same(visible[example, 0], wanted)


def test_either_may_allow():
    wanted = spelled_out(5, 7, lambda query, key: key == 0 or abs(query - key) <= 1)
    same(window(5, 7, 1) | (torch.arange(7) == 0), wanted)


@pytest.mark.parametrize("mask, name", [(window, "width"), (prefix, "length")])
def test_a_negative_size_is_refused(mask, name):
    with pytest.raises(ValueError, match=rf"^{name} must be 0 or more; got -1\.$"):
        mask(3, 3, -1)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.uint8])
def test_padding_refuses_ids_and_says_what_to_do(dtype):
    with pytest.raises(TypeError, match=rf"keep must be boolean, .*; got {dtype}\. Compare, as in ids != pad\."):
        padding(torch.ones(2, 3, dtype=dtype))

"""The page's own numbers, exactly; its figures are the contract, whatever matrices stand behind them."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from models.multi_head import MultiHeadAttention
from models.trace import Step
from models.worked_example import CONFIG, WORDS, embed, layer


@pytest.fixture
def trace():
    return layer().trace(embed(WORDS)[None])


def test_the_words_of_the_page():
    assert WORDS == ("Thinking", "Machines")


def test_sizes_as_drawn_on_the_page(trace):
    assert embed(WORDS).shape == (2, 4)
    assert trace.q.shape == trace.k.shape == trace.v.shape == (1, 1, 2, 3)
    assert trace.output.shape == (1, 2, 3)


def test_scores_of_thinking_are_exactly_112_and_96(trace):
    assert trace.scores[0, 0, 0].tolist() == [112, 96]


def test_divided_by_8_they_are_exactly_14_and_12(trace):
    assert trace.scaled[0, 0, 0].tolist() == [14, 12]
    assert torch.equal(trace.scaled, trace.scores / 8)


def test_the_softmax_rounds_to_the_page_s_088_and_012(trace):
    assert [round(weight, 2) for weight in trace.weights[0, 0, 0].tolist()] == [0.88, 0.12]


def test_z1_is_the_weighted_sum_of_the_values(trace):
    (w1, w2), (v1, v2) = trace.weights[0, 0, 0], trace.v[0, 0]
    assert_close(trace.context[0, 0, 0], w1 * v1 + w2 * v2)


def test_every_number_before_the_softmax_is_whole(trace):
    for step in (Step.Q, Step.K, Step.V, Step.SCORES):
        assert torch.equal(trace[step], trace[step].round())


def test_q_k_and_v_are_x_times_their_matrices(trace):
    module, x = layer(), embed(WORDS)
    for given, linear in ((trace.q, module.to_q), (trace.k, module.to_k), (trace.v, module.to_v)):
        assert torch.equal(given[0, 0], x @ linear.weight.T)
    assert not torch.equal(trace.q, trace.k) and not torch.equal(trace.k, trace.v)


def test_nothing_follows_z(trace):
    assert torch.equal(trace.output, trace.context[:, 0])


def test_words_in_any_order_and_number():
    x = embed(["Machines", "Thinking", "Machines"])
    assert torch.equal(x, embed(WORDS)[[1, 0, 1]])


def test_a_word_it_does_not_have():
    with pytest.raises(KeyError, match="Sitting"):
        embed(["Thinking", "Sitting"])


def test_another_scale_changes_the_scaling_alone():
    scaled = MultiHeadAttention(replace(CONFIG, scale=3**-0.5))
    scaled.load_state_dict(layer().state_dict())
    one, other = (made.trace(embed(WORDS)[None]) for made in (layer(), scaled))
    assert CONFIG.scale == 1 / 8
    for step in (Step.Q, Step.K, Step.V, Step.SCORES):
        assert torch.equal(one[step], other[step])
    assert_close(other.scaled, other.scores / 3**0.5)

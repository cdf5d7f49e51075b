"""Each glass head puts its weight where it says, on any text; the oracles are loops over the tokens."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.testing import assert_close

from models import glass
from models.glass import Job
from models.multi_head import MultiHeadAttention

LAYER, CROSS, PAIR = glass.layer(), glass.cross_layer(), glass.induction_pair()
ENOUGH = 0.95

words = st.text(min_size=1, max_size=5) | st.sampled_from(["cat", "chat", "猫", "القط", "🐈", "."])
texts = st.lists(words, min_size=1, max_size=40) | st.lists(st.sampled_from("abc"), min_size=1, max_size=40)
LONG = [f"word {number}" for number in range(glass.MOST_TOKENS)]
REPEATED = LONG[: glass.MOST_TOKENS // 2] * 2


def any_text(test):
    return example(LONG)(example(REPEATED)(example(["a"])(given(texts)(test))))


def weights(tokens: list[str], job: Job) -> torch.Tensor:
    return LAYER.trace(glass.embed(tokens)[None]).weights[0, list(Job).index(job)]


def mass(weights: torch.Tensor, wanted: list[set[int]]) -> float:
    """The least weight that any query has on the keys wanted of it."""
    return min(sum(row[key] for key in keys) for row, keys in zip(weights.tolist(), wanted, strict=True))


def places(tokens: list[str], token: str) -> set[int]:
    return {place for place, other in enumerate(tokens) if other == token}


@any_text
def test_previous_looks_one_back_and_the_first_at_itself(tokens):
    assert mass(weights(tokens, Job.PREVIOUS), [{max(i - 1, 0)} for i in range(len(tokens))]) >= ENOUGH


@any_text
def test_next_looks_one_on_and_the_last_at_itself(tokens):
    last = len(tokens) - 1
    assert mass(weights(tokens, Job.NEXT), [{min(i + 1, last)} for i in range(len(tokens))]) >= ENOUGH


@any_text
def test_same_looks_at_every_occurrence_evenly(tokens):
    attended = weights(tokens, Job.SAME)
    wanted = [places(tokens, token) for token in tokens]
    assert mass(attended, wanted) >= ENOUGH
    for row, keys in zip(attended, wanted, strict=True):
        assert_close(row[list(keys)], torch.full((len(keys),), 1 / len(keys)), rtol=1e-3, atol=0)


@any_text
def test_first_looks_at_the_first(tokens):
    assert mass(weights(tokens, Job.FIRST), [{0}] * len(tokens)) >= ENOUGH


@any_text
def test_uniform_looks_at_all_evenly(tokens):
    assert_close(weights(tokens, Job.UNIFORM), torch.full((len(tokens),) * 2, 1 / len(tokens)))


@any_text
def test_a_context_is_what_was_looked_at(tokens):
    trace = LAYER.trace(glass.embed(tokens)[None])
    signs = glass.embed(tokens)[:, glass.PARTS["token"]]
    before = signs[[max(i - 1, 0) for i in range(len(tokens))]]
    assert_close(trace.context[0, list(glass.Job).index(glass.Job.PREVIOUS)], before, rtol=0, atol=0.01)


@example(LONG, LONG[::-1])
@example(REPEATED, LONG[100:])
@given(texts, texts)
def test_cross_copies_from_its_equals_or_else_nothing(tokens, others):
    trace = CROSS.trace(glass.embed(tokens)[None], glass.embed_other(others)[None])
    wanted = [{1 + place for place in places(others, token)} or {0} for token in tokens]
    assert mass(trace.weights[0, 0], wanted) >= ENOUGH
    copied = torch.tensor([[token in others] for token in tokens]) * glass.embed(tokens)[:, glass.PARTS["token"]]
    assert_close(trace.context[0, 0], copied, rtol=0, atol=0.01)


@any_text
def test_induction_finds_what_followed_before_or_else_looks_at_the_first(tokens):
    below, above = glass.induce(PAIR, tokens)
    assert all(mass(below.weights[0, 0, i : i + 1], [{i - 1}]) >= ENOUGH for i in range(1, len(tokens)))
    followed = [{j for j in range(1, i + 1) if tokens[j - 1] == tokens[i]} or {0} for i in range(len(tokens))]
    assert mass(above.weights[0, 0], followed) >= ENOUGH


def test_induction_says_what_comes_next():
    tokens = ["the", "cat", "sat", "on", "the"]
    _, above = glass.induce(PAIR, tokens)
    said = above.output[0, -1, glass.PARTS["token"]]
    assert_close(said, glass.embed(["cat"])[0, glass.PARTS["token"]], rtol=0, atol=0.01)


def test_one_token_has_one_code_wherever_it_stands():
    x = glass.embed(["a", "b", "a"])[:, glass.PARTS["token"]]
    assert torch.equal(x[0], x[2])
    assert not torch.equal(x[0], x[1])


def test_random_weights_of_the_same_shape_take_the_same_inputs_and_look_elsewhere():
    tokens = ["any", "words", "will", "do"]
    trace = MultiHeadAttention(glass.CONFIG).trace(glass.embed(tokens)[None])
    assert trace.weights.shape == (1, len(Job), 4, 4)
    assert mass(trace.weights[0, 0], [{max(i - 1, 0)} for i in range(4)]) < ENOUGH


def test_heads_set_by_hand_draw_nothing_from_torch_s_generator():
    before = torch.get_rng_state()
    glass.layer(), glass.cross_layer(), glass.induction_pair(), glass.embed(["a"])
    assert torch.equal(torch.get_rng_state(), before)


def test_more_tokens_than_were_tested_are_refused():
    with pytest.raises(ValueError, match=r"^glass heads read at most 512 tokens; got 513\. Use a shorter text\.$"):
        glass.embed([*LONG, "one more"])


def test_no_tokens_are_no_error():
    assert LAYER(glass.embed([])[None]).shape == (1, 0, len(Job) * glass.SIZE)

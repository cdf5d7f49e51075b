"""The numbers between the steps must lead from each step to the next, or the walk-through would not add up."""

import math
from dataclasses import fields

import pytest
import torch
from torch.testing import assert_close

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.walk import contributions, walk

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, EMBED = 3, 2, 5, 7, 11, 13
PLACES = [(head, query) for head in range(HEADS) for query in range(QUERIES)]


def attend(*, masked: bool = True, **config):
    module = MultiHeadAttention(
        AttentionConfig(embed_dim=EMBED, num_heads=HEADS, head_dim=HEAD_DIM, **config)
    ).double()
    visible = torch.rand(BATCH, HEADS, QUERIES, KEYS) < 0.6
    visible[..., 0] = True
    visible[0, 1, 2] = False  # sees nothing
    with torch.no_grad():
        trace = module.trace(
            torch.randn(BATCH, QUERIES, EMBED, dtype=torch.float64),
            torch.randn(BATCH, KEYS, EMBED, dtype=torch.float64),
            visible=visible if masked else None,
        )
    return module, trace


@pytest.mark.parametrize("head, query", PLACES)
def test_what_the_trace_has_is_the_trace_s_own(head, query):
    _, trace = attend()
    step = walk(trace, head, query)
    for given, wanted in (
        (step.q, trace.q[0, head, query]),
        (step.k, trace.k[0, head]),
        (step.v, trace.v[0, head]),
        (step.scores, trace.scores[0, head, query]),
        (step.scaled, trace.scaled[0, head, query]),
        (step.masked, trace.masked[0, head, query]),
        (step.weights, trace.weights[0, head, query]),
        (step.context, trace.context[0, head, query]),
    ):
        assert given.data_ptr() == wanted.data_ptr()  # a view: not computed a second time
        assert given.shape == wanted.shape


def test_shapes():
    _, trace = attend()
    shapes = {field.name: tuple(getattr(walk(trace, 1, 3), field.name).shape) for field in fields(walk(trace, 1, 3))}
    assert shapes == {
        "q": (HEAD_DIM,),
        "k": (KEYS, HEAD_DIM),
        "v": (KEYS, HEAD_DIM),
        "scores": (KEYS,),
        "scaled": (KEYS,),
        "masked": (KEYS,),
        "exponentials": (KEYS,),
        "total": (),
        "weights": (KEYS,),
        "weighted": (KEYS, HEAD_DIM),
        "context": (HEAD_DIM,),
    }


def test_several_queries_at_once_are_the_walks_of_each():
    module, trace = attend()
    several = walk(trace, 1, slice(1, 4))
    for place, query in enumerate(range(1, 4)):
        for field in fields(several):
            given, wanted = getattr(several, field.name), getattr(walk(trace, 1, query), field.name)
            assert_close(given if field.name in ("k", "v") else given[place], wanted, rtol=0, atol=0)
    parts = contributions(trace.context[0], module.to_output)
    assert parts.shape == (HEADS, QUERIES, EMBED)
    for query in range(QUERIES):
        assert_close(parts[:, [query]], contributions(trace.context[0, :, [query]], module.to_output))


def test_map_applies_to_every_number():
    step = walk(attend()[1], 1, 3)
    doubled = step.map(lambda tensor: (2 * tensor).tolist())
    for field in fields(step):
        assert getattr(doubled, field.name) == (2 * getattr(step, field.name)).tolist()


@pytest.mark.parametrize("head, query", [place for place in PLACES if place != (1, 2)])
def test_exponentials_over_the_total_are_the_weights(head, query):
    step = walk(attend()[1], head, query)
    assert_close(step.total.item(), sum(step.exponentials.tolist()))
    assert_close(step.exponentials / step.total, step.weights)
    largest = max(step.masked.tolist())
    assert_close(step.exponentials.tolist(), [math.exp(x - largest) for x in step.masked.tolist()])


def test_of_a_query_that_sees_nothing_all_is_zero():
    step = walk(attend()[1], 1, 2)
    for numbers in (step.exponentials, step.total, step.weights, step.weighted, step.context):
        assert (numbers == 0).all()
    assert (step.masked == -math.inf).all() and step.scores.isfinite().all()


@pytest.mark.parametrize("head, query", PLACES)
def test_weighted_values_sum_to_the_context(head, query):
    step = walk(attend()[1], head, query)
    for key in range(KEYS):
        for column in range(HEAD_DIM):
            assert step.weighted[key, column] == step.weights[key] * step.v[key, column]
    assert_close(step.weighted.sum(0), step.context)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("query", range(QUERIES))
def test_contributions_of_the_heads_and_the_bias_sum_to_the_output(query, bias):
    module, trace = attend(bias=bias)
    parts = contributions(trace.context[0, :, [query]], module.to_output)[:, 0]
    assert parts.shape == (HEADS, EMBED)
    assert_close(parts.sum(0) + (module.to_output.bias if bias else 0), trace.output[0, query])


def test_a_contribution_is_what_the_output_loses_with_its_head():
    module, trace = attend(bias=True)
    context = trace.context[0, :, 3]
    parts = contributions(context[:, None], module.to_output)[:, 0]
    for head in range(HEADS):
        without = context.clone()
        without[head] = 0
        assert_close(module.to_output(context.flatten()) - module.to_output(without.flatten()), parts[head])


def test_without_an_output_projection_a_head_fills_its_own_columns():
    module, trace = attend(output_projection=False)
    parts = contributions(trace.context[0, :, [3]], module.to_output)[:, 0]
    assert parts.shape == (HEADS, HEADS * HEAD_DIM)
    assert_close(parts.sum(0), trace.output[0, 3])
    for head in range(HEADS):
        own = range(head * HEAD_DIM, (head + 1) * HEAD_DIM)
        for column in range(HEADS * HEAD_DIM):
            wanted = trace.context[0, head, 3, column - own.start] if column in own else 0
            assert parts[head, column] == wanted

"""Each step against a slow loop written from its formula, closed forms, and relations that must hold for any input."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from models.attention import exponentials, hide, mix, normalise, scale, similarity

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, VALUE_DIM = 3, 2, 5, 7, 11, 13
E = math.e
INFINITY = math.inf


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def some_visible() -> torch.Tensor:
    """Random, but every query sees at least its first key."""
    visible = torch.rand(BATCH, HEADS, QUERIES, KEYS) < 0.5
    visible[..., 0] = True
    return visible


def cells(*sizes: int):
    return torch.cartesian_prod(*(torch.arange(size) for size in sizes)).tolist()


def test_similarity_is_the_sum_of_products():
    q, k = normal(BATCH, HEADS, QUERIES, HEAD_DIM), normal(BATCH, HEADS, KEYS, HEAD_DIM)
    scores = similarity(q, k)
    assert scores.shape == (BATCH, HEADS, QUERIES, KEYS)
    for b, h, i, j in cells(BATCH, HEADS, QUERIES, KEYS):
        wanted = sum(q[b, h, i, d].item() * k[b, h, j, d].item() for d in range(HEAD_DIM))
        assert scores[b, h, i, j].item() == pytest.approx(wanted, abs=1e-12)


def test_scale_multiplies_by_the_factor():
    scores = normal(BATCH, HEADS, QUERIES, KEYS)
    scaled = scale(scores, 0.3)
    for b, h, i, j in cells(BATCH, HEADS, QUERIES, KEYS):
        assert scaled[b, h, i, j].item() == scores[b, h, i, j].item() * 0.3


def test_hide_puts_minus_infinity_where_a_query_may_not_look_and_nothing_else():
    scaled, visible = normal(BATCH, HEADS, QUERIES, KEYS), some_visible()
    masked = hide(scaled, visible)
    for b, h, i, j in cells(BATCH, HEADS, QUERIES, KEYS):
        wanted = scaled[b, h, i, j].item() if visible[b, h, i, j] else -INFINITY
        assert masked[b, h, i, j].item() == wanted


@pytest.mark.parametrize(
    "shape", [(KEYS,), (QUERIES, KEYS), (BATCH, 1, 1, KEYS), (BATCH, 1, QUERIES, KEYS), (HEADS, 1, KEYS), ()]
)
def test_hide_broadcasts(shape):
    scaled, visible = normal(BATCH, HEADS, QUERIES, KEYS), torch.rand(shape) < 0.5
    assert_close(hide(scaled, visible), hide(scaled, visible.expand(scaled.shape)), rtol=0, atol=0)


def test_hide_nothing_changes_nothing():
    scaled = normal(QUERIES, KEYS)
    assert hide(scaled, None) is scaled
    assert_close(hide(scaled, torch.ones(QUERIES, KEYS, dtype=torch.bool)), scaled, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_hide_and_normalise_keep_the_precision(dtype):
    masked = hide(torch.zeros(2, 3, dtype=dtype), torch.eye(2, 3, dtype=torch.bool))
    assert masked.dtype == normalise(masked).dtype == dtype


def test_no_step_writes_on_its_input():
    q, k, v, visible = normal(QUERIES, HEAD_DIM), normal(KEYS, HEAD_DIM), normal(KEYS, VALUE_DIM), some_visible()[0, 0]
    visible[1] = False
    scores = similarity(q, k)
    scaled = scale(scores, 0.3)
    masked = hide(scaled, visible)
    weights = normalise(masked)
    inputs = (q, k, v, visible, scores, scaled, masked, weights)
    copies = [tensor.clone() for tensor in inputs]
    similarity(q, k), scale(scores, 0.3), hide(scaled, visible)
    normalise(masked), exponentials(masked), mix(weights, v)
    for tensor, copy in zip(inputs, copies, strict=True):
        assert torch.equal(tensor, copy)


def test_normalise_is_each_exponential_over_their_sum():
    masked = hide(normal(BATCH, HEADS, QUERIES, KEYS), some_visible())
    weights = normalise(masked)
    for b, h, i in cells(BATCH, HEADS, QUERIES):
        numerators = [math.exp(x) for x in masked[b, h, i].tolist()]
        for j in range(KEYS):
            assert weights[b, h, i, j].item() == pytest.approx(numerators[j] / sum(numerators), abs=1e-14)


def test_mix_is_the_weighted_sum_of_the_values():
    weights, v = normalise(normal(BATCH, HEADS, QUERIES, KEYS)), normal(BATCH, HEADS, KEYS, VALUE_DIM)
    context = mix(weights, v)
    assert context.shape == (BATCH, HEADS, QUERIES, VALUE_DIM)
    for b, h, i, d in cells(BATCH, HEADS, QUERIES, VALUE_DIM):
        wanted = sum(weights[b, h, i, j].item() * v[b, h, j, d].item() for j in range(KEYS))
        assert context[b, h, i, d].item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    "row, wanted",
    [
        ([0, 1], [1 / (1 + E), E / (1 + E)]),
        ([0, math.log(3)], [0.25, 0.75]),
        ([5, 5, 5, 5], [0.25, 0.25, 0.25, 0.25]),
        ([-INFINITY, 0, 1], [0, 1 / (1 + E), E / (1 + E)]),
        ([-INFINITY, -2, -INFINITY], [0, 1, 0]),
        ([1000, 1001], [1 / (1 + E), E / (1 + E)]),
        ([-INFINITY, -INFINITY, -INFINITY], [0, 0, 0]),
        ([-4.0], [1]),
        ([], []),
    ],
)
def test_weights_in_closed_form(row, wanted):
    weights = normalise(torch.tensor([row], dtype=torch.float64))
    assert_close(weights, torch.tensor([wanted], dtype=torch.float64), rtol=0, atol=1e-15)


def test_a_nan_of_the_input_is_not_swept_under_the_zeros():
    masked = torch.tensor([[math.nan, 0.0], [0.0, math.nan], [-INFINITY, -INFINITY], [0.0, 0.0]])
    weights = normalise(masked)
    assert weights[:2].isnan().all()
    assert weights[2:].tolist() == [[0, 0], [0.5, 0.5]]


def test_a_query_that_sees_nothing_gets_zeros_and_the_others_what_they_had():
    scaled, visible, v = normal(BATCH, HEADS, QUERIES, KEYS), some_visible(), normal(BATCH, HEADS, KEYS, VALUE_DIM)
    before = normalise(hide(scaled, visible))
    visible[1, 0, 3] = False
    weights = normalise(hide(scaled, visible))
    context = mix(weights, v)
    assert (weights[1, 0, 3] == 0).all() and (context[1, 0, 3] == 0).all()
    others = torch.ones(BATCH, HEADS, QUERIES, dtype=torch.bool)
    others[1, 0, 3] = False
    assert torch.equal(weights[others], before[others])


@pytest.mark.parametrize("sees_nothing", [False, True])
def test_gradients_are_those_of_slow_differences(sees_nothing):
    visible = torch.eye(3, 4, dtype=torch.bool)
    visible[:, 0] = True
    if sees_nothing:
        visible[1] = False
    q, k, v = normal(3, 2), normal(4, 2), normal(4, 5)

    def attention(q, k, v):
        return mix(normalise(hide(scale(similarity(q, k), 0.7), visible)), v)

    assert torch.autograd.gradcheck(attention, [tensor.requires_grad_() for tensor in (q, k, v)])


def test_exponentials_over_their_sum_are_the_weights():
    masked = hide(normal(BATCH, HEADS, QUERIES, KEYS), some_visible())
    numerators = exponentials(masked)
    assert_close(numerators / numerators.sum(-1, keepdim=True), normalise(masked))
    for b, h, i, j in cells(BATCH, HEADS, QUERIES, KEYS):
        wanted = math.exp(masked[b, h, i, j].item() - max(masked[b, h, i].tolist()))
        assert numerators[b, h, i, j].item() == pytest.approx(wanted, abs=1e-15)


def test_exponentials_neither_overflow_nor_divide_by_nothing():
    masked = torch.tensor([[1000.0, 999.0], [-INFINITY, -INFINITY], [-INFINITY, -1000.0]], dtype=torch.float64)
    assert_close(exponentials(masked), torch.tensor([[1, 1 / E], [0, 0], [0, 1]], dtype=torch.float64))


@pytest.mark.parametrize("factor", [HEAD_DIM**-0.5, 1.0, 0.125])
@pytest.mark.parametrize("masked", [False, True])
def test_torch_gives_the_same_context(factor, masked):
    q, k, v = (normal(BATCH, HEADS, n, d) for n, d in ((QUERIES, HEAD_DIM), (KEYS, HEAD_DIM), (KEYS, VALUE_DIM)))
    visible = some_visible() if masked else None
    context = mix(normalise(hide(scale(similarity(q, k), factor), visible)), v)
    assert_close(context, F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=factor))


# Relations


def test_hiding_a_key_is_deleting_it():
    scaled, v, gone = normal(HEADS, QUERIES, KEYS), normal(HEADS, KEYS, VALUE_DIM), 3
    left = [key for key in range(KEYS) if key != gone]
    visible = torch.tensor([key != gone for key in range(KEYS)])
    hidden, deleted = normalise(hide(scaled, visible)), normalise(scaled[..., left])
    assert (hidden[..., gone] == 0).all()
    assert_close(hidden[..., left], deleted)
    assert_close(mix(hidden, v), mix(deleted, v[:, left]))


def test_what_is_hidden_may_be_anything():
    scaled, visible = normal(BATCH, HEADS, QUERIES, KEYS), some_visible()
    poisoned = torch.where(visible, scaled, math.nan)
    assert torch.equal(normalise(hide(poisoned, visible)), normalise(hide(scaled, visible)))


def test_the_order_of_keys_and_their_values_does_not_matter():
    q, k, v = normal(QUERIES, HEAD_DIM), normal(KEYS, HEAD_DIM), normal(KEYS, VALUE_DIM)
    order = torch.randperm(KEYS)
    weights, permuted = normalise(similarity(q, k)), normalise(similarity(q, k[order]))
    assert_close(permuted, weights[:, order])
    assert_close(mix(permuted, v[order]), mix(weights, v))


def test_a_constant_added_to_a_row_changes_no_weight():
    masked = hide(normal(BATCH, HEADS, QUERIES, KEYS), some_visible())
    constant = 10 * normal(BATCH, HEADS, QUERIES, 1)
    assert_close(normalise(masked + constant), normalise(masked))
    assert_close(exponentials(masked + constant), exponentials(masked))


@given(st.lists(st.lists(st.floats(-1e3, 1e3) | st.just(-INFINITY), min_size=3, max_size=3), min_size=1, max_size=5))
def test_every_row_of_weights_sums_to_one_or_is_zero(rows):
    weights = normalise(torch.tensor(rows, dtype=torch.float64))
    for row, numbers in zip(weights.tolist(), rows, strict=True):
        assert all(0 <= weight <= 1 for weight in row)
        assert sum(row) == pytest.approx(1 if max(numbers) > -INFINITY else 0)
        assert all(weight == 0 for weight, number in zip(row, numbers, strict=True) if number == -INFINITY)

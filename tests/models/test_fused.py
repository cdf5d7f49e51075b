"""Fused weights cut by the source's own pattern: q, k and v are then those of the source's own forward."""

import re

import pytest
import torch
from einops import rearrange
from torch import nn
from torch.testing import assert_close

from models.fused import split_fused
from models.multi_head import AttentionConfig, MultiHeadAttention

# HEADS is no multiple of the three of q, k and v, nor is anything else, so that no axis passes for another.
BATCH, TOKENS, HEADS, HEAD_DIM, EMBED = 2, 5, 7, 11, 13


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize("order", ["k h d", "k d h", "d k h", "d h k", "h k d", "h d k"])
def test_every_order_gives_what_its_own_forward_gives(order):
    fused = nn.Linear(EMBED, 3 * HEADS * HEAD_DIM).double()
    x = normal(BATCH, TOKENS, EMBED)
    theirs = rearrange(fused(x), f"b t ({order}) -> k b h t d", k=3, h=HEADS)
    weights, biases = (split_fused(tensor, f"({order})", h=HEADS) for tensor in (fused.weight, fused.bias))
    for wanted, weight, bias in zip(theirs, weights, biases, strict=True):
        assert_close(rearrange(x @ weight.T + bias, "b t (h d) -> b h t d", h=HEADS), wanted)


@pytest.mark.parametrize("order", ["k d", "d k"])
def test_one_head_needs_no_h(order):
    fused, x = nn.Linear(EMBED, 3 * HEAD_DIM).double(), normal(BATCH, TOKENS, EMBED)
    theirs = rearrange(fused(x), f"b t ({order}) -> k b t d", k=3)
    weights, biases = (split_fused(tensor, f"({order})") for tensor in (fused.weight, fused.bias))
    for wanted, weight, bias in zip(theirs, weights, biases, strict=True):
        assert_close(x @ weight.T + bias, wanted)


def test_row_by_row():
    rows = torch.arange(12)  # two heads of two
    assert [part.tolist() for part in split_fused(rows, "(k h d)", h=2)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert [part.tolist() for part in split_fused(rows, "(d k h)", h=2)] == [[0, 6, 1, 7], [2, 8, 3, 9], [4, 10, 5, 11]]
    assert [part.tolist() for part in split_fused(rows, "(d k)")] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]


def test_torch_s_own_is_three_blocks_with_or_without_heads():
    theirs = nn.MultiheadAttention(HEADS * HEAD_DIM, HEADS)
    for tensor in (theirs.in_proj_weight, theirs.in_proj_bias):
        for one, two, three in zip(
            split_fused(tensor, "(k h d)", h=HEADS), split_fused(tensor, "(k d)"), tensor.chunk(3), strict=True
        ):
            assert torch.equal(one, three) and torch.equal(two, three)


def test_a_reader_s_layer_loads_as_the_docstring_says():
    fused, last = nn.Linear(EMBED, 3 * HEADS * HEAD_DIM, bias=False), nn.Linear(HEADS * HEAD_DIM, EMBED, bias=False)
    ours = MultiHeadAttention(AttentionConfig(EMBED, HEADS, HEAD_DIM))
    q, k, v = split_fused(fused.weight, "(d k h)", h=HEADS)
    ours.load_state_dict({"to_q.weight": q, "to_k.weight": k, "to_v.weight": v, "to_output.weight": last.weight})
    x = torch.randn(BATCH, TOKENS, EMBED)
    theirs = rearrange(fused(x), "b t (d k h) -> k b h t d", k=3, h=HEADS)
    trace = ours.trace(x)
    for ours_, theirs_ in zip((trace.q, trace.k, trace.v), theirs, strict=True):
        assert_close(ours_, theirs_)


def test_gradients_reach_the_fused_weight():
    weight = normal(6, EMBED).requires_grad_()
    split_fused(weight, "(d k)")[1].sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 1, 0, 0, 1, 0]


# Errors: each says what was wanted, what came, and what to change


@pytest.mark.parametrize(
    "pattern", ["", "d k", "(d k", "(d h)", "(k)", "(d k k)", "(d k h h)", "(d q h)", "(d) (k)", "b t (d k)", "(... k)"]
)
def test_a_pattern_that_is_none_is_refused(pattern):
    message = (
        'pattern must be one axis in brackets, such as "(k h d)", "(d k h)" or "(d k)": '
        f"k for q, k and v, d for head_dim, h for heads; got {pattern!r}."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_fused(normal(12, EMBED), pattern)


@pytest.mark.parametrize(
    "pattern, h, message",
    [
        ("(k h d)", None, "got '(k h d)' and none. Add h=…."),
        ("(k d)", 2, "got '(k d)' and h=2. Leave h out, or name it in the pattern."),
    ],
)
def test_heads_are_wanted_exactly_where_the_pattern_has_them(pattern, h, message):
    message = f"give h, the number of heads, exactly where the pattern has an h; {message}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_fused(normal(12, EMBED), pattern, h=h)


@pytest.mark.parametrize(
    "rows, pattern, h, divisor, parts",
    [(13, "(d k)", None, "3", "k"), (21, "(d k h)", 2, "3 · 2", "k and h"), (0, "(k d)", None, "3", "k")],
)
def test_rows_that_do_not_divide_are_refused(rows, pattern, h, divisor, parts):
    message = (
        f"the first axis must divide by {divisor} = {3 * (h or 1)}, one part for each of {parts}; got {rows}. "
        "Transpose a matrix whose columns are fused, or change the pattern or h."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_fused(normal(rows, EMBED), pattern, h=h)


@pytest.mark.parametrize("h", [0, -2])
def test_no_heads_are_refused(h):
    with pytest.raises(ValueError, match=f"^h must be 1 or more; got {h}\\.$"):
        split_fused(normal(12, EMBED), "(k h d)", h=h)


@pytest.mark.parametrize("shape, came", [((), "a single number"), ((3, 4, 5), "3 × 4 × 5")])
def test_what_is_no_weight_is_refused(shape, came):
    with pytest.raises(ValueError, match=rf"^weight must have one axis .* as nn\.Linear keeps it\); got {came}\.$"):
        split_fused(normal(*shape), "(k d)")

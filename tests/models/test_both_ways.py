"""Both senses of one mask against a slow loop, in float64, and against each other."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from models.both_ways import with_function, with_module, with_padding
from models.masks import causal, prefix, window

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, WIDTH = 3, 2, 5, 7, 11, 13
MASKS = {
    "causal": causal(QUERIES, KEYS),
    "window": window(QUERIES, KEYS, 1),
    "prefix": prefix(QUERIES, KEYS, 3),
    "everything": torch.ones(QUERIES, KEYS, dtype=torch.bool),
}


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def looked_up(q: Tensor, k: Tensor, v: Tensor, scale: float, sees) -> Tensor:
    """Attention of one head, written out; `sees(query, key)` is whether it may look."""
    rows = []
    for i, asking in enumerate(q):
        shares = [math.exp(scale * (asking @ key).item()) if sees(i, j) else 0.0 for j, key in enumerate(k)]
        rows.append(sum(share * value for share, value in zip(shares, v, strict=True)) / sum(shares))
    return torch.stack(rows)


def by_loops(module: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, sees) -> Tensor:
    """torch's module, written out; `sees(example, query, key)`."""
    widths = [module.embed_dim // module.num_heads] * module.num_heads
    weights = module.in_proj_weight.chunk(3) if module.in_proj_weight is not None else [
        module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    ]
    projected = [x @ w.T + b for x, w, b in zip((query, key, value), weights, module.in_proj_bias.chunk(3), strict=True)]
    examples = []
    for n in range(len(query)):
        heads = zip(*(tensor[n].split(widths, dim=-1) for tensor in projected), strict=True)
        blends = [looked_up(*head, widths[0] ** -0.5, lambda i, j, n=n: sees(n, i, j)) for head in heads]
        examples.append(module.out_proj(torch.cat(blends, dim=-1)))
    return torch.stack(examples)


def module_and_inputs(**widths: int) -> tuple[nn.MultiheadAttention, Tensor, Tensor, Tensor]:
    embed_dim = HEADS * HEAD_DIM
    module = nn.MultiheadAttention(embed_dim, HEADS, batch_first=True, dtype=torch.float64, **widths)
    nn.init.normal_(module.in_proj_bias)
    key, value = (widths.get(name, embed_dim) for name in ("kdim", "vdim"))
    return module, numbers(BATCH, QUERIES, embed_dim), numbers(BATCH, KEYS, key), numbers(BATCH, KEYS, value)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("scale", [HEAD_DIM**-0.5, 1.0, 0.3])
def test_the_function_keeps_where_it_is_true(name, scale):
    q = numbers(BATCH, HEADS, QUERIES, HEAD_DIM)
    k, v = numbers(BATCH, HEADS, KEYS, HEAD_DIM), numbers(BATCH, HEADS, KEYS, WIDTH)
    made = with_function(q, k, v, scale, MASKS[name])
    for n in range(BATCH):
        for head in range(HEADS):
            wanted = looked_up(q[n, head], k[n, head], v[n, head], scale, lambda i, j: MASKS[name][i, j])
            assert_close(made[n, head], wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("widths", [{}, {"kdim": 17, "vdim": 19}], ids=str)
def test_the_module_hides_where_it_is_true(name, widths):
    module, *inputs = module_and_inputs(**widths)
    wanted = by_loops(module, *inputs, lambda n, i, j: MASKS[name][i, j])
    assert_close(with_module(module, *inputs, MASKS[name]), wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("training", [True, False])  # in eval torch may take its fused path
def test_padding_hides_where_it_is_true_too(training):
    module, *inputs = module_and_inputs()
    module.train(training)
    keep = torch.rand(BATCH, KEYS) < 0.5
    keep[:, 2] = True
    wanted = by_loops(module, *inputs, lambda n, i, j: keep[n, j])
    assert_close(with_padding(module, *inputs, keep), wanted, atol=1e-12, rtol=0)


def test_hiding_a_key_is_deleting_it_in_each():
    module, query, key, value = module_and_inputs()
    keep = torch.tensor([True, True, False, True, False, True, True])
    shorter = module(query, key[:, keep], value[:, keep])[0]
    visible = keep.expand(QUERIES, KEYS)
    assert_close(with_module(module, query, key, value, visible), shorter, atol=1e-12, rtol=0)
    assert_close(with_padding(module, query, key, value, keep.expand(BATCH, KEYS)), shorter, atol=1e-12, rtol=0)
    q, k, v = numbers(QUERIES, HEAD_DIM), numbers(KEYS, HEAD_DIM), numbers(KEYS, WIDTH)
    everything = torch.ones(QUERIES, int(keep.sum()), dtype=torch.bool)
    assert_close(
        with_function(q, k, v, 0.3, visible), with_function(q, k[keep], v[keep], 0.3, everything), atol=1e-12, rtol=0
    )


def test_the_two_are_one_layer_said_in_two_ways():
    module, *inputs = module_and_inputs()
    visible = MASKS["causal"]
    q, k, v = (
        (x @ w.T + b).unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
        for x, w, b in zip(inputs, module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3), strict=True)
    )
    context = with_function(q, k, v, HEAD_DIM**-0.5, visible)
    joined = module.out_proj(context.transpose(1, 2).flatten(2))
    assert_close(with_module(module, *inputs, visible), joined, atol=1e-12, rtol=0)

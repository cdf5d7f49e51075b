"""The badge must be green for the right reason: with the same weights, and red as soon as one number is not."""

import re
import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from models import twin
from models.attention import normalise
from models.masks import causal, padding
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.recipes import RECIPES
from models.twin import FUNCTION, MODULE, Twin, as_attn_mask, as_key_padding_mask, as_sdpa_mask, as_torch, obstacles

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, KDIM, VDIM = 3, 2, 5, 7, 11, 17, 19
EMBED = HEADS * HEAD_DIM
TINY = 1e-13

EXPRESSIBLE = [
    {},
    {"bias": True},
    {"kdim": KDIM, "vdim": VDIM},
    {"kdim": KDIM, "bias": True},
    {"vdim": VDIM},
    {"head_dim": HEAD_DIM, "num_kv_heads": HEADS, "scale": HEAD_DIM**-0.5},
]
GROUPED = {"num_heads": 6, "num_kv_heads": 2, "head_dim": HEAD_DIM}
OBSTACLES = {
    "it always has W_O": {"output_projection": False},
    "its heads are embed_dim / num_heads wide": {"head_dim": 13},
    "each of its heads has keys and values of its own": {"num_kv_heads": 1},
    "it always scales by 1/√head_dim": {"scale": 1.0},
    "it has no activation": {"projection_activation": "relu"},
}


def config(**changes) -> AttentionConfig:
    return AttentionConfig(**{"embed_dim": EMBED, "num_heads": HEADS} | changes)


def layer(**changes) -> MultiHeadAttention:
    module = MultiHeadAttention(config(**changes))
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return module


def inputs(module: MultiHeadAttention) -> list[torch.Tensor]:
    tokens = (QUERIES, KEYS, KEYS)
    return [torch.randn(BATCH, n, width) for n, width in zip(tokens, module.config.input_widths, strict=True)]


def some_visible(*shape: int) -> torch.Tensor:
    visible = torch.rand(*shape) < 0.5
    visible[..., 0] = True
    return visible


MASKS = {
    "none": lambda heads: None,
    "one for all": lambda heads: some_visible(QUERIES, KEYS),
    "of each head": lambda heads: some_visible(heads, 1, KEYS),
    "of each example": lambda heads: padding(some_visible(BATCH, KEYS)),
    "of everything": lambda heads: some_visible(BATCH, heads, QUERIES, KEYS),
    "of each key": lambda heads: some_visible(KEYS),
    "a single number": lambda heads: torch.tensor(True),
}


# Agreement


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("changes", EXPRESSIBLE, ids=str)
def test_torch_s_module_agrees_wherever_it_can_express_the_layer(changes, mask):
    module = layer(**changes)
    found = Twin(module).compare(*inputs(module), visible=MASKS[mask](module.config.num_heads))
    assert (found.function, found.reason) == (MODULE, "")
    assert found.weights < TINY and found.output < TINY


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("changes", [*OBSTACLES.values(), {"scale": 0.0}, {"scale": -0.5}, GROUPED], ids=str)
def test_torch_s_function_agrees_on_all_the_others(changes, mask):
    module = layer(**changes)
    found = Twin(module).compare(*inputs(module), visible=MASKS[mask](module.config.num_heads))
    assert (found.function, found.reason) == (FUNCTION, "")
    assert found.weights < TINY and found.output < TINY


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_agrees(name):
    module = MultiHeadAttention(RECIPES[name].config(EMBED, HEADS))
    found = Twin(module).compare(*inputs(module), visible=some_visible(QUERIES, KEYS))
    assert found.function == (MODULE if name in ("multi_head", "torch") else FUNCTION)
    assert found.weights < TINY and found.output < TINY


def test_self_attention_and_a_value_left_out():
    module = layer(bias=True)
    query, key, _ = inputs(module)
    assert Twin(module).compare(query) == Twin(module).compare(query, query, query)
    assert Twin(module).compare(query, key) == Twin(module).compare(query, key, key)


@pytest.mark.parametrize("changes", [{}, {"scale": 1.0}], ids=[MODULE, FUNCTION])
def test_a_wrong_softmax_is_found_and_measured(changes, monkeypatch):
    module = layer(**changes)
    monkeypatch.setattr("models.multi_head.normalise", lambda masked: normalise(masked) * 1.5)
    x = inputs(module)
    found = Twin(module).compare(*x)
    assert found.weights == pytest.approx(module.double().trace(*(t.double() for t in x)).weights.max().item() / 3)
    assert found.output > 0.01


def test_heads_given_the_wrong_keys_are_found(monkeypatch):
    monkeypatch.setattr(twin, "as_torch", lambda module: swapped(as_torch(module)))
    module = layer()
    found = Twin(module).compare(*inputs(module))
    assert found.weights > 0.01 and found.output > 0.01


def swapped(theirs: nn.MultiheadAttention) -> nn.MultiheadAttention:
    with torch.no_grad():
        theirs.in_proj_weight[EMBED : 2 * EMBED] = theirs.in_proj_weight[EMBED : 2 * EMBED].roll(HEAD_DIM, 0)
    return theirs


def test_nothing_is_changed_by_looking():
    module, state = layer(bias=True), torch.random.get_rng_state()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    Twin(module).compare(torch.ones(1, QUERIES, EMBED))
    assert torch.equal(torch.random.get_rng_state(), state)
    for name, tensor in module.state_dict().items():
        assert tensor.dtype == torch.float32 and torch.equal(tensor, before[name])


# Queries that see nothing


def test_torch_s_module_is_compared_only_where_it_gives_numbers():
    module, visible = layer(bias=True), some_visible(BATCH, HEADS, QUERIES, KEYS)
    visible[1, 0, 3] = visible[2, :, 4] = False
    found = Twin(module).compare(*inputs(module), visible=visible)
    assert found.function == MODULE and found.weights < TINY and found.output < TINY
    assert found.reason == f"{MODULE} gives NaN for a query that sees nothing; such queries are left out."


def test_where_no_query_sees_anything_torch_s_module_has_nothing_to_compare():
    module = layer()
    found = Twin(module).compare(*inputs(module), visible=torch.tensor(False))
    assert (found.weights, found.output) == (None, None) and found.reason


def test_torch_s_function_gives_them_zeros_as_we_do():
    module, visible = layer(scale=1.0, bias=True), some_visible(BATCH, HEADS, QUERIES, KEYS)
    visible[1, 0, 3] = visible[2, :, 4] = False
    found = Twin(module).compare(*inputs(module), visible=visible)
    assert found.function == FUNCTION and found.weights < TINY and found.output < TINY and not found.reason


@pytest.mark.parametrize("changes", [{}, {"scale": 1.0}], ids=[MODULE, FUNCTION])
def test_no_queries_at_all_are_no_error(changes):
    found = Twin(layer(**changes)).compare(torch.ones(1, 0, EMBED))
    assert (found.weights, found.output) == (None, None)


# The mapping


@pytest.mark.parametrize("changes", EXPRESSIBLE, ids=str)
def test_torch_s_module_has_our_weights_and_its_own_memory(changes):
    module = layer(**changes)
    theirs, (query, key, value) = as_torch(module), inputs(module)
    output, _ = theirs(query, key, value)
    assert_close(output, module(query, key, value))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.zero_()
    assert all((parameter != 0).any() for parameter in module.parameters())


def test_torch_s_module_keeps_our_precision_and_can_be_trained():
    theirs = as_torch(layer(bias=True).double())
    assert all(parameter.dtype == torch.float64 and parameter.requires_grad for parameter in theirs.parameters())


@pytest.mark.parametrize("clause, changes", OBSTACLES.items(), ids=OBSTACLES)
def test_each_obstacle_is_named_and_no_other(clause, changes):
    assert obstacles(config(**changes)) == (clause,)
    message = f"{MODULE} cannot express this layer: {clause}. Change the config to match."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        as_torch(layer(**changes))


def test_without_projections_there_is_more_than_one_obstacle():
    assert obstacles(RECIPES["plain"].config(EMBED)) == (
        "it always has W_Q, W_K and W_V",
        "it always has W_O",
        "it always scales by 1/√head_dim",
    )


# A mask, both ways


@pytest.mark.parametrize("shape", [(QUERIES, KEYS), (BATCH, HEADS, QUERIES, KEYS)], ids=str)
def test_one_visible_means_the_same_to_both_of_torch_s_functions(shape):
    module, visible = layer().double(), some_visible(*shape)
    x = [tensor.double() for tensor in inputs(module)]
    ours = module.trace(*x, visible=visible)
    _, weights = as_torch(module)(*x, attn_mask=as_attn_mask(visible), average_attn_weights=False)
    context = F.scaled_dot_product_attention(ours.q, ours.k, ours.v, attn_mask=as_sdpa_mask(visible))
    assert_close(weights, ours.weights)
    assert_close(context, ours.context)


def test_padding_means_the_same_to_both_of_torch_s_functions():
    module, keep = layer().double(), some_visible(BATCH, KEYS)
    x = [tensor.double() for tensor in inputs(module)]
    ours = module.trace(*x, visible=padding(keep))
    _, weights = as_torch(module)(*x, key_padding_mask=as_key_padding_mask(keep), average_attn_weights=False)
    context = F.scaled_dot_product_attention(ours.q, ours.k, ours.v, attn_mask=as_sdpa_mask(padding(keep)))
    assert_close(weights, ours.weights)
    assert_close(context, ours.context)


def test_the_two_senses_are_opposite():
    visible = causal(QUERIES, KEYS)
    assert torch.equal(as_attn_mask(visible), ~as_sdpa_mask(visible))


@pytest.mark.parametrize("shape", [(), (KEYS,), (HEADS, QUERIES, KEYS)], ids=str)
def test_a_visible_of_other_axes_is_refused(shape):
    message = f"visible must be query × key or batch × head × query × key; got {len(shape)} axes. Expand it first."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        as_attn_mask(torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize(
    "function, name", [(as_attn_mask, "visible"), (as_sdpa_mask, "visible"), (as_key_padding_mask, "keep")]
)
def test_a_mask_of_numbers_is_refused(function, name):
    message = f"{name} must be boolean; got torch.int64. Compare, as in mask == 0 for a mask of 0 and −∞."
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        function(torch.ones(QUERIES, KEYS, dtype=torch.int64))


@pytest.mark.parametrize("changes", [{}, {"scale": 1.0}], ids=[MODULE, FUNCTION])
def test_the_badge_costs_at_most_ten_milliseconds(changes):
    module, x, visible = layer(embed_dim=64, num_heads=8, **changes), torch.randn(1, 16, 64), causal(16, 16)

    def cost() -> float:
        start = time.process_time()  # that others keep the processor busy is no fault of ours
        Twin(module).compare(x, visible=visible)
        return time.process_time() - start

    assert min(cost() for _ in range(10)) < 0.010

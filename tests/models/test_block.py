"""The block against torch's own with the same weights, slow loops, and what must not depend on what."""

import math
import re
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
import torch
from einops import parse_shape
from torch import nn
from torch.testing import assert_close

from models.block import (
    BLOCK_AXES,
    FLOW,
    BlockConfig,
    BlockStep,
    BlockTrace,
    TransformerBlock,
    change,
    run_through,
    stack,
)
from models.masks import causal, padding
from models.multi_head import AttentionConfig
from models.trace import AttentionTrace, Step

# Primes, all different, so that no axis passes for another.
BATCH, HEADS, QUERIES, HEAD_DIM, FEED_FORWARD = 3, 2, 5, 11, 17
EMBED = HEADS * HEAD_DIM

# Written out, so that adding, renaming or moving a step is a decision.
POST = [
    "before", "attended", "added", "normalised", "expanded", "activated", "fed_forward", "added_again",
    "normalised_again",
]  # fmt: skip
PRE = [
    "before", "normalised", "attended", "added", "normalised_again", "expanded", "activated", "fed_forward",
    "added_again",
]  # fmt: skip

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])
every_activation = pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def attention(**config) -> AttentionConfig:
    return AttentionConfig(**({"embed_dim": EMBED, "num_heads": HEADS, "bias": True} | config))


def block(norm: str = "post", activation: str = "relu", norm_eps: float = 1e-5, **config) -> TransformerBlock:
    module = TransformerBlock(BlockConfig(attention(**config), norm, activation, FEED_FORWARD, norm_eps)).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)  # the norms too, which start at one and zero otherwise
    return module


def some_visible(*shape: int) -> torch.Tensor:
    """Random, but every query sees at least its first key: torch's module answers NaN where one sees nothing."""
    visible = torch.rand(*shape) < 0.5
    visible[..., 0] = True
    return visible


def torch_s(ours: TransformerBlock) -> nn.TransformerEncoderLayer:
    """Torch's own layer with the weights of ours."""
    config = ours.config
    theirs = nn.TransformerEncoderLayer(
        EMBED, HEADS, FEED_FORWARD, dropout=0.0, activation=ours.activation, batch_first=True,
        norm_first=config.norm == "pre", layer_norm_eps=config.norm_eps,
    ).double()  # fmt: skip
    linears = [ours.attention.to_q, ours.attention.to_k, ours.attention.to_v]
    theirs.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([linear.weight for linear in linears]),
            "self_attn.in_proj_bias": torch.cat([linear.bias for linear in linears]),
            "self_attn.out_proj.weight": ours.attention.to_output.weight,
            "self_attn.out_proj.bias": ours.attention.to_output.bias,
            "linear1.weight": ours.feed_forward_in.weight,
            "linear1.bias": ours.feed_forward_in.bias,
            "linear2.weight": ours.feed_forward_out.weight,
            "linear2.bias": ours.feed_forward_out.bias,
            "norm1.weight": ours.norm_1.weight,
            "norm1.bias": ours.norm_1.bias,
            "norm2.weight": ours.norm_2.weight,
            "norm2.bias": ours.norm_2.bias,
        }
    )
    return theirs


# Oracles


@pytest.mark.parametrize("masking", ["none", "src_mask", "src_key_padding_mask", "both", "src_mask of each head"])
@every_activation
@both_norms
def test_torch_s_layer_gives_the_same_output(norm, activation, masking):
    ours = block(norm, activation)
    x, visible, hidden = normal(BATCH, QUERIES, EMBED), None, {}  # torch's layer wants True where it hides
    if masking in ("src_mask", "both"):
        visible = some_visible(QUERIES, QUERIES)
        hidden["src_mask"] = ~visible
    if masking == "src_mask of each head":
        visible = some_visible(BATCH, HEADS, QUERIES, QUERIES)
        hidden["src_mask"] = ~visible.reshape(BATCH * HEADS, QUERIES, QUERIES)
    if masking in ("src_key_padding_mask", "both"):
        keep = some_visible(BATCH, QUERIES)
        visible = padding(keep) if visible is None else padding(keep) & visible
        hidden["src_key_padding_mask"] = ~keep
    assert_close(ours(x, visible=visible), torch_s(ours)(x, **hidden))


@pytest.mark.parametrize("depth", [1, 3, 6])
@both_norms
def test_torch_s_stack_gives_the_same_output_of_every_layer(norm, depth):
    blocks, x, visible = [block(norm) for _ in range(depth)], normal(BATCH, QUERIES, EMBED), causal(QUERIES, QUERIES)
    traces = stack(blocks, x, visible)
    assert len(traces) == depth
    for layer, trace in zip(map(torch_s, blocks), traces, strict=True):
        x = layer(x, src_mask=~visible)
        assert_close(trace.output, x)


def layer_norm(x: torch.Tensor, norm: nn.LayerNorm) -> torch.Tensor:
    """One token, (x − mean) / √(variance + ε) · gain + bias (Ba et al. 2016, section 3), number by number."""
    mean = sum(x) / len(x)
    variance = sum((number - mean) ** 2 for number in x) / len(x)
    return torch.stack([
        (x[i] - mean) / math.sqrt(variance + norm.eps) * norm.weight[i] + norm.bias[i] for i in range(len(x))
    ])  # fmt: skip


def activate(number: torch.Tensor, activation: str) -> float:
    """max(0, x), or x · Φ(x) with Φ the normal distribution's or near it (Hendrycks and Gimpel 2016, section 2)."""
    x = float(number)
    if activation == "relu":
        return max(0.0, x)
    near = math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return x * (1 + (math.erf(x / math.sqrt(2)) if activation == "gelu" else near)) / 2


def by_hand(module: TransformerBlock, before: torch.Tensor, visible: torch.Tensor) -> dict[str, torch.Tensor]:
    """Every step of one example: `query embed`. The attention inside has an oracle of its own."""
    steps = {name: [None] * QUERIES for name in POST} | {"before": list(before)}
    post = module.config.norm == "post"
    if not post:
        steps["normalised"] = [layer_norm(token, module.norm_1) for token in before]
    attended_to = before if post else torch.stack(steps["normalised"])
    steps["attended"] = list(module.attention(attended_to[None], visible=visible)[0])
    for i in range(QUERIES):
        steps["added"][i] = before[i] + steps["attended"][i]
        if post:
            steps["normalised"][i] = layer_norm(steps["added"][i], module.norm_1)
        else:
            steps["normalised_again"][i] = layer_norm(steps["added"][i], module.norm_2)
        into, around = (steps["normalised"][i],) * 2 if post else (steps["normalised_again"][i], steps["added"][i])
        expanded = [row @ into + bias for row, bias in zip(*module.feed_forward_in.parameters(), strict=True)]
        activated = [activate(number, module.config.activation) for number in expanded]
        fed_forward = [
            sum(weight * number for weight, number in zip(row, activated, strict=True)) + bias
            for row, bias in zip(*module.feed_forward_out.parameters(), strict=True)
        ]
        steps["expanded"][i] = torch.stack(expanded)
        steps["activated"][i] = torch.tensor(activated, dtype=torch.float64)
        steps["fed_forward"][i] = torch.stack(fed_forward)
        steps["added_again"][i] = around + steps["fed_forward"][i]
        if post:
            steps["normalised_again"][i] = layer_norm(steps["added_again"][i], module.norm_2)
    return {name: torch.stack(tokens) for name, tokens in steps.items()}


@pytest.mark.parametrize("norm_eps", [1e-5, 0.3])
@every_activation
@both_norms
def test_every_step_is_its_formula(norm, activation, norm_eps):
    module = block(norm, activation, norm_eps)
    assert module.norm_1.eps == module.norm_2.eps == norm_eps
    x, visible = normal(BATCH, QUERIES, EMBED), some_visible(BATCH, 1, QUERIES, QUERIES)
    x[1] *= 1e-3  # small enough for 10⁻⁵ in the pre-norm's denominator to matter
    with torch.no_grad():
        trace = module.trace(x, visible=visible)
        wanted = [by_hand(module, x[b], visible[b : b + 1]) for b in range(BATCH)]
    for step in BlockStep:
        message = lambda text, step=step: f"{step}: {text}"  # noqa: E731
        assert_close(trace[step], torch.stack([example[step] for example in wanted]), msg=message)


@both_norms
def test_the_attention_inside_is_the_whole_record_of_the_shared_module(norm):
    module, x, visible = block(norm), normal(BATCH, QUERIES, EMBED), causal(QUERIES, QUERIES)
    trace = module.trace(x, visible=visible)
    attended_to = trace.before if norm == "post" else trace.normalised
    alone = module.attention.trace(attended_to, visible=visible)
    for step in Step:
        assert torch.equal(trace.attention[step], alone[step])
    assert torch.equal(trace.attended, trace.attention.output)


@pytest.mark.parametrize(
    "config",
    [
        {"num_kv_heads": 1},
        {"head_dim": 7},
        {"output_projection": False},
        {"num_heads": 1, "projections": False, "output_projection": False, "scale": 1.0},
        {"scale": EMBED**-0.5, "bias": False, "projection_activation": "relu"},
    ],
)
@both_norms
def test_whatever_attention_stands_inside_goes_through_its_sum(norm, config):
    module, x = block(norm, **config), normal(BATCH, QUERIES, EMBED)
    trace = module.trace(x)
    assert_close(trace.added, x + module.attention(x if norm == "post" else module.norm_1(x)))
    assert trace.output.shape == x.shape


# Stack


@both_norms
def test_a_stack_is_one_block_after_another(norm):
    blocks, x, visible = [block(norm) for _ in range(3)], normal(BATCH, QUERIES, EMBED), some_visible(QUERIES, QUERIES)
    traces = stack(blocks, x, visible)
    first, second, third = blocks
    composed = third(second(first(x, visible=visible), visible=visible), visible=visible)
    assert torch.equal(traces[-1].output, composed)
    assert torch.equal(traces[0].before, x)
    for earlier, later in zip(traces, traces[1:], strict=False):
        assert torch.equal(later.before, earlier.output)
    assert not torch.allclose(stack(blocks, x)[-1].output, composed)


@both_norms
def test_through_a_causal_stack_the_future_changes_no_past(norm):
    blocks, x, visible = [block(norm) for _ in range(3)], normal(BATCH, QUERIES, EMBED), causal(QUERIES, QUERIES)
    before = stack(blocks, x, visible)
    for first_changed in range(1, QUERIES):
        changed = x.clone()
        changed[:, first_changed:] = normal(BATCH, QUERIES - first_changed, EMBED)
        for one, other in zip(before, stack(blocks, changed, visible), strict=True):
            for step in BlockStep:
                assert_close(other[step][:, :first_changed], one[step][:, :first_changed])
            assert not torch.allclose(other.output[:, first_changed], one.output[:, first_changed])


@both_norms
def test_gradients_flow_to_the_input_and_every_parameter(norm):
    blocks, x = [block(norm, "gelu") for _ in range(3)], normal(BATCH, QUERIES, EMBED).requires_grad_()
    stack(blocks, x)[-1].output.square().sum().backward()
    for name, parameter in [("x", x), *nn.ModuleList(blocks).named_parameters()]:
        assert parameter.grad.isfinite().all(), name
        if not name.endswith("to_k.bias"):  # one constant for every key of a query: the softmax does not see it
            assert parameter.grad.abs().max() > 1e-6, name


@both_norms
def test_a_token_that_sees_nothing_keeps_finite_numbers(norm):
    module, x, visible = block(norm, bias=False), normal(BATCH, QUERIES, EMBED), some_visible(QUERIES, QUERIES)
    visible[3] = False
    trace = module.trace(x, visible=visible)
    assert (trace.attended[:, 3] == 0).all()
    assert torch.equal(trace.added[:, 3], x[:, 3])
    assert trace.output.isfinite().all()


@pytest.mark.parametrize("count", [0, 7])
def test_a_stack_of_none_or_too_many_is_refused(count):
    with pytest.raises(ValueError, match=f"^a stack has 1 to 6 blocks; got {count}\\. Add or leave out some\\.$"):
        stack([block()] * count, normal(BATCH, QUERIES, EMBED))


@both_norms
def test_any_number_of_blocks_can_be_run_through(norm):
    blocks, x = [block(norm) for _ in range(7)], normal(BATCH, QUERIES, EMBED)
    assert torch.equal(run_through(blocks, x)[-1].output, nn.Sequential(*blocks)(x))


# Silenced heads


@both_norms
def test_a_silenced_head_is_one_whose_columns_of_w_o_are_zero(norm):
    ours, x, visible = block(norm), normal(BATCH, QUERIES, EMBED), some_visible(QUERIES, QUERIES)
    silenced = ours.trace(x, visible=visible, silenced={1})
    assert (silenced.attention.context[:, 1] == 0).all()
    assert torch.equal(silenced.attended, silenced.attention.output)
    intact = ours.trace(x, visible=visible)
    for step in (*Step,)[:-2]:
        assert torch.equal(silenced.attention[step], intact.attention[step]), step
    assert torch.equal(silenced.attention.context[:, 0], intact.attention.context[:, 0])
    with torch.no_grad():
        ours.attention.to_output.weight[:, HEAD_DIM:] = 0
    assert_close(silenced.output, ours(x, visible=visible))


def test_with_every_head_silenced_attention_is_the_bias_of_w_o():
    ours, x = block(), normal(BATCH, QUERIES, EMBED)
    attended = ours.trace(x, silenced=range(HEADS)).attended
    assert_close(attended, ours.attention.to_output.bias.expand(BATCH, QUERIES, EMBED))


@both_norms
def test_each_layer_of_a_stack_is_silenced_by_itself(norm):
    blocks, x = [block(norm) for _ in range(3)], normal(BATCH, QUERIES, EMBED)
    first, second, third = blocks
    composed = third.trace(second.trace(first(x), silenced={0, 1}).output, silenced={1})
    assert torch.equal(run_through(blocks, x, silenced={(1, 0), (1, 1), (2, 1)})[-1].output, composed.output)


# How much a part changed a token


def test_change_in_numbers_one_can_check():
    before = torch.tensor([[[3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [3.0, 4.0]]])
    after = torch.tensor([[[3.0, 4.0], [6.0, 8.0], [-3.0, -4.0], [-4.0, 3.0]]])
    measured = change(before, after)
    assert_close(measured.relative, torch.tensor([[0.0, 1.0, 2.0, math.sqrt(2)]]))
    assert_close(measured.cosine, torch.tensor([[1.0, 1.0, -1.0, 0.0]]))


def test_change_of_every_token_by_loops():
    before, after = normal(BATCH, QUERIES, EMBED), normal(BATCH, QUERIES, EMBED)
    measured = change(before, after)
    assert measured.relative.shape == measured.cosine.shape == (BATCH, QUERIES)
    for b in range(BATCH):
        for i in range(QUERIES):
            old, new = before[b, i].tolist(), after[b, i].tolist()
            relative = math.dist(new, old) / math.hypot(*old)
            cosine = sum(x * y for x, y in zip(old, new, strict=True)) / math.hypot(*old) / math.hypot(*new)
            assert measured.relative[b, i].item() == pytest.approx(relative)
            assert measured.cosine[b, i].item() == pytest.approx(cosine)


def test_change_of_zeros_is_no_number_as_documented():
    zero, one = torch.zeros(1, 1, 2), torch.ones(1, 1, 2)
    assert change(zero, one).relative.item() == math.inf
    assert change(zero, zero).relative.isnan()
    assert change(one, zero).relative.item() == 1
    assert change(zero, one).cosine.isnan() and change(one, zero).cosine.isnan()


def test_change_of_two_shapes_is_refused():
    message = (
        "before and after must have one shape; got (3, 5, 22) and (5, 22). "
        "Compare two steps whose axes are query × embed."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        change(normal(BATCH, QUERIES, EMBED), normal(QUERIES, EMBED))


# The record


def numbered() -> BlockTrace[int]:
    inside = AttentionTrace(**{step: number for number, step in enumerate(Step, 100)})
    return BlockTrace(norm="post", attention=inside, **{name: number for number, name in enumerate(POST)})


def test_the_steps_are_these_in_this_order():
    assert [step.value for step in BlockStep] == POST
    assert {norm: [step.value for step in flow] for norm, flow in FLOW.items()} == {"post": POST, "pre": PRE}


def test_every_step_is_a_field_and_the_others_are_the_order_and_the_attention():
    assert [field.name for field in fields(BlockTrace)] == ["norm", "attention", *POST]


def depends(result: torch.Tensor, cause: torch.Tensor) -> bool:
    return torch.autograd.grad(result.sum(), cause, retain_graph=True, allow_unused=True) != (None,)


@both_norms
def test_the_flow_is_the_order_in_which_the_arrays_were_made(norm):
    """Followed by the graph of gradients: a step depends on none that comes after it."""
    module, x = block(norm, "gelu"), normal(1, QUERIES, EMBED).requires_grad_()
    trace = module.trace(x)
    for earlier, later in zip(trace.flow, trace.flow[1:], strict=False):
        assert depends(trace[later], trace[earlier])
        assert not depends(trace[earlier], trace[later])


@both_norms
def test_the_output_is_the_end_of_the_flow_and_of_forward(norm):
    module, x, visible = block(norm), normal(BATCH, QUERIES, EMBED), some_visible(QUERIES, QUERIES)
    trace = module.trace(x, visible=visible)
    assert trace.output is {"post": trace.normalised_again, "pre": trace.added_again}[norm]
    assert torch.equal(module(x, visible=visible), trace.output)
    assert not torch.equal(module(x), trace.output)


@both_norms
def test_axes_say_what_the_arrays_are(norm):
    sizes = {"batch": BATCH, "query": QUERIES, "embed": EMBED, "feed_forward": FEED_FORWARD}
    trace = block(norm).trace(normal(BATCH, QUERIES, EMBED))
    assert list(BLOCK_AXES) == list(BlockStep)
    for step in BlockStep:
        axes = ["batch", *BLOCK_AXES[step].split()]
        assert parse_shape(trace[step], " ".join(axes)) == {axis: sizes[axis] for axis in axes}


def test_a_step_is_looked_up_by_step_or_by_name():
    for number, name in enumerate(POST):
        assert numbered()[BlockStep(name)] == numbered()[name] == number


@pytest.mark.parametrize("name", ["attention", "norm", "output", "map", ""])
def test_a_name_that_is_no_step_is_refused(name):
    with pytest.raises(ValueError, match=f"{name!r} is not a valid BlockStep"):
        numbered()[name]


def test_a_trace_cannot_be_changed_or_left_incomplete():
    with pytest.raises(FrozenInstanceError):
        numbered().added = 0
    whole = {name: 0 for name in ("norm", "attention", *POST)}
    for missing in whole:
        with pytest.raises(TypeError, match=f"'{missing}'"):
            BlockTrace(**{name: value for name, value in whole.items() if name != missing})
    with pytest.raises(TypeError, match="positional"):
        BlockTrace(*whole.values())


def test_map_reaches_every_array_and_the_attention_s():
    before = numbered()
    after = before.map(lambda number: 10 * number)
    assert [after[step] for step in BlockStep] == [10 * number for number in range(9)]
    assert [after.attention[step] for step in Step] == [10 * number for number in range(100, 109)]
    assert (after.norm, before) == ("post", numbered())


@both_norms
def test_map_turns_tensors_into_arrays(norm):
    trace = block(norm).trace(normal(BATCH, QUERIES, EMBED))
    arrays = trace.map(lambda tensor: tensor.detach().numpy())
    assert arrays.flow == trace.flow
    assert isinstance(arrays.attention.weights, np.ndarray)
    np.testing.assert_array_equal(arrays.output, trace.output.detach())


# Config


def test_a_config_is_frozen_equal_by_value_and_post_norm_with_relu_unless_told():
    config = BlockConfig(attention())
    assert (config.norm, config.activation, config.hidden_dim) == ("post", "relu", 4 * EMBED)
    with pytest.raises(FrozenInstanceError):
        config.norm = "pre"
    assert {config: "cached"}[BlockConfig(attention())] == "cached"


@pytest.mark.parametrize("feed_forward_dim", [None, FEED_FORWARD])
@pytest.mark.parametrize("bias", [False, True])
def test_the_parameters_are_those_asked_for(bias, feed_forward_dim):
    config = BlockConfig(attention(bias=bias), feed_forward_dim=feed_forward_dim)
    module, hidden = TransformerBlock(config), feed_forward_dim or 4 * EMBED
    shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    assert {name: shape for name, shape in shapes.items() if not name.startswith("attention.")} == {
        "norm_1.weight": (EMBED,),
        "norm_1.bias": (EMBED,),
        "norm_2.weight": (EMBED,),
        "norm_2.bias": (EMBED,),
        "feed_forward_in.weight": (hidden, EMBED),
        "feed_forward_in.bias": (hidden,),
        "feed_forward_out.weight": (EMBED, hidden),
        "feed_forward_out.bias": (EMBED,),
    }
    assert config.parameters == sum(parameter.numel() for parameter in module.parameters())


# Errors: each says what was wanted, what came, and what to change


@pytest.mark.parametrize(
    "config, message",
    [
        ({"norm": "both"}, "norm must be \"post\" or \"pre\"; got 'both'."),
        ({"activation": None}, 'activation must be "relu", "gelu" or "gelu_tanh"; got None.'),
        ({"norm_eps": 0.0}, "norm_eps must be above 0; got 0.0."),
        ({"feed_forward_dim": 0}, "feed_forward_dim must be 1 or more; got 0."),
        ({"feed_forward_dim": -4}, "feed_forward_dim must be 1 or more; got -4."),
        (
            {"feed_forward_dim": 10**7},
            "this block would need 1.8 GB for its 450,002,134 parameters; at most 1 GB is allowed. "
            "Use a smaller embed_dim or feed_forward_dim.",
        ),
        (
            {"attention": attention(kdim=13)},
            "in a block queries, keys and values come from one sequence, each 22 wide; "
            "got kdim 13 and vdim 22. Leave kdim and vdim out.",
        ),
        (
            {"attention": attention(vdim=13)},
            "in a block queries, keys and values come from one sequence, each 22 wide; "
            "got kdim 22 and vdim 13. Leave kdim and vdim out.",
        ),
        (
            {"attention": attention(head_dim=7, output_projection=False)},
            "attention in a block must give back embed_dim = 22 numbers a token, to be added to its input; "
            "without W_O it gives num_heads · head_dim = 2 · 7 = 14. "
            "Set output_projection=True, or leave head_dim out.",
        ),
    ],
)
def test_a_config_that_cannot_be_is_refused(config, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        BlockConfig(**{"attention": attention()} | config)


@pytest.mark.parametrize(
    "shape, came", [((BATCH, QUERIES, 13), "3 × 5 × 13"), ((QUERIES, EMBED), "5 × 22"), ((), "a single number")]
)
@both_norms
def test_an_input_that_does_not_fit_is_refused(norm, shape, came):
    message = (
        f"x must be batch × tokens × 22; got {came}. "
        "Change its last axis, or embed_dim; x[None] puts a batch axis in front of one sequence."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        block(norm)(normal(*shape))


@both_norms
def test_a_visible_that_does_not_fit_is_refused(norm):
    with pytest.raises(ValueError, match="visible must broadcast"):
        block(norm)(normal(BATCH, QUERIES, EMBED), visible=causal(QUERIES + 2, QUERIES))

"""The module against torch's own with the same weights, against slow loops, and in what must not depend on what."""

import math
import re
from dataclasses import FrozenInstanceError

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from models.masks import causal, padding
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import Step

# Primes, all different, so that no axis passes for another; WIDTH is what torch's module can do with HEADS heads.
BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, EMBED, KDIM, VDIM = 3, 2, 5, 7, 11, 13, 17, 19
WIDTH = HEADS * HEAD_DIM


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def layer(**config) -> MultiHeadAttention:
    module = MultiHeadAttention(AttentionConfig(**config)).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)  # biases too, which start near zero otherwise
    return module


def odd_layer(**config) -> MultiHeadAttention:
    """One in which no two widths agree."""
    config = {"embed_dim": EMBED, "num_heads": HEADS, "head_dim": HEAD_DIM, "kdim": KDIM, "vdim": VDIM} | config
    return layer(**config)


def odd_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return normal(BATCH, QUERIES, EMBED), normal(BATCH, KEYS, KDIM), normal(BATCH, KEYS, VDIM)


def some_visible(*shape: int) -> torch.Tensor:
    """Random, but every query sees at least its first key: torch's module answers NaN where one sees nothing."""
    visible = torch.rand(*shape) < 0.5
    visible[..., 0] = True
    return visible


def twins(bias: bool, kdim: int | None, vdim: int | None) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Ours and torch's, with the same weights."""
    ours = layer(embed_dim=WIDTH, num_heads=HEADS, bias=bias, kdim=kdim, vdim=vdim)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, bias=bias, kdim=kdim, vdim=vdim, batch_first=True).double()
    linears = (ours.to_q, ours.to_k, ours.to_v)
    with torch.no_grad():
        if theirs.in_proj_weight is None:
            separate = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
            for weight, linear in zip(separate, linears, strict=True):
                weight.copy_(linear.weight)
        else:
            theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
        theirs.out_proj.load_state_dict(ours.to_output.state_dict())
    return ours, theirs


# Oracles


@pytest.mark.parametrize("masking", ["none", "attn_mask", "attn_mask of each head", "key_padding_mask", "both"])
@pytest.mark.parametrize("kdim, vdim", [(None, None), (KDIM, VDIM), (KDIM, None)])
@pytest.mark.parametrize("bias", [False, True])
def test_torch_s_module_gives_the_same_weights_and_output(bias, kdim, vdim, masking):
    ours, theirs = twins(bias, kdim, vdim)
    query = normal(BATCH, QUERIES, WIDTH)
    key, value = (normal(BATCH, KEYS, width or WIDTH) for width in (kdim, vdim))
    visible, hidden = None, {}  # torch's module wants the opposite boolean: True where it hides
    if masking in ("attn_mask", "both"):
        visible = some_visible(QUERIES, KEYS)
        hidden["attn_mask"] = ~visible
    if masking == "attn_mask of each head":
        visible = some_visible(BATCH, HEADS, QUERIES, KEYS)
        hidden["attn_mask"] = ~visible.reshape(BATCH * HEADS, QUERIES, KEYS)
    if masking in ("key_padding_mask", "both"):
        keep = some_visible(BATCH, KEYS)
        visible = padding(keep) if visible is None else padding(keep) & visible
        hidden["key_padding_mask"] = ~keep
    output, weights = theirs(query, key, value, need_weights=True, average_attn_weights=False, **hidden)
    trace = ours.trace(query, key, value, visible=visible)
    assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    assert_close(trace.weights, weights)
    assert_close(trace.output, output)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_torch_s_module_agrees_on_self_attention(bias, masked):
    ours, theirs = twins(bias, None, None)
    x, visible = normal(BATCH, QUERIES, WIDTH), causal(QUERIES, QUERIES) if masked else None
    hidden = None if visible is None else ~visible
    output, weights = theirs(x, x, x, attn_mask=hidden, need_weights=True, average_attn_weights=False)
    trace = ours.trace(x, visible=visible)
    assert_close(trace.weights, weights)
    assert_close(trace.output, output)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [None, 0.125])
def test_torch_s_function_gives_the_same_context(scale, masked):
    visible = some_visible(BATCH, HEADS, QUERIES, KEYS) if masked else None
    trace = odd_layer(scale=scale).trace(*odd_inputs(), visible=visible)
    context = F.scaled_dot_product_attention(trace.q, trace.k, trace.v, attn_mask=visible, scale=scale)
    assert_close(trace.context, context)


@pytest.mark.parametrize("output_projection", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_every_step_is_its_formula(scale, bias, output_projection):
    module = odd_layer(scale=scale, bias=bias, output_projection=output_projection)
    query, key, value = odd_inputs()
    visible = some_visible(BATCH, HEADS, QUERIES, KEYS)
    with torch.no_grad():
        trace = module.trace(query, key, value, visible=visible)
        factor = 1 / math.sqrt(HEAD_DIM) if scale is None else scale
        wanted = {step: torch.full_like(trace[step], math.nan) for step in Step}
        for b in range(BATCH):
            for h in range(HEADS):
                own = slice(h * HEAD_DIM, (h + 1) * HEAD_DIM)  # the head's share of the projections' rows
                for step, x, linear in (
                    (Step.Q, query, module.to_q),
                    (Step.K, key, module.to_k),
                    (Step.V, value, module.to_v),
                ):
                    for token in range(x.shape[1]):
                        wanted[step][b, h, token] = linear.weight[own] @ x[b, token] + (linear.bias[own] if bias else 0)
                for i in range(QUERIES):
                    for j in range(KEYS):
                        score = wanted[Step.Q][b, h, i] @ wanted[Step.K][b, h, j]
                        wanted[Step.SCORES][b, h, i, j] = score
                        wanted[Step.SCALED][b, h, i, j] = score * factor
                        wanted[Step.MASKED][b, h, i, j] = score * factor if visible[b, h, i, j] else -math.inf
                    numerators = wanted[Step.MASKED][b, h, i].exp()
                    wanted[Step.WEIGHTS][b, h, i] = numerators / numerators.sum()
                    wanted[Step.CONTEXT][b, h, i] = sum(
                        wanted[Step.WEIGHTS][b, h, i, j] * wanted[Step.V][b, h, j] for j in range(KEYS)
                    )
            for i in range(QUERIES):
                joined = torch.cat([wanted[Step.CONTEXT][b, h, i] for h in range(HEADS)])
                if output_projection:
                    joined = module.to_output.weight @ joined + (module.to_output.bias if bias else 0)
                wanted[Step.OUTPUT][b, i] = joined
    for step in Step:
        assert_close(trace[step], wanted[step], msg=lambda message, step=step: f"{step}: {message}")


# What comes in


def test_forward_is_the_output_of_the_trace():
    module, inputs, visible = odd_layer(), odd_inputs(), some_visible(QUERIES, KEYS)
    assert torch.equal(module(*inputs, visible=visible), module.trace(*inputs, visible=visible).output)
    assert not torch.equal(module(*inputs), module(*inputs, visible=visible))


def test_without_key_and_value_it_is_self_attention():
    module, x = layer(embed_dim=EMBED, num_heads=1), normal(BATCH, QUERIES, EMBED)
    assert torch.equal(module(x), module(x, x, x))


@pytest.mark.parametrize("keys", [KEYS, QUERIES])  # as many keys as queries is no self-attention yet
def test_without_value_the_value_is_the_key_s(keys):
    module, x, memory = layer(embed_dim=EMBED), normal(BATCH, QUERIES, EMBED), normal(BATCH, keys, EMBED)
    trace = module.trace(x, memory)
    assert_close(trace.k[:, 0], memory @ module.to_k.weight.T)
    assert_close(trace.v[:, 0], memory @ module.to_v.weight.T)
    assert torch.equal(trace.output, module(x, memory, memory))
    assert not torch.allclose(trace.output, module(x, memory, normal(BATCH, keys, EMBED)))


@pytest.mark.parametrize(
    "shape", [(), (KEYS,), (QUERIES, KEYS), (HEADS, 1, 1), (BATCH, 1, 1, KEYS), (BATCH, HEADS, QUERIES, KEYS)]
)
def test_visible_broadcasts(shape):
    module, inputs, visible = odd_layer(), odd_inputs(), torch.rand(shape) < 0.7
    one, other = (module.trace(*inputs, visible=v) for v in (visible, visible.expand(BATCH, HEADS, QUERIES, KEYS)))
    for step in Step:
        assert torch.equal(one[step], other[step])


def test_no_tokens_and_no_examples_are_no_error():
    module = layer(embed_dim=EMBED)
    assert module(normal(BATCH, 0, EMBED)).shape == (BATCH, 0, EMBED)
    assert module(normal(0, QUERIES, EMBED)).shape == (0, QUERIES, EMBED)
    assert (module.trace(normal(1, QUERIES, EMBED), normal(1, 0, EMBED)).context == 0).all()


# Relations


def test_hiding_a_key_is_deleting_it():
    module, (query, key, value) = odd_layer(bias=True), odd_inputs()
    left = [0, 1, 3, 4, 6]
    hidden = module(query, key, value, visible=torch.tensor([j in left for j in range(KEYS)]))
    assert_close(hidden, module(query, key[:, left], value[:, left]))


def test_the_order_of_keys_and_their_values_does_not_matter():
    module, (query, key, value) = odd_layer(bias=True), odd_inputs()
    order = torch.randperm(KEYS)
    one, other = module.trace(query, key, value), module.trace(query, key[:, order], value[:, order])
    assert_close(other.weights, one.weights[..., order])
    assert_close(other.context, one.context)


def test_permuting_the_tokens_permutes_the_output():
    module, x, order = layer(embed_dim=EMBED), normal(BATCH, QUERIES, EMBED), torch.randperm(QUERIES)
    assert_close(module(x[:, order]), module(x)[:, order])


def test_under_a_causal_mask_the_future_changes_no_past():
    module, x = layer(embed_dim=EMBED, bias=True), normal(BATCH, KEYS, EMBED)
    before = module(x, visible=causal(KEYS, KEYS))
    for first_changed in range(1, KEYS):
        changed = x.clone()
        changed[:, first_changed:] = normal(BATCH, KEYS - first_changed, EMBED)
        after = module(changed, visible=causal(KEYS, KEYS))
        assert_close(after[:, :first_changed], before[:, :first_changed], rtol=0, atol=1e-12)
        assert not torch.allclose(after[:, first_changed], before[:, first_changed])


def test_examples_of_a_batch_have_nothing_to_do_with_each_other():
    module, inputs, visible = odd_layer(bias=True), odd_inputs(), some_visible(BATCH, 1, QUERIES, KEYS)
    together = module.trace(*inputs, visible=visible)
    for b in range(BATCH):
        alone = module.trace(*(x[b : b + 1] for x in inputs), visible=visible[b : b + 1])
        for step in Step:
            assert_close(together[step][b : b + 1], alone[step])


def test_heads_have_nothing_to_do_with_each_other_before_the_output():
    module, inputs = odd_layer(), odd_inputs()
    before = module.trace(*inputs)
    with torch.no_grad():
        module.to_q.weight[:HEAD_DIM] += 1
    after = module.trace(*inputs)
    for step in (Step.Q, Step.SCORES, Step.WEIGHTS, Step.CONTEXT):
        assert torch.equal(before[step][:, 1], after[step][:, 1])
        assert not torch.allclose(before[step][:, 0], after[step][:, 0])


def test_a_query_that_sees_nothing_gets_exactly_zero_and_the_others_do_not_notice():
    module, inputs = odd_layer(bias=True), odd_inputs()
    visible = some_visible(BATCH, HEADS, QUERIES, KEYS)
    before = module.trace(*inputs, visible=visible)
    blind = torch.zeros(BATCH, HEADS, QUERIES, dtype=torch.bool)
    blind[1, 0, 3] = blind[2, :, 4] = True
    trace = module.trace(*inputs, visible=visible & ~blind[..., None])
    assert (trace.masked[blind] == -math.inf).all()
    assert (trace.weights[blind] == 0).all()
    assert (trace.context[blind] == 0).all()
    assert torch.equal(trace.weights[~blind], before.weights[~blind])
    assert_close(trace.context[~blind], before.context[~blind])
    assert_close(trace.output[2, 4], module.to_output.bias)  # blind in every head: nothing but the bias is left
    assert trace.output.isfinite().all()


def test_gradients_past_a_query_that_sees_nothing_are_finite():
    module, inputs = odd_layer(bias=True), [x.requires_grad_() for x in odd_inputs()]
    visible = some_visible(QUERIES, KEYS)
    visible[3] = False
    module(*inputs, visible=visible).square().sum().backward()
    for tensor in (*inputs, *module.parameters()):
        assert tensor.grad.isfinite().all()
    assert (inputs[0].grad[:, 3] == 0).all()
    assert (inputs[0].grad[:, 2] != 0).any()


# Config


def test_what_a_config_works_out():
    config = AttentionConfig(embed_dim=WIDTH, num_heads=HEADS)
    assert (config.width, config.factor) == (HEAD_DIM, pytest.approx(1 / math.sqrt(HEAD_DIM)))
    assert AttentionConfig(embed_dim=EMBED, head_dim=HEAD_DIM).width == HEAD_DIM
    assert AttentionConfig(embed_dim=EMBED, scale=0.0).factor == 0.0


def test_a_config_is_frozen_and_equal_by_value():
    config = AttentionConfig(embed_dim=EMBED)
    with pytest.raises(FrozenInstanceError):
        config.embed_dim = 5
    assert {config: "cached"}[AttentionConfig(embed_dim=EMBED)] == "cached"


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("output_projection", [False, True])
def test_the_parameters_are_those_asked_for(bias, output_projection):
    module = odd_layer(bias=bias, output_projection=output_projection)
    wanted = {
        "to_q.weight": (WIDTH, EMBED),
        "to_k.weight": (WIDTH, KDIM),
        "to_v.weight": (WIDTH, VDIM),
        "to_output.weight": (EMBED, WIDTH),
        "to_q.bias": (WIDTH,),
        "to_k.bias": (WIDTH,),
        "to_v.bias": (WIDTH,),
        "to_output.bias": (EMBED,),
    }
    wanted = {
        name: shape
        for name, shape in wanted.items()
        if (bias or "bias" not in name) and (output_projection or "output" not in name)
    }
    assert {name: tuple(parameter.shape) for name, parameter in module.named_parameters()} == wanted
    assert module(*odd_inputs()).shape == (BATCH, QUERIES, EMBED if output_projection else WIDTH)


def test_projections_start_in_xavier_s_range():
    module = MultiHeadAttention(AttentionConfig(embed_dim=96))
    for linear in (module.to_q, module.to_k, module.to_v):
        limit = math.sqrt(6 / (96 + 96))
        assert 0.95 * limit < linear.weight.abs().max() <= limit


# Errors: each says what was wanted, what came, and what to change


@pytest.mark.parametrize("name", ["embed_dim", "num_heads", "head_dim", "kdim", "vdim"])
@pytest.mark.parametrize("size", [0, -3])
def test_a_size_below_one_is_refused(name, size):
    with pytest.raises(ValueError, match=rf"^{name} must be 1 or more; got {size}\.$"):
        AttentionConfig(**{"embed_dim": EMBED, name: size})


def test_heads_that_do_not_divide_the_width_are_refused():
    message = (
        "embed_dim must divide by num_heads when head_dim is not given; got 13 / 2. "
        "Change either, or give head_dim."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        AttentionConfig(embed_dim=13, num_heads=2)


QUERY, KEY, VALUE = (BATCH, QUERIES, EMBED), (BATCH, KEYS, KDIM), (BATCH, KEYS, VDIM)


@pytest.mark.parametrize(
    "query, key, value, message",
    [
        (
            (BATCH, QUERIES, KDIM), KEY, VALUE,
            "query must be batch × tokens × 13; got 3 × 5 × 17. Change its last axis, or the config's width for it.",
        ),
        (
            QUERY, (BATCH, KEYS, EMBED), VALUE,
            "key must be batch × tokens × 17; got 3 × 7 × 13. Change its last axis, or the config's width for it.",
        ),
        (
            QUERY, KEY, (BATCH, KEYS, EMBED),
            "value must be batch × tokens × 19; got 3 × 7 × 13. Change its last axis, or the config's width for it.",
        ),
        (
            (QUERIES, EMBED), KEY, VALUE,
            "query must be batch × tokens × 13; got 5 × 13. "
            "Give it three axes; x[None] puts a batch axis in front of one sequence.",
        ),
        (
            (), KEY, VALUE,
            "query must be batch × tokens × 13; got a single number. "
            "Give it three axes; x[None] puts a batch axis in front of one sequence.",
        ),
        (
            QUERY, (1, KEYS, KDIM), VALUE,
            "query, key and value must share one batch size; got 3, 1 and 3. Repeat or cut one to match.",
        ),
        (
            QUERY, KEY, (2, KEYS, VDIM),
            "query, key and value must share one batch size; got 3, 3 and 2. Repeat or cut one to match.",
        ),
        (
            QUERY, KEY, (BATCH, QUERIES, VDIM),
            "key and value must have equally many tokens, since they are pairs; got 7 and 5. "
            "Take both from one sequence.",
        ),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_refused(query, key, value, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        odd_layer()(normal(*query), normal(*key), normal(*value))


@pytest.mark.parametrize(
    "shape, came",
    [
        ((KEYS, QUERIES), "7 × 5"),
        ((BATCH, QUERIES, KEYS), "3 × 5 × 7"),
        ((1, BATCH, HEADS, QUERIES, KEYS), "1 × 3 × 2 × 5 × 7"),
        ((BATCH, HEADS, QUERIES, 0), "3 × 2 × 5 × 0"),
    ],
)
def test_a_visible_that_does_not_fit_is_refused(shape, came):
    message = (
        f"visible must broadcast to batch × head × query × key = 3 × 2 × 5 × 7; got {came}. "
        f"Query comes before key, and a per-example mask needs a head axis of size 1."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        odd_layer()(*odd_inputs(), visible=torch.ones(shape, dtype=torch.bool))


def test_a_visible_larger_than_the_batch_is_refused():
    module = layer(embed_dim=EMBED)
    with pytest.raises(ValueError, match="got 3 × 1 × 5 × 5"):
        module(normal(1, QUERIES, EMBED), visible=torch.ones(3, 1, QUERIES, QUERIES, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_visible_of_numbers_is_refused(dtype):
    message = (
        f"visible must be boolean, True where a query may look; got {dtype}. "
        f"Compare, as in mask == 0 for a mask of 0 and −∞."
    )
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        odd_layer()(*odd_inputs(), visible=torch.ones(QUERIES, KEYS, dtype=dtype))


@pytest.mark.parametrize("name", ["embed_dim", "num_heads", "head_dim", "kdim", "vdim", "num_kv_heads"])
def test_a_size_of_a_million_is_refused(name):
    with pytest.raises(ValueError, match=rf"^{name} must be 65,536 or less; got 1,000,000\. Use a smaller one\.$"):
        AttentionConfig(**{"embed_dim": EMBED, name: 1_000_000})

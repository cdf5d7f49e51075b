"""The shapes panel against the tensors a real layer makes, its costs against torch's own counters."""

import math
import re
from dataclasses import replace

import pytest
import torch
from einops import rearrange, repeat
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from models.attention import mix, similarity
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.recipes import RECIPES
from models.shapes import SYMBOLS, Row, cache_bytes, flow, sharing, torch_twin, totals
from models.trace import AXES, Step

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, EMBED, KDIM, VDIM = 3, 2, 5, 7, 11, 13, 17, 19

CONFIGS = {
    **{name: recipe.config(24, *(() if recipe.one_head else (3,))) for name, recipe in RECIPES.items()},
    "no two widths agree": AttentionConfig(EMBED, HEADS, HEAD_DIM, KDIM, VDIM, bias=True),
    "only kdim": AttentionConfig(EMBED, 1, kdim=KDIM),
    "grouped": AttentionConfig(EMBED, 6, HEAD_DIM, KDIM, VDIM, num_kv_heads=2, bias=True),
    "multi-query": AttentionConfig(24, 4, num_kv_heads=1),
    "no W_O": AttentionConfig(EMBED, HEADS, HEAD_DIM, output_projection=False),
    "relu": AttentionConfig(EMBED, HEADS, HEAD_DIM, bias=True, projection_activation="relu"),
}


@st.composite
def configs(draw) -> AttentionConfig:
    """Any layer with projections, small."""
    size = st.integers(1, 7)
    kv_heads, copies, head_dim = draw(size), draw(st.integers(1, 3)), draw(size | st.none())
    heads = kv_heads * copies
    return AttentionConfig(
        draw(size) if head_dim else heads * draw(size),
        heads,
        head_dim,
        kdim=draw(size | st.none()),
        vdim=draw(size | st.none()),
        num_kv_heads=draw(st.sampled_from([kv_heads, None])),
        bias=draw(st.booleans()),
        output_projection=draw(st.booleans()),
        scale=draw(st.sampled_from([None, 1.0, 0.3])),
        projection_activation=draw(st.sampled_from([None, "relu"])),
    )


def can_be_self(config: AttentionConfig) -> bool:
    return len(set(config.input_widths)) == 1


def inputs(config: AttentionConfig, cross: bool) -> dict[str, Tensor]:
    query, key, value = config.input_widths
    if not cross:
        return {"x": torch.randn(BATCH, QUERIES, query)}
    return {
        "query": torch.randn(BATCH, QUERIES, query),
        "key": torch.randn(BATCH, KEYS, key),
        "value": torch.randn(BATCH, KEYS, value),
    }


def really_made(module: MultiHeadAttention, given: dict[str, Tensor], masked: bool) -> dict[str, Tensor]:
    """The tensors of a real forward pass by the names of their rows."""
    seen: list[Tensor] = []
    hooks = [
        module.activation.register_forward_hook(lambda _, __, output: seen.append(output)),
        module.to_output.register_forward_pre_hook(lambda _, given: seen.append(given[0])),
    ]
    keys = KEYS if "key" in given else QUERIES
    visible = torch.rand(QUERIES, keys) < 0.5 if masked else None
    trace = module.trace(*given.values(), visible=visible)
    for hook in hooks:
        hook.remove()
    return {**given, **dict(zip(("q unsplit", "k unsplit", "v unsplit", "concatenated"), seen, strict=True)),
            **{str(step): trace[step] for step in Step}}  # fmt: skip


def rows_of(config: AttentionConfig, cross: bool, masked: bool = True) -> dict[str, Row]:
    rows = flow(config, batch=BATCH, queries=QUERIES, keys=KEYS if cross else QUERIES, cross=cross, masked=masked)
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


def check(config: AttentionConfig, cross: bool) -> None:
    """Sizes, views and costs of every row against a real layer."""
    module = MultiHeadAttention(config)
    rows, made = rows_of(config, cross), really_made(module, inputs(config, cross), masked=True)
    for name in ("k", "v"):  # the module cuts and repeats in one go
        if f"{name} shared" in rows:
            made[f"{name} shared"] = run(rows[f"{name} shared"], made, config)
    assert rows.keys() == made.keys()
    for name, row in rows.items():
        assert row.sizes == made[name].shape, name
        assert row.is_view == (" -> " in row.made_by or row.made_by in row.made_from), name
        if row.is_view:
            assert row.parameters == row.multiplications == 0
            assert torch.equal(run(row, made, config), made[name]), name
        if row.made_from:
            assert list(rows).index(row.made_from[-1]) < list(rows).index(name)
    assert totals(rows.values()).parameters == sum(p.numel() for p in module.parameters()) == config.parameters
    products = totals(rows.values()).multiplications - rows["scaled"].multiplications
    assert flops(lambda: module(*inputs(config, cross).values())) == 2 * products
    assert rows["scaled"].multiplications == made["scores"].numel()


def run(row: Row, made: dict[str, Tensor], config: AttentionConfig) -> Tensor:
    """What the words of a view say, done."""
    source = made[row.made_from[0]]
    operation, colon, pattern = row.made_by.partition(": ")
    if not colon:
        assert row.made_by == row.made_from[0]
        return source
    sizes = {"head_dim": config.width, "copies": config.num_heads // config.kv_heads}
    sizes = {word: size for word, size in sizes.items() if re.search(rf"\b{word}\b", pattern)}
    return {"rearrange": rearrange, "repeat": repeat}[operation](source, pattern, **sizes)


def flops(function) -> int:
    """What torch counts: 2 for each multiplication of a matrix product, one its addition's."""
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


# Against a real layer


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_row_is_a_tensor_of_the_layer(name, cross):
    if cross or can_be_self(CONFIGS[name]):
        check(CONFIGS[name], cross)


@settings(max_examples=60)
@given(configs())
def test_every_row_of_any_layer(config):
    check(config, cross=True)
    if can_be_self(config):
        check(config, cross=False)


@pytest.mark.parametrize("name", CONFIGS)
def test_each_matrix_product_costs_what_its_row_says(name):
    config = CONFIGS[name]
    module, rows, given = MultiHeadAttention(config), rows_of(config, cross=True), inputs(config, cross=True)
    made = really_made(module, given, masked=False)
    products = {
        "q unsplit": lambda: module.to_q(given["query"]),
        "k unsplit": lambda: module.to_k(given["key"]),
        "v unsplit": lambda: module.to_v(given["value"]),
        "scores": lambda: similarity(made["q"], made["k"]),
        "context": lambda: mix(made["weights"], made["v"]),
        "output": lambda: module.to_output(made["concatenated"]),
    }
    assert {name: flops(product) for name, product in products.items()} == {
        name: 2 * rows[name].multiplications for name in products
    }
    parameters = {"q unsplit": module.to_q, "k unsplit": module.to_k, "v unsplit": module.to_v}
    for name, part in (parameters | {"output": module.to_output}).items():
        assert rows[name].parameters == sum(p.numel() for p in part.parameters())


def test_a_split_is_a_view_of_one_projection():
    module = MultiHeadAttention(CONFIGS["multi_head"])
    made = really_made(module, inputs(module.config, cross=True), masked=False)
    for name in "qkv":
        assert made[name].untyped_storage().data_ptr() == made[f"{name} unsplit"].untyped_storage().data_ptr()


# As read


def test_axes_symbols_and_sizes_say_the_same():
    for config in CONFIGS.values():
        for row in rows_of(config, cross=True).values():
            words = [part.strip("()") for part in re.findall(r"\(.*?\)|\S+", row.axes)]
            assert row.symbols == " × ".join("·".join(SYMBOLS[w].letter for w in part.split()) for part in words)
            assert len(words) == len(row.sizes)
            if row.name in AXES and row.name != "output":
                assert row.axes == f"batch {AXES[Step(row.name)]}"


def test_one_letter_is_one_axis():
    assert len({symbol.letter for symbol in SYMBOLS.values()}) == len(SYMBOLS)


def as_read(config: AttentionConfig, cross: bool, masked: bool) -> list[tuple[str, str, str]]:
    return [(row.name, row.symbols, row.made_by) for row in rows_of(config, cross, masked).values()]


def test_self_attention_read_from_x_to_output():
    assert as_read(AttentionConfig(EMBED, HEADS, HEAD_DIM), cross=False, masked=False) == [
        ("x", "B × L × e", "input"),
        ("q unsplit", "B × L × h·d", "x W_Q"),
        ("q", "B × h × L × d", "rearrange: batch query (head head_dim) -> batch head query head_dim"),
        ("k unsplit", "B × S × h·d", "x W_K"),
        ("k", "B × h × S × d", "rearrange: batch key (head head_dim) -> batch head key head_dim"),
        ("v unsplit", "B × S × h·d", "x W_V"),
        ("v", "B × h × S × d", "rearrange: batch key (head head_dim) -> batch head key head_dim"),
        ("scores", "B × h × L × S", "q kᵀ"),
        ("scaled", "B × h × L × S", "scores · 1/√d"),
        ("weights", "B × h × L × S", "softmax over key"),
        ("context", "B × h × L × d", "weights v"),
        ("concatenated", "B × L × h·d", "rearrange: batch head query head_dim -> batch query (head head_dim)"),
        ("output", "B × L × e", "concatenated W_O"),
    ]


def test_grouped_cross_attention_read():
    config = AttentionConfig(
        EMBED, 6, HEAD_DIM, KDIM, None, 2, True, False, scale=EMBED**-0.5, projection_activation="relu"
    )
    assert as_read(config, cross=True, masked=True) == [
        ("query", "B × L × e", "input"),
        ("key", "B × S × e_k", "input"),
        ("value", "B × S × e", "input"),
        ("q unsplit", "B × L × h·d", "relu(query W_Q + b_Q)"),
        ("q", "B × h × L × d", "rearrange: batch query (head head_dim) -> batch head query head_dim"),
        ("k unsplit", "B × S × g·d", "relu(key W_K + b_K)"),
        ("k shared", "B × g × S × d", "rearrange: batch key (kv_head head_dim) -> batch kv_head key head_dim"),
        ("k", "B × h × S × d", "repeat: batch kv_head key head_dim -> batch (kv_head copies) key head_dim"),
        ("v unsplit", "B × S × g·d", "relu(value W_V + b_V)"),
        ("v shared", "B × g × S × d", "rearrange: batch key (kv_head head_dim) -> batch kv_head key head_dim"),
        ("v", "B × h × S × d", "repeat: batch kv_head key head_dim -> batch (kv_head copies) key head_dim"),
        ("scores", "B × h × L × S", "q kᵀ"),
        ("scaled", "B × h × L × S", "scores · 1/√e"),
        ("masked", "B × h × L × S", "−∞ where not visible"),
        ("weights", "B × h × L × S", "softmax over key"),
        ("context", "B × h × L × d", "weights v"),
        ("concatenated", "B × L × h·d", "rearrange: batch head query head_dim -> batch query (head head_dim)"),
        ("output", "B × L × h·d", "concatenated"),
    ]


def test_the_inputs_of_cross_attention_have_letters_of_their_own_where_their_widths_are_given():
    letters = {"query": "B × L × e", "key": "B × S × e", "value": "B × S × e_v"}
    rows = rows_of(AttentionConfig(EMBED, vdim=VDIM), cross=True)
    assert {name: rows[name].symbols for name in letters} == letters


@pytest.mark.parametrize("scale, words", [(None, "1/√d"), (1.0, "1"), (0.25, "0.25"), (EMBED**-0.5, "1/√e")])
def test_the_scaling_is_named(scale, words):
    assert rows_of(AttentionConfig(EMBED, HEADS, HEAD_DIM, scale=scale), True)["scaled"].made_by == f"scores · {words}"


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"batch": 0}, "batch must be 1 or more; got 0."),
        ({"queries": -2}, "queries must be 1 or more; got -2."),
        ({"keys": 0}, "keys must be 1 or more; got 0."),
        ({"cross": False}, "in self-attention queries and keys are the same tokens; got 5 and 7. Set cross=True."),
        (
            {"cross": False, "keys": QUERIES},
            "in self-attention one input has one width; got (13, 17, 13) for queries, keys and values. "
            "Set cross=True, or leave kdim and vdim out.",
        ),
    ],
)
def test_what_cannot_be_is_refused(sizes, message):
    sizes = {"batch": BATCH, "queries": QUERIES, "keys": KEYS, "cross": True} | sizes
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        flow(CONFIGS["only kdim"], masked=False, **sizes)


# Shared heads


def test_a_cache_holds_k_and_v_of_each_key_value_head():
    config = CONFIGS["grouped"]
    made = rows_of(config, cross=True)
    assert cache_bytes(config) == 4 * sum(math.prod(made[f"{name} shared"].sizes) for name in "kv") // (BATCH * KEYS)
    assert cache_bytes(config, 2) == 2 * 2 * 2 * HEAD_DIM
    assert cache_bytes(replace(config, num_kv_heads=None)) == 3 * cache_bytes(config)


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6, None])
def test_heads_that_share_have_the_same_keys(kv_heads):
    config = AttentionConfig(24, 6, num_kv_heads=kv_heads)
    k = MultiHeadAttention(config).trace(torch.randn(1, QUERIES, 24)).k[0]
    really = {tuple(b for b in range(6) if torch.equal(k[a], k[b])) for a in range(6)}
    assert set(sharing(config)) == really
    assert len(sharing(config)) == config.kv_heads
    assert sharing(config) == tuple(sorted(sharing(config)))


# Torch's own layer


def with_weights_of(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> nn.MultiheadAttention:
    linears = (ours.to_q, ours.to_k, ours.to_v)
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    state = {f"out_proj.{name}": tensor for name, tensor in ours.to_output.state_dict().items()}
    if theirs.in_proj_weight is None:
        state |= {name: linear.weight for name, linear in zip(names, linears, strict=True)}
    else:
        state["in_proj_weight"] = torch.cat([linear.weight for linear in linears])
    if ours.config.bias:
        state["in_proj_bias"] = torch.cat([linear.bias for linear in linears])
    theirs.load_state_dict(state)
    return theirs


TORCH_S = {
    "scale": None, "output_projection": True, "projection_activation": None, "num_kv_heads": None, "projections": True
}  # fmt: skip


@settings(max_examples=150)
@given(configs())
def test_the_twin_is_the_same_layer_or_each_reason_is_one(config):
    twin = torch_twin(config)
    if twin.arguments is None:
        reasons_hold(config, twin.reasons)
        return
    assert twin.reasons == ()
    ours = MultiHeadAttention(config).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter)
    theirs = with_weights_of(ours, eval(twin.arguments).double())
    given = [x.double() for x in inputs(config, cross=True).values()]
    output, weights = theirs(*given, average_attn_weights=False)
    trace = ours.trace(*given)
    assert_close(trace.weights, weights)
    assert_close(trace.output, output)


def reasons_hold(config: AttentionConfig, reasons: tuple[str, ...]) -> None:
    """Each begins with a setting; that one set to torch's only value, the reason is gone and no other with it."""
    named = [re.match(r"\w+", reason)[0] for reason in reasons]
    assert len(set(named)) == len(named) > 0
    for name, reason in zip(named, reasons, strict=True):
        if name in TORCH_S:
            assert getattr(config, name) != TORCH_S[name]
            assert set(torch_twin(replace(config, **{name: TORCH_S[name]})).reasons) == set(reasons) - {reason}
        elif name == "head_dim":
            assert config.head_dim * config.num_heads != config.embed_dim
        else:
            assert name == "num_heads"
            with pytest.raises(AssertionError, match="divisible"):
                nn.MultiheadAttention(config.embed_dim, config.num_heads, device="meta")


@pytest.mark.parametrize(
    "setting",
    [
        {"num_heads": 5}, {"head_dim": 5}, {"scale": 0.3}, {"output_projection": False}, {"num_kv_heads": 1},
        {"num_kv_heads": 2}, {"projection_activation": "relu"},
    ],
    ids=str,
)  # fmt: skip
def test_one_setting_beyond_torch_is_one_reason(setting):
    ((name, value),) = setting.items()
    torch_s = AttentionConfig(24, 4, 6, kdim=KDIM)
    assert torch_twin(torch_s).reasons == ()
    changed = replace(torch_s, **setting)
    (reason,) = torch_twin(changed if name != "head_dim" else replace(changed, scale=5**-0.5)).reasons
    assert reason.startswith(f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}")


def test_a_layer_without_projections_is_none_of_torch_s():
    assert torch_twin(CONFIGS["plain"]).reasons == (
        "scale = 1: torch has no such argument, it always multiplies by 1/√head_dim.",
        "output_projection = False: torch always ends with W_O, so that its output is embed_dim wide.",
        "projections = False: torch always has W_Q, W_K and W_V.",
    )


def test_the_twin_as_read():
    assert torch_twin(CONFIGS["torch"]).arguments == (
        "nn.MultiheadAttention(embed_dim=24, num_heads=3, bias=True, batch_first=True)"
    )
    assert torch_twin(AttentionConfig(24, 3, 8, kdim=KDIM, vdim=VDIM, scale=8**-0.5)).arguments == (
        "nn.MultiheadAttention(embed_dim=24, num_heads=3, bias=False, kdim=17, vdim=19, batch_first=True)"
    )
    assert torch_twin(AttentionConfig(24, 3, HEAD_DIM)).reasons == (
        "head_dim = 11: torch has no such argument, its q, k and v are all embed_dim / num_heads = 8 wide.",
    )
    assert torch_twin(AttentionConfig(EMBED, 2, HEAD_DIM)).reasons == (
        "num_heads = 2 does not divide embed_dim = 13: torch cuts embed_dim into num_heads equal pieces.",
    )

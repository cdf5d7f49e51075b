"""Every verdict against really building and calling `nn.MultiheadAttention`, on a processor."""

import math
import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from models import diagnose as module
from models.diagnose import Call, diagnose
from models.multi_head import AttentionConfig
from models.shapes import flow

GOOD = Call(
    batch=3, queries=5, keys=7, embed_dim=22, num_heads=2, query_width=22, key_width=22, value_width=22,
    batch_first=True, layout="batch first",
)  # fmt: skip


def really(call: Call) -> tuple[Tensor, Tensor]:
    """Output and weights of the call in torch, with no help from what is tested."""
    layer = nn.MultiheadAttention(
        call.embed_dim, call.num_heads, kdim=call.kdim, vdim=call.vdim, batch_first=call.batch_first
    )
    values = call.keys if call.value_tokens is None else call.value_tokens
    inputs = [
        torch.randn(call.batch, call.queries, call.query_width),
        torch.randn(call.batch, call.keys, call.key_width),
        torch.randn(call.batch, values, call.value_width),
    ]
    if call.layout == "tokens first":
        inputs = [tensor.transpose(0, 1).contiguous() for tensor in inputs]
    masks = {call.mask_kind: torch.zeros(call.mask_shape, dtype=torch.bool)} if call.mask_shape is not None else {}
    return layer(*inputs, **masks, average_attn_weights=False)


def error_of(call: Call) -> str | None:
    try:
        really(call)
    except Exception as error:
        return str(error)


small = st.integers(1, 6)


@st.composite
def good_calls(draw) -> Call:
    batch, queries, keys, heads = draw(small), draw(small), draw(small), draw(st.integers(1, 4))
    embed_dim, kdim, vdim = heads * draw(st.integers(1, 3)), draw(small | st.none()), draw(small | st.none())
    shapes = {
        "none": [None],
        "attn_mask": [(queries, keys), (batch * heads, queries, keys)],
        "key_padding_mask": [(batch, keys)],
    }
    kind = draw(st.sampled_from(list(shapes)))
    layout = draw(st.sampled_from(module.LAYOUTS))
    return Call(
        batch=batch,
        queries=queries,
        keys=keys,
        embed_dim=embed_dim,
        num_heads=heads,
        query_width=embed_dim,
        key_width=kdim or embed_dim,
        value_width=vdim or embed_dim,
        batch_first=layout == "batch first",
        layout=layout,
        kdim=kdim,
        vdim=vdim,
        mask_kind=kind,
        mask_shape=draw(st.sampled_from(shapes[kind])),
    )


def some_mask(call: Call) -> st.SearchStrategy:
    """Shapes people try: the right sizes in wrong places, and any."""
    sizes = st.sampled_from([1, call.batch, call.num_heads, call.queries, call.keys])
    return st.lists(sizes | small, max_size=5).map(tuple)


@st.composite
def broken(draw, call: Call) -> Call:
    """The call with one thing wrong, or by chance nothing."""
    name = draw(st.sampled_from([
        "num_heads", "embed_dim", "query_width", "key_width", "value_width", "kdim", "vdim", "value_tokens",
        "key and value", "batch_first", "mask_shape", "mask_kind", "mask_true_hides",
    ]))  # fmt: skip
    if name == "key and value":  # from one sequence of another width
        width = draw(small)
        return replace(call, key_width=width, value_width=width)
    if name == "mask_kind" or call.mask_kind == "none" and name.startswith("mask"):
        kind = draw(st.sampled_from(module.MASK_KINDS[1:]))
        return replace(call, mask_kind=kind, mask_shape=call.mask_shape or draw(some_mask(call)))
    if name == "mask_shape":
        return replace(call, mask_shape=draw(some_mask(call)))
    if name in ("batch_first", "mask_true_hides"):
        return replace(call, **{name: not getattr(call, name)})
    return replace(call, **{name: draw(small)})


@st.composite
def calls(draw) -> Call:
    call = draw(good_calls())
    for _ in range(draw(st.integers(0, 4))):
        call = draw(broken(call))
    return call


# Against torch

RULES = {
    "must be divisible": "embed_dim must divide",
    "expected `attn_mask`": "An attn_mask is",
    "expected `key_padding_mask`": "A key_padding_mask is",
    "was expecting embedding dimension": "The query must be",
    "match value": "Keys and values are pairs|The key must be|The value must be",
    "expecting key weights": "The key must be",
    "expecting value weights": "The value must be",
    "cannot be multiplied": "The key must be",
    "D attn_mask is": "An attn_mask is|With batch_first",
    "Expected key_padded_mask": "A key_padding_mask is|With batch_first",
    "is invalid for input of size": "With batch_first",
}
"""A piece of each error of torch, and the rules that can be behind it."""


@settings(max_examples=150)
@given(calls())
def test_every_verdict_is_what_torch_does(call):
    verdict = diagnose(call)
    assert verdict.torch_error == error_of(call)
    assert verdict.works == (verdict.torch_error is None)
    if verdict.works:
        output, weights = really(call)
        assert (verdict.shapes["output"], verdict.shapes["weights"]) == (output.shape, weights.shape)
    else:
        assert verdict.shapes == {}
        assert verdict.rule and verdict.wanted and verdict.came
        assert verdict.wanted != verdict.came
        (rule,) = (rule for piece, rule in RULES.items() if piece in verdict.torch_error)
        assert re.match(rule, verdict.rule)


@settings(max_examples=150)
@given(calls())
def test_every_mended_call_works_as_meant(call):
    verdict = diagnose(call)
    if verdict.rule is None:
        assert (verdict.mend, verdict.mended, verdict.works) == ((), None, True)
        return
    assert len(verdict.mend) > 0
    assert error_of(verdict.mended) is None
    after = diagnose(verdict.mended)
    assert (after.works, after.rule, after.mend) == (True, None, ())
    assert (verdict.mended.batch, verdict.mended.queries) == (call.batch, call.queries)
    assert verdict.mended.mask_kind == call.mask_kind or "pass it as" in " ".join(verdict.mend)


@settings(max_examples=150)
@given(good_calls().flatmap(broken))
def test_what_is_broken_in_one_place_is_mended_in_one(call):
    both = call.key_width != (call.kdim or call.embed_dim) and call.value_width != (call.vdim or call.embed_dim)
    assert len(diagnose(call).mend) <= 1 + both


@pytest.mark.parametrize("layout", module.LAYOUTS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_key_and_value_of_one_other_width_stop_in_the_product(batch_first, layout):
    """The one error that the meta device would word in its own way."""
    call = replace(GOOD, key_width=13, value_width=13, batch_first=batch_first, layout=layout)
    assert diagnose(call).torch_error == "mat1 and mat2 shapes cannot be multiplied (21x13 and 22x22)" == error_of(call)


@settings(max_examples=50)
@given(good_calls())
def test_a_good_call_has_nothing_to_mend(call):
    assert diagnose(call).rule is None


def test_the_shapes_inside_are_those_torch_multiplies(monkeypatch):
    seen, bmm, baddbmm = [], torch.bmm, torch.baddbmm
    monkeypatch.setattr(torch, "bmm", lambda *given: seen.append(given) or bmm(*given))
    monkeypatch.setattr(torch, "baddbmm", lambda *given: seen.append(given[1:]) or baddbmm(*given))
    for call in (GOOD, replace(GOOD, layout="tokens first", batch_first=False), SILENT):
        seen.clear()
        really(call)
        (q, k_transposed), (weights, v) = seen
        shapes = diagnose(call).shapes
        heads = shapes["q"][:2]
        assert shapes["q"] == q.unflatten(0, heads).shape
        assert shapes["k"] == k_transposed.mT.unflatten(0, heads).shape
        assert shapes["v"] == v.unflatten(0, heads).shape
        assert shapes["weights"] == weights.unflatten(0, heads).shape
        assert shapes["query"] == call.inputs["query"]


# Silent mistakes

SILENT = replace(GOOD, queries=7, batch_first=False)


def test_batch_first_tensors_in_a_tokens_first_layer_run():
    verdict = diagnose(SILENT)
    assert verdict.silent and verdict.works
    assert verdict.shapes["weights"] == (7, 2, 3, 3)
    assert verdict.rule == (
        "With batch_first=False a layer reads tokens × batch × width, so here it attends along the wrong axis."
    )
    assert verdict.wanted == "query 7 × 3 × 22, tokens × batch × width"
    assert verdict.came == "query 3 × 7 × 22, batch × tokens × width"
    assert verdict.mend == ("Build the layer with batch_first=True.",)
    assert verdict.mended == replace(SILENT, batch_first=True)


@pytest.mark.parametrize("layout", module.LAYOUTS)
@pytest.mark.parametrize("size", [1, 4])
def test_equal_batch_and_tokens_hide_nothing_but_a_single_token(layout, size):
    call = replace(GOOD, batch=size, queries=size, keys=size, layout=layout, batch_first=layout != "batch first")
    assert diagnose(call).silent == (size > 1)


def test_in_the_wrong_layout_one_example_changes_another():
    """What the silent rule claims, seen in torch; and that its mend is one."""
    layer, x = nn.MultiheadAttention(22, 2), torch.randn(3, 7, 22)
    changed = x.clone()
    changed[1] += 1
    assert not torch.allclose(layer(x, x, x)[0][0], layer(changed, changed, changed)[0][0])
    layer.batch_first = True
    assert torch.allclose(layer(x, x, x)[0][0], layer(changed, changed, changed)[0][0])


@pytest.mark.parametrize("kind, shape", [("attn_mask", (5, 7)), ("attn_mask", (6, 5, 7)), ("key_padding_mask", (3, 7))])
def test_a_mask_of_the_other_convention_runs(kind, shape):
    call = replace(GOOD, mask_kind=kind, mask_shape=shape, mask_true_hides=False)
    verdict = diagnose(call)
    assert verdict.silent
    assert verdict.rule == (
        "Runs, but hides exactly what you meant to keep: in nn.MultiheadAttention True hides."
    )
    assert verdict.mend == ("Pass `~mask`, with True and False changed round.",)
    assert verdict.mended == replace(call, mask_true_hides=True)


# Masks of another shape: the code in the mend, run, means the same mask to torch

MASKS = {
    "transposed": ("attn_mask", (7, 5), lambda mask: mask.T),
    "one row an example": ("attn_mask", (3, 7), lambda mask: mask[:, None, None]),
    "no copy for heads": ("attn_mask", (3, 5, 7), lambda mask: mask[:, None]),
    "no copy for examples": ("attn_mask", (2, 5, 7), lambda mask: mask),
    "batch and heads apart": ("attn_mask", (3, 2, 5, 7), lambda mask: mask),
    "one head axis": ("attn_mask", (3, 1, 5, 7), lambda mask: mask),
    "as visible for padding": ("attn_mask", (3, 1, 1, 7), lambda mask: mask),
    "one row": ("attn_mask", (1, 7), lambda mask: mask),
    "one axis": ("attn_mask", (7,), lambda mask: mask),
    "padding transposed": ("key_padding_mask", (7, 3), lambda mask: mask.T[:, None, None]),
    "a map as padding": ("key_padding_mask", (5, 7), lambda mask: mask),
    "maps as padding": ("key_padding_mask", (6, 5, 7), lambda mask: mask.unflatten(0, (3, 2))),
    "padding broadcast": ("key_padding_mask", (3, 1, 1, 7), lambda mask: mask),
    "padding for all": ("key_padding_mask", (7,), lambda mask: mask),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mended_mask_hides_what_was_meant(name):
    kind, shape, natural = MASKS[name]
    mask = torch.rand(shape) < 0.4
    mask[..., 0] = False
    hidden = natural(mask).expand(3, 2, 5, 7)
    if hidden.all(-1).any():
        mask, hidden = mask & False, hidden & False  # torch answers NaN where a query sees nothing
    verdict = diagnose(replace(GOOD, mask_kind=kind, mask_shape=shape))
    (words,), mended = verdict.mend, verdict.mended
    code = re.search("`(.*)`", words)
    new = eval(code[1]) if code else mask
    assert new.shape == mended.mask_shape
    layer, query, key = nn.MultiheadAttention(22, 2, batch_first=True), torch.randn(3, 5, 22), torch.randn(3, 7, 22)
    _, weights = layer(query, key, key, **{mended.mask_kind: new}, average_attn_weights=False)
    assert torch.equal(weights == 0, hidden)
    assert hidden.any()


def test_a_mask_that_tells_nothing_is_made_anew():
    verdict = diagnose(replace(GOOD, mask_kind="attn_mask", mask_shape=(11, 13)))
    assert verdict.mend == ("Make one of 5 queries × 7 keys.",)
    verdict = diagnose(replace(GOOD, mask_kind="key_padding_mask", mask_shape=(11,)))
    assert verdict.mend == ("Make one of 3 examples × 7 keys.",)


# As read


@pytest.mark.parametrize(
    "changes, rule, wanted, came, mend",
    [
        (
            {"num_heads": 3}, "embed_dim must divide by num_heads: torch cuts it into num_heads equal pieces.",
            "num_heads that divides 22", "22 / 3", ("Set num_heads to 2.",),
        ),
        (
            {"query_width": 13}, "The query must be embed_dim = 22 wide.",
            "query 3 × 5 × 22", "query 3 × 5 × 13",
            ("Make the query 22 wide, for example with nn.Linear(13, 22) before it.",),
        ),
        (
            {"query_width": 26, "key_width": 26, "value_width": 26}, "The query must be embed_dim = 22 wide.",
            "query 3 × 5 × 22", "query 3 × 5 × 26", ("Set embed_dim to 26.",),
        ),
        (
            {"key_width": 13}, "The key must be embed_dim = 22 wide, since kdim is not given.",
            "key 3 × 7 × 22", "key 3 × 7 × 13", ("Set kdim to 13.",),
        ),
        (
            {"vdim": 11, "value_width": 13}, "The value must be vdim = 11 wide.",
            "value 3 × 7 × 11", "value 3 × 7 × 13", ("Set vdim to 13.",),
        ),
        (
            {"value_tokens": 5}, "Keys and values are pairs, so key and value must have equally many tokens.",
            "value 3 × 7 × 22", "value 3 × 5 × 22",
            ("Take key and value from one sequence: give the value 7 tokens too.",),
        ),
        (
            {"value_tokens": 11, "mask_kind": "attn_mask", "mask_shape": (5, 11)},
            "Keys and values are pairs, so key and value must have equally many tokens.",
            "value 3 × 7 × 22", "value 3 × 11 × 22",
            ("Take key and value from one sequence: give the key 11 tokens too.",),
        ),
        (
            {"mask_kind": "attn_mask", "mask_shape": (7, 5)},
            "An attn_mask is one map of query × key for all, or one for each head of each example.",
            "5 × 7, or 6 × 5 × 7", "7 × 5", ("Queries come before keys: pass `mask.T`.",),
        ),
        (
            {"mask_kind": "key_padding_mask", "mask_shape": ()},
            "A key_padding_mask is batch × key, whatever batch_first says.",
            "3 × 7", "a single number", ("Nothing is spread for you: pass `mask.expand(3, 7)`.",),
        ),
    ],
)  # fmt: skip
def test_a_verdict_as_read(changes, rule, wanted, came, mend):
    verdict = diagnose(replace(GOOD, **changes))
    assert not verdict.works
    assert (verdict.rule, verdict.wanted, verdict.came, verdict.mend) == (rule, wanted, came, mend)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"layout": "BLE"}, "layout must be one of ('batch first', 'tokens first'); got 'BLE'."),
        (
            {"mask_kind": "mask", "mask_shape": (5, 7)},
            "mask_kind must be one of ('none', 'attn_mask', 'key_padding_mask'); got 'mask'.",
        ),
        ({"mask_shape": (5, 7)}, "a mask has a kind and a shape; got 'none' and (5, 7). Give both or neither."),
        ({"mask_kind": "attn_mask"}, "a mask has a kind and a shape; got 'attn_mask' and None. Give both or neither."),
    ],
)
def test_a_call_that_says_nothing_is_refused(fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(GOOD, **fields)


# Bad values, and nothing allocated

SIZES = (
    "embed_dim", "num_heads", "kdim", "vdim", "batch", "queries", "keys", "value_tokens",
    "query_width", "key_width", "value_width",
)  # fmt: skip


@pytest.mark.parametrize("size", [0, -3, -(10**30)])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_below_one_is_refused(name, size):
    call = replace(GOOD, **{name: size})
    verdict = diagnose(call)
    assert not verdict.works
    assert (verdict.rule, verdict.wanted, verdict.came) == (f"{name} must be 1 or more.", "1 or more", str(size))
    assert len(verdict.mend) == 1 and verdict.mend[0].startswith(f"Set {name} to ")
    assert error_of(verdict.mended) is None
    if size > -4:
        assert verdict.torch_error == error_of(call)


def test_all_sizes_below_one_are_mended_together():
    verdict = diagnose(replace(GOOD, **{name: 0 for name in SIZES}))
    assert len(verdict.mend) >= len(SIZES)
    assert error_of(verdict.mended) is None


@pytest.mark.parametrize("shape", [(0, 7), (5, -1)])
def test_an_axis_of_a_mask_below_one_is_refused(shape):
    verdict = diagnose(replace(GOOD, mask_kind="attn_mask", mask_shape=shape))
    assert verdict.rule == "every axis of a mask must be 1 or more."
    assert verdict.mended.mask_shape == (5, 7)


@pytest.mark.parametrize("name", [*SIZES, "mask_shape"])
def test_a_call_over_the_limit_is_refused_before_torch_is_asked(name, monkeypatch):
    monkeypatch.delattr(nn, "MultiheadAttention")
    huge = {"mask_kind": "attn_mask", "mask_shape": (10**9, 7)} if name == "mask_shape" else {name: 10**30}
    call = replace(GOOD, **huge)
    verdict = diagnose(call)
    assert not verdict.works
    assert verdict.rule == "A call that would need more than 1 GB is not tried here: use smaller sizes."
    assert verdict.torch_error is None


def test_the_limit_is_on_what_a_call_holds(monkeypatch):
    call = replace(GOOD, kdim=17, key_width=17, vdim=19, value_width=19, mask_kind="attn_mask", mask_shape=(5, 7))
    config = AttentionConfig(22, 2, kdim=17, vdim=19, bias=True)
    rows = flow(config, batch=3, queries=5, keys=7, cross=True, masked=False)
    held = ("query", "key", "value", "q", "k", "v", "scores", "weights", "context", "output")
    needed = 4 * (config.parameters + sum(math.prod(row.sizes) for row in rows if row.name in held)) + 5 * 7
    monkeypatch.setattr(module, "MOST_BYTES", needed)
    assert diagnose(call).works
    monkeypatch.setattr(module, "MOST_BYTES", needed - 1)
    assert not diagnose(call).works


def test_a_call_of_the_wrong_layout_is_measured_as_torch_would_run_it():
    call = replace(GOOD, batch=10_000, queries=2, keys=2, layout="batch first", batch_first=False)
    verdict = diagnose(call)
    assert (verdict.works, verdict.wanted, verdict.came) == (False, "at most 1 GB", "3.2 GB")
    assert diagnose(verdict.mended).works and verdict.mended.batch == 10_000


def test_a_kdim_of_a_million_is_mended_where_it_alone_is_to_blame():
    verdict = diagnose(replace(GOOD, embed_dim=512, query_width=512, value_width=512, kdim=10**6))
    assert (verdict.works, verdict.torch_error, verdict.mend) == (False, None, ("Set kdim to 22.",))


class OnlyMeta(TorchDispatchMode):
    """Fails at any tensor of a processor that holds more than one number."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor) and tensor.device.type != "meta":
                assert tensor.untyped_storage().nbytes() <= 4, function
        return made


@pytest.mark.parametrize("changes", [{}, {"key_width": 7000, "value_width": 7000}, {"num_heads": 3}])
def test_nothing_is_allocated_whatever_the_verdict(changes):
    large = replace(GOOD, embed_dim=7000, query_width=7000, key_width=7000, value_width=7000)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    with OnlyMeta():
        diagnose(replace(large, **changes))
        diagnose(replace(large, key_width=6000, value_width=6000))
    assert torch.equal(state, torch.get_rng_state())

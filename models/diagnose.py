"""Why a call of `torch.nn.MultiheadAttention` fails, or runs and does what was not meant, and what mends it.

The rules are those torch 2.13 checks, in its order. Whether a call works, its shapes and its error come from torch
itself, called on its `meta` device, which works out shapes and allocates nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import nn

from models.multi_head import MOST_BYTES

Sizes = tuple[int, ...]

LAYOUTS = ("batch first", "tokens first")
MASK_KINDS = ("none", "attn_mask", "key_padding_mask")


@dataclass(frozen=True, kw_only=True)
class Call:
    """`nn.MultiheadAttention(embed_dim, num_heads, kdim=…, vdim=…, batch_first=…)`, called on three tensors.

    batch, queries, keys: examples, tokens of the query, tokens of the key, as the user means them.
    query_width, key_width, value_width: the last axis of the three tensors.
    value_tokens: tokens of the value; None is as many as keys.
    layout: how the tensors lie, "batch first" or "tokens first"; `batch_first` is how the layer reads them.
    mask_kind: "none", or the argument a boolean mask of `mask_shape` is passed as.
    mask_true_hides: whether the user means True to hide; False: to keep.

    Raises `ValueError` for a layout or a kind that is none, and a mask with no shape or a shape with no mask.
    """

    batch: int
    queries: int
    keys: int
    embed_dim: int
    num_heads: int
    query_width: int
    key_width: int
    value_width: int
    batch_first: bool
    layout: str
    kdim: int | None = None
    vdim: int | None = None
    value_tokens: int | None = None
    mask_kind: str = "none"
    mask_shape: Sizes | None = None
    mask_true_hides: bool = True

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {LAYOUTS}; got {self.layout!r}.")
        if self.mask_kind not in MASK_KINDS:
            raise ValueError(f"mask_kind must be one of {MASK_KINDS}; got {self.mask_kind!r}.")
        if (self.mask_kind == "none") != (self.mask_shape is None):
            raise ValueError(
                f"a mask has a kind and a shape; got {self.mask_kind!r} and {self.mask_shape}. Give both or neither."
            )

    @property
    def inputs(self) -> dict[str, Sizes]:
        """The shapes of query, key and value as they are passed."""
        values = self.keys if self.value_tokens is None else self.value_tokens
        meant = {
            "query": (self.batch, self.queries, self.query_width),
            "key": (self.batch, self.keys, self.key_width),
            "value": (self.batch, values, self.value_width),
        }
        return meant if self.layout == "batch first" else {name: _swapped(shape) for name, shape in meant.items()}

    @property
    def as_read(self) -> dict[str, Sizes]:
        """The same shapes as batch × tokens × width, by the layer's reading."""
        return self.inputs if self.batch_first else {name: _swapped(shape) for name, shape in self.inputs.items()}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What torch does with a call, and what to change.

    works: whether torch runs it; a call with a size below 1 or over `MOST_BYTES` never counts as working.
    shapes: query, key, value and output as passed; q, k, v and weights as `batch head query key head_dim` words
        order them, in the layer's reading. Empty where the call does not work.
    rule: the rule that is broken, in one sentence; None where all is well. `wanted` and `came` go with it.
    torch_error: what torch says, word for word; None where it raises nothing or, beyond `MOST_BYTES`, is not asked.
    mend: the fewest changes after which the call works as meant, one sentence each. `mended`: the call after them,
        None where nothing is broken, and for a call too large without one size to blame.
    """

    works: bool
    shapes: Mapping[str, Sizes]
    rule: str | None = None
    wanted: str | None = None
    came: str | None = None
    torch_error: str | None = None
    mend: tuple[str, ...] = ()
    mended: Call | None = None

    @property
    def silent(self) -> bool:
        """Whether torch runs the call, and does something else than was meant."""
        return self.works and self.rule is not None


@dataclass(frozen=True)
class _Change:
    words: str
    call: Call


@dataclass(frozen=True)
class _Fault:
    """One broken rule; each of the changes mends it, though another may then be broken."""

    rule: str
    wanted: str
    came: str
    changes: tuple[_Change, ...]
    refused: bool = False


def diagnose(call: Call) -> Verdict:
    """Whether the call works, with its shapes, or the first rule that torch finds broken and the smallest mend."""
    fault = _fault(call)
    shapes, error = ({}, None) if _bytes(call) > MOST_BYTES else _ask_torch(call)
    works = error is None and not (fault and fault.refused)
    verdict = Verdict(works=works, shapes=MappingProxyType(shapes if works else {}), torch_error=error)
    if fault is None:
        return verdict
    verdict = replace(verdict, rule=fault.rule, wanted=fault.wanted, came=fault.came)
    changes = _fewest_changes(call)
    if changes is None:
        return verdict
    return replace(verdict, mend=tuple(change.words for change in changes), mended=changes[-1].call)


def _fewest_changes(call: Call) -> tuple[_Change, ...] | None:
    """One change for this fault, then for the next that shows, until there is none; None if that never comes."""
    fault = _fault(call)
    if fault is None:
        return ()
    ways = ((change, _fewest_changes(change.call)) for change in fault.changes)
    return min(((change, *rest) for change, rest in ways if rest is not None), key=len, default=None)


def _fault(call: Call) -> _Fault | None:
    return next((fault for check in _CHECKS if (fault := check(call))), None)


# Torch itself


def _ask_torch(call: Call) -> tuple[dict[str, Sizes], str | None]:
    """The shapes torch makes, or its error. The inputs are three tensors of their own."""
    try:
        output, weights = _call_on_meta(call)
    except Exception as error:
        if "same reduction dim" in str(error):  # the one message that `meta` words in its own way
            error = _product_error(call)
        return {}, str(error)
    (batch, queries, _), (_, keys, _), _ = call.as_read.values()
    width = call.embed_dim // call.num_heads
    q, kv = (batch, call.num_heads, queries, width), (batch, call.num_heads, keys, width)
    return {**call.inputs, "q": q, "k": kv, "v": kv, "weights": tuple(weights), "output": tuple(output)}, None


def _call_on_meta(call: Call) -> tuple[torch.Size, torch.Size]:
    layer = nn.MultiheadAttention(
        call.embed_dim,
        call.num_heads,
        kdim=call.kdim,
        vdim=call.vdim,
        batch_first=call.batch_first,
        device="meta",
    )
    inputs = (torch.empty(shape, device="meta") for shape in call.inputs.values())
    mask = {} if call.mask_shape is None else {call.mask_kind: torch.empty(call.mask_shape, dtype=bool, device="meta")}
    output, weights = layer(*inputs, **mask, average_attn_weights=False)
    return output.shape, weights.shape


def _product_error(call: Call) -> Exception:
    """The error of the key's projection on a processor, from tensors of one number that pass for large ones."""
    one = torch.zeros(())
    try:
        F.linear(one.expand(call.as_read["key"]), one.expand(call.embed_dim, call.embed_dim))
    except RuntimeError as error:
        return error
    raise AssertionError("a key of a width other than embed_dim went through W_K")


# The rules, in the order in which torch checks them


def _size_below_one(call: Call) -> _Fault | None:
    for name, size in _sizes(call):
        if size < 1:
            return _Fault(
                f"{name} must be 1 or more.", "1 or more", str(size), (_raised(call, name),), refused=True
            )
    return None


def _sizes(call: Call) -> Iterator[tuple[str, int]]:
    """Every size that is given, by its name."""
    for name in (
        "embed_dim", "num_heads", "kdim", "vdim", "batch", "queries", "keys", "value_tokens",
        "query_width", "key_width", "value_width",
    ):  # fmt: skip
        if (size := getattr(call, name)) is not None:
            yield name, size
    yield from (("every axis of a mask", size) for size in call.mask_shape or ())


def _raised(call: Call, name: str) -> _Change:
    """A size below one, set to what goes with it."""
    if name == "every axis of a mask":
        return _new_mask(call)
    partners = {
        "embed_dim": call.query_width,
        "kdim": call.key_width,
        "vdim": call.value_width,
        "value_tokens": call.keys,
        "query_width": call.embed_dim,
        "key_width": call.kdim or call.embed_dim,
        "value_width": call.vdim or call.embed_dim,
    }
    return _set(call, name, max(1, partners.get(name, 1)))


def _too_large(call: Call) -> _Fault | None:
    needed = _bytes(call)
    if needed <= MOST_BYTES:
        return None
    smaller = {"kdim": call.key_width, "vdim": call.value_width, "batch_first": call.layout == "batch first"}
    return _Fault(
        f"A call that would need more than {MOST_BYTES / 1e9:.0f} GB is not tried here: use smaller sizes.",
        f"at most {MOST_BYTES / 1e9:.0f} GB",
        f"{needed / 1e9:,.1f} GB",
        tuple(_set(call, name, to) for name, to in smaller.items() if getattr(call, name) not in (None, to)),
        refused=True,
    )


def _bytes(call: Call) -> int:
    """What a call holds in float32: parameters, inputs, q, k, v, scores, weights, context, output and mask."""
    width, kdim, vdim = call.embed_dim, call.kdim or call.embed_dim, call.vdim or call.embed_dim
    query, key, value = (map(abs, shape) for shape in call.as_read.values())
    (batch, queries, query_width), (_, keys, key_width), (_, values, value_width) = query, key, value
    parameters = abs(width) * (2 * abs(width) + abs(kdim) + abs(vdim) + 4)
    inputs = batch * (queries * query_width + keys * key_width + values * value_width)
    made = batch * (abs(width) * (3 * queries + keys + values) + 2 * abs(call.num_heads) * queries * keys)
    return 4 * (parameters + inputs + made) + abs(prod(call.mask_shape or (0,)))


def _heads_do_not_divide(call: Call) -> _Fault | None:
    if call.embed_dim % call.num_heads == 0:
        return None
    divisors = [heads for heads in range(1, call.embed_dim + 1) if call.embed_dim % heads == 0]
    heads = (_set(call, "num_heads", n) for n in sorted(divisors, key=lambda n: abs(n - call.num_heads)))
    width = (_set(call, "embed_dim", call.query_width),) if call.query_width != call.embed_dim else ()
    return _Fault(
        "embed_dim must divide by num_heads: torch cuts it into num_heads equal pieces.",
        f"num_heads that divides {call.embed_dim}",
        f"{call.embed_dim} / {call.num_heads}",
        (*heads, *width),
    )


def _mask_of_wrong_axes(call: Call) -> _Fault | None:
    axes = {"none": (), "attn_mask": (2, 3), "key_padding_mask": (2,)}[call.mask_kind]
    return _mask_of_wrong_shape(call) if axes and len(call.mask_shape) not in axes else None


def _query_of_wrong_width(call: Call) -> _Fault | None:
    if call.query_width == call.embed_dim:
        return None
    changes = _set(call, "embed_dim", call.query_width), _widened(call, "query", call.embed_dim)
    return _misshapen(call, "query", f"The query must be embed_dim = {call.embed_dim} wide.", changes)


def _not_pairs(call: Call) -> _Fault | None:
    if call.value_tokens in (None, call.keys):
        return None
    cut = _Change(f"Take key and value from one sequence: give the value {call.keys} tokens too.",
                  replace(call, value_tokens=None))  # fmt: skip
    grow = _Change(f"Take key and value from one sequence: give the key {call.value_tokens} tokens too.",
                   replace(call, keys=call.value_tokens, value_tokens=None))  # fmt: skip
    rule = "Keys and values are pairs, so key and value must have equally many tokens."
    return _misshapen(call, "value", rule, (cut, grow))


def _source_of_wrong_width(name: str, setting: str, call: Call) -> _Fault | None:
    """`name` is "key" or "value", `setting` "kdim" or "vdim"."""
    came, given = getattr(call, f"{name}_width"), getattr(call, setting)
    wanted = given or call.embed_dim
    if came == wanted:
        return None
    why = f"{setting} = {wanted} wide" if given else f"embed_dim = {wanted} wide, since {setting} is not given"
    changes = _set(call, setting, came), _widened(call, name, wanted)
    return _misshapen(call, name, f"The {name} must be {why}.", changes)


def _misread(call: Call) -> _Fault | None:
    """Silent where L = S and no mask gives it away."""
    meant = call.layout == "batch first"
    if call.batch_first == meant or call.batch == call.queries == call.keys == 1:
        return None
    read, came = ("batch × tokens", "tokens × batch") if call.batch_first else ("tokens × batch", "batch × tokens")
    return _Fault(
        f"With batch_first={call.batch_first} a layer reads {read} × width, so here it attends along the wrong axis.",
        f"query {_text(_wanted(call)['query'])}, {read} × width",
        f"query {_text(call.inputs['query'])}, {came} × width",
        (_Change(f"Build the layer with batch_first={meant}.", replace(call, batch_first=meant)),),
    )


def _mask_of_wrong_shape(call: Call) -> _Fault | None:
    one_map, maps, rows = _mask_shapes(call)
    if call.mask_kind == "attn_mask" and call.mask_shape not in (one_map, maps):
        rule = "An attn_mask is one map of query × key for all, or one for each head of each example."
        return _Fault(rule, f"{_text(one_map)}, or {_text(maps)}", _text(call.mask_shape), (_new_mask(call),))
    if call.mask_kind == "key_padding_mask" and call.mask_shape != rows:
        rule = "A key_padding_mask is batch × key, whatever batch_first says."
        return _Fault(rule, _text(rows), _text(call.mask_shape), (_new_mask(call),))
    return None


def _mask_reversed(call: Call) -> _Fault | None:
    """Silent always."""
    if call.mask_kind == "none" or call.mask_true_hides:
        return None
    return _Fault(
        "Runs, but hides exactly what you meant to keep: in nn.MultiheadAttention True hides.",
        "True hides",
        "True keeps",
        (_Change("Pass `~mask`, with True and False changed round.", replace(call, mask_true_hides=True)),),
    )


_CHECKS: tuple[Callable[[Call], _Fault | None], ...] = (
    _size_below_one,
    _too_large,
    _heads_do_not_divide,
    _mask_of_wrong_axes,
    _query_of_wrong_width,
    _not_pairs,
    partial(_source_of_wrong_width, "key", "kdim"),
    partial(_source_of_wrong_width, "value", "vdim"),
    _misread,
    _mask_of_wrong_shape,
    _mask_reversed,
)


# Masks of another shape


def _mask_shapes(call: Call) -> tuple[Sizes, Sizes, Sizes]:
    """The shapes torch takes: an attn_mask for all, one for each head, a key_padding_mask."""
    one_map = call.queries, call.keys
    return one_map, (call.batch * call.num_heads, *one_map), (call.batch, call.keys)


def _new_mask(call: Call) -> _Change:
    """The same mask as torch takes it, where its shape tells what it means; a new one where not."""
    ways = _attn_mask_ways if call.mask_kind == "attn_mask" else _padding_mask_ways
    return next(ways(call))


def _attn_mask_ways(call: Call) -> Iterator[_Change]:
    """The first is the best."""
    shape, (one_map, maps, rows) = call.mask_shape, _mask_shapes(call)
    batch, heads, queries, keys = call.batch, call.num_heads, *one_map
    if shape == (keys, queries):
        yield _mask(call, "Queries come before keys: pass `mask.T`.", one_map)
    if shape == rows:
        yield _mask(call, "It has a row for each example: pass it as key_padding_mask.", rows, "key_padding_mask")
    if shape == (batch, *one_map):
        yield _mask(call, f"Every head needs its own copy: pass `mask.repeat_interleave({heads}, dim=0)`.", maps)
    if shape == (heads, *one_map):
        yield _mask(call, f"Every example needs its own copy: pass `mask.repeat({batch}, 1, 1)`.", maps)
    if len(shape) == 4 and _spreads(shape, (batch, heads, *one_map)):
        sizes = f"{batch}, {heads}, {queries}, {keys}"
        yield _mask(call, f"Batch and heads lie in one axis: pass `mask.expand({sizes}).flatten(0, 1)`.", maps)
    if _spreads(shape, one_map):
        yield _mask(call, f"Nothing is spread for you: pass `mask.expand({queries}, {keys})`.", one_map)
    yield _mask(call, f"Make one of {queries} queries × {keys} keys.", one_map)


def _padding_mask_ways(call: Call) -> Iterator[_Change]:
    """The first is the best."""
    shape, (one_map, maps, rows) = call.mask_shape, _mask_shapes(call)
    batch, keys = rows
    if shape == (keys, batch):
        yield _mask(call, "The batch comes before keys: pass `mask.T`.", rows)
    if shape in (one_map, maps):
        yield _mask(call, "It has a row for each query: pass it as attn_mask.", shape, "attn_mask")
    if shape == (batch, 1, 1, keys):
        yield _mask(call, "Only batch and key are wanted: pass `mask[:, 0, 0]`.", rows)
    if _spreads(shape, rows):
        yield _mask(call, f"Nothing is spread for you: pass `mask.expand({batch}, {keys})`.", rows)
    yield _mask(call, f"Make one of {batch} examples × {keys} keys.", rows)


def _mask(call: Call, words: str, shape: Sizes, kind: str | None = None) -> _Change:
    return _Change(words, replace(call, mask_shape=shape, mask_kind=kind or call.mask_kind))


def _spreads(shape: Sizes, wanted: Sizes) -> bool:
    """Whether `expand` turns the one into the other."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(size in (1, other) for size, other in pairs)


# Words


def _set(call: Call, name: str, to: int | bool) -> _Change:
    return _Change(f"Set {name} to {to}.", replace(call, **{name: to}))


def _widened(call: Call, name: str, width: int) -> _Change:
    came = getattr(call, f"{name}_width")
    words = f"Make the {name} {width} wide, for example with nn.Linear({came}, {width}) before it."
    return _Change(words, replace(call, **{f"{name}_width": width}))


def _misshapen(call: Call, name: str, rule: str, changes: tuple[_Change, ...]) -> _Fault:
    """Wanted is the shape after the mend of the tensor alone: right tokens, right width, the layer's order of axes."""
    return _Fault(rule, f"{name} {_text(_wanted(call)[name])}", f"{name} {_text(call.inputs[name])}", changes)


def _wanted(call: Call) -> dict[str, Sizes]:
    """The shapes of inputs that this layer takes."""
    layout = LAYOUTS[0] if call.batch_first else LAYOUTS[1]
    key, value = call.kdim or call.embed_dim, call.vdim or call.embed_dim
    right = replace(
        call, layout=layout, query_width=call.embed_dim, key_width=key, value_width=value, value_tokens=None
    )
    return right.inputs


def _text(shape: Sizes) -> str:
    return " × ".join(map(str, shape)) or "a single number"


def _swapped(shape: Sizes) -> Sizes:
    first, second, width = shape
    return second, first, width

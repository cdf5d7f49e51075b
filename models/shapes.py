"""The shape of every tensor in one attention layer, what made it, what it costs; and the same layer in torch's words.

Worked out from the config alone: nothing is allocated and nothing is computed.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from models.multi_head import AttentionConfig


class Symbol(NamedTuple):
    """The letter of one axis, and what it counts."""

    letter: str
    meaning: str


SYMBOLS: Mapping[str, Symbol] = MappingProxyType(
    {
        "batch": Symbol("B", "examples in the batch"),
        "query": Symbol("L", "queries: tokens that ask"),
        "key": Symbol("S", "keys, and as many values: tokens that answer"),
        "embed": Symbol("e", "embed_dim: width of a query’s input and of the output"),
        "kdim": Symbol("e_k", "kdim: width of the keys’ input"),
        "vdim": Symbol("e_v", "vdim: width of the values’ input"),
        "head": Symbol("h", "num_heads: heads"),
        "kv_head": Symbol("g", "num_kv_heads: heads with keys and values of their own"),
        "head_dim": Symbol("d", "head_dim: width of q, k and v in one head"),
    }
)
"""Every axis word and its letter."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One tensor on the way from the input to the output.

    name: the steps of `models.trace.Step` under their own names; "q unsplit" before the heads are cut,
        "k shared" before key–value heads are repeated, "concatenated" after the heads are merged.
    axes: words, brackets around axes that lie in one, as einops writes them: "batch query (head head_dim)".
    symbols: the letters of `SYMBOLS`: "B × L × h·d". sizes: the same, counted.
    made_from: names of the rows it is made from. made_by: the product or the einops pattern that makes it.
    parameters: learned numbers used for it, biases included.
    multiplications: of two numbers, in its matrix product or its scaling; a softmax's divisions are not counted.
    is_view: whether it holds the numbers of the row it is made from under other axes, with no arithmetic.
    """

    name: str
    axes: str
    symbols: str
    sizes: tuple[int, ...]
    made_from: tuple[str, ...]
    made_by: str
    parameters: int = 0
    multiplications: int = 0
    is_view: bool = False


class Totals(NamedTuple):
    """What all rows cost together."""

    parameters: int
    multiplications: int


def totals(rows: Iterable[Row]) -> Totals:
    """The sums over rows."""
    rows = tuple(rows)
    return Totals(sum(row.parameters for row in rows), sum(row.multiplications for row in rows))


def flow(
    config: AttentionConfig, *, batch: int, queries: int, keys: int, cross: bool, masked: bool
) -> tuple[Row, ...]:
    """Every tensor of one forward pass of `MultiHeadAttention(config)`, in computing order.

    cross: whether query, key and value are three inputs; otherwise all come from one x.
    masked: whether some `visible` is given.

    Raises `ValueError` for sizes below one, and for one x that would have to have two lengths or widths.
    """
    _check(config, batch, queries, keys, cross)
    write = _Writer(config, batch, queries, keys)
    return (
        *_inputs(write, cross),
        *_heads_of(write, "q", "query" if cross else "x"),
        *_heads_of(write, "k", "key" if cross else "x"),
        *_heads_of(write, "v", "value" if cross else "x"),
        *_attention(write, masked),
        *_merge(write),
    )


def _check(config: AttentionConfig, batch: int, queries: int, keys: int, cross: bool) -> None:
    for name, size in {"batch": batch, "queries": queries, "keys": keys}.items():
        if size < 1:
            raise ValueError(f"{name} must be 1 or more; got {size}.")
    if cross:
        return
    if queries != keys:
        raise ValueError(
            f"in self-attention queries and keys are the same tokens; got {queries} and {keys}. Set cross=True."
        )
    if len(set(config.input_widths)) > 1:
        raise ValueError(
            f"in self-attention one input has one width; got {config.input_widths} for queries, keys and values. "
            f"Set cross=True, or leave kdim and vdim out."
        )


class _Writer:
    """Writes rows for one config and one size of input; letters and sizes follow from the axes."""

    def __init__(self, config: AttentionConfig, batch: int, queries: int, keys: int) -> None:
        self.config = config
        embed, kdim, vdim = config.input_widths
        self.sizes = {
            "batch": batch, "query": queries, "key": keys, "embed": embed, "kdim": kdim, "vdim": vdim,
            "head": config.num_heads, "kv_head": config.kv_heads, "head_dim": config.width,
        }  # fmt: skip

    def count(self, axes: str) -> int:
        """How many numbers these axes hold."""
        return math.prod(self.sizes[word] for word in axes.replace("(", " ").replace(")", " ").split())

    def row(self, name: str, axes: str, made_from: tuple[str, ...], made_by: str, **costs) -> Row:
        """A row with its symbols and sizes; `costs` are the fields of `Row` that have a default."""
        parts = _axes(axes)
        return Row(
            name=name,
            axes=axes,
            symbols=" × ".join("·".join(SYMBOLS[word].letter for word in part.split()) for part in parts),
            sizes=tuple(map(self.count, parts)),
            made_from=made_from,
            made_by=made_by,
            **costs,
        )


def _axes(axes: str) -> list[str]:
    """Axis by axis: "batch query (head head_dim)" -> ["batch", "query", "head head_dim"]."""
    words, _, merged = axes.partition(" (")
    return words.split() + ([merged.rstrip(")")] if merged else [])


def _inputs(write: _Writer, cross: bool) -> tuple[Row, ...]:
    if not cross:
        return (write.row("x", "batch query embed", (), "input"),)
    return (
        write.row("query", "batch query embed", (), "input"),
        write.row("key", f"batch key {'kdim' if write.config.kdim else 'embed'}", (), "input"),
        write.row("value", f"batch key {'vdim' if write.config.vdim else 'embed'}", (), "input"),
    )


def _heads_of(write: _Writer, name: str, source: str) -> tuple[Row, ...]:
    """q, k or v from the projection of its input to the heads."""
    token = "query" if name == "q" else "key"
    shares = name != "q" and write.config.kv_heads != write.config.num_heads
    head = "kv_head" if shares else "head"
    flat, cut = f"batch {token} ({head} head_dim)", f"batch {head} {token} head_dim"
    unsplit = _project(write, name, source, flat)
    split = f"rearrange: {flat} -> {cut}"
    if not shares:
        return unsplit, write.row(name, cut, (unsplit.name,), split, is_view=True)
    copied = f"repeat: {cut} -> batch (kv_head copies) {token} head_dim"
    shared = write.row(f"{name} shared", cut, (unsplit.name,), split, is_view=True)
    return unsplit, shared, write.row(name, f"batch head {token} head_dim", (shared.name,), copied, is_view=True)


def _project(write: _Writer, name: str, source: str, axes: str) -> Row:
    config, matrix = write.config, name.upper()
    if not config.projections:
        return write.row(f"{name} unsplit", axes, (source,), source, is_view=True)
    width_in = config.input_widths["qkv".index(name)]
    product = f"{source} W_{matrix}" + (f" + b_{matrix}" if config.bias else "")
    return write.row(
        f"{name} unsplit",
        axes,
        (source,),
        f"{config.projection_activation}({product})" if config.projection_activation else product,
        parameters=(width_in + config.bias) * write.count(_axes(axes)[-1]),
        multiplications=width_in * write.count(axes),
    )


def _attention(write: _Writer, masked: bool) -> tuple[Row, ...]:
    """From q and k to the weights and the blend of v."""
    pairs, blend = "batch head query key", "batch head query head_dim"
    product, factor = write.count(f"{pairs} head_dim"), _factor(write.config)
    hidden = write.row("masked", pairs, ("scaled",), "−∞ where not visible")
    return (
        write.row("scores", pairs, ("q", "k"), "q kᵀ", multiplications=product),
        write.row("scaled", pairs, ("scores",), f"scores · {factor}", multiplications=write.count(pairs)),
        *((hidden,) if masked else ()),
        write.row("weights", pairs, ("masked" if masked else "scaled",), "softmax over key"),
        write.row("context", blend, ("weights", "v"), "weights v", multiplications=product),
    )


def _factor(config: AttentionConfig) -> str:
    """What the scores are multiplied by, as a root where it is one."""
    roots = {config.embed_dim**-0.5: "1/√e", config.width**-0.5: "1/√d"}
    return roots.get(config.factor, f"{config.factor:g}")


def _merge(write: _Writer) -> tuple[Row, ...]:
    """The heads side by side, and what W_O makes of them."""
    config, cut, flat = write.config, "batch head query head_dim", "batch query (head head_dim)"
    merge = f"rearrange: {cut} -> {flat}"
    concatenated = write.row("concatenated", flat, ("context",), merge, is_view=True)
    if not config.output_projection:
        return concatenated, write.row("output", flat, ("concatenated",), "concatenated", is_view=True)
    output = write.row(
        "output",
        "batch query embed",
        ("concatenated",),
        "concatenated W_O" + (" + b_O" if config.bias else ""),
        parameters=(write.count("head head_dim") + config.bias) * config.embed_dim,
        multiplications=write.count(f"{flat} embed"),
    )
    return concatenated, output


def cache_bytes(config: AttentionConfig, bytes_per_number: int = 4) -> int:
    """Bytes that every past token costs in a key–value cache: its k and its v in each key–value head.

    The memory that multi-query attention saves (Shazeer 2019, section 3; Ainslie et al. 2023, section 2.2).
    """
    return 2 * config.kv_heads * config.width * bytes_per_number


def sharing(config: AttentionConfig) -> tuple[tuple[int, ...], ...]:
    """For each key–value head the query heads it serves, counted from 0."""
    served = config.num_heads // config.kv_heads
    return tuple(tuple(range(first, first + served)) for first in range(0, config.num_heads, served))


@dataclass(frozen=True)
class TorchTwin:
    """The same layer in torch's words.

    arguments: Python that builds it, with `nn` for `torch.nn`; None where torch has no such layer.
    reasons: for each setting that torch cannot express, one sentence that names it and torch's rule.
    """

    arguments: str | None
    reasons: tuple[str, ...]


def torch_twin(config: AttentionConfig) -> TorchTwin:
    """This config as an `nn.MultiheadAttention`, or why it cannot be one."""
    rules = (_heads_divide, _head_dim, _scale, _output_projection, _activation, _kv_heads, _projections)
    reasons = tuple(reason for rule in rules if (reason := rule(config)))
    return TorchTwin(None if reasons else _constructor(config), reasons)


def _constructor(config: AttentionConfig) -> str:
    given = {"embed_dim": config.embed_dim, "num_heads": config.num_heads, "bias": config.bias}
    given |= {name: size for name in ("kdim", "vdim") if (size := getattr(config, name))}
    return f"nn.MultiheadAttention({', '.join(f'{name}={value}' for name, value in given.items())}, batch_first=True)"


def _heads_divide(config: AttentionConfig) -> str | None:
    if config.embed_dim % config.num_heads == 0:
        return None
    return (
        f"num_heads = {config.num_heads} does not divide embed_dim = {config.embed_dim}: "
        f"torch cuts embed_dim into num_heads equal pieces."
    )


def _head_dim(config: AttentionConfig) -> str | None:
    if config.embed_dim % config.num_heads or config.width * config.num_heads == config.embed_dim:
        return None
    return (
        f"head_dim = {config.width}: torch has no such argument, its q, k and v are all "
        f"embed_dim / num_heads = {config.embed_dim // config.num_heads} wide."
    )


def _scale(config: AttentionConfig) -> str | None:
    if math.isclose(config.factor, config.width**-0.5):
        return None
    return f"scale = {config.factor:g}: torch has no such argument, it always multiplies by 1/√head_dim."


def _output_projection(config: AttentionConfig) -> str | None:
    if config.output_projection:
        return None
    return "output_projection = False: torch always ends with W_O, so that its output is embed_dim wide."


def _activation(config: AttentionConfig) -> str | None:
    if config.projection_activation is None:
        return None
    return f'projection_activation = "{config.projection_activation}": torch puts nothing after its projections.'


def _kv_heads(config: AttentionConfig) -> str | None:
    if config.kv_heads == config.num_heads:
        return None
    return (
        f"num_kv_heads = {config.kv_heads}: torch has no such argument, "
        f"each of its {config.num_heads} heads has keys and values of its own."
    )


def _projections(config: AttentionConfig) -> str | None:
    return None if config.projections else "projections = False: torch always has W_Q, W_K and W_V."

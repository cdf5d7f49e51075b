"""All heads at once: a canvas that answers within a frame, and tells Python only what is chosen."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import pyarrow
import streamlit as st
import torch
from torch import Tensor

from models import summaries
from models.tokens import is_special
from models.trace import AttentionTrace, Step
from sections import story
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import hidden
from viz.codes import encode
from viz.colours import DIVERGING, HEADS, SEQUENTIAL, css_role, css_shades

_FILES = Path(__file__).parents[1] / "viz" / "overview"
_overview = st.components.v2.component(
    "overview",
    html=(_FILES / "overview.html").read_text(),
    css=(_FILES / "overview.css").read_text(),
    js="\n".join((_FILES / name).read_text() for name in ("codes.js", "layout.js", "paint.js", "overview.js")),
)

MOST_LINES = 2**20
"""Queries × keys for which lines are drawn; of more, nothing could be made out."""

Traces = Sequence[AttentionTrace[Tensor]]


def render(made: Attended, look: Look, step: Step, layers: Traces, layer: int) -> None:
    """Every head of every layer, for one step; `layer`, counted from 0, is the one `made` shows."""
    _overview(key="overview", data=_data(made, look, step, layers, layer), on_pick_change=_choose)
    for remark in _remarks(made, look, step):
        st.caption(remark)


def _data(made: Attended, look: Look, step: Step, layers: Traces, layer: int) -> dict:
    """What the component draws. Nothing in it depends on the chosen query or head, so choosing sends nothing."""
    values, names = _maps(made, look, step, layers)
    signed = step is not Step.WEIGHTS
    away = _away(made, look, step)
    packed = encode(values.numpy(), away, signed=signed)
    finite = values[values.isfinite()].abs()
    return {
        "codes": pyarrow.table({"codes": pyarrow.array(memoryview(packed.packed), pyarrow.uint8())}),
        "id": blake2b(packed.packed, digest_size=8).hexdigest(),
        "zero": packed.zero,
        "decimals": packed.decimals,
        "shape": list(values.shape),
        "limit": (float(finite.max()) if len(finite) else 1.0) or 1.0 if signed else 1.0,
        "signed": signed,
        "by_row": look.shade == "row",
        "lines": len(made.queries) * len(made.keys) <= MOST_LINES,
        "layers": len(layers),
        "layer": layer,
        "summary": look.together != "each",
        "first": layer * made.num_heads if look.together == "each" else 0,
        "heads_per_layer": len(names) // len(layers),
        "names": names,
        "labels": [".".join(re.findall(r"\d+", name)) for name in names],
        "queries": list(made.queries),
        "keys": list(made.keys),
        "step": str(step),
        "scale": css_shades(DIVERGING if signed else SEQUENTIAL),
        "heads": css_shades(HEADS),
        "roles": {role: css_role(role) for role in ("query", "key")},
        "words": story.overview(step),
    }


def _maps(made: Attended, look: Look, step: Step, layers: Traces) -> tuple[Tensor, list[str]]:
    """The maps to draw, `map query key`, and their names."""
    summarise = {"average": summaries.average, "maximum": summaries.maximum}.get(look.together, lambda heads: heads)
    maps = [summarise(_left(made, look, step, trace[step][0])) for trace in layers]
    heads = range(1, made.num_heads + 1) if look.together == "each" else [made.num_heads]
    names = [story.map_name(look.together, layer + 1, len(layers), head, made.names) for layer in range(len(layers)) for head in heads]
    return torch.cat(maps), names


def _left(made: Attended, look: Look, step: Step, heads: Tensor) -> Tensor:
    keep = _keep(made, look)
    return heads if keep is None or step is not Step.WEIGHTS else summaries.leave_out(heads, keep)


def _keep(made: Attended, look: Look) -> Tensor | None:
    """Which keys stay when special ones, or the first too, are left out; None where all do."""
    if look.leave_out == "none":
        return None
    first = look.leave_out == "first"
    return torch.tensor([not is_special(key) and not (first and place == 0) for place, key in enumerate(made.keys)])


def _away(made: Attended, look: Look, step: Step):
    """Cells drawn as hidden, `query key`."""
    keep, masked = _keep(made, look), hidden(made, step)
    if keep is None or step is not Step.WEIGHTS:
        return masked
    out = ~keep.numpy()[None]
    return out if masked is None else masked | out


def _remarks(made: Attended, look: Look, step: Step) -> list[str]:
    """What must be said of maps that are not simply what a head computed."""
    said = [story.TOGETHER[look.together]] if look.together != "each" and made.num_heads > 1 else []
    if step is Step.WEIGHTS and look.leave_out != "none":
        left_out = [key for key, kept in zip(made.keys, _keep(made, look).tolist(), strict=True) if not kept]
        said.append(story.left_out(left_out))
    return said


def _choose() -> None:
    pick = st.session_state.overview.pick
    st.session_state.query, st.session_state.head = int(pick["query"]) + 1, int(pick["head"]) + 1
    if pick["layer"] is not None:
        st.session_state.layer = int(pick["layer"]) + 1

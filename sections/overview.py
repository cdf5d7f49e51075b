"""All heads at once: a canvas that answers within a frame, and tells Python only what is chosen."""

import re
from collections.abc import Sequence

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from models import summaries
from models.tokens import is_special
from models.trace import AttentionTrace, Step
from sections import canvas, story
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import hidden

_overview = st.components.v2.component(
    "overview",
    html=canvas.script("overview/overview.html"),
    css=canvas.script("overview/overview.css"),
    js=canvas.script("channel.js", *(f"overview/{name}.js" for name in ("codes", "layout", "paint", "overview"))),
)

MOST_LINES = 2**20
"""Queries × keys for which lines are drawn; of more, nothing could be made out."""

Traces = Sequence[AttentionTrace[Tensor]]


def render(made: Attended, look: Look, step: Step, layers: Traces, layer: int) -> None:
    """Every head of every layer, for one step; `layer`, counted from 0, is the one `made` shows."""
    values, names = _maps(made, look, step, layers)
    each = look.together == "each"
    show(
        sheet(values.numpy(), _away(made, look, step), names, made.queries, made.keys, step)
        | {
            "by_row": look.shade == "row",
            "layers": len(layers),
            "layer": layer,
            "summary": not each,
            "first": layer * made.num_heads if each else 0,
            "heads_per_layer": len(names) // len(layers),
        }
    )
    for remark in _remarks(made, look, step):
        st.caption(remark)


def height(made: Attended) -> int:
    """The height in pixels that the component takes on a wide page, so that it can be kept free until it is there."""
    tokens = max(len(made.queries), len(made.keys))
    lines = min(max(300 / tokens, min(9, 600 / tokens)), 24) * tokens  # as viz/overview/layout.js arranges them
    return round(lines + 112)


def show(data: dict, key: str = "overview") -> None:
    """A sheet of maps on the page."""
    _overview(key=key, data=data, on_pick_change=lambda: _choose(st.session_state[key].pick))


def sheet(
    values: np.ndarray,
    away: np.ndarray | None,
    names: Sequence[str],
    queries: Sequence[str],
    keys: Sequence[str],
    step: Step = Step.WEIGHTS,
) -> dict:
    """What the component draws of `map query key` numbers. `away`: True for a cell drawn as hidden; broadcasts.

    Nothing in it depends on the chosen query or head, so choosing sends nothing.
    """
    return canvas.maps(values, away, signed=step is not Step.WEIGHTS) | {
        "by_row": False,
        "lines": len(queries) * len(keys) <= MOST_LINES,
        "layers": 1,
        "layer": 0,
        "summary": False,
        "first": 0,
        "heads_per_layer": len(names),
        "names": tuple(names),
        "labels": tuple(".".join(re.findall(r"\d+", name)) or name for name in names),
        "queries": tuple(queries),
        "keys": tuple(keys),
        "step": str(step),
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


def _choose(pick: dict) -> None:
    st.session_state.query, st.session_state.head = int(pick["query"]) + 1, int(pick["head"]) + 1
    if pick["layer"] is not None:
        st.session_state.layer = int(pick["layer"]) + 1

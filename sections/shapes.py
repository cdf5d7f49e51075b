"""What every tensor's axes and sizes are, from the input to the output, and what torch calls the same layer."""

from dataclasses import replace
from html import escape

import streamlit as st

from models.multi_head import AttentionConfig
from models.shapes import SYMBOLS, Row, cache_bytes, flow, sharing, torch_twin, totals
from sections import story
from sections.choices import Look
from sections.scene import Attention, Computation
from viz import cells


def render(made: Computation, look: Look) -> None:
    """The flow of shapes; beside it the costs, torch's words for the layer, and shared keys and values."""
    config = made.layer.config
    cross = made.scene.attention is Attention.CROSS
    sizes = {"batch": 1, "queries": len(made.queries), "keys": len(made.keys)}
    rows = flow(config, **sizes, cross=cross, masked=made.visible is not None)
    left, right = st.columns([7, 5], gap="large")
    left.html(_flow(rows))
    with right:
        _costs(rows)
        _torch(config, rows)
        if config.num_heads > 1:
            _sharing(config)
        st.html(_letters(rows))


def _flow(rows: tuple[Row, ...]) -> str:
    """Three lanes for q, k and v, which the scores bring together. HTML."""
    lanes = {lane: [row for row in rows if _lane(row) == lane] for lane in ("query", "key", "value")}
    shared = [row for row in rows if not _lane(row)]
    above, below = [row for row in shared if not row.made_from], [row for row in shared if row.made_from]
    columns = "".join(f'<div class="lane">{"".join(_box(row, lane) for row in of)}</div>' for lane, of in lanes.items())
    return (
        f'<div class="flow">{"".join(_box(row, "") for row in above)}'
        f'<div class="lanes">{columns}</div>{"".join(_box(row, _LAST.get(row.name, "")) for row in below)}</div>'
    )


_LANES = {"q": "query", "k": "key", "v": "value", "query": "query", "key": "key", "value": "value"}
_LAST = {"output": "output"}


def _lane(row: Row) -> str:
    return _LANES.get(row.name.split()[0], "")


def _box(row: Row, role: str) -> str:
    """A tensor, and on the arrow into it what made it and what that cost."""
    cost = [story.counted(row.parameters, "parameter"), story.counted(row.multiplications, "multiplication")]
    paid = ", ".join(part for part in cost if part)
    arrow = (
        f'<div class="made {"view" if row.is_view else ""}">↓ {escape(row.made_by)}'
        f"<small>{story.VIEW if row.is_view else paid}</small></div>"
        if row.made_from
        else ""
    )
    sizes = " × ".join(map(str, row.sizes))
    return (
        f'<div class="step">{arrow}<div class="box {role}"><b>{row.name}</b> <span class="sizes">{sizes}</span>'
        f"<small>{escape(row.axes)}</small><small>{row.symbols}</small></div></div>"
    )


def _costs(rows: tuple[Row, ...]) -> None:
    paid = totals(rows)
    with st.container(horizontal=True):
        st.metric(story.LABELS["parameters"], f"{paid.parameters:,}")
        st.metric(story.LABELS["multiplications"], f"{paid.multiplications:,}")


def _torch(config: AttentionConfig, rows: tuple[Row, ...]) -> None:
    twin = torch_twin(config)
    st.markdown(f"##### {story.HEADINGS['in torch']}")
    if twin.arguments:
        st.code(twin.arguments, language="python", wrap_lines=True)
        named = {row.name: row.sizes for row in rows if not row.made_from or row.name in ("weights", "output")}
        st.html(
            cells.table(
                [story.COLUMNS["tensor"], story.COLUMNS["shape"]],
                [[name, " × ".join(map(str, sizes))] for name, sizes in named.items()],
                caption=story.CAPTIONS["torch shapes"],
            )
        )
        st.caption(story.HINTS["torch follows"])
    else:
        st.markdown(story.HINTS["torch cannot"] + "".join(f"\n- {reason}" for reason in twin.reasons))


def _sharing(config: AttentionConfig) -> None:
    """Which heads share keys and values, and what that saves."""
    st.markdown(f"##### {story.HEADINGS['sharing']}")
    groups = "".join(
        f'<div class="group">{"".join(f"<span class=query>q{head + 1}</span>" for head in heads)}'
        f'<span class="key">k{number}</span><span class="value">v{number}</span></div>'
        for number, heads in enumerate(sharing(config), 1)
    )
    st.html(f'<div class="groups">{groups}</div>')
    kinds = {"multi-head": config.num_heads, "here": config.kv_heads, "multi-query": 1}
    rows = [
        [story.SHARING[kind], f"{shared}", f"{alike.parameters:,}", f"{cache_bytes(alike):,}"]
        for kind, shared in kinds.items()
        for alike in [replace(config, num_kv_heads=shared)]
    ]
    st.html(cells.table(["", *story.SHARING_COLUMNS], rows, caption=story.CAPTIONS["sharing"]))
    st.caption(story.HINTS["sharing"])


def _letters(rows: tuple[Row, ...]) -> str:
    used = {letter for row in rows for letter in row.symbols.replace("·", " ").split()}
    lines = [[symbol.letter, cells.prose(symbol.meaning)] for symbol in SYMBOLS.values() if symbol.letter in used]
    return cells.table([story.COLUMNS["letter"], ""], lines, caption=story.CAPTIONS["letters"])

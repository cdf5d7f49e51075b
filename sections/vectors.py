"""The vectors the tokens start from."""

import streamlit as st

from sections import story
from sections.scene import Computation
from viz import cells

SHOWN = 64
"""Tokens listed; the downloads have all."""
FIT = 24
"""Cells with room for a number, at this width."""


def render(made: Computation) -> None:
    """Every input of the layer, a row a token."""
    section = st.expander(story.HEADINGS["vectors"], key="vectors", on_change="rerun")
    if not section.open:
        return
    with section:
        for name, vectors in made.inputs.items():
            labels = made.queries if name == "query" else made.keys
            top = cells.limit(vectors)
            rows = [
                [cells.token(label, name), cells.vector(vector, top, label=label, fit=FIT)]
                for label, vector in zip(labels[:SHOWN], vectors[:SHOWN], strict=True)
            ]
            parts = story.HINTS["positions" if made.scene.positions else "no positions"]
            st.html(cells.table([story.COLUMNS["token"], f"{name}: {parts}"], rows, caption=story.CAPTIONS["vectors"]))
            if len(labels) > SHOWN:
                st.caption(story.HINTS["shown tokens"].format(shown=SHOWN, count=len(labels)))

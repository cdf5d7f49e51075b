"""The sentence as tokens to pick from, each shaded by the share it gives to the query."""

from pathlib import Path

import streamlit as st

from sections import story
from sections.scene import Computation
from viz.colours import SEQUENTIAL, css_cell, css_role
from viz.numbers import percent

_FILES = Path(__file__).parents[1] / "viz" / "sentence"
_sentence = st.components.v2.component(
    "sentence",
    html=(_FILES / "sentence.html").read_text(),
    css=(_FILES / "sentence.css").read_text(),
    js=(_FILES / "sentence.js").read_text(),
)


def render(made: Computation, head: int, query: int) -> None:
    """The tokens; a click or Enter on one makes it the query. Head and query are counted from 0."""
    shares = made.trace.weights[0, head, query].tolist()
    hidden = [False] * len(shares) if made.visible is None else (~made.visible[query]).tolist()
    keys = [
        {
            "label": label,
            "style": css_cell(share, SEQUENTIAL),
            "share": story.COLUMNS["hidden"] if covered else percent(share),
            "hidden": covered,
        }
        for label, share, covered in zip(made.keys, shares, hidden, strict=True)
    ]
    asks = [{"label": label, "style": "", "share": "", "hidden": False} for label in made.queries]
    cross = "key" in made.inputs
    _sentence(
        key="sentence",
        data={
            "label": story.HEADINGS["sentence"],
            "queries": asks if cross else keys,
            "keys": keys if cross else [],
            "query": query,
            "colour": css_role("query"),
        },
        on_pick_change=_choose,
    )


def _choose() -> None:
    st.session_state.query = int(st.session_state.sentence.pick) + 1

"""The sentence as tokens to pick from, each shaded by the share it gives to the query."""

from functools import partial

import streamlit as st

from sections import canvas, story
from sections.attended import Attended
from viz import cells
from viz.colours import SEQUENTIAL, css_cell, css_role
from viz.numbers import percent

_sentence = st.components.v2.component(
    "sentence",
    html=canvas.script("sentence/sentence.html"),
    css=canvas.script("sentence/sentence.css"),
    js=canvas.script("channel.js", "sentence/sentence.js"),
)


def render(made: Attended, head: int, query: int) -> None:
    """The tokens; a click or Enter on one makes it the query, with shift adds it. Counted from 0."""
    also = _also(made, query)
    weights = made.trace.weights[0, head].numpy()[[query, *also]].sum(axis=0).tolist()
    hidden = [False] * len(weights) if made.visible is None else (~made.visible[[query, *also]]).all(dim=0).tolist()
    write = (lambda total: f"{total:.2f}") if also else percent
    keys = tuple(
        {
            "label": label,
            "style": css_cell(weight / (1 + len(also)), SEQUENTIAL),
            "share": story.COLUMNS["hidden"] if covered else write(weight),
            "hidden": covered,
        }
        for label, weight, covered in zip(made.keys, weights, hidden, strict=True)
    )
    asks = tuple({"label": label, "style": "", "share": "", "hidden": False} for label in made.queries)
    _sentence(
        key="sentence",
        data={
            "label": story.HEADINGS["sentence"],
            "queries": asks if made.two_texts else keys,
            "keys": keys if made.two_texts else (),
            "chosen": {"query": query, "head": made.first_head + head, "also": also},
            "turn": st.session_state.get("turn", 0),
            "colour": css_role("query"),
        },
        on_pick_change=partial(_choose, made.queries),
    )
    if also:
        names = [cells.token(made.queries[one], "query") for one in (query, *also)]
        st.html(f'<p class="remark">{story.summed(names)}</p>')


def _also(made: Attended, query: int) -> list[int]:
    """More queries picked with shift, while the tokens are those they were picked from."""
    tokens, also = st.session_state.get("also", ((), []))
    return [one for one in also if one != query] if tokens == made.queries else []


def _choose(tokens: tuple[str, ...]) -> None:
    pick = st.session_state.sentence.pick
    st.session_state.query, st.session_state.turn = int(pick["query"]) + 1, int(pick["turn"])
    st.session_state.also = (tokens, [int(one) for one in pick["also"]])

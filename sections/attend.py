"""The main page: what was typed, who looks at whom, and every number in between."""

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sections import chain, focus, heads, overview, scaling, sentence, take_away, vectors, walk_through
from sections.attended import Attended
from sections.choices import Look
from sections.scene import Computation
from sections.widgets import room, whole_number


class First(NamedTuple):
    """The head and the query that are open until others are chosen, counted from 1."""

    head: int = 1
    query: int = 1


FIRST = First()


def render(
    made: Attended,
    look: Look,
    *,
    layers: overview.Traces = (),
    layer: int = 0,
    follow: Callable[[int], object] = lambda query: None,
    first: First = FIRST,
) -> None:
    """Every view of one layer. Only what follows the query is drawn again when it changes.

    layers: the records of all layers of a stack, of which `made` is number `layer`, counted from 0.
    `follow` is called with the query, counted from 0, whenever that is. `first` is what is open until one chooses.
    """
    top = room("asking", 74)
    with room("heads", overview.height(made)):
        overview.render(made, look, look.step, layers or [made.trace], layer)
    left, right = st.columns([5, 7], gap="large")
    with left:
        head = whole_number("head", 1, made.num_heads, width=130, default=first.head) - 1 if made.num_heads > 1 else 0
        if made.says:
            st.caption(made.says[head])
        focus.render(made, look, look.step, head)
    walk = walk_through.frame(made, look, head, right)
    with top:
        ask(made, head, walk, follow, first.query)
    if isinstance(made, Computation):
        scaling.render(made, look, head)
    chain.render(made, look, head)
    heads.render(made, look, look.step)
    vectors.render(made)
    take_away.render(made, look.step, head, walk)


@st.fragment
def ask(
    made: Attended,
    head: int,
    walk: walk_through.Frame,
    follow: Callable[[int], object] = lambda query: None,
    first: int = FIRST.query,
) -> None:
    """The query, and what follows it."""
    room, query = _number(made, first)
    walk.follow(query)
    follow(query)
    with room:
        sentence.render(made, head, query)


def pick_query(made: Attended, head: int, first: int) -> int:
    """The query, counted from 0: a token to click in the sentence, and its number. `first` counts from 1."""
    room, query = _number(made, first)
    with room:
        sentence.render(made, head, query)
    return query


def _number(made: Attended, first: int) -> tuple[DeltaGenerator, int]:
    """The query's number, counted from 0, and the place for the sentence beside it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        room = st.container(width="stretch")
        query = whole_number("query", 1, len(made.queries), width=150, default=first) - 1
    return room, query

"""The main page: what was typed, who looks at whom, and every number in between."""

from collections.abc import Callable

import streamlit as st

from models.trace import QUERY_BY_KEY, Step
from sections import chain, focus, heads, scaling, sentence, take_away, vectors, walk_through
from sections.choices import Look
from sections.scene import Computation
from sections.widgets import one_of, whole_number


def render(made: Computation, look: Look, follow: Callable[[int], object] = lambda query: None) -> None:
    """Every view of one computation. Only what follows the query is drawn again when it changes.

    `follow` is called with the query, counted from 0, whenever that is.
    """
    top = st.container()
    left, right = st.columns([5, 7], gap="large")
    many = made.scene.num_heads > 1
    with left, st.container(key="maps"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            step = Step(one_of("step", list(QUERY_BY_KEY), default=Step.WEIGHTS))
            head = whole_number("head", 1, made.scene.num_heads, width=130) - 1 if many else 0
        if many:
            heads.render(made, look, step)
        focus.render(made, look, step, head)
    walk = walk_through.frame(made, right)
    with top:
        _ask(made, look, head, walk, follow)
    scaling.render(made, look, head)
    chain.render(made, look, head)
    vectors.render(made)
    take_away.render(made, step, head, walk)


@st.fragment
def _ask(
    made: Computation, look: Look, head: int, walk: walk_through.Frame, follow: Callable[[int], object]
) -> None:
    """The query, and what follows it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        room = st.container(width="stretch")
        query = whole_number("query", 1, len(made.queries), width=150) - 1
    with room:
        sentence.render(made, head, query)
    walk_through.fill(walk, made, look, head, query)
    follow(query)

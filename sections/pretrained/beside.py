"""One head in two runs, side by side."""

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from models.trace import Step
from sections import focus, story, walk_through
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import show


class Side(NamedTuple):
    """A layer of one run. title: what it is of, as markdown; query: the one whose shares are said, counted from 0."""

    made: Attended
    title: str
    query: int


def render(sides: Sequence[Side], head: int, look: Look) -> None:
    """The weights of a head, counted from 0, in each run, and what one query takes from where."""
    for number, (side, column) in enumerate(zip(sides, st.columns(len(sides), gap="medium"), strict=True), 1):
        with column:
            st.markdown(f"**{side.title}**")
            st.html(f'<p class="say">{walk_through.sentence(side.made, head, side.query)}</p>')
            figure = focus.figure(side.made, Step.WEIGHTS, head)
            show(figure, f"side-{number}", look, alt=story.alt("focus", Step.WEIGHTS, head + 1))

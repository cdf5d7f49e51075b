"""The chosen head close up, with numbers in the cells; a click on a cell picks its query."""

import plotly.graph_objects as go
import streamlit as st

from models.trace import Step
from sections import story
from sections.pictures import hidden, show
from sections.scene import Computation
from viz import heatmaps


def render(made: Computation, step: Step, head: int, query: int) -> None:
    """One head large. Head and query are counted from 0."""
    alt = story.alt("focus", step, head + 1)
    show(figure(made, step, head, query), "focus", alt=alt, on_select=_choose)
    st.caption(story.HINTS["focus"])


def figure(made: Computation, step: Step, head: int, query: int) -> go.Figure:
    """The chosen head, the row of the chosen query outlined."""
    return heatmaps.focus(
        made.trace[step][0, head].numpy(),
        made.queries,
        made.keys,
        signed=step is not Step.WEIGHTS,
        hidden=hidden(made, step),
        query=query,
    )


def _choose() -> None:
    points = st.session_state.focus.selection.points
    if points:
        st.session_state.query = int(points[0]["customdata"][0]) + 1

"""The chosen head close up, with numbers in the cells; a click on a cell picks its query."""

import plotly.graph_objects as go
import streamlit as st

from models.trace import Step
from sections import story
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import hidden, show
from viz import heatmaps


def render(made: Attended, look: Look, step: Step, head: int) -> None:
    """One head large, counted from 0."""
    show(figure(made, step, head), "focus", look, alt=story.alt("focus", step, head + 1), on_select=_choose)
    st.caption(story.HINTS["focus"])


def figure(made: Attended, step: Step, head: int) -> go.Figure:
    """The chosen head, counted from 0."""
    return heatmaps.focus(
        made.trace[step][0, head].numpy(),
        made.queries,
        made.keys,
        signed=step is not Step.WEIGHTS,
        hidden=hidden(made, step),
    )


def _choose() -> None:
    points = st.session_state.focus.selection.points
    if points:
        st.session_state.query = int(points[0]["customdata"][0]) + 1

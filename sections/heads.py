"""Every head at once, as one figure to save."""

import plotly.graph_objects as go
import streamlit as st

from models.trace import Step
from sections import story
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import hidden, show
from viz import heatmaps


def render(made: Attended, look: Look, step: Step) -> None:
    """One map per head, on one colour scale. Drawn only while it is open."""
    if made.num_heads == 1:
        return
    section = st.expander(story.HEADINGS["heads"], key="grid", on_change="rerun")
    if not section.open:
        return
    with section:
        show(figure(made, step), "head-grid", look, alt=story.alt("heads", step, made.num_heads))


def figure(made: Attended, step: Step) -> go.Figure:
    """The maps of all heads."""
    values = made.trace[step][0].numpy()
    return heatmaps.head_grid(
        values, made.queries, made.keys, signed=step is not Step.WEIGHTS, hidden=hidden(made, step)
    )

"""What every plotly picture on the pages shares."""

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from models.trace import Step
from sections.attended import Attended
from sections.choices import Look
from viz import heatmaps


def hidden(made: Attended, step: Step) -> np.ndarray | None:
    """Which cells of a step the mask hides, `query key`; None before the mask, and without one."""
    if made.visible is None or step not in (Step.MASKED, Step.WEIGHTS):
        return None
    return (~made.visible).numpy()


def show(figure: go.Figure, name: str, look: Look, *, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """Draw a figure; its camera saves the chosen type of file."""
    st.plotly_chart(
        figure,
        key=name,
        on_select=on_select or "ignore",
        selection_mode="points",
        config=heatmaps.config(look.picture, name),
        alt=alt,
    )

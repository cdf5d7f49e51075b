"""Every head at once, as small maps of one step."""

import plotly.graph_objects as go

from models.trace import Step
from sections import story
from sections.choices import Look
from sections.pictures import hidden, show
from sections.scene import Computation
from viz import heatmaps


def render(made: Computation, look: Look, step: Step) -> None:
    """One map per head, on one colour scale."""
    show(figure(made, step), "head-grid", look, alt=story.alt("heads", step, made.scene.num_heads))


def figure(made: Computation, step: Step) -> go.Figure:
    """The maps of all heads."""
    values = made.trace[step][0].numpy()
    return heatmaps.head_grid(
        values, made.queries, made.keys, signed=step is not Step.WEIGHTS, hidden=hidden(made, step)
    )

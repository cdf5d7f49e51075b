"""Another scaling than the paper's, and what that does to the weights: both side by side."""

from dataclasses import replace

import streamlit as st

from models.attention import hide, normalise, scale
from models.trace import Step
from sections import story
from sections.choices import Look
from sections.pictures import hidden, show
from sections.scene import Computation, Scale, compute
from viz import heatmaps


def render(made: Computation, look: Look, head: int) -> None:
    """The weights of one head, counted from 0, beside those the paper's division would give."""
    if made.scene.scale is Scale.HEAD_DIM or made.layer.config.factor == made.layer.config.width**-0.5:
        return
    st.markdown(f"##### {story.HEADINGS['scaling']}")
    paper = compute(replace(made.scene, scale=Scale.HEAD_DIM)).layer.config.factor
    sides = {
        made.scene.scale: made.trace.weights,
        Scale.HEAD_DIM: normalise(hide(scale(made.trace.scores, paper), made.visible)),
    }
    for (name, weights), column in zip(sides.items(), st.columns(2, gap="large"), strict=True):
        shown = weights[0, head].numpy()
        figure = heatmaps.focus(shown, made.queries, made.keys, signed=False, hidden=hidden(made, Step.WEIGHTS))
        with column:
            st.markdown(story.SCALINGS[name])
            show(figure, f"scaling-{name}", look, alt=story.alt("focus", Step.WEIGHTS, head + 1))

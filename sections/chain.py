"""The same for every query at once: one head's matrices, from q·k to the weights."""

import streamlit as st

from models.trace import QUERY_BY_KEY, Step
from sections import story
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import hidden, show
from viz import heatmaps


def render(made: Attended, look: Look, head: int) -> None:
    """Drawn only while it is open. Head is counted from 0."""
    section = st.expander(story.HEADINGS["chain"], key="chain", on_change="rerun")
    if not section.open:
        return
    steps = {step: made.trace[step][0, head].numpy() for step in QUERY_BY_KEY}
    figure = heatmaps.chain(steps, made.queries, made.keys, hidden=hidden(made, Step.MASKED))
    with section:
        show(figure, "matrices", look, alt=story.alt("chain", "", head + 1))

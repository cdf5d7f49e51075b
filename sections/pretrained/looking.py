"""Looking at the model: every view of every other page on any layer, head and piece; or the maps between words."""

from dataclasses import replace

import streamlit as st

from models.pretrained.words import merge
from models.trace import Step
from sections import attend, flow, focus, overview, story, walk_through
from sections.attended import Attended
from sections.choices import Look
from sections.limits import MAX_MAPS
from sections.pretrained.runs import Ran
from sections.widgets import whole_number
from viz.cells import readable


def pieces(ran: Ran, layer: int, look: Look, first: attend.First) -> None:
    """Every view of one layer, all heads of all layers above it, and the way of a piece through the block."""
    made, page = ran.attended(layer), st.container()
    section = st.expander(story.HEADINGS["flow"].format(layer=layer + 1), key="flow", on_change="rerun")
    said = section.empty()

    def follow(query: int) -> None:
        if section.open:
            said.html(flow.table(ran.run.traces[layer], query, made.queries[query]))

    with page:
        traces, here = _layers(ran, layer)
        attend.render(made, look, layers=traces, layer=here, follow=follow, first=first)


def words(ran: Ran, layer: int, look: Look, first: attend.First) -> None:
    """The maps between words. Nothing else: no layer ever computed with words."""
    st.caption(story.HINTS["merged"])
    traces, here = _layers(ran, layer)
    traces = [replace(trace, weights=merge(trace.weights, ran.pieces.word)) for trace in traces]
    made, tokens = ran.attended(layer), tuple(map(readable, ran.pieces.words))
    visible = None if made.visible is None else merge(made.visible.float(), ran.pieces.word) > 0
    made = replace(made, queries=tokens, keys=tokens, visible=visible, trace=traces[here])
    top, every_head = st.container(), st.container()
    left, right = st.columns([5, 7], gap="large")
    with left:
        head = whole_number("head", 1, made.num_heads, width=130, default=first.head) - 1
        focus.render(made, look, Step.WEIGHTS, head)
    with every_head:
        overview.render(made, look, Step.WEIGHTS, traces, here)
    with top:
        _ask_word(made, head, right.empty(), first.query)


@st.fragment
def _ask_word(made: Attended, head: int, said, first: int) -> None:
    query = attend.pick_query(made, head, first)
    said.html(f'<p class="say">{walk_through.sentence(made, head, query)}</p>')


def _layers(ran: Ran, layer: int) -> tuple[overview.Traces, int]:
    """All layers for the overview, or the chosen one where all would be too much; and the place of the chosen one."""
    traces = [trace.attention for trace in ran.run.traces]
    weights = sum(trace.weights.numel() for trace in traces)
    if weights <= MAX_MAPS:
        return traces, layer
    st.caption(story.one_layer(weights, layer + 1))
    return traces[layer : layer + 1], 0

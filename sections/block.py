"""The transformer block around the attention: what happens to one token, part by part, layer by layer."""

from dataclasses import replace

import streamlit as st

from sections import attend, flow, story
from sections.choices import Look
from sections.limits import MAX_LAYERS
from sections.scene import Computation, Refused, Source, Stack, compute, compute_stack
from sections.widgets import one_of, whole_number


def render(made: Computation, look: Look) -> None:
    """The flow through one layer for the chosen token; below, the attention inside it, by the same views."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        norm = one_of("norm", ["post", "pre"], default="post")
        activation = one_of("activation", ["relu", "gelu"], default="relu")
        layers = whole_number("layers", 1, MAX_LAYERS, width=130)
        layer = whole_number("layer", 1, layers, width=130) - 1
    st.caption(story.NORMS[norm])
    try:
        made = _drawn(made)
        traces, blocks = compute_stack(Stack(made.scene, layers, norm, activation))
    except ValueError as refusal:  # of the scene, or of an attention whose output cannot be added to its input
        st.error(str(refusal))
        if not isinstance(refusal, Refused):
            st.caption(story.HINTS["block needs"])
        return
    trace = traces[layer]
    said = st.empty()
    st.markdown(f"##### {story.HEADINGS['inside'].format(layer=layer + 1)}")
    asked = trace.before if norm == "post" else trace.normalised
    inside = replace(made, inputs={"query": asked[0]}, layer=blocks[layer].attention, trace=trace.attention)
    attend.render(inside, look, layers=[one.attention for one in traces], layer=layer, follow=lambda query: said.html(flow.table(trace, query, made.queries[query])))


def _drawn(made: Computation) -> Computation:
    """With random vectors, since the worked example has no block."""
    if made.scene.source is Source.RANDOM:
        return made
    st.caption(story.BLOCK_RANDOM.format(seed=made.scene.seed))
    return compute(replace(made.scene, source=Source.RANDOM))

"""A real model on one's own sentence: every head of every layer, by the same views and some of its own."""

from dataclasses import replace

import streamlit as st

from models.pretrained.model import Pretrained
from models.pretrained.pieces import Pieces
from models.pretrained.transformer import Run
from models.pretrained.words import merge, typed
from models.trace import Step
from sections import attend, flow, focus, overview, sentence, story, walk_through
from sections.attended import Attended
from sections.choices import Look, choose_look
from sections.limits import MAX_MAPS
from sections.pretrained import find_heads, knock_out, readings, runs, two_sentences
from sections.pretrained.model_files import model_or_say
from sections.pretrained.typed import examples, read_or_say
from sections.widgets import one_of, switch, whole_number
from viz import cells

FIRST_LAYER, FIRST = 4, attend.First(head=2, query=11)
"""What is open at first: the head that finds what *it* is, at *it*. Counted from 1."""


def render() -> None:
    """A text, what to do with it, and that."""
    st.markdown(f"#### {story.PAGES['pretrained']}")
    pretrained = model_or_say()
    if pretrained is None:
        return
    pieces = read_or_say(pretrained, "real_text")
    examples()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        tool = one_of("tool", list(story.TOOLS), default="look")
        layer = _layer(pretrained) if tool in ("look", "readings") else 0
        with st.popover(story.LABELS["more"], icon=":material/tune:"):
            merged = switch("merged", False)
            look = choose_look()
    if pieces is None:
        return
    st.caption(story.TOOLS[tool].format(**_counts(pretrained, pieces)))
    run, first = runs.run(pretrained, pieces), _open_at(pieces)
    if tool == "find":
        find_heads.render(pretrained, pieces, run)
    elif tool == "compare":
        two_sentences.render(pretrained, pieces, run, look)
    elif tool == "knock-out":
        knock_out.render(pretrained, pieces, run, look)
    elif tool == "readings":
        readings.render(pretrained, pieces, run, layer, look, first)
    elif merged:
        _words(pretrained, pieces, run, layer, look, first)
    else:
        _look(pretrained, pieces, run, layer, look, first)


def _layer(pretrained: Pretrained) -> int:
    return whole_number("layer", 1, pretrained.architecture.layers, width=120, default=FIRST_LAYER) - 1


def _counts(pretrained: Pretrained, pieces: Pieces) -> dict[str, object]:
    made = pretrained.architecture
    return {"model": pretrained.name, "layers": made.layers, "heads": made.heads, "pieces": len(pieces)}


def _open_at(pieces: Pieces) -> attend.First:
    """The query stays on what is typed when the text gets shorter."""
    last = max(place for place, word in enumerate(pieces.word, 1) if word in typed(pieces))
    if st.session_state.get("query", 1) > len(pieces):
        st.session_state.query = last
    return FIRST._replace(query=min(FIRST.query, last))


# ---- looking ----


def _look(pretrained: Pretrained, pieces: Pieces, run: Run, layer: int, look: Look, first: attend.First) -> None:
    """Every view of one layer, all heads of all layers above it, and the way of a piece through the block."""
    made, page = runs.attended(pretrained, pieces, run, layer), st.container()
    section = st.expander(story.HEADINGS["flow"].format(layer=layer + 1), key="flow", on_change="rerun")
    said = section.empty()

    def follow(query: int) -> None:
        if section.open:
            said.html(flow.table(run.traces[layer], query, made.queries[query]))

    with page:
        attend.render(made, look, **_layers(run, layer), follow=follow, first=first)


def _layers(run: Run, layer: int) -> dict:
    """All layers for the overview, or the chosen one where all would be too much."""
    if run.weights.numel() <= MAX_MAPS:
        return {"layers": [trace.attention for trace in run.traces], "layer": layer}
    st.caption(story.one_layer(run.weights.numel(), layer + 1))
    return {}


# ---- words ----


def _words(pretrained: Pretrained, pieces: Pieces, run: Run, layer: int, look: Look, first: attend.First) -> None:
    """The maps between words. Nothing else: no layer ever computed with words."""
    st.caption(story.HINTS["merged"])
    of_layers = _layers(run, layer)
    traces = [
        replace(trace, weights=merge(trace.weights, pieces.word))
        for trace in of_layers.get("layers", [run.traces[layer].attention])
    ]
    here, words = of_layers.get("layer", 0), tuple(map(cells.readable, pieces.words))
    made = runs.attended(pretrained, pieces, run, layer)
    visible = None if made.visible is None else merge(made.visible.float(), pieces.word) > 0
    made = replace(made, queries=words, keys=words, visible=visible, trace=traces[here])
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
    with st.container(horizontal=True, vertical_alignment="bottom"):
        room = st.container(width="stretch")
        query = whole_number("query", 1, len(made.queries), width=150, default=first) - 1
    with room:
        sentence.render(made, head, query)
    said.html(f'<p class="say">{walk_through.sentence(made, head, query)}</p>')

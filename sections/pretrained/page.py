"""A real model on one's own sentence: every head of every layer, by the same views and some of its own."""

import streamlit as st

from models.pretrained.model import Pretrained
from models.pretrained.pieces import Pieces
from models.pretrained.words import typed
from sections import story
from sections.attend import First
from sections.choices import choose_look
from sections.pretrained import find_heads, knock_out, looking, readings, runs, two_sentences
from sections.pretrained.model_files import model_or_say
from sections.pretrained.typed import examples, read_or_say
from sections.widgets import one_of, switch, whole_number

FIRST_LAYER, FIRST = 4, First(head=2, query=11)
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
            merged = tool == "look" and switch("merged", False)
            look = choose_look()
    if pieces is None:
        return
    st.caption(story.TOOLS[tool].format(**_counts(pretrained, pieces)))
    ran, first = runs.run(pretrained, pieces), _first(pieces)
    if tool == "find":
        find_heads.render(ran)
    elif tool == "compare":
        two_sentences.render(ran, look)
    elif tool == "knock-out":
        knock_out.render(ran, look)
    elif tool == "readings":
        readings.render(ran, layer, look, first)
    elif merged:
        looking.words(ran, layer, look, first)
    else:
        looking.pieces(ran, layer, look, first)


def _layer(pretrained: Pretrained) -> int:
    return whole_number("layer", 1, pretrained.architecture.layers, width=120, default=FIRST_LAYER) - 1


def _counts(pretrained: Pretrained, pieces: Pieces) -> dict[str, object]:
    made = pretrained.architecture
    return {"model": pretrained.name, "layers": made.layers, "heads": made.heads, "pieces": len(pieces)}


def _first(pieces: Pieces) -> First:
    """What is open at first. The query stays on what is typed when the text gets shorter."""
    last = max(place for place, word in enumerate(pieces.word, 1) if word in typed(pieces))
    if st.session_state.get("query", 1) > len(pieces):
        st.session_state.query = last
    return FIRST._replace(query=min(FIRST.query, last))

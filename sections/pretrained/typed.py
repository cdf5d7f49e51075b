"""What is typed for the pretrained model."""

from math import isqrt

import streamlit as st

from models.pretrained.errors import Unreadable
from models.pretrained.model import Pretrained
from models.pretrained.pieces import Pieces
from sections import story
from sections.limits import MAX_CHARACTERS, MAX_RUN_WEIGHTS
from sections.markdown import literal
from sections.widgets import choose, line


def read_or_say(pretrained: Pretrained, name: str) -> Pieces | None:
    """The pieces of the text typed under a name; where there are none, the reason right below it, and None."""
    text = line(name, default=story.REAL[name])
    try:
        if len(text) > MAX_CHARACTERS:
            raise Unreadable(story.too_many_characters(len(text), MAX_CHARACTERS))
        pieces = pretrained.read(text)
        maps = pretrained.architecture.layers * pretrained.architecture.heads
        if len(pieces) > (most := isqrt(MAX_RUN_WEIGHTS // maps)):
            raise Unreadable(story.too_many_pieces(len(pieces), most, maps))
        return pieces
    except Unreadable as refusal:
        st.error(literal(str(refusal)))
        return None


def examples() -> None:
    """Pairs of sentences that differ in a word; the second one is for comparing."""

    def apply() -> None:
        one, other = story.PAIRS[st.session_state.pair]
        st.session_state.pair = None
        choose(real_text=one, real_other=other)

    st.pills(story.LABELS["examples"], list(story.PAIRS), key="pair", on_change=apply, label_visibility="collapsed")

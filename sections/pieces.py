"""Pieces of HTML that follow a choice at once, wherever on the page they stand.

Streamlit would clean every piece and build it anew, which takes most of the time from a click to what it shows. Here
one message brings them all, and the browser writes over what differs.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from sections import canvas

_place = st.components.v2.component(
    "place",
    html=canvas.script("pieces/place.html"),
    js=canvas.script("channel.js", "pieces/place.js"),
    isolate_styles=False,  # the pieces are styled as the rest of the page
)
_pieces = st.components.v2.component("pieces", js=canvas.script("channel.js", "pieces/pieces.js"))


def place(name: str, words: Sequence[str] = ("",)) -> None:
    """Where the pieces of that name will stand, each below or beside its words, which are HTML and stay."""
    _place(key=f"place-{name}", data={"name": name, "words": words})


def send(pieces: Mapping[str, Sequence[str]]) -> None:
    """HTML for places by their names. To be called in the fragment that makes it; the places may stand outside."""
    _pieces(key="pieces", data=pieces)

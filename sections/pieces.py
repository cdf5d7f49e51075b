"""Pieces of HTML that follow the chosen query at once, wherever on the page they stand.

Streamlit would clean every piece and build it anew for each query, and asking the server for one takes longer than drawing
it. Here one message brings them all with blanks for the numbers, and the browser fills these in for the query that is
chosen.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow
import streamlit as st

from sections import canvas

_place = st.components.v2.component(
    "place",
    html=canvas.script("pieces/place.html"),
    js=canvas.script("channel.js", "numbers.js", "pieces/fill.js", "pieces/place.js"),
    isolate_styles=False,  # the pieces are styled as the rest of the page
)
_pieces = st.components.v2.component("pieces", js=canvas.script("channel.js", "pieces/pieces.js"))


def place(name: str, words: Sequence[str]) -> None:
    """Where the pieces of that name will stand, each below or beside its words, which are HTML and stay."""
    _place(key=f"place-{name}", data={"name": name, "words": tuple(words)})


def send(
    pieces: Mapping[str, Sequence[str]],
    numbers: np.ndarray,
    said: Sequence[str],
    names: Mapping[str, Sequence[str]],
    *,
    first: int,
) -> None:
    """HTML for places by their names; the places may stand elsewhere.

    numbers: `query number`, what goes into their blanks (viz.blanks). said: HTML about each of these queries.
    names: what the tokens of each role are called. The first of the queries is counted from 0.
    """
    _pieces(
        key="pieces",
        data={
            "pieces": pieces,
            "numbers": pyarrow.table({"numbers": pyarrow.array(numbers.ravel())}),
            "width": numbers.shape[1],
            "said": tuple(said),
            "names": names,
            "first": first,
        },
    )

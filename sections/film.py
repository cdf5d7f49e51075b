"""A model while it learns: its maps at every checkpoint on the typed text, beside how well it does."""

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st
import torch
from torch import Tensor

from sections import canvas, story

_film = st.components.v2.component(
    "film",
    html=canvas.script("film/film.html"),
    css=canvas.script("film/film.css"),
    js=canvas.script("overview/codes.js", "overview/layout.js", "overview/paint.js", "film/film.js"),
)


class Moment(NamedTuple):
    """A model after some steps of training. maps: `layer query key`; measured: a loss, and shares, by name."""

    step: int
    answer: str
    maps: Tensor
    measured: dict[str, float]


def render(moments: Sequence[Moment], tokens: Sequence[str], layers: Sequence[str], hidden: Tensor, key: str) -> None:
    """A scrub bar, a play button, and all that moves with them. hidden: `layer query key`, True where nobody may look."""
    values = torch.cat([one.maps for one in moments]).numpy()
    away = hidden.repeat(len(moments), 1, 1).numpy()
    _film(
        key=key,
        data=canvas.maps(values, away, signed=False)
        | {
            "by_row": False,
            "tokens": list(tokens),
            "layers": list(layers),
            "steps": [one.step for one in moments],
            "answers": [one.answer for one in moments],
            "curves": {name: [one.measured[name] for one in moments] for name in moments[0].measured},
            "words": story.FILM,
        },
    )

"""One number for every head of every layer, as a table of cells to click."""

from collections.abc import Callable, Collection

import streamlit as st
from torch import Tensor

from models.block import Heads
from sections import canvas, story
from sections.widgets import Head
from viz.colours import SEQUENTIAL, css_cell, css_role

_scores = st.components.v2.component(
    "scores",
    html=canvas.script("scores/scores.html"),
    css=canvas.script("scores/scores.css"),
    js=canvas.script("scores/scores.js"),
)


def render(
    scores: Tensor,
    label: str,
    write: Callable[[float], str],
    *,
    chosen: Heads = (),
    pick: Callable[[Head], None],
    key: str = "scores",
) -> None:
    """`layer head`, shaded from 0 to the largest; `pick` is called with the head clicked, before the page reruns."""
    most = float(scores.nan_to_num(0).max()) or 1.0

    def answer() -> None:
        picked = st.session_state[key].pick
        if picked:
            pick((int(picked["layer"]), int(picked["head"])))

    _scores(
        key=key,
        data={
            "label": label,
            "mark": css_role("output"),
            "rows": [story.layer_name(layer + 1) for layer in range(len(scores))],
            "columns": [str(head + 1) for head in range(scores.shape[1])],
            "cells": [
                [_cell(value, most, (layer, head), write, chosen) for head, value in enumerate(row)]
                for layer, row in enumerate(scores.tolist())
            ],
        },
        on_pick_change=answer,
    )


def _cell(value: float, most: float, head: Head, write: Callable[[float], str], chosen: Collection[Head]) -> dict:
    known = value == value  # not NaN, which no shade stands for
    return {
        "text": write(value),
        "title": f"{story.head_name(*head)}: {write(value)}",
        "style": css_cell(value / most, SEQUENTIAL) if known else "background:transparent;color:inherit",
        "chosen": head in chosen,
    }


def name(head: Head) -> str:
    """A head in the address: layer and head counted from 1, as 4.2."""
    return f"{head[0] + 1}.{head[1] + 1}"


def named(written: str) -> Head:
    """The head that `name` wrote so."""
    layer, _, head = written.partition(".")
    return int(layer) - 1, int(head) - 1

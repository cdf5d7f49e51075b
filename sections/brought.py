"""Bring your own attention: maps of weights from a file, and the scores behind them where it has q and k."""

import re

import numpy as np
import streamlit as st
from einops import einsum

from models.brought import MOST_BYTES, Brought, Unreadable, read
from viz import heatmaps
from viz.cells import readable

WORDS = {
    "intro": "A file of attention weights from any model, drawn by the same views. It stays in this session and nowhere else.",
    "file": "Weights as .npz, .safetensors or .json",
    "format": "It holds `weights`: (heads, queries, keys) or (layers, heads, queries, keys); and if you have them `tokens`, or "
    "`queries` and `keys`, and `q`, `k` and `v` with the same leading axes. In .safetensors the tokens are JSON text in the "
    "metadata.",
    "layer": "Layer",
    "head": "Head",
    "heads": "The weights of all {} heads of layer {}, a small map each: a row for every query, a column for every key.",
    "focus": "The weights of head {} in layer {}: a row for every query, a column for every key.",
    "scores": "q·k divided by √{}, of head {} in layer {}: a row for every query, a column for every key.",
    "far": "Its softmax is up to {:.1e} from the weights in the file.",
}


def render() -> None:
    """Asks for a file and draws what it holds."""
    st.markdown(WORDS["intro"])
    file = st.file_uploader(WORDS["file"], ["npz", "safetensors", "json"], key="brought", max_upload_size=MOST_BYTES >> 20)
    if file is None:
        st.caption(WORDS["format"])
        return
    try:
        brought = read(file.name, file.getvalue())
    except Unreadable as refused:
        st.error(_plain(str(refused)))
        st.caption(WORDS["format"])
        return
    for remark in brought.remarks:
        st.warning(_plain(remark))
    _draw(brought)


def _draw(brought: Brought) -> None:
    layers, heads = brought.weights.shape[:2]
    with st.container(horizontal=True):
        layer = _chosen("layer", layers)
        head = _chosen("head", heads)
    sides = tuple(map(readable, brought.queries)), tuple(map(readable, brought.keys))
    left, right = st.columns(2, gap="large")
    with left:
        grid = heatmaps.head_grid(brought.weights[layer], *sides, signed=False)
        st.plotly_chart(grid, alt=WORDS["heads"].format(heads, layer + 1))
    with right:
        focus = heatmaps.focus(brought.weights[layer, head], *sides, signed=False)
        st.plotly_chart(focus, alt=WORDS["focus"].format(head + 1, layer + 1))
        if brought.q is not None and brought.k is not None:
            _scores(brought, layer, head, sides)


def _scores(brought: Brought, layer: int, head: int, sides: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    """q·k as the file has them, and how far their softmax is from the file's weights."""
    q, k, weights = (array[layer, head] for array in (brought.q, brought.k, brought.weights))
    scores = einsum(q, k, "query head_dim, key head_dim -> query key") / np.sqrt(q.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    far = np.abs(shares / shares.sum(-1, keepdims=True) - weights).max()
    words = WORDS["scores"].format(q.shape[-1], head + 1, layer + 1)
    st.caption(f"{words} {WORDS['far'].format(far)}")
    st.plotly_chart(heatmaps.focus(scores, *sides, signed=True), alt=words)


def _chosen(name: str, count: int) -> int:
    """Of layers or heads, counted from 0."""
    return st.number_input(WORDS[name], 1, count, key=f"brought-{name}", width=130) - 1 if count > 1 else 0


def _plain(text: str) -> str:
    """What a file says of itself, as text and not as Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#!|$~:&])", r"\\\1", text)

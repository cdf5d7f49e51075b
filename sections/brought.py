"""Bring your own attention: maps of weights from a file, and the arithmetic behind them where it has q, k and v."""

import streamlit as st
import torch
from einops import rearrange

from models.brought import MOST_BYTES, Brought, Unreadable, read
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import Step
from sections import attend, overview, story, walk_through
from sections.attended import Attended
from sections.choices import Look
from sections.markdown import literal
from sections.pictures import show
from sections.widgets import whole_number
from viz import heatmaps
from viz.cells import readable


def render() -> None:
    """Asks for a file and draws what it holds."""
    st.markdown(story.BROUGHT["intro"])
    types = ["npz", "safetensors", "json"]
    file = st.file_uploader(story.BROUGHT["file"], types, key="brought", max_upload_size=MOST_BYTES >> 20)
    if file is None:
        st.caption(story.BROUGHT["format"])
        return
    try:
        brought = read(file.name, file.getvalue())
    except Unreadable as refused:
        st.error(literal(str(refused)))
        st.caption(story.BROUGHT["format"])
        return
    for remark in brought.remarks:
        st.warning(literal(remark))
    _draw(brought)


def _draw(brought: Brought) -> None:
    layers, heads = brought.weights.shape[:2]
    queries, keys = tuple(map(readable, brought.queries)), tuple(map(readable, brought.keys))
    with st.container(horizontal=True):
        layer = whole_number("layer", 1, layers, width=130) - 1 if layers > 1 else 0
        head = whole_number("head", 1, heads, width=130) - 1 if heads > 1 else 0
    top = st.container()
    names = [story.map_name("each", one + 1, layers, other + 1) for one in range(layers) for other in range(heads)]
    maps = rearrange(brought.weights, "layer head query key -> (layer head) query key")
    place = {"layers": layers, "layer": layer, "first": layer * heads, "heads_per_layer": heads}
    overview.show(overview.sheet(maps, None, names, queries, keys) | place)
    made = _attended(brought, layer, head, queries, keys)
    if made is None:
        figure = heatmaps.focus(brought.weights[layer, head], queries, keys, signed=False)
        show(figure, "focus", Look(), alt=story.alt("focus", Step.WEIGHTS, head + 1))
        st.caption(story.BROUGHT["weights alone"])
        return
    far = (made.trace.weights[0, 0] - torch.from_numpy(brought.weights[layer, head])).abs().max().item()
    st.caption(story.BROUGHT["far"].format(far=far, width=made.layer.config.width))
    walk = walk_through.frame(made, Look(), 0, st.container())
    with top:
        attend.ask(made, 0, walk)


def _attended(
    brought: Brought, layer: int, head: int, queries: tuple[str, ...], keys: tuple[str, ...]
) -> Attended | None:
    """One head worked out again from the q, k and v of a file; None without them, or where they differ in width."""
    q, k, v = (None if one is None else torch.from_numpy(one[layer, head]) for one in (brought.q, brought.k, brought.v))
    if q is None or k is None or v is None or v.shape[-1] != q.shape[-1]:
        return None
    width = q.shape[-1]
    module = MultiHeadAttention(AttentionConfig(embed_dim=width, projections=False, output_projection=False))
    visible = torch.from_numpy(brought.weights[layer, head] > 0)  # a softmax gives zero to hidden keys alone
    visible = None if visible.all() else visible
    return Attended(
        queries=queries,
        keys=keys,
        two_texts=queries != keys,
        inputs={"query": q, "key": k, "value": v},
        visible=visible,
        layer=module,
        trace=module.trace(q[None], k[None], v[None], visible=visible),
        origin=story.BROUGHT["origin"],
        first_head=head,
        remarks={Step.Q: story.BROUGHT["origin"]},
    )

"""The current scene in torch's words: as code in three dialects, and its mask in torch's two opposite senses."""

from dataclasses import replace
from inspect import getsource

import streamlit as st
import torch

from models import attention, both_ways
from models.snippets import PATTERNS, Setting, snippets
from models.tokens import PAD
from models.twin import as_torch, obstacles
from sections import story
from sections.choices import Look
from sections.limits import MAX_TOKENS
from sections.scene import Attention, Computation, Mask, Refused, Source, compute
from sections.widgets import one_of


def render(made: Computation, look: Look) -> None:
    """Code, the mask both ways, and our own steps to read."""
    if made.scene.source is Source.GLASS:
        st.caption(story.CODE_RANDOM.format(seed=made.scene.seed))
        try:
            made = compute(replace(made.scene, source=Source.RANDOM))
        except Refused as refusal:  # glass heads have sizes of their own, random ones those of the address
            st.error(refusal.reason)
            return
    agreed, code = st.columns([4, 8], gap="large")
    with code:
        st.markdown(f"##### {story.HEADINGS['code']}")
        dialect = one_of("dialect", list(story.DIALECTS), default="einops")
        st.caption(story.DIALECTS[dialect])
        st.code(snippets(_setting(made))[dialect], language="python", wrap_lines=True)
    with agreed:
        st.markdown(f"##### {story.HEADINGS['both ways']}")
        _mask(made)
    with st.expander(story.HEADINGS["own steps"]):
        st.code(getsource(attention), language="python", wrap_lines=True)


def _setting(made: Computation) -> Setting:
    scene = made.scene
    cross = scene.attention is Attention.CROSS
    return Setting(
        config=made.layer.config,
        queries=tuple(scene.split("text")[:MAX_TOKENS]),
        keys=tuple(scene.split("context")[:MAX_TOKENS]) if cross else None,
        seed=scene.seed,
        worked_example=scene.source is Source.WORKED_EXAMPLE,
        positions=scene.positions,
        pattern=str(scene.mask) if scene.mask in PATTERNS else None,
        width=scene.width,
        length=scene.length,
        padding=scene.padding or scene.mask is Mask.PADDING,
    )


def _mask(made: Computation) -> None:
    """The mask as ours, as the module's and as the function's, with the code that passes it and what comes of it."""
    if made.visible is None:
        st.info(story.HINTS["no mask"])
        return
    visible, trace = made.visible, made.trace
    st.code(f"visible = torch.{visible}", language="python", wrap_lines=True)
    st.markdown(story.HINTS["function keeps"])
    st.code(getsource(both_ways.with_function), language="python", wrap_lines=True)
    sees = visible.any(dim=-1)
    context = both_ways.with_function(trace.q, trace.k, trace.v, made.layer.config.factor, visible)
    _difference("context", context[:, :, sees], trace.context[:, :, sees])
    st.markdown(story.HINTS["module hides"])
    keep = torch.tensor([[token != PAD for token in made.keys]])
    padding_only = made.scene.mask in (Mask.NONE, Mask.PADDING)
    passed, hides = ("key_padding_mask = ~keep", ~keep) if padding_only else ("attn_mask = ~visible", ~visible)
    st.code("\n# ".join([passed, *str(hides).splitlines()]), language="python", wrap_lines=True)
    function = both_ways.with_padding if padding_only else both_ways.with_module
    st.code(getsource(function), language="python", wrap_lines=True)
    if why := obstacles(made.layer.config):
        st.caption(story.HINTS["module cannot"] + " " + "; ".join(why) + ".")
        return
    inputs = [tensor[None] for tensor in made.inputs.values()]
    query, key, value = inputs if len(inputs) == 3 else inputs * 3
    output = function(as_torch(made.layer), query, key, value, keep if padding_only else visible)
    _difference("output", output[:, sees], trace.output[:, sees])


def _difference(name: str, theirs: torch.Tensor, ours: torch.Tensor) -> None:
    largest = (theirs - ours).abs().max().item() if ours.numel() else 0.0
    st.caption(story.HINTS["difference"].format(name=name, largest=largest))

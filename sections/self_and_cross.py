"""Self-attention and cross-attention side by side, and both as a lookup in a soft table."""

from dataclasses import replace
from html import escape

import numpy as np
import streamlit as st

from models.trace import Step
from sections import story
from sections.arithmetic import heaviest
from sections.choices import Look
from sections.pictures import hidden, show
from sections.scene import Attention, Computation, Refused, Source, compute
from sections.widgets import line, whole_number
from viz import cells, heatmaps
from viz.numbers import percent


def render(made: Computation, look: Look) -> None:
    """The typed text asking itself, and asking the second text, in one head."""
    kept = made.scene.context if made.scene.attention is Attention.CROSS else line("context")
    alike = replace(made.scene, context=kept, source=Source.RANDOM)  # what is made by hand is of one kind only
    heads = Attention.MULTI_HEAD if alike.num_heads > 1 else Attention.SINGLE_HEAD
    if made.scene.source is not Source.RANDOM:
        st.caption(story.SIDES_RANDOM.format(seed=made.scene.seed))
    scenes = {
        "self": replace(alike, attention=heads),
        "cross": replace(alike, attention=Attention.CROSS, heads=alike.num_heads),
    }
    query = whole_number("query", 1, len(made.queries), width=150) - 1
    for (kind, scene), column in zip(scenes.items(), st.columns(2, gap="large"), strict=True):
        with column:
            st.markdown(f"##### {story.KINDS[kind].title}")
            st.markdown(story.KINDS[kind].says)
            try:
                _side(compute(scene), look, kind, query)
            except Refused as refusal:
                st.error(refusal.reason)
    head, rows = story.SAME_AND_DIFFERENT
    wrapped = [[first, *map(cells.prose, rest)] for first, *rest in rows]
    st.html(cells.table(head, wrapped, caption=story.CAPTIONS["same and different"]))


def _side(made: Computation, look: Look, kind: str, query: int) -> None:
    weights = made.trace[Step.WEIGHTS][0, 0].numpy()
    figure = heatmaps.focus(weights, made.queries, made.keys, signed=False, hidden=hidden(made, Step.WEIGHTS))
    show(figure, f"side-{kind}", look, alt=story.alt("focus", Step.WEIGHTS, 1))
    st.html(_lookup(made, query))


def _lookup(made: Computation, query: int) -> str:
    """The query against a table of keys and values, and the answer blended from it. Of many keys the heaviest."""
    weights, v = made.trace.weights[0, 0, query].numpy(), made.trace.v[0, 0].numpy()
    top, shown = cells.limit(v), heaviest(weights)
    rows = [[cells.token(made.keys[i], "key"), *_share(weights[i]), cells.vector(v[i], top, label="v")] for i in shown]
    if len(others := np.delete(weights, shown)):
        rows.append([story.other_keys(len(others)), *_share(others.sum()), ""])
    answer = cells.vector(made.trace.context[0, 0, query].numpy(), top, label="z")
    asked = cells.token(made.queries[query], "query")
    head = [story.COLUMNS["key"], story.COLUMNS["match"], "", story.COLUMNS["value"]]
    foot = [f"{asked} {story.COLUMNS['gets']}", "", "", f'<span class="ring value">{answer}</span>']
    return cells.table(head, rows, foot, caption=story.CAPTIONS["lookup"])


def _share(weight: float) -> tuple[str, str]:
    """A weight as a bar and in words."""
    return cells.bar(weight), escape(percent(weight))

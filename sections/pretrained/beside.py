"""One head in two runs, side by side: the one that changed most, or any other."""

from collections.abc import Sequence
from html import escape

import streamlit as st
from torch import Tensor

from models.pretrained.compare import Pair
from models.pretrained.find_heads import ranked as rank
from models.trace import Step
from sections import focus, story, walk_through
from sections.choices import Look
from sections.pictures import show
from sections.pretrained import scores
from sections.pretrained.runs import Ran
from sections.widgets import Head, ranked
from viz import cells
from viz.numbers import percent


def render(moved: Tensor, pairs: Sequence[Pair], sides: dict[str, Ran], look: Look) -> Head:
    """A head's weights in both runs, and what one query takes from where. Gives the head.

    moved: the share of its weight that went elsewhere, for each query, `layer head query`.
    pairs: for each of these queries its place in each run. sides: both runs, by what they are called.
    """
    names = [next(iter(sides.values())).tokens[before] for before, _ in pairs]
    with st.container(horizontal=True):
        heads = [(layer, head) for layer, head, _ in rank(moved.mean(dim=-1))]
        layer, head = heads[ranked("moved_head", [scores.name(one) for one in heads])]
        queries = moved[layer, head].argsort(descending=True).tolist()
        query = queries[ranked("moved_query", [f"{pairs[one][0] + 1} {names[one]}" for one in queries])]
    said = story.moved_most(
        story.head_name(layer, head),
        cells.token(names[queries[0]], "query"),
        escape(percent(moved[layer, head].max().item())),
        escape(percent(moved[layer, head].mean().item())),
    )
    st.html(f'<p class="say">{said}</p>')
    columns = st.columns(2, gap="medium")
    for number, (title, ran), column in zip((0, 1), sides.items(), columns, strict=True):
        made = ran.attended(layer)
        with column:
            st.markdown(f"**{story.SIDES[title]}**")
            st.html(f'<p class="say">{walk_through.sentence(made, head, pairs[query][number])}</p>')
            figure = focus.figure(made, Step.WEIGHTS, head)
            show(figure, f"side-{number + 1}", look, alt=story.alt("focus", Step.WEIGHTS, head + 1))
    return layer, head

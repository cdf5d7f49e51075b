"""Any heads silenced, and what that does to all that comes after them."""

import streamlit as st

from models.pretrained.knock_out import Effect, effect
from models.pretrained.model import Pretrained
from sections import story
from sections.choices import Look
from sections.pretrained import beside, scores
from sections.pretrained.runs import Ran, Silenced
from sections.widgets import Head, choose
from viz import cells
from viz.numbers import exact, percent

OPEN = (3, 1)
"""The head that is silenced at first: the one the page opens with."""


def render(ran: Ran, look: Look) -> None:
    """Which heads, what it does to the sentence's vector and to each piece's, and to every later head."""
    silenced = _silenced(ran.pretrained)
    if not silenced:
        st.info(story.HINTS["nothing silenced"])
    without = ran.without(silenced)
    done = effect(ran.run, without.run)
    st.html(f'<p class="say">{story.cosine(exact(done.sentence))}</p>{_of_pieces(ran, done)}')
    st.markdown(f"##### {story.HEADINGS['later heads']}")
    st.caption(story.HINTS["later heads"])

    def toggle(head: Head) -> None:
        choose(silenced=[scores.name(one) for one in sorted(silenced ^ {head})])

    scores.render(done.moved.mean(dim=-1), story.HEADINGS["later heads"], percent, chosen=silenced, pick=toggle)
    if done.moved.any():
        same = [(place, place) for place in range(len(ran.pieces))]
        beside.render(done.moved, same, {"intact": ran, "without": without}, look)


def _silenced(pretrained: Pretrained) -> Silenced:
    made = pretrained.architecture
    every = [scores.name((layer, head)) for layer in range(made.layers) for head in range(made.heads)]
    first = [name for name in [scores.name(OPEN)] if name in every]
    names = st.multiselect(
        story.LABELS["silenced"], every, first, key="silenced", bind="query-params", help=story.HELP["silenced"]
    )
    return frozenset(map(scores.named, names))


def _of_pieces(ran: Ran, done: Effect) -> str:
    row = [story.COLUMNS["cosine"], *map(exact, done.pieces.tolist())]
    return cells.table(["", *map(cells.token, ran.tokens)], [row], caption=story.CAPTIONS["cosines"])

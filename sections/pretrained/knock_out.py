"""Any heads silenced, and what that does to all that comes after them."""

from html import escape

import streamlit as st

from models.pretrained.find_heads import ranked
from models.pretrained.knock_out import Effect, effect
from models.pretrained.model import Pretrained
from sections import story
from sections.choices import Look
from sections.pretrained import beside, scores
from sections.pretrained.beside import Side
from sections.pretrained.runs import Ran, Silenced
from sections.widgets import Head, choose, ranked_heads
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

    scores.render(done.moved, story.HEADINGS["later heads"], percent, chosen=silenced, pick=toggle)
    later = [(layer, head) for layer, head, value in ranked(done.moved) if value > 0]
    if later:
        _later(ran, without, done, later, look)


def _later(ran: Ran, without: Ran, done: Effect, later: list[Head], look: Look) -> None:
    """One later head, the one that changed most at first, with and without the silenced."""
    layer, head = ranked_heads("later_head", later)
    rows = [made.traces[layer].attention.weights[0, head] for made in (ran.run, without.run)]
    query = int((rows[1] - rows[0]).abs().sum(dim=-1).argmax())
    changed = escape(percent(done.moved[layer, head].item()))
    st.html(f'<p class="say">{story.later_moved(story.head_name(layer, head), changed)}</p>')
    beside.render(
        [
            Side(made.attended(layer), story.SIDES[name], query)
            for made, name in ((ran, "intact"), (without, "without"))
        ],
        head,
        look,
    )


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

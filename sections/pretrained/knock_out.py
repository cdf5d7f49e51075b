"""Any heads silenced, and what that does to all that comes after them."""

from html import escape

import streamlit as st

from models.pretrained.find_heads import ranked
from models.pretrained.knock_out import Effect, effect
from models.pretrained.model import Pretrained
from models.pretrained.pieces import Pieces
from models.pretrained.transformer import Run
from sections import story
from sections.choices import Look
from sections.pretrained import beside, runs, scores
from sections.pretrained.beside import Side
from sections.widgets import Head, choose, ranked_heads
from viz import cells
from viz.numbers import exact, percent, short

OPEN = (3, 1)
"""The head that is silenced at first: the one the page opens with."""


def render(pretrained: Pretrained, pieces: Pieces, run: Run, look: Look) -> None:
    """Which heads, what it does to the sentence's vector and to each piece's, and to every later head."""
    silenced = _silenced(pretrained)
    if not silenced:
        st.info(story.HINTS["nothing silenced"])
    without = runs.run(pretrained, pieces, silenced)
    done = effect(run, without)
    st.html(f'<p class="say">{story.cosine(exact(done.sentence))}</p>{_of_pieces(pieces, done)}')
    st.markdown(f"##### {story.HEADINGS['later heads']}")
    st.caption(story.HINTS["later heads"])

    def toggle(head: Head) -> None:
        choose(silenced=[scores.name(one) for one in sorted(silenced ^ {head})])

    scores.render(done.moved, story.HEADINGS["later heads"], percent, chosen=silenced, pick=toggle)
    later = [(layer, head) for layer, head, value in ranked(done.moved) if value > 0]
    if later:
        _later(pretrained, pieces, run, without, done, later, look)


def _later(
    pretrained: Pretrained, pieces: Pieces, run: Run, without: Run, done: Effect, later: list[Head], look: Look
) -> None:
    """One later head, the one that changed most at first, with and without the silenced."""
    layer, head = ranked_heads("later_head", later)
    rows = [made.traces[layer].attention.weights[0, head] for made in (run, without)]
    query = int((rows[1] - rows[0]).abs().sum(dim=-1).argmax())
    changed = escape(percent(done.moved[layer, head].item()))
    st.html(f'<p class="say">{story.later_moved(story.head_name(layer, head), changed)}</p>')
    beside.render(
        [
            Side(runs.attended(pretrained, pieces, made, layer), story.SIDES[name], query)
            for made, name in ((run, "intact"), (without, "without"))
        ],
        head,
        look,
    )


def _silenced(pretrained: Pretrained) -> runs.Silenced:
    made = pretrained.architecture
    every = [scores.name((layer, head)) for layer in range(made.layers) for head in range(made.heads)]
    first = [name for name in [scores.name(OPEN)] if name in every]
    names = st.multiselect(
        story.LABELS["silenced"], every, first, key="silenced", bind="query-params", help=story.HELP["silenced"]
    )
    return frozenset(map(scores.named, names))


def _of_pieces(pieces: Pieces, done: Effect) -> str:
    tokens = [cells.token(cells.readable(piece)) for piece in pieces.pieces]
    row = [story.COLUMNS["cosine"], *(short(value) for value in done.pieces.tolist())]
    return cells.table(["", *tokens], [row], caption=story.CAPTIONS["cosines"])

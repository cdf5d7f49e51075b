"""A second sentence beside the first: which heads look elsewhere when a word changes."""

from collections.abc import Iterator, Sequence

import streamlit as st
import torch
from torch import Tensor

from models.pretrained.compare import Pair, align, compare
from models.pretrained.pieces import Pieces
from models.pretrained.words import replaced, typed
from sections import story
from sections.choices import Look
from sections.pretrained import beside, runs, scores
from sections.pretrained.runs import Ran
from sections.pretrained.typed import read_or_say
from sections.widgets import choose
from viz import cells
from viz.numbers import percent


def render(ran: Ran, look: Look) -> None:
    """The second sentence, how the two go together, the head that changed most, and every head's change."""
    text, change = st.columns([6, 1], vertical_alignment="bottom")
    with text:
        pieces = read_or_say(ran.pretrained, "real_other")
    if pieces is None:
        return
    with change:
        _change(pieces)
    other = runs.run(ran.pretrained, pieces)
    pairs = align(ran.pieces.pieces, other.pieces.pieces)
    st.html(_aligned(ran.tokens, other.tokens, pairs))
    if not pairs:
        st.info(story.HINTS["no pairs"])
        return
    moved = _moved(ran, other, pairs)
    head = beside.render(moved, pairs, {"first": ran, "second": other}, look)
    st.markdown(f"##### {story.HEADINGS['every change']}")
    st.caption(story.HINTS["every change"])
    scores.render(
        moved.mean(dim=-1),
        story.HEADINGS["every change"],
        percent,
        chosen=[head],
        pick=lambda one: choose(moved_head=scores.name(one)),
    )


def _moved(first: Ran, second: Ran, pairs: Sequence[Pair]) -> Tensor:
    """`layer head query` over the pairs; layer by layer, for the weights of all are much in a long text."""
    layers = zip(first.run.traces, second.run.traces, strict=True)
    return torch.stack([compare(a.attention.weights[0], b.attention.weights[0], pairs).moved for a, b in layers])


def _change(other: Pieces) -> None:
    """Any word of the second sentence, deleted or replaced at a click."""
    words = list(typed(other))

    def apply() -> None:
        word = st.session_state.word
        st.session_state.word = None
        choose(real_other=replaced(other, words[word], st.session_state.get("instead") or ""))

    with st.popover(story.LABELS["change a word"], icon=":material/edit:"):
        st.text_input(story.LABELS["instead"], key="instead", help=story.HELP["instead"], live="300ms")
        st.pills(
            story.LABELS["word"],
            list(range(len(words))),
            format_func=lambda place: cells.readable(other.words[words[place]]),
            key="word",
            on_change=apply,
        )


def _aligned(first: Sequence[str], second: Sequence[str], pairs: Sequence[Pair]) -> str:
    """Both texts, a column for each pair; what differs is framed. HTML."""
    columns = list(_columns(first, second, pairs))
    rows = [
        [story.SIDES[name], *(_shown(column[side], column[0] != column[1]) for column in columns)]
        for side, name in enumerate(("first", "second"))
    ]
    return cells.table([], rows, caption=story.CAPTIONS["aligned"])


def _columns(first: Sequence[str], second: Sequence[str], pairs: Sequence[Pair]) -> Iterator[tuple[str, str]]:
    """Partners side by side; what has none stands alone, where it comes."""
    done = (0, 0)
    for pair in [*pairs, (len(first), len(second))]:
        yield from ((token, "") for token in first[done[0] : pair[0]])
        yield from (("", token) for token in second[done[1] : pair[1]])
        if pair[0] < len(first):
            yield first[pair[0]], second[pair[1]]
        done = (pair[0] + 1, pair[1] + 1)


def _shown(token: str, differs: bool) -> str:
    shown = cells.token(token) if token else ""
    return f'<span class="changed"><span class="guess">{shown}</span></span>' if differs and token else shown

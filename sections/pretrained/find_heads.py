"""Which heads do something one can name: every head scored, the best a click away."""

import math

import pyarrow
import streamlit as st
import torch
from torch import Tensor

from models.pretrained.find_heads import Pattern, find_heads, ranked, score
from models.pretrained.model import Pretrained
from models.pretrained.sentences import SENTENCES
from sections import story
from sections.pretrained import scores
from sections.pretrained.runs import Ran
from sections.widgets import Head, choose, one_of
from viz.numbers import percent, short

BEST = 5


def render(ran: Ran) -> None:
    """A pattern, the heads that follow it most, and every head's number; a click on any of them opens that head."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pattern = Pattern(one_of("pattern", Pattern, default=Pattern.PREVIOUS))
        over = one_of("over", ["typed", "bundled"], default="typed")
    found = _found(ran) if over == "typed" else _over_bundled(ran.pretrained)
    st.caption(f"{story.PATTERNS[pattern]} {story.OVER[over].format(count=len(SENTENCES))}")
    _best(pattern, found[pattern])
    label = story.CAPTIONS["heads found"].format(pattern=pattern)
    scores.render(found[pattern], label, _writer(pattern), chosen=_first(found[pattern]), pick=open_head)
    _table(pattern, found)


def open_head(head: Head) -> None:
    """From a callback: the page turns to looking at a head."""
    choose(tool="look", layer=head[0] + 1, head=head[1] + 1)


def _best(pattern: Pattern, found: Tensor) -> None:
    write = _writer(pattern)
    best = {(layer, head): value for layer, head, value in ranked(found)[:BEST] if not math.isnan(value)}

    def apply() -> None:
        head = st.session_state.best
        st.session_state.best = None
        open_head(head)

    st.pills(
        story.LABELS["best"],
        list(best),
        format_func=lambda head: f"{story.head_name(*head)} · {write(best[head])}",
        key="best",
        on_change=apply,
    )


def _table(pattern: Pattern, found: dict[Pattern, Tensor]) -> None:
    """Every score of every head; a click on a column's name sorts by it, a click on a row opens that head."""
    heads = [(layer, head) for layer, head, _ in ranked(found[pattern])]

    def apply() -> None:
        rows = st.session_state.scores_table.selection.rows
        if rows:
            open_head(heads[rows[0]])

    columns = {story.COLUMNS["head"]: [story.head_name(*head) for head in heads]}
    columns |= {str(one): [found[one][head].item() for head in heads] for one in Pattern}
    share = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    plain = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        pyarrow.table(columns),
        key="scores_table",
        on_select=apply,
        selection_mode="single-row",
        column_config={str(one): plain if one is Pattern.ENTROPY else share for one in Pattern},
        height=320,
        alt=story.CAPTIONS["every score"],
    )
    st.caption(story.HINTS["every score"])


def _found(ran: Ran) -> dict[Pattern, Tensor]:
    """Layer by layer, for the weights of all are much in a long text."""
    causal = ran.pretrained.architecture.causal
    layers = [score(trace.attention.weights[0], ran.pieces, causal=causal) for trace in ran.run.traces]
    return {pattern: torch.stack([layer[pattern] for layer in layers]) for pattern in Pattern}


@st.cache_resource(max_entries=1, show_spinner=False, hash_funcs={Pretrained: id})
def _over_bundled(pretrained: Pretrained) -> dict[Pattern, Tensor]:
    return find_heads(pretrained, SENTENCES)


def _first(found: Tensor) -> set[Head]:
    return {ranked(found)[0][:2]} if not torch.isnan(found).all() else set()


def _writer(pattern: Pattern):
    return short if pattern is Pattern.ENTROPY else lambda value: "–" if math.isnan(value) else percent(value)

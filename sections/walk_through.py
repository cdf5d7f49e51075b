"""The heart of the app: one query in one head, step by step, each with formula, sentence and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.trace import Step
from sections import arithmetic, pieces, story
from sections.attended import Attended
from sections.choices import Look
from sections.widgets import room
from viz import cells
from viz.numbers import percent

NAMED, LEAST = 3, 0.005
"""Keys named in the sentence, and the least share of one after the first; the others are the rest."""


@dataclass
class Frame:
    """Words that stand already, and between them the places for sentence and pictures of a `query`."""

    query: int = 0


def frame(made: Attended, narrow: DeltaGenerator) -> Frame:
    """Formulas and what they are for, which stay as they are when the query changes.

    The first pieces go into `narrow`; the last two, blend and output, are as wide as the page.
    """
    with narrow:
        with room("said", 28):
            pieces.place("said")
        for steps in arithmetic.STEPS[:-2]:
            _beside(made, steps, [1, 2])
    for steps in arithmetic.STEPS[-2:]:
        _beside(made, steps, [2, 6])
    return Frame()


def fill(frame: Frame, made: Attended, look: Look, head: int, query: int) -> None:
    """Sentence and pictures of one query in one head, both counted from 0."""
    frame.query = query
    drawn = arithmetic.pictures(made, head, query, products=look.products, every_key=look.every_key)
    named = {_place(steps): picture for steps, picture in zip(arithmetic.STEPS, drawn, strict=True)}
    pieces.send({"said": f'<p class="say">{sentence(made, head, query)}</p>', **named})


def _beside(made: Attended, steps: Sequence[Step], widths: Sequence[int]) -> None:
    """The words of some steps, and beside them the place for their picture."""
    theme = st.context.theme.type or "light"
    words, picture = st.columns(widths, gap="medium")
    for step in steps:
        title = story.STEPS[step].title
        words.markdown(f"**{title}** ${formula(made, step, theme)}$  \n:small[{remark(made, step)}]")
    with picture:
        pieces.place(_place(steps))


def _place(steps: Sequence[Step]) -> str:
    return str(steps[0])


def sentence(made: Attended, head: int, query: int) -> str:
    """What the query takes from where, as HTML. Head and query are counted from 0."""
    weights, name = made.trace.weights[0, head, query], cells.token(made.queries[query], "query")
    if not weights.any():
        return story.sees_nothing(name)
    order = [i for i in weights.argsort(descending=True, stable=True).tolist() if weights[i] > 0]
    named = [order[0], *(i for i in order[1:NAMED] if weights[i] > LEAST)]
    shares = [(escape(percent(weights[i].item())), cells.token(made.keys[i], "key")) for i in named]
    others = order[len(named) :]
    rest = escape(percent(weights[others].sum().item())) if others else None
    return story.sentence(name, shares, rest)


def formula(made: Attended, step: Step, theme: str) -> str:
    """A step's formula in LaTeX, in the colours of a theme."""
    return story.formula(step, theme, made.layer.config)


def remark(made: Attended, step: Step) -> str:
    """What a step is for, or what is special about it here."""
    if step is Step.MASKED and made.visible is None:
        return story.NO_MASK
    if step in made.remarks:
        return made.remarks[step]
    if step is Step.Q and not made.layer.config.projections:
        return story.NO_PROJECTION
    if step is Step.OUTPUT and not made.layer.config.output_projection:
        return story.NO_OUTPUT_PROJECTION
    return story.STEPS[step].sentence

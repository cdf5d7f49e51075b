"""The heart of the app: one query in one head, step by step, each with formula, sentence and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import streamlit as st
from latex2mathml.converter import convert
from streamlit.delta_generator import DeltaGenerator

from models.trace import Step
from sections import arithmetic, pieces, story
from sections.attended import Attended
from sections.choices import Look
from sections.widgets import room
from viz import cells
from viz.numbers import percent

WIDE = 2
"""The last pictures, blend and output, are as wide as the page."""

NAMED, LEAST = 3, 0.005
"""Keys named in the sentence, and the least share of one after the first; the others are the rest."""


@dataclass
class Frame:
    """Words that stand already, and the places beside them for sentence and pictures of a `query`."""

    query: int = 0


def frame(made: Attended, narrow: DeltaGenerator) -> Frame:
    """Formulas and what they are for, which stay as they are when the query changes.

    The first pieces go into `narrow`, the last `WIDE` below it.
    """
    theme = st.context.theme.type or "light"
    words = [told(made, steps, theme) for steps in arithmetic.STEPS]
    with narrow:
        with room("said", 28):
            pieces.place("said")
        pieces.place("steps", words[:-WIDE])
    pieces.place("wide", words[-WIDE:])
    return Frame()


def fill(frame: Frame, made: Attended, look: Look, head: int, query: int) -> None:
    """Sentence and pictures of one query in one head, both counted from 0."""
    frame.query = query
    drawn = arithmetic.pictures(made, head, query, products=look.products, every_key=look.every_key)
    said = f'<p class="say">{sentence(made, head, query)}</p>'
    pieces.send({"said": [said], "steps": drawn[:-WIDE], "wide": drawn[-WIDE:]})


def told(made: Attended, steps: Sequence[Step], theme: str) -> str:
    """The title of each step, its formula in the colours of a theme, and what it is for. HTML."""
    return "".join(
        f"<p><strong>{story.STEPS[step].title}</strong> {_mathml(formula(made, step, theme))}"
        f"<br><small>{escape(remark(made, step))}</small></p>"
        for step in steps
    )


@lru_cache(maxsize=256)
def _mathml(latex: str) -> str:
    """A formula as browsers draw it by themselves."""
    return convert(latex).replace(' xmlns="http://www.w3.org/1998/Math/MathML" display="inline"', "")


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

"""The heart of the app: one query in one head, step by step, each with formula, sentence and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import numpy as np
import streamlit as st
from latex2mathml.converter import convert
from streamlit.delta_generator import DeltaGenerator

from models.trace import Step
from sections import arithmetic, pieces, story
from sections.attended import Attended
from sections.choices import Look
from sections.limits import MAX_NUMBERS
from viz import cells
from viz.blanks import SAID
from viz.numbers import percent

WIDE = 2
"""The last pictures, blend and output, are as wide as the page."""

NAMED, LEAST = 3, 0.005
"""Keys named in the sentence, and the least share of one after the first; the others are the rest."""


@dataclass
class Frame:
    """The walk-through of one head on the page, of which the browser shows the chosen query.

    ahead: whether the numbers of every query were sent, so that the browser needs no more. query: the one that is chosen,
    counted from 0, for those who write it down.
    """

    made: Attended
    look: Look
    head: int
    ahead: bool
    query: int = 0

    def follow(self, query: int) -> None:
        """Shows a query, counted from 0."""
        self.query = query
        if not self.ahead:
            _send(self, slice(query, query + 1))


def frame(made: Attended, look: Look, head: int, narrow: DeltaGenerator) -> Frame:
    """Formulas and what they are for, and the numbers of every query unless they are too many. Head is counted from 0.

    The first pieces go into `narrow`, the last `WIDE` below it.
    """
    theme = st.context.theme.type or "light"
    words = [told(made, steps, theme) for steps in arithmetic.STEPS]
    with narrow:
        pieces.place("steps", ["", *words[:-WIDE]])
    pieces.place("wide", words[-WIDE:])
    walk = Frame(made, look, head, ahead=_amount(made, look) <= MAX_NUMBERS)
    if walk.ahead:
        _send(walk, slice(None))
    return walk


def _amount(made: Attended, look: Look) -> int:
    """About how many numbers, and letters of names, are shown of all queries: rows of keys, rows of heads, and the rest."""
    config, keys = made.layer.config, len(made.keys) if look.every_key else arithmetic.FEW
    most = max(made.inputs["query"].shape[1], made.trace.output.shape[-1])
    rows = keys * (4 * config.width + 12) + (config.num_heads + 1) * (2 * config.width + most)
    named = (NAMED + 1) * max(map(len, (*made.queries, *made.keys)))
    return len(made.queries) * (rows + 4 * most + named)


def _send(walk: Frame, queries: slice) -> None:
    made, look = walk.made, walk.look
    form = arithmetic.form(made, walk.head, queries, products=look.products, every_key=look.every_key)
    pieces.send(
        {"steps": [SAID, *form.pieces[:-WIDE]], "wide": form.pieces[-WIDE:]},
        form.numbers,
        sentences(made, walk.head, queries),
        {"query": list(made.queries), "key": list(made.keys)},
        first=queries.start or 0,
    )


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
    return sentences(made, head, slice(query, query + 1))[0]


def sentences(made: Attended, head: int, queries: slice) -> list[str]:
    """What each of some queries takes from where, as HTML. Head and queries are counted from 0."""
    weights = made.trace.weights[0, head, queries].numpy()
    heaviest = np.argsort(-weights, axis=1, kind="stable")[:, :NAMED].tolist()
    return [_said(made, *each) for each in zip(made.queries[queries], weights.tolist(), heaviest, strict=True)]


def _said(made: Attended, query: str, weights: list[float], heaviest: list[int]) -> str:
    name = cells.token(query, "query")
    if not any(weights):
        return story.sees_nothing(name)
    named = [heaviest[0], *(key for key in heaviest[1:] if weights[key] > LEAST)]
    shares = [(escape(percent(weights[key])), cells.token(made.keys[key], "key")) for key in named]
    rest = sum(weight for key, weight in enumerate(weights) if key not in named)
    return story.sentence(name, shares, escape(percent(rest)) if rest > 0 else None)


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

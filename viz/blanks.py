"""Pieces of HTML with blanks for numbers: written once, filled for one query after the other.

The browser fills them (viz/pieces/fill.js) as `fill` does, so that another query needs nothing from the server.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape, unescape

import numpy as np

from viz import cells
from viz.numbers import short

SAID = '<p data-blank="said 0 0 0"></p>'
"""A piece that is one blank, for what is said of a query in words."""

_BLANK = re.compile(r'<(\w+) data-blank="(\w+) (\d+) (\d+) (\d+)"(?: data-label="([^"]*)")?></\1>')


class Blanks:
    """Makes blanks, and notes what goes into each of them: a row of numbers for every query.

    Numbers are `query`, vectors `query width`, or `1 width` where they are the same for every query.
    """

    def __init__(self, queries: int) -> None:
        self._queries = queries
        self._columns: list[np.ndarray] = []
        self._width = 0

    @property
    def numbers(self) -> np.ndarray:
        """What goes into all blanks so far, `query number`, as exact as the traces are."""
        return np.concatenate(self._columns, axis=1, dtype=np.float32)

    def limit(self, *arrays: np.ndarray) -> int:
        """What the two ends of a scale stand for, for signed numbers `query ...`, or `1 ...` where all queries share them."""
        return self._put(cells.limits(*arrays))

    def vector(self, values: np.ndarray, limit: int, *, label: str) -> str:
        """As `cells.vector`."""
        return self._blank("vector", values, limit=limit, label=label)

    def number(self, values: np.ndarray, limit: int) -> str:
        """As `cells.number`."""
        return self._blank("number", values, limit=limit)

    def weight(self, values: np.ndarray) -> str:
        """As `cells.weight`."""
        return self._blank("weight", values)

    def bar(self, values: np.ndarray) -> str:
        """As `cells.bar`."""
        return self._blank("bar", values)

    def text(self, values: np.ndarray) -> str:
        """A number as it is written in a cell, without one."""
        return self._blank("text", values)

    def terms(self, q: np.ndarray, k: np.ndarray) -> str:
        """As `cells.terms`."""
        return self._blank("terms", np.concatenate([q, k], axis=1))

    def token(self, role: str, places: np.ndarray) -> str:
        """As `cells.token`: one of the queries or of the keys, counted from 0."""
        return self._blank(role, places, tag="bdi")

    def _blank(self, kind: str, values: np.ndarray, *, limit: int = 0, tag: str = "span", label: str = "") -> str:
        start = self._put(values)
        named = f' data-label="{escape(label)}"' if label else ""
        return f'<{tag} data-blank="{kind} {start} {self._width - start} {limit}"{named}></{tag}>'

    def _put(self, values: np.ndarray) -> int:
        """Where in a row they begin."""
        start, columns = self._width, values.reshape(len(values), -1)
        same = len(columns) == self._queries
        self._columns.append(columns if same else np.broadcast_to(columns, (self._queries, columns.shape[1])))
        self._width += columns.shape[1]
        return start


def fill(piece: str, numbers: Sequence[float], names: Mapping[str, Sequence[str]], said: str = "") -> str:
    """A piece with its blanks filled by the numbers of one query. names: the tokens of each role. said: HTML."""

    def filled(blank: re.Match) -> str:
        _, kind, start, count, limit, label = blank.groups()
        if kind == "said":
            return f'<p class="say">{said}</p>'
        first, *_ = given = numbers[int(start) : int(start) + int(count)]
        match kind:
            case "vector":
                return cells.vector(given, numbers[int(limit)], label=unescape(label))
            case "number":
                return cells.number(first, numbers[int(limit)])
            case "weight":
                return cells.weight(first)
            case "bar":
                return cells.bar(first)
            case "text":
                return f"<span>{short(first)}</span>"
            case "terms":
                return cells.terms(given[: len(given) // 2], given[len(given) // 2 :])
        return cells.token(names[kind][int(first)], kind)

    return _BLANK.sub(filled, piece)

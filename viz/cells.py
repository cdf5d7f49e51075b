"""Vectors and tokens as plain HTML: cells with numbers in them, readable, selectable, in both themes.

Every text from outside is escaped here and isolated from the writing direction around it.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from math import isfinite
from pathlib import Path

import numpy as np

from viz.colours import DIVERGING, SEQUENTIAL, between, css_cell, css_role
from viz.numbers import exact, percent, short

NUMBERS_FIT = 8
"""Cells of a vector that still have room for a number; longer vectors are strips of colour."""

CELLS_FIT = 32
"""Cells of a strip that can be pointed at one by one; a longer strip is one element, which tells all its numbers at once.
A browser takes longer over a thousand elements than the server over all of attention."""

TOLD_FIT = 256
"""Numbers that one can still make out when told at once; longer vectors are named by their ends."""

_SHADES = 96
"""Steps along a scale, finer than the eye. A cell has the class of its step, which is quicker to send and to draw than
colours of its own."""

_OF_CELLS = [
    f"i.{letter}{n} {{ {css_cell(n / _SHADES, scale)} }}"
    for letter, scale in (("d", DIVERGING), ("w", SEQUENTIAL))
    for n in range(_SHADES + 1)
]

_OF_BANDS = [
    f"--s{n}: light-dark({between(DIVERGING.light, n / _SHADES)},{between(DIVERGING.dark, n / _SHADES)});"
    for n in range(_SHADES + 1)
]

_BANDS = np.array([f"var(--s{n})" for n in range(_SHADES + 1)], object)

STYLE = f"""<style>
:root {{ {" ".join(f"--{role}: {css_role(role)};" for role in ("query", "key", "value", "output"))} }}
:root {{ {" ".join(_OF_BANDS)} }}
{" ".join(_OF_CELLS)}
{Path(__file__).with_name("cells.css").read_text()}</style>"""

_BIDI_CONTROLS = set("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def readable(token: str) -> str:
    """A token as text one can see: what is invisible or turns the writing around is named by its code point."""
    if any(unicodedata.category(c)[0] not in "CZ" and c not in _FILLERS for c in token):
        return "".join(_code_point(c) if c in _BIDI_CONTROLS or unicodedata.category(c) == "Cc" else c for c in token)
    return "".join(map(_code_point, token))


def token(label: str, role: str = "") -> str:
    """A token, in the colour of its role."""
    return f'<bdi class="token {role}" title="{escape(label)}">{escape(label)}</bdi>'


def vector(values: Sequence[float] | np.ndarray, limit: float, *, label: str, fit: int = NUMBERS_FIT) -> str:
    """A vector as a row of cells, coloured from −limit to limit; `label` names it to a screen reader.

    With more than `fit` of them the numbers are tooltips only, with more than `CELLS_FIT` a tooltip for all, and with
    more than `TOLD_FIT` none.
    """
    numbers = values.tolist() if isinstance(values, np.ndarray) else list(map(float, values))
    if len(numbers) > TOLD_FIT:
        return _band(numbers, limit, label)
    if len(numbers) > max(fit, CELLS_FIT):
        return _whole(numbers, limit, label)
    if len(numbers) > fit:
        cells = "".join(f'<i class="{_signed(x, limit)}" title="{exact(x)}"></i>' for x in numbers)
        words = ", ".join(map(short, numbers))
        return f'<span class="strip" role="img" aria-label="{escape(label)}: {words}">{cells}</span>'
    cells = "".join(f'<i class="{_signed(x, limit)}" title="{exact(x)}">{short(x)}</i>' for x in numbers)
    return f'<span class="vector" role="group" aria-label="{escape(label)}">{cells}</span>'


def _whole(numbers: Sequence[float], limit: float, label: str) -> str:
    """A strip as one element, each number with an edge on both sides as a cell has."""
    shades = ",".join(map(str.__add__, _shades(numbers, limit), _edges(len(numbers))))
    return (
        f'<span class="strip whole" role="img" aria-label="{escape(label)}" '
        f'title="{", ".join(map(exact, numbers))}" style="background:linear-gradient(90deg,{shades})"></span>'
    )


def _band(numbers: Sequence[float], limit: float, label: str) -> str:
    """A band of colour: each number would be narrower than a pixel."""
    shades = ",".join(_shades(numbers, limit))
    words = escape(f"{label}: {len(numbers)} × {short(np.min(numbers))} … {short(np.max(numbers))}")
    return (
        f'<span class="strip band" role="img" aria-label="{words}" title="{words}" '
        f'style="background:linear-gradient(90deg,{shades})"></span>'
    )


def _shades(numbers: Sequence[float], limit: float) -> list[str]:
    """The colour of each of many numbers; what is not finite has none."""
    values = np.array(numbers)
    finite = np.isfinite(values)
    steps = np.rint(_SHADES * np.clip(0.5 + 0.5 * values[finite] / limit, 0, 1)).astype(int)  # as `_step`, all at once
    shades = np.full(len(values), "transparent", object)
    shades[finite] = _BANDS[steps]
    return shades.tolist()


@lru_cache(maxsize=64)
def _edges(count: int) -> tuple[str, ...]:
    """Where each of equally wide cells begins and ends: where the last one ended, and at a share of the width."""
    return tuple(f" 0 {100 * n / count:.2f}%" for n in range(1, count + 1))


def number(value: float, limit: float) -> str:
    """One signed number in a cell, coloured from −limit to limit; −∞ is hatched."""
    if value == -np.inf:
        return '<span class="vector"><i class="hidden" title="hidden">−∞</i></span>'
    return f'<span class="vector"><i class="{_signed(value, limit)}" title="{exact(value)}">{short(value)}</i></span>'


def weight(value: float) -> str:
    """A weight in a cell of the weights' own scale."""
    return (
        f'<span class="vector"><i class="w{_step(value)}" '
        f'title="{exact(value)} = {escape(percent(value))}">{short(value)}</i></span>'
    )


def terms(q: Iterable[float], k: Iterable[float]) -> str:
    """The multiplications whose sum is q·k."""
    products = " + ".join(f"{_factor(one)}·{_factor(other)}" for one, other in zip(q, k, strict=True))
    return f'<span class="terms">{products} =</span>'


def prose(text: str) -> str:
    """Words in a cell, free to wrap. `text` is ready HTML."""
    return f'<span class="prose">{text}</span>'


def bar(value: float) -> str:
    """A weight as a length: the full width is 1."""
    return f'<span class="bar"><i style="width:{100 * value:.2f}%"></i></span>'


def table(head: Iterable[str], rows: Iterable[Iterable[str]], foot: Iterable[str] = (), *, caption: str) -> str:
    """A table of ready HTML cells. The first cell of each row is its header; `caption` is for screen readers."""
    named = list(head)
    top = "".join(f'<th scope="col">{cell}</th>' for cell in named)
    top = f"<thead><tr>{top}</tr></thead>" if any(named) else ""
    body = "".join(_row(row) for row in rows)
    bottom = f"<tfoot>{_row(foot)}</tfoot>" if foot else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="walk"><caption>{escape(caption)}</caption>'
        f"{top}<tbody>{body}</tbody>{bottom}</table></div>"
    )


def limit(*arrays: np.ndarray) -> float:
    """The largest finite magnitude, which the two ends of a diverging scale stand for; 1 if there is none."""
    return float(limits(*(np.asarray(array)[None] for array in arrays))[0])


def limits(*arrays: np.ndarray) -> np.ndarray:
    """The limit of each query of arrays `query ...`."""
    finite = [np.abs(np.where(np.isfinite(array), array, 0)).reshape(len(array), -1) for array in arrays]
    top = np.concatenate(finite, axis=1).max(axis=1, initial=0)
    return np.where(top > 0, top, 1)


def _signed(value: float, limit: float) -> str:
    return f"d{_step(0.5 + 0.5 * value / limit)}" if isfinite(value) else ""


def _step(share: float) -> int:
    return round(_SHADES * min(max(share, 0), 1))


def _factor(value: float) -> str:
    text = short(value)
    return f"({text})" if text.startswith("−") else text


def _row(cells: Iterable[str]) -> str:
    first, *rest = cells
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'


def _code_point(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


_FILLERS = set("\u115f\u1160\u3164\uffa0\u2800\u034f")  # letters and marks that draw nothing

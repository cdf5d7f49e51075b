"""Every colour the app gives a meaning to, each once for the light and once for the dark theme.

Query, key, value and output own a colour each. Weights, shares from 0 to 1, run from paper to deep blue;
signed numbers from ochre through paper to blue, the pair of hues that every kind of colour vision tells
apart. Lines have a colour a head. `.streamlit/config.toml` repeats both scales, so that plotly figures follow the theme in the browser.
"""

from functools import lru_cache
from typing import NamedTuple


class Shades(NamedTuple):
    """One colour, or one scale of ten, in both themes."""

    light: str | tuple[str, ...]
    dark: str | tuple[str, ...]


ROLES = {
    "query": Shades("#731dc5", "#bf9bfc"),
    "key": Shades("#b44200", "#fa9d68"),
    "value": Shades("#007759", "#5ed8a9"),
    "output": Shades("#bb086f", "#f98cb9"),
}

SEQUENTIAL = Shades(
    ("#f2f8fc", "#cae2f7", "#a3ccf1", "#7fb5ec", "#5b9de6", "#3983e0", "#2c6bc9", "#2854aa", "#223f8a", "#1a2b6c"),
    ("#1b1e25", "#263146", "#2e4769", "#315f8c", "#2b78b0", "#0794d4", "#2fafe7", "#69c9ef", "#9ae1f9", "#c9f8ff"),
)
DIVERGING = Shades(
    ("#7e4a11", "#a96c1c", "#ca964c", "#ddc49b", "#f4f0e7", "#e9f1f8", "#9ac8f3", "#519aed", "#326bc6", "#27418b"),
    ("#ffc38e", "#d3934a", "#9c6a1a", "#5e4823", "#292620", "#23272c", "#334e70", "#357ab8", "#4fabea", "#89dcff"),
)

HEADS = Shades(
    ("#a0003a", "#099a45", "#998bfe", "#7b4703", "#0d919a", "#ee5ec8", "#525c00", "#007ef0", "#fe674c", "#00654d", "#a252df", "#c69612", "#005f77", "#db327c", "#55ba0a", "#3c39c6"),
    ("#e0305e", "#04c559", "#cdcbfd", "#b66c00", "#14bac5", "#feb8e6", "#7b8a00", "#61a7fd", "#fec0b2", "#009775", "#c380fd", "#fec84b", "#058eaf", "#fe68a1", "#89ef58", "#606cfa"),
)  # fmt: skip
"""A colour for each of sixteen heads: hues a golden angle apart, in three lightnesses (OKLCH)."""

_INK = Shades("#000000", "#ffffff")  # of these two one always has a contrast of 4.5 or more


def between(scale: tuple[str, ...], share: float) -> str:
    """The colour `share` of the way (0 to 1) along a scale, mixed linearly as plotly does."""
    place = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    index = min(int(place), len(scale) - 2)
    low, high = _rgb(scale[index]), _rgb(scale[index + 1])
    return "#" + "".join(f"{round(a + (b - a) * (place - index)):02x}" for a, b in zip(low, high, strict=True))


def ink_on(colour: str) -> str:
    """Black or white, whichever has the higher contrast on a colour (WCAG 2.2, relative luminance)."""
    luminance = sum(
        part * ((c / 12.92) if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for part, c in zip((0.2126, 0.7152, 0.0722), (c / 255 for c in _rgb(colour)), strict=True)
    )
    return _INK.light if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else _INK.dark


def css_cell(share: float, scale: Shades) -> str:
    """CSS for a cell `share` of the way along a scale: background and readable ink, for both themes."""
    return _css_cell(round(share, 3), scale)  # finer than the eye, coarse enough to be looked up


@lru_cache(maxsize=4096)
def _css_cell(share: float, scale: Shades) -> str:
    light, dark = between(scale.light, share), between(scale.dark, share)
    return f"background:light-dark({light},{dark});color:light-dark({ink_on(light)},{ink_on(dark)})"


def css_role(role: str) -> str:
    """CSS colour of query, key, value or output, for both themes."""
    return f"light-dark({ROLES[role].light},{ROLES[role].dark})"


def css_shades(shades: Shades) -> list[str]:
    """CSS of every colour of a scale or list, each for both themes."""
    return [f"light-dark({light},{dark})" for light, dark in zip(shades.light, shades.dark, strict=True)]


def _rgb(colour: str) -> tuple[int, int, int]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))

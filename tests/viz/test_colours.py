"""The colours: the same in the theme, readable in both themes, mixed as plotly mixes them."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from viz.colours import DIVERGING, ROLES, SEQUENTIAL, between, ink_on
from viz.heatmaps import focus

THEME = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
THEMES = ("light", "dark")
SCALES = {"sequential": SEQUENTIAL, "diverging": DIVERGING}


def channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def luminance(colour: str) -> float:
    """Relative luminance, from the text of WCAG 2.2."""
    shares = [c / 255 for c in channels(colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_repeats_both_scales(theme: str) -> None:
    assert tuple(THEME[theme]["chartSequentialColors"]) == getattr(SEQUENTIAL, theme)
    assert tuple(THEME[theme]["chartDivergingColors"]) == getattr(DIVERGING, theme)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("ground", ["backgroundColor", "secondaryBackgroundColor"])
def test_roles_are_readable(theme: str, role: str, ground: str) -> None:
    assert contrast(getattr(ROLES[role], theme), THEME[theme][ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable(theme: str) -> None:
    assert contrast(THEME[theme]["textColor"], THEME[theme]["backgroundColor"]) >= 7


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SCALES)
def test_ink_is_the_more_readable_of_the_two_and_readable(theme: str, name: str) -> None:
    """No ink reaches 4.5 on every middle tone; 4.2 is what the better of black and white has at the worst place."""
    scale = getattr(SCALES[name], theme)
    for colour in (between(scale, n / 300) for n in range(301)):
        assert contrast(ink_on(colour), colour) >= 4.2
        assert contrast(ink_on(colour), colour) >= max(contrast(ink, colour) for ink in ("#14161c", "#ffffff")) - 0.1


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SCALES)
def test_numbers_in_the_cells_of_a_figure_are_readable(theme: str, name: str) -> None:
    """Figures change ink at one share for both themes: 3.2 at the worst place, and each number has a halo besides."""
    paint = {"#000037": "#262730" if theme == "light" else "#fafafa", "#000038": THEME[theme]["backgroundColor"]}
    for share in np.linspace(0, 1, 201):
        value, end = (share, 1.0) if name == "sequential" else (2 * share - 1, 1.0)
        figure = focus(np.array([[value, end]], np.float32), ["q"], ["k", "l"], signed=name == "diverging")
        (ink,) = (t.textfont.color for t in figure.data if t.texttemplate and t.text[0][0].strip("\u200b"))
        assert contrast(paint[ink], between(getattr(SCALES[name], theme), share)) >= 3.2


@pytest.mark.parametrize("theme", THEMES)
def test_scales_go_one_way(theme: str) -> None:
    """More is always further from the paper, so that order survives without seeing hue."""
    away = [contrast(colour, THEME[theme]["backgroundColor"]) for colour in getattr(SEQUENTIAL, theme)]
    assert away == sorted(away)
    both = [contrast(colour, THEME[theme]["backgroundColor"]) for colour in getattr(DIVERGING, theme)]
    assert both[5:] == sorted(both[5:]) and both[:5] == sorted(both[:5], reverse=True)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SCALES)
def test_between_meets_every_step_and_mixes_halfway(theme: str, name: str) -> None:
    scale = getattr(SCALES[name], theme)
    assert [between(scale, n / 9) for n in range(10)] == list(scale)
    assert between(scale, -1) == scale[0] and between(scale, 2) == scale[-1]
    for n in range(9):
        middle = channels(between(scale, (n + 0.5) / 9))
        ends = zip(channels(scale[n]), channels(scale[n + 1]), strict=True)
        assert all(abs(mixed - (low + high) / 2) <= 0.5 for mixed, (low, high) in zip(middle, ends, strict=True))


def test_roles_differ_from_each_other() -> None:
    for theme in THEMES:
        assert len({getattr(shades, theme) for shades in ROLES.values()}) == len(ROLES)

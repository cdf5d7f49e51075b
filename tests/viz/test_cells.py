"""HTML cells: the numbers in them, colours on the side of their sign, and text that stays text."""

import re
import unicodedata
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz import cells
from viz.colours import DIVERGING, SEQUENTIAL, Shades, css_cell
from viz.numbers import exact, percent, short

HOSTILE = [
    "<script>alert(1)</script>", "<b>x</b>", "\"'><img src=x onerror=alert(1)>", "</bdi></td></table>", "&lt;", "&#60;", "$x$",
    "a\u202eb", "--><!--", "<style>*{display:none}</style>",
]  # fmt: skip


class Reader(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(markup)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag: str) -> list[dict]:
        return [given for name, given in self.tags if name == tag]


@pytest.mark.parametrize("label", HOSTILE)
def test_a_token_is_text(label):
    read = Reader(cells.token(label, "key"))
    assert "".join(read.words) == label
    assert read.tags == [("bdi", {"class": "token key", "title": label})]


@given(st.text())
def test_any_token_is_text(label):
    assert unescape(re.fullmatch(r'<bdi class="token " title="[^"<>]*">([^<>]*)</bdi>', cells.token(label), re.S)[1]) == unescape(
        label.replace("&", "&amp;")
    )


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_and_captions_are_text(label):
    for values in ([1.0], [0.5] * 20):
        [given] = [given for _, given in Reader(cells.vector(values, 1, label=label)).tags if "aria-label" in given]
        assert given["aria-label"].startswith(label)
    read = Reader(cells.table(["a"], [["b"]], caption=label))
    assert label in read.words


@pytest.mark.parametrize(
    "typed, shown",
    [
        ("word", "word"), ("注意", "注意"), ("🙂", "🙂"), ("👩‍👩‍👧", "👩‍👩‍👧"), ("é", "é"), ("e\u0301", "e\u0301"), ("שלום", "שלום"),
        ("[PAD]", "[PAD]"), ("\u200b", "⟨U+200B⟩"), ("\ufeff", "⟨U+FEFF⟩"), ("\u200d\u200b", "⟨U+200D⟩⟨U+200B⟩"),
        ("a\u202eb", "a⟨U+202E⟩b"), ("a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"), ("\x00", "⟨U+0000⟩"), ("a\x07", "a⟨U+0007⟩"),
        ("\u3164", "⟨U+3164⟩"), ("\u2800", "⟨U+2800⟩"), ("a\u200bb", "a\u200bb"), (" ", "⟨U+0020⟩"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_named(typed, shown):
    assert cells.readable(typed) == shown


@pytest.mark.parametrize("control", "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ids=ascii)
def test_what_turns_the_writing_around_is_named(control):
    assert cells.readable(f"a{control}b") == f"a⟨U+{ord(control):04X}⟩b"


@given(st.text(min_size=1, max_size=6))
def test_every_token_can_be_seen_and_none_turns_the_writing_around(token):
    shown = cells.readable(token)
    assert any(unicodedata.category(c)[0] in "LMNPS" for c in shown)
    assert not set(shown) & set("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert not any(unicodedata.category(c) == "Cc" for c in shown)


VALUES = st.lists(st.floats(-5, 5), min_size=1, max_size=30)


@given(VALUES, st.integers(1, 12))
def test_a_vector_says_every_number(values, fit):
    read = Reader(cells.vector(values, cells.limit(np.array(values)), label="q", fit=fit))
    assert [given["title"] for given in read.all("i")] == [exact(value) for value in values]
    if len(values) <= fit:
        assert read.words == [short(value) for value in values]
        assert read.tags[0] == ("span", {"class": "vector", "role": "group", "aria-label": "q"})
    else:
        assert not read.words  # strips of colour, in words for who cannot see them
        assert read.tags[0][1]["aria-label"] == "q: " + ", ".join(short(value) for value in values)
        assert read.tags[0][1]["role"] == "img"


STEPS = 96


def colour(markup: str) -> str:
    """What the style says of the class of the first cell."""
    return re.search(rf"i\.{Reader(markup).all('i')[0]['class']} {{ (.*?) }}", cells.STYLE)[1]


def shade(share: float, scale: Shades) -> str:
    """The nearest of as many steps as a scale has."""
    return css_cell(round(STEPS * share) / STEPS, scale)


def test_the_two_ends_and_the_middle_of_a_signed_scale():
    for value, share in ((-2, 0.0), (0, 0.5), (2, 1.0)):
        assert colour(cells.number(value, 2)) == shade(share, DIVERGING) == colour(cells.vector([value], 2, label="q"))


@given(st.floats(0.01, 5), st.floats(5, 10))
def test_a_sign_has_its_side(value, limit):
    assert colour(cells.number(value, limit)) == shade(0.5 + 0.5 * value / limit, DIVERGING)
    assert colour(cells.number(-value, limit)) == shade(0.5 - 0.5 * value / limit, DIVERGING)


def test_minus_infinity_is_marked_and_uncoloured():
    [given] = Reader(cells.number(-np.inf, 1)).all("i")
    assert given == {"class": "hidden", "title": "hidden"}
    assert Reader(cells.number(-np.inf, 1)).words == ["−∞"]


@pytest.mark.parametrize("value", [0.0, 0.004, 0.12, 0.88, 1.0])
def test_a_weight_is_on_its_own_scale(value):
    [given] = Reader(cells.weight(value)).all("i")
    assert colour(cells.weight(value)) == shade(value, SEQUENTIAL)
    assert given == {"class": f"w{round(STEPS * value)}", "title": f"{exact(value)} = {percent(value)}"}
    assert Reader(cells.weight(value)).words == [short(value)]


@pytest.mark.parametrize("value, width", [(0, "0.00"), (0.5, "50.00"), (1, "100.00"), (0.8808, "88.08")])
def test_a_bar_is_as_long_as_its_weight(value, width):
    assert Reader(cells.bar(value)).all("i") == [{"style": f"width:{width}%"}]


def test_limits_leave_out_what_is_not_finite():
    assert cells.limit(np.array([1.0, -3.0]), np.array([2.0])) == 3
    assert cells.limit(np.array([-np.inf, 2.0, np.nan])) == 2
    assert cells.limit(np.array([-np.inf])) == cells.limit(np.array([])) == cells.limit(np.zeros(3)) == 1


def test_a_table_is_one_that_can_be_read_out():
    read = Reader(cells.table(["", "x"], [["a", "1"], ["b", "2"]], ["sum", "3"], caption="what it shows"))
    assert [given.get("scope") for given in read.all("th")] == ["col", "col", "row", "row", "row"]
    assert len(read.all("td")) == 3
    assert read.words == ["what it shows", "x", "a", "1", "b", "2", "sum", "3"]
    assert "<tfoot>" not in cells.table(["x"], [["a"]], caption="")


def test_the_style_has_all_roles_and_asks_nobody():
    for role in ("query", "key", "value", "output"):
        assert f"--{role}: light-dark(" in cells.STYLE and f".{role} {{" in cells.STYLE
    assert "url(" not in cells.STYLE and "@import" not in cells.STYLE
    assert cells.STYLE.count("{") == cells.STYLE.count("}")


def test_a_strip_too_long_to_point_into_tells_all_its_numbers_at_once():
    values = np.linspace(-2, 1, cells.CELLS_FIT + 1)
    ((_, strip),) = Reader(cells.vector(values, 2.0, label='<x>"')).tags
    assert strip["aria-label"] == '<x>"'
    assert strip["title"] == ", ".join(map(exact, values))
    edges = re.findall(r"var\(--s(\d+)\) 0 ([\d.]+)%", strip["style"])
    assert [int(shade) for shade, _ in edges] == [round(STEPS * (0.5 + value / 4)) for value in values.tolist()]
    np.testing.assert_allclose([float(edge) for _, edge in edges], 100 * np.arange(1, len(values) + 1) / len(values), rtol=1e-3)
    assert len(Reader(cells.vector(values[1:], 2.0, label="x")).all("i")) == cells.CELLS_FIT


def test_a_vector_too_long_to_be_told_is_a_band_of_one_shade_a_number():
    values = np.linspace(-2, 1, cells.TOLD_FIT + 1)
    ((_, band),) = Reader(cells.vector(values, 2.0, label='<x>"')).tags
    shades = [int(n) for n in re.findall(r"var\(--s(\d+)\)", band["style"])]
    assert len(shades) == len(values)
    assert shades[0] == 0 and shades == sorted(shades) and shades[-1] == round(0.75 * max(map(int, re.findall(r"--s(\d+):", cells.STYLE))))
    assert band["aria-label"] == band["title"] == f'<x>": {len(values)} × −2 … 1'
    assert "transparent" in cells.vector([np.nan, *values], 2.0, label="x")

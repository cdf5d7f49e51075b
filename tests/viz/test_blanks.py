"""Pieces with blanks: each filled with the numbers of one query, by Python as by the browser."""

import math
import re
from html import escape, unescape
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from viz import cells
from viz.blanks import SAID, Blanks, fill
from viz.numbers import exact, percent, short

QUERIES = 3
NAMES = {"query": ["it", "<b>q</b>", '"&amp;'], "key": ["animal", "\u202eb", "</bdi><img src=x>", "注意", "' data-blank=\"text 0 1 0\""]}
VIZ = Path(cells.__file__).parent
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.125, -0.125, 0.375, 0.03125, -0.09375, 0.004, -0.004, 0.00004, 2.0000001, 99.995, 0.5, 0.995, 0.005,
           1e6, 999_999, 1_125_000, 1_135_000, -1_125_000, 12_345_678.9, 1e30, 1e-30, math.inf, -math.inf, math.nan]  # fmt: skip


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def blank_page(browser) -> Page:
    """A page with nothing but the functions that fill pieces."""
    page = browser.new_page()
    code = "\n".join((VIZ / name).read_text() for name in ("numbers.js", "pieces/fill.js"))
    page.evaluate(f"() => {{ {code}; Object.assign(window, {{fill, short, exact, percent}}) }}")
    return page


SAME = """([piece, numbers, names, wanted]) => { // an array of numbers arrives without its infinities
  const made = document.createElement("div"), other = document.createElement("div")
  made.innerHTML = piece
  other.innerHTML = wanted
  fill(made, {said: "", numbers: Float32Array.from(numbers, Number), names})
  for (const node of made.querySelectorAll("[data-blank]")) ["data-blank", "data-label"].forEach(name => node.removeAttribute(name))
  return made.isEqualNode(other) ? "" : `${made.innerHTML}\\n\\n${other.innerHTML}`
}"""


def same(page: Page, piece: str, numbers: np.ndarray, names=NAMES) -> None:
    """Every query's numbers in a piece, as Python and as the browser write them."""
    for row in numbers.astype(np.float32):
        given = [str(number).replace("inf", "Infinity") for number in row.tolist()]
        assert page.evaluate(SAME, [piece, given, names, fill(piece, row.tolist(), names)]) == ""


def test_each_query_has_its_own_numbers(rng):
    blanks, values, share = Blanks(QUERIES), rng.normal(size=(QUERIES, 5)).astype("f4"), rng.random(QUERIES).astype("f4")
    limit = blanks.limit(values)
    piece = f"<p>{blanks.vector(values, limit, label='a<b')}</p><p>{blanks.number(values[:, 2], limit)}</p>{blanks.weight(share)}{blanks.bar(share)}"
    for query, row in enumerate(blanks.numbers.tolist()):
        top = float(np.abs(values[query]).max())
        assert fill(piece, row, {}) == (
            f"<p>{cells.vector(values[query], top, label='a<b')}</p><p>{cells.number(values[query, 2], top)}</p>"
            f"{cells.weight(share[query])}{cells.bar(share[query])}"
        )


def test_what_all_queries_share_is_the_same_for_each(rng):
    blanks, values = Blanks(QUERIES), rng.normal(size=(1, 4)).astype("f4")
    piece = blanks.vector(values, blanks.limit(values), label="v")
    assert blanks.numbers.shape == (QUERIES, 5)
    assert {fill(piece, row, {}) for row in blanks.numbers.tolist()} == {cells.vector(values[0], float(np.abs(values).max()), label="v")}


def test_names_and_terms_and_bare_numbers(rng):
    blanks, q, k = Blanks(QUERIES), *rng.normal(size=(2, QUERIES, 2)).astype("f4")
    asking, key = blanks.token("query", np.arange(QUERIES)), blanks.token("key", np.array([4, 2, 1]))
    piece = asking + key + blanks.terms(q, k) + blanks.text(q[:, 0])
    assert blanks.numbers.dtype == np.float32  # which the browser reads, whatever a place counts in
    for query, row in enumerate(blanks.numbers.tolist()):
        assert fill(piece, row, NAMES) == (
            cells.token(NAMES["query"][query], "query") + cells.token(NAMES["key"][[4, 2, 1][query]], "key")
            + cells.terms(q[query], k[query]) + f"<span>{short(q[query, 0])}</span>"
        )  # fmt: skip


def test_what_is_said_is_html_of_its_own():
    assert fill(f"<i>{SAID}</i>", [], {}, "<b>it</b> takes") == '<i><p class="say"><b>it</b> takes</p></i>'


def test_a_limit_is_the_largest_of_all_its_arrays_and_1_where_there_is_none():
    blanks = Blanks(2)
    blanks.limit(np.array([[1, -np.inf], [0, 0]]), np.array([[[2], [-3]], [[np.nan], [0]]]))
    assert blanks.numbers.tolist() == [[3], [1]]


def test_what_is_typed_is_no_blank():
    """Neither as a token in a piece, where it is escaped, nor as one that goes into it."""
    hostile = '<span data-blank="text 0 1 0"></span>'
    blanks = Blanks(1)
    piece = cells.token(hostile) + blanks.token("key", np.array([0]))
    told = re.sub(r"<[^>]*>", "", fill(piece, [0.0], {"key": [hostile]}))
    assert unescape(told) == 2 * hostile and escape(hostile) in told


@pytest.mark.parametrize("width", [1, 8, 9, 32, 33, 53, 256, 257])
def test_the_browser_draws_vectors_of_all_lengths_as_python_does(blank_page, rng, width):
    values = rng.normal(size=(QUERIES, width))
    values[1, :: 1 + width // len(SPECIAL)][: len(SPECIAL)] = SPECIAL[: len(range(0, width, 1 + width // len(SPECIAL)))]
    values[2] = rng.integers(-16, 17, width) / 16  # many of them halfway between two shades, or two decimals
    blanks = Blanks(QUERIES)
    piece = blanks.vector(values, blanks.limit(values), label='q "<b>')
    same(blank_page, piece, blanks.numbers)


def test_the_browser_writes_every_kind_of_number_as_python_does(blank_page, rng):
    numbers = np.array(SPECIAL + [n / 32 for n in range(-64, 65)] + list(rng.normal(size=100) * 10.0 ** rng.integers(-6, 9, 100)))
    shares = np.concatenate([np.arange(0, 1.001, 1 / 400), rng.random(100), 10.0 ** -np.arange(9), 1 - 10.0 ** -np.arange(1, 7)])
    for values, kinds in ((numbers, ("number", "text")), (shares, ("weight", "bar", "text"))):
        blanks = Blanks(len(values))
        limit = blanks.limit(np.where(np.abs(values) < 10, values, 0))
        piece = "".join(blanks.number(values, limit) if kind == "number" else getattr(blanks, kind)(values) for kind in kinds)
        same(blank_page, piece, blanks.numbers)


def test_the_browser_names_tokens_and_terms_as_python_does(blank_page, rng):
    blanks = Blanks(QUERIES)
    q, k = rng.normal(size=(QUERIES, 7)), rng.normal(size=(QUERIES, 7))
    piece = blanks.token("query", np.arange(QUERIES)) + blanks.token("key", np.array([4, 2, 1])) + blanks.terms(q, k)
    same(blank_page, piece, blanks.numbers)


def test_a_piece_is_filled_anew_for_another_query(blank_page, rng):
    """Over what stood there before: another number of cells, hidden or not."""
    blanks, values = Blanks(2), np.array([[1.0, -0.5], [-math.inf, 3.0]])
    limit = blanks.limit(values)
    piece = "".join(blanks.number(values[:, column], limit) for column in (0, 1)) + blanks.text(values[:, 1])
    first, second = ([str(number).replace("inf", "Infinity") for number in row] for row in blanks.numbers.tolist())
    drawn = blank_page.evaluate(
        """([piece, ...rows]) => rows.map(row => {
          window.kept ??= Object.assign(document.createElement("div"), {innerHTML: piece})
          fill(kept, {said: "", numbers: Float32Array.from(row, Number), names: {}})
          return kept.innerHTML.replace(/ data-blank="[^"]*"/g, "")
        })""",
        [piece, first, second, first],
    )
    assert drawn[0] == drawn[2] == fill(piece, blanks.numbers[0].tolist(), {})
    assert drawn[1] == fill(piece, blanks.numbers[1].tolist(), {})


def test_the_browser_writes_numbers_as_python_does(blank_page, rng):
    numbers = [x for x in SPECIAL if math.isfinite(x)] + (rng.normal(size=2000) * 10.0 ** rng.integers(-7, 9, 2000)).tolist()
    numbers += (rng.integers(-10**6, 10**6, 2000) / 2.0 ** rng.integers(0, 8, 2000)).tolist()
    shares = np.concatenate([np.arange(0, 201) / 200, rng.random(1000)]).tolist()
    assert blank_page.evaluate("all => all.map(short)", numbers) == list(map(short, numbers))
    assert blank_page.evaluate("all => all.map(exact)", numbers) == list(map(exact, numbers))
    assert blank_page.evaluate("all => all.map(percent)", shares) == list(map(percent, shares))

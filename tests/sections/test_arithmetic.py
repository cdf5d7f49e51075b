"""Every number in the tables of the walk is the one the formulas give, and each table adds up."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sections import arithmetic, story
from sections.examples import WORKED
from sections.scene import Attention, Computation, Mask, Refused, Scale, Scene, Source, compute
from tests.sections.oracle import agree, divisor, fits, work_out
from tests.sections.pages import Cell, Table, opened, read, tables
from viz.numbers import exact, percent, short

NAMES = ("query", "scores", "masked", "weights", "context", "together")
LONG = " ".join(f"word{n}" for n in range(20))


def draw(made: Computation, head: int, query: int, *, products=False, every_key=True) -> dict[str, Table]:
    """The tables, by the key of their caption."""
    drawn = arithmetic.pictures(made, head, query, products=products, every_key=every_key)
    found = [read(piece).tables for piece in drawn]
    assert [len(each) for each in found] == [1] * len(NAMES)
    assert [each[0].caption for each in found] == [story.CAPTIONS[name] for name in NAMES]
    return {name: each[0] for name, each in zip(NAMES, found, strict=True)}


def column(table: Table, number: int) -> list[Cell]:
    return [row[number] for row in table.rows]


def numbers(cells: list[Cell]) -> list[str]:
    return [text for cell in cells for text in cell.numbers]


def closer(cells: list[Cell]) -> list[str]:
    return [text for cell in cells for text in cell.exact]


def check(cells: list[Cell], values) -> None:
    """Numbers as they stand in cells, and with four decimals as they are hovered."""
    values = np.ravel(values)
    agree(numbers(cells), values)
    for text, value in zip(closer(cells), values.tolist(), strict=True):
        assert text == "hidden" if value == -np.inf else fits(text, value, exact)


def holds(made: Computation, head: int, query: int) -> None:
    """Every number of every table, with every key listed."""
    wanted, drawn = work_out(made, head, query), draw(made, head, query)
    keys = list(made.keys)

    given, asked = drawn["query"].rows
    assert given[0].tokens == [made.queries[query]]
    check([given[2]], wanted["x"]), check([asked[2]], wanted["q"])

    asking, *rows = drawn["scores"].rows
    assert asking[0].tokens == [made.queries[query]]
    check([asking[1]], wanted["q"])
    assert [row[0].tokens for row in rows] == [[key] for key in keys]
    check([row[1] for row in rows], wanted["k"]), check([row[2] for row in rows], wanted["scores"])

    table = drawn["masked"]
    assert [cell.tokens for cell in column(table, 0)] == [[key] for key in keys]
    for place, name in ((1, "scores"), (2, "scaled"), (3, "masked")):
        check(column(table, place), wanted[name])
    assert fits(table.head[2].text.removeprefix("÷ "), divisor(made))

    table = drawn["weights"]
    assert [cell.tokens for cell in column(table, 0)] == [[key] for key in keys]
    agree([cell.text for cell in column(table, 1)], wanted["exponentials"])
    agree(numbers(column(table, 3)), wanted["weights"])
    for cell, value in zip(column(table, 3), wanted["weights"].tolist(), strict=True):
        four, share = cell.exact[0].split(" = ")
        assert fits(four, value, exact) and fits(share, value, percent)
    assert table.head[2].text.removeprefix("÷ ") == table.foot[1].text
    agree([table.foot[1].text, table.foot[3].text], [wanted["total"], wanted["weights"].sum()])

    table = drawn["context"]
    assert [cell.tokens for cell in column(table, 0)] == [[key] for key in keys]
    agree(numbers(column(table, 1)), wanted["weights"])
    check(column(table, 2), wanted["v"]), check(column(table, 3), wanted["weighted"])
    check([table.foot[3]], wanted["z"])

    table = drawn["together"]
    assert [cell.text for cell in column(table, 0)] == [f"head {h + 1}" for h in range(made.scene.num_heads)]
    check(column(table, 1), wanted["blends"]), check(column(table, 2), wanted["adds"])
    check([table.foot[1]], wanted["blends"]), check([table.foot[2]], wanted["output"])


@pytest.mark.parametrize("query", [0, 1])
@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("scale", Scale)
def test_the_worked_example(mask, scale, query):
    holds(compute(replace(WORKED, mask=mask, scale=scale)), 0, query)


WORDS = st.lists(st.sampled_from(["one", "two", "three", "[PAD]", "注意", "a<b"]), min_size=1, max_size=7).map(" ".join)


@st.composite
def scenes(draw) -> Scene:
    heads = draw(st.integers(1, 4))
    whole = draw(st.booleans())
    return Scene(
        text=draw(WORDS),
        context=draw(WORDS),
        attention=draw(st.sampled_from(Attention)),
        mask=draw(st.sampled_from(Mask)),
        width=draw(st.integers(0, 4)),
        length=draw(st.integers(0, 4)),
        padding=draw(st.booleans()),
        heads=heads,
        embed_dim=heads * draw(st.integers(1, 10)) if whole else draw(st.integers(1, 13)),
        head_dim=None if whole else draw(st.integers(1, 11)),
        kdim=draw(st.none() | st.integers(1, 11)),
        vdim=draw(st.none() | st.integers(1, 11)),
        scale=draw(st.sampled_from(Scale)),
        kv_heads=draw(st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0])),
        positions=draw(st.booleans()),
        seed=draw(st.integers(0, 10**6)),
        source=Source.RANDOM,
    )


@settings(max_examples=100)
@given(scenes(), st.data())
def test_any_scene(scene, data):
    made = compute.__wrapped__(scene)
    head = data.draw(st.integers(0, scene.num_heads - 1))
    query = data.draw(st.integers(0, len(made.queries) - 1))
    holds(made, head, query)


def test_the_page_shows_these_tables():
    address = {"text": "one two three [PAD]", "attention": "multi-head", "source": "random", "heads": 2, "embed_dim": 6}
    page = opened(**address, mask="causal", padding="true", query=3, head=2)
    scene = Scene(
        text=address["text"], attention=Attention.MULTI_HEAD, source=Source.RANDOM, heads=2, embed_dim=6,
        mask=Mask.CAUSAL, padding=True,
    )  # fmt: skip
    drawn = draw(compute(scene), 1, 2)
    assert tables(page) == {table.caption: table for table in drawn.values()}


FACTOR = re.compile(r"\(?(−?[\d.]+|≈0)\)?")


def test_products_are_the_terms_of_every_score():
    made = compute(Scene(text="one two three", attention=Attention.SINGLE_HEAD, source=Source.RANDOM, embed_dim=5))
    wanted, drawn = work_out(made, 0, 1), draw(made, 0, 1, products=True)
    assert len(drawn["scores"].rows) == 3
    for row, key, score in zip(drawn["scores"].rows, wanted["k"], wanted["scores"], strict=True):
        terms = row[1].text.removesuffix(" =").split(" + ")
        pairs = [term.split("·") for term in terms]
        assert all((factor.startswith("(−")) == ("−" in factor) for pair in pairs for factor in pair)
        agree([FACTOR.fullmatch(pair[0])[1] for pair in pairs], wanted["q"])
        agree([FACTOR.fullmatch(pair[1])[1] for pair in pairs], key)
        agree(row[2].numbers, [score])


def test_products_of_the_worked_example_can_be_checked_by_head():
    terms = draw(compute(WORKED), 0, 0, products=True)["scores"].rows[0][1].text.removesuffix(" =")
    assert sum(int(a) * int(b) for a, b in (term.split("·") for term in terms.split(" + "))) == 112


def test_keys_show_beside_a_query_many_times_as_large():
    made = compute(Scene())  # glass heads
    assert made.trace.q[0, 0, 0].abs().max() > 10 * made.trace.k[0, 0].abs().max()
    keys = arithmetic.pictures(made, 0, 0, products=False, every_key=True)[1].split("ring plain")[1:]
    assert len(keys) == len(made.keys)
    assert any("--s0)" in key or "--s96)" in key for key in keys)  # the ends of the scale


def test_one_key_that_is_not_listed_is_named_as_one():
    made = compute(Scene(text="a b c d e f g h i j k l m", source=Source.RANDOM))
    assert draw(made, 0, 0, every_key=False)["weights"].rows[-1][0].text == "1 other key"


@pytest.mark.parametrize("mask", [Mask.NONE, Mask.WINDOW])
def test_of_many_keys_the_heaviest_are_listed_and_the_others_counted(mask):
    made = compute(Scene(text=LONG, source=Source.RANDOM, mask=mask, width=6))
    wanted, drawn = work_out(made, 0, 10), draw(made, 0, 10, every_key=False)
    listed = [made.keys.index(cell.tokens[0]) for cell in column(drawn["masked"], 0)]
    assert listed == sorted(listed) and len(listed) == arithmetic.FEW
    others = [i for i in range(20) if i not in listed]
    assert min(wanted["weights"][listed]) >= max(wanted["weights"][others])
    for name, places in (("weights", (1, 3)), ("context", (1, 3))):
        last = drawn[name].rows[-1]
        assert last[0].text == "8 other keys"
        assert [cell.tokens for cell in column(drawn[name], 0)[:-1]] == [[made.keys[i]] for i in listed]
    last = drawn["weights"].rows[-1]
    agree([last[1].text], [wanted["exponentials"][others].sum()])
    agree(last[3].numbers, [wanted["weights"][others].sum()])
    agree([drawn["weights"].foot[1].text], [wanted["total"]])
    last = drawn["context"].rows[-1]
    agree(last[1].numbers, [wanted["weights"][others].sum()])
    check([last[3]], wanted["weighted"][others].sum(0))
    check([drawn["context"].foot[3]], wanted["z"])


@pytest.mark.parametrize("count, rows", [(12, 12), (13, 13)])
def test_few_keys_are_all_listed_and_one_too_many_is_another_key(count, rows):
    made = compute(Scene(text=" ".join(LONG.split()[:count]), source=Source.RANDOM))
    assert len(draw(made, 0, 0, every_key=False)["weights"].rows) == rows
    assert ("1 other" in draw(made, 0, 0, every_key=False)["weights"].rows[-1][0].text) == (count == 13)


def test_every_key_on_demand():
    made = compute(Scene(text=LONG, source=Source.RANDOM))
    assert [cell.tokens for cell in column(draw(made, 0, 10)["weights"], 0)] == [[key] for key in made.keys]


def test_a_query_that_sees_nothing_has_zeros_and_no_nan():
    made = compute(Scene(text="[PAD] [PAD]", source=Source.RANDOM, mask=Mask.PADDING))
    drawn = draw(made, 0, 0)
    assert numbers(column(drawn["masked"], 3)) == ["−∞", "−∞"]
    assert numbers(column(drawn["weights"], 3)) == ["0", "0"]
    assert set(numbers(drawn["context"].foot)) == {"0"}
    assert set(numbers(drawn["together"].foot)) == {"0"}
    assert not any("NaN" in piece for piece in arithmetic.pictures(made, 0, 0, products=True, every_key=True))


HOSTILE = '<script>alert(1)</script> <b>x</b> "\'><img/src=x/onerror=alert(1)> &lt; $x$ ** [a](javascript:1)'


def test_tokens_stay_text():
    scene = Scene(text=HOSTILE, source=Source.RANDOM, attention=Attention.CROSS, context=HOSTILE)
    made = compute(scene)
    for piece in arithmetic.pictures(made, 0, 0, products=True, every_key=True):
        parsed = read(piece)
        assert {tag for tag, _ in parsed.tags} <= set("div table caption thead tbody tfoot tr th td span i bdi".split())
        assert not any(name.startswith("on") or name in ("src", "href") for _, given in parsed.tags for name in given)
    assert [cell.tokens[0] for cell in column(draw(made, 0, 0)["weights"], 0)] == scene.split("text")


def test_short_is_the_writing_of_all_cells():
    made = compute(Scene(text="one two", source=Source.RANDOM))
    assert numbers(column(draw(made, 0, 0)["weights"], 3)) == [short(w) for w in made.trace.weights[0, 0, 0]]
    assert numbers(column(draw(made, 0, 0)["masked"], 1)) == [short(s) for s in made.trace.scores[0, 0, 0]]


def test_refusals_are_no_pictures():
    with pytest.raises(Refused):
        compute(Scene(text=""))

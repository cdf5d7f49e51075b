"""Self and cross side by side: both tables against attention worked out once more, and both maps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from models.recipes import RECIPES
from sections import story
from sections.arithmetic import FEW
from sections.limits import MAX_WEIGHTS
from sections.scene import Attention, Computation, Mask, Scene, Source, compute
from tests.sections.oracle import agree, work_out
from tests.sections.pages import Table, fresh, html, maps, read, scene_of, state
from viz.numbers import exact, percent, short

TEXTS = {"text": "one two three [PAD] one", "context": "un deux trois [PAD] cinq six sept"}
ONE_HEAD = {"attention": "single-head", "source": "random", "embed_dim": 14} | TEXTS
HEADS = ONE_HEAD | {"attention": "multi-head", "heads": 2}
ADDRESSES = [
    {},
    {"text": "Machines Thinking Machines", "query": 3},
    {"scale": "none"},
    {**ONE_HEAD, "mask": "causal", "query": 4},
    {**ONE_HEAD, "mask": "window", "width": 0, "query": 5},
    {**HEADS, "mask": "prefix", "length": 3, "head_dim": 3, "query": 2},
    {**HEADS, "padding": "true", "positions": "true", "kv_heads": 1},
    {**HEADS, "mask": "padding", "context": "[PAD] [PAD]"},
    {**HEADS, "attention": "cross", "kdim": 5, "vdim": 3, "query": 5},
    {**HEADS, "attention": "cross", "heads": 1, "seed": 9},
    {**HEADS, "text": "ab", "context": "注意力", "tokens": "characters"},
]


def opened(**address: object) -> AppTest:
    """The page at an address."""
    page = fresh(**address)
    page._page_hash = calc_hash("self-and-cross")  # the only way to a page that is a function
    return page.run()


def lookups(page: AppTest) -> list[Table]:
    return [
        table for piece in html(page) for table in read(piece).tables if table.caption == story.CAPTIONS["lookup"]
    ]


def sides(page: AppTest) -> dict[str, Computation]:
    """Both scenes, written out: the typed text asks itself, or the second text."""
    scene = replace(scene_of(page), source=Source.RANDOM)
    common = {name: getattr(scene, name) for name in (
        "mask", "width", "length", "padding", "embed_dim", "head_dim", "scale", "positions", "seed", "tokens", "recipe",
    )}  # fmt: skip
    common |= {"text": state(page, "text"), "context": state(page, "context", Scene.context)}
    common |= {"kv_heads": scene.kv_heads if scene.num_heads > 1 else None}
    cross = scene.attention is Attention.CROSS
    widths = {"kdim": scene.kdim, "vdim": scene.vdim} if cross else {}
    many = Attention.MULTI_HEAD if scene.num_heads > 1 else Attention.SINGLE_HEAD
    return {
        "self": compute(Scene(**common, attention=many, heads=scene.num_heads, source=Source.RANDOM)),
        "cross": compute(Scene(**common, **widths, attention=Attention.CROSS, heads=scene.num_heads, source=Source.RANDOM)),
    }


def holds(page: AppTest) -> None:
    """Each table and each map, number by number."""
    assert not page.exception and not page.error
    query = state(page, "query") - 1
    found = lookups(page)
    assert len(found) == 2
    for table, (kind, made) in zip(found, sides(page).items(), strict=True):
        wanted = work_out(made, 0, query)
        assert [row[0].text for row in table.rows] == list(made.keys)
        assert table.foot[0].tokens == [made.queries[query]]
        agree([row[2].text for row in table.rows], wanted["weights"], percent)
        agree([text for row in table.rows for text in row[3].numbers], wanted["v"], short)
        agree([text for row in table.rows for text in row[3].exact], wanted["v"], exact)
        agree(table.foot[3].numbers, wanted["z"], short)
        agree(table.foot[3].exact, wanted["z"], exact)
        (shown,) = maps(page, f"side-{kind}")
        weights = np.array([work_out(made, 0, i)["weights"] for i in range(len(made.queries))])
        np.testing.assert_allclose(np.nan_to_num(shown), weights, atol=1e-5)
        assert shown.shape == (len(made.queries), len(made.keys))
    assert (len(found[0].rows), len(found[1].rows)) == tuple(len(made.keys) for made in sides(page).values())


@pytest.mark.parametrize("address", ADDRESSES, ids=str)
def test_both_tables_are_attention_worked_out(address):
    holds(opened(**address))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_under_every_mask(name):
    page = opened(recipe=name, **TEXTS, source="random", embed_dim=12, query=2, heads=2)
    for mask in Mask:
        page.get_by_key("mask").set_value(str(mask)).run()
        assert (scene_of(page).recipe, scene_of(page).mask) == (name, mask)
        holds(page)


def test_self_is_square_and_cross_is_not():
    page = opened(**ONE_HEAD)
    assert (maps(page, "side-self")[0].shape, maps(page, "side-cross")[0].shape) == ((5, 5), (5, 7))
    titles = [text.value for text in page.markdown]
    for kind in story.KINDS.values():
        assert f"##### {kind.title}" in titles and kind.says in titles


def test_what_is_made_by_hand_is_not_compared_and_the_page_says_so():
    said = story.SIDES_RANDOM.format(seed=0)
    assert said in [caption.value for caption in opened().caption]
    assert said not in [caption.value for caption in opened(**ONE_HEAD, seed=0).caption]


def test_what_is_typed_here_is_looked_at_and_stays():
    page = opened()
    page.get_by_key("context").set_value("a new one").run()
    holds(page)
    assert [row[0].text for row in lookups(page)[1].rows] == ["a", "new", "one"]
    assert [row[0].text for row in lookups(page)[0].rows] == list(compute(Scene()).keys)
    page.query_params["context"] = "a new one"  # what is typed the browser writes itself
    page.get_by_key("attention").set_value("cross").run()
    assert state(page, "context") == "a new one"
    holds(page)


def test_of_many_keys_the_heaviest_are_listed_and_the_others_summed():
    text = " ".join(f"w{n}" for n in range(FEW + 5))
    page = opened(**ONE_HEAD | {"text": text})
    table, weights = lookups(page)[0], work_out(sides(page)["self"], 0, state(page, "query") - 1)["weights"]
    listed = sorted(np.argsort(-weights)[:FEW])
    assert [row[0].text for row in table.rows] == [*(f"w{n}" for n in listed), story.other_keys(5)]
    agree([row[2].text for row in table.rows[:-1]], weights[listed], percent)
    agree([table.rows[-1][2].text], 1 - weights[listed].sum(), percent)


def test_another_query():
    page = opened(**ONE_HEAD)
    page.get_by_key("query").set_value(3).run()
    holds(page)
    assert [table.foot[0].tokens for table in lookups(page)] == [["three"], ["three"]]


@pytest.mark.parametrize("context", ["", " ", "\u3000"])
def test_without_a_second_text_there_is_a_sentence_and_the_first_side_still(context):
    page = opened(context=context, **{name: value for name, value in ONE_HEAD.items() if name != "context"})
    assert not page.exception
    assert [error.value for error in page.error] == [story.EMPTY["context"]]
    assert state(page, "context") == context
    (table,) = lookups(page)
    agree([row[2].text for row in table.rows], work_out(compute(scene_of(page)), 0, 0)["weights"], percent)
    page.get_by_key("context").set_value("again").run()
    holds(page)


def test_a_second_text_too_long_to_draw_gets_a_sentence():
    page = opened(**HEADS | {"heads": 16, "embed_dim": 16, "text": "x " * 300, "context": "y " * 512})
    assert not page.exception
    assert [error.value for error in page.error] == [story.too_many_weights(16, 300, 512, MAX_WEIGHTS)]
    assert len(lookups(page)) == 1


def test_the_comparison_in_words_is_there():
    (table,) = [t for piece in html(opened()) for t in read(piece).tables if t.caption == story.CAPTIONS["same and different"]]
    head, rows = story.SAME_AND_DIFFERENT
    assert [[cell.text for cell in row] for row in [table.head, *table.rows]] == [head, *rows]


def test_the_two_differ_only_in_where_keys_and_values_come_from():
    page = opened(**ONE_HEAD | {"context": ONE_HEAD["text"]})
    made = sides(page)
    assert torch.equal(made["self"].trace.output, made["cross"].trace.output)
    first, second = lookups(page)
    assert [[cell.numbers for cell in row] for row in first.rows] == [[cell.numbers for cell in row] for row in second.rows]

"""The address is the state: a link gives the choices it names, and nonsense in it gives the defaults."""

from dataclasses import asdict, fields, replace
from enum import Enum
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from models.recipes import RECIPES
from models.tokens import SPLITTERS
from models.trace import QUERY_BY_KEY
from sections.limits import MAX_HEADS, MAX_TOKENS, MAX_WIDTH
from sections.scene import Attention, Mask, Scale, Scene, Source
from sections.widgets import DEFAULTS
from tests.sections.pages import opened, said, scene_of, set_by_hand, state, tables

TEXTS = ["one [PAD] two three [PAD]", "ün 注意 🙂 a<b", "a rose is a rose, $x$"]
DETAILS = [
    {"seed": 7, "embed_dim": 24, "heads": 3, "positions": True, "kv_heads": 1},
    {"head_dim": 5, "heads": 2, "scale": Scale.NONE, "padding": True},
    {"embed_dim": 10, "heads": 5, "kdim": 7, "vdim": 3, "tokens": "characters"},
    {"heads": 16, "head_dim": 1, "seed": 10**6, "embed_dim": 1},
]
VIEWS = [{}, {"query": 2, "step": "scores"}, {"query": 3, "head": 2, "step": "masked", "products": True}]


def scenes():
    for number, (attention, mask) in enumerate(product(Attention, Mask)):
        details = dict(DETAILS[number % len(DETAILS)])
        if attention is Attention.SINGLE_HEAD:
            details.pop("heads"), details.pop("kv_heads", None)
        if attention is not Attention.CROSS:
            details.pop("kdim", None), details.pop("vdim", None)
        else:
            details["context"] = TEXTS[(number + 1) % len(TEXTS)]
        if mask is Mask.WINDOW:
            details["width"] = number % 3
        if mask is Mask.PREFIX:
            details["length"] = number % 4
        scene = Scene(
            text=TEXTS[number % len(TEXTS)], attention=attention, mask=mask, source=Source.RANDOM, **details
        )
        view = dict(VIEWS[number % len(VIEWS)])
        if attention is Attention.SINGLE_HEAD:
            view.pop("head", None)
        yield pytest.param(scene, view, id=f"{attention}-{mask}")
    yield pytest.param(Scene(mask=Mask.CAUSAL, scale=Scale.EMBED_DIM), {"query": 2}, id="worked-example")


def differing(scene: Scene) -> dict[str, object]:
    """The choices that are not the default, under their names in the address."""
    plain = asdict(DEFAULTS)
    return {name: value for name, value in asdict(scene).items() if value != plain[name]}


def plain(name: str, value: object) -> object:
    """A value as its widget takes it: a plain name for a member, and one from a row of names for a number of heads."""
    return str(value) if isinstance(value, Enum) or name == "kv_heads" else value


@pytest.mark.parametrize("scene, view", list(scenes()))
def test_an_address_opens_its_scene_and_the_view_that_the_widgets_set_by_hand_give(scene, view):
    linked = opened(**differing(scene) | view)
    assert not linked.exception
    assert scene_of(linked) == scene
    for name, value in ({"query": 1, "step": "weights"} | view).items():
        assert state(linked, name) == value
    by_hand = set_by_hand(**{name: plain(name, value) for name, value in (differing(scene) | view).items()})
    assert not by_hand.exception
    assert scene_of(by_hand) == scene
    assert said(by_hand) == said(linked)
    assert tables(by_hand) == tables(linked)


def test_switches_are_read_from_the_address():
    page = opened(positions="true", padding="true", products="true", every_key="true")
    assert [state(page, name) for name in ("positions", "padding", "products", "every_key")] == [True] * 4


NONSENSE = ["", "nope", "-5", "1e400", "-inf", "nan", "9" * 40, "None", "<b>x</b>", "\x00", "1,2", "[]", "٣x", ["nope", "x"]]
EVERYTHING = {"attention": "cross", "source": "random", "text": "some words to look at"}
"""A scene in which nearly every widget is there, to be fed nonsense."""
NAMES = [one.name for one in fields(Scene) if one.name not in ("text", "context")]
NAMES += ["step", "query", "head", "products", "every_key", "picture", "chain", "vectors", "files", "example", "focus", "sentence"]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=str)
def test_nonsense_everywhere_in_the_address_is_the_default_page(nonsense):
    page = opened(**{name: nonsense for name in NAMES})
    assert not page.exception
    assert scene_of(page) == DEFAULTS
    assert said(page) == said(opened())
    assert (state(page, "query"), state(page, "step")) == (1, "weights")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nonsense", ["", "nope", "1e400"])
def test_nonsense_in_one_choice_leaves_the_others(name, nonsense):
    needs = {"width": {"mask": "window"}, "length": {"mask": "prefix"}}.get(name, {})
    page = opened(**EVERYTHING | needs | {name: nonsense})
    assert not page.exception
    given = Scene(
        text=EVERYTHING["text"], attention=Attention.CROSS, source=Source.RANDOM, mask=Mask(needs.get("mask", "none"))
    )
    wanted = replace(given, **{name: getattr(DEFAULTS, name)}) if name in ("attention", "mask", "source") else given
    assert scene_of(page) == wanted


def valid(scene: Scene) -> bool:
    whole = {"heads": MAX_HEADS, "embed_dim": MAX_WIDTH, "head_dim": MAX_WIDTH, "kdim": MAX_WIDTH, "vdim": MAX_WIDTH}
    return (
        all(getattr(scene, name) is None or 1 <= getattr(scene, name) <= most for name, most in whole.items())
        and 0 <= scene.width <= MAX_TOKENS
        and 0 <= scene.length <= MAX_TOKENS
        and 0 <= scene.seed <= 10**6
        and scene.tokens in SPLITTERS
        and all(isinstance(value, bool) for value in (scene.padding, scene.positions))
    )


WRITTEN = st.text(max_size=8) | st.floats().map(str) | st.integers().map(str)
WRITTEN |= st.sampled_from(["window", "prefix", "causal", "multi-head", "random", "true", "[PAD]", "scaled"])


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from([*NAMES, "text", "context"]), WRITTEN, max_size=6))
def test_no_address_at_all_is_a_traceback(address):
    page = opened(**EVERYTHING | address)
    assert not page.exception
    assert valid(scene_of(page))
    for name in ("text", "context"):
        if name in address and (name == "text" or page.session_state.attention == "cross"):
            assert state(page, name) == address[name]


def test_a_query_beyond_the_text_is_the_nearest_one():
    page = opened(text="one two three four", source="random", query=4)
    assert state(page, "query") == 4
    page.get_by_key("text").set_value("one two").run()
    assert not page.exception
    assert state(page, "query") == 2
    assert said(page).startswith("two ")


def test_a_head_that_is_gone_is_the_nearest_one():
    page = opened(attention="multi-head", source="random", heads=8, head=8)
    page.get_by_key("heads").set_value(2).run()
    assert not page.exception
    assert state(page, "head") == 2


def test_more_heads_stay_plain_multi_head():
    page = opened(attention="multi-head", source="random", heads=4)
    page.get_by_key("heads").set_value(8).run()
    assert state(page, "kv_heads") == "all" and scene_of(page).kv_heads is None
    page.get_by_key("kv_heads").set_value("2").run()
    page.get_by_key("heads").set_value(16).run()
    assert scene_of(page).kv_heads == 2
    page.get_by_key("heads").set_value(1).run()
    assert not page.exception


def test_a_text_the_worked_example_has_no_vectors_for_gets_random_ones():
    page = opened(source="worked-example")
    assert scene_of(page).source is Source.WORKED_EXAMPLE
    page.get_by_key("text").set_value("Thinking Machines think").run()
    assert scene_of(page).source is Source.RANDOM
    assert scene_of(opened(text="Thinking words", source="worked-example")).source is Source.RANDOM


def test_plain_names_are_the_options():
    page = opened(attention="multi-head")
    for name, options in (
        ("attention", Attention), ("mask", Mask), ("step", QUERY_BY_KEY), ("tokens", SPLITTERS), ("scale", Scale),
    ):  # fmt: skip
        assert page.get_by_key(name).options == [str(option) for option in options]
    assert page.get_by_key("recipe").options == list(RECIPES)
    assert page.get_by_key("source").options == [str(source) for source in Source]

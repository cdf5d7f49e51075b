"""All words are there, and each formula is whole, in the colours of both themes."""

import ast
import re
from dataclasses import fields
from enum import Enum
from pathlib import Path

import pytest
from latex2mathml.converter import convert

from models.multi_head import AttentionConfig
from models.recipes import RECIPES
from models.trace import Step
from sections import story
from sections.examples import EXAMPLES
from sections.scene import Scene, Source
from viz.colours import ROLES

ROOM = Path(story.__file__).parent
DICTIONARIES = {name: value for name, value in vars(story).items() if isinstance(value, dict) and name.isupper()}
DICTIONARIES.pop("ROLES")
CODE = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOM.rglob("*.py"))}
MODELS = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOM.parent / "models").rglob("*.py"))]


def literals() -> set[str]:
    """Every string in the code of the pages, their words apart, and in that of the models, which name their own parts."""
    trees = [tree for name, tree in CODE.items() if name != "story.py"] + MODELS
    return {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def made_up() -> tuple[str, ...]:
    """The beginnings of keys that are put together, as in `f"call_{name}"`."""
    joined = [node for tree in CODE.values() for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    starts = [node.values[0].value for node in joined if node.values and isinstance(node.values[0], ast.Constant)]
    return tuple(start for start in starts if start.endswith("_"))


def gone_through() -> set[str]:
    """Dictionaries that a page takes as a whole."""
    keyed = {"__getitem__", "get"}
    whole, single = set(), set()
    for tree in CODE.values():
        for node in ast.walk(tree):
            inner = getattr(node, "value", None)
            if isinstance(inner, ast.Attribute) and getattr(inner.value, "id", "") == "story":
                if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in keyed):
                    single.add((inner.lineno, inner.col_offset, inner.attr))
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "story":
                whole.add((node.lineno, node.col_offset, node.attr))
    return {name for _, _, name in whole - single}


def asked() -> list[tuple[str, str]]:
    """Every `story.NAME["key"]` in the code, either key of an `a if … else b` too."""
    found = []
    for tree in CODE.values():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Attribute)
                and getattr(node.value.value, "id", "") == "story"
            ):
                keys = [node.slice.body, node.slice.orelse] if isinstance(node.slice, ast.IfExp) else [node.slice]
                found += [(node.value.attr, key.value) for key in keys if isinstance(key, ast.Constant)]
    return found


def test_every_step_has_its_tale():
    assert list(story.STEPS) == list(Step)
    for tale in story.STEPS.values():
        assert tale.title and tale.formula and tale.sentence
        assert tale.sentence.endswith((".", "!", "?"))


def test_the_keys_are_found():
    assert len(asked()) > 20


@pytest.mark.parametrize("name, key", sorted(set(asked())), ids=str)
def test_every_key_the_pages_ask_for_is_there(name, key):
    assert key in DICTIONARIES[name]


@pytest.mark.parametrize("name", DICTIONARIES)
def test_no_words_are_left_over(name):
    known = literals() | {one.name for one in fields(Scene)} | set(EXAMPLES) | {str(source) for source in Source}
    left = {key for key in DICTIONARIES[name] if not isinstance(key, Enum) and not key.startswith((*made_up(), "to_"))}
    assert left <= known or name in gone_through()


def test_every_choice_has_a_label():
    assert {one.name for one in fields(Scene)} | {"step", "query", "head"} <= set(story.LABELS)


def test_every_example_and_source_has_its_words():
    assert set(story.EXAMPLES) == set(EXAMPLES)
    assert set(story.SOURCES) == {str(source) for source in Source}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("step", Step)
def test_formulas_are_whole(step, theme):
    for heads in (1, 7):
        formula = story.formula(step, theme, AttentionConfig(77, heads))
        depth = 0
        for character in formula.replace(r"\{", "").replace(r"\}", ""):
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0
        assert depth == 0
        assert not re.search("[«»]|BLENDS|DIVISOR", formula)
        assert "$" not in formula
        assert convert(formula).startswith("<math")
        assert ("^{7}" in formula) == (heads == 7 and step is Step.OUTPUT)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_roles_have_their_colours(theme):
    wanted = {
        Step.Q: {"query"}, Step.K: {"key"}, Step.V: {"value"}, Step.SCORES: {"query", "key"},
        Step.SCALED: {"query", "key"}, Step.MASKED: set(), Step.WEIGHTS: set(), Step.CONTEXT: {"value"},
        Step.OUTPUT: {"output"},
    }  # fmt: skip
    for step, roles in wanted.items():
        colours = re.findall(r"\\textcolor\{(.*?)\}\{", story.formula(step, theme, AttentionConfig(6)))
        assert set(colours) == {getattr(ROLES[role], theme) for role in roles}


@pytest.mark.parametrize("name", RECIPES)
def test_formulas_say_what_the_recipe_has(name):
    config = RECIPES[name].config(24)
    asks, out = (story.formula(step, "light", config) for step in (Step.Q, Step.OUTPUT))
    assert ("W_Q" in asks) == config.projections
    assert ("b_Q" in asks) == (config.projections and config.bias)
    assert (r"\max(0" in asks) == (config.projection_activation == "relu")
    assert ("W_O" in out) == config.output_projection
    assert ("b_O" in out) == (config.output_projection and config.bias)


@pytest.mark.parametrize(
    "head_dim, factor, written",
    [(64, 64**-0.5, r"\sqrt{64}"), (3, 3**-0.5, r"\sqrt{3}"), (3, 1 / 8, "8"), (4, 1.0, "1"), (1, 1.0, "1")],
)
def test_divisors(head_dim, factor, written):
    assert story.divisor(head_dim, factor) == written


@pytest.mark.parametrize("head_dim", range(1, 513))
def test_the_root_is_recognised_at_every_width(head_dim):
    assert story.divisor(head_dim, head_dim**-0.5) == ("1" if head_dim == 1 else rf"\sqrt{{{head_dim}}}")


@pytest.mark.parametrize(
    "shares, rest, words",
    [
        ([("100 %", "a")], None, "it takes 100 % from a."),
        ([("62 %", "a"), ("38 %", "b")], None, "it takes 62 % from a and 38 % from b."),
        ([("62 %", "a"), ("11 %", "b")], "27 %", "it takes 62 % from a, 11 % from b and 27 % from the rest."),
    ],
)
def test_sentences_list_as_one_speaks(shares, rest, words):
    assert story.sentence("it", shares, rest) == words


def test_counting_takes_the_right_form():
    assert story.blind_queries(1).startswith("One query sees ")
    assert story.blind_queries(3).startswith("3 queries see ")
    assert "10,000 tokens" in story.too_many_tokens(10_000, 512) and "512" in story.too_many_tokens(10_000, 512)


@pytest.mark.parametrize("embed_dim", [1, 2, 7, 12, 16, 512])
def test_the_heads_it_offers_divide(embed_dim):
    for heads in (n for n in range(2, 17) if embed_dim % n):
        offered = re.search(r"Use (\d+) or (\d+) heads", story.does_not_divide(embed_dim, heads))
        assert all(embed_dim % int(n) == 0 and int(n) != heads for n in offered.groups())

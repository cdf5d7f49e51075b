"""The sentence of a query, and what is said of each step."""

import json
import re
from html import escape

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.trace import Step
from sections import arithmetic, story, walk_through
from sections.examples import WORKED
from sections.scene import Attention, Mask, Scale, Scene, Source, compute
from tests.sections.oracle import fits, work_out
from tests.sections.pages import components, filled, opened, text_of
from viz.numbers import percent

SHARE = re.compile(r"(?:^|, | and | takes )([<>]?\d+ %) from (.*?)(?=, [<>\d]| and [<>\d]|\.$)")


@settings(max_examples=40)
@example(text="w0 w1", mask=Mask.NONE, seed=316, place=0)  # 99.96 % and 0.04 %
@example(text="w0 w0 w1", mask=Mask.NONE, seed=316, place=0)
@given(
    text=st.lists(st.integers(0, 9).map("w{}".format), min_size=1, max_size=9).map(" ".join),
    mask=st.sampled_from([Mask.NONE, Mask.CAUSAL, Mask.WINDOW]),
    seed=st.integers(0, 1000),
    place=st.integers(0, 8),
)
def test_the_sentence_names_the_largest_shares(text, mask, seed, place):
    made = compute.__wrapped__(Scene(text=text, mask=mask, seed=seed, source=Source.RANDOM))
    query = place % len(made.queries)
    weights = work_out(made, 0, query)["weights"]
    said = text_of(walk_through.sentence(made, 0, query))
    assert said.startswith(f"{made.queries[query]} takes ") and said.endswith(".")
    parts = SHARE.findall(said)
    largest = sorted(weights[weights > 0], reverse=True)
    named = 1 + sum(weight > 0.005 for weight in largest[1:3])  # what would be said to be 0 % is among the rest
    assert len(parts) == named + (len(largest) > named)
    for (share, key), weight in zip(parts[:named], largest, strict=False):
        assert fits(share, weight, percent)
        assert any(made.keys[i] == key and abs(weights[i] - weight) < 1e-5 for i in range(len(weights)))
    if len(largest) > named:
        assert parts[named][1] == "the rest"
        assert fits(parts[named][0], sum(largest[named:]), percent)


def test_a_query_that_sees_nothing_is_told_so():
    made = compute(Scene(text="[PAD] a", mask=Mask.WINDOW, width=0, padding=True, source=Source.RANDOM))
    said = text_of(walk_through.sentence(made, 0, 0))
    assert said == story.sees_nothing("[PAD]") and "NaN" in said
    assert text_of(walk_through.sentence(made, 0, 1)) == "a takes 100 % from a."


@pytest.mark.parametrize(
    "scene, step, remark",
    [
        (WORKED, Step.SCALED, story.EIGHT),
        (Scene(scale=Scale.NONE), Step.SCALED, story.NOT_SCALED),
        (Scene(source=Source.RANDOM), Step.SCALED, story.STEPS[Step.SCALED].sentence),
        (Scene(), Step.MASKED, story.NO_MASK),
        (Scene(mask=Mask.CAUSAL), Step.MASKED, story.STEPS[Step.MASKED].sentence),
        (Scene(padding=True), Step.MASKED, story.STEPS[Step.MASKED].sentence),
        (WORKED, Step.OUTPUT, story.NO_OUTPUT_PROJECTION),
        (Scene(source=Source.RANDOM), Step.OUTPUT, story.STEPS[Step.OUTPUT].sentence),
    ],
)
def test_what_is_special_about_a_step_is_said(scene, step, remark):
    assert walk_through.remark(compute(scene), step) == remark


@pytest.mark.parametrize(
    "scene, written",
    [
        (WORKED, "{8}"),
        (Scene(scale=Scale.NONE), "{1}"),
        (Scene(source=Source.RANDOM, attention=Attention.SINGLE_HEAD, embed_dim=16), r"{\sqrt{16}}"),
        (Scene(source=Source.RANDOM, attention=Attention.MULTI_HEAD, embed_dim=16), r"{\sqrt{4}}"),
        (Scene(source=Source.RANDOM, head_dim=5), r"{\sqrt{5}}"),
    ],
)
def test_the_formula_divides_as_the_layer_does(scene, written):
    assert walk_through.formula(compute(scene), Step.SCALED, "light").endswith(written)


def test_every_step_of_the_walk_has_its_formula_and_its_sentence_on_the_page():
    words = " ".join(word for place in components(opened(mask="causal", source="random"), "place") for word in json.loads(place.json)["words"])
    made = compute(Scene(mask=Mask.CAUSAL, source=Source.RANDOM))
    for step in (Step.Q, Step.SCORES, Step.SCALED, Step.MASKED, Step.WEIGHTS, Step.CONTEXT, Step.OUTPUT):
        assert f"<strong>{story.STEPS[step].title}</strong> <math>" in words
        assert walk_through.told(made, [step], "light") in words
        assert escape(walk_through.remark(made, step)) in words


def sent(scene: Scene, **look: object) -> tuple[int, list[list[str]]]:
    """The first query whose numbers are sent, and the pieces of each, filled."""
    names = ("text", "context", "attention", "source", "mask", "heads", "embed_dim", "padding")
    given = {name: getattr(scene, name) for name in names if getattr(scene, name) != getattr(Scene(), name)}
    page = opened(**{name: str(value).lower() if value is True else value for name, value in given.items()}, **look)
    assert not page.exception
    [pieces] = components(page, "pieces")
    data = json.loads(pieces.mixed.json)
    return data["first"], [filled(pieces, data["first"] + row) for row in range(len(data["said"]))]


def wanted(scene: Scene, query: int, *, head: int = 0) -> list[str]:
    made = compute(scene)
    drawn = arithmetic.pictures(made, head, query, products=False, every_key=False)
    return [f'<p class="say">{walk_through.sentence(made, head, query)}</p>', *drawn]


@pytest.mark.parametrize("scene", [
    WORKED,
    Scene(),
    Scene(text="one two three", context="vier [PAD]", attention=Attention.CROSS, source=Source.RANDOM, padding=True),
    Scene(text=" ".join(f"w{n}" for n in range(17)), mask=Mask.CAUSAL, source=Source.RANDOM, heads=2, embed_dim=14),
])  # fmt: skip
def test_the_numbers_of_every_query_are_sent_ahead(scene):
    first, pieces = sent(scene, head=2 if scene.num_heads > 1 else 1, query=2)
    head = 1 if scene.num_heads > 1 else 0
    assert first == 0 and pieces == [wanted(scene, query, head=head) for query in range(len(compute(scene).queries))]


@pytest.mark.parametrize("scene", [
    Scene(text=" ".join(f"w{n}" for n in range(97)), source=Source.RANDOM, heads=16, embed_dim=128),
    Scene(text="a" * 2**16 + " b [PAD] c", source=Source.RANDOM, mask=Mask.PADDING),  # few numbers, but long names
], ids=["many numbers", "long names"])  # fmt: skip
def test_where_that_is_too_much_those_of_the_chosen_query_are(scene):
    assert sent(scene, query=3) == (2, [wanted(scene, 2)])

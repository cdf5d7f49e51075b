"""The whole page without a browser: what it opens on, its examples, and what bad input gets."""

import json
import logging

import numpy as np
import pytest
import torch

from models.trace import QUERY_BY_KEY, Step
from sections import story
from sections.examples import EXAMPLES, WORKED
from sections.limits import MAX_TOKENS
from sections.scene import Attention, Mask, Scene, Source, compute
from tests.sections.oracle import agree, work_out
from tests.sections.pages import chips, drawn, following, fresh, html, maps, opened, overview, read, said, scene_of, state, tables, text_of
from viz.cells import readable
from viz.numbers import percent

HOSTILE = "<script>alert(1)</script> <b>x</b> $x$ ** [a](javascript:1) \u200b \u202e_ :red[y] :material/home: `z` &lt; #000037"


WORKED_ADDRESS = {"source": "worked-example", "attention": "single-head", "text": "Thinking Machines"}


def test_it_opens_on_glass_heads():
    page = opened()
    assert not page.exception and not page.error and not page.warning
    assert scene_of(page) == Scene()
    assert said(page) == "The takes >99 % from animal and <1 % from the rest."
    agree([chip["share"] for chip in chips(page)["queries"]], compute(Scene()).trace.weights[0, 0, 0], percent)


@pytest.mark.parametrize("address", [WORKED_ADDRESS, {"source": "worked-example"}], ids=str)
def test_the_worked_example(address):
    page = opened(**address)
    assert not page.exception and not page.error and not page.warning
    assert scene_of(page) == WORKED
    table = tables(page)
    scores, masked = table[story.CAPTIONS["scores"]], table[story.CAPTIONS["masked"]]
    assert [row[2].numbers for row in scores.rows[1:]] == [["112"], ["96"]]
    assert [cell.text for cell in masked.head][1:3] == ["q·k", "÷ 8"]
    assert [[text for cell in row for text in cell.numbers] for row in masked.rows] == [
        ["112", "14", "14"],
        ["96", "12", "12"],
    ]
    weights, blend = table[story.CAPTIONS["weights"]], table[story.CAPTIONS["context"]]
    assert [row[3].numbers for row in weights.rows] == [["0.88"], ["0.12"]]
    assert [row[1].numbers for row in blend.rows] == [["0.88"], ["0.12"]]
    values = [[float(text.replace("−", "-")) for text in row[2].numbers] for row in blend.rows]
    exact = torch.tensor([14.0, 12.0], dtype=torch.float64).softmax(0).numpy()
    agree(blend.foot[3].numbers, exact @ np.array(values))
    assert len(values[0]) == 3
    assert said(page) == "Thinking takes 88 % from Thinking and 12 % from Machines."
    assert any(story.SOURCES["worked-example"] in text_of(piece) for piece in html(page))


def test_the_other_word_asks_too():
    page = opened(**WORKED_ADDRESS, query=2)
    wanted = work_out(compute(WORKED), 0, 1)
    agree([row[2].numbers[0] for row in tables(page)[story.CAPTIONS["scores"]].rows[1:]], wanted["scores"])
    assert said(page).startswith("Machines takes ")


def test_it_says_what_random_numbers_mean():
    wanted = story.SOURCES["random"].format(seed=5)
    assert any(wanted in text_of(piece) for piece in html(opened(source="random", seed=5)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_one_click_away(name):
    page = opened()
    page.get_by_key("example").set_value(name).run()
    assert not page.exception and not page.error
    example = EXAMPLES[name]
    assert scene_of(page) == example.scene
    assert state(page, "query") == example.query
    if example.scene.num_heads > 1:
        assert state(page, "head") == example.head
    assert state(page, "example") is None  # can be clicked again
    assert scene_of(opened(**page.query_params)) == example.scene
    made = compute(example.scene)
    assert said(page).startswith(made.queries[example.query - 1] + " takes ")
    np.testing.assert_array_equal(
        np.nan_to_num(maps(page, "focus")[0]), made.trace.weights[0, example.head - 1].numpy()
    )


def test_examples_one_after_another_leave_nothing_behind():
    page = opened(attention="cross", mask="window", width=3, heads=2, scale="none", tokens="characters", seed=3)
    for name in [*EXAMPLES, *reversed(EXAMPLES)]:
        page.get_by_key("example").set_value(name).run()
        assert not page.exception
        assert scene_of(page) == EXAMPLES[name].scene
        linked = opened(**page.query_params)
        assert scene_of(linked) == EXAMPLES[name].scene
        assert said(linked) == said(page)


@pytest.mark.parametrize("text", ["", "  ", "\t\n", "\u3000"])
def test_an_empty_text(text):
    page = opened(text=text)
    assert not page.exception
    assert [error.value for error in page.error] == [story.EMPTY["text"]]
    assert following(page, "text") == "error"
    assert state(page, "text") == text
    page.get_by_key("text").set_value("again").run()
    assert not page.error and said(page) == "again takes 100 % from again."


def test_a_missing_context():
    page = opened(attention="cross", text="one two", context=" ")
    assert not page.exception
    assert [error.value for error in page.error] == [story.EMPTY["context"]]
    assert following(page, "context") == "error" and following(page, "text") != "error"
    assert (state(page, "text"), state(page, "context")) == ("one two", " ")


@pytest.mark.parametrize("text", ["one", "注", "🙂", "[PAD]", "x"])
@pytest.mark.parametrize("mask", Mask)
def test_one_token(text, mask):
    page = opened(text=text, source="random", mask=mask)
    assert not page.exception and not page.error
    sees = text != "[PAD]" or mask is not Mask.PADDING
    assert maps(page, "focus")[0].shape == (1, 1)
    assert said(page) == (f"{text} takes 100 % from {text}." if sees else story.sees_nothing(text))


@pytest.mark.parametrize("attention, name", [("single-head", "text"), ("cross", "context"), ("cross", "text")])
def test_ten_thousand_tokens(attention, name):
    text = " ".join(f"t{n}" for n in range(10_000))
    page = opened(**{"attention": attention, "source": "random", "text": "one two", name: text, "heads": 1})
    assert not page.exception and not page.error
    assert [warning.value for warning in page.warning] == [story.too_many_tokens(10_000, MAX_TOKENS)]
    assert following(page, name) == "warning"
    assert state(page, name) == text
    rows, columns = maps(page, "focus")[0].shape
    assert (rows if name == "text" else columns) == MAX_TOKENS


def test_more_numbers_than_can_be_drawn():
    text = " ".join(f"t{n}" for n in range(10_000))
    page = opened(text=text, attention="multi-head", source="random", heads=16)
    assert not page.exception
    assert [error.value for error in page.error] == [story.too_many_weights(16, MAX_TOKENS, MAX_TOKENS, 2**21)]
    assert following(page, "text") == "error"
    assert state(page, "text") == text


@pytest.mark.parametrize("attention", ["multi-head", "cross"])
def test_heads_that_do_not_divide(attention):
    page = opened(text="Thinking Machines", attention=attention, source="random", heads=3, embed_dim=16)
    assert not page.exception
    assert [error.value for error in page.error] == [story.does_not_divide(16, 3)]
    assert (state(page, "heads"), state(page, "embed_dim"), state(page, "text")) == (3, 16, "Thinking Machines")
    page.get_by_key("heads").set_value(4).run()
    assert not page.error and said(page)


def test_a_window_of_zero_shows_each_token_itself():
    page = opened(text="one two three", mask="window", width=0, query=2)
    assert not page.exception and not page.error and not page.warning
    assert said(page) == "two takes 100 % from two."
    np.testing.assert_array_equal(np.nan_to_num(maps(page, "focus")[0]), np.eye(3))


def test_a_prefix_of_zero_is_causal():
    text = "one two three"
    assert said(opened(text=text, mask="prefix", length=0, query=2)) == said(opened(text=text, mask="causal", query=2))


def test_nothing_but_padding():
    page = opened(text="[PAD] [PAD]", mask="padding")
    assert not page.exception and not page.error
    assert [warning.value for warning in page.warning] == [story.blind_queries(2)]
    assert "NaN" in story.blind_queries(2)
    assert said(page) == story.sees_nothing("[PAD]")
    assert np.isnan(maps(page, "focus")[0]).all()
    assert not any("NaN" in piece for piece in html(page) if "<table" in piece)


@pytest.mark.parametrize("step", QUERY_BY_KEY)
@pytest.mark.parametrize("attention", Attention)
def test_hostile_tokens_stay_text(attention, step):
    page = fresh(text=HOSTILE, context=HOSTILE, attention=attention, source="random", step=step, products="true", every_key="true")
    for name in ("chain", "vectors", "grid", "files"):
        page.session_state[name] = True
    page.run()
    assert not page.exception and not page.error
    assert state(page, "text") == HOSTILE
    tokens = [readable(token) for token in Scene(text=HOSTILE).split("text")]
    assert [chip["label"] for chip in chips(page)["queries"]] == tokens
    assert (overview(page)["queries"], overview(page)["keys"]) == (tokens, tokens)  # drawn, or set as text: test_overview_browser
    for piece in html(page):
        for tag, given in read(piece).tags:
            assert tag in "div p table caption thead tbody tfoot tr th td span i bdi h1".split()
            assert not any(name.startswith("on") or name in ("src", "href") for name in given)
    for kind in ("markdown", "caption", "warning", "error"):  # these would obey marks
        for words in (element.value for element in getattr(page, kind)):
            assert not any(mark in words for mark in ("<script", "javascript", ":red[y]", "<b>x"))
    for name in ("focus", *(["head-grid"] if attention is not Attention.SINGLE_HEAD else [])):
        written = str(json.loads(page.get_by_key(name).proto.spec))  # as the browser reads it
        assert not any(mark in written for mark in ("<script", "<b>x", "\u202e", '"#000037_', "\u200b\u202e"))
    weights = tables(page)[story.CAPTIONS["weights"]]
    assert [row[0].tokens[0] for row in weights.rows] == tokens


@pytest.mark.parametrize("step", QUERY_BY_KEY)
@pytest.mark.parametrize("mask", [Mask.NONE, Mask.CAUSAL])
def test_the_maps_are_those_of_the_trace(mask, step):
    scene = Scene(
        text="one two three", context="vier fünf", attention=Attention.CROSS, heads=2, mask=mask, source=Source.RANDOM
    )
    made = compute(scene)
    page = fresh(text=scene.text, context=scene.context, attention="cross", source="random", heads=2, mask=mask, step=step, head=2)
    page.session_state["chain"] = page.session_state["grid"] = True
    page.run()
    assert not page.exception

    def blank(values: np.ndarray, step: Step) -> np.ndarray:
        hide = made.visible is not None and step in (Step.MASKED, Step.WEIGHTS)
        return np.where(~made.visible.numpy(), np.nan, values) if hide else values

    values = made.trace[step][0].numpy()
    np.testing.assert_array_equal(maps(page, "focus")[0], blank(values[1], step))
    for saved, small, head in zip(maps(page, "head-grid"), drawn(page), values, strict=True):
        np.testing.assert_array_equal(saved, blank(head, step))
        np.testing.assert_allclose(small, blank(head, step), rtol=0, atol=0.500001 * 10.0 ** -overview(page)["decimals"])


def test_what_is_large_or_many_is_drawn_only_while_it_is_open():
    page = opened()
    assert [one.key for one in page.get("plotly_chart")] == ["focus"]
    assert not page.get("download_button")
    for name, of_trace in (
        ("chain", lambda trace: [trace[step][0, 0] for step in QUERY_BY_KEY]),
        ("grid", lambda trace: list(trace.weights[0])),
    ):
        page = fresh()
        page.session_state[name] = True
        page.run()
        [figure] = [one for one in page.get("plotly_chart") if one.key != "focus"]
        for shown, wanted in zip(maps(page, figure.key), of_trace(compute(Scene()).trace), strict=True):
            np.testing.assert_array_equal(shown, wanted.numpy())


@pytest.mark.parametrize("attention", Attention)
def test_the_vectors_can_be_inspected(attention):
    page = fresh(text="one two", context="drei", attention=attention, source="random", embed_dim=4, kdim=3, vdim=2, heads=2)
    page.session_state["vectors"] = True
    page.run()
    assert not page.exception
    made = compute(scene_of(page))
    found = [table for piece in html(page) for table in read(piece).tables if table.caption == story.CAPTIONS["vectors"]]
    assert len(made.inputs) == (3 if attention is Attention.CROSS else 1)
    found, matrices = found[: len(made.inputs)], found[len(made.inputs) :]
    layer = made.layer
    assert [table.head[1].text for table in matrices] == ["W_Q", "W_K", "W_V", "W_O"]
    for table, linear in zip(matrices, (layer.to_q, layer.to_k, layer.to_v, layer.to_output), strict=True):
        agree([text for row in table.rows for text in row[1].numbers], linear.weight.T.numpy())
    for table, (name, vectors) in zip(found, made.inputs.items(), strict=True):
        assert table.head[1].text.startswith(f"{name}:")
        assert [row[0].tokens[0] for row in table.rows] == list(made.queries if name == "query" else made.keys)
        agree([text for row in table.rows for text in row[1].numbers], vectors.numpy())


def test_tokens_to_pick_carry_the_shares_of_the_query():
    page = opened(text="one two three", attention="single-head", source="random", mask="causal", query=2)
    given = chips(page)
    weights = work_out(compute(scene_of(page)), 0, 1)["weights"]
    assert given["chosen"] == {"query": 1, "head": 0, "also": []} and given["keys"] == []
    assert [chip["label"] for chip in given["queries"]] == ["one", "two", "three"]
    assert [chip["hidden"] for chip in given["queries"]] == [False, False, True]
    agree([chip["share"] for chip in given["queries"][:2]], weights[:2], percent)
    assert given["queries"][2]["share"] == story.COLUMNS["hidden"]


def test_across_two_texts_the_shares_are_those_of_the_keys():
    page = opened(attention="cross", source="random", text="one two", context="drei vier fünf", query=2, head=3)
    given = chips(page)
    assert given["chosen"] == {"query": 1, "head": 2, "also": []}
    assert [chip["label"] for chip in given["queries"]] == ["one", "two"]
    assert [chip["share"] for chip in given["queries"]] == ["", ""]
    agree([chip["share"] for chip in given["keys"]], work_out(compute(scene_of(page)), 2, 1)["weights"], percent)


def test_no_widget_is_set_twice(caplog):
    with caplog.at_level(logging.WARNING):
        opened(text="one two three", query=3).run()
    assert not [record for record in caplog.records if "Session State API" in record.message]

"""The page of the trained models without a browser: what they say, where they look, and what lies outside their worlds."""

import json
import re
from html import unescape

import numpy as np
import pyarrow
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from models.trained.card import BadWeights
from models.trained.task import TRAINED, Outside
from models.trained.tasks import TASKS
from sections import story, trained
from tests.sections.pages import chips, decode, fresh, html, said, state, text_of

OUTSIDE = {
    "reverse": {"": Outside.EMPTY, "abcdefghijklmnop": Outside.TOO_LONG, "<b>": Outside.UNKNOWN},
    "coreference": {"": Outside.EMPTY, "the animal is purple": Outside.UNKNOWN, "too tired was it": Outside.STRUCTURE},
    "induction": {"": Outside.EMPTY, "$x$": Outside.UNKNOWN, "ab" * 40: Outside.TOO_LONG},
    "translation": {"": Outside.EMPTY, "colourless green ideas": Outside.UNKNOWN, "signed the was": Outside.STRUCTURE},
    "four_heads": {"": Outside.EMPTY, "abc": Outside.TOO_SHORT, "a1b2c3": Outside.STRUCTURE, "ab-cd1": Outside.UNKNOWN},
}


def opened(**address: object) -> AppTest:
    """The page at an address."""
    page = fresh(**address)
    page._page_hash = calc_hash("trained")  # the only way to a page that is a function
    return page.run()


def answer(page: AppTest) -> list[str]:
    """The tokens that the model answers with."""
    piece = next(piece for piece in html(page) if 'class="guess' in piece)
    return [unescape(token) for token in re.findall("<bdi[^>]*>(.*?)</bdi>", piece)]


def label(token: str) -> str:
    return "␣" if token == " " else token


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("example", range(3))
def test_each_example_is_answered_as_the_model_answers(task, example):
    text = TASKS[task].examples[example]
    page = opened(task=task, **{f"{task}_text": text})
    assert not page.exception and not page.error and not page.warning
    run = TASKS[task].run(TASKS[task].load(), text)
    wanted = run.answer[-1:] if task == "induction" else run.answer
    assert answer(page) == [label(token) for token in wanted]


@pytest.mark.parametrize("task", TASKS)
def test_the_maps_are_those_of_the_chosen_layer(task):
    for layer in [seen.name for seen in TASKS[task].run(TASKS[task].load(), TASKS[task].examples[0]).seen]:
        page = opened(task=task, layer_of=layer)
        assert not page.exception
        seen = TASKS[task].run(TASKS[task].load(), TASKS[task].examples[0])[layer]
        given = chips(page)
        assert given["queries"][0]["label"] == label(seen.queries[0])
        shown = given["keys"] or given["queries"]
        assert [one["label"] for one in shown] == [label(key) for key in seen.keys]
        query = given["chosen"]["query"]
        heaviest = int(seen.trace.weights[0, 0, query].argmax())
        assert label(seen.keys[heaviest]) in said_by_walk(page)


def said_by_walk(page: AppTest) -> str:
    return next(text_of(piece) for piece in html(page) if 'class="say"' in piece and " takes " in text_of(piece))


@pytest.mark.parametrize("task, text, reason", [(t, x, r) for t, those in OUTSIDE.items() for x, r in those.items()])
def test_outside_the_small_world_no_model_runs(task, text, reason, monkeypatch):
    monkeypatch.setattr(trained, "_run", lambda *_: pytest.fail("a model ran"))
    page = opened(task=task, **{f"{task}_text": text})
    assert not page.exception and not page.error
    recognised = TASKS[task].recognise(text)
    assert recognised.outside is reason
    assert page.warning[0].value == story.OUTSIDE[reason].format(most=TASKS[task].longest, count=len(recognised.tokens))
    assert state(page, f"{task}_text") == text
    if reason is not Outside.EMPTY:
        marked = next(piece for piece in html(page) if 'class="say"' in piece)
        assert marked.count('class="fault"') == len(recognised.faults)
        assert "<b>" not in marked


@pytest.mark.parametrize("task", TASKS)
def test_one_click_goes_to_the_nearest_text_inside(task):
    page = opened(task=task, **{f"{task}_text": "zebra 77 crossing"})
    nearest = TASKS[task].recognise("zebra 77 crossing").nearest
    next(button for button in page.button if button.label == story.nearest(nearest)).click().run()
    assert not page.exception and not page.warning
    assert state(page, f"{task}_text") == nearest


@pytest.mark.parametrize("task", TASKS)
def test_a_text_is_built_by_clicking(task):
    page = opened(task=task, **{f"{task}_text": ""})
    typed = ()
    for _ in range(4):
        piece = TASKS[task].pieces(typed)[0]
        page.get_by_key("piece").set_value(piece).run()
        assert not page.exception
        typed = (*typed, piece)
        assert TASKS[task].recognise(state(page, f"{task}_text")).tokens == typed
    next(button for button in page.button if button.label == story.LABELS["take back"]).click().run()
    assert TASKS[task].recognise(state(page, f"{task}_text")).tokens == typed[:-1]


@pytest.mark.parametrize("task, layer", [("coreference", "second"), ("translation", "cross"), ("induction", "second")])
def test_knocking_out_the_attended_word_changes_the_answer_as_the_model_does(task, layer):
    query = 1 if task != "induction" else len(TASKS[task].examples[0])
    page = opened(task=task, layer_of=layer, knock_out="word", query=query)
    model, text = TASKS[task].load(), TASKS[task].examples[0]
    seen = TASKS[task].run(model, text)[layer]
    key = int(seen.trace.weights[0, 0, query - 1].argmax())
    now = TASKS[task].run(model, text, hide=((layer, key),))
    changed = next(text_of(piece) for piece in html(page) if "Without" in piece)
    token = label(now.answer[-1] if task == "induction" else now.answer[0])
    assert label(seen.keys[key]) in changed and token in changed
    assert now.answer != TASKS[task].run(model, text).answer


def test_silencing_a_head_takes_its_answers_away():
    page = opened(task="four_heads", knock_out="head", head=2)
    model, text = TASKS["four_heads"].load(), TASKS["four_heads"].examples[0]
    now, intact = TASKS["four_heads"].run(model, text, silence=(("only", 1),)), TASKS["four_heads"].run(model, text)
    piece = next(piece for piece in html(page) if "Without" in piece)
    assert piece.count("changed") == sum(a != b for a, b in zip(now.answer, intact.answer, strict=True)) > 0


@pytest.mark.parametrize("task", TASKS)
def test_every_model_says_what_it_is(task):
    for variant in trained._weights(TASKS[task]):
        page = opened(task=task, weights_of=variant)
        assert not page.exception and not page.error
        assert story.VARIANTS[variant] in [caption.value for caption in page.caption]


def test_a_file_that_cannot_be_used_is_refused_with_the_reason_and_the_others_work(monkeypatch):
    def refuse(variant=TRAINED):
        raise BadWeights("the file is broken: train it again")

    trained._model.clear(), trained._run.clear()
    monkeypatch.setattr(TASKS["reverse"], "load", refuse)
    page = opened(task="reverse")
    assert not page.exception
    assert [error.value for error in page.error] == ["the file is broken: train it again"]
    page.get_by_key("task").set_value("coreference").run()
    assert not page.exception and not page.error
    trained._model.clear(), trained._run.clear()


def test_the_film_has_every_checkpoint_on_the_typed_text():
    page = opened(task="induction", induction_text="banana ban")
    film = next(one for one in page.get("bidi_component") if one.proto.component_name == "film")
    data = json.loads(film.proto.mixed.json)
    frames = TASKS["induction"].film()
    assert data["steps"] == [frame.step for frame in frames]
    assert data["shape"] == [2 * len(frames), 10, 10]
    for name in ("loss", "accuracy", "previous", "induction"):
        np.testing.assert_allclose(data["curves"][name], [getattr(frame, name) for frame in frames])
    assert data["tokens"] == [label(letter) for letter in "banana ban"]


@pytest.mark.parametrize("task", TASKS)
def test_other_weights_stand_beside_on_the_same_text(task):
    page = opened(task=task)
    given = [one.proto.mixed for one in page.get("bidi_component") if one.proto.component_name == "overview"][-1]
    data, [table] = json.loads(given.json), given.arrow_blobs.values()
    packed = pyarrow.ipc.open_stream(table.data).read_all().column(0).to_numpy().tobytes()
    shown = dict(zip(data["names"], decode(packed, data["zero"], data["decimals"]).reshape(data["shape"]), strict=True))
    text, layer = TASKS[task].examples[0], page.session_state.layer_of
    for variant in TASKS[task].variants:
        seen = trained._same(TASKS[task].run(TASKS[task].load(variant), text), layer)
        if (drawn := shown.get(story.WEIGHTS_OF[variant])) is not None:
            np.testing.assert_allclose(np.nan_to_num(drawn), seen.trace.weights[0, 0].numpy(), atol=0.00006)
    assert story.WEIGHTS_OF["trained"] in shown and story.WEIGHTS_OF["free"] in shown
    assert (story.WEIGHTS_OF["glass"] in shown) == (task == "induction")


@pytest.mark.parametrize("layer", ["first", "second"])
def test_the_glass_pair_is_walked_through_like_any_other(layer):
    page = opened(task="induction", weights_of="glass", layer_of=layer, induction_text="abcab", query=5, knock_out="word")
    assert not page.exception and not page.error
    assert story.VARIANTS["glass"] in [caption.value for caption in page.caption]
    assert not any('class="guess' in piece for piece in html(page))
    assert said_by_walk(page).startswith(f"b takes >99 % from {'a' if layer == 'first' else 'c'} ")


def test_a_link_restores_the_page():
    page = opened(task="translation", weights_of="free", layer_of="cross", knock_out="word", query=3, translation_text=TASKS["translation"].examples[1])
    again = opened(**page.query_params)
    assert html(again) == html(page)
    assert said(again) == said(page)


@pytest.mark.parametrize("name", ["task", "weights_of", "layer_of", "knock_out"])
def test_nonsense_in_the_address_is_the_default(name):
    page = opened(**{name: "<script>"})
    assert not page.exception and not page.error

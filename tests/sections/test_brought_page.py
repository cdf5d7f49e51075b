"""The page for a file from elsewhere: what it draws is what the file holds, and what it refuses it names."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from sections import story
from tests.models.test_brought import ASKED, ASKING, HEADS, LAYERS, WEIGHTS, K, Q, V, npz
from tests.sections.oracle import agree
from tests.sections.pages import chips, drawn, maps, tables

NAME = "![x](https://example.org/x.png) :red[<b>**"


def page() -> None:
    from sections import brought

    brought.render()


def with_file(name: str, data: bytes) -> AppTest:
    at = AppTest.from_function(page, default_timeout=30).run()
    return at.file_uploader[0].upload(name, data).run()


def test_nothing_is_drawn_before_there_is_a_file():
    at = AppTest.from_function(page, default_timeout=30).run()
    assert not at.exception and not at.get("plotly_chart") and not at.get("bidi_component")


def test_every_head_of_every_layer_is_drawn_and_the_chosen_one_close_up():
    at = with_file("mine.npz", npz(weights=WEIGHTS, queries=ASKING, keys=ASKED))
    at.number_input(key="layer").set_value(LAYERS)
    at.number_input(key="head").set_value(HEADS).run()
    assert not at.exception and not at.warning
    np.testing.assert_allclose(drawn(at), WEIGHTS.reshape(-1, *WEIGHTS.shape[2:]), atol=0.00005)
    np.testing.assert_array_equal(maps(at, "focus")[0], WEIGHTS[-1, -1])
    assert story.BROUGHT["weights alone"] in [caption.value for caption in at.caption]


def test_the_arithmetic_is_worked_out_again_from_q_k_and_v():
    at = with_file("mine.npz", npz(weights=WEIGHTS, q=Q, k=K, v=V))
    scores = Q[0, 0] @ K[0, 0].T / np.sqrt(Q.shape[-1])
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert any(f"{np.abs(shares - WEIGHTS[0, 0]).max():.1e}" in caption.value for caption in at.caption)
    weights = [row[3].numbers[0] for row in tables(at)[story.CAPTIONS["weights"]].rows]
    agree(weights, shares[0])


def test_what_is_picked_stays_in_the_head_that_is_shown():
    at = with_file("mine.npz", npz(weights=WEIGHTS, q=Q, k=K, v=V))
    for head in (HEADS, 1):
        at.number_input(key="head").set_value(head).run()
        assert chips(at)["chosen"] == {"query": 0, "head": head - 1, "also": []}


def test_one_layer_of_one_head_leaves_nothing_to_choose():
    assert not with_file("mine.npz", npz(weights=WEIGHTS[:1, :1])).number_input


def test_a_name_in_a_file_is_text_and_not_markdown():
    at = with_file("mine.npz", npz(weights=WEIGHTS, **{NAME.replace("/", ""): WEIGHTS}))
    (warning,) = at.warning
    assert r"\!\[x\]\(https\:example\.orgx\.png\) \:red\[\<b\>\*\*" in warning.value


def test_a_refusal_stands_where_the_maps_would():
    at = with_file("mine.npz", npz(weights=WEIGHTS[0, 0]))
    assert "5, 7" in at.error[0].value.replace("\\", "") and not at.get("plotly_chart") and not at.exception


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(["npz", "json", "safetensors"]), data=st.binary(max_size=200))
def test_no_file_breaks_the_page(kind, data):
    assert not with_file(f"mine.{kind}", data).exception

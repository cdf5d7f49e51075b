"""The page for a file from elsewhere: what it draws is what the file holds, and what it refuses it names."""

import json
from base64 import b64decode

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.models.test_brought import ASKED, ASKING, HEADS, LAYERS, WEIGHTS, K, Q, npz

NAME = "![x](https://example.org/x.png) :red[<b>**"


def page() -> None:
    from sections import brought

    brought.render()


def with_file(name: str, data: bytes) -> AppTest:
    at = AppTest.from_function(page, default_timeout=30).run()
    return at.file_uploader[0].upload(name, data).run()


def maps(at: AppTest, number: int) -> list[np.ndarray]:
    """The values of every map in one of the figures, without those drawn again for their numbers."""
    traces = json.loads(at.get("plotly_chart")[number].proto.spec)["data"]
    drawn = [trace["z"] for trace in traces if trace["type"] == "heatmap" and trace.get("hoverinfo") != "skip"]
    return [np.frombuffer(b64decode(z["bdata"]), z["dtype"]).reshape([int(n) for n in z["shape"].split(",")]) for z in drawn]


def test_nothing_is_drawn_before_there_is_a_file():
    at = AppTest.from_function(page, default_timeout=30).run()
    assert not at.exception and not at.get("plotly_chart")


def test_every_head_of_the_chosen_layer_is_drawn():
    at = with_file("mine.npz", npz(weights=WEIGHTS, queries=ASKING, keys=ASKED))
    at.number_input(key="brought-layer").set_value(LAYERS)
    at.number_input(key="brought-head").set_value(HEADS).run()
    assert not at.exception and not at.warning and len(at.get("plotly_chart")) == 2
    np.testing.assert_array_equal(maps(at, 0), WEIGHTS[-1])
    np.testing.assert_array_equal(maps(at, 1), WEIGHTS[-1, -1:])


def test_scores_are_drawn_where_there_are_q_and_k():
    at = with_file("mine.npz", npz(weights=WEIGHTS, q=Q, k=K))
    scores = Q[0, 0] @ K[0, 0].T / np.sqrt(Q.shape[-1])
    np.testing.assert_allclose(maps(at, 2)[0], scores, rtol=1e-5)
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert f"{np.abs(shares - WEIGHTS[0, 0]).max():.1e}" in at.caption[0].value


def test_one_layer_of_one_head_leaves_nothing_to_choose():
    assert not with_file("mine.npz", npz(weights=WEIGHTS[:1, :1])).number_input


def test_a_name_in_a_file_is_text_and_not_markdown():
    at = with_file("mine.npz", npz(weights=WEIGHTS, **{NAME.replace("/", ""): WEIGHTS}))
    (warning,) = at.warning
    assert r"\!\[x\](https\:example" in warning.value and r"\:red\[\<b\>\*\*" in warning.value


def test_a_refusal_stands_where_the_maps_would():
    at = with_file("mine.npz", npz(weights=WEIGHTS[0, 0]))
    assert "5, 7" in at.error[0].value and not at.get("plotly_chart") and not at.exception


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(["npz", "json", "safetensors"]), data=st.binary(max_size=200))
def test_no_file_breaks_the_page(kind, data):
    assert not with_file(f"mine.{kind}", data).exception

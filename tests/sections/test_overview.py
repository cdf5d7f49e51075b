"""What the canvas of all heads is handed: the trace's numbers, or what is said of them where they are summed up."""

import json
import re

import numpy as np
import pytest
import torch

from models.trace import QUERY_BY_KEY, Step
from sections import overview, story
from sections.choices import Look
from sections.scene import Attention, Mask, Scene, Source, compute
from tests.sections.pages import component, decode, drawn, opened, scene_of
from tests.sections.pages import overview as given

TEXT = "[CLS] one two three [SEP] four [PAD]"
HEADS = {"text": TEXT, "attention": "multi-head", "source": "random", "heads": 3, "embed_dim": 12}
SPECIAL, FIRST = [0, 4, 6], [0]


def weights(**choices: object) -> np.ndarray:
    """All heads of a scene with three of them."""
    made = compute(Scene(**{"text": TEXT, "attention": Attention.MULTI_HEAD, "source": Source.RANDOM, "heads": 3, "embed_dim": 12} | choices))
    return made.trace.weights[0].double().numpy()


def close(shown: np.ndarray, wanted: np.ndarray, decimals: int = 4) -> None:
    """Equal in every digit that is shown, and hidden where NaN is wanted."""
    np.testing.assert_allclose(shown, wanted, rtol=0, atol=0.501 * 10.0**-decimals)


def captions(page) -> list[str]:
    return [caption.value for caption in page.caption]


@pytest.mark.parametrize("mask", [Mask.NONE, Mask.CAUSAL])
@pytest.mark.parametrize("step", QUERY_BY_KEY)
def test_every_head_of_every_step(step, mask):
    page = opened(**HEADS, step=step, mask=mask)
    made = compute(scene_of(page))
    hides = mask is Mask.CAUSAL and step in (Step.MASKED, Step.WEIGHTS)
    wanted = np.where(~made.visible.numpy() if hides else False, np.nan, made.trace[step][0].numpy())
    close(drawn(page), wanted, given(page)["decimals"])
    assert given(page)["names"] == ["head 1", "head 2", "head 3"] and given(page)["labels"] == ["1", "2", "3"]
    assert given(page)["signed"] == (step is not Step.WEIGHTS)
    largest = 1.0 if step is Step.WEIGHTS else np.abs(wanted[np.isfinite(wanted)]).max()
    assert given(page)["limit"] == pytest.approx(largest, rel=1e-6)
    assert given(page)["step"] == step


def test_cross_attention_is_a_rectangle():
    page = opened(text="one two", context="drei vier fünf", attention="cross", source="random", heads=2)
    assert given(page)["shape"] == [2, 2, 3]
    assert (given(page)["queries"], given(page)["keys"]) == (["one", "two"], ["drei", "vier", "fünf"])
    close(drawn(page), compute(scene_of(page)).trace.weights[0].numpy())


@pytest.mark.parametrize("text", ["one", "注"])
@pytest.mark.parametrize("attention, heads", [("single-head", 1), ("multi-head", 4)])
def test_one_token_looks_at_itself(text, attention, heads):
    page = opened(text=text, attention=attention, source="random")
    np.testing.assert_array_equal(drawn(page), np.ones((heads, 1, 1)))


def test_glass_heads_are_called_by_their_jobs():
    names = given(opened())["names"]
    assert [name.partition(": ")[2] for name in names] == [story.GLASS[job].title for job in ("next", "previous", "same", "first", "uniform")]


@pytest.mark.parametrize("together, sum_up", [("average", np.mean), ("maximum", np.max)])
def test_a_summary_is_one_map_and_says_what_it_is(together, sum_up):
    page = opened(**HEADS, together=together, head=2)
    close(drawn(page), sum_up(weights(), axis=0, keepdims=True))
    assert given(page)["names"] == [f"{together} of 3 heads"] and given(page)["summary"]
    assert story.TOGETHER[together] in captions(page)


def test_a_summary_of_one_head_needs_no_warning():
    page = opened(text="one two", attention="single-head", source="random", together="average")
    assert story.TOGETHER["average"] not in captions(page)
    close(drawn(page), compute(scene_of(page)).trace.weights[0].numpy())


@pytest.mark.parametrize("leave_out, gone", [("special", SPECIAL), ("first", SPECIAL)])
@pytest.mark.parametrize("together", ["each", "average"])
def test_keys_left_out_are_hidden_and_the_rest_adds_up_to_one(leave_out, gone, together):
    page = opened(**HEADS, leave_out=leave_out, together=together)
    kept = [key for key in range(7) if key not in gone]
    left = np.full((3, 7, 7), np.nan)
    left[..., kept] = weights()[..., kept] / weights()[..., kept].sum(-1, keepdims=True)
    close(drawn(page), left if together == "each" else left.mean(0, keepdims=True))
    [said] = [one for one in captions(page) if one.startswith("Left out")]
    assert all(token in said for token in ("`[CLS]`", "`[SEP]`", "`[PAD]`")) and "divided" in said and "first token" in said


def test_the_first_token_is_left_out_only_when_asked():
    choices = HEADS | {"text": "one two three"}
    for leave_out, gone in (("special", 0), ("first", 1), ("none", 0)):
        page = opened(**choices, leave_out=leave_out)
        assert np.isnan(drawn(page)[0, 0]).sum() == gone
    assert story.left_out([]) in captions(opened(**choices, leave_out="special"))


def test_only_weights_are_renormalised():
    page = opened(**HEADS, leave_out="special", step="scores")
    close(drawn(page), compute(scene_of(page)).trace.scores[0].numpy(), given(page)["decimals"])
    assert not any(one.startswith("Left out") for one in captions(page))


def test_a_row_with_nothing_left_is_empty():
    page = opened(**HEADS, mask="window", width=0, leave_out="special")
    shown = drawn(page)
    assert np.isnan(shown[:, SPECIAL]).all()
    np.testing.assert_array_equal(np.nan_to_num(shown).sum(-1)[0], [0, 1, 1, 1, 0, 1, 0])


def test_shades_by_map_or_by_row():
    assert [given(opened(**HEADS, **address))["by_row"] for address in ({}, {"shade": "row"})] == [False, True]


def test_choosing_sends_nothing():
    """The same message for every query and head: Streamlit then sends none."""
    sent = set()
    for query, head in ((1, 1), (3, 1), (3, 2), (7, 3)):
        page = opened(**HEADS, query=query, head=head)
        message = component(page, "overview")
        [table] = message.mixed.arrow_blobs.values()
        sent.add((re.sub(r'"__streamlit_arrow_ref__": "\w+"', "", message.mixed.json), table.data))
    assert len(sent) == 1


def test_layers_stand_under_each_other():
    scene = Scene(text="one two three", attention=Attention.MULTI_HEAD, source=Source.RANDOM, heads=2, embed_dim=4)
    layers = [compute(scene), compute(Scene(**vars(scene) | {"seed": 5}))]
    for together, names, wanted in (
        ("each", ["layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2"], lambda heads: heads),
        ("maximum", ["layer 1, maximum of 2 heads", "layer 2, maximum of 2 heads"], lambda heads: heads.amax(0, keepdim=True)),
    ):
        data = shown(layers, Look(together=together), layer=1)
        assert list(data["names"]) == names and data["layers"] == 2 and data["layer"] == 1
        assert data["heads_per_layer"] == len(names) // 2
        assert data["first"] == (2 if together == "each" else 0)  # the map of head 1 of the layer that is open
        close(data["numbers"], torch.cat([wanted(made.trace.weights[0]) for made in layers]).numpy())
    assert shown(layers, Look(), layer=0)["labels"] == ("1.1", "1.2", "2.1", "2.2")


def shown(layers: list, look: Look, layer: int) -> dict:
    """What the component is handed for a stack, with the numbers unpacked."""
    handed: list[dict] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "show", lambda data, key="overview": handed.append(data))
        patch.setattr(overview.st, "caption", lambda words: None)
        overview.render(layers[layer], look, Step.WEIGHTS, [made.trace for made in layers], layer)
    [data] = handed
    packed = data["codes"].column(0).to_numpy().tobytes()
    return data | {"numbers": decode(packed, data["zero"], data["decimals"]).reshape(data["shape"])}


def test_more_lines_than_can_be_seen_are_not_drawn():
    values = np.zeros((1, 2, 2), np.float32)
    few, many = ("a",) * 2, ("a",) * 2**11
    assert overview.sheet(values, None, ["h"], few, few)["lines"]
    assert not overview.sheet(values, None, ["h"], many, many)["lines"]


def test_what_is_not_a_number_does_not_stretch_the_scale():
    values = np.array([[[np.nan, -2.5], [np.inf, 1.0]]], np.float32)
    assert overview.sheet(values, None, ["h"], ("a", "b"), ("a", "b"), Step.SCORES)["limit"] == 2.5
    assert overview.sheet(np.full((1, 1, 1), np.nan, np.float32), None, ["h"], ("a",), ("a",), Step.SCORES)["limit"] == 1.0
    assert overview.sheet(np.zeros((1, 1, 1), np.float32), None, ["h"], ("a",), ("a",), Step.SCORES)["limit"] == 1.0


def test_everything_that_is_handed_over_can_be_sent():
    """NaN in its JSON would make the component vanish."""
    for address in ({"mask": "causal", "step": "masked"}, {"text": "[PAD] [PAD]", "mask": "padding", "step": "masked"}):
        message = component(opened(**HEADS | address), "overview").mixed.json
        json.loads(message, parse_constant=lambda name: pytest.fail(f"{name} in the message"))


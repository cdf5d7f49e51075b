"""Another scaling beside the paper's: both maps against a softmax worked out, on the first page and inside a block."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from sections import story
from tests.sections.pages import fresh, maps, scene_of

SCENE = {"text": "one two three [PAD] one", "attention": "single-head", "source": "random", "embed_dim": 14, "seed": 2}
HEADS = SCENE | {"attention": "multi-head", "heads": 2}


def opened(page_name: str = "", **address: object) -> AppTest:
    """A page at an address; the first has no name."""
    page = fresh(**address)
    page._page_hash = calc_hash(page_name)
    return page.run()


def softmax(scores: np.ndarray) -> np.ndarray:
    """Of scores in which NaN is a hidden key."""
    rows = [np.exp(row - np.nanmax(row)) / np.nansum(np.exp(row - np.nanmax(row))) for row in scores]
    return np.nan_to_num(np.array(rows))


@pytest.mark.parametrize(
    "address, other, divisor, head",
    [
        (SCENE | {"scale": "none"}, "none", 14**0.5, 1),
        (HEADS | {"scale": "embed_dim"}, "embed_dim", 7**0.5, 2),
        (HEADS | {"scale": "none", "mask": "causal"}, "none", 7**0.5, 2),
        (HEADS | {"recipe": "cross", "padding": "true", "head_dim": 3}, "embed_dim", 3**0.5, 1),
        (SCENE | {"recipe": "unify_heads", "attention": "multi-head", "heads": 7}, "embed_dim", 2**0.5, 7),
        (SCENE | {"recipe": "plain"}, "none", 14**0.5, 1),
        ({"source": "worked-example", "scale": "none"}, "none", 8, 1),
        ({"source": "worked-example", "scale": "embed_dim", "mask": "causal"}, "embed_dim", 8, 1),
    ],
    ids=str,
)
def test_both_maps_are_softmaxes_of_the_scores_at_hand(address, other, divisor, head):
    more = {"head": head} if head > 1 else {}
    page = opened(**address, **more)
    assert not page.exception and str(scene_of(page).scale) == other
    scores, masked = (maps(opened(**address, **more, step=step), "focus")[0] for step in ("scores", "masked"))
    _compare(page, scores, np.isnan(masked), other, divisor)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layer", [1, 3])
def test_inside_a_block_they_are_those_of_its_own_layer(norm, layer):
    address = HEADS | {"scale": "none", "mask": "causal", "norm": norm, "layers": 3, "layer": layer, "head": 2}
    page = opened("block", **address)
    assert not page.exception
    scores, masked = (maps(opened("block", **address, step=step), "focus")[0] for step in ("scores", "masked"))
    _compare(page, scores, np.isnan(masked), "none", 7**0.5)


def _compare(page: AppTest, scores: np.ndarray, hidden: np.ndarray, other: str, divisor: float) -> None:
    assert f"##### {story.HEADINGS['scaling']}" in [text.value for text in page.markdown]
    for name in (other, "head_dim"):
        assert story.SCALINGS[name] in [text.value for text in page.markdown]
    (ours,), (paper,) = maps(page, f"scaling-{other}"), maps(page, "scaling-head_dim")
    np.testing.assert_allclose(np.nan_to_num(ours), np.nan_to_num(maps(page, "focus")[0]))
    np.testing.assert_allclose(np.nan_to_num(paper), softmax(np.where(hidden, np.nan, scores) / divisor), atol=1e-5)
    assert not np.allclose(np.nan_to_num(ours), np.nan_to_num(paper), atol=1e-3)


@pytest.mark.parametrize(
    "address", [{}, {"source": "worked-example"}, SCENE, HEADS, SCENE | {"scale": "embed_dim"}, HEADS | {"heads": 1, "recipe": "unify_heads"}], ids=str
)
def test_where_it_is_the_paper_s_there_is_nothing_to_compare(address):
    page = opened(**address)
    assert not page.exception
    assert f"##### {story.HEADINGS['scaling']}" not in [text.value for text in page.markdown]

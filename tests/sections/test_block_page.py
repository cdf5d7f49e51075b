"""The block page: every number of the flow, in every layer, against the block worked out in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from models.block import BlockConfig, TransformerBlock
from models.recipes import RECIPES
from sections import story
from sections.scene import Attention, Computation, Mask, Source, compute
from tests.sections.oracle import agree, fits, work_out
from tests.sections.pages import Cell, fresh, html, maps, said, scene_of, state, tables, text_of
from viz.numbers import exact, percent, short

SCENE = {"text": "one two three [PAD] one", "attention": "single-head", "source": "random", "embed_dim": 14, "seed": 5}
HEADS = SCENE | {"attention": "multi-head", "heads": 2}
ORDER = {
    "post": "before attended added normalised expanded activated fed_forward added_again normalised_again".split(),
    "pre": "before normalised attended added normalised_again expanded activated fed_forward added_again".split(),
}
STREAM = {"post": ("added", "normalised", "added_again", "normalised_again"), "pre": ("added", "added_again")}
"""Where the token itself passes: in pre-norm the norms stand on the branches."""


def opened(**address: object) -> AppTest:
    """The block page at an address."""
    page = fresh(**address)
    page._page_hash = calc_hash("block")  # the only way to a page that is a function
    return page.run()


def drawn(page: AppTest) -> Computation:
    return compute(replace(scene_of(page), source=Source.RANDOM))


def blocks(page: AppTest) -> list[TransformerBlock]:
    """As many blocks as are asked for, drawn as the page draws them."""
    made = drawn(page)
    config = BlockConfig(made.layer.config, state(page, "norm"), state(page, "activation"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(made.scene.seed)
        return [TransformerBlock(config).requires_grad_(False) for _ in range(state(page, "layers"))]


def worked_out(block: TransformerBlock, x: torch.Tensor, visible: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """Every step of one block, from its formulas; the attention inside is `attention`."""

    def norm(x: torch.Tensor, layer: torch.nn.LayerNorm) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + layer.eps).sqrt() * layer.weight + layer.bias

    def feed_forward(x: torch.Tensor) -> dict[str, torch.Tensor]:
        expanded = x @ block.feed_forward_in.weight.T + block.feed_forward_in.bias
        gelu = expanded * 0.5 * (1 + torch.erf(expanded / 2**0.5))
        activated = expanded.clamp(min=0) if block.config.activation == "relu" else gelu
        fed = activated @ block.feed_forward_out.weight.T + block.feed_forward_out.bias
        return {"expanded": expanded, "activated": activated, "fed_forward": fed}

    made = {"before": x}
    if block.config.norm == "post":
        made["attended"] = block.attention(x[None], visible=visible)[0]
        made["added"] = x + made["attended"]
        made["normalised"] = norm(made["added"], block.norm_1)
        made |= feed_forward(made["normalised"])
        made["added_again"] = made["normalised"] + made["fed_forward"]
        made["normalised_again"] = norm(made["added_again"], block.norm_2)
    else:
        made["normalised"] = norm(x, block.norm_1)
        made["attended"] = block.attention(made["normalised"][None], visible=visible)[0]
        made["added"] = x + made["attended"]
        made["normalised_again"] = norm(made["added"], block.norm_2)
        made |= feed_forward(made["normalised_again"])
        made["added_again"] = made["added"] + made["fed_forward"]
    return made


def holds(page: AppTest) -> None:
    """Every row of the flow, and the attention inside, for the chosen token in the chosen layer."""
    assert not page.exception and not page.error
    norm, layer, query, made = state(page, "norm"), state(page, "layer"), state(page, "query") - 1, drawn(page)
    drawn_blocks, x = [block.double() for block in blocks(page)], made.inputs["query"].double()
    for block in drawn_blocks[:layer]:
        wanted, entered = worked_out(block, x, made.visible), x
        x = wanted[ORDER[norm][-1]]
    flow = tables(page)[story.CAPTIONS["block"]]
    assert flow.head[0].text == made.queries[query]
    assert [row[0].text for row in flow.rows] == [story.BLOCK_STEPS[step].title for step in ORDER[norm]]
    before = wanted["before"]
    for step, row in zip(ORDER[norm], flow.rows, strict=True):
        agree(row[1].exact, wanted[step][query], exact)
        agree(row[1].numbers, wanted[step][query], short)
        if step in STREAM[norm]:
            _moved(row[2], before[query].numpy(), wanted[step][query].numpy())
            before = wanted[step]
        else:
            assert row[2].text == ""
    _inside(page, blocks(page)[layer - 1], wanted["normalised"] if norm == "pre" else entered, query)


def _moved(cell: Cell, before: np.ndarray, after: np.ndarray) -> None:
    relative = np.sqrt(np.square(after - before).sum() / np.square(before).sum())
    cosine = (before * after).sum() / np.sqrt(np.square(before).sum() * np.square(after).sum())
    start, _, rest = story.MOVED.partition("{relative}")
    middle = rest.partition("{cosine}")[0]
    written, _, angle = cell.text.removeprefix(start).partition(middle)
    assert fits(written, relative, percent) and fits(angle, cosine, short), (cell.text, relative, cosine)


def _inside(page: AppTest, block: TransformerBlock, asked: torch.Tensor, query: int) -> None:
    """The walk below is that of this layer's attention on what went into it."""
    made = replace(drawn(page), inputs={"query": asked.float()}, layer=block.attention)
    head = state(page, "head", 1) - 1 if made.scene.num_heads > 1 else 0
    wanted, table = work_out(made, head, query), tables(page)
    agree([row[3].numbers[0] for row in table[story.CAPTIONS["weights"]].rows], wanted["weights"])
    agree(table[story.CAPTIONS["context"]].foot[3].numbers, wanted["z"])
    agree(table[story.CAPTIONS["together"]].foot[2].exact, wanted["output"], exact)
    agree(table[story.CAPTIONS["query"]].rows[0][2].exact, wanted["x"], exact)
    step, (shown,) = state(page, "step"), maps(page, "focus")
    assert step == "weights"
    np.testing.assert_allclose(np.nan_to_num(shown[query]), wanted["weights"], atol=1e-4)
    assert said(page).startswith(made.queries[query])
    assert f"##### {story.HEADINGS['inside'].format(layer=state(page, 'layer'))}" in [text.value for text in page.markdown]


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_number_of_every_layer(norm, activation):
    page = opened(norm=norm, activation=activation, layers=6, query=2, mask="causal", **HEADS, head=2)
    assert story.NORMS[norm] in [caption.value for caption in page.caption]
    for layer in range(1, 7):
        page.get_by_key("layer").set_value(layer).run()
        assert state(page, "layer") == layer
        holds(page)


@pytest.mark.parametrize("layers", range(1, 7))
def test_a_layer_does_not_hang_on_how_many_follow(layers):
    page = opened(layers=layers, layer=layers, norm="pre", **SCENE)
    holds(page)
    more = opened(layers=6, layer=layers, norm="pre", **SCENE)
    assert tables(more)[story.CAPTIONS["block"]] == tables(page)[story.CAPTIONS["block"]]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_under_every_mask(name):
    attention = "single-head" if RECIPES[name].one_head else "multi-head"
    page = opened(recipe=name, **HEADS | {"attention": attention}, query=3, layers=2, layer=2)
    for mask, norm in zip(Mask, ["post", "pre", "post", "pre", "post"], strict=True):
        page.get_by_key("mask").set_value(str(mask))
        page.get_by_key("norm").set_value(norm).run()
        assert (scene_of(page).recipe, scene_of(page).mask, state(page, "norm")) == (name, mask, norm)
        holds(page)


@pytest.mark.parametrize(
    "address",
    [
        {**HEADS, "head_dim": 3, "kv_heads": 1},
        {**HEADS, "positions": "true", "mask": "window", "width": 0},
        {**SCENE, "text": "[PAD] one", "mask": "causal", "padding": "true", "query": 1},
        {**SCENE, "text": "one", "embed_dim": 2},
        {**HEADS, "scale": "none", "layers": 3, "layer": 3, "query": 5},
        {**SCENE, "recipe": "tensorflow", "heads": 2, "head_dim": 3},
    ],
    ids=str,
)
def test_other_scenes(address):
    holds(opened(**address))


def test_another_query_follows_through_the_whole_flow():
    page = opened(**HEADS, norm="pre")
    page.get_by_key("query").set_value(3).run()
    holds(page)
    assert tables(page)[story.CAPTIONS["block"]].head[0].text == "three"


@pytest.mark.parametrize("address", [{}, {"source": "worked-example", "norm": "pre"}, {"mask": "causal", "query": 2}], ids=str)
def test_what_is_made_by_hand_has_no_block_and_the_page_says_so(address):
    page = opened(**address)
    holds(page)
    assert scene_of(page).source is Source(address.get("source", Source.GLASS))
    assert story.BLOCK_RANDOM.format(seed=0) in [caption.value for caption in page.caption]
    assert not any(story.EIGHT in text.value for text in page.markdown)


def test_random_numbers_are_not_announced_twice():
    page = opened(**SCENE)
    holds(page)
    assert story.BLOCK_RANDOM.format(seed=5) not in [caption.value for caption in page.caption]


@pytest.mark.parametrize("address", [{"attention": "cross", "heads": 2}, {"recipe": "cross", "heads": 2}], ids=str)
def test_cross_attention_gets_a_sentence(address):
    page = opened(**{name: value for name, value in SCENE.items() if name != "attention"} | address)
    assert not page.exception
    assert scene_of(page).attention is Attention.CROSS
    assert [error.value for error in page.error] == [story.BLOCK_ASKS_ITSELF]
    assert story.CAPTIONS["block"] not in tables(page)
    page.get_by_key("attention").set_value("multi-head").run()
    assert not page.error and not page.exception


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_alone_in_the_address(name):
    page = opened(recipe=name)
    assert not page.exception
    if RECIPES[name].two_sequences:
        assert [error.value for error in page.error] == [story.BLOCK_ASKS_ITSELF]
    else:
        holds(page)


@pytest.mark.parametrize(
    "address",
    [
        {"recipe": "cross", "attention": "multi-head", "heads": 2, "head_dim": 5},
        {"recipe": "cross", "attention": "single-head", "head_dim": 3},
        {"recipe": "cross", "attention": "multi-head", "heads": 2, "head_dim": 5, "norm": "pre", "layers": 6, "layer": 6},
    ],
    ids=str,
)
def test_an_output_of_another_width_gets_a_sentence_that_names_what_to_change(address):
    page = opened(**SCENE | address)
    assert not page.exception
    (error,) = [error.value for error in page.error]
    made = compute(scene_of(page))
    assert "embed_dim = 14" in error and str(made.trace.output.shape[-1]) in error and "leave head_dim out" in error
    assert story.CAPTIONS["block"] not in tables(page)
    page.get_by_key("head_dim").set_value(7 if made.scene.num_heads == 2 else 14).run()
    holds(page)


@pytest.mark.parametrize("name", ["norm", "activation", "layers", "layer"])
@pytest.mark.parametrize("nonsense", ["", "nope", "1e400", "-5", "99"])
def test_nonsense_in_a_choice_is_the_default(name, nonsense):
    page = opened(**SCENE, **{name: nonsense})
    assert not page.exception
    holds(page)
    assert [state(page, one) for one in ("norm", "activation", "layers", "layer")] == ["post", "relu", 1, 1]


def test_a_layer_that_is_gone_is_the_nearest_one():
    page = opened(**SCENE, layers=5, layer=5)
    page.get_by_key("layers").set_value(2).run()
    assert state(page, "layer") == 2
    holds(page)


def test_each_step_has_its_sentence():
    flow = tables(opened(**SCENE))[story.CAPTIONS["block"]]
    assert [row[3].text for row in flow.rows] == [story.BLOCK_STEPS[step].sentence for step in ORDER["post"]]
    assert any(story.CAPTIONS["block"] in text_of(piece) for piece in html(opened(**SCENE)))

"""The shapes page against the tensors torch really made; with it what every page shows of recipes, and the badge."""

import re
from html import unescape
from itertools import product
from math import prod

import einops
import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.recipes import RECIPES
from models.shapes import SYMBOLS
from models.trace import Step
from models.twin import FUNCTION, MODULE, Agreement, Twin, as_torch
from sections import lab, story
from sections.scene import Attention, Computation, Mask, Scale, Scene, compute
from tests.sections.pages import fresh, html, scene_of, state, tables, text_of

SIZES = {"text": "[PAD] one two three one", "context": "un deux [PAD]", "source": "random", "heads": 2, "embed_dim": 22}
GRID = [(name, kind) for name, kind in product(RECIPES, Attention) if kind is Attention.SINGLE_HEAD or not RECIPES[name].one_head]
ALONE = {
    "plain": ("single-head", "none"),
    "single_head": ("single-head", "head_dim"),
    "multi_head": ("multi-head", "head_dim"),
    "cross": ("cross", "embed_dim"),
    "unify_heads": ("multi-head", "embed_dim"),
    "torch": ("multi-head", "head_dim"),
    "tensorflow": ("multi-head", "embed_dim"),
}
"""What each recipe governs: the attention and the scale of a link that names nothing else."""


def opened(**address: object) -> AppTest:
    """The shapes page at an address."""
    page = fresh(**address)
    page._page_hash = calc_hash("shapes")  # the only way to a page that is a function
    return page.run()


def at(recipe: str, attention: Attention, **more: object) -> AppTest:
    widths = {"kdim": 13, "vdim": 7} if attention is Attention.CROSS else {}
    return opened(recipe=recipe, attention=attention, **SIZES, **widths, **more)


def masked_in_every_way(page: AppTest):
    """The same page under each mask, and under one that leaves a query nothing to see."""
    for mask, padding in [*product(Mask, [False]), (Mask.CAUSAL, True)]:
        page.get_by_key("padding").set_value(padding)
        page.get_by_key("mask").set_value(str(mask)).run()
        assert not page.exception and not page.error
        assert (scene_of(page).mask, scene_of(page).padding) == (mask, padding)
        yield page


BOX = re.compile(
    r'<div class="step">(?:<div class="made (?P<view>\w*)">↓ (?P<by>.*?)<small>(?P<paid>.*?)</small></div>)?'
    r'<div class="box (?P<role>\w*)"><b>(?P<name>.*?)</b> <span class="sizes">(?P<sizes>.*?)</span>'
    r"<small>(?P<axes>.*?)</small><small>(?P<symbols>.*?)</small></div></div>"
)


def boxes(page: AppTest) -> dict[str, dict[str, str]]:
    """Every box of the flow by the name of its tensor, in order."""
    (flow,) = [piece for piece in html(page) if 'class="flow"' in piece]
    found = [{name: unescape(text or "") for name, text in box.groupdict().items()} for box in BOX.finditer(flow)]
    assert len(found) == flow.count('class="box ') and len({box["name"] for box in found}) == len(found)
    return {box["name"]: box for box in found}


def counted(text: str, thing: str) -> int:
    """“1,280 multiplications” as a number."""
    found = re.search(rf"([\d,]+) {thing}", text)
    return int(found[1].replace(",", "")) if found else 0


def three_inputs(made: Computation) -> list[Tensor]:
    inputs = [tensor[None] for tensor in made.inputs.values()]
    return inputs if len(inputs) == 3 else inputs * 3


def really(made: Computation) -> dict[str, Tensor]:
    """Every tensor of the layer, made step by step in torch."""
    layer, inputs = made.layer, three_inputs(made)
    copies = layer.config.num_heads // layer.config.kv_heads
    names = ("query", "key", "value") if len(made.inputs) == 3 else ("x",)
    tensors = dict(zip(names, inputs, strict=False))
    for name, x, linear in zip("qkv", inputs, (layer.to_q, layer.to_k, layer.to_v), strict=True):
        tensors[f"{name} unsplit"] = layer.activation(linear(x))
        if copies > 1 and name != "q":
            tensors[f"{name} shared"] = made.trace[name][:, ::copies]
    tensors |= {str(step): made.trace[step] for step in Step}
    tensors["concatenated"] = torch.cat(made.trace.context.unbind(1), dim=-1)
    if made.visible is None:
        del tensors["masked"]
    return tensors


def letters(made: Computation) -> dict[str, int]:
    config = made.layer.config
    e, kdim, vdim = config.input_widths
    return {
        "B": 1, "L": len(made.queries), "S": len(made.keys), "e": e, "e_k": kdim, "e_v": vdim,
        "h": config.num_heads, "g": config.kv_heads, "d": made.trace.q.shape[-1],
    }  # fmt: skip


def multiplications(made: Computation) -> int:
    """Of two numbers, as torch's own counter has them, and one for each score that is scaled."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        made.layer(*three_inputs(made), visible=made.visible)
    return counter.get_total_flops() // 2 + made.trace.scores.numel()


# The flow


def holds(page: AppTest) -> Computation:
    """Every box, arrow and sum of the page against its scene, worked out."""
    made = compute(scene_of(page))
    tensors, shown, counts = really(made), boxes(page), letters(made)
    assert set(shown) == set(tensors)
    for name, box in shown.items():
        assert box["sizes"] == " × ".join(map(str, tensors[name].shape)), name
        assert [prod(counts[letter] for letter in part.split("·")) for part in box["symbols"].split(" × ")] == list(
            tensors[name].shape
        ), name
        assert len(re.sub(r"\(.*?\)", "merged", box["axes"]).split()) == tensors[name].ndim
        if box["view"]:
            assert box["paid"] == story.VIEW
        kind, _, pattern = box["by"].partition(": ")
        if kind in ("rearrange", "repeat"):
            _patterned(kind, pattern, name, tensors, made.layer.config)
    paid = {name: [counted(box["paid"], thing) for thing in ("parameter", "multiplication")] for name, box in shown.items()}
    for name, linear in {"q unsplit": "to_q", "k unsplit": "to_k", "v unsplit": "to_v", "output": "to_output"}.items():
        assert paid[name][0] == sum(p.numel() for p in getattr(made.layer, linear).parameters()), name
    sums = [sum(p.numel() for p in made.layer.parameters()), multiplications(made)]
    assert [sum(column) for column in zip(*paid.values(), strict=True)] == sums
    assert [metric.value for metric in page.metric] == [f"{number:,}" for number in sums]
    used = {letter for box in shown.values() for letter in re.split(r" × |·", box["symbols"])}
    meanings = {symbol.letter: symbol.meaning for symbol in SYMBOLS.values()}
    told = {row[0].text: row[1].text for row in tables(page)[story.CAPTIONS["letters"]].rows}
    assert told == {letter: meanings[letter] for letter in used}
    return made


def _patterned(kind: str, pattern: str, name: str, tensors: dict[str, Tensor], config: AttentionConfig) -> None:
    """A pattern that is shown, run by einops on the tensor before, gives the tensor after."""
    order = {"concatenated": "context"} | {f"{x} shared": f"{x} unsplit" for x in "kv"}
    shared = f"{name} shared" if f"{name} shared" in tensors else f"{name} unsplit"
    sizes = {"head_dim": config.width}
    if kind == "repeat":
        sizes = {"copies": config.num_heads // config.kv_heads}
    made = getattr(einops, kind)(tensors[order.get(name, shared)], pattern, **sizes)
    assert torch.equal(made, tensors[name]), name


@pytest.mark.parametrize("recipe, attention", GRID)
def test_every_shape_and_cost_is_that_of_the_real_tensors(recipe, attention):
    for page in masked_in_every_way(at(recipe, attention)):
        holds(page)
        tells_of_torch(page)
        has_a_green_badge(page)


@pytest.mark.parametrize(
    "address",
    [
        {},
        {"source": "worked-example"},
        {"scale": "none"},
        {"text": "one", "attention": "single-head", "source": "random", "embed_dim": 1},
        {"text": "one two three", "attention": "multi-head", "heads": 3, "embed_dim": 22, "head_dim": 5, "source": "random"},
        {"text": "one", "attention": "cross", "context": "un deux trois", "heads": 6, "embed_dim": 12, "kv_heads": 2, "kdim": 5, "source": "random"},
        {"recipe": "tensorflow", "head_dim": 3, "positions": "true"},
        {"recipe": "single_head", "head_dim": 5},
        {"attention": "multi-head", "heads": 3, "embed_dim": 9, "scale": "embed_dim", "source": "random"},
    ],
    ids=str,
)
def test_other_scenes(address):
    page = opened(**address)
    assert not page.exception and not page.error
    holds(page)
    tells_of_torch(page)
    has_a_green_badge(page)


def test_the_head_split_is_a_view_and_the_projection_is_not():
    shown = boxes(at("torch", Attention.MULTI_HEAD))
    assert {name for name, box in shown.items() if box["view"]} == {"q", "k", "v", "concatenated"}
    assert [name for name, box in shown.items() if not box["by"]] == ["x"]


def test_q_k_and_v_have_lanes_in_their_colours():
    for attention in (Attention.SINGLE_HEAD, Attention.CROSS):
        for name, box in boxes(at("multi_head", attention)).items():
            wanted = {"q": "query", "k": "key", "v": "value", "output": "output"} | {x: x for x in ("query", "key", "value")}
            assert box["role"] == wanted.get(name.split()[0], ""), name


# torch's words


def tells_of_torch(page: AppTest) -> None:
    """The constructor that is shown builds the very layer; where there is none, one reason for each obstacle."""
    made = compute(scene_of(page))
    code = [block.value for block in page.code]
    expressible = Twin(made.layer).compare(*three_inputs(made), visible=made.visible).function == MODULE
    assert len(code) == expressible
    if not expressible:
        (said,) = [text.value for text in page.markdown if text.value.startswith(story.HINTS["torch cannot"])]
        with pytest.raises(ValueError) as why:
            as_torch(made.layer)
        assert said.count("\n- ") == str(why.value).count(";") + 1
        assert story.CAPTIONS["torch shapes"] not in tables(page)
        return
    module = eval(code[0], {"nn": nn})
    assert type(module) is nn.MultiheadAttention and module.batch_first
    module.load_state_dict(as_torch(made.layer).state_dict())
    hidden = None if made.visible is None else ~made.visible
    inputs = three_inputs(made)
    output, weights = module(*inputs, attn_mask=hidden, average_attn_weights=False)
    sees = slice(None) if made.visible is None else made.visible.any(dim=-1)
    assert_close(output[:, sees], made.trace.output[:, sees])
    wanted = dict(zip(made.inputs if len(made.inputs) == 3 else ["x"], inputs, strict=False))
    wanted |= {"weights": weights, "output": output}
    listed = {row[0].text: row[1].text for row in tables(page)[story.CAPTIONS["torch shapes"]].rows}
    assert listed == {name: " × ".join(map(str, tensor.shape)) for name, tensor in wanted.items()}


# Shared keys and values


@pytest.mark.parametrize("attention", [Attention.MULTI_HEAD, Attention.CROSS])
def test_from_multi_head_over_grouped_to_multi_query(attention):
    page = opened(attention=attention, **SIZES | {"heads": 6, "embed_dim": 18})
    slider = page.get_by_key("kv_heads")
    assert slider.options == ["all", "3", "2", "1"]
    for chosen, shared in zip(slider.options, (6, 3, 2, 1), strict=True):
        page.get_by_key("kv_heads").set_value(chosen).run()
        made = holds(page)
        has_a_green_badge(page)
        assert made.layer.config.kv_heads == shared
        (groups,) = [piece for piece in html(page) if 'class="groups"' in piece]
        served = [re.findall(r"[qkv]\d+", text_of(group)) for group in re.findall(r'<div class="group">.*?</div>', groups)]
        assert served == [
            [*(f"q{head + 1}" for head in range(6) if head * shared // 6 == number), f"k{number + 1}", f"v{number + 1}"]
            for number in range(shared)
        ]
        for one, other in product(range(6), repeat=2):
            alike = any({f"q{one + 1}", f"q{other + 1}"} <= set(group) for group in served)
            assert torch.equal(made.trace.k[0, one], made.trace.k[0, other]) == alike
            assert torch.equal(made.trace.v[0, one], made.trace.v[0, other]) == alike
        rows = [[cell.text for cell in row] for row in tables(page)[story.CAPTIONS["sharing"]].rows]
        wanted = []
        for kind, number in {"multi-head": 6, "here": shared, "multi-query": 1}.items():
            layer = MultiHeadAttention(AttentionConfig(18, 6, num_kv_heads=number))
            numbers = sum(p.numel() for p in layer.parameters())
            cached = 2 * number * 3 * torch.zeros(()).element_size()
            wanted.append([story.SHARING[kind], str(number), f"{numbers:,}", f"{cached:,}"])
        assert rows == wanted


def test_one_head_shares_nothing():
    page = opened(attention="single-head")
    assert story.CAPTIONS["sharing"] not in tables(page)
    assert not any('class="groups"' in piece for piece in html(page))


# The badge, and recipes


def has_a_green_badge(page: AppTest) -> None:
    made = compute(scene_of(page))
    agreement = Twin(made.layer).compare(*three_inputs(made), visible=made.visible)
    (badge,) = re.findall(r'<span class="badge ?(.*?)"(?: title="(.*?)")?>(.*?)</span>', "".join(html(page)))
    kind, title, text = badge
    assert (kind, text) == ("good", f"{story.EQUALS} {agreement.function}")
    assert agreement.function in (MODULE, FUNCTION)
    title = unescape(title)
    shown = [float(number) for number in re.findall(r"(?:weights|output) (\d\.\de[+-]\d\d)", title)]
    wanted = [agreement.weights, agreement.output]  # rounding alone, which hangs on where memory happens to lie
    assert len(shown) == 2 and max(shown + wanted) < 1e-12
    assert title.endswith(agreement.reason)


@pytest.mark.parametrize("weights, output, mark", [(3e-16, 9e-13, "✓"), (0.0, 2e-3, "✗"), (4e-12, 0.0, "✗"), (None, 5e-13, "✓")])
def test_a_badge_gives_the_figures_of_the_comparison_and_turns_red(monkeypatch, weights, output, mark):
    found = Agreement(function=FUNCTION, weights=weights, output=output, reason="So <it> is.")
    monkeypatch.setattr(lab, "agree", lambda scene: found)
    (badge,) = re.findall(r'<span class="badge (\w+)" title="(.*?)">(. .*?)</span>', "".join(html(opened())))
    assert badge[0] == {"✓": "good", "✗": "bad"}[mark] and badge[2].startswith(mark) and FUNCTION in badge[2]
    given = {"weights": weights, "output": output}
    said = ", ".join(f"{name} {number:.1e}" for name, number in given.items() if number is not None)
    assert unescape(badge[1]) == f"Largest difference in float64: {said}. So <it> is."


def test_a_badge_without_a_comparison_says_why(monkeypatch):
    monkeypatch.setattr(lab, "agree", lambda scene: Agreement(function=MODULE, weights=None, output=None, reason="<none>"))
    assert '<span class="badge">&lt;none&gt;</span>' in "".join(html(opened()))


def remark_of(page: AppTest) -> str:
    (remark,) = [text_of(piece) for piece in html(page) if 'class="remark"' in piece]
    return remark


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_alone_in_the_address_opens_its_scene(name):
    page = opened(recipe=name)
    assert not page.exception and not page.error
    assert (state(page, "recipe"), state(page, "attention"), state(page, "scale")) == (name, *ALONE[name])
    scene = scene_of(page)
    assert (scene.recipe, str(scene.attention), str(scene.scale)) == (name, *ALONE[name])
    has_a_green_badge(page)
    if name != Scene.recipe:
        recipe = RECIPES[name]
        sizes = (scene.embed_dim, scene.num_heads, None, scene.kdim, scene.vdim)
        assert compute(scene).layer.config == recipe.config(*sizes)
        assert all(part in remark_of(page) for part in (recipe.title, recipe.source, recipe.remark))


@pytest.mark.parametrize("name", RECIPES)
def test_choosing_a_recipe_sets_what_it_governs(name):
    page = opened(recipe="torch" if name != "torch" else "plain", head_dim=3, **SIZES)
    page.get_by_key("recipe").set_value(name).run()
    assert not page.exception and not page.error
    attention = "multi-head" if name == "multi_head" else ALONE[name][0]
    assert (state(page, "recipe"), state(page, "attention"), state(page, "scale")) == (name, attention, ALONE[name][1])
    assert scene_of(page).head_dim is None
    assert (RECIPES[name].remark in remark_of(page)) == (name != Scene.recipe)
    has_a_green_badge(page)
    linked = opened(**page.query_params | {"recipe": name})  # what is chosen by hand the browser writes itself
    assert (boxes(linked), html(linked)) == (boxes(page), html(page))
    assert [state(linked, one) for one in ("recipe", "attention", "scale")] == [name, attention, ALONE[name][1]]


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.one_head])
@pytest.mark.parametrize("attention", [Attention.MULTI_HEAD, Attention.CROSS])
def test_a_recipe_of_one_head_gives_way_to_more(name, attention):
    page = opened(recipe=name, attention=attention, **SIZES)
    assert not page.exception and not page.error
    assert (state(page, "recipe"), state(page, "attention")) == (Scene.recipe, attention)
    holds(page)
    page = opened(recipe=name)
    page.get_by_key("attention").set_value(str(attention)).run()
    assert not page.exception
    assert (state(page, "recipe"), state(page, "attention")) == (Scene.recipe, attention)


def test_the_scale_chosen_by_hand_outweighs_the_recipe():
    page = opened(recipe="cross", scale="head_dim", **SIZES)
    assert scene_of(page).scale is Scale.HEAD_DIM
    made = compute(scene_of(page))
    assert_close(made.trace.scaled, made.trace.scores / 11**0.5)


def test_choices_outlive_a_change_of_page():
    page = at("torch", Attention.CROSS, mask="causal")
    before, shown = scene_of(page), boxes(page)
    for name in ("torch", "block", "crash", "self-and-cross", "", "shapes"):
        page._page_hash = calc_hash(name)
        page.run()
        assert not page.exception
    assert scene_of(page) == before and boxes(page) == shown

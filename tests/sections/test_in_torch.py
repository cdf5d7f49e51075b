"""The torch page: every script and every mask that is shown, run as a reader would paste it, against the page's trace."""

import re
from contextlib import redirect_stdout
from inspect import getsource
from io import StringIO
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from torch import Tensor, nn
from torch.testing import assert_close

from models import attention as steps
from models.recipes import RECIPES
from models.tokens import PAD
from models.twin import as_torch, obstacles
from sections import story
from sections.limits import MAX_TOKENS
from sections.scene import Attention, Computation, Mask, Scene, Source, compute
from tests.sections.oracle import sees
from tests.sections.pages import fresh, scene_of

GRID = [(name, kind) for name, kind in product(RECIPES, Attention) if kind is Attention.SINGLE_HEAD or not RECIPES[name].one_head]
SIZES = {"text": "[PAD] one two three one", "context": "un deux [PAD]", "source": "random", "heads": 2, "embed_dim": 22, "seed": 3}
OTHERS = [
    {"source": "worked-example"},
    {"source": "worked-example", "mask": "causal", "scale": "none"},
    {"mask": "window", "width": 0, "positions": "true", "text": "one two 'three' \\ \" {x} \u202e", "source": "random"},
    {"mask": "prefix", "length": 2, "attention": "multi-head", "heads": 6, "embed_dim": 12, "kv_heads": 2, "source": "random"},
    {"attention": "cross", "kv_heads": 1, "kdim": 5, "vdim": 3, "scale": "none", "mask": "padding", "context": "[PAD] [PAD]", "source": "random"},
    {"attention": "multi-head", "head_dim": 5, "heads": 3, "text": "注意力机制", "tokens": "characters", "padding": "true", "source": "random"},
    {"recipe": "single_head", "head_dim": 5, "mask": "causal"},
    {"recipe": "torch", "text": "one", "heads": 16, "embed_dim": 16},
    {"recipe": "tensorflow", "head_dim": 3, "mask": "prefix", "length": 0},
]


def opened(**address: object) -> AppTest:
    """The torch page at an address."""
    page = fresh(**address)
    page._page_hash = calc_hash("torch")  # the only way to a page that is a function
    return page.run()


def scripts(page: AppTest) -> list[str]:
    return [block.value for block in page.code]


def run(code: str, **given: object) -> dict:
    """A fresh namespace, in which code has run."""
    names = {"__name__": "pasted"} | given
    with torch.random.fork_rng(devices=[]), redirect_stdout(StringIO()):
        exec(compile(code, "pasted", "exec"), names)
    return names


def holds(page: AppTest) -> None:
    """All three dialects, and both masks, against the trace of the page."""
    made = compute(scene_of(page))
    for dialect in story.DIALECTS:
        page.get_by_key("dialect").set_value(dialect).run()
        assert not page.exception and not page.error
        assert story.DIALECTS[dialect] in [caption.value for caption in page.caption]
        (script,) = [code for code in scripts(page) if "print(output" in code]
        assert ("einops" in script) == (dialect == "einops")
        names = run(script)
        assert_close(names["weights"].detach(), made.trace.weights[0], rtol=1e-5, atol=1e-6)
        assert_close(names["output"].detach(), made.trace.output[0], rtol=1e-5, atol=1e-6)
    _masks(page, made)


def _masks(page: AppTest, made: Computation) -> None:
    """What stands on the page about the mask, taken at its word."""
    codes, told = scripts(page), [caption.value for caption in page.caption]
    if made.visible is None:
        assert [info.value for info in page.info] == [story.HINTS["no mask"]]
        assert not any("with_" in code for code in codes)
        return
    tokens = made.scene.split("context" if len(made.inputs) == 3 else "text")
    wanted = torch.tensor([[sees(made.scene, i, j, key) for j, key in enumerate(tokens)] for i in range(len(made.queries))])
    (shown,) = [run(code, torch=torch)["visible"] for code in codes if code.startswith("visible = ")]
    assert shown.dtype == torch.bool and torch.equal(shown, wanted)
    seeing, names = wanted.any(dim=-1), ["context"]

    kept = _function(codes, "with_function")(made.trace.q, made.trace.k, made.trace.v, made.layer.config.factor, shown)
    assert_close(kept[:, :, seeing], made.trace.context[:, :, seeing])

    padding = made.scene.mask in (Mask.NONE, Mask.PADDING)
    name = "key_padding_mask = ~keep" if padding else "attn_mask = ~visible"
    (turned,) = [code.removeprefix(name) for code in codes if code.startswith(name)]
    assert all(line.startswith("# ") for line in turned.strip("\n").splitlines())
    turned = eval(turned.replace("\n# ", "\n").strip(), {"tensor": torch.tensor})
    assert torch.equal(turned, torch.tensor([[token == PAD for token in tokens]]) if padding else ~wanted)
    function = _function(codes, "with_padding" if padding else "with_module")
    if why := obstacles(made.layer.config):
        assert story.HINTS["module cannot"] + " " + "; ".join(why) + "." in told
    else:
        inputs = [tensor[None] for tensor in made.inputs.values()]
        output = function(as_torch(made.layer), *(inputs if len(inputs) == 3 else inputs * 3), ~turned)
        assert_close(output[:, seeing], made.trace.output[:, seeing])
        names.append("output")
    written = [re.search(r"our (\w+) (\d\.\de[+-]\d\d)\.", text) for text in told if "largest difference" in text]
    assert [found[1] for found in written] == names
    assert all(float(found[2]) < 1e-5 for found in written)  # rounding alone, which hangs on where memory lies


def _function(codes: list[str], name: str):
    (source,) = [code for code in codes if code.startswith(f"def {name}(")]
    return run(source, F=F, nn=nn, Tensor=Tensor)[name]


@pytest.mark.parametrize("recipe, attention", GRID)
def test_every_script_gives_the_numbers_of_the_page(recipe, attention):
    widths = {"kdim": 13, "vdim": 7} if attention is Attention.CROSS else {}
    page = opened(recipe=recipe, attention=attention, **SIZES, **widths)
    for mask, padding in [*product(Mask, [False]), (Mask.CAUSAL, True)]:
        page.get_by_key("padding").set_value(padding)
        page.get_by_key("mask").set_value(str(mask)).run()
        scene = scene_of(page)
        assert (scene.recipe, scene.attention, scene.mask, scene.padding) == (recipe, attention, mask, padding)
        holds(page)


@pytest.mark.parametrize("address", OTHERS, ids=str)
def test_other_scenes(address):
    page = opened(**address)
    assert not page.exception and not page.error
    holds(page)


def test_a_long_text_is_cut_in_the_script_as_on_the_page():
    text = " ".join(f"t{n}" for n in range(MAX_TOKENS + 10))
    page = opened(text=text, attention="single-head", source="random", embed_dim=2)
    (script,) = [code for code in scripts(page) if "print(output" in code]
    made, names = compute(scene_of(page)), run(script)
    assert len(names["tokens"]) == MAX_TOKENS
    assert_close(names["output"].detach(), made.trace.output[0])


def test_glass_heads_have_no_script_of_their_own_and_the_page_says_so():
    page = opened()
    assert story.CODE_RANDOM.format(seed=0) in [caption.value for caption in page.caption]
    made, (script,) = compute(Scene(source=Source.RANDOM)), [code for code in scripts(page) if "print(output" in code]
    assert_close(run(script)["weights"].detach(), made.trace.weights[0], rtol=1e-5, atol=1e-6)


def test_a_dialect_is_in_the_address():
    (script,) = [code for code in scripts(opened(recipe="torch", dialect="library")) if "print(output" in code]
    assert "= nn.MultiheadAttention(" in script
    page = opened(dialect="nonsense")
    assert not page.exception
    assert page.get_by_key("dialect").value == "einops"


def test_the_two_masks_are_opposites():
    page = opened(mask="causal", text="one two three", source="random")
    codes = scripts(page)
    (kept,) = [code.removeprefix("visible = ") for code in codes if code.startswith("visible = ")]
    (hidden,) = [code.split("\n", 1)[1] for code in codes if code.startswith("attn_mask")]
    swapped = {"True": "False", "False": "True"}
    assert re.findall("True|False", hidden) == [swapped[word] for word in re.findall("True|False", kept)]


def test_the_difference_is_the_largest_of_all():
    def script():
        import torch

        from sections.in_torch import _difference

        _difference("context", torch.tensor([[1.0, -2.0], [3.0, 4.0]]), torch.tensor([[1.0, -2.5], [3.25, 4.0]]))
        _difference("output", torch.zeros(0, 3), torch.zeros(0, 3))

    page = AppTest.from_function(script).run()
    assert [caption.value for caption in page.caption] == [
        story.HINTS["difference"].format(name="context", largest=0.5),
        story.HINTS["difference"].format(name="output", largest=0.0),
    ]


def test_our_own_steps_are_shown_as_they_are():
    assert getsource(steps).strip() in [code.strip() for code in scripts(opened())]


def test_sizes_that_only_random_heads_would_have_are_refused_with_the_reason():
    page = opened(embed_dim=9)
    assert not page.exception
    assert [error.value for error in page.error] == [story.does_not_divide(9, Scene.heads)]

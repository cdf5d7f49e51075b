"""Whatever a stranger types, puts into an address or uploads: no page breaks, and what was typed is still there.

2,000 generated inputs; `LAB_INPUTS=10000 pytest tests/sections/test_any_input.py` takes another number of them.
"""

import json
import os
from dataclasses import fields
from io import BytesIO

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from safetensors.numpy import save
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from models.brought import ARRAYS, LABELS
from models.diagnose import Call
from models.trained.tasks import TASKS
from sections.choices import Look
from sections.lab import BARE, HOME, PAGES
from sections.scene import Scene
from sections.story import REAL
from tests.sections.pages import fresh, html, read, state

INPUTS = int(os.environ.get("LAB_INPUTS", 2000))
SHARES = {HOME: 0.25, "shapes": 0.05, "torch": 0.05, "self-and-cross": 0.05, "block": 0.05}
SHARES |= {"trained": 0.15, "pretrained": 0.05, "brought": 0.25, "crash": 0.1}

MARKUP = (
    "<script>alert(1)</script> <b>x</b> <img/src=x onerror=alert(1)> $x^2$ $$ \\frac{a}{b} **bold** [a](javascript:1) "
    "![x](http://x.invalid) :red[a] :material/bug_report: `code` <!-- --> </div> &lt; &#60; %{z} {{a}} ${a} # - 1. > | ~~a~~"
).split(" ")
SCRIPTS = (
    "注意力 をかな 한국어 العربية עברית हिन्दी ไทย ün naïve Ωμέγα Привет 🙂 👩‍👩‍👧 🇫🇷 e\u0301 a\u200bb \u202eabc \ufeff \u2028 \x00 \x1b \x7f [PAD] [CLS] .,!?"
).split(" ")
NONSENSE = ("", " ", "-1", "0", "1e9", "nan", "inf", "-inf", "1.5", "999999999999999999999", "true", "None", "½", "１２", "<b>", "a,b")

whole = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)  # halves of characters are in no address
pieces = st.lists(st.sampled_from(MARKUP + SCRIPTS + "the animal it was too tired a b 1".split(" ")), max_size=25)
texts = st.one_of(pieces.map(" ".join), whole, st.builds(lambda text, times: text * times, whole, st.integers(1, 300)))
worlds = st.sampled_from([example for task in TASKS.values() for example in task.examples])
numbers = st.one_of(st.integers(-3, 20), st.integers(), st.floats()).map(str)
values = st.one_of(numbers, st.sampled_from(NONSENSE), whole)

WORDS = {
    "attention": ["single-head", "multi-head", "cross"],
    "mask": ["none", "causal", "padding", "window", "prefix"],
    "source": ["glass", "random", "worked-example"],
    "recipe": ["tensorflow", "torch", "unify_heads", "no_parameters", "cross"],
    "tokens": ["words", "characters"],
    "scale": ["head_dim", "embed_dim", "none"],
    "step": ["scores", "scaled", "masked", "weights"],
    "together": ["each", "average", "maximum"],
    "leave_out": ["none", "special", "first"],
    "shade": ["map", "row"],
    "task": list(TASKS),
    "weights_of": ["trained", "free", "random", "glass", "ordinary"],
    "knock_out": ["nothing", "word", "head"],
    "positions": ["true", "false"],
    "padding": ["true", "false"],
}
"""Choices that are words, and some of the words that they have."""
TEXTS = ("text", "context", *(f"{task}_text" for task in TASKS), *(name for name in REAL if name.startswith("real_")))
NAMES = {*WORDS, *TEXTS, "query", "head", "layer", "layers", "layer_of", "pattern", "example", "page", "embed", "__proto__"}
NAMES |= {one.name for one in fields(Scene)} | set(Look._fields) | {f"call_{one.name}" for one in fields(Call)}


@st.composite
def addresses(draw: st.DrawFn) -> dict[str, str]:
    """Some choices, some of them sensible."""
    names = draw(st.lists(st.sampled_from(sorted(NAMES)), max_size=8, unique=True))
    kinds = {name: st.one_of(texts, worlds) for name in TEXTS}
    kinds |= {name: st.one_of(st.sampled_from(words), st.sampled_from(words), values) for name, words in WORDS.items()}
    return {name: draw(kinds.get(name, values)) for name in names}


def some(name: str):
    """A page's share of the inputs; a failure is shown as it was found, since shrinking it would take minutes."""
    return settings(
        max_examples=max(1, round(SHARES[name] * INPUTS)),
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def at(name: str, address: dict[str, str]) -> AppTest:
    """A page of the app at an address, whole."""
    page = fresh(**address)
    if name != HOME:
        page._page_hash = calc_hash(name)  # the only way to a page that is a function
    return sound(page.run())


def sound(page: AppTest) -> AppTest:
    """A page without an exception box, whose every piece of HTML is closed."""
    assert not page.exception, page.exception[0].value
    for piece in html(page):
        read(piece)
    return page


def keeps(page: AppTest, typed: dict[str, str]) -> None:
    """Every text on the page is as it was typed."""
    for one in page.text_input:
        if one.key in typed:
            assert one.value == typed[one.key]


def test_every_page_has_its_share():
    assert set(SHARES) == {*PAGES, *BARE} and sum(SHARES.values()) == pytest.approx(1)


@pytest.mark.parametrize("name", [name for name in SHARES if name != "brought"])
def test_any_address_and_any_text_opens_a_page_that_keeps_it(name):
    @some(name)
    @given(addresses(), texts, st.booleans())
    def check(address: dict[str, str], text: str, typed: bool) -> None:
        page = at(name, address)
        keeps(page, {key: value for key, value in address.items() if key in TEXTS})
        if typed and page.text_input:
            box = page.text_input[0]
            sound(box.set_value(text).run())
            keeps(page, {box.key: text})
            assert state(page, box.key) == text

    check()


# ---- files ----

sizes = st.lists(st.integers(0, 6), min_size=1, max_size=5).map(tuple)
dtypes = st.sampled_from(["f4", "f8", "f2", "i4", "i8", "u1", "?", "U5"])


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Of any shape, often of shares of one."""
    shape, dtype = draw(sizes), draw(dtypes)
    values = np.random.default_rng(draw(st.integers(0, 99))).random(shape)
    if draw(st.booleans()) and values.size:
        values = values / values.sum(-1, keepdims=True)
        dtype = "f4"
    if draw(st.integers(0, 9)) == 0 and values.size:
        values.flat[0] = draw(st.sampled_from([np.nan, np.inf, -1, 1e300]))
    with np.errstate(all="ignore"):
        return values.astype(dtype)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, object]:
    """What a file holds by name: arrays that fit each other, or do not, and tokens."""
    names = draw(st.lists(st.one_of(st.sampled_from(ARRAYS), whole), max_size=4, unique=True))
    held: dict[str, object] = {name: draw(arrays()) for name in names if name not in LABELS}
    if draw(st.booleans()):
        heads, queries, keys, width = (draw(st.integers(1, 5)) for _ in range(4))
        held["weights"] = np.full((heads, queries, keys), 1 / keys)
        held |= {"q": np.ones((heads, queries, width)), "k": np.ones((heads, keys, width)), "v": np.ones((heads, keys, width))}
        held["queries"], held["keys"] = (draw(st.lists(whole, min_size=n, max_size=n)) for n in (queries, keys))
    for name in draw(st.lists(st.sampled_from(LABELS), max_size=1)):
        held[name] = draw(st.lists(whole, max_size=6))
    return held


def written(kind: str, held: dict[str, object]) -> bytes:
    """A file of that kind."""
    if kind == "npz":
        file = BytesIO()
        np.savez(file, **{name.replace("/", ""): np.array(value) for name, value in held.items() if name != "file"})
        return file.getvalue()
    if kind == "safetensors":
        tensors = {name: value for name, value in held.items() if name not in LABELS and value.dtype.kind != "U"}
        labels = {name: json.dumps(value) for name, value in held.items() if name in LABELS}
        return save(tensors, labels)
    return json.dumps({name: np.array(value).tolist() for name, value in held.items()}).encode()


@st.composite
def uploads(draw: st.DrawFn) -> tuple[str, bytes]:
    """A name, and bytes that are what it says, almost, or not at all."""
    kind = draw(st.sampled_from(["npz", "json", "safetensors"]))
    data = written(kind, draw(contents()))
    match draw(st.sampled_from(["whole", "whole", "cut", "changed", "other"])):
        case "cut":
            data = data[: draw(st.integers(0, len(data)))]
        case "changed":
            place = draw(st.integers(0, max(len(data) - 1, 0)))
            data = data[:place] + bytes([draw(st.integers(0, 255))]) + data[place + 1 :]
        case "other":
            data = draw(st.binary(max_size=200))
    stem = draw(whole).replace("\x00", "")
    return f"{stem}.{kind}", data


@some("brought")
@given(uploads(), addresses())
def test_any_file_is_drawn_or_refused(upload, address):
    page = at("brought", address)
    sound(page.file_uploader[0].upload(*upload).run())
    assert page.error or page.get("bidi_component"), "neither a reason nor a map"

"""The downloads of the page, read back: every number of the trace, and the view as one document."""

import json
from io import BytesIO

import numpy as np
import pytest
import torch
from plotly.offline import get_plotlyjs

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import AXES, Step
from sections import arithmetic, story
from sections.scene import Computation, Scene, compute
from tests.sections.pages import fresh, read, scene_of

ADDRESSES = {
    "glass": {},
    "worked example": {"source": "worked-example"},
    "heads": {"text": "one two three", "attention": "multi-head", "heads": 2, "mask": "causal", "query": 2, "head": 2},
    "cross": {"text": "one two", "context": "[PAD] a b", "attention": "cross", "kdim": 7, "vdim": 5, "padding": "true"},
    "blind": {"text": "[PAD] x", "mask": "padding", "source": "random", "query": 2},
    "blind altogether": {"text": "[PAD]", "mask": "padding", "source": "random"},
}


@pytest.fixture
def downloads(monkeypatch):
    """Opens an address and gives the computation and every file, each made only now."""

    def open_and_take(address: dict) -> tuple[Computation, dict]:
        makers = {}
        monkeypatch.setattr(
            "streamlit.download_button", lambda label, data, file_name, **settings: makers.update({file_name: data})
        )
        page = fresh(**address)
        page.session_state["files"] = True
        page.run()
        assert not page.exception
        return compute(scene_of(page)), {name: make() for name, make in makers.items()}

    return open_and_take


def arrays(made: Computation) -> dict[str, np.ndarray]:
    """All that must be in a file."""
    trace = {str(step): made.trace[step][0].numpy() for step in Step}
    inputs = {f"input.{name}": vectors.numpy() for name, vectors in made.inputs.items()}
    layer = {f"layer.{name}": values.numpy() for name, values in made.layer.state_dict().items()}
    visible = {} if made.visible is None else {"visible": made.visible.numpy()}
    return trace | inputs | layer | visible


@pytest.mark.parametrize("name", ADDRESSES)
def test_npz(downloads, name):
    made, files = downloads(ADDRESSES[name])
    with np.load(BytesIO(files["attention.npz"]), allow_pickle=False) as archive:
        wanted = arrays(made)
        assert set(archive.files) == {*wanted, "about"}
        for key, array in wanted.items():
            assert archive[key].dtype == array.dtype
            np.testing.assert_array_equal(archive[key], array)
        about = json.loads(str(archive["about"]))
    describes(about, made)


@pytest.mark.parametrize("name", ADDRESSES)
def test_json(downloads, name):
    made, files = downloads(ADDRESSES[name])

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found = json.loads(files["attention.json"], parse_constant=refuse)
    listed, wanted = found.pop("arrays"), arrays(made)
    describes(found, made)
    assert set(listed) == set(wanted)
    for key, array in wanted.items():
        assert listed[key]["shape"] == list(array.shape)
        np.testing.assert_array_equal(np.array(listed[key]["values"]).astype(array.dtype), array)
    if made.visible is not None and not made.visible.all():
        assert '"-Infinity"' in files["attention.json"]


def describes(about: dict, made: Computation) -> None:
    assert about["queries"] == list(made.queries) and about["keys"] == list(made.keys)
    assert about["axes"] == {str(step): AXES[step] for step in Step}
    assert Scene(**about["scene"]) == made.scene
    assert AttentionConfig(**about["config"]) == made.layer.config


def test_a_file_is_enough_to_compute_everything_again(downloads):
    _, files = downloads(ADDRESSES["cross"])
    archive = np.load(BytesIO(files["attention.npz"]), allow_pickle=False)
    about = json.loads(str(archive["about"]))
    layer = MultiHeadAttention(AttentionConfig(**about["config"]))
    layer.load_state_dict(
        {key.removeprefix("layer."): torch.tensor(archive[key]) for key in archive.files if key.startswith("layer.")}
    )
    inputs = [torch.tensor(archive[f"input.{name}"])[None] for name in ("query", "key", "value")]
    with torch.no_grad():
        trace = layer.trace(*inputs, visible=torch.tensor(archive["visible"]))
    for step in Step:
        np.testing.assert_array_equal(trace[step][0].numpy(), archive[step])


@pytest.mark.parametrize("name", ADDRESSES)
def test_the_view_as_one_page(downloads, name):
    made, files = downloads(ADDRESSES[name])
    address = ADDRESSES[name]
    document = files["attention.html"]
    reader = read(document.replace("<!doctype html>", "").replace(get_plotlyjs(), ""))
    words = "".join(reader.words)
    for tag, given in reader.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form", "a")
        assert not set(given) & {"src", "href", "srcset"} and not any(key.startswith("on") for key in given)
    pictures = arithmetic.pictures(
        made, address.get("head", 1) - 1, address.get("query", 1) - 1, products=True, every_key=True
    )
    assert all(picture in document for picture in pictures)
    assert [table.caption for table in reader.tables] == [
        story.CAPTIONS[key] for key in ("query", "scores", "masked", "weights", "context", "together")
    ]
    for tale in (story.STEPS[step] for steps in arithmetic.STEPS for step in steps):
        assert tale.title in words
    assert sum(tag == "math" for tag, _ in reader.tags) == sum(map(len, arithmetic.STEPS))
    assert document.count("Plotly.newPlot(") - get_plotlyjs().count("Plotly.newPlot(") == (
        2 if made.num_heads > 1 else 1
    )


def test_the_worked_example_as_one_page_says_its_numbers(downloads):
    _, files = downloads(ADDRESSES["worked example"])
    tables = {table.caption: table for table in read(files["attention.html"].replace("<!doctype html>", "")).tables}
    rows = tables[story.CAPTIONS["masked"]].rows
    assert [[text for cell in row for text in cell.numbers] for row in rows] == [["112", "14", "14"], ["96", "12", "12"]]
    assert [row[3].numbers for row in tables[story.CAPTIONS["weights"]].rows] == [["0.88"], ["0.12"]]


HOSTILE = "<script>alert(1)</script> </script><script>alert(2)</script> <b>x</b> <!-- $x$ [a](javascript:1) \u202e"


@pytest.mark.parametrize("attention", ["single-head", "cross"])
def test_hostile_tokens_stay_text_in_the_page(downloads, attention):
    made, files = downloads({"text": HOSTILE, "context": HOSTILE, "attention": attention, "source": "random"})
    reader = read(files["attention.html"].replace("<!doctype html>", "").replace(get_plotlyjs(), ""))
    assert not any(tag in ("b", "a", "img") for tag, _ in reader.tags)
    scripts = [word for word in reader.words if "Plotly.newPlot(" in word]
    scripts += [script.replace("\\u003c", "<").replace("\\u003e", ">") for script in scripts]  # and as plotly reads them
    assert len(scripts) == 2 * (1 if attention == "single-head" else 2)
    assert not any(mark in script for script in scripts for mark in ("<script", "</script", "<b>x", "<!--", "\u202e"))
    for label in made.queries:
        assert label in reader.words
    assert sum(tag == "script" for tag, _ in reader.tags) == 1 + len(scripts) // 2

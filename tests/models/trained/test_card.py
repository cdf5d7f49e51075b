"""Weight files that cannot be used are refused, with what was wanted, what came, and what to do."""

import json
import pickle
import re
import zipfile
from dataclasses import asdict, replace
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trained import card
from models.trained.card import BadWeights
from models.trained.task import TRAINED
from models.trained.tasks import TASKS

TASK = TASKS["reverse"]
MODEL, CARD = TASK.load_with_card()
AGAIN = "Train it again with python -m models.trained TASK, or restore the file."


def load(path):
    build = TASK.variants[TRAINED].build
    return card.load(path, build, task=TASK.name, variant=TRAINED, vocabulary=TASK.vocabulary)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.safetensors"


def refused(path, reason: str) -> None:
    with pytest.raises(BadWeights, match=f"^{re.escape(reason)}"):
        load(path)
    with pytest.raises(ValueError, match=re.escape(AGAIN)):
        load(path)


def test_what_was_saved_is_loaded_in_float32_and_learns_nothing(path):
    card.save(path, MODEL, CARD)
    model, came = load(path)
    assert came == CARD
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, MODEL.state_dict()[name])
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_the_card_says_how_to_make_it_again():
    for task in TASKS.values():
        for variant in task.variants:
            came = task.load_with_card(variant)[1]
            assert came.command == f"python -m models.trained {task.name}"
            assert came.recipe == json.loads(json.dumps(asdict(task.variants[variant].recipe)))


def test_a_missing_file_is_refused(path):
    refused(path, "x.safetensors should be a weight file; it cannot be read: No such file or directory.")


def test_an_empty_file_is_refused(path):
    path.write_bytes(b"")
    refused(path, "x.safetensors should have 1 to 1,048,576 bytes; got 0.")


def test_a_huge_file_is_refused_unread(path):
    with path.open("wb") as file:
        file.truncate(2**34)
    refused(path, "x.safetensors should have 1 to 1,048,576 bytes; got 17,179,869,184.")


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_file_is_refused(path, share):
    data = TASK.path(TRAINED).read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refused(path, "x.safetensors should be a whole safetensors file; it is damaged: ")


@pytest.mark.parametrize("data", [b"{}", b"\xff" * 100, b"\x10" + b"\0" * 7 + b"not json at all!", b"hello"])
def test_anything_else_is_refused(path, data):
    path.write_bytes(data)
    refused(path, "x.safetensors should be a whole safetensors file; it is damaged: ")


def test_a_header_whose_length_begins_like_a_pickle_is_read(path):
    for extra in range(256):
        card.save(path, MODEL, replace(CARD, command="x" * extra))
        if path.read_bytes().startswith(b"\x80"):
            break
    assert path.read_bytes().startswith(b"\x80")
    assert load(path)[1].command == "x" * extra


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


def test_a_pickle_is_refused_unopened(path):
    refusal = "x.safetensors should be a safetensors file of plain numbers; got a pickled one, which could run code"
    path.write_bytes(pickle.dumps(Bomb()))
    refused(path, refusal)
    torch.save({"weight": torch.ones(2)}, path)
    assert zipfile.is_zipfile(path)
    refused(path, refusal)


@pytest.mark.parametrize("metadata", [None, {"card": "no json"}, {"card": "{}"}, {"card": "[]"}, {"card": '{"task": 1}'}])
def test_a_file_without_a_card_is_refused(path, metadata):
    save_file(load_file(TASK.path(TRAINED)), path, metadata=metadata)
    refused(path, "x.safetensors should carry a card of task, vocabulary and heads; got none.")


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"task": "cooking"}, "x.safetensors should be of task reverse; its card says cooking."),
        ({"variant": "free"}, "x.safetensors should be of variant trained; its card says free."),
        ({"vocabulary": ("a",)}, "x.safetensors should be of vocabulary ('_', '<', '>', '.', "),
        ({"heads": {"only": 4}}, "x.safetensors should be of heads {'only': 1}; its card says {'only': 4}."),
    ],
)
def test_a_card_of_another_model_is_refused(path, change, reason):
    card.save(path, MODEL, replace(CARD, **change))
    refused(path, reason)


def test_four_heads_do_not_load_into_one_of_the_same_shapes(path):
    four = TASK.variants[TRAINED].build()
    four.only = MultiHeadAttention(AttentionConfig(embed_dim=32, num_heads=4))
    assert {name: t.shape for name, t in four.state_dict().items()} == {n: t.shape for n, t in MODEL.state_dict().items()}
    card.save(path, four, replace(CARD, heads=card.heads(four)))
    refused(path, "x.safetensors should be of heads {'only': 1}; its card says {'only': 4}.")


def tensors(**change: torch.Tensor | None) -> dict[str, torch.Tensor]:
    changed = load_file(TASK.path(TRAINED)) | {name.replace("__", "."): tensor for name, tensor in change.items()}
    return {name: tensor for name, tensor in changed.items() if tensor is not None}


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"readout__bias": torch.ones(7)}, "x.safetensors should have readout.bias of shape (30,); got (7,)."),
        ({"readout__bias": None}, "x.safetensors should have readout.bias of shape (30,); got none."),
        ({"more": torch.ones(7)}, "x.safetensors should have more of shape none; got (7,)."),
        ({"readout__bias": torch.full((30,), torch.nan)}, "x.safetensors should hold finite numbers; got NaN or ∞"),
    ],
)
def test_numbers_of_another_shape_are_refused(path, change, reason):
    save_file(tensors(**change), path, metadata={"card": json.dumps(asdict(CARD))})
    refused(path, reason)


def test_a_bad_file_of_one_task_leaves_the_others_alone(path, monkeypatch):
    path.write_bytes(b"hello")
    monkeypatch.setattr(TASK, "path", partial(lambda bad, _: bad, path))
    with pytest.raises(BadWeights):
        TASK.load()
    assert TASKS["coreference"].load()

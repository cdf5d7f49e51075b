"""Weight files: plain numbers with a card that says what they are, checked before anything is made of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save_file
from torch import Tensor, nn

from models.multi_head import MultiHeadAttention
from models.trained.training import empty

MOST_BYTES = 2**20
"""More than any file here has, and little enough to read at once."""


class BadWeights(ValueError):
    """A weight file that cannot be used: what was wanted, what came, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a file's numbers cannot tell.

    heads: how many each attention layer has, by the layer's place in the model.
    recipe: how it was trained. command: what trains it again. figures: what was measured on held-out data.
    """

    task: str
    variant: str
    vocabulary: tuple[str, ...]
    heads: Mapping[str, int]
    recipe: Mapping[str, object]
    command: str
    figures: Mapping[str, float]


def heads(model: nn.Module) -> dict[str, int]:
    """How many heads each attention layer of a model has, by its place in it."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    return {name: layer.config.num_heads for name, layer in layers.items()}


def save(path: Path, model: nn.Module, card: Card) -> None:
    """Writes a model's numbers in half precision, with its card."""
    tensors = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, path, metadata={"card": json.dumps(asdict(card), ensure_ascii=False)})


def load(
    path: Path, build: Callable[[], nn.Module], *, task: str, variant: str, vocabulary: Sequence[str]
) -> tuple[nn.Module, Card]:
    """The model of a file, in float32 and learning nothing more, and its card.

    Raises `BadWeights` for a file that is missing, no safetensors file, damaged, or of another model.
    """
    data = _bytes(path)
    card = _card(path, data)
    model = empty(build)
    wanted = {"task": task, "variant": variant, "vocabulary": tuple(vocabulary), "heads": heads(model)}
    for name, value in wanted.items():
        if getattr(card, name) != value:
            raise BadWeights(
                f"{path.name} should be of {name} {_short(value)}; its card says {_short(getattr(card, name))}. {_AGAIN}"
            )
    _fill(path, model, read_tensors(data))
    return model.eval().requires_grad_(False), card


_AGAIN = "Train it again with python -m models.trained TASK, or restore the file."


def _bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MOST_BYTES else b""
    except OSError as error:
        raise BadWeights(f"{path.name} should be a weight file; it cannot be read: {error.strerror}. {_AGAIN}") from error
    if not data:
        raise BadWeights(f"{path.name} should have 1 to {MOST_BYTES:,} bytes; got {size:,}. {_AGAIN}")
    if data.startswith((b"PK", b"\x80")) and data[8:9] != b"{":  # safetensors begin with a length that may be \x80, too
        raise BadWeights(
            f"{path.name} should be a safetensors file of plain numbers; got a pickled one, which could run code "
            f"and is not opened. {_AGAIN}"
        )
    return data


def _card(path: Path, data: bytes) -> Card:
    try:
        read_tensors(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, ValueError, KeyError) as error:
        raise BadWeights(f"{path.name} should be a whole safetensors file; it is damaged: {error}. {_AGAIN}") from error
    try:
        fields = json.loads(header["__metadata__"]["card"])
        return Card(**fields | {"vocabulary": tuple(fields["vocabulary"])})
    except (ValueError, KeyError, TypeError) as error:
        raise BadWeights(f"{path.name} should carry a card of task, vocabulary and heads; got none. {_AGAIN}") from error


def _fill(path: Path, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    came = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(wanted.keys() | came.keys()):
        if wanted.get(name) != came.get(name):
            raise BadWeights(
                f"{path.name} should have {name} of shape {wanted.get(name, 'none')}; "
                f"got {came.get(name, 'none')}. {_AGAIN}"
            )
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise BadWeights(f"{path.name} should hold finite numbers; got NaN or ∞ among them. {_AGAIN}")
    model.load_state_dict({name: tensor.to(torch.float32) for name, tensor in tensors.items()})


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

"""Tensors out of a safetensors file: numbers and nothing else, so that opening one can run nothing."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from models.pretrained.errors import Unusable

_OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}  # in BERT's first years


class Tensors:
    """The tensors of one file by name, with or without a prefix before every name.

    Raises `Unusable` for a file that is not safetensors, or was cut off.
    """

    def __init__(self, path: Path, prefix: str) -> None:
        try:
            self._file = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise Unusable(
                f"{path} is no whole safetensors file: {error}. Fetch or save it again; nothing else is opened."
            ) from error
        self._names = set(self._file.keys())
        self._prefix = prefix

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """One tensor in float32. Raises `Unusable` where it is missing, has another shape, or holds no such numbers."""
        found = next((each for each in self._spellings(name) if each in self._names), None)
        if found is None:
            raise Unusable(
                f"the weights lack {name}, with or without {self._prefix!r} before it; they hold {len(self._names)} "
                f"tensors. Take config.json and model.safetensors from one and the same model."
            )
        tensor = self._file.get_tensor(found)
        if tuple(tensor.shape) != shape:
            raise Unusable(
                f"{found} must be {_words(shape)}, as config.json has it; got {_words(tuple(tensor.shape))}. "
                f"Take config.json and model.safetensors from one and the same model."
            )
        if not tensor.dtype.is_floating_point or tensor.dtype.itemsize < 2:
            raise Unusable(
                f"{found} must hold numbers of 16 bits or more with a fraction; got {tensor.dtype}. "
                f"Take the weights as they were before they were quantised."
            )
        return tensor.to(torch.float32, copy=True)  # no view of the file, which may be saved anew while the model runs

    def _spellings(self, name: str) -> list[str]:
        spellings = [name] + [name.replace(new, old) for new, old in _OLD.items() if name.endswith(new)]
        return spellings + [self._prefix + spelling for spelling in spellings]


def _words(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"

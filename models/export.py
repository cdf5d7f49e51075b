"""A computation as files: every array by name with its axes and shape, and what made it.

The arrays are plain numpy, so neither format needs torch or this project to be read, and nothing is pickled.
"""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np


def to_npz(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> bytes:
    """A numpy archive of the arrays; `about` is in it as JSON text under the name `about`.

    Read with `np.load(path)`; `json.loads(str(archive["about"]))` gives tokens, axes and choices.
    """
    file = BytesIO()
    np.savez_compressed(file, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    return file.getvalue()


def to_json(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> str:
    """`about`, and under `arrays` the shape and the nested values of each.

    JSON knows no infinity: −∞ is the string "-Infinity", which Python's float() and JavaScript's Number() read.
    """
    listed = {name: {"shape": list(array.shape), "values": _values(array)} for name, array in arrays.items()}
    return json.dumps({**about, "arrays": listed}, ensure_ascii=False, allow_nan=False)


def _values(array: np.ndarray) -> Any:
    if array.dtype == bool or np.isfinite(array).all():
        return _shortest(array).tolist()
    flat = [x if np.isfinite(x) else _NAMES[str(x)] for x in _shortest(array).ravel()]
    return np.array(flat, dtype=object).reshape(array.shape).tolist()


def _shortest(array: np.ndarray) -> np.ndarray:
    """As numbers whose shortest decimal text reads back to the same float32, not to its float64 neighbour."""
    return array.astype(str).astype(np.float64) if array.dtype == np.float32 else array


_NAMES = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

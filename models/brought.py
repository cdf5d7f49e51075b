"""Attention weights from elsewhere, read from a file nobody vouches for.

`.npz` (numpy), `.safetensors` and `.json` hold the same names: `weights`, and optionally `tokens` (or `queries` and
`keys`), `q`, `k`, `v`. Numbers and text only: nothing in a file can run. Sizes are checked before anything is unpacked,
and once more while it is. Whatever is wrong is said as `Unreadable`, by name and shape, and nothing else is raised.
"""

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from typing import Any

import numpy as np
import safetensors
from einops import reduce

MOST_BYTES = 2**24
"""Of the file, and of each array it unpacks to: 16 MB hold `MOST_NUMBERS` as float32."""
MOST_NUMBERS = 2**22
"""Of one array, and of all together in JSON, where they take 130 MB while being read."""
MOST_WEIGHTS = 2**21
"""Layers × heads × queries × keys, as in every other scene."""
MOST_TOKENS = 512
"""Of one side, as everywhere."""
MOST_LETTERS = 100
"""Of one token."""
ROUNDING = 0.01
"""How far from one a row may sum: 512 weights of 16 bits are off by less."""

ARRAYS = ("weights", "q", "k", "v")
LABELS = ("tokens", "queries", "keys")
AXES = {
    "weights": "layer head query key",
    "q": "layer head query head_dim",
    "k": "layer head key head_dim",
    "v": "layer head key head_dim",
}
"""The axes of each array; in a file the first may be missing."""


class Unreadable(ValueError):
    """A file that cannot be shown: what was wanted, what came, what to change."""


@dataclass(frozen=True, kw_only=True)
class Brought:
    """What a file holds, as float32 with the axes of `AXES`; q, k and v are None where it has none.

    queries, keys: a token each, numbered from 1 where the file names none. remarks: what is odd, yet can be shown.
    """

    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    q: np.ndarray | None
    k: np.ndarray | None
    v: np.ndarray | None
    remarks: tuple[str, ...]


Found = dict[str, Any]
"""By name: numpy arrays of `ARRAYS` and lists of `LABELS`, as they came."""


def read(name: str, data: bytes) -> Brought:
    """What a file of this name holds. Raises `Unreadable`, whatever the bytes are."""
    ending = name.rpartition(".")[2].lower()
    if ending not in _READERS:
        raise Unreadable(f"A file must end in .npz, .json or .safetensors; got {_quoted(name)}. Save it as one of them.")
    if len(data) > MOST_BYTES:
        raise Unreadable(
            f"A file may be {MOST_BYTES:,} bytes large; this has {len(data):,}. Save fewer layers, or as float16."
        )
    try:
        found, unknown = _READERS[ending](data)
    except Unreadable:
        raise
    except Exception as error:  # parsers of other people's bytes raise what they like
        raise Unreadable(
            f"A whole .{ending} file was expected; this one is damaged or is another kind of file ({_short(error)}). "
            "Save it again."
        ) from error
    return _checked(found, unknown)


# ---- three kinds of file, each to names and values; unknown names are returned, not read ----


def _npz(data: bytes) -> tuple[Found, list[str]]:
    if data.count(b"PK\x01\x02") > 100:  # before a table of a million entries is built
        raise Unreadable("An .npz may hold 100 arrays; this has more. Save only weights, tokens, q, k and v.")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = _pairs((member.filename.removesuffix(".npy"), member) for member in archive.infolist())
        known, unknown = _sorted(members)
        arrays = {name: _member(archive, member, name) for name, member in known.items()}
    return {name: array.tolist() if name in LABELS else array for name, array in arrays.items()}, unknown


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> np.ndarray:
    """One array, after its header: the size that is declared there is the most that is ever inflated."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable(f"“{name}” is packed in a way numpy never does. Write it with np.savez or np.savez_compressed.")
    with archive.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):  # the later ones have headers of up to 4 GB
            raise Unreadable(f"“{name}” is no plain array of numbers or text. Save it with np.savez.")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.hasobject:
            raise Unreadable(
                f"“{name}” holds Python objects, which would run as a program when loaded. "
                "Save plain numbers, and tokens as np.array(list_of_str)."
            )
        _fits(name, shape, prod(shape) * dtype.itemsize)
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _safetensors(data: bytes) -> tuple[Found, list[str]]:
    """Tokens are in the metadata, each list as JSON text, since a tensor cannot hold text."""
    header = _json_of(data[8 : 8 + int.from_bytes(data[:8], "little")])
    labels = _sorted(header.get("__metadata__", {}))[0]
    tensors, unknown = _sorted({name: tensor for name, tensor in header.items() if name != "__metadata__"})
    for name, tensor in tensors.items():
        if name in LABELS:
            raise Unreadable(f"“{name}” must be JSON text in the metadata of the file; got a tensor.")
        _fits(name, tensor["shape"], 4 * prod(tensor["shape"]))
    found = {name: _tensor(name, tensor) for name, tensor in safetensors.deserialize(data) if name in tensors}
    return found | {name: _json_of(text.encode()) for name, text in labels.items() if name in LABELS}, unknown


def _tensor(name: str, tensor: Mapping[str, Any]) -> np.ndarray:
    dtype = tensor["dtype"]
    if dtype not in _DTYPES:
        raise Unreadable(f"“{name}” must be of {', '.join(_DTYPES)}; got {dtype}. Convert it with .float().")
    values = np.frombuffer(tensor["data"], _DTYPES[dtype]).reshape(tensor["shape"])
    return (values.astype("<u4") << 16).view("<f4") if dtype == "BF16" else values


_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def _json(data: bytes) -> tuple[Found, list[str]]:
    known, unknown = _sorted(_json_of(data))
    return {name: _array(name, value) if name in ARRAYS else value for name, value in known.items()}, unknown


def _json_of(text: bytes) -> Any:
    if text.count(b",") > MOST_NUMBERS or sum(map(text.count, (b"[", b"{", b":"))) > MOST_NUMBERS // 8:
        raise Unreadable(f"JSON may hold {MOST_NUMBERS:,} numbers; this has more. Save fewer layers, or as .npz.")
    try:
        return json.loads(text.decode("utf-8-sig"), object_pairs_hook=_pairs)
    except RecursionError:
        raise Unreadable("Lists may be nested four deep: layer, head, query, key. These go deeper.") from None


def _array(name: str, value: Any) -> np.ndarray:
    try:
        return np.array(value, np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Unreadable(
            f"“{name}” must be numbers in lists of one length on each level {_wanted(name)}; "
            "here lengths differ or something is no number."
        ) from None


_READERS: dict[str, Callable[[bytes], tuple[Found, list[str]]]] = {
    "npz": _npz,
    "safetensors": _safetensors,
    "json": _json,
}


def _pairs(pairs: Any) -> dict:
    """A dict, where no name comes twice."""
    made: dict = {}
    for name, value in pairs:
        if name in made:
            raise Unreadable(f"Each name may come once; {_quoted(name)} comes twice. Keep one of the two.")
        made[name] = value
    return made


def _sorted(values: Any) -> tuple[dict, list[str]]:
    """What has a name we know, and the other names."""
    if not isinstance(values, dict):
        raise Unreadable(f"Names and their values were expected, like {{“weights”: …}}; got a {type(values).__name__}.")
    known = {name: value for name, value in values.items() if name in ARRAYS + LABELS}
    return known, [name for name in values if name not in known]


def _fits(name: str, shape: tuple[int, ...], size: int) -> None:
    """Before anything of it is unpacked."""
    if size > MOST_BYTES or prod(shape) > MOST_NUMBERS:
        raise Unreadable(
            f"“{name}” may hold {MOST_NUMBERS:,} numbers in {MOST_BYTES:,} bytes; "
            f"{_shape(shape)} is {prod(shape):,} in {size:,}. Save fewer layers."
        )


# ---- what the values must be ----


def _checked(found: Found, unknown: list[str]) -> Brought:
    if "weights" not in found:
        names = ", ".join(map(_quoted, [*found, *unknown][:8])) or "nothing"
        raise Unreadable(f"An array named “weights” was expected, {_wanted('weights')}; this file holds {names}.")
    odd = [f"Not shown, since the name is none of {', '.join(ARRAYS + LABELS)}: {', '.join(map(_quoted, unknown[:8]))}."]
    arrays = {name: _numbers(name, found[name]) for name in ARRAYS if name in found}
    weights = arrays["weights"]
    for name, array in arrays.items():
        _agrees(name, array.shape, weights.shape)
    queries, keys = _labels(found, *weights.shape[2:])
    return Brought(
        weights=weights,
        queries=queries,
        keys=keys,
        **{name: arrays.get(name) for name in ("q", "k", "v")},
        remarks=tuple(odd[: len(unknown)] + _rows(weights)),
    )


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """As float32 with four axes, every one of them a number."""
    shape = values.shape
    if values.dtype.kind not in "fiu":
        raise Unreadable(f"“{name}” must be numbers; got {values.dtype}. Convert it with .astype(np.float32).")
    if values.ndim not in (3, 4) or 0 in shape:
        batch = " Take one example of the batch." if values.ndim == 5 else ""
        raise Unreadable(f"“{name}” must be {_wanted(name)}, none of them 0; got {_shape(shape)}.{batch}")
    if max(shape[-2:]) > MOST_TOKENS or (name == "weights" and values.size > MOST_WEIGHTS):
        raise Unreadable(
            f"“{name}” may have {MOST_TOKENS} tokens a side and {MOST_WEIGHTS:,} weights in all; "
            f"got {_shape(shape)} = {values.size:,}. Cut the text, or save fewer layers."
        )
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    if not (finite := np.isfinite(numbers)).all():
        place = np.unravel_index(finite.argmin(), shape)
        raise Unreadable(
            f"“{name}” must be finite float32 numbers; at {_shape(place)} it is {values[place]}. "
            "Save the weights after the softmax, not the masked scores before it."
        )
    return numbers if numbers.ndim == 4 else numbers[None]


def _agrees(name: str, shape: tuple[int, ...], weights: tuple[int, ...]) -> None:
    sizes = dict(zip(AXES["weights"].split(), weights, strict=True)) | {"head_dim": shape[3]}
    wanted = tuple(sizes[axis] for axis in AXES[name].split())
    if shape != wanted:
        raise Unreadable(
            f"“{name}” must go with the weights, {_wanted(name)}, here {_shape(wanted)}; got {_shape(shape)}."
        )


def _labels(found: Found, queries: int, keys: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens of both sides."""
    if "tokens" in found and ("queries" in found or "keys" in found or queries != keys):
        raise Unreadable(
            f"“tokens” names queries and keys at once, and the weights have {queries} queries and {keys} keys: "
            "give either “tokens”, where both are the same, or “queries” and “keys”."
        )
    both = {name: found.get("tokens", found.get(name)) for name in ("queries", "keys")}
    return _tokens("queries", both["queries"], queries), _tokens("keys", both["keys"], keys)


def _tokens(name: str, labels: Any, count: int) -> tuple[str, ...]:
    if labels is None:
        return tuple(str(number) for number in range(1, count + 1))
    if not isinstance(labels, list) or len(labels) != count:
        came = f"{len(labels):,}" if isinstance(labels, list) else f"a {type(labels).__name__}"
        raise Unreadable(f"The {name} must be a list of {count} tokens, one for each of the weights; got {came}.")
    for number, label in enumerate(labels, 1):
        if not isinstance(label, str) or len(label) > MOST_LETTERS:
            came = f"{len(label):,} of them" if isinstance(label, str) else f"a {type(label).__name__}"
            raise Unreadable(f"A token must be text of up to {MOST_LETTERS} characters; in {name} token {number} is {came}.")
    return tuple(map(_whole, labels))


def _rows(weights: np.ndarray) -> list[str]:
    """A remark where weights are no shares of one."""
    sums = reduce(weights, "layer head query key -> layer head query", "sum")
    off = np.abs(sums - 1)
    remarks = []
    if count := int((off > ROUNDING).sum()):
        layer, head, query = (int(n) + 1 for n in np.unravel_index(off.argmax(), off.shape))
        remarks.append(
            f"Rows of weights should sum to 1; {count:,} of {off.size:,} do not. Farthest off is layer {layer}, "
            f"head {head}, query {query}: {sums[layer - 1, head - 1, query - 1]:.4g}. Shown as they came."
        )
    if weights.min() < 0:
        remarks.append(f"Weights should not be negative; the least is {weights.min():.4g}. Shown as they came.")
    return remarks


# ---- words ----


def _wanted(name: str) -> str:
    axes = AXES[name].replace(" ", ", ")
    return f"({axes}) or, of one layer, ({axes.removeprefix('layer, ')})"


def _shape(shape: Any) -> str:
    return f"({', '.join(str(int(size)) for size in shape)})"


def _whole(text: str) -> str:
    """Without halves of characters, which JSON allows and no other text does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quoted(name: str) -> str:
    return f"“{_whole(name[:40])}{'…' if len(name) > 40 else ''}”"


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {_whole(str(error)[:80])}".removesuffix(": ")

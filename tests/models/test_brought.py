"""What a stranger's file may hold, and that whatever else is in it is refused in words."""

import json
import tracemalloc
import zipfile
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from models.brought import AXES, MOST_BYTES, MOST_LETTERS, MOST_NUMBERS, MOST_TOKENS, MOST_WEIGHTS, Unreadable, read
from models.trace import AXES as OF_A_LAYER
from sections import scene

LAYERS, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 11
_random = np.random.default_rng(0)
_raw = _random.random((LAYERS, HEADS, QUERIES, KEYS))
WEIGHTS = (_raw / _raw.sum(-1, keepdims=True)).astype(np.float32)
Q, K, V = (_random.normal(size=(LAYERS, HEADS, n, WIDTH)).astype(np.float32) for n in (QUERIES, KEYS, KEYS))
INF, NAN = np.float32("inf"), np.float32("nan")
ASKING, ASKED = ["注意", "<b>", "🙂", "", "e\u0301"], list("abcdefg")


def npz(**arrays) -> bytes:
    file = BytesIO()
    np.savez_compressed(file, **{name: np.asarray(array) for name, array in arrays.items()})
    return file.getvalue()


def text(**values) -> bytes:
    listed = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return json.dumps(listed).encode()


def tensors(**values) -> bytes:
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return save(arrays, {name: json.dumps(value) for name, value in values.items() if name not in arrays})


WRITERS = {"npz": npz, "json": text, "safetensors": tensors}
every_kind = pytest.mark.parametrize("kind", WRITERS)


def refusal(name: str, data: bytes) -> str:
    with pytest.raises(Unreadable) as refused:
        read(name, data)
    return str(refused.value)


def packed(name: str, data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, data)
    return file.getvalue()


def array_file(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


@every_kind
def test_everything_a_file_may_hold_arrives(kind):
    found = read(f"mine.{kind}", WRITERS[kind](weights=WEIGHTS, queries=ASKING, keys=ASKED, q=Q, k=K, v=V))
    for name, wanted in {"weights": WEIGHTS, "q": Q, "k": K, "v": V}.items():
        np.testing.assert_array_equal(getattr(found, name), wanted)
    assert (found.queries, found.keys, found.remarks) == (tuple(ASKING), tuple(ASKED), ())


@every_kind
def test_one_layer_without_tokens_is_the_first_of_one(kind):
    found = read(f"MINE.{kind.upper()}", WRITERS[kind](weights=WEIGHTS[0], q=Q[0]))
    np.testing.assert_array_equal(found.weights, WEIGHTS[:1])
    np.testing.assert_array_equal(found.q, Q[:1])
    assert found.keys == ("1", "2", "3", "4", "5", "6", "7")
    assert found.k is found.v is None


@every_kind
def test_one_list_of_tokens_names_both_sides(kind):
    found = read(f"mine.{kind}", WRITERS[kind](weights=WEIGHTS[..., :5], tokens=ASKING))
    assert found.queries == found.keys == tuple(ASKING)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ">f4", np.int8])
def test_other_numbers_become_float32(dtype):
    found = read("mine.npz", npz(weights=np.asfortranarray(WEIGHTS.astype(dtype))))
    np.testing.assert_array_equal(found.weights, WEIGHTS.astype(dtype).astype(np.float32))


def bfloat16(weights: np.ndarray) -> bytes:
    """A file of weights cut to 16 bits, as models keep them."""
    halves = (weights.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    header = json.dumps({"weights": {"dtype": "BF16", "shape": weights.shape, "data_offsets": [0, halves.nbytes]}})
    return len(header).to_bytes(8, "little") + header.encode() + halves.tobytes()


def test_bfloat16_arrives_too():
    found = read("mine.safetensors", bfloat16(WEIGHTS))
    np.testing.assert_array_equal(found.weights.view(np.uint32), (WEIGHTS.view(np.uint32) >> 16) << 16)


def test_axes_are_those_of_every_layer():
    for name, axes in AXES.items():
        assert axes == f"layer {OF_A_LAYER[name]}"


def test_limits_are_those_of_every_scene():
    assert (MOST_TOKENS, MOST_WEIGHTS) == (scene.MAX_TOKENS, scene.MAX_WEIGHTS)


# ---- what is odd, yet shown ----


def test_rows_that_do_not_sum_to_one_are_told_and_shown():
    odd = WEIGHTS.copy()
    odd[1, 2, 3] *= 3
    odd[0, 0, 0] *= 1.5
    found = read("mine.npz", npz(weights=odd))
    (remark,) = found.remarks
    assert "2 of 30 do not. Farthest off is layer 2, head 3, query 4: 3." in remark
    np.testing.assert_array_equal(found.weights, odd)


@pytest.mark.parametrize("keys", [3, 129, 509])
def test_the_rounding_of_16_bits_is_not_told(keys):
    assert not read("mine.safetensors", bfloat16(np.full((1, 1, keys), 1 / keys))).remarks


def test_negative_weights_are_told():
    odd = WEIGHTS.copy()
    odd[0, 0, 0, :2] += [-1, 1]
    assert ["negative" in remark for remark in read("mine.npz", npz(weights=odd)).remarks] == [True]


@every_kind
def test_an_unknown_name_is_told_and_nothing_of_it_read(kind):
    found = read(f"mine.{kind}", WRITERS[kind](weights=WEIGHTS, token=np.zeros(3, np.float32), attn=Q))
    (remark,) = found.remarks
    assert "“token”" in remark and "“attn”" in remark and "tokens, queries, keys" in remark


def test_halves_of_characters_are_replaced():
    data = b'{"weights": [[[1]]], "tokens": ["a\\ud83d"], "\\ud83d": 1}'
    found = read("mine.json", data)
    assert found.queries == ("a\N{REPLACEMENT CHARACTER}",)
    assert all(remark.encode() for remark in found.remarks)


# ---- what is refused ----


@every_kind
@pytest.mark.parametrize(
    "values, said",
    [
        ({"attention": WEIGHTS}, ["“weights” was expected", "“attention”"]),
        ({"weights": WEIGHTS[0, 0]}, ["(layer, head, query, key)", "got (5, 7)"]),
        ({"weights": WEIGHTS[None]}, ["got (1, 2, 3, 5, 7)", "one example of the batch"]),
        ({"weights": WEIGHTS[:, :, :0]}, ["none of them 0", "(2, 3, 0"]),
        ({"weights": WEIGHTS, "q": K}, ["“q”", "(2, 3, 5, 11)", "got (2, 3, 7, 11)"]),
        ({"weights": WEIGHTS, "k": K[:, :1]}, ["“k”", "(2, 3, 7, 11)", "got (2, 1, 7, 11)"]),
        ({"weights": WEIGHTS, "v": V[:1]}, ["“v”", "(2, 3, 7, 11)", "got (1, 3, 7, 11)"]),
        ({"weights": WEIGHTS, "tokens": ASKED}, ["5 queries and 7 keys", "“queries” and “keys”"]),
        ({"weights": WEIGHTS, "queries": ASKED}, ["queries must be a list of 5", "got 7"]),
        ({"weights": WEIGHTS, "keys": ["a"] * 1_000_000}, ["keys must be a list of 7", "got 1,000,000"]),
        ({"weights": WEIGHTS, "keys": ["a"] * 6 + ["b" * 101]}, [f"up to {MOST_LETTERS}", "token 7 is 101 of them"]),
        ({"weights": WEIGHTS, "queries": [1, 2, 3, 4, 5]}, ["must be text", "token 1 is a int"]),
        ({"weights": np.where(WEIGHTS == WEIGHTS[1, 2, 3, 4], NAN, WEIGHTS)}, ["(1, 2, 3, 4) it is nan"]),
        ({"weights": np.where(np.tri(QUERIES, KEYS) > 0, Q @ K.mT, -INF)}, ["(0, 0, 0, 1) it is -inf", "after the softmax"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else "+".join(value),
)
def test_what_does_not_fit_is_refused_by_name_and_shape(kind, values, said):
    refused = refusal(f"mine.{kind}", WRITERS[kind](**values))
    assert all(part in refused for part in said), refused


@every_kind
def test_too_many_tokens_are_refused(kind):
    refused = refusal(f"mine.{kind}", WRITERS[kind](weights=np.ones((1, 1, MOST_TOKENS + 1), np.float32)))
    assert "512 tokens a side" in refused and "(1, 1, 513)" in refused


def test_too_many_weights_are_refused():
    refused = refusal("mine.npz", npz(weights=np.ones((9, 512, 512), np.float32)))
    assert "2,097,152 weights" in refused and "2,359,296" in refused


@pytest.mark.parametrize("array", [np.array([[["a"]]]), np.ones((1, 1, 1), complex), np.ones((1, 1, 1), "M8[s]")])
def test_what_is_no_number_is_refused(array):
    assert f"got {array.dtype}" in refusal("mine.npz", npz(weights=array))


def test_a_tensor_of_another_type_is_refused():
    assert "got I64" in refusal("mine.safetensors", save({"weights": np.ones((1, 1, 1), np.int64)}))


class _Program:
    """Pickled, it runs when it is loaded."""

    def __reduce__(self):
        return pytest.fail, ("a pickle ran",)


@pytest.mark.parametrize("name", ["weights", "tokens", "unknown"])
def test_a_pickle_never_runs(name):
    arrays = {"weights": np.ones((1, 1, 1))} | {name: np.array([_Program()], object)}
    if name == "unknown":
        assert read("mine.npz", npz(**arrays)).remarks
    else:
        assert f"“{name}” holds Python objects" in refusal("mine.npz", npz(**arrays))


def test_a_name_that_comes_twice_is_refused():
    assert "“weights” comes twice" in refusal("mine.json", b'{"weights": [[[1]]], "weights": [[[1]]]}')
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("weights.npy", array_file(np.ones((1, 1, 1))))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("weights.npy", array_file(np.ones((1, 1, 1))))
    assert "“weights” comes twice" in refusal("mine.npz", file.getvalue())


@pytest.mark.parametrize(
    "data, said",
    [
        (b"[" * 100_000, "nested four deep"),
        (b'{"a":' * 100_000, "nested four deep"),
        (b"[" * 1_000_000, "this has more"),
        (b'{"weights": [[[1, 2], [3]]]}', "lists of one length"),
        (b'{"weights": [[[1, {}]]]}', "something is no number"),
        (b'{"weights": [[[1e999]]]}', "inf"),
        (b'{"weights": [[[null]]]}', "nan"),
        (b'{"weights": [[[%s]]]}' % (b"9" * 5000), "damaged"),
        (b"[1, 2]", "Names and their values"),
        (b"\xff\xfe", "damaged"),
    ],
    ids=range(10),
)
def test_odd_json_is_refused(data, said):
    assert said in refusal("mine.json", data)


def test_other_endings_and_larger_files_are_refused():
    assert ".npz, .json or .safetensors; got “mine.pt”" in refusal("mine.pt", b"")
    assert "16,777,217" in refusal("mine.npz", bytes(MOST_BYTES + 1))


# ---- bombs: refused, and never unpacked ----


def stretched(data: bytes, size: int) -> bytes:
    """An archive of one member whose tables say it is as large as `size`, whatever it holds."""
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(mark) + place
        data = data[:start] + size.to_bytes(4, "little") + data[start + 4 :]
    return data


ZEROS = array_file(np.zeros((1, 4096, 4096), np.float32))
HEADER = array_file(np.ones((1, 1, 1), np.float32))
BOMBS = {
    "64 MB of zeros": packed("weights.npy", ZEROS),
    "as tokens": packed("tokens.npy", ZEROS),
    "that calls itself small": stretched(packed("weights.npy", ZEROS), 200),
    "behind a small array": packed("weights.npy", HEADER + bytes(2**26)),
    "an endless header": packed("weights.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x0f" + b" " * 2**26),
    "a packing numpy never uses": packed("weights.npy", bytes(2**26), zipfile.ZIP_BZIP2),
    "a table of many files": b"PK\x01\x02" * 1000 + npz(weights=WEIGHTS),
    "unknown names": packed("other.npy", ZEROS),
}
PACKED_TENSOR = json.dumps({"weights": {"dtype": "F32", "shape": [2**20, 2**20, 2**20], "data_offsets": [0, 2**62]}})


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_never_unpacked(bomb):
    tracemalloc.start()
    try:
        read("mine.npz", BOMBS[bomb])
    except Unreadable:
        pass
    else:
        assert bomb == "behind a small array"  # whose rest nobody asked for
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2**25


def test_a_tensor_larger_than_its_file_is_refused():
    data = len(PACKED_TENSOR).to_bytes(8, "little") + PACKED_TENSOR.encode()
    assert "(1048576, 1048576, 1048576)" in refusal("mine.safetensors", data)


@pytest.mark.parametrize("pattern", [b"[],", b'"ab",', b'"%06d":1,', b"1.5,", b"{},"])
def test_json_takes_little_more_room_than_its_bytes(pattern):
    many = b"".join(pattern % n for n in range(MOST_BYTES // 11)) if b"%" in pattern else pattern * (MOST_BYTES // 11)
    tracemalloc.start()
    refusal("mine.json", b'{"weights": [%s1], "a": {%s"z": 1}}' % ((b"", many) if b":" in pattern else (many, b"")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6


# ---- anything at all ----

WHOLE = {kind: write(weights=WEIGHTS[:1, :1], queries=ASKING, q=Q[:1, :1]) for kind, write in WRITERS.items()}


@every_kind
@settings(max_examples=500)
@given(data=st.data())
def test_damage_is_refused_or_harmless(kind, data):
    whole = WHOLE[kind]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 40, len(whole))))
    damaged = whole[:start] + data.draw(st.binary(max_size=40)) + whole[end:]
    if data.draw(st.booleans()):
        damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    _refused_or_read(kind, damaged)


@every_kind
@settings(max_examples=500)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused_or_read(kind, data):
    _refused_or_read(kind, data)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
_names = st.sampled_from(["weights", "tokens", "queries", "keys", "q", "k", "v", "__metadata__"]) | st.text(max_size=5)


@settings(max_examples=500)
@given(st.dictionaries(_names, _values | st.just([[[1]]]), max_size=4))
def test_any_json_is_refused_or_read(values):
    data = json.dumps(values).encode()
    _refused_or_read("json", data)
    _refused_or_read("safetensors", len(data).to_bytes(8, "little") + data)


def _refused_or_read(kind: str, data: bytes) -> None:
    try:
        found = read(f"mine.{kind}", data)
    except Unreadable as refused:
        assert str(refused).encode()
        return
    assert found.weights.dtype == np.float32 and np.isfinite(found.weights).all()
    assert found.weights.shape[2:] == (len(found.queries), len(found.keys))
    assert found.weights.size <= MOST_WEIGHTS < MOST_NUMBERS

"""Files read back by plain numpy and plain JSON hold exactly the numbers that went in."""

import json
import math
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from models.export import to_json, to_npz

ARRAYS = {
    "q": np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32),
    "masked": np.array([[1.5, -np.inf], [-np.inf, -np.inf]], np.float32),
    "odd": np.array([np.inf, np.nan, -0.0, 1e-45, 3.4e38, 0.1], np.float32),
    "visible": np.array([[True, False]]),
    "input.query": np.zeros((0, 4), np.float32),
    "double": np.array([0.1, 1 / 3]),
    "single": np.array(7.25, np.float32),
}
ABOUT = {"queries": ["注意", "<b>", '"', "\u202e", "\\", "🙂"], "scene": {"heads": 2, "head_dim": None, "scale": "none"}}


def strict(text: str) -> dict:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def read(listed: dict, kind: np.dtype) -> np.ndarray:
    """An array as anyone would read it back: numbers through float()."""
    flat: list = []

    def collect(values) -> None:
        for value in values if isinstance(values, list) else [values]:
            collect(value) if isinstance(value, list) else flat.append(value)

    collect(listed["values"])
    return np.array([value if kind == bool else float(value) for value in flat], kind).reshape(listed["shape"])


def test_npz_holds_every_array_as_it_was():
    with np.load(BytesIO(to_npz(ARRAYS, ABOUT)), allow_pickle=False) as archive:
        assert set(archive.files) == {*ARRAYS, "about"}
        for name, array in ARRAYS.items():
            assert archive[name].dtype == array.dtype and archive[name].shape == array.shape
            assert archive[name].tobytes() == array.tobytes()
        assert json.loads(str(archive["about"])) == ABOUT


def test_npz_is_a_plain_zip_of_plain_arrays():
    with ZipFile(BytesIO(to_npz(ARRAYS, ABOUT))) as file:
        assert file.testzip() is None
        assert {name.removesuffix(".npy") for name in file.namelist()} == {*ARRAYS, "about"}


def test_json_holds_every_array_as_it_was():
    found = strict(to_json(ARRAYS, ABOUT))
    assert {name: found[name] for name in ABOUT} == ABOUT
    assert set(found["arrays"]) == set(ARRAYS)
    for name, array in ARRAYS.items():
        listed = found["arrays"][name]
        assert listed["shape"] == list(array.shape)
        back = read(listed, array.dtype)
        np.testing.assert_array_equal(back, array)
        assert np.array_equal(np.signbit(back[~np.isnan(back)]), np.signbit(array[~np.isnan(array)]))


def test_what_json_has_no_number_for_is_a_word_that_float_reads():
    values = strict(to_json({"x": ARRAYS["masked"], "y": ARRAYS["odd"]}, {}))["arrays"]
    assert values["x"]["values"] == [[1.5, "-Infinity"], ["-Infinity", "-Infinity"]]
    assert values["y"]["values"][:2] == ["Infinity", "NaN"]
    assert float("-Infinity") == -math.inf


def test_numbers_are_written_short():
    assert '"values": [0.1, -2.5]' in to_json({"x": np.array([0.1, -2.5], np.float32)}, {})


def test_letters_of_every_script_are_written_as_they_are():
    assert "注意" in to_json({}, ABOUT)


@given(arrays_of.arrays(np.float32, st.tuples(st.integers(0, 3), st.integers(1, 4)), elements=st.floats(width=32)))
def test_any_float_is_read_back_exactly(array):
    listed = strict(to_json({"x": array}, {}))["arrays"]["x"]
    np.testing.assert_array_equal(read(listed, array.dtype), array)
    with np.load(BytesIO(to_npz({"x": array}, {})), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["x"], array)


def test_objects_are_refused_rather_than_written():
    with pytest.raises((TypeError, ValueError)):
        to_json({"x": np.array([object()])}, {})

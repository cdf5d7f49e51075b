"""Packed for the browser and unpacked again, a number is exact in every digit that is shown."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.sections.pages import decode
from viz import codes
from viz.codes import HIDDEN, INFINITE, NEARLY_ONE, NOT_A_NUMBER, SMALL, SMALL_NEGATIVE, encode
from viz.numbers import exact

SHARES = st.floats(0, 1, width=32)
SIGNED = st.floats(width=32, allow_nan=True, allow_infinity=True)


def unpack(packed: codes.Codes) -> np.ndarray:
    """The codes themselves."""
    low, high = np.frombuffer(zlib.decompress(packed.packed), np.uint8).reshape(2, -1).astype(int)
    return low + 256 * high


def written(code: int, packed: codes.Codes) -> str:
    """What the browser writes for a code, by viz/overview/codes.js."""
    marks = {HIDDEN: "hidden", NOT_A_NUMBER: "NaN", INFINITE: "∞", SMALL: "≈0", SMALL_NEGATIVE: "≈0", NEARLY_ONE: "1.0000"}
    if code in marks:
        return marks[code]
    return f"{(code - packed.zero) / 10.0**packed.decimals:.{max(packed.decimals, 0)}f}".replace("-", "−")


def by_python(value: float, decimals: int) -> str:
    """The same digits by Python's own formatting of the number itself, which rounds the exact value."""
    text = f"{value:.{decimals}f}"
    if value and float(text) == 0:
        return "≈0"
    return f"{0:.{decimals}f}" if float(text) == 0 else text.replace("-", "−")


@given(arrays(np.float32, (2, 3), elements=SHARES))
def test_weights_have_the_four_decimals_the_app_writes(values):
    packed = encode(values, signed=False)
    assert (packed.zero, packed.decimals) == (0, 4)
    for code, value in zip(unpack(packed), values.ravel().tolist(), strict=True):
        assert written(code, packed) == by_python(value, 4)
        if value not in (0, 1):
            assert written(code, packed) == exact(value)


@given(arrays(np.float32, (2, 3), elements=SIGNED))
def test_signed_numbers_have_every_digit_there_is_room_for(values):
    packed = encode(values, signed=True)
    for code, value in zip(unpack(packed), values.ravel().tolist(), strict=True):
        if math.isnan(value) or math.isinf(value):
            assert code == (NOT_A_NUMBER if math.isnan(value) else INFINITE if value > 0 else HIDDEN)
        elif packed.decimals >= 0:
            assert written(code, packed) == by_python(value, packed.decimals)
        else:  # whole tens, hundreds, …
            unit = 10.0**-packed.decimals
            count = 0 if code in (SMALL, SMALL_NEGATIVE) else code - packed.zero
            assert abs(count * unit - value) <= 0.500001 * unit
    assert all(0 <= code <= 65_535 for code in unpack(packed))


@given(st.integers(0, 10_000), st.sampled_from([-1, 0, 1]))
def test_a_number_at_the_edge_of_a_digit_falls_to_its_own_side(count, step):
    """Halfway between two codes, and the nearest float32 on either side."""
    middle = np.float32((count + 0.5) / 10_000)
    value = np.nextafter(middle, np.float32(step * 2), dtype=np.float32) if step else middle
    packed = encode(np.array([[value]]), signed=True)
    assert written(unpack(packed)[0], packed) == by_python(float(value), 4)


@pytest.mark.parametrize(
    "largest, decimals",
    [(0, 4), (1, 4), (3.276, 4), (3.277, 3), (32.76, 3), (112, 2), (32764, 0), (32765, -1), (1e6, -2), (3e38, -34)],
)
def test_decimals_by_the_largest(largest, decimals):
    packed = encode(np.array([[largest, -largest]], np.float32), signed=True)
    assert packed.decimals == decimals
    first, second = unpack(packed)
    assert first - packed.zero == packed.zero - second
    assert first < NEARLY_ONE


def test_marks():
    values = np.array([[0, 1, 1 - 2**-24, 4e-5, 5e-5, 0.99994, math.nan, math.inf, -math.inf]], np.float32)
    tiny = float(np.float32(5e-5)) * 1e4 > 0.5
    assert unpack(encode(values, signed=False)).tolist() == [
        0, 10_000, NEARLY_ONE, SMALL, 1 if tiny else SMALL, 9_999, NOT_A_NUMBER, INFINITE, HIDDEN,
    ]  # fmt: skip
    packed = encode(np.array([[-4e-5, 4e-5, 0.0, -0.0, 1 - 2**-24]], np.float32), signed=True)
    assert unpack(packed).tolist() == [SMALL_NEGATIVE, SMALL, packed.zero, packed.zero, packed.zero + 10_000]


def test_hidden_cells_are_hidden_in_every_map():
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3) / 12
    hidden = np.array([[False, True, False], [True, False, False]])
    found = decode(*encode(values, hidden, signed=False)).reshape(2, 2, 3)
    np.testing.assert_array_equal(np.isnan(found), np.broadcast_to(hidden, (2, 2, 3)))
    np.testing.assert_allclose(found[:, ~hidden], values[:, ~hidden], rtol=0, atol=0.5e-4)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 7), (2, 5, 1), (1, 0, 0)])
def test_any_shape(shape):
    values = np.random.default_rng(0).random(shape, np.float32)
    found = decode(*encode(values, signed=False))
    np.testing.assert_allclose(found.reshape(shape), values, rtol=0, atol=0.500001e-4)


def test_it_takes_about_a_byte():
    scores = 2 * np.random.default_rng(0).normal(size=(12, 256, 256))
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert len(encode(weights.astype(np.float32), signed=False).packed) <= 1.1 * weights.size

"""The same number is written the same way everywhere, and never as something it is not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.numbers import exact, percent, short

FINITE = st.floats(-1e300, 1e300) | st.floats(-10, 10) | st.integers(-300, 300).map(float)


def read(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.parametrize(
    "value, two, four",
    [
        (0, "0", "0"), (-0.0, "0", "0"), (1, "1", "1"), (-3, "−3", "−3"), (112.0, "112", "112"), (0.88079, "0.88", "0.8808"),
        (-0.125, "−0.12", "−0.1250"), (0.5, "0.50", "0.5000"), (0.004, "≈0", "0.0040"), (-0.004, "≈0", "−0.0040"),
        (0.005001, "0.01", "0.0050"), (1e-9, "≈0", "≈0"), (-1e-300, "≈0", "≈0"), (0.999, "1.00", "0.9990"),
        (2.0000001, "2.00", "2.0000"), (999999, "999999", "999999"), (1e6, "1.00e+06", "1.0000e+06"),
        (-12345678.9, "−1.23e+07", "−1.2346e+07"), (math.inf, "∞", "∞"), (-math.inf, "−∞", "−∞"), (math.nan, "NaN", "NaN"),
    ],
)  # fmt: skip
def test_how_numbers_are_written(value, two, four):
    assert (short(value), exact(value)) == (two, four)
    assert (short(np.float64(value)), exact(np.float64(value))) == (two, four)


@given(FINITE, st.sampled_from([(short, 2), (exact, 4)]))
def test_what_is_written_is_near(value, way):
    write, decimals = way
    text = write(value)
    assert "-" not in text.replace("e-", "")  # a minus, not a hyphen
    if text == "≈0":
        assert value != 0 and abs(value) <= 0.5 * 10**-decimals
    elif "e" in text:
        assert math.isclose(read(text), value, rel_tol=10**-decimals)
    else:
        assert abs(read(text) - value) <= 0.5 * 10**-decimals + 1e-9
        assert (read(text) == 0) == (value == 0)


@given(FINITE)
def test_only_whole_numbers_are_written_whole(value):
    text = short(value)
    if text.removeprefix("−").isdigit():
        assert read(text) == value


@given(FINITE)
def test_the_sign_is_the_only_difference(value):
    assert short(-value).removeprefix("−") == short(value).removeprefix("−")


@pytest.mark.parametrize(
    "share, text",
    [
        (0, "0 %"), (1e-12, "<1 %"), (0.004, "<1 %"), (0.006, "1 %"), (0.119, "12 %"), (0.88, "88 %"), (0.994, "99 %"),
        (0.996, ">99 %"), (0.9999999, ">99 %"), (1, "100 %"), (0.5, "50 %"),
    ],
)  # fmt: skip
def test_shares(share, text):
    assert percent(share) == text


@given(st.floats(0, 1))
def test_nothing_and_all_are_only_said_of_nothing_and_all(share):
    assert (percent(share) == "0 %") == (share == 0)
    assert (percent(share) == "100 %") == (share == 1)
    assert abs(float(percent(share).strip("<> %")) / 100 - share) <= 0.0101

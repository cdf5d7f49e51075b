"""The numbers of many maps, packed for the browser: exact in every digit that is shown, about a byte each.

A number becomes a whole count of units of 10^-decimals, two bytes, and those are deflated. Weights repeat so
often, and are mostly so small, that this takes about one byte a weight.
"""

import zlib
from typing import NamedTuple

import numpy as np

HIDDEN, NOT_A_NUMBER, SMALL, SMALL_NEGATIVE, INFINITE, NEARLY_ONE = range(65_535, 65_529, -1)
"""Codes that are no count: a hidden cell, NaN, what would be written as zero without being it, ∞, and a share that would
be written as one without being it."""

MOST = NEARLY_ONE - 1
DECIMALS = 4
"""Shown of a weight, and of other numbers where they are small enough to leave room."""


class Codes(NamedTuple):
    """Packed numbers. packed: deflated, all low bytes before all high ones; count = `code − zero`."""

    packed: bytes
    zero: int
    decimals: int


def encode(values: np.ndarray, hidden: np.ndarray | None = None, *, signed: bool) -> Codes:
    """Pack `... query key` float32 numbers; −∞ and what `hidden` (broadcasts) marks become hidden cells."""
    exact = values.astype(np.float64)
    finite = np.isfinite(exact)
    zero = MOST // 2 if signed else 0
    decimals = _decimals(np.abs(exact[finite]).max(initial=0), MOST - zero)
    counts = np.rint(np.where(finite, exact, 0) * 10.0**decimals)  # a float32 times 10⁴ is exact in float64
    codes = (counts + zero).astype(np.uint16)
    codes[finite & (counts == 0) & (exact > 0)] = SMALL
    codes[finite & (counts == 0) & (exact < 0)] = SMALL_NEGATIVE
    if not signed:
        codes[(counts == 10**decimals) & (exact < 1)] = NEARLY_ONE
    codes[np.isnan(exact)] = NOT_A_NUMBER
    codes[np.isposinf(exact)] = INFINITE
    codes[np.isneginf(exact)] = HIDDEN
    if hidden is not None:
        codes[np.broadcast_to(hidden, codes.shape)] = HIDDEN
    planes = codes.astype("<u2").reshape(-1, 1).view(np.uint8).T
    return Codes(zlib.compress(planes.tobytes(), level=1), zero, decimals)  # more effort saves a tenth, and takes thrice as long


def _decimals(largest: float, most: int) -> int:
    """As many as the largest number leaves room for; below zero from 32,766 on, where whole numbers do not fit."""
    return next(d for d in range(DECIMALS, -40, -1) if largest * 10.0**d < most)

"""Scaled dot-product attention, one small pure function a step.

    weights = softmax(scale · q kᵀ),  context = weights · v        Vaswani et al. 2017, equation (1)

Leading axes (batch, head) are free; they are written `...` below.
"""

import math

import torch
from torch import Tensor


def similarity(q: Tensor, k: Tensor) -> Tensor:
    """q·k of every query with every key: `... query head_dim`, `... key head_dim` -> `... query key`."""
    return q @ k.transpose(-2, -1)


def scale(scores: Tensor, factor: float) -> Tensor:
    """Scores times one number, 1/√head_dim in the paper, so that the softmax does not saturate."""
    return scores * factor


def hide(scaled: Tensor, visible: Tensor | None) -> Tensor:
    """−∞ wherever a query may not look.

    `scaled` is `... query key`; `visible` is boolean and broadcasts to it, True where a query may
    look, None where it may look everywhere.
    """
    return scaled if visible is None else torch.where(visible, scaled, -math.inf)


def normalise(masked: Tensor) -> Tensor:
    """Softmax over the keys; a query that sees no key gets zeros where softmax would give 0/0 = NaN."""
    weights = masked.softmax(dim=-1)
    if not weights[..., :1].isnan().any():  # 0/0 fills its whole row, so one column tells
        return weights
    sees_nothing = masked.amax(dim=-1, keepdim=True) == -math.inf  # a NaN of the input's own stays
    return weights.masked_fill(sees_nothing, 0.0)


def mix(weights: Tensor, v: Tensor) -> Tensor:
    """The values, blended: `... query key`, `... key head_dim` -> `... query head_dim`."""
    return weights @ v


def exponentials(masked: Tensor) -> Tensor:
    """The numerators of the softmax, e^(x − largest x of the row); zeros for a query that sees nothing.

    Taking the largest off first changes no weight, since it divides out, and e^x cannot overflow.
    """
    largest = masked.amax(dim=-1, keepdim=True)
    return torch.exp(masked - largest.masked_fill(largest == -math.inf, 0.0))

"""Weights summed up. No head computes any of these: each is a reading of what the heads computed."""

from torch import Tensor


def leave_out(weights: Tensor, keep: Tensor) -> Tensor:
    """What is left when some keys are left out, divided by its sum so that it adds up to 1 again.

    weights: `... query key`. keep: boolean `key`, False for a key left out. A row with nothing left is zeros.
    """
    kept = weights.where(keep, 0)
    total = kept.sum(dim=-1, keepdim=True)
    return kept / total.where(total > 0, 1)


def average(weights: Tensor) -> Tensor:
    """The mean over heads: `head query key` -> `1 query key`."""
    return weights.mean(dim=0, keepdim=True)


def maximum(weights: Tensor) -> Tensor:
    """The largest of any head: `head query key` -> `1 query key`. Its rows add up to 1 or more."""
    return weights.amax(dim=0, keepdim=True)

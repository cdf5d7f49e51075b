"""Two sentences beside each other: which heads look elsewhere when a word changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import torch
from torch import Tensor

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How two texts' weights differ where they can be compared.

    pairs: which token of the first stands for which of the second; the rows and columns below.
    change: second minus first, `... query key` over the pairs.
    moved: for each query the share of its weight that went elsewhere, `... query`, 0 to 1; see `compare`.
    distance: the mean of `moved`, one number a head, `...`; NaN where no tokens are paired.
    """

    pairs: tuple[Pair, ...]
    change: Tensor
    moved: Tensor
    distance: Tensor


def align(first: Sequence[str], second: Sequence[str]) -> tuple[Pair, ...]:
    """Which token of the first text stands for which of the second, as places in each, both rising.

    Runs of equal tokens are found as Python's difflib does. What was replaced by equally many is paired one to one,
    *tired* with *wide*; what was replaced by more or fewer, put in or taken out has no partner.
    """
    pairs = []
    for _, start, end, other_start, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if end - start == other_end - other_start:
            pairs += zip(range(start, end), range(other_start, other_end), strict=True)
    return tuple(pairs)


def compare(first: Tensor, second: Tensor, pairs: Sequence[Pair]) -> Difference:
    """Two texts' weights, `... query key` each with sizes of its own, query by query over the paired tokens.

    A query's difference is the total variation between its two rows, ½ Σ |second − first|, with all keys that have no
    partner counted together as one. So both rows stay whole and nothing is divided: renormalising to the paired keys
    instead would blow up the rows that hardly look at them. It is the share of weight that moved, never more than any
    pairing of the other keys would give.
    """
    queries, others = (torch.tensor([pair[side] for pair in pairs], dtype=torch.long) for side in (0, 1))
    before, after = _paired(first, queries), _paired(second, others)
    moved = total_variation(before, after)
    return Difference(
        pairs=tuple(pairs), change=(after - before)[..., :-1], moved=moved, distance=moved.mean(dim=-1)
    )


def total_variation(first: Tensor, second: Tensor) -> Tensor:
    """½ Σ |second − first| over the keys: `... query key` twice -> `... query`, 0 for the same row, 1 for none shared."""
    return (second - first).abs().sum(dim=-1) / 2


def _paired(weights: Tensor, places: Tensor) -> Tensor:
    """Rows and columns of the paired tokens, and a last column for the weight on all others."""
    rows = weights[..., places, :]
    kept = rows[..., places]
    rest = rows.sum(dim=-1, keepdim=True) - kept.sum(dim=-1, keepdim=True)
    return torch.cat([kept, rest], dim=-1)

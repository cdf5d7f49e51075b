"""What each head does, as numbers: how much of its weight follows a pattern one can name (Clark et al. 2019, section 3)."""

import math
from collections.abc import Sequence
from enum import StrEnum

import torch
from torch import Tensor

from models.pretrained.model import Pretrained
from models.pretrained.pieces import Pieces


class Pattern(StrEnum):
    """What a head may do. Each score is a mean over queries, between 0 and 1 but for the entropy.

    Special pieces ask too, but their rows are left out of every mean, since nobody typed them. So are queries for which
    the pattern cannot be, such as the first one's previous; where none is left the score is NaN.
    """

    PREVIOUS = "previous"
    NEXT = "next"
    SAME = "same"
    FIRST = "first"
    SEPARATOR = "separator"
    BROAD = "broad"
    ENTROPY = "entropy"


def find_heads(model: Pretrained, texts: Sequence[str]) -> dict[Pattern, Tensor]:
    """The scores of every head, `layer head`: the mean over the texts, those left out where it is NaN.

    Raises `Unreadable` as `Pretrained.read` does.
    """
    read = [model.read(text) for text in texts]
    each = [score(model.run(pieces).weights, pieces, causal=model.architecture.causal) for pieces in read]
    return {pattern: torch.stack([scores[pattern] for scores in each]).nanmean(dim=0) for pattern in Pattern}


def score(weights: Tensor, pieces: Pieces, *, causal: bool = False) -> dict[Pattern, Tensor]:
    """Every pattern's score: `... query key` -> `...` each, for the weights of one text.

    previous, next: the weight on the piece before the query, after it.
    same: the weight on all pieces equal to the query's, itself included.
    first: the weight on the first piece.
    separator: the weight on all special pieces but the first.
    broad: the entropy as a share of the highest there can be, ln of how many keys the query sees.
    entropy: −Σ weight · ln weight, in nats; 0 where all goes to one key.

    causal: whether queries see only themselves and the past.
    """
    ids, special = torch.tensor(pieces.ids), torch.tensor(pieces.special)
    count = len(pieces)
    place, typed = torch.arange(count), ~special
    seen = place + 1 if causal else torch.full((count,), count)
    entropy = torch.special.entr(weights).sum(dim=-1)               # ... query
    of_each = {
        Pattern.PREVIOUS: (_given(weights, place[:, None] - 1 == place), place > 0),
        Pattern.NEXT: (_given(weights, place[:, None] + 1 == place), place < count - 1),
        Pattern.SAME: (_given(weights, ids[:, None] == ids), typed),
        Pattern.FIRST: (weights[..., 0], typed),
        Pattern.SEPARATOR: (_given(weights, special & (place > 0)), typed),
        Pattern.BROAD: (entropy / seen.log(), seen > 1),
        Pattern.ENTROPY: (entropy, typed),
    }
    return {pattern: given[..., typed & can_be].mean(dim=-1) for pattern, (given, can_be) in of_each.items()}


def ranked(scores: Tensor) -> list[tuple[int, int, float]]:
    """Every head as (layer, head, score), the highest score first: `layer head` -> a list. NaN comes last."""
    heads = [(layer, head, value) for layer, row in enumerate(scores.tolist()) for head, value in enumerate(row)]
    return sorted(heads, key=lambda head: (math.isnan(head[2]), -head[2]))


def _given(weights: Tensor, wanted: Tensor) -> Tensor:
    """How much each query gives to the keys wanted, which broadcast to `query key`: `... query`."""
    return (weights * wanted).sum(dim=-1)

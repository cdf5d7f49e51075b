"""What silencing heads does to everything after them."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.block import BlockTrace
from models.pretrained.compare import total_variation
from models.pretrained.transformer import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """How a run with silenced heads differs from the intact run of the same text.

    sentence: cosine of the two vectors of the text; 1 is no effect.
    pieces: cosine of the two final vectors of each piece, `query`.
    moved: the share of its weight that went elsewhere, for every head and query: `layer head query`, total variation.
        Up to the first layer with a silenced head it is 0: a head's weights are made before it is silenced.
    """

    sentence: float
    pieces: Tensor
    moved: Tensor


def effect(intact: Run, silenced: Run) -> Effect:
    """The effect of what was silenced in one of two runs of one text.

    Raises `ValueError` for runs of texts of different length.
    """
    if intact.final.shape != silenced.final.shape:
        raise ValueError(
            f"both runs must be of one text; got {intact.final.shape[1]} and {silenced.final.shape[1]} pieces. "
            f"Run the same pieces twice."
        )
    return Effect(
        sentence=F.cosine_similarity(intact.sentence, silenced.sentence)[0].item(),
        pieces=F.cosine_similarity(intact.final[0], silenced.final[0], dim=-1),
        moved=torch.stack([_moved(*layer) for layer in zip(intact.traces, silenced.traces, strict=True)]),
    )


def _moved(intact: BlockTrace[Tensor], silenced: BlockTrace[Tensor]) -> Tensor:
    """One layer at a time, for the weights of all are much in a long text."""
    return total_variation(intact.attention.weights[0], silenced.attention.weights[0])

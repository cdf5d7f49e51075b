"""Weights between words instead of pieces, and without the special ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.pretrained.pieces import Pieces


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Weights as they are to be looked at.

    weights: `... query key`, one row and one column a token.
    tokens: what the rows and columns stand for: pieces, or words.
    places: for each token the number of its piece or word among all of the text.
    nothing_left: `... query`, True where all that a query gave went to hidden tokens: its row is zero.
    """

    weights: Tensor
    tokens: tuple[str, ...]
    places: tuple[int, ...]
    nothing_left: Tensor


def show(weights: Tensor, pieces: Pieces, *, merged: bool = False, special: bool = True) -> Shown:
    """Weights between the pieces of a text, `... query key`, or what is asked to be made of them.

    merged: between words, as `merge` does.
    special: False leaves the special pieces out, as `keep_only` does.
    """
    tokens = pieces.words if merged else pieces.pieces
    weights = merge(weights, pieces.word) if merged else weights
    owners = pieces.word if merged else range(len(pieces))
    hidden = set() if special else {owner for owner, own in zip(owners, pieces.special, strict=True) if own}
    places = tuple(place for place in range(len(tokens)) if place not in hidden)
    kept, nothing_left = keep_only(weights, places) if hidden else (weights, weights.sum(dim=-1) == 0)
    return Shown(
        weights=kept, tokens=tuple(tokens[place] for place in places), places=places, nothing_left=nothing_left
    )


def merge(weights: Tensor, word: Sequence[int]) -> Tensor:
    """Weights between pieces as weights between words: `... query key` -> `... word word`.

    word: for each piece the number of its word, from 0 on.

    What a word is given is the sum over its pieces, what it gives the mean of theirs, so that rows still add up to 1
    (Clark et al. 2019, section 4.1).
    """
    owner = F.one_hot(torch.tensor(word)).to(weights.dtype)         # piece word
    return (owner / owner.sum(dim=0)).T @ weights @ owner


def keep_only(weights: Tensor, places: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Some rows and columns only, each row divided by what remains of it: `... query key` -> `... kept kept`.

    The second answer is `... kept`, True where nothing remains; such a row stays zero.
    """
    chosen = torch.tensor(places, dtype=torch.long)
    kept = weights[..., chosen, :][..., chosen]
    remains = kept.sum(dim=-1, keepdim=True)
    nothing_left = remains == 0
    return kept / remains.masked_fill(nothing_left, 1.0), nothing_left[..., 0]

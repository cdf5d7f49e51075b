"""Words instead of pieces: the weights between them, and a text with one of them changed."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from models.pretrained.pieces import Pieces


def merge(weights: Tensor, word: Sequence[int]) -> Tensor:
    """Weights between pieces as weights between words: `... query key` -> `... word word`.

    word: for each piece the number of its word, from 0 on.

    What a word is given is the sum over its pieces, what it gives the mean of theirs, so that rows still add up to 1
    (Clark et al. 2019, section 4.1).
    """
    owner = F.one_hot(torch.tensor(word)).to(weights.dtype)         # piece word
    return (owner / owner.sum(dim=0)).T @ weights @ owner


def typed(pieces: Pieces) -> tuple[int, ...]:
    """Which of the words somebody typed, rather than the tokenizer put there."""
    return tuple(dict.fromkeys(word for word, special in zip(pieces.word, pieces.special, strict=True) if not special))


def replaced(pieces: Pieces, word: int, by: str = "") -> str:
    """The text with one of its typed words replaced. Replaced by nothing, it goes and takes a space with it."""
    start, end = _places(pieces)[word]
    before, after, by = pieces.text[:start], pieces.text[end:], by.strip()
    if by:
        return before + by + after
    if not before.strip():
        return after.lstrip()
    return before + after if after[:1].isalnum() else before.rstrip() + after


def _places(pieces: Pieces) -> dict[int, tuple[int, int]]:
    """Where each typed word stands in the text. They stand in order, so each is looked for behind the one before."""
    places, end = {}, 0
    for word in typed(pieces):
        start = pieces.text.find(pieces.words[word], end)
        if start >= 0:  # what has no text of its own, such as a part of a character, stands where the one before ends
            end = start + len(pieces.words[word])
        places[word] = (end if start < 0 else start, end)
    return places

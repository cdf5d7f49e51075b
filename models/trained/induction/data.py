"""Letters in which something comes a second time."""

import torch
from torch import Generator, Tensor

LETTERS = (*"abcdefghijklmnopqrstuvwxyz", " ")
LENGTH = 48
"""Letters of a training text."""


def draw(batch: int, generator: Generator, length: int = LENGTH) -> Tensor:
    """Half of them a shuffled alphabet over and over, half a few pairs of letters in any order: `batch letter`."""
    texts = [_shuffled(length, generator) if i % 2 else _pairs(length, generator) for i in range(batch)]
    return torch.stack(texts)


def foreseeable(texts: Tensor) -> Tensor:
    """Where the next letter follows from the text: its letter came before, and the same one came after it each time.

    `batch letter` -> `batch letter`, boolean; the last letter of a text is never one, since no next one is known.
    """
    before = followers(texts)
    following = torch.nn.functional.pad(texts, (0, 1), value=-1)[:, 1:]
    agree = texts[:, None, :] == following[:, :, None]
    return before.any(-1) & (agree | ~before).all(-1)


def followers(texts: Tensor) -> Tensor:
    """Where a place's letter came before, the places that followed it: `batch letter` -> `batch query key`, boolean.

    Key j counts for query i if letter j − 1 is letter i and j ≤ i.
    """
    same = texts[:, :, None] == texts[:, None, :]
    return torch.nn.functional.pad(same, (1, 0))[..., :-1].tril()


def _shuffled(length: int, generator: Generator) -> Tensor:
    """6 to 26 letters in a random order, repeated."""
    size = int(torch.randint(6, 27, (), generator=generator))
    order = torch.randperm(len(LETTERS), generator=generator)[:size]
    return order.repeat(-(-length // size))[:length]


def _pairs(length: int, generator: Generator) -> Tensor:
    """3 to 8 pairs of letters, no letter in two of them, one pair after another at random."""
    size = int(torch.randint(3, 9, (), generator=generator))
    pairs = torch.randperm(len(LETTERS), generator=generator)[: 2 * size].view(size, 2)
    return pairs[torch.randint(size, (length // 2,), generator=generator)].flatten()

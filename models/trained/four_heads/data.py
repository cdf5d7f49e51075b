"""Letters with one digit among them, and four questions about each place."""

from enum import StrEnum

import torch
from torch import Generator, Tensor

LETTERS, DIGITS = tuple("abcdefghijklmnopqrstuvwxyz"), tuple("0123456789")
TOKENS = (*LETTERS, *DIGITS)
SHORTEST, LONGEST = 4, 12


class Question(StrEnum):
    """What is asked of the model at every place."""

    PREVIOUS = "previous"
    NEXT = "next"
    FIRST = "first"
    DIGIT = "digit"


def batch(size: int, generator: Generator) -> Tensor:
    """Random texts of one length: `batch token`."""
    length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
    texts = torch.randint(len(LETTERS), (size, length), generator=generator)
    digits = torch.randint(len(LETTERS), len(TOKENS), (size,), generator=generator)
    texts[torch.arange(size), torch.randint(length, (size,), generator=generator)] = digits
    return texts


def places(texts: Tensor) -> Tensor:
    """The place that answers each question at each place, −1 where none does: `batch token` -> `batch question token`."""
    size, length = texts.shape
    place = torch.arange(length).expand(size, length)
    digit = (texts >= len(LETTERS)).int().argmax(1, keepdim=True)
    answers = {
        Question.PREVIOUS: place - 1,
        Question.NEXT: torch.where(place + 1 < length, place + 1, -1),
        Question.FIRST: torch.zeros_like(place),
        Question.DIGIT: digit.expand_as(place),
    }
    return torch.stack([answers[question] for question in Question], dim=1)

"""Words and their letters in reverse, as one text: `<`, the word, `>`, the reverse, `.`."""

import torch
from torch import Generator, Tensor

PAD, START, TURN, STOP = "_", "<", ">", "."
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
TOKENS = (PAD, START, TURN, STOP, *LETTERS)
SHORTEST, LONGEST = 2, 12
TURN_COLUMN = LONGEST + 1
"""Where `>` stands in a batch: words are filled up in front, so that it is one column."""


def batch(size: int, generator: Generator, *, unseen: bool = False) -> Tensor:
    """Texts of random words, of those held out of training or of the others: `batch token`.

    Held out is a tenth of all words: those whose letters' numbers add up to a multiple of ten.
    """
    rows: list[list[int]] = []
    while len(rows) < size:
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        word = torch.randint(len(LETTERS), (length,), generator=generator)
        if (int(word.sum()) % 10 == 0) == unseen:
            rows.append(_row((word + TOKENS.index("a")).tolist()))
    return torch.tensor(rows)


def _row(word: list[int]) -> list[int]:
    fill = [TOKENS.index(PAD)] * (LONGEST - len(word))
    start, turn, stop = (TOKENS.index(token) for token in (START, TURN, STOP))
    return [*fill, start, *word, turn, *reversed(word), stop, *fill]

"""A text as the pieces a model reads, and which word each piece is part of."""

from dataclasses import dataclass
from itertools import accumulate, pairwise

from tokenizers import Encoding, Tokenizer

from models.pretrained.errors import Unreadable


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """A text, cut as the model's tokenizer cuts it. All fields but `text` and `words` have one entry a piece.

    ids: rows of the model's word table.
    pieces: each as one reads it; ## begins one that goes on with a word, a space belongs to its piece.
    word: which entry of `words` the piece is part of; a special piece is a word of its own.
    special: whether the tokenizer put it there, as [CLS] and [SEP], rather than the one who typed.
    words: the words as typed. They are the tokenizer's, which parts *didn't* into *didn*, *'* and *t*.
    """

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    word: tuple[int, ...]
    special: tuple[bool, ...]
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


def read(tokenizer: Tokenizer, text: str, most: int) -> Pieces:
    """The pieces of a text.

    Raises `Unreadable` for a text of no pieces, or more than `most` with the special ones counted.
    """
    encoding = tokenizer.encode(text)
    special = tuple(map(bool, encoding.special_tokens_mask))
    if all(special):
        raise Unreadable("a text must have at least one word or sign; got none that can be read. Type a sentence.")
    if len(encoding) > most:
        raise Unreadable(
            f"this model reads at most {most} pieces, of which {sum(special)} are special ones of its own; "
            f"got {len(encoding)}. Leave out at least {len(encoding) - most}."
        )
    word = _word_of_each(encoding)
    return Pieces(
        text=text,
        ids=tuple(encoding.ids),
        pieces=tuple(_readable(tokenizer, text, encoding, place) for place in range(len(encoding))),
        word=word,
        special=special,
        words=_words(text, encoding, word),
    )


def _word_of_each(encoding: Encoding) -> tuple[int, ...]:
    """Counts on from 0 wherever a piece does not go on with the word before it."""
    own = encoding.word_ids
    begins = [before is None or before != this for before, this in pairwise(own)]
    return tuple(accumulate(map(int, begins), initial=0))


def _words(text: str, encoding: Encoding, word: tuple[int, ...]) -> tuple[str, ...]:
    """Each word's text, from the start of its first piece to the end of its last; a special one has no text."""
    first = [word.index(index) for index in range(word[-1] + 1)]
    last = [place - 1 for place in first[1:]] + [len(word) - 1]
    words = []
    for start, end in zip(first, last, strict=True):
        typed = text[encoding.offsets[start][0] : encoding.offsets[end][1]]
        words.append(typed.strip() or typed or encoding.tokens[start])
    return tuple(words)


def _readable(tokenizer: Tokenizer, text: str, encoding: Encoding, place: int) -> str:
    """The piece as its tokenizer writes it; part of a character is shown as the whole, for it has no writing."""
    shown = tokenizer.decode([encoding.ids[place]], skip_special_tokens=False)
    return text[slice(*encoding.offsets[place])] if "\N{REPLACEMENT CHARACTER}" in shown else shown

"""Two sentences in which one adjective decides what "it" means (Levesque et al. 2012, the Winograd schemas)."""

from functools import cache
from itertools import product

import torch
from torch import Generator, Tensor

from models.trained.grammar import END, Grammar

ANIMALS = ("animal", "dog", "cat", "horse", "cow", "sheep", "bear", "fox", "duck", "turtle")
PLACES = ("street", "river", "road", "bridge", "field", "lake", "valley", "canal", "desert", "square")
OBJECTS = ("trophy", "ball", "book", "lamp", "guitar", "vase", "helmet", "statue")
CONTAINERS = ("suitcase", "box", "bag", "drawer", "basket", "trunk")
TIRED, WIDE = ("tired", "scared", "weak", "lazy", "sick"), ("wide", "long", "busy", "dangerous")
BIG, SMALL = ("big", "large", "tall"), ("small", "little", "narrow")

_CROSS = "the {} did not cross the {} because it was too {}"
_FIT = "the {} did not fit in the {} because it was too {}"
_KINDS = ((_CROSS, ANIMALS, PLACES, TIRED, WIDE), (_FIT, OBJECTS, CONTAINERS, BIG, SMALL))

WORDS = tuple(
    dict.fromkeys(
        word
        for sentence, *kinds in _KINDS
        for word in (*sentence.replace("{}", "").split(), *(word for kind in kinds for word in kind))
    )
)
PAD = len(WORDS)
LENGTH = 13
"""Words of the longer sentence."""


def _grammar() -> Grammar:
    """Word after word of each sentence, with any word of the kind where it leaves a gap."""
    moves: dict[str, dict[str, str]] = {}
    for sentence, first, second, *adjectives in _KINDS:
        kinds = iter((first, second, adjectives[0] + adjectives[1]))
        state = ""
        for place, word in enumerate(sentence.split()):
            after = "the" if place == 0 else f"{sentence} {place}"
            moves.setdefault(state, {}).update(dict.fromkeys(next(kinds) if word == "{}" else (word,), after))
            state = after
        moves[state] = {END: END}
    return Grammar(moves, "")


GRAMMAR = _grammar()


@cache
def sentences(*, unseen: bool) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Every sentence and the place of what "it" means, of pairs of nouns held out of training or of the others.

    Held out are about 15 % of all pairs, among them animal and street, trophy and suitcase.
    """
    found = []
    for sentence, first, second, of_first, of_second in _KINDS:
        pairs = list(product(first, second))
        order = torch.randperm(len(pairs), generator=Generator().manual_seed(1)).tolist()
        held_out = {pairs[place] for place in order[: len(pairs) * 15 // 100]} | {pairs[0]}
        for (one, other), adjective in product(pairs, of_first + of_second):
            words = tuple(sentence.format(one, other, adjective).split())
            if ((one, other) in held_out) == unseen:
                found.append((words, words.index(one if adjective in of_first else other)))
    return tuple(found)


@cache
def batch(*, unseen: bool) -> tuple[Tensor, Tensor]:
    """All of `sentences`, filled up with `PAD`, and the number of the noun that "it" means: `batch token`, `batch`."""
    number = {word: place for place, word in enumerate(WORDS)}
    texts, meant = zip(*sentences(unseen=unseen), strict=True)
    rows = [[number[word] for word in words] + [PAD] * (LENGTH - len(words)) for words in texts]
    return torch.tensor(rows), torch.tensor([number[words[place]] for words, place in zip(texts, meant, strict=True)])

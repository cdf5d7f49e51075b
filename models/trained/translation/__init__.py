"""English to French, a word at a time; where each French word comes from can be read off the cross-attention."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from models.masks import padding
from models.trained.record import Places, Prediction, Run, Watch, guess, numbers
from models.trained.task import FREE, TRAINED, Outside, Recognised, Task, Variant
from models.trained.training import Losses, Recipe
from models.trained.translation.data import (
    CONTENT,
    ENGLISH,
    FAMOUS,
    FRENCH,
    GRAMMAR,
    MOST_ENGLISH,
    MOST_FRENCH,
    START,
    STOP,
    Word,
    batch,
    repeated,
    sentences,
    translate,
)
from models.trained.translation.model import Translator

_RECIPE = Recipe(steps=1200, batch=128, rate=3e-3, warm_up=100, penalty=0.05)
_CORPUS, _TEST = 30_000, 500


class Translation(Task):
    """Layers: "encoder" and "decoder", four heads each, and "cross", one."""

    name = "translation"
    vocabulary = ENGLISH + FRENCH
    variants = MappingProxyType(
        {TRAINED: Variant(Translator, _RECIPE), FREE: Variant(Translator, _RECIPE.without_penalty())}
    )
    longest = MOST_ENGLISH
    examples = (
        FAMOUS,
        "our new european bank was not accepted .",
        "the minister with the secret letter did not sign the historic treaty in 1992 .",
    )

    def recognise(self, text: str) -> Recognised:
        """A sentence of the grammar, in which no noun has one adjective twice."""
        recognised = GRAMMAR.recognise(text, ENGLISH, MOST_ENGLISH)
        again, nearest = repeated(recognised.tokens), recognised.nearest.split()
        nearest = " ".join(word for place, word in enumerate(nearest) if place not in repeated(nearest))
        if recognised.outside or not again:
            return replace(recognised, nearest=nearest)
        return replace(recognised, outside=Outside.STRUCTURE, faults=again, nearest=nearest)

    def pieces(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """The words that may come next, none where the longest sentence would end without its full stop."""
        pieces = GRAMMAR.pieces(tokens, MOST_ENGLISH)
        return tuple(piece for piece in pieces if not repeated((*tokens, piece)))

    def losses(self, model: Translator, size: int, generator: Generator) -> Losses:
        """How well each French word is told from those before it; the entropy is that of the cross-attention."""
        chosen = torch.randint(_CORPUS, (size,), generator=generator)
        english, french = (_trimmed(texts[chosen]) for texts in _corpus())
        watch = Watch()
        logits, wanted = model(english, french[:, :-1], watch), french[:, 1:]
        counts = wanted != 0
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0)
        entropy = watch.entropy("cross")[:, 0][counts].mean()
        with torch.no_grad():  # quicker than argmax
            right = logits.gather(-1, wanted[..., None])[..., 0] == logits.amax(-1)
        return Losses(loss, entropy, right[counts].float().mean().item())

    def measure(self, model: Translator) -> dict[str, float]:
        """How 500 sentences come out, each with an adjective that training never gave its noun.

        exact: sentences right to the last word. mass, crossing: weight of words that surely come from one English
        word on that word, of all and of those whose order changes. alignment_error: Och and Ney 2003.
        hiding, hiding_another: content words changed when the word they look at most, or another one, is hidden.
        famous: whether `FAMOUS` comes out as Bahdanau et al. 2015 give it.
        """
        texts = _test()
        english, french = batch(texts)
        given, wanted, visible = french[:, :-1], french[:, 1:], padding(english != 0)
        watch = Watch()
        memory = model.encode(english, watch)
        said = model.decode(given, memory, visible, watch).argmax(-1)
        weights = watch.seen["cross"].trace.weights[:, 0]
        looked = weights.argmax(-1)

        def changed(hidden: Tensor) -> float:
            seen = visible & (torch.arange(english.shape[1]) != hidden[..., None])[:, None]
            without = model.decode(given, memory, seen, Watch()).argmax(-1)
            return (without != said)[_places(texts, _is_content)].float().mean().item()

        another = torch.randint(2**30, looked.shape, generator=Generator().manual_seed(4))
        another = another % ((english != 0).sum(1, keepdim=True) - 1)
        return {
            "exact": ((said == wanted) | (wanted == 0)).all(1).float().mean().item(),
            "mass": _mass(weights, texts, lambda word, _: word.sure is not None),
            "crossing": _mass(weights, texts, lambda word, _: word.crosses),
            "alignment_error": _alignment_error(looked.tolist(), texts),
            "hiding": changed(looked),
            "hiding_another": changed(another + (another >= looked)),
            "famous": float(self.run(model, FAMOUS).answer == tuple(word.french for word in translate(FAMOUS.split()))),
        }

    def _run(self, model: Translator, tokens: tuple[str, ...], hide: Places, silence: Places) -> Run:
        predictions: list[Prediction] = []
        french, watch = (START,), Watch(hide, silence)
        memory = model.encode(numbers(tokens, ENGLISH), watch)
        while french[-1] != STOP and len(french) <= MOST_FRENCH:
            logits = model.decode(numbers(french, FRENCH), memory, None, watch)
            predictions += guess(logits[0, -1:], FRENCH)
            french = (*french, predictions[-1].token)
        said = french[1:]
        return Run(
            tokens=tokens,
            predictions=tuple(predictions[:-1] if said[-1] == STOP else predictions),
            seen=watch.labelled(encoder=(tokens, tokens), decoder=(said, french[:-1]), cross=(said, tokens)),
        )


@cache
def _corpus() -> tuple[Tensor, Tensor]:
    return batch(sentences(_CORPUS, seed=2, unseen=False))


@cache
def _test() -> tuple[tuple[str, ...], ...]:
    return tuple(sentences(_TEST, seed=3, unseen=True))


def _trimmed(texts: Tensor) -> Tensor:
    """Without the columns that hold nothing but padding."""
    return texts[:, : int((texts != 0).sum(1).max())]


def _is_content(word: Word, text: tuple[str, ...]) -> bool:
    return word.sure is not None and text[word.sure] in CONTENT


def _places(
    texts: tuple[tuple[str, ...], ...], chosen: Callable[[Word, tuple[str, ...]], bool]
) -> tuple[Tensor, Tensor]:
    """The sentence and the row of every French word chosen."""
    found = [
        (row, place) for row, text in enumerate(texts) for place, word in enumerate(translate(text)) if chosen(word, text)
    ]
    return torch.tensor(found).unbind(1)


def _mass(weights: Tensor, texts: tuple[tuple[str, ...], ...], chosen: Callable[[Word, tuple[str, ...]], bool]) -> float:
    """The weight that chosen words put on the word they come from."""
    rows, places = _places(texts, chosen)
    sources = [word.sure for text in texts for word in translate(text) if chosen(word, text)]
    return weights[rows, places, torch.tensor(sources)].mean().item()


def _alignment_error(looked: list[list[int]], texts: tuple[tuple[str, ...], ...]) -> float:
    """1 − (looks that are sure + looks that are possible) / (looks + sure links): Och and Ney 2003, section 5.1."""
    pairs = [
        (word, place) for text, row in zip(texts, looked, strict=True) for word, place in zip(translate(text), row)
    ]
    sure = sum(word.sure is not None for word, _ in pairs)
    right = sum((place == word.sure) + (place in word.possible) for word, place in pairs)
    return 1 - right / (len(pairs) + sure)

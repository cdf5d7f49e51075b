"""A word, reversed: the map is a diagonal that runs the other way."""

from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from models.trained import letters
from models.trained.record import Places, Prediction, Run, Watch, guess, numbers
from models.trained.reverse.data import LETTERS, LONGEST, PAD, SHORTEST, START, STOP, TOKENS, TURN, TURN_COLUMN, batch
from models.trained.reverse.model import Reverser
from models.trained.task import FREE, TRAINED, Recognised, Task, Variant
from models.trained.training import Losses, Recipe

_RECIPE = Recipe(steps=500, batch=32, rate=1e-2, penalty=0.02)


class Reverse(Task):
    """Its one layer is "only", with one head."""

    name = "reverse"
    vocabulary = TOKENS
    variants = MappingProxyType(
        {TRAINED: Variant(Reverser, _RECIPE), FREE: Variant(Reverser, _RECIPE.without_penalty())}
    )
    longest = LONGEST
    examples = ("python", "attention", "level")

    def recognise(self, text: str) -> Recognised:
        """A word of 2 to 12 letters."""
        return letters.recognise(text, LETTERS, SHORTEST, LONGEST)

    def pieces(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """Every letter, until the word is full."""
        return LETTERS if len(tokens) < LONGEST else ()

    def losses(self, model: Reverser, size: int, generator: Generator) -> Losses:
        """How well each letter after `>` is told, and the full stop."""
        return _losses(model, batch(size, generator), Watch())

    def measure(self, model: Reverser) -> dict[str, float]:
        """The share of letters told right, and the weight on the letter that is to be told."""
        texts, watch = batch(500, Generator().manual_seed(10_000), unseen=True), Watch()
        now = _losses(model, texts, watch)
        weights = watch.seen["only"].trace.weights[:, 0]
        query = torch.arange(LONGEST + 1)
        right = weights[:, query, TURN_COLUMN - 1 - query]
        return {"accuracy": now.accuracy, "mass": right[_wanted(texts) != TOKENS.index(PAD)].mean().item()}

    def _run(self, model: Reverser, tokens: tuple[str, ...], hide: Places, silence: Places) -> Run:
        predictions: list[Prediction] = []
        text, watch = (START, *tokens, TURN), Watch(hide, silence)
        while text[-1] != STOP and len(predictions) <= len(tokens):
            predictions += guess(model(numbers(text, TOKENS), watch)[0, -1:], TOKENS)
            text = (*text, predictions[-1].token)
        said = text[len(tokens) + 2 :]
        return Run(tokens=tokens, predictions=tuple(predictions), seen=watch.labelled(only=(said, text[:-1])))


def _wanted(texts: Tensor) -> Tensor:
    """What follows `>` and each letter after it: `batch query`."""
    return texts[:, TURN_COLUMN + 1 :]


def _losses(model: Reverser, texts: Tensor, watch: Watch) -> Losses:
    logits, wanted = model(texts[:, :-1], watch), _wanted(texts)
    counts = wanted != TOKENS.index(PAD)
    right = (logits.argmax(-1) == wanted)[counts].float().mean().item()
    entropy = watch.entropy("only")[:, 0][counts].mean()
    return Losses(F.cross_entropy(logits[counts], wanted[counts]), entropy, right)

"""Four questions, four heads: nobody tells them who does what, and they share the work out among themselves."""

from dataclasses import replace
from itertools import permutations
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from models.trained import letters
from models.trained.four_heads.data import DIGITS, LETTERS, LONGEST, SHORTEST, TOKENS, Question, batch, places
from models.trained.four_heads.model import FourHeads
from models.trained.record import Places, Run, Watch, guess, numbers
from models.trained.task import FREE, TRAINED, Outside, Recognised, Task, Variant
from models.trained.training import Losses, Recipe

_RECIPE = Recipe(steps=800, rate=5e-3, penalty=0.1)


class FourHeadsTask(Task):
    """Its one layer is "only", with four heads. A run's predictions are all places' of one question, then the next's."""

    name = "four_heads"
    vocabulary = TOKENS
    variants = MappingProxyType(
        {TRAINED: Variant(FourHeads, _RECIPE), FREE: Variant(FourHeads, _RECIPE.without_penalty())}
    )
    longest = LONGEST
    examples = ("attenti0n", "room7", "4heads")

    def recognise(self, text: str) -> Recognised:
        """4 to 12 letters and digits, just one of them a digit."""
        recognised = letters.recognise(text, TOKENS, SHORTEST, LONGEST)
        nearest = _one_digit(recognised.nearest)
        digits = tuple(place for place, token in enumerate(recognised.tokens) if token in DIGITS)
        if recognised.outside or len(digits) == 1:
            return replace(recognised, nearest=nearest)
        return replace(recognised, outside=Outside.STRUCTURE, faults=digits[1:], nearest=nearest)

    def pieces(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """Letters, and digits while there is none, until the text is full; its last place is kept for a digit."""
        if len(tokens) >= LONGEST:
            return ()
        if not set(tokens) & set(DIGITS):
            return DIGITS if len(tokens) == LONGEST - 1 else TOKENS
        return LETTERS

    def losses(self, model: FourHeads, size: int, generator: Generator) -> Losses:
        """How well the four questions are answered, together."""
        return _losses(model, batch(size, generator), Watch())

    def measure(self, model: FourHeads) -> dict[str, float]:
        """The share answered right, and for each question the weight of its own head on the place that answers it."""
        generator = Generator().manual_seed(10_000)
        texts = [batch(50, generator) for _ in range(10)]
        right = sum(_losses(model, some, Watch()).accuracy for some in texts) / len(texts)
        masses = torch.stack([_masses(model, some) for some in texts]).mean(0)
        heads = assign(masses)
        return {"accuracy": right} | {question.value: masses[i, heads[i]].item() for i, question in enumerate(Question)}

    def heads(self, model: FourHeads) -> dict[Question, int]:
        """The head that serves each question, no head serving two."""
        with torch.inference_mode():
            return dict(zip(Question, assign(_masses(model, batch(100, Generator().manual_seed(1)))), strict=True))

    def _run(self, model: FourHeads, tokens: tuple[str, ...], hide: Places, silence: Places) -> Run:
        watch = Watch(hide, silence)
        logits = model(numbers(tokens, TOKENS), watch)[0]
        return Run(
            tokens=tokens, predictions=guess(logits.flatten(0, 1), TOKENS), seen=watch.labelled(only=(tokens, tokens))
        )


def assign(masses: Tensor) -> tuple[int, ...]:
    """A head for each question, none twice, so that the weakest does best: `question head`."""
    questions = range(len(masses))
    return max(permutations(questions), key=lambda heads: min(masses[i, heads[i]].item() for i in questions))


def _one_digit(text: str) -> str:
    """The text with all digits but the first left out, or with one at its end."""
    first = next((place for place, token in enumerate(text) if token in DIGITS), None)
    if first is None:
        return text[: LONGEST - 1] + DIGITS[0]
    kept = text[: first + 1] + "".join(token for token in text[first + 1 :] if token not in DIGITS)
    return kept + LETTERS[0] * (SHORTEST - len(kept))


def _masses(model: FourHeads, texts: Tensor) -> Tensor:
    """The weight each head puts on the place that answers each question: `question head`."""
    watch = Watch()
    model(texts, watch)
    weights, wanted = watch.seen["only"].trace.weights, places(texts)
    hits = F.one_hot(wanted.clamp_min(0), texts.shape[1]) * (wanted >= 0)[..., None]
    on_wanted = torch.einsum("bhqk,btqk->th", weights, hits.to(weights.dtype))
    return on_wanted / (wanted >= 0).sum((0, 2))[:, None]


def _losses(model: FourHeads, texts: Tensor, watch: Watch) -> Losses:
    logits, wanted = model(texts, watch), places(texts)
    counts = wanted >= 0
    answers = texts[:, None].expand_as(wanted).gather(2, wanted.clamp_min(0))[counts]
    right = (logits[counts].argmax(-1) == answers).float().mean().item()
    return Losses(F.cross_entropy(logits[counts], answers), watch.entropy("only").mean(), right)

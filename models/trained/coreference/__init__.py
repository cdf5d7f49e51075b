"""What "it" means is decided by the last word: one head finds the adjective, a second one the noun it speaks of."""

from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from models.trained.coreference.data import GRAMMAR, LENGTH, WORDS, batch, sentences
from models.trained.coreference.model import IT, Ordinary, Readable
from models.trained.record import Places, Run, Watch, guess, numbers
from models.trained.task import FREE, TRAINED, Recognised, Task, Variant
from models.trained.training import Losses, Model, Recipe

ORDINARY = "ordinary"

_RECIPE = Recipe(steps=400, batch=128, rate=5e-3, penalty=0.05)


class Coreference(Task):
    """Layers: "first" and "second", one head each. Rows are "it" alone, but all words in "first" of the ordinary one."""

    name = "coreference"
    vocabulary = WORDS
    variants = MappingProxyType(
        {
            TRAINED: Variant(Readable, _RECIPE),
            FREE: Variant(Readable, _RECIPE.without_penalty()),
            ORDINARY: Variant(Ordinary, _RECIPE.without_penalty()),
        }
    )
    longest = LENGTH
    examples = (
        "the animal did not cross the street because it was too tired",
        "the animal did not cross the street because it was too wide",
        "the trophy did not fit in the suitcase because it was too big",
    )

    def recognise(self, text: str) -> Recognised:
        """One of the two sentences, with a known noun and adjective in each gap."""
        return GRAMMAR.recognise(text.replace(".", ""), WORDS, LENGTH)

    def pieces(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """The words that may come next."""
        return GRAMMAR.pieces(tokens, LENGTH)

    def losses(self, model: Model, size: int, generator: Generator) -> Losses:
        """How well the noun is told; the entropy is that of the rows of "it"."""
        words, meant = batch(unseen=False)
        chosen = torch.randint(len(words), (size,), generator=generator)
        words, meant = words[chosen], meant[chosen]
        watch = Watch()
        logits = model(words, watch)
        entropy = sum(_row_of_it(watch.entropy(name)[:, 0], words).mean() for name in watch.seen)
        right = (logits.argmax(-1) == meant).float().mean().item()
        return Losses(F.cross_entropy(logits, meant), entropy, right)

    def measure(self, model: Model) -> dict[str, float]:
        """Accuracy, the weight "it" has on the adjective in "first" and on the right noun in "second", and flips.

        flips: of two sentences that differ in an adjective of either kind, how many are both right.
        """
        words, meant = batch(unseen=True)
        watch = Watch()
        right = model(words, watch).argmax(-1) == meant
        first, second = (_row_of_it(watch.seen[name].trace.weights[:, 0], words) for name in ("first", "second"))
        row = torch.arange(len(words))
        adjective = torch.tensor([len(text) - 1 for text, _ in sentences(unseen=True)])
        noun = torch.tensor([place for _, place in sentences(unseen=True)])
        return {
            "accuracy": right.float().mean().item(),
            "it_to_adjective": first[row, adjective].mean().item(),
            "it_to_noun": second[row, noun].mean().item(),
            "flips": _flips(right.tolist()),
        }

    def _run(self, model: Model, tokens: tuple[str, ...], hide: Places, silence: Places) -> Run:
        watch = Watch(hide, silence)
        predictions = guess(model(numbers(tokens, WORDS), watch), WORDS)
        rows = {name: tokens if len(seen.inputs["query"]) > 1 else ("it",) for name, seen in watch.seen.items()}
        rows["second"] = (f"it→{predictions[0].token}",)
        return Run(
            tokens=tokens,
            predictions=predictions,
            seen=watch.labelled(**{name: (queries, tokens) for name, queries in rows.items()}),
        )


def _row_of_it(rows: Tensor, words: Tensor) -> Tensor:
    """Of `batch query ...` the row in which "it" asks, the only one where there is just one: `batch ...`."""
    return rows[:, 0] if rows.shape[1] == 1 else rows[words == IT]


def _flips(right: list[bool]) -> float:
    """The share of pairs of sentences, alike but for an adjective of either kind, that are both right."""
    alike: dict[tuple[str, ...], dict[int, list[bool]]] = {}
    for (text, place), was_right in zip(sentences(unseen=True), right, strict=True):
        alike.setdefault(text[:-1], {}).setdefault(place, []).append(was_right)
    both = [one and other for ones, others in map(dict.values, alike.values()) for one in ones for other in others]
    return sum(both) / len(both)

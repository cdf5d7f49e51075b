"""What every trained task is: data, models, training, measuring, and running on what a user typed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, NamedTuple

import torch
from torch import Generator, nn

from models.trained import card, training
from models.trained.card import Card
from models.trained.record import Places, Run
from models.trained.training import Losses, Model, Progress, Recipe

TRAINED = "trained"
"""The variant that each task's lesson is about."""

FREE = "free"
"""The same model, trained without the penalty on spread attention."""


class Outside(StrEnum):
    """Why a text lies outside a task's small world."""

    EMPTY = "empty"
    UNKNOWN = "unknown"        # tokens it has never seen
    STRUCTURE = "structure"    # known tokens in an order it has never seen
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """What a task makes of a text before any model runs.

    outside: None where the text lies in the task's small world, else the reason it does not.
    faults: the tokens at fault, counted from 0. nearest: the nearest text it can do; the text itself if it can.
    """

    tokens: tuple[str, ...]
    outside: Outside | None = None
    faults: tuple[int, ...] = ()
    nearest: str


class Variant(NamedTuple):
    """One model of a task: how it is built and how it is trained."""

    build: Callable[[], Model]
    recipe: Recipe


class Task(ABC):
    """One small world. Weights lie beside the code as `<variant>.safetensors`.

    name: its folder's. vocabulary: the tokens its models know. variants: its models by name.
    longest: the most tokens of a text. examples: texts to begin with.
    """

    name: ClassVar[str]
    vocabulary: ClassVar[tuple[str, ...]]
    variants: ClassVar[Mapping[str, Variant]]
    longest: ClassVar[int]
    examples: ClassVar[tuple[str, ...]]

    @abstractmethod
    def recognise(self, text: str) -> Recognised:
        """Whether a text lies in the small world, and the nearest one that does."""

    @abstractmethod
    def pieces(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """The tokens that may come after these; none where nothing may."""

    @abstractmethod
    def losses(self, model: Model, batch: int, generator: Generator) -> Losses:
        """How a model does on a new batch of training data."""

    @abstractmethod
    def measure(self, model: Model) -> dict[str, float]:
        """How a model does on held-out data: its accuracy, and the weight its heads put where they should."""

    @abstractmethod
    def _run(self, model: Model, tokens: tuple[str, ...], hide: Places, silence: Places) -> Run: ...

    def run(self, model: Model, text: str, *, hide: Places = (), silence: Places = ()) -> Run:
        """What a model predicts for a text, and what its heads looked at.

        hide: keys, as (layer's name, key), that nobody may look at. silence: heads, as (layer's name, head).

        Raises `ValueError` for a text outside the small world, with the nearest one inside.
        """
        recognised = self.recognise(text)
        if recognised.outside:
            raise ValueError(
                f"the text must lie in the small world of {self.name}; got {text!r}, which does not "
                f"({recognised.outside}). The nearest that does: {recognised.nearest!r}."
            )
        with torch.no_grad():
            return self._run(model, recognised.tokens, hide, silence)

    def train(self, variant: str = TRAINED) -> Iterator[Progress]:
        """Trains a new model of a variant, one step each time the next is asked for."""
        build, recipe = self.variants[variant]
        return training.train(training.begin(build, recipe), recipe, self.losses)

    def load(self, variant: str = TRAINED) -> Model:
        """The shipped model of a variant. Raises `BadWeights` for a file that cannot be used."""
        return self.load_with_card(variant)[0]

    def load_with_card(self, variant: str = TRAINED) -> tuple[Model, Card]:
        """The shipped model of a variant, and what its file says about it. Raises `BadWeights` as `load` does."""
        return card.load(
            self.path(variant),
            self.variants[variant].build,
            task=self.name,
            variant=variant,
            vocabulary=self.vocabulary,
        )

    def ship(self, told: Callable[[str, Progress], None]) -> None:
        """Trains every variant to the end, telling of every step, and writes their files.

        Variants that differ in their penalty alone share the steps before it begins.
        """
        alike: dict[Variant, list[str]] = {}
        for variant, (build, recipe) in self.variants.items():
            alike.setdefault(Variant(build, recipe.without_penalty()), []).append(variant)
        for (build, recipe), variants in alike.items():
            shared = training.begin(build, recipe)
            for progress in training.train(shared, recipe, self.losses, until=recipe.unpenalised):
                told(variants[0], progress)
            for variant in variants:
                for progress in training.train(deepcopy(shared), self.variants[variant].recipe, self.losses):
                    told(variant, progress)
                self.save(variant, progress.model)

    def save(self, variant: str, model: Model) -> None:
        """Ships a model as a variant's, with the figures it reaches once its numbers are rounded to half precision."""
        rounded = model.half().float()
        with torch.inference_mode():
            figures = self.measure(rounded)
        self._save(variant, rounded, asdict(self.variants[variant].recipe), figures)

    def _save(self, variant: str, model: nn.Module, recipe: Mapping[str, object], figures: Mapping[str, float]) -> None:
        made = Card(
            task=self.name,
            variant=variant,
            vocabulary=self.vocabulary,
            heads=card.heads(model),
            recipe=recipe,
            command=f"python -m models.trained {self.name}",
            figures=figures,
        )
        card.save(self.path(variant), model, made)

    def path(self, variant: str) -> Path:
        """Where a variant's weights lie."""
        return Path(__file__).parent / self.name / f"{variant}.safetensors"

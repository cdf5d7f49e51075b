"""The one training loop, a step at a time, so that a page can stop between two steps."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor, nn


_BEGINS, _WHOLE = 0.4, 0.6
"""The shares of all steps between which the penalty fades in."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained: AdamW, gradients clipped at 1, and a penalty on how spread attention is.

    rate: the learning rate, reached after `warm_up` steps, kept until `hold` of all steps, then lowered along
        half a cosine to `floor` of itself.
    penalty: what the entropy of attention, in nats, adds to the loss; it fades in from 40 % to 60 % of the steps.
    """

    steps: int
    rate: float
    batch: int = 64
    warm_up: int = 50
    hold: float = 0.0
    floor: float = 0.05
    betas: tuple[float, float] = (0.9, 0.98)
    penalty: float = 0.0
    seed: int = 0

    def without_penalty(self) -> "Recipe":
        """The same, attention left free to spread."""
        return replace(self, penalty=0.0)

    @property
    def unpenalised(self) -> int:
        """The steps before the penalty begins."""
        return math.floor(_BEGINS * self.steps)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        held = max(self.hold * self.steps, self.warm_up)
        past = max(step - held, 0) / max(self.steps - held, 1)
        cosine = self.floor + (1 - self.floor) * (1 + math.cos(math.pi * past)) / 2
        return self.rate * min((step + 1) / self.warm_up, 1) * cosine

    def penalty_at(self, step: int) -> float:
        """The weight of the entropy in the loss of a step."""
        return self.penalty * min(max(step / self.steps - _BEGINS, 0) / (_WHOLE - _BEGINS), 1)


@dataclass(frozen=True)
class Losses:
    """What one batch gave: the mean loss and entropy, with gradients, and the share predicted right.

    scores: how much weight heads put where the task wants it, by name, where that can be told in training.
    """

    loss: Tensor
    entropy: Tensor
    accuracy: float
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """How far training is: `step` updates were made, and this is how the model does on a batch it has not seen."""

    step: int
    steps: int
    loss: float
    accuracy: float
    scores: Mapping[str, float]
    model: "Model"


class Model(nn.Module):
    """A model that can be trained; its layers start at random."""

    def begin(self) -> None:
        """Sets those weights that do not start at random; here there are none."""


@dataclass
class Training:
    """A model on its way. A copy (`copy.deepcopy`) goes the same way, as long as the recipe says the same."""

    model: Model
    optimiser: torch.optim.Optimizer
    generator: Generator
    step: int = 0


def begin(build: Callable[[], Model], recipe: Recipe) -> Training:
    """A new model that `build` makes, with random weights.

    It draws from a generator of its own, so that several may train at once, and the same recipe gives the same model.
    """
    generator = Generator().manual_seed(recipe.seed)
    model = initialised(build, generator)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.rate, betas=recipe.betas, weight_decay=0.01, fused=True)
    return Training(model, optimiser, generator)


def train(
    training: Training, recipe: Recipe, losses: Callable[[Model, int, Generator], Losses], until: int | None = None
) -> Iterator[Progress]:
    """Trains on, and stops after each step until asked for the next; step 0 is the untrained model.

    losses: given the model, a batch size and where to draw from, how it does on a new batch.
    until: the step before which to leave off; None is after the recipe's last.
    """
    while training.step < (recipe.steps + 1 if until is None else until):
        step, model = training.step, training.model
        with torch.enable_grad():
            now = losses(model, recipe.batch, training.generator)
            penalty = recipe.penalty_at(step)
            total = now.loss + penalty * now.entropy if penalty else now.loss
        yield Progress(step, recipe.steps, now.loss.item(), now.accuracy, now.scores, model)
        if step < recipe.steps:
            _update(model, training.optimiser, total, recipe.rate_at(step))
        training.step += 1


def empty(build: Callable[[], nn.Module]) -> nn.Module:
    """A model whose numbers are not set yet, made without drawing any."""
    with torch.device("meta"):
        model = build()
    return model.to_empty(device="cpu")


def initialised(build: Callable[[], Model], generator: Generator) -> Model:
    """A model with random weights from the generator alone, never from the one that all of torch shares."""
    model = empty(build)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5, generator=generator)
        elif isinstance(module, nn.LayerNorm):
            module.reset_parameters()
    with torch.no_grad():
        model.begin()
    return model


def _update(model: nn.Module, optimiser: torch.optim.Optimizer, loss: Tensor, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()

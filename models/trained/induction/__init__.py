"""Induction: what followed before will follow again (Elhage et al. 2021; Olsson et al. 2022).

One head looks at the letter before, a second one uses that to find where the present letter came before,
and copies what followed. Neither can do it alone, so both appear together, at once: the film shows when.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from models.trained import card, letters
from models.trained.induction.data import LENGTH, LETTERS, draw, followers, foreseeable
from models.trained.induction.model import Inductor, OneLayer
from models.trained.record import Places, Run, Watch, guess, numbers
from models.trained.task import FREE, TRAINED, Recognised, Task, Variant
from models.trained.training import Losses, Model, Progress, Recipe

ONE_LAYER = "one_layer"
FILM = "film"
FRAMES = (0, 25, 50, 75, 100, 125, 150, 200, 300, 400, 550, 700)
"""The steps of training that the film keeps."""

_RECIPE = Recipe(steps=FRAMES[-1], batch=32, rate=1e-3, warm_up=200, hold=0.7, penalty=0.2)


@dataclass(frozen=True)
class Frame:
    """The model after some steps of training, and how it did on held-out texts: accuracy and heads' weights."""

    step: int
    loss: float
    accuracy: float
    previous: float
    induction: float
    model: Inductor


class Induction(Task):
    """Layers: "first" and "second", one head each; the control has "only"."""

    name = "induction"
    vocabulary = LETTERS
    variants = MappingProxyType(
        {
            TRAINED: Variant(Inductor, _RECIPE),
            FREE: Variant(Inductor, _RECIPE.without_penalty()),
            ONE_LAYER: Variant(OneLayer, _RECIPE),
        }
    )
    longest = LENGTH
    examples = ("the cat sat the c", "banana ban", "hello world hello w")

    def recognise(self, text: str) -> Recognised:
        """Any of the letters, in any order."""
        return letters.recognise(text, LETTERS, 1, self.longest)

    def pieces(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """Every letter, until the text is full."""
        return LETTERS if len(tokens) < self.longest else ()

    def earlier(self, tokens: tuple[str, ...]) -> tuple[int, ...]:
        """The places that followed the last letter where it came before: what there is to copy, if anything."""
        return tuple(followers(numbers(tokens, LETTERS))[0, -1].nonzero().flatten().tolist())

    def losses(self, model: Model, batch: int, generator: Generator) -> Losses:
        """How well letters are foretold that can be."""
        return _losses(model, draw(batch, generator))

    def measure(self, model: Model) -> dict[str, float]:
        """Accuracy, and weight on the letter before ("previous") and on what followed before ("induction")."""
        now = _losses(model, _held_out())
        return {"loss": now.loss.item(), "accuracy": now.accuracy, **now.scores}

    def film(self) -> tuple[Frame, ...]:
        """The shipped checkpoints, from the untrained model on. Raises `BadWeights` for a file that cannot be used."""
        path = self.path(FILM)
        frames, made = card.load(path, _Frames, task=self.name, variant=FILM, vocabulary=LETTERS)
        return tuple(
            Frame(step, *(made.figures[f"{step} {name}"] for name in _MEASURED), frames[str(step)]) for step in FRAMES
        )

    def ship(self, told: Callable[[str, Progress], None]) -> None:
        """Trains every variant to the end; that of the lesson leaves the film behind, too."""
        frames = _Frames()

        def keep(variant: str, progress: Progress) -> None:
            told(variant, progress)
            if variant == TRAINED and progress.step in FRAMES:
                frames[str(progress.step)].load_state_dict(progress.model.state_dict())

        super().ship(keep)
        self._save_film(frames)

    def _save_film(self, frames: "_Frames") -> None:
        frames = frames.half().float()
        with torch.inference_mode():
            measured = {step: self.measure(frames[str(step)]) for step in FRAMES}
        figures = {f"{step} {name}": value for step, those in measured.items() for name, value in those.items()}
        self._save(FILM, frames, asdict(_RECIPE), figures)

    def _run(self, model: Model, tokens: tuple[str, ...], hide: Places, silence: Places) -> Run:
        watch = Watch(hide, silence)
        predictions = guess(model(numbers(tokens, LETTERS), watch)[0], LETTERS)
        said = tuple(f"{token}→{foretold.token}" for token, foretold in zip(tokens, predictions, strict=True))
        return Run(
            tokens=tokens,
            predictions=predictions,
            seen=watch.labelled(first=(tokens, tokens), second=(said, tokens), only=(said, tokens)),
        )


_MEASURED = ("loss", "accuracy", "previous", "induction")


class _Frames(nn.ModuleDict):
    """One model for each frame of the film."""

    def __init__(self) -> None:
        super().__init__({str(step): Inductor() for step in FRAMES})


def _held_out() -> Tensor:
    return draw(200, Generator().manual_seed(10_000))


def _losses(model: Model, texts: Tensor) -> Losses:
    watch = Watch()
    logits = model(texts, watch)
    places = foreseeable(texts)
    places[:, -1] = False
    wanted = texts.roll(-1, 1)[places]
    right = (logits[places].argmax(-1) == wanted).float().mean().item()
    entropy = sum(watch.entropy(name).mean() for name in watch.seen)
    return Losses(F.cross_entropy(logits[places], wanted), entropy, right, _scores(watch, texts, places))


def _scores(watch: Watch, texts: Tensor, places: Tensor) -> dict[str, float]:
    """The weight on the letter before, of all letters but the first, and on what followed before."""
    if "second" not in watch.seen:
        return {}
    first, second = (watch.seen[name].trace.weights.detach()[:, 0] for name in ("first", "second"))
    induction = (second * followers(texts)).sum(-1)[places]
    return {"previous": first.diagonal(-1, 1, 2).mean().item(), "induction": induction.mean().item()}

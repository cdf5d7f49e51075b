"""A pretrained model: loaded once, read-only, shared by all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from models.block import Heads
from models.pretrained import families, pieces
from models.pretrained.errors import Unusable
from models.pretrained.files import CONFIG, TOKENIZER, WEIGHTS, Source
from models.pretrained.pieces import Pieces
from models.pretrained.tensors import Tensors
from models.pretrained.transformer import Architecture, Run, Transformer


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model with its tokenizer. Neither changes by being used, so any number of threads may share it.

    name: what to call it.
    """

    name: str
    model: Transformer
    tokenizer: Tokenizer

    @property
    def architecture(self) -> Architecture:
        """What it is made of."""
        return self.model.architecture

    def read(self, text: str) -> Pieces:
        """The pieces of a text. Raises `Unreadable` for a text of none, or of more than the model has positions."""
        return pieces.read(self.tokenizer, text, self.architecture.tables["position"])

    @torch.inference_mode()
    def run(self, text: Pieces, *, silenced: Heads = frozenset()) -> Run:
        """Every intermediate of one text, with a batch axis of 1. Its tensors refuse to be written into.

        silenced: heads whose context is set to zero before W_O, as (layer, head) counted from 0.

        Raises `ValueError` for a head that the model has not got.
        """
        layers, heads = self.architecture.layers, self.architecture.heads
        for layer, head in silenced:
            if not (0 <= layer < layers and 0 <= head < heads):
                raise ValueError(
                    f"a silenced head must be (layer, head) from (0, 0) to ({layers - 1}, {heads - 1}); "
                    f"got ({layer}, {head}). Leave it out."
                )
        return self.model.trace(torch.tensor([text.ids]), silenced=silenced)


def load(source: Source) -> Pretrained:
    """The model of a source, in float32, ready to run.

    Raises `Unusable` with the exact reason where the files do not make one.
    """
    source.check()
    config = _config(source.folder / CONFIG)
    family = families.family_of(config)
    made = families.architecture(family, config)
    tokenizer = _tokenizer(source.folder / TOKENIZER, made.tables["word"])
    state = families.state(family, made, Tensors(source.folder / WEIGHTS, family.prefix))
    with torch.device("meta"):  # shapes alone; the numbers are those of the file
        model = Transformer(made)
    model.load_state_dict(state, assign=True)
    return Pretrained(source.name, model.eval().requires_grad_(False), tokenizer)


def _config(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Unusable(f"{path} must be JSON; {error}. Fetch or save it again.") from error
    if not isinstance(config, dict):
        raise Unusable(f"{path} must hold settings by name; got a {type(config).__name__}. Fetch or save it again.")
    return config


def _tokenizer(path: Path, rows: int) -> Tokenizer:
    """The tokenizer, set to give every piece of a text and no padding."""
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises no narrower one
        raise Unusable(f"{path} must be a tokenizer saved by the library tokenizers; {error}. Save it again.") from error
    last = max(tokenizer.get_vocab().values(), default=0)
    if last >= rows:
        raise Unusable(
            f"every piece of the tokenizer must have a row in the model's word table, which ends at {rows - 1}; "
            f"got a piece of number {last}. Take {TOKENIZER} and {WEIGHTS} from one and the same model."
        )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer

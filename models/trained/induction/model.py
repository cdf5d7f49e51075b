"""Attention alone: a head that looks back by place, and one that looks by what the first one brought."""

from torch import Tensor, nn

from models.masks import causal
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.positions import sinusoidal
from models.trained.induction.data import LETTERS
from models.trained.record import Watch
from models.trained.training import Model

WIDTH = 48
_LOUD = 1.2  # positions against letters


class Inductor(Model):
    """Predicts the next letter with two layers of one head each.

    "first" sees positions alone, of what came before; "second" asks with a letter, and its keys are what "first"
    brought to each place. Both hand on letters, so a map says all about where an answer comes from.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.first = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH))
        self.brought_norm = nn.LayerNorm(WIDTH)
        self.second = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH))
        self.last_norm = nn.LayerNorm(WIDTH)
        self.readout = nn.Linear(WIDTH, len(LETTERS))

    def begin(self) -> None:
        """Queries and keys of "first" begin as the positions themselves, so that near places look alike."""
        nn.init.eye_(self.first.to_q.weight)
        nn.init.eye_(self.first.to_k.weight)

    def forward(self, letters: Tensor, watch: Watch) -> Tensor:
        """`batch letter` -> logits of the letter after each, `batch letter vocabulary`."""
        letter, seen = self.norm(self.embedding(letters)), causal(letters.shape[1], letters.shape[1])
        place = (_LOUD * sinusoidal(letters.shape[1], WIDTH)).expand_as(letter)
        brought = self.brought_norm(watch("first", self.first, place, place, letter, visible=seen.tril(-1)))
        found = watch("second", self.second, letter, brought, letter, visible=seen)
        return self.readout(self.last_norm(found))


class OneLayer(Model):
    """The control: one such head, which sees letters and places, with nothing before it to build on."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.only = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH))
        self.last_norm = nn.LayerNorm(WIDTH)
        self.readout = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letters: Tensor, watch: Watch) -> Tensor:
        """`batch letter` -> logits of the letter after each, `batch letter vocabulary`."""
        letter, seen = self.norm(self.embedding(letters)), causal(letters.shape[1], letters.shape[1])
        asking = letter + sinusoidal(letters.shape[1], WIDTH)
        return self.readout(self.last_norm(letter + watch("only", self.only, asking, asking, letter, visible=seen)))

"""One layer of one head, and nothing else: the answer is what the head brings."""

import torch
from torch import Tensor, nn

from models.masks import causal, padding
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trained.record import Watch
from models.trained.reverse.data import LONGEST, PAD, TOKENS, TURN, TURN_COLUMN
from models.trained.training import Model

WIDTH = 32


class Reverser(Model):
    """Predicts the letter after `>` and after each that follows. Places are counted from `>`."""

    def __init__(self) -> None:
        super().__init__()
        self.letter = nn.Embedding(len(TOKENS), WIDTH)
        self.place = nn.Embedding(2 * LONGEST + 2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.only = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH))
        self.readout = nn.Linear(WIDTH, len(TOKENS))

    def forward(self, tokens: Tensor, watch: Watch) -> Tensor:
        """`batch token`, `>` in one column -> logits from `>` on, `batch query vocabulary`."""
        length, turn = tokens.shape[1], int((tokens[0] == TOKENS.index(TURN)).nonzero()[0])
        letter = self.letter(tokens)
        placed = self.norm(letter + self.place(torch.arange(length) + TURN_COLUMN - turn))
        visible = padding(tokens != TOKENS.index(PAD)) & causal(length, length)[turn:]
        return self.readout(watch("only", self.only, placed[:, turn:], placed, letter, visible=visible))

"""One layer of four heads, and one readout for each question; which head serves which is left to training."""

import torch
from torch import Tensor, nn

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.positions import sinusoidal
from models.trained.four_heads.data import TOKENS, Question
from models.trained.record import Watch
from models.trained.training import Model

WIDTH, HEADS = 64, 4
_LOUD_PLACE, _LOUD_LETTER = 2.0, 3.0  # so that both can be told apart from the start


class FourHeads(Model):
    """Answers all questions at every place from what the heads bring there."""

    def __init__(self) -> None:
        super().__init__()
        self.letter = nn.Embedding(len(TOKENS), WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.only = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH, num_heads=HEADS))
        self.readouts = nn.ModuleList(nn.Linear(WIDTH, len(TOKENS)) for _ in Question)

    def begin(self) -> None:
        """Letters begin louder than a model's usually do."""
        self.letter.weight.mul_(_LOUD_LETTER)

    def forward(self, texts: Tensor, watch: Watch) -> Tensor:
        """`batch token` -> logits, `batch question token vocabulary`."""
        letter = self.letter(texts)
        placed = self.norm(letter + _LOUD_PLACE * sinusoidal(texts.shape[1], WIDTH))
        brought = watch("only", self.only, placed, placed, letter)
        return torch.stack([readout(brought) for readout in self.readouts], dim=1)

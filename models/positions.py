"""Where a token stands, as a vector to add to its embedding."""

import torch
from torch import Tensor


def sinusoidal(tokens: int, embed_dim: int) -> Tensor:
    """Sines and cosines of falling frequency: `token embed_dim` (Vaswani et al. 2017, section 3.5).

    Even columns hold sin(position / 10000^(column / embed_dim)), odd ones the cosine of the column before.
    """
    column = torch.arange(embed_dim)
    frequency = 10000.0 ** (-(column - column % 2) / embed_dim)
    angle = torch.arange(tokens)[:, None] * frequency
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())

"""What several of the models are built of, besides attention."""

from torch import nn


def feed_forward(width: int, hidden: int) -> nn.Sequential:
    """The position-wise network of Vaswani et al. 2017, section 3.3, with its norm in front: `... width` to the same."""
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

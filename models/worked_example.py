"""The Illustrated Transformer's own example (Alammar 2018): "Thinking" and "Machines".

Its page gives q₁·k₁ = 112, q₁·k₂ = 96, the division by 8 and softmax 0.88 and 0.12, and draws q, k and v
with three cells; it prints no vectors. These are whole numbers that give exactly its figures. Its 8 is
√64, the key width of the paper, not √3: hence `scale`.
"""

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from models.multi_head import AttentionConfig, MultiHeadAttention, empty

WORDS = ("Thinking", "Machines")
CONFIG = AttentionConfig(embed_dim=4, num_heads=1, head_dim=3, output_projection=False, scale=1 / 8)

_EMBEDDING = dict(zip(WORDS, torch.tensor([[2.0, 1, 0, 1], [1, 0, 2, 1]]), strict=True))
# embed_dim × head_dim, so that q = x W, as on that page
_W_Q = torch.tensor([[2.0, 1, 1], [2, 1, 0], [0, 2, 1], [2, 1, 2]])
_W_K = torch.tensor([[3.0, 2, 2], [1, 0, 0], [1, 1, 1], [1, 2, 2]])
_W_V = torch.tensor([[2.0, 0, -1], [0, 0, -1], [-2, 1, 2], [0, 1, 1]])


def embed(tokens: Sequence[str]) -> Tensor:
    """The example's vectors: `token embed_dim`. Raises `KeyError` for a word it does not have."""
    return torch.stack([_EMBEDDING[token] for token in tokens])


@cache
def layer() -> MultiHeadAttention:
    """The shared module with the example's W_Q, W_K and W_V, and its 1/8; one layer for all who ask, to be left as it is."""
    module = empty(CONFIG)
    for linear, matrix in ((module.to_q, _W_Q), (module.to_k, _W_K), (module.to_v, _W_V)):
        linear.weight.copy_(matrix.T)  # nn.Linear keeps its matrix transposed
    return module

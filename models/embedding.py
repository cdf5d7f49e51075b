"""A vector for every token, drawn once from a seed: the same token always gets the same vector."""

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor


def embed(tokens: Sequence[str], embed_dim: int, seed: int) -> Tensor:
    """Standard normal vectors: `token embed_dim`.

    A vector depends on the token, the width and the seed alone, not on the sentence around it.
    """
    vectors = {token: _draw(token, embed_dim, seed) for token in set(tokens)}
    return torch.stack([vectors[token] for token in tokens]) if tokens else torch.empty(0, embed_dim)


def _draw(token: str, embed_dim: int, seed: int) -> Tensor:
    digest = blake2b(f"{seed}:{token}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest) >> 1)
    return torch.randn(embed_dim, generator=generator)

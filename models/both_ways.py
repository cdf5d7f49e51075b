"""One mask, said to torch in its two opposite senses. The app shows these functions and runs them."""

import torch.nn.functional as F
from torch import Tensor, nn


def with_module(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Tensor,
) -> Tensor:
    """attn_mask hides where it is True.

    `visible` is `query key`, so it is turned round.
    """
    return module(query, key, value, attn_mask=~visible)[0]


def with_padding(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    keep: Tensor,
) -> Tensor:
    """key_padding_mask hides where it is True, too.

    `keep` is `batch key`, True for a real token.
    """
    return module(query, key, value, key_padding_mask=~keep)[0]


def with_function(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    visible: Tensor,
) -> Tensor:
    """attn_mask keeps where it is True.

    `visible` goes in as it is.
    """
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=visible, scale=scale
    )

"""Who may look where. Every function returns a boolean `visible`: True where a query may look.

Combine with `&` (both must allow) or `|` (either may). torch's own two functions give a boolean
mask opposite meanings: `nn.MultiheadAttention` hides where it is True, `F.scaled_dot_product_attention`
keeps. `visible` cannot be read backwards.
"""

import torch
from torch import Tensor


def causal(queries: int, keys: int) -> Tensor:
    """A query sees the keys up to its own position: `query key`.

    With unequal lengths both count from the start, as `F.scaled_dot_product_attention(is_causal=True)` does.
    """
    query, key = _positions(queries, keys)
    return key <= query


def window(queries: int, keys: int, width: int) -> Tensor:
    """A query sees the keys at most `width` positions away on either side: `query key`.

    Raises `ValueError` if `width` is negative.
    """
    _at_least_zero("width", width)
    query, key = _positions(queries, keys)
    return (query - key).abs() <= width


def prefix(queries: int, keys: int, length: int) -> Tensor:
    """Everyone sees the first `length` keys, and beyond them only the past: `query key`.

    The prefix language model of Raffel et al. 2020, section 3.2.1. Raises `ValueError` if `length` is negative.
    """
    _at_least_zero("length", length)
    _, key = _positions(queries, keys)
    return causal(queries, keys) | (key < length)


def padding(keep: Tensor) -> Tensor:
    """Nobody sees a key that is padding: `... key`, True for a real token, -> `... 1 1 key`.

    The two axes of size one broadcast over head and query. Raises `TypeError` if `keep` is not boolean.
    """
    if keep.dtype != torch.bool:
        raise TypeError(f"keep must be boolean, True for a real token; got {keep.dtype}. Compare, as in ids != pad.")
    return keep[..., None, None, :]


def _positions(queries: int, keys: int) -> tuple[Tensor, Tensor]:
    return torch.arange(queries)[:, None], torch.arange(keys)[None, :]


def _at_least_zero(name: str, number: int) -> None:
    if number < 0:
        raise ValueError(f"{name} must be 0 or more; got {number}.")

"""One matrix for q, k and v at once, as many sources keep it, cut into the three that our module keeps."""

import re
from math import prod

from einops import rearrange
from torch import Tensor

_WANTED = 'such as "(k h d)", "(d k h)" or "(d k)": k for q, k and v, d for head_dim, h for heads'


def split_fused(weight: Tensor, pattern: str, *, h: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """A fused layer's weight as those of `to_q`, `to_k`, `to_v`: `(fused) embed` -> three of `(head head_dim) embed`.

    weight: an nn.Linear's weight or bias; its first axis holds q, k and v, everything behind it stays.
    pattern: how the source cuts that axis, in einops' words, with k the axis of the three, d the width of a head
        and h the heads: "(d k h)" for `rearrange(qkv, "b t (d k h) -> k b h t d", k=3)`,
        "(k h d)" for torch's in_proj_weight and in_proj_bias, which stack three blocks.
    h: how many heads; wanted where the pattern has an h, which no shape can tell.

    A reader's own layer, loaded:

        q, k, v = split_fused(theirs.to_qkv.weight, "(d k h)", h=8)
        ours.load_state_dict({"to_q.weight": q, "to_k.weight": k, "to_v.weight": v, "to_output.weight": …})

    Raises `ValueError` where these do not fit together.
    """
    axes = _axes(pattern)
    if ("h" in axes) != (h is not None):
        came = f"h={h}" if h is not None else "none"
        raise ValueError(
            f"give h, the number of heads, exactly where the pattern has an h; got {pattern!r} and {came}. "
            + ("Add h=…." if h is None else "Leave h out, or name it in the pattern.")
        )
    sizes = {"k": 3} | ({} if h is None else {"h": h})
    _check_rows(weight, sizes)
    heads = "(h d)" if "h" in axes else "d"
    q, k, v = rearrange(weight, f"{pattern} ... -> k {heads} ...", **sizes)
    return q, k, v


def _axes(pattern: str) -> list[str]:
    inside = re.fullmatch(r"\s*\(([^()]*)\)\s*", pattern)
    axes = inside[1].split() if inside else []
    if sorted(axes) not in (["d", "k"], ["d", "h", "k"]):
        raise ValueError(f"pattern must be one axis in brackets, {_WANTED}; got {pattern!r}.")
    return axes


def _check_rows(weight: Tensor, sizes: dict[str, int]) -> None:
    if weight.ndim not in (1, 2):
        came = " × ".join(map(str, weight.shape)) or "a single number"
        raise ValueError(
            f"weight must have one axis (a bias) or two (a matrix, rows first, as nn.Linear keeps it); got {came}."
        )
    if min(sizes.values()) < 1:
        raise ValueError(f"h must be 1 or more; got {sizes['h']}.")
    rows, parts = len(weight), prod(sizes.values())
    if rows == 0 or rows % parts:
        raise ValueError(
            f"the first axis must divide by {' · '.join(map(str, sizes.values()))} = {parts}, one part for "
            f"each of {' and '.join(sizes)}; got {rows}. Transpose a matrix whose columns are fused, or change "
            f"the pattern or h."
        )

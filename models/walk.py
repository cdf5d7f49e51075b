"""Queries in one head, with the numbers between the steps that the trace does not keep."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic

from einops import rearrange
from torch import Tensor, nn

from models.attention import exponentials
from models.trace import Array, AttentionTrace, Other


@dataclass(frozen=True, kw_only=True)
class Walk(Generic[Array]):
    """From one q to its z. Those from the trace are views of it; the three others lie between its steps.

    Of several queries at once, all but k and v have an axis `query` in front.

    q, context: `head_dim`. k, v: `key head_dim`. scores, scaled, masked, weights: `key`.
    exponentials: `key`, and total, their sum: a weight is one divided by the other.
    weighted: `key head_dim`, weight times value; their sum over the keys is the context, z.
    """

    q: Array
    k: Array
    v: Array
    scores: Array
    scaled: Array
    masked: Array
    exponentials: Array
    total: Array
    weights: Array
    weighted: Array
    context: Array

    def map(self, function: Callable[[Array], Other]) -> "Walk[Other]":
        """The same walk with `function` applied to every array."""
        return Walk(**{field.name: function(getattr(self, field.name)) for field in fields(self)})


def walk(trace: AttentionTrace[Tensor], head: int, query: int | slice) -> Walk[Tensor]:
    """The walk of one query or several in one head, counted from 0, of the first sequence in the batch."""
    q, k, v = trace.q[0, head, query], trace.k[0, head], trace.v[0, head]
    masked, weights = trace.masked[0, head, query], trace.weights[0, head, query]
    numerators = exponentials(masked)
    return Walk(
        q=q,
        k=k,
        v=v,
        scores=trace.scores[0, head, query],
        scaled=trace.scaled[0, head, query],
        masked=masked,
        exponentials=numerators,
        total=numerators.sum(-1),
        weights=weights,
        weighted=weights[..., None] * v,
        context=trace.context[0, head, query],
    )


def contributions(context: Tensor, to_output: nn.Module) -> Tensor:
    """What each head adds to rows of the output: z times its rows of W_O, `head query head_dim` -> `head query embed`.

    Concatenating the heads and multiplying by W_O is the same as adding these up (and the bias, if any).
    Without an output projection a head fills its own columns and no others.
    """
    heads, queries, head_dim = context.shape
    if isinstance(to_output, nn.Identity):
        spread = context.new_zeros(heads, queries, heads, head_dim)
        spread[range(heads), :, range(heads)] = context
        return rearrange(spread, "head query part head_dim -> head query (part head_dim)")
    return context @ rearrange(to_output.weight, "embed (head head_dim) -> head head_dim embed", head=heads)

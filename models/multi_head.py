"""The one attention module. Single-head, multi-head and cross-attention are values of its config."""

from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor, nn

from models.attention import hide, mix, normalise, scale, similarity
from models.trace import AttentionTrace


@dataclass(frozen=True)
class AttentionConfig:
    """What one attention layer is made of, in `torch.nn.MultiheadAttention`'s words where it has one.

    embed_dim: width of a query's input, and of the output.
    num_heads: how many heads look at once.
    head_dim: width of q, k and v in one head; None is embed_dim / num_heads.
    kdim, vdim: width of the inputs of the keys and of the values; None is embed_dim.
    bias: whether the projections add one.
    output_projection: whether W_O follows the concatenated heads (it must bring a width other than
        embed_dim back to embed_dim, so without it the output is num_heads · head_dim wide).
    scale: what the scores are multiplied by; None is the paper's 1/√head_dim (section 3.2.1).

    Raises `ValueError` for sizes that cannot be, with what was wanted, what came and what to change.
    """

    embed_dim: int
    num_heads: int = 1
    head_dim: int | None = None
    kdim: int | None = None
    vdim: int | None = None
    bias: bool = False
    output_projection: bool = True
    scale: float | None = None

    def __post_init__(self) -> None:
        for name in ("embed_dim", "num_heads", "head_dim", "kdim", "vdim"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be 1 or more; got {size}.")
        if self.head_dim is None and self.embed_dim % self.num_heads:
            raise ValueError(
                f"embed_dim must divide by num_heads when head_dim is not given; "
                f"got {self.embed_dim} / {self.num_heads}. Change either, or give head_dim."
            )

    @property
    def width(self) -> int:
        """The width of q, k or v in one head: `head_dim`, worked out where it was not given."""
        return self.head_dim or self.embed_dim // self.num_heads

    @property
    def factor(self) -> float:
        """What the scores are multiplied by: `scale`, worked out where it was not given."""
        return self.width**-0.5 if self.scale is None else self.scale


class MultiHeadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2), batch first, that can show its work."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        inner = config.num_heads * config.width
        self.to_q = nn.Linear(config.embed_dim, inner, bias=config.bias)
        self.to_k = nn.Linear(config.kdim or config.embed_dim, inner, bias=config.bias)
        self.to_v = nn.Linear(config.vdim or config.embed_dim, inner, bias=config.bias)
        self.to_output = (
            nn.Linear(inner, config.embed_dim, bias=config.bias) if config.output_projection else nn.Identity()
        )
        for linear in (self.to_q, self.to_k, self.to_v):
            nn.init.xavier_uniform_(linear.weight)  # q and k of variance one, as nn.MultiheadAttention starts

    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, *, visible: Tensor | None = None
    ) -> Tensor:
        """The output alone; arguments, shapes and errors are those of `trace`."""
        return self.trace(query, key, value, visible=visible).output

    def trace(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, *, visible: Tensor | None = None
    ) -> AttentionTrace[Tensor]:
        """Every intermediate, from the projections to the output.

        query: `batch query embed_dim`.
        key: `batch key kdim`; None is self-attention, the query's own input.
        value: `batch key vdim`; None is the key's input.
        visible: boolean, True where a query may look; broadcasts to `batch head query key`.

        Raises `ValueError` or `TypeError` where these do not fit together.
        """
        key = query if key is None else key
        value = key if value is None else value
        self._check(query, key, value, visible)
        q, k, v = self._split(self.to_q(query)), self._split(self.to_k(key)), self._split(self.to_v(value))
        scores = similarity(q, k)                          # batch head query key
        scaled = scale(scores, self.config.factor)         # batch head query key
        masked = hide(scaled, visible)                     # batch head query key
        weights = normalise(masked)                        # batch head query key
        context = mix(weights, v)                          # batch head query head_dim
        output = self.to_output(rearrange(context, "batch head query head_dim -> batch query (head head_dim)"))
        return AttentionTrace(
            q=q, k=k, v=v, scores=scores, scaled=scaled, masked=masked, weights=weights, context=context, output=output
        )

    def _split(self, projected: Tensor) -> Tensor:
        return rearrange(
            projected, "batch token (head head_dim) -> batch head token head_dim", head=self.config.num_heads
        )

    def _check(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> None:
        for name, given, linear in (("query", query, self.to_q), ("key", key, self.to_k), ("value", value, self.to_v)):
            if given.ndim != 3 or given.shape[-1] != linear.in_features:
                raise ValueError(
                    f"{name} must be batch × tokens × {linear.in_features}; got {_shape(given)}. "
                    f"Change its last axis, or the config's width for it."
                )
        if not query.shape[0] == key.shape[0] == value.shape[0]:
            raise ValueError(
                f"query, key and value must share one batch size; "
                f"got {query.shape[0]}, {key.shape[0]} and {value.shape[0]}."
            )
        if key.shape[1] != value.shape[1]:
            raise ValueError(
                f"key and value must have equally many tokens, since they are pairs; "
                f"got {key.shape[1]} and {value.shape[1]}."
            )
        if visible is None:
            return
        if visible.dtype != torch.bool:
            raise TypeError(f"visible must be boolean, True where a query may look; got {visible.dtype}.")
        wanted = (query.shape[0], self.config.num_heads, query.shape[1], key.shape[1])
        try:
            fits = torch.broadcast_shapes(visible.shape, wanted) == wanted
        except RuntimeError:
            fits = False
        if not fits:
            raise ValueError(
                f"visible must broadcast to batch × head × query × key = {' × '.join(map(str, wanted))}; "
                f"got {_shape(visible)}. Query comes before key, and a per-example mask needs a head axis of size 1."
            )


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape)) or "a single number"

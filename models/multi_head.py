"""The one attention module. Single-head, multi-head and cross-attention are values of its config."""

from dataclasses import dataclass

import torch
from einops import rearrange, repeat
from torch import Tensor, nn

from models.attention import hide, mix, normalise, scale, similarity
from models.trace import AttentionTrace


MOST_BYTES, MOST_WIDTH = 10**9, 2**16
"""Bytes of a layer, and any one size in it: more is refused before it is allocated."""

_ACTIVATIONS = {"relu": nn.ReLU()}


@dataclass(frozen=True)
class AttentionConfig:
    """What one attention layer is made of, in `torch.nn.MultiheadAttention`'s words where it has one.

    embed_dim: width of a query's input, and of the output.
    num_heads: how many heads look at once.
    head_dim: width of q, k and v in one head; None is embed_dim / num_heads.
    kdim, vdim: width of the inputs of the keys and of the values; None is embed_dim.
    num_kv_heads: how many heads have keys and values of their own, each serving num_heads / num_kv_heads
        queries (Ainslie et al. 2023); None is num_heads, 1 is multi-query attention (Shazeer 2019).
    bias: whether the projections add one.
    output_projection: whether W_O follows the concatenated heads (it must bring a width other than
        embed_dim back to embed_dim, so without it the output is num_heads · head_dim wide).
    scale: what the scores are multiplied by; None is the paper's 1/√head_dim (section 3.2.1).
    projection_activation: None, or "relu" after each of the three projections.
    projections: False leaves W_Q, W_K and W_V out, so that q, k and v are the input itself; one head only.

    Raises `ValueError` for sizes that cannot be, with what was wanted, what came and what to change.
    """

    embed_dim: int
    num_heads: int = 1
    head_dim: int | None = None
    kdim: int | None = None
    vdim: int | None = None
    num_kv_heads: int | None = None
    bias: bool = False
    output_projection: bool = True
    scale: float | None = None
    projection_activation: str | None = None
    projections: bool = True

    def __post_init__(self) -> None:
        for name in ("embed_dim", "num_heads", "head_dim", "kdim", "vdim", "num_kv_heads"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be 1 or more; got {size}.")
            if size is not None and size > MOST_WIDTH:
                raise ValueError(f"{name} must be {MOST_WIDTH:,} or less; got {size:,}. Use a smaller one.")
        if self.head_dim is None and self.embed_dim % self.num_heads:
            raise ValueError(
                f"embed_dim must divide by num_heads when head_dim is not given; "
                f"got {self.embed_dim} / {self.num_heads}. Change either, or give head_dim."
            )

        if self.num_heads % self.kv_heads:
            raise ValueError(
                f"num_heads must divide by num_kv_heads, so that each key–value head serves equally many queries; "
                f"got {self.num_heads} / {self.kv_heads}. Change either."
            )
        if self.projection_activation not in (None, *_ACTIVATIONS):
            raise ValueError(f'projection_activation must be None or "relu"; got {self.projection_activation!r}.')
        if not self.projections and (self.num_heads, self.width, *self.input_widths) != (1, *[self.embed_dim] * 4):
            raise ValueError(
                f"without projections q, k and v are the input: one head, every width embed_dim = {self.embed_dim}; "
                f"got {self.num_heads} heads of {self.width} and inputs of {self.input_widths}. Set projections=True."
            )
        if self.parameters * 4 > MOST_BYTES:
            raise ValueError(
                f"this layer would need {self.parameters * 4 / 1e9:,.1f} GB for its {self.parameters:,} parameters; "
                f"at most {MOST_BYTES / 1e9:.0f} GB is allowed. Use smaller widths or fewer heads."
            )

    @property
    def width(self) -> int:
        """The width of q, k or v in one head: `head_dim`, worked out where it was not given."""
        return self.head_dim or self.embed_dim // self.num_heads

    @property
    def kv_heads(self) -> int:
        """Heads with keys and values of their own: `num_kv_heads`, worked out where it was not given."""
        return self.num_kv_heads or self.num_heads

    @property
    def input_widths(self) -> tuple[int, int, int]:
        """Width of the inputs of queries, keys and values."""
        return self.embed_dim, self.kdim or self.embed_dim, self.vdim or self.embed_dim

    @property
    def parameters(self) -> int:
        """How many numbers the layer learns."""
        query, key, value = self.input_widths
        inner, shared = self.num_heads * self.width, self.kv_heads * self.width
        bias = int(self.bias)
        into = (query + bias) * inner + (key + value + 2 * bias) * shared if self.projections else 0
        return into + ((inner + bias) * self.embed_dim if self.output_projection else 0)

    @property
    def factor(self) -> float:
        """What the scores are multiplied by: `scale`, worked out where it was not given."""
        return self.width**-0.5 if self.scale is None else self.scale


class MultiHeadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2), batch first, that can show its work."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        inner, shared = config.num_heads * config.width, config.kv_heads * config.width
        self.to_q, self.to_k, self.to_v = (
            _projection(width, out, config) if config.projections else nn.Identity()
            for width, out in zip(config.input_widths, (inner, shared, shared), strict=True)
        )
        self.to_output = (
            nn.Linear(inner, config.embed_dim, bias=config.bias) if config.output_projection else nn.Identity()
        )
        self.activation = _ACTIVATIONS.get(config.projection_activation, nn.Identity())

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
        q = self._split(self.to_q(query), 1)               # batch head query head_dim
        k = self._split(self.to_k(key), self._queries_per_key)
        v = self._split(self.to_v(value), self._queries_per_key)
        scores = similarity(q, k)                          # batch head query key
        scaled = scale(scores, self.config.factor)         # batch head query key
        masked = hide(scaled, visible)                     # batch head query key
        weights = normalise(masked)                        # batch head query key
        context = mix(weights, v)                          # batch head query head_dim
        output = self.to_output(rearrange(context, "batch head query head_dim -> batch query (head head_dim)"))
        return AttentionTrace(
            q=q, k=k, v=v, scores=scores, scaled=scaled, masked=masked, weights=weights, context=context, output=output
        )

    @property
    def _queries_per_key(self) -> int:
        return self.config.num_heads // self.config.kv_heads

    def _split(self, projected: Tensor, copies: int) -> Tensor:
        """Cut into heads; with `copies` above one, neighbouring heads share the same keys or values."""
        return repeat(
            self.activation(projected),
            "batch token (head head_dim) -> batch (head copies) token head_dim",
            head_dim=self.config.width,
            copies=copies,
        )

    def _check(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> None:
        inputs = {"query": query, "key": key, "value": value}
        for (name, given), width in zip(inputs.items(), self.config.input_widths, strict=True):
            if given.ndim != 3 or given.shape[-1] != width:
                change = (
                    "Change its last axis, or the config's width for it."
                    if given.ndim == 3
                    else "Give it three axes; x[None] puts a batch axis in front of one sequence."
                )
                raise ValueError(f"{name} must be batch × tokens × {width}; got {_shape(given)}. {change}")
        if not query.shape[0] == key.shape[0] == value.shape[0]:
            raise ValueError(
                f"query, key and value must share one batch size; "
                f"got {query.shape[0]}, {key.shape[0]} and {value.shape[0]}. Repeat or cut one to match."
            )
        if key.shape[1] != value.shape[1]:
            raise ValueError(
                f"key and value must have equally many tokens, since they are pairs; "
                f"got {key.shape[1]} and {value.shape[1]}. Take both from one sequence."
            )
        if visible is None:
            return
        if visible.dtype != torch.bool:
            raise TypeError(
                f"visible must be boolean, True where a query may look; got {visible.dtype}. "
                f"Compare, as in mask == 0 for a mask of 0 and −∞."
            )
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


def empty(config: AttentionConfig) -> MultiHeadAttention:
    """A layer of zeros, which learns nothing; made without drawing the random weights it does not keep."""
    with torch.device("meta"):
        module = MultiHeadAttention(config).requires_grad_(False)
    module.to_empty(device="cpu")
    for parameter in module.parameters():
        parameter.zero_()
    return module


def _projection(width: int, out: int, config: AttentionConfig) -> nn.Linear:
    linear = nn.Linear(width, out, bias=config.bias)
    nn.init.xavier_uniform_(linear.weight)  # q and k of variance one, as nn.MultiheadAttention starts
    return linear


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape)) or "a single number"

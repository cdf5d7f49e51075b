"""torch's own attention beside ours: the same weights, masks in its two opposite senses, and how far apart they are."""

from copy import deepcopy
from dataclasses import dataclass
from math import isclose

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import AttentionTrace

MODULE = "nn.MultiheadAttention"
FUNCTION = "F.scaled_dot_product_attention"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far torch's answer is from ours, both in float64 with the same weights.

    function: the torch function compared with, `MODULE` or `FUNCTION`.
    weights, output: the largest absolute difference; None where there is nothing to compare.
    reason: what was left out of the comparison, and why; empty where nothing was.
    """

    function: str
    weights: float | None
    output: float | None
    reason: str = ""


class Twin:
    """A layer and torch's own attention beside it: `nn.MultiheadAttention` where it can express the layer, else the function
    inside it. Both in float64, with copies of the layer's weights.
    """

    def __init__(self, layer: MultiHeadAttention) -> None:
        self._layer = deepcopy(layer).double()
        self._module = None if obstacles(layer.config) else as_torch(self._layer)

    def compare(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, *, visible: Tensor | None = None
    ) -> Agreement:
        """Our trace against torch's answer.

        Arguments, shapes and errors are those of `MultiHeadAttention.trace`. `F.scaled_dot_product_attention`
        gets our q, k and v, and our output projection follows it.
        """
        key = query if key is None else key
        value = key if value is None else value
        inputs = [given.double() for given in (query, key, value)]
        with torch.no_grad():
            ours = self._layer.trace(*inputs, visible=visible)
            visible = None if visible is None else visible.expand_as(ours.weights)
            if self._module is None:
                return _agreement(FUNCTION, ours, *_by_function(self._layer, ours, visible))
            return _beside_module(ours, *_by_module(self._module, inputs, visible), visible)


def obstacles(config: AttentionConfig) -> tuple[str, ...]:
    """What keeps `nn.MultiheadAttention` from expressing a layer, as clauses about it; empty where nothing does."""
    own_heads = config.num_heads * config.width == config.embed_dim
    own_scale = isclose(config.factor, config.width**-0.5, rel_tol=1e-15)
    found = {
        "it always has W_Q, W_K and W_V": not config.projections,
        "it always has W_O": not config.output_projection,
        "its heads are embed_dim / num_heads wide": not own_heads,
        "each of its heads has keys and values of its own": config.kv_heads != config.num_heads,
        "it always scales by 1/√head_dim": not own_scale,
        "it has no activation": config.projection_activation is not None,
    }
    return tuple(clause for clause, holds in found.items() if holds)


def as_torch(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's module with a copy of our weights, batch first. Raises `ValueError` where it cannot express the layer."""
    if found := obstacles(layer.config):
        raise ValueError(f"{MODULE} cannot express this layer: {'; '.join(found)}. Change the config to match.")
    config, linears = layer.config, {"q": layer.to_q, "k": layer.to_k, "v": layer.to_v}
    weights = {f"{name}_proj_weight": linear.weight for name, linear in linears.items()}
    if set(config.input_widths) == {config.embed_dim}:
        weights = {"in_proj_weight": torch.cat([*weights.values()])}
    if config.bias:
        weights["in_proj_bias"] = torch.cat([linear.bias for linear in linears.values()])
    weights |= {f"out_proj.{name}": tensor for name, tensor in layer.to_output.state_dict().items()}
    module = nn.MultiheadAttention(
        config.embed_dim,
        config.num_heads,
        bias=config.bias,
        kdim=config.kdim,
        vdim=config.vdim,
        batch_first=True,
        device="meta",  # draws no random numbers
        dtype=layer.to_q.weight.dtype,
    ).to_empty(device=layer.to_q.weight.device)
    module.load_state_dict(weights)
    return module


def as_attn_mask(visible: Tensor) -> Tensor:
    """`visible` for `nn.MultiheadAttention(attn_mask=…)`, which hides where it is True.

    `query key` keeps its shape; `batch head query key` becomes `(batch head) query key`.
    Raises `ValueError` for other shapes, `TypeError` if `visible` is not boolean.
    """
    _boolean("visible", visible)
    if visible.ndim not in (2, 4):
        raise ValueError(
            f"visible must be query × key or batch × head × query × key; got {visible.ndim} axes. Expand it first."
        )
    return ~(visible if visible.ndim == 2 else visible.flatten(0, 1))


def as_key_padding_mask(keep: Tensor) -> Tensor:
    """`batch key`, True for a real token, for `nn.MultiheadAttention(key_padding_mask=…)`, which hides where True.

    Raises `TypeError` if `keep` is not boolean.
    """
    _boolean("keep", keep)
    return ~keep


def as_sdpa_mask(visible: Tensor) -> Tensor:
    """`visible` for `F.scaled_dot_product_attention(attn_mask=…)`, which keeps where it is True: the same tensor.

    Raises `TypeError` if it is not boolean, since numbers would be added to the scores.
    """
    _boolean("visible", visible)
    return visible


def _by_module(module: nn.MultiheadAttention, inputs: list[Tensor], visible: Tensor | None) -> tuple[Tensor, Tensor]:
    """torch's weights, `batch head query key`, and output."""
    hidden = None if visible is None else as_attn_mask(visible)
    output, weights = module(*inputs, attn_mask=hidden, average_attn_weights=False)
    return weights, output


def _by_function(
    layer: MultiHeadAttention, ours: AttentionTrace[Tensor], visible: Tensor | None
) -> tuple[Tensor, Tensor]:
    """torch's weights, `batch head query key`, and our output projection of torch's context."""
    config = layer.config
    copies = config.num_heads // config.kv_heads
    k, v = ours.k[:, ::copies], ours.v[:, ::copies]  # batch kv_head key head_dim
    identity = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)  # as values, it gives the weights back

    def attend(values: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            ours.q, k, values, attn_mask=visible, scale=config.factor, enable_gqa=copies > 1
        )

    return attend(identity), layer.to_output(rearrange(attend(v), "batch head query dim -> batch query (head dim)"))


def _beside_module(
    ours: AttentionTrace[Tensor], weights: Tensor, output: Tensor, visible: Tensor | None
) -> Agreement:
    """Without the queries that see nothing: our weights are zero there, torch's module gives NaN."""
    if visible is None or visible.any(dim=-1).all():
        return _agreement(MODULE, ours, weights, output)
    seeing = visible.any(dim=-1)  # batch head query
    in_every_head = seeing.all(dim=1)  # batch query
    return Agreement(
        function=MODULE,
        weights=_largest(ours.weights[seeing] - weights[seeing]),
        output=_largest(ours.output[in_every_head] - output[in_every_head]),
        reason=f"{MODULE} gives NaN for a query that sees nothing; such queries are left out.",
    )


def _agreement(function: str, ours: AttentionTrace[Tensor], weights: Tensor, output: Tensor) -> Agreement:
    return Agreement(
        function=function, weights=_largest(ours.weights - weights), output=_largest(ours.output - output)
    )


def _largest(difference: Tensor) -> float | None:
    return difference.abs().max().item() if difference.numel() else None


def _boolean(name: str, mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"{name} must be boolean; got {mask.dtype}. Compare, as in mask == 0 for a mask of 0 and −∞.")

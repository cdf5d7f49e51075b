"""How long the vectors are that a head adds up: a high weight on a short vector moves little."""

import torch
from einops import rearrange
from torch import Tensor

from models.multi_head import MultiHeadAttention
from models.pretrained.model import Pretrained
from models.pretrained.transformer import Run
from models.trace import AttentionTrace


@torch.inference_mode()
def norms(model: Pretrained, run: Run) -> Tensor:
    """‖α f(x)‖ of every head of every layer: `layer head query key`, of the first text in the batch."""
    layers = zip(model.model.blocks, run.traces, strict=True)
    return torch.stack([head_norms(block.attention, trace.attention)[0] for block, trace in layers])


def head_norms(attention: MultiHeadAttention, trace: AttentionTrace[Tensor]) -> Tensor:
    """The length of what each key gives each query (Kobayashi et al. 2020): `batch head query key`.

    A head's output is Σ α f(x) over the keys (their equation 3), with f(x) = (x W_V + b_V) W_O (4) and W_O the rows of
    the head's own. The bias of W_V is part of it, for it is weighted too; that of W_O is not, for it is added once,
    whatever the weights. As α is not negative, ‖α f(x)‖ = α ‖f(x)‖. Of a silenced head it is what it would have given.
    """
    to_output = rearrange(
        attention.to_output.weight, "embed (head head_dim) -> head head_dim embed", head=attention.config.num_heads
    )
    transformed = trace.v @ to_output                               # batch head key embed
    return trace.weights * transformed.norm(dim=-1)[..., None, :]

"""Glass heads: the shared attention module with weights set by hand, so that each head does one job on any text.

A token comes in as one row of four parts, and each head reads only the parts it needs:

    token     64 signs, ±1, that belong to the token alone; two different tokens agree in about half of them
    position  64 sines and cosines; "for any fixed offset k, PE(pos + k) can be represented as a linear
              function of PE(pos)" (Vaswani et al. 2017, section 3.5), so one matrix steps back or forward
    constant  1, where every query has to ask the same
    start     1 for the first token, 0 for the others

W_V hands on the token part, so a context is the signs of whatever was looked at.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models import embedding
from models.masks import causal
from models.multi_head import AttentionConfig, MultiHeadAttention, empty
from models.positions import sinusoidal
from models.trace import AttentionTrace

MOST_TOKENS = 512
"""As many as the heads were tested on."""

SIZE = 64
"""Signs of a token, sines and cosines of a position, and the width of a head, which holds either."""

PARTS: Mapping[str, slice] = MappingProxyType(
    {
        "token": slice(0, SIZE),
        "position": slice(SIZE, 2 * SIZE),
        "constant": slice(2 * SIZE, 2 * SIZE + 1),
        "start": slice(2 * SIZE + 1, 2 * SIZE + 2),
        "previous": slice(2 * SIZE + 2, 3 * SIZE + 2),
    }
)
"""Where each part of an input stands. `previous` is empty and only in the induction pair's inputs."""

_WIDTH = PARTS["start"].stop
_STRENGTH = 64.0  # what a perfect match multiplies to; e^-64 is nothing
_SINK = 3 / 4  # of a token's match with itself: more than chance ever gives, less than the token itself


class Job(StrEnum):
    """What one head of `layer` looks at; the order is that of its heads."""

    NEXT = "next"
    PREVIOUS = "previous"
    SAME = "same"
    FIRST = "first"
    UNIFORM = "uniform"


CONFIG = AttentionConfig(embed_dim=_WIDTH, num_heads=len(Job), head_dim=SIZE, output_projection=False)
"""The five heads of `layer`. A `MultiHeadAttention` of this config with its own random weights takes the same inputs."""

CROSS = AttentionConfig(embed_dim=_WIDTH, head_dim=SIZE, output_projection=False)
"""The one head of `cross_layer`."""

PAIR = AttentionConfig(embed_dim=PARTS["previous"].stop, head_dim=SIZE)
"""Each of the two layers of `induction_pair`, which give back their input's width so that it can be added to."""


def embed(tokens: Sequence[str]) -> Tensor:
    """The inputs of `layer`, and of the queries of `cross_layer`: `token embed_dim`.

    Raises `ValueError` for more than `MOST_TOKENS` tokens.
    """
    if len(tokens) > MOST_TOKENS:
        raise ValueError(f"glass heads read at most {MOST_TOKENS} tokens; got {len(tokens)}. Use a shorter text.")
    x = torch.zeros(len(tokens), _WIDTH)
    x[:, PARTS["token"]] = embedding.embed(tokens, SIZE, seed=0).sign()
    x[:, PARTS["position"]] = sinusoidal(len(tokens), SIZE)
    x[:, PARTS["constant"]] = 1
    x[:1, PARTS["start"]] = 1
    return x


def embed_other(tokens: Sequence[str]) -> Tensor:
    """The inputs of the keys of `cross_layer`: `1 + token embed_dim`, in front an empty place to look at in vain.

    Raises `ValueError` for more than `MOST_TOKENS` tokens.
    """
    x = embed(tokens)
    x[:, PARTS["start"]] = 0
    empty = torch.zeros(1, _WIDTH)
    empty[:, PARTS["start"]] = 1
    return torch.cat([empty, x])


def embed_pair(tokens: Sequence[str]) -> Tensor:
    """The inputs of the first layer of `induction_pair`: `token embed_dim`, room left for what it writes.

    Raises `ValueError` as `embed` does.
    """
    return F.pad(embed(tokens), (0, SIZE))


@cache
def layer() -> MultiHeadAttention:
    """Five heads on the same inputs, one for each `Job`; one layer for all who ask, to be left as it is.

    previous, next: the token one place before, after; the first and the last, which have none, look at themselves.
    same: every occurrence of the token itself, evenly.
    first: the first token, whatever is asked.
    uniform: every token, evenly.
    """
    module = empty(CONFIG)
    q, k, v = (dict(zip(Job, linear.weight.chunk(len(Job)), strict=True)) for linear in _projections(module))
    for job in Job:
        _copy(v[job], "token")
    for job, offset in ((Job.PREVIOUS, -1), (Job.NEXT, 1)):
        q[job][:, PARTS["position"]] = _STRENGTH * _step(offset)
        _copy(k[job], "position")
    _copy(q[Job.SAME], "token", _STRENGTH / SIZE**0.5)
    _copy(k[Job.SAME], "token")
    q[Job.FIRST][0, PARTS["constant"]] = _STRENGTH * SIZE**0.5
    k[Job.FIRST][0, PARTS["start"]] = 1
    return module  # uniform has nothing but its W_V: every score is 0


@cache
def cross_layer() -> MultiHeadAttention:
    """One head between two sequences: a token looks at its equals in the other one. One layer for all, as `layer`.

    Where there is none it looks at the empty place in front, and its context is nothing.
    """
    module = empty(CROSS)
    q, k, v = (linear.weight for linear in _projections(module))
    _match(q, k, "token")
    _copy(v, "token")
    return module


def induction_pair() -> tuple[MultiHeadAttention, MultiHeadAttention]:
    """Two heads, one above the other, that together continue what followed before (Elhage et al. 2021).

    The first writes the previous token into each token's empty part; the second looks for the places where
    that is the token it stands at, so it sees what came next. Where there is none it looks at the first token.
    """
    first, second = empty(PAIR), empty(PAIR)
    q, k, v = (linear.weight for linear in _projections(first))
    q[:, PARTS["position"]] = _STRENGTH * _step(-1)
    _copy(k, "position")
    _copy(v, "token")
    first.to_output.weight[PARTS["previous"]] = torch.eye(SIZE)
    q, k, v = (linear.weight for linear in _projections(second))
    _match(q, k, "previous")
    _copy(v, "token")
    second.to_output.weight[PARTS["token"]] = torch.eye(SIZE)
    return first, second


def induce(
    pair: tuple[MultiHeadAttention, MultiHeadAttention], tokens: Sequence[str]
) -> tuple[AttentionTrace[Tensor], AttentionTrace[Tensor]]:
    """Both layers' records on one text; any two layers of config `PAIR` will do.

    The first sees what lies before a token, the second the token itself too. Raises `ValueError` as `embed` does.
    """
    x = embed_pair(tokens)[None]
    before = causal(len(tokens), len(tokens)).tril(-1)
    below = pair[0].trace(x, visible=before)
    return below, pair[1].trace(x + below.output, visible=causal(len(tokens), len(tokens)))


def _projections(module: MultiHeadAttention) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    return module.to_q, module.to_k, module.to_v


def _copy(weight: Tensor, part: str, factor: float = 1.0) -> None:
    weight[:, PARTS[part]] = factor * torch.eye(SIZE)


def _match(q: Tensor, k: Tensor, part: str) -> None:
    """Tokens ask for themselves in one part of the keys, and a little less loudly for the start.

    The last of the signs gives its place to the start.
    """
    _copy(q, "token", _STRENGTH / SIZE**0.5)
    _copy(k, part)
    q[-1], k[-1] = 0, 0
    q[-1, PARTS["constant"]] = _SINK * _STRENGTH * SIZE**0.5
    k[-1, PARTS["start"]] = 1


def _step(offset: int) -> Tensor:
    """The matrix that turns every position's sines and cosines into those `offset` places on: `SIZE SIZE`."""
    sine, cosine = sinusoidal(2, SIZE)[1].view(-1, 2).T  # of one place, for each frequency
    angle = offset * torch.atan2(sine, cosine)
    return torch.block_diag(
        *(torch.tensor([[c, s], [-s, c]]) for s, c in zip(angle.sin(), angle.cos(), strict=True))
    )

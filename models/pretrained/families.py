"""How the BERT and the GPT-2 families write down what they are, and what they call the parts that our blocks have."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from models.block import BlockConfig, TransformerBlock
from models.multi_head import AttentionConfig
from models.pretrained.errors import Unusable
from models.pretrained.tensors import Tensors
from models.pretrained.transformer import Architecture

Config = Mapping[str, Any]

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}


@dataclass(frozen=True, kw_only=True)
class Family:
    """One way of writing a transformer down.

    norm, causal: as in `BlockConfig` and `Architecture`.
    keys: what config.json calls each of our settings.
    defaults: what a setting is where config.json leaves it out.
    needs: settings with only one value that our blocks compute; a config.json that leaves one out means it.
    prefix: what its tensors' names begin with where something was trained on top.
    tables, outer_norm: what it calls the embedding tables, and the LayerNorm outside the blocks.
    block: what stands before the names of a block's parts, {} for its number.
    parts: for each of its parts the one part of ours, or the three that it keeps side by side in one.
    transposed: whether its blocks' matrices lie `in out`; nn.Linear's lie `out in`.
    """

    norm: str
    causal: bool
    keys: Mapping[str, str]
    defaults: Config
    needs: Config
    prefix: str
    tables: Mapping[str, str]
    outer_norm: str
    block: str
    parts: Mapping[str, tuple[str, ...]]
    transposed: bool


BERT = Family(
    norm="post",
    causal=False,
    keys={
        "embed_dim": "hidden_size",
        "num_heads": "num_attention_heads",
        "feed_forward_dim": "intermediate_size",
        "activation": "hidden_act",
        "norm_eps": "layer_norm_eps",
        "layers": "num_hidden_layers",
        "word": "vocab_size",
        "position": "max_position_embeddings",
        "segment": "type_vocab_size",
    },
    defaults={"norm_eps": 1e-12, "segment": 2},
    needs={"position_embedding_type": "absolute", "is_decoder": False},
    prefix="bert.",
    tables={
        "word": "embeddings.word_embeddings",
        "position": "embeddings.position_embeddings",
        "segment": "embeddings.token_type_embeddings",
    },
    outer_norm="embeddings.LayerNorm",
    block="encoder.layer.{}.",
    parts={
        "attention.self.query": ("attention.to_q",),
        "attention.self.key": ("attention.to_k",),
        "attention.self.value": ("attention.to_v",),
        "attention.output.dense": ("attention.to_output",),
        "attention.output.LayerNorm": ("norm_1",),
        "intermediate.dense": ("feed_forward_in",),
        "output.dense": ("feed_forward_out",),
        "output.LayerNorm": ("norm_2",),
    },
    transposed=False,
)
"""Devlin et al. 2019, as the library transformers keeps it; all-MiniLM-L6-v2 is one."""

GPT2 = Family(
    norm="pre",
    causal=True,
    keys={
        "embed_dim": "n_embd",
        "num_heads": "n_head",
        "feed_forward_dim": "n_inner",
        "activation": "activation_function",
        "norm_eps": "layer_norm_epsilon",
        "layers": "n_layer",
        "word": "vocab_size",
        "position": "n_positions",
    },
    defaults={"feed_forward_dim": None, "norm_eps": 1e-5},
    needs={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    prefix="transformer.",
    tables={"word": "wte", "position": "wpe"},
    outer_norm="ln_f",
    block="h.{}.",
    parts={
        "ln_1": ("norm_1",),
        "attn.c_attn": ("attention.to_q", "attention.to_k", "attention.to_v"),
        "attn.c_proj": ("attention.to_output",),
        "ln_2": ("norm_2",),
        "mlp.c_fc": ("feed_forward_in",),
        "mlp.c_proj": ("feed_forward_out",),
    },
    transposed=True,
)
"""Radford et al. 2019, as the library transformers keeps it."""

FAMILIES: Mapping[str, Family] = MappingProxyType({"bert": BERT, "gpt2": GPT2})
"""Each by its `model_type` in config.json."""


def family_of(config: Config) -> Family:
    """The family of a config.json. Raises `Unusable` for none of ours, or a variation our blocks do not compute."""
    came = config.get("model_type")
    if came not in tuple(FAMILIES):
        raise Unusable(f"model_type must be one of {', '.join(FAMILIES)}; got {came!r}. Name a model of one of these.")
    family = FAMILIES[came]
    for key, wanted in family.needs.items():
        if config.get(key, wanted) != wanted:
            raise Unusable(f"{key} must be {wanted!r}; got {config[key]!r}. Name a model without this variation.")
    return family


def architecture(family: Family, config: Config) -> Architecture:
    """What a config.json describes. Raises `Unusable` where a setting is missing or cannot be."""
    settings = {ours: _setting(family, config, ours) for ours in family.keys}
    try:
        return Architecture(
            block=BlockConfig(
                attention=AttentionConfig(embed_dim=settings["embed_dim"], num_heads=settings["num_heads"], bias=True),
                norm=family.norm,
                activation=settings["activation"],
                feed_forward_dim=settings["feed_forward_dim"],
                norm_eps=settings["norm_eps"],
            ),
            layers=settings["layers"],
            tables={table: settings[table] for table in family.tables},
            causal=family.causal,
        )
    except ValueError as error:  # the configs' own sentences
        raise Unusable(str(error)) from error


def state(family: Family, made: Architecture, tensors: Tensors) -> dict[str, Tensor]:
    """The family's tensors as the state of our `Transformer`. Raises `Unusable` where one is missing or does not fit."""
    embed = made.block.attention.embed_dim
    found = {
        f"tables.{table}": tensors.take(f"{family.tables[table]}.weight", (rows, embed))
        for table, rows in made.tables.items()
    }
    found |= {f"norm.{kind}": tensors.take(f"{family.outer_norm}.{kind}", (embed,)) for kind in ("weight", "bias")}
    with torch.device("meta"):
        shapes = {name: tuple(part.shape) for name, part in TransformerBlock(made.block).state_dict().items()}
    for layer in range(made.layers):
        block = _block(family, family.block.format(layer), shapes, tensors)
        found |= {f"blocks.{layer}.{name}": part for name, part in block.items()}
    return found


def _block(family: Family, before: str, shapes: Mapping[str, tuple[int, ...]], tensors: Tensors) -> dict[str, Tensor]:
    found = {}
    for theirs, ours in family.parts.items():
        for kind in ("weight", "bias"):
            out, *rest = shapes[f"{ours[0]}.{kind}"]
            shape = (len(ours) * out, *rest)
            whole = tensors.take(f"{before}{theirs}.{kind}", shape[::-1] if family.transposed else shape)
            whole = whole.t() if family.transposed else whole
            found |= {f"{name}.{kind}": part for name, part in zip(ours, whole.chunk(len(ours)), strict=True)}
    return found


def _setting(family: Family, config: Config, ours: str) -> Any:
    """One setting of config.json: an activation, a small number, or else a whole number from 1 up."""
    key = family.keys[ours]
    came = config.get(key, family.defaults.get(ours))
    if came is None and ours in family.defaults:
        return family.defaults[ours]
    if ours == "activation":
        if came not in tuple(_ACTIVATIONS):
            raise Unusable(f"{key} must be one of {', '.join(_ACTIVATIONS)}; got {came!r}. Name another model.")
        return _ACTIVATIONS[came]
    wanted, kinds = ("a number above 0", (int, float)) if ours == "norm_eps" else ("a whole number from 1 up", (int,))
    if type(came) not in kinds or not came > 0:
        raise Unusable(f"{key} must be {wanted}; got {came!r}. Correct it in config.json.")
    return came

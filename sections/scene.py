"""The choices that change the numbers, and the one place where they become numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache
from threading import Lock

import torch
from torch import Tensor

from models import glass, masks, worked_example
from models.block import BlockConfig, BlockTrace, TransformerBlock
from models.block import stack as run_stack
from models.embedding import embed
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.positions import sinusoidal
from models.recipes import RECIPES
from models.tokens import PAD, SPLITTERS
from models.trace import Step
from models.twin import Agreement, Twin
from sections import story
from sections.attended import Attended
from sections.limits import KEPT_LAYERS, KEPT_SCENES, KEPT_STACKS, MAX_CHARACTERS, MAX_INNER, MAX_TOKENS, MAX_WEIGHTS
from viz.cells import readable

_DRAWING = Lock()  # torch has one generator for all visitors; a seed holds only while nobody else draws


class Source(StrEnum):
    """Where vectors and weights come from."""

    GLASS = "glass"
    RANDOM = "random"
    WORKED_EXAMPLE = "worked-example"


class Attention(StrEnum):
    """Who asks whom, and how many at once."""

    SINGLE_HEAD = "single-head"
    MULTI_HEAD = "multi-head"
    CROSS = "cross"


class Scale(StrEnum):
    """What the scores are divided by: the square root of a width, or nothing."""

    HEAD_DIM = "head_dim"
    EMBED_DIM = "embed_dim"
    NONE = "none"


class Mask(StrEnum):
    """Who may look where."""

    NONE = "none"
    CAUSAL = "causal"
    PADDING = "padding"
    WINDOW = "window"
    PREFIX = "prefix"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Every choice that changes a number, under its name in the address; the defaults open the app."""

    text: str = "The animal didn't cross the street because it was too tired."
    context: str = "la zone économique européenne"
    attention: Attention = Attention.MULTI_HEAD
    mask: Mask = Mask.NONE
    width: int = 1
    length: int = 1
    padding: bool = False
    heads: int = 4
    embed_dim: int = 8
    head_dim: int | None = None
    kdim: int | None = None
    vdim: int | None = None
    kv_heads: int | None = None
    scale: Scale = Scale.HEAD_DIM
    positions: bool = False
    seed: int = 0
    tokens: str = "words"
    source: Source = Source.GLASS
    recipe: str = "multi_head"

    @property
    def num_heads(self) -> int:
        """Heads of the layer: one for single-head attention and as many as there are glass heads, whatever `heads` says."""
        if self.source is Source.GLASS:
            return 1 if self.attention is Attention.CROSS else len(glass.Job)
        return 1 if self.attention is Attention.SINGLE_HEAD else self.heads

    def fits(self, source: Source) -> bool:
        """Whether a source has vectors and weights for this scene; random ones there always are."""
        usual = self.recipe == Scene.recipe
        if source is Source.GLASS:
            return usual and self.attention is not Attention.SINGLE_HEAD
        if source is Source.WORKED_EXAMPLE:
            alone = self.attention is Attention.SINGLE_HEAD
            short = len(self.text) <= MAX_CHARACTERS
            return usual and alone and short and set(self.split("text")) <= set(worked_example.WORDS)
        return True

    @property
    def fits_recipe(self) -> bool:
        """Whether the recipe has as many heads and sequences as are asked for."""
        return self.attention is Attention.SINGLE_HEAD or not RECIPES[self.recipe].one_head

    @property
    def factor(self) -> float | None:
        """What the scores are multiplied by; None is 1/√head_dim."""
        return {Scale.HEAD_DIM: None, Scale.EMBED_DIM: self.embed_dim**-0.5, Scale.NONE: 1.0}[self.scale]

    def split(self, choice: str) -> list[str]:
        """The tokens of `text` or of `context`."""
        return SPLITTERS[self.tokens](getattr(self, choice))


class Refused(ValueError):
    """A scene that cannot be computed: which choice is at fault, and a sentence on what to change."""

    def __init__(self, choice: str, reason: str) -> None:
        super().__init__(reason)
        self.choice = choice
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Computation(Attended):
    """A scene, worked out."""

    scene: Scene


@lru_cache(KEPT_SCENES)  # Streamlit's own caches take a millisecond to find a scene
def compute(scene: Scene) -> Computation:
    """The trace of a scene and what it was made from. Raises `Refused` where there is nothing to compute."""
    queries = _tokens(scene, "text")
    keys = _keys(scene, queries)
    weights = scene.num_heads * len(queries) * len(keys)
    if weights > MAX_WEIGHTS:
        raise Refused("text", story.too_many_weights(scene.num_heads, len(queries), len(keys), MAX_WEIGHTS))
    layer = _layer(scene)
    inputs = _inputs(scene, queries, keys, layer.config.input_widths)
    visible = _visible(scene, len(queries), keys)
    trace = layer.trace(*(tensor[None] for tensor in inputs.values()), visible=visible)
    return Computation(
        scene=scene,
        queries=tuple(map(readable, queries)),
        keys=tuple(map(readable, keys)),
        inputs=inputs,
        visible=visible,
        layer=layer,
        trace=trace,
        origin=_origin(scene),
        two_texts=scene.attention is Attention.CROSS,
        names=tuple(story.GLASS[job].title for job in _jobs(scene)),
        says=tuple(story.GLASS[job].says for job in _jobs(scene)),
        remarks=_remarks(scene),
        about={"scene": asdict(scene)},
    )


@lru_cache(64)
def agree(scene: Scene) -> Agreement:
    """How far torch's own attention is from the trace of a scene, in float64."""
    made = compute(scene)
    return _twin(made.layer).compare(*(tensor[None] for tensor in made.inputs.values()), visible=made.visible)


_twin = lru_cache(KEPT_LAYERS)(Twin)


@dataclass(frozen=True)
class Stack:
    """Transformer blocks around the attention of a scene: how many, and how they are built."""

    scene: Scene
    layers: int
    norm: str
    activation: str


@lru_cache(KEPT_STACKS)
def compute_stack(stack: Stack) -> tuple[list[BlockTrace[Tensor]], list[TransformerBlock]]:
    """The record of every block, and the blocks. Raises `Refused` where they cannot be built."""
    scene = stack.scene
    if scene.attention is Attention.CROSS:
        raise Refused("attention", story.BLOCK_ASKS_ITSELF)
    made = compute(scene)
    if (weights := stack.layers * made.trace.weights.numel()) > MAX_WEIGHTS:
        raise Refused("layers", story.too_many_layers(stack.layers, weights, MAX_WEIGHTS))
    config = BlockConfig(made.layer.config, stack.norm, stack.activation)
    with _drawing(scene.seed):
        blocks = [TransformerBlock(config).requires_grad_(False) for _ in range(stack.layers)]
    return run_stack(blocks, made.inputs["query"][None], made.visible), blocks


def _keys(scene: Scene, queries: list[str]) -> list[str]:
    if scene.attention is not Attention.CROSS:
        return queries
    keys = _tokens(scene, "context")
    return [story.NOWHERE, *keys] if scene.source is Source.GLASS else keys


def _jobs(scene: Scene) -> list[str]:
    """What each glass head does; nothing is known of other heads."""
    if scene.source is not Source.GLASS:
        return []
    return ["copy"] if scene.attention is Attention.CROSS else list(glass.Job)


def _origin(scene: Scene) -> str:
    if scene.source is Source.GLASS:
        return story.HINTS["glass"]
    return story.HINTS["positions" if scene.positions else "no positions"]


def _remarks(scene: Scene) -> dict[Step, str]:
    if scene.scale is not Scale.HEAD_DIM:
        return {Step.SCALED: story.NOT_SCALED if scene.scale is Scale.NONE else story.BY_EMBED_DIM}
    return {Step.SCALED: story.EIGHT} if scene.source is Source.WORKED_EXAMPLE else {}


def _tokens(scene: Scene, choice: str) -> list[str]:
    if (length := len(getattr(scene, choice))) > MAX_CHARACTERS:
        raise Refused(choice, story.too_long(length, MAX_CHARACTERS))
    tokens = scene.split(choice)
    if not tokens:
        raise Refused(choice, story.EMPTY[choice])
    return tokens[:MAX_TOKENS]


def _inputs(scene: Scene, queries: list[str], keys: list[str], widths: tuple[int, int, int]) -> dict[str, Tensor]:
    """As wide as the layer takes them, which a recipe may have decided."""

    def vectors(tokens: list[str], width: int) -> Tensor:
        example = scene.source is Source.WORKED_EXAMPLE
        drawn = worked_example.embed(tokens) if example else embed(tokens, width, scene.seed)
        return drawn + sinusoidal(*drawn.shape) if scene.positions else drawn

    cross = scene.attention is Attention.CROSS
    if scene.source is Source.GLASS:
        asking = {"query": glass.embed(queries)}
        return asking | dict.fromkeys(("key", "value"), glass.embed_other(keys[1:])) if cross else asking
    query, key, value = widths
    if not cross:
        return {"query": vectors(queries, query)}
    return {"query": vectors(queries, query), "key": vectors(keys, key), "value": vectors(keys, value)}


def _layer(scene: Scene) -> MultiHeadAttention:
    if scene.source is not Source.RANDOM:
        return _made_by_hand(scene)
    if scene.head_dim is None and scene.embed_dim % scene.num_heads:
        raise Refused("heads", story.does_not_divide(scene.embed_dim, scene.num_heads))
    return _drawn(_config(scene), scene.seed)


@lru_cache(KEPT_LAYERS)  # another text asks the same layer
def _drawn(config: AttentionConfig, seed: int) -> MultiHeadAttention:
    with _drawing(seed):
        return MultiHeadAttention(config).requires_grad_(False)


@contextmanager
def _drawing(seed: int) -> Iterator[None]:
    """Random numbers of a seed, and afterwards those that would have come without it."""
    with _DRAWING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed also writes down, for each other kind of device, who called
        yield


def _made_by_hand(scene: Scene) -> MultiHeadAttention:
    """With its own scaling, unless another is chosen."""
    if scene.source is Source.GLASS:
        layer = glass.cross_layer() if scene.attention is Attention.CROSS else glass.layer()
    else:
        layer = worked_example.layer()
    if scene.scale is not Scale.HEAD_DIM:
        layer = copy(layer)  # of the same weights
        layer.config = replace(layer.config, scale=replace(scene, embed_dim=layer.config.embed_dim).factor)
    return layer


def _config(scene: Scene) -> AttentionConfig:
    widths = (scene.kdim, scene.vdim) if scene.attention is Attention.CROSS else (None, None)
    try:
        config = RECIPES[scene.recipe].config(scene.embed_dim, scene.num_heads, scene.head_dim, *widths)
        config = replace(config, scale=scene.factor, num_kv_heads=scene.kv_heads if scene.num_heads > 1 else None)
    except ValueError as error:
        raise Refused("heads", str(error)) from error
    if config.num_heads * config.width > MAX_INNER:
        raise Refused("heads", story.too_wide(config.num_heads, config.width, MAX_INNER))
    return config


def _visible(scene: Scene, queries: int, keys: list[str]) -> Tensor | None:
    keep = torch.tensor([key != PAD for key in keys])
    hide_padding = scene.padding or scene.mask is Mask.PADDING
    pattern = {
        Mask.CAUSAL: lambda: masks.causal(queries, len(keys)),
        Mask.WINDOW: lambda: masks.window(queries, len(keys), scene.width),
        Mask.PREFIX: lambda: masks.prefix(queries, len(keys), scene.length),
    }.get(scene.mask, lambda: torch.ones(queries, len(keys), dtype=torch.bool))()
    visible = pattern & masks.padding(keep)[0] if hide_padding else pattern
    return None if scene.mask is Mask.NONE and not hide_padding else visible

"""Attention worked out once more, slowly and in float64, from a computation's matrices and inputs alone."""

import math
import re

import numpy as np

from models.tokens import PAD
from sections.scene import Computation, Mask, Scale, Scene, Source
from viz.numbers import exact, percent, short


def sees(scene: Scene, query: int, key: int, token: str) -> bool:
    """Whether a query may look at a key; both counted from 0."""
    if token == PAD and (scene.padding or scene.mask is Mask.PADDING):
        return False
    if scene.mask is Mask.CAUSAL:
        return key <= query
    if scene.mask is Mask.WINDOW:
        return -scene.width <= key - query <= scene.width
    if scene.mask is Mask.PREFIX:
        return key < scene.length or key <= query
    return True


def work_out(made: Computation, head: int, query: int) -> dict[str, np.ndarray]:
    """Every number of the walk of one query in one head, and `adds`, `blends`, `output` of all heads."""
    each = [_one_head(made, h, query) for h in range(made.scene.num_heads)]
    blends = np.array([one["z"] for one in each])
    heads, size = blends.shape
    matrix, bias = _linear(made.layer.to_output, heads * size)
    adds = np.array([matrix[:, h * size : (h + 1) * size] @ z for h, z in enumerate(blends)])
    return each[head] | {"blends": blends, "adds": adds, "output": adds.sum(0) + bias}


def _linear(module, width: int) -> tuple[np.ndarray, np.ndarray | float]:
    """Matrix and bias; a layer without them leaves its input as it is."""
    weight = getattr(module, "weight", None)
    bias = getattr(module, "bias", None)
    return (
        np.eye(width) if weight is None else weight.double().numpy(),
        0.0 if bias is None else bias.double().numpy(),
    )


def _one_head(made: Computation, head: int, query: int) -> dict[str, np.ndarray]:
    scene, layer = made.scene, made.layer
    inputs = {name: vectors.double().numpy() for name, vectors in made.inputs.items()}
    x, keys = inputs["query"], inputs.get("key", inputs["query"])
    values = inputs.get("value", keys)
    relu = scene.recipe == "tensorflow"

    def project(linear, vectors: np.ndarray, number: int, of: int) -> np.ndarray:
        matrix, bias = _linear(linear, vectors.shape[1])
        every = np.array([matrix @ vector + bias for vector in vectors])
        size = every.shape[1] // of
        mine = every[:, number * size : (number + 1) * size]
        return np.maximum(mine, 0) if relu else mine

    heads = scene.num_heads
    shared = scene.kv_heads or heads if heads > 1 else 1
    q = project(layer.to_q, x, head, heads)[query]
    k = project(layer.to_k, keys, head * shared // heads, shared)
    v = project(layer.to_v, values, head * shared // heads, shared)
    scores = np.array([sum(a * b for a, b in zip(q, key, strict=True)) for key in k])
    scaled = scores / divisor(made)
    tokens = (scene.split("context") if "key" in inputs else scene.split("text"))[: len(keys)]
    visible = [sees(scene, query, i, token) for i, token in enumerate(tokens)]
    masked = np.where(visible, scaled, -np.inf)
    largest = max(masked) if any(visible) else 0.0
    exponentials = np.array([math.exp(s - largest) if seen else 0.0 for s, seen in zip(scaled, visible, strict=True)])
    total = exponentials.sum()
    weights = exponentials / total if total else exponentials
    weighted = weights[:, None] * v
    return {
        "x": x[query], "q": q, "k": k, "v": v, "scores": scores, "scaled": scaled, "masked": masked,
        "exponentials": exponentials, "total": total, "weights": weights, "weighted": weighted, "z": weighted.sum(0),
    }  # fmt: skip


def divisor(made: Computation) -> float:
    """What scores are divided by: 8 in the worked example, as its page has it."""
    if made.scene.scale is Scale.NONE:
        return 1.0
    if made.scene.scale is Scale.EMBED_DIM:
        return math.sqrt(made.inputs["query"].shape[1])
    return 8.0 if made.scene.source is Source.WORKED_EXAMPLE else math.sqrt(made.trace.q.shape[-1])


def fits(text: str, value: float, write=short) -> bool:
    """Whether a text is how that number is written, give or take what float32 cannot know."""
    off = 2e-5 * (1 + abs(value)) if math.isfinite(value) else 0.0
    near = {value - off, value, value + off, float(np.float32(value))}
    if math.isfinite(value) and abs(value - round(value)) <= off:
        near.add(float(round(value)))
    if text in {write(x) for x in near if write is not percent or x >= 0}:
        return True
    decimals = {short: 2, exact: 4}.get(write)
    if decimals is None or not re.fullmatch(rf"−?\d+\.\d{{{decimals}}}", text):
        return False
    return abs(float(text.replace("−", "-")) - value) <= off + 0.5 * 10**-decimals


def agree(written: list[str], values, write=short) -> bool:
    """Whether numbers as written on the page are those values, in order; a long strip has them in all four decimals."""
    values = np.ravel(values).tolist()
    assert len(written) == len(values), f"{len(written)} numbers on the page, {len(values)} wanted"
    off = [(text, value) for text, value in zip(written, values, strict=True) if not any(fits(text, value, way) for way in (write, exact))]
    assert not off, f"on the page, and wanted: {off}"
    return True

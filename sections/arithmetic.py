"""The pictures of the walk-through: for each step a table of tokens, vectors and numbers, as HTML."""

from typing import NamedTuple

import numpy as np
from einops import rearrange
from torch import Tensor

from models.trace import Step
from models.walk import Walk, contributions, walk
from sections import story
from sections.attended import Attended
from sections.limits import MAX_TERMS
from viz.blanks import Blanks, fill
from viz.cells import table
from viz.numbers import short

FEW = 12
"""Keys listed one by one; of more, those with the largest weights."""


STEPS: list[tuple[Step, ...]] = [
    (Step.Q,),
    (Step.SCORES,),
    (Step.SCALED, Step.MASKED),
    (Step.WEIGHTS,),
    (Step.CONTEXT,),
    (Step.OUTPUT,),
]
"""The steps each picture shows."""


class Form(NamedTuple):
    """A picture for each of `STEPS` with blanks, and the numbers that go into them, `query number`."""

    pieces: list[str]
    numbers: np.ndarray


def form(made: Attended, head: int, queries: slice, *, products: bool, every_key: bool) -> Form:
    """The pictures of some queries in one head, both counted from 0.

    products: write out the terms of every q·k. every_key: list all keys, not only the heaviest; with products only
    while there are no more than `MAX_TERMS`.
    """
    steps = walk(made.trace, head, queries).map(Tensor.numpy)
    many = products and steps.k.size > MAX_TERMS
    listed = _Listed(steps.weights, len(made.keys) if every_key and not many else FEW)
    blanks = Blanks(len(steps.q))
    asking = blanks.token("query", np.arange(len(made.queries))[queries])
    pieces = [
        _query(blanks, steps, made.inputs["query"][queries].numpy(), asking),
        _scores(blanks, steps, listed, asking, products),
        _masked(blanks, steps, listed, made.layer.config.factor),
        _weights(blanks, steps, listed),
        _blend(blanks, steps, listed),
        _output(blanks, made, head, queries),
    ]
    return Form(pieces, blanks.numbers)


def pictures(made: Attended, head: int, query: int, *, products: bool, every_key: bool) -> list[str]:
    """The pictures of one query in one head, both counted from 0, with its numbers in them."""
    pieces, [numbers] = form(made, head, slice(query, query + 1), products=products, every_key=every_key)
    names = {"query": made.queries, "key": made.keys}
    return [fill(piece, numbers.tolist(), names) for piece in pieces]


def heaviest(weights: np.ndarray, most: int = FEW) -> np.ndarray:
    """The keys with the largest weights, in the order of the text: `... key` -> `... row`, at most `most` rows."""
    return np.sort(np.argsort(-weights, kind="stable")[..., :most])


class _Listed:
    """The keys that have a row each, a different set for every query; and the rest together."""

    def __init__(self, weights: np.ndarray, most: int) -> None:
        queries, keys = weights.shape
        self._asking, self._keys = np.arange(queries), heaviest(weights, most).T
        self._rest = np.ones((queries, keys, 1), bool)
        self._rest[self._asking, self._keys] = False
        self.others = keys - len(self._keys)

    def tokens(self, blanks: Blanks) -> list[str]:
        """The name of each row."""
        return [blanks.token("key", keys) for keys in self._keys]

    def rows(self, array: np.ndarray) -> np.ndarray:
        """`query key ...` -> `row query ...`"""
        return array[self._asking, self._keys]

    def vectors(self, array: np.ndarray) -> np.ndarray:
        """`key head_dim` -> `row query head_dim`"""
        return array[self._keys]

    def rest(self, array: np.ndarray) -> np.ndarray:
        """The sum over keys without a row: `query key ...` -> `query ...`"""
        return np.where(self._rest if array.ndim == 3 else self._rest[..., 0], array, 0).sum(1)


def _query(blanks: Blanks, steps: Walk[np.ndarray], x: np.ndarray, asking: str) -> str:
    rows = [
        [asking, story.COLUMNS["input"], blanks.vector(x, blanks.limit(x), label="x")],
        ["", "q", _ring("query", blanks.vector(steps.q, blanks.limit(steps.q), label="q"))],
    ]
    return table(["", "", ""], rows, caption=story.CAPTIONS["query"])


def _scores(blanks: Blanks, steps: Walk[np.ndarray], listed: _Listed, asking: str, products: bool) -> str:
    of_keys, of_scores = blanks.limit(steps.k[None]), blanks.limit(steps.scores)  # q may be many times as large as any k
    rows = [] if products else [[asking, _ring("query", blanks.vector(steps.q, blanks.limit(steps.q), label="q")), ""]]
    for name, k, score in zip(listed.tokens(blanks), listed.vectors(steps.k), listed.rows(steps.scores), strict=True):
        middle = blanks.terms(steps.q, k) if products else _ring("plain", blanks.vector(k, of_keys, label="k"))
        rows.append([name, middle, blanks.number(score, of_scores)])
    head = [story.COLUMNS["key"], story.COLUMNS["products"] if products else story.COLUMNS["q and k"], "q·k"]
    return table(head, rows, caption=story.CAPTIONS["scores"])


def _masked(blanks: Blanks, steps: Walk[np.ndarray], listed: _Listed, factor: float) -> str:
    of_scores, of_scaled = blanks.limit(steps.scores), blanks.limit(steps.scaled)
    rows = [
        [name, blanks.number(score, of_scores), blanks.number(scaled, of_scaled), blanks.number(masked, of_scaled)]
        for name, score, scaled, masked in zip(
            listed.tokens(blanks), *map(listed.rows, (steps.scores, steps.scaled, steps.masked)), strict=True
        )
    ]
    head = [story.COLUMNS["key"], "q·k", story.COLUMNS["scaled"].format(divisor=short(1 / factor)), story.COLUMNS["masked"]]
    return table(head, rows, caption=story.CAPTIONS["masked"])


def _weights(blanks: Blanks, steps: Walk[np.ndarray], listed: _Listed) -> str:
    def row(name: str, exponential: np.ndarray, weight: np.ndarray) -> list[str]:
        return [name, blanks.text(exponential), blanks.bar(weight), blanks.weight(weight)]

    both = steps.exponentials, steps.weights
    rows = [row(*cells) for cells in zip(listed.tokens(blanks), *map(listed.rows, both), strict=True)]
    if listed.others:
        rows.append(row(story.other_keys(listed.others), *map(listed.rest, both)))
    head = [story.COLUMNS["key"], story.COLUMNS["exponential"], f"÷ {blanks.text(steps.total)}", story.COLUMNS["weight"]]
    foot = [story.COLUMNS["sum"], blanks.text(steps.total), "", blanks.text(steps.weights.sum(1))]
    return table(head, rows, foot, caption=story.CAPTIONS["weights"])


def _blend(blanks: Blanks, steps: Walk[np.ndarray], listed: _Listed) -> str:
    of_values, of_weighted = blanks.limit(steps.v[None]), blanks.limit(steps.weighted, steps.context)
    times, equals, weighted = _op("×"), _op("="), story.COLUMNS["weighted"]

    def product(values: np.ndarray) -> str:
        return blanks.vector(values, of_weighted, label=weighted)

    rows = [
        [name, blanks.weight(share) + times, blanks.vector(v, of_values, label="v") + equals, product(values)]
        for name, share, v, values in zip(
            listed.tokens(blanks), listed.rows(steps.weights), listed.vectors(steps.v), listed.rows(steps.weighted), strict=True
        )
    ]
    if listed.others:
        share = blanks.weight(listed.rest(steps.weights))
        rows.append([story.other_keys(listed.others), share, "", product(listed.rest(steps.weighted))])
    head = [story.COLUMNS["key"], story.COLUMNS["weight"], "v", weighted]
    z = _ring("value", blanks.vector(steps.context, of_weighted, label="z"))
    foot = [story.COLUMNS["sum"], "", "", z + _op("= z")]
    return table(head, rows, foot, caption=story.CAPTIONS["context"])


def _output(blanks: Blanks, made: Attended, head: int, queries: slice) -> str:
    """z of every head and what it adds to the output; below, both put together."""
    blends = made.trace.context[0, :, queries]
    adds = contributions(blends, made.layer.to_output).numpy()
    context, output = blends.numpy(), made.trace.output[0, queries].numpy()
    of_blends, of_output = blanks.limit(context.swapaxes(0, 1)), blanks.limit(adds.swapaxes(0, 1), output)

    def added(values: np.ndarray, label: str = story.COLUMNS["adds"]) -> str:
        return blanks.vector(values, of_output, label=label)

    rows = [
        [
            story.HEADINGS["head"].format(head=i + 1),
            _ring("value" if i == head else "plain", blanks.vector(z, of_blends, label="z")),
            added(adds[i]),
        ]
        for i, z in enumerate(context)
    ]
    if (bias := getattr(made.layer.to_output, "bias", None)) is not None:
        rows.append([story.COLUMNS["bias"], "", added(bias.numpy()[None], story.COLUMNS["bias"])])
    joined = rearrange(context, "head query head_dim -> query (head head_dim)")
    times = _op("× W_O =") if made.layer.config.output_projection else ""
    foot = [
        story.COLUMNS["concatenated"],
        blanks.vector(joined, of_blends, label="z") + times,
        _ring("output", added(output, story.COLUMNS["output"])),
    ]
    return table(["", "z", story.COLUMNS["adds"]], rows, foot, caption=story.CAPTIONS["together"])


def _ring(role: str, vector: str) -> str:
    """A vector ringed in the colour of its role."""
    return f'<span class="ring {role}">{vector}</span>'


def _op(sign: str) -> str:
    return f'<span class="op">{sign}</span>'

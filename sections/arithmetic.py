"""The pictures of the walk-through: for each step a table of tokens, vectors and numbers, as HTML."""

import numpy as np
from einops import rearrange
from torch import Tensor

from models.trace import Step
from models.walk import Walk, contributions, walk
from sections import story
from sections.attended import Attended
from sections.limits import MAX_TERMS
from viz import cells
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


def pictures(made: Attended, head: int, query: int, *, products: bool, every_key: bool) -> list[str]:
    """One picture for each of `STEPS`, for one query in one head, both counted from 0.

    products: write out the terms of every q·k. every_key: list all keys, not only the heaviest; with products only
    while there are no more than `MAX_TERMS`.
    """
    steps = walk(made.trace, head, query).map(Tensor.numpy)
    count = len(made.keys)
    many = products and steps.k.size > MAX_TERMS
    shown = list(range(count)) if every_key and not many else heaviest(steps.weights)
    return [
        _query(made, steps, query),
        _scores(made, steps, query, shown, products),
        _masked(made, steps, shown),
        _weights(made, steps, shown),
        _blend(made, steps, shown),
        _output(made, head, query),
    ]


def heaviest(weights: np.ndarray) -> list[int]:
    """The keys with the largest weights, at most `FEW`, in the order of the text."""
    return sorted(np.argsort(-weights, kind="stable")[:FEW].tolist())


def _query(made: Attended, steps: Walk[np.ndarray], query: int) -> str:
    x, name = made.inputs["query"][query].numpy(), cells.token(made.queries[query], "query")
    rows = [
        [name, story.COLUMNS["input"], cells.vector(x, cells.limit(x), label="x")],
        ["", "q", _ring("query", steps.q, cells.limit(steps.q), "q")],
    ]
    return cells.table(["", "", ""], rows, caption=story.CAPTIONS["query"])


def _scores(made: Attended, steps: Walk[np.ndarray], query: int, shown: list[int], products: bool) -> str:
    of_keys, of_scores = cells.limit(steps.k), cells.limit(steps.scores)  # q may be many times as large as any k
    asking = cells.token(made.queries[query], "query")
    rows = [] if products else [[asking, _ring("query", steps.q, cells.limit(steps.q), "q"), ""]]
    for i in shown:
        name, score = cells.token(made.keys[i], "key"), cells.number(steps.scores[i], of_scores)
        middle = _terms(steps.q, steps.k[i]) if products else _ring("plain", steps.k[i], of_keys, "k")
        rows.append([name, middle, score])
    head = [story.COLUMNS["key"], story.COLUMNS["products"] if products else story.COLUMNS["q and k"], "q·k"]
    return cells.table(head, rows, caption=story.CAPTIONS["scores"])


def _masked(made: Attended, steps: Walk[np.ndarray], shown: list[int]) -> str:
    of_scores, of_scaled = cells.limit(steps.scores), cells.limit(steps.scaled)
    rows = [
        [
            cells.token(made.keys[i], "key"),
            cells.number(steps.scores[i], of_scores),
            cells.number(steps.scaled[i], of_scaled),
            cells.number(steps.masked[i], of_scaled),
        ]
        for i in shown
    ]
    divided = story.COLUMNS["scaled"].format(divisor=short(1 / made.layer.config.factor))
    head = [story.COLUMNS["key"], "q·k", divided, story.COLUMNS["masked"]]
    return cells.table(head, rows, caption=story.CAPTIONS["masked"])


def _weights(made: Attended, steps: Walk[np.ndarray], shown: list[int]) -> str:
    def row(name: str, exponential: np.floating, weight: np.floating) -> list[str]:
        return [name, short(exponential), cells.bar(weight), cells.weight(weight)]

    rows = [row(cells.token(made.keys[i], "key"), steps.exponentials[i], steps.weights[i]) for i in shown]
    if others := _others(made, shown):
        rows.append(row(story.other_keys(len(others)), steps.exponentials[others].sum(), steps.weights[others].sum()))
    total = short(steps.total)
    head = [story.COLUMNS["key"], story.COLUMNS["exponential"], f"÷ {total}", story.COLUMNS["weight"]]
    foot = [story.COLUMNS["sum"], total, "", short(steps.weights.sum())]
    return cells.table(head, rows, foot, caption=story.CAPTIONS["weights"])


def _blend(made: Attended, steps: Walk[np.ndarray], shown: list[int]) -> str:
    of_values, of_weighted = cells.limit(steps.v), cells.limit(steps.weighted, steps.context)
    rows = [
        [
            cells.token(made.keys[i], "key"),
            f'{cells.weight(steps.weights[i])}<span class="op">×</span>',
            f'{cells.vector(steps.v[i], of_values, label="v")}<span class="op">=</span>',
            cells.vector(steps.weighted[i], of_weighted, label=story.COLUMNS["weighted"]),
        ]
        for i in shown
    ]
    if others := _others(made, shown):
        rest = cells.vector(steps.weighted[others].sum(0), of_weighted, label=story.COLUMNS["weighted"])
        rows.append([story.other_keys(len(others)), cells.weight(steps.weights[others].sum()), "", rest])
    head = [story.COLUMNS["key"], story.COLUMNS["weight"], "v", story.COLUMNS["weighted"]]
    foot = [story.COLUMNS["sum"], "", "", f'{_ring("value", steps.context, of_weighted, "z")}<span class="op">= z</span>']
    return cells.table(head, rows, foot, caption=story.CAPTIONS["context"])


def _output(made: Attended, head: int, query: int) -> str:
    """z of every head and what it adds to the output; below, both put together."""
    blends = made.trace.context[0, :, query]
    adds = contributions(blends, made.layer.to_output).numpy()
    context, output = blends.numpy(), made.trace.output[0, query].numpy()
    of_blends, of_output = cells.limit(context), cells.limit(adds, output)
    rows = [
        [
            story.HEADINGS["head"].format(head=i + 1),
            _ring("value" if i == head else "plain", context[i], of_blends, "z"),
            cells.vector(adds[i], of_output, label=story.COLUMNS["adds"]),
        ]
        for i in range(len(context))
    ]
    if (bias := getattr(made.layer.to_output, "bias", None)) is not None:
        rows.append([story.COLUMNS["bias"], "", cells.vector(bias.numpy(), of_output, label=story.COLUMNS["bias"])])
    joined = cells.vector(rearrange(context, "head head_dim -> (head head_dim)"), of_blends, label="z")
    times = '<span class="op">× W_O =</span>' if made.layer.config.output_projection else ""
    foot = [story.COLUMNS["concatenated"], joined + times, _ring("output", output, of_output, story.COLUMNS["output"])]
    return cells.table(["", "z", story.COLUMNS["adds"]], rows, foot, caption=story.CAPTIONS["together"])


def _others(made: Attended, shown: list[int]) -> list[int]:
    return sorted(set(range(len(made.keys))) - set(shown))


def _ring(role: str, vector: np.ndarray, limit: float, label: str) -> str:
    """A vector ringed in the colour of its role."""
    return f'<span class="ring {role}">{cells.vector(vector, limit, label=label)}</span>'


def _terms(q: np.ndarray, k: np.ndarray) -> str:
    """The multiplications whose sum is q·k."""
    terms = " + ".join(f"{_factor(one)}·{_factor(other)}" for one, other in zip(q, k, strict=True))
    return f'<span class="terms">{terms} =</span>'


def _factor(value: float) -> str:
    text = short(value)
    return f"({text})" if text.startswith("−") else text

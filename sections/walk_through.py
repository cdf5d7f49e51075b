"""The heart of the app: one query in one head, from its vector to its blend, every number shown."""

import streamlit as st
import torch

from models.trace import Step
from models.walk import Walk, walk
from sections import story
from sections.choices import switch
from sections.scene import Computation, Source
from viz import cells
from viz.numbers import percent, short

FEW = 12
"""Keys listed one by one; of more, those with the largest weights."""
NAMED = 3
"""Keys named in the sentence; the others are the rest."""


def render(made: Computation, head: int, query: int) -> None:
    """The walk of one query in one head, both counted from 0."""
    st.html(f'<p class="say">{sentence(made, head, query)}</p>')
    theme = st.context.theme.type or "light"
    for steps, picture in pieces(made, head, query, **_details(made)):
        words, room = st.columns([2, 3], gap="medium")
        for step in steps:
            words.markdown(
                f"**{story.STEPS[step].title}** ${formula(made, step, query, theme)}$  \n:small[{remark(made, step)}]"
            )
        room.html(picture)


def sentence(made: Computation, head: int, query: int) -> str:
    """What the query takes from where, as HTML."""
    weights, name = made.trace.weights[0, head, query], cells.token(made.queries[query], "query")
    if not weights.any():
        return story.sees_nothing(name)
    order = [i for i in weights.argsort(descending=True, stable=True).tolist() if weights[i] > 0]
    shares = [(percent(weights[i].item()), cells.token(made.keys[i], "key")) for i in order[:NAMED]]
    rest = percent(weights[order[NAMED:]].sum().item()) if len(order) > NAMED else None
    return story.sentence(name, shares, rest)


def pieces(
    made: Computation, head: int, query: int, *, products: bool, every_key: bool
) -> list[tuple[list[Step], str]]:
    """The pictures in order, as HTML, each with the steps it shows."""
    steps = walk(made.trace, head, query)
    shown = _shown(steps, every_key)
    return [
        ([Step.Q], _query(made, steps, query)),
        ([Step.SCORES], _scores(made, steps, shown, products)),
        ([Step.SCALED, Step.MASKED], _masked(made, steps, shown)),
        ([Step.WEIGHTS], _weights(made, steps, shown)),
        ([Step.CONTEXT], _blend(made, steps, shown)),
    ]


def formula(made: Computation, step: Step, query: int, theme: str) -> str:
    """A step's formula in LaTeX for one query, counted from 0, in the colours of a theme."""
    config = made.layer.config
    return story.formula(
        step,
        theme,
        query=query + 1,
        heads=config.num_heads,
        divisor=story.divisor(config.width, config.factor),
    )


def remark(made: Computation, step: Step) -> str:
    """What a step is for, or what is special about it here."""
    if step is Step.MASKED and made.visible is None:
        return story.NO_MASK
    if step is Step.SCALED and not made.scene.scale:
        return story.NOT_SCALED
    if step is Step.SCALED and made.scene.source is Source.WORKED_EXAMPLE:
        return story.EIGHT
    if step is Step.OUTPUT and not made.layer.config.output_projection:
        return story.NO_OUTPUT_PROJECTION
    return story.STEPS[step].sentence


def _details(made: Computation) -> dict[str, bool]:
    """What is shown on demand, where there is anything to show."""
    with st.container(horizontal=True):
        return {
            "products": made.layer.config.width <= cells.NUMBERS_FIT and switch("products", False),
            "every_key": len(made.keys) > FEW and switch("every_key", False),
        }


def _shown(steps: Walk, every_key: bool) -> list[int]:
    """The keys to list, in the order of the text: all, or those with the largest weights."""
    if every_key or steps.weights.numel() <= FEW:
        return list(range(steps.weights.numel()))
    return sorted(steps.weights.topk(FEW).indices.tolist())


def _query(made: Computation, steps: Walk, query: int) -> str:
    name = cells.token(made.queries[query], "query")
    x = made.inputs["query"][query]
    return cells.table(
        ["", story.COLUMNS["input"], "q"],
        [[name, cells.vector(x, cells.limit(x), label="x"), _ring("query", steps.q, "q")]],
        caption=story.CAPTIONS["query"],
    )


def _scores(made: Computation, steps: Walk, shown: list[int], products: bool) -> str:
    top = cells.limit(steps.k)
    head = [story.COLUMNS["key"], "k", *([story.COLUMNS["products"]] if products else []), "q·k"]
    rows = []
    for i in shown:
        terms = " + ".join(f"{_factor(q)}·{_factor(k)}" for q, k in zip(steps.q, steps.k[i], strict=True))
        rows.append(
            [
                cells.token(made.keys[i], "key"),
                cells.vector(steps.k[i], top, label="k"),
                *([f'<span class="terms">{terms} =</span>'] if products else []),
                cells.number(steps.scores[i].item(), cells.limit(steps.scores)),
            ]
        )
    return cells.table(head, rows, caption=story.CAPTIONS["scores"])


def _masked(made: Computation, steps: Walk, shown: list[int]) -> str:
    config = made.layer.config
    head = [story.COLUMNS["key"], "q·k", f"÷ {short(1 / config.factor)}", story.COLUMNS["masked"]]
    scored, scaled = cells.limit(steps.scores), cells.limit(steps.scaled)
    rows = [
        [
            cells.token(made.keys[i], "key"),
            cells.number(steps.scores[i].item(), scored),
            cells.number(steps.scaled[i].item(), scaled),
            cells.number(steps.masked[i].item(), scaled),
        ]
        for i in shown
    ]
    return cells.table(head, rows, caption=story.CAPTIONS["masked"])


def _weights(made: Computation, steps: Walk, shown: list[int]) -> str:
    total = short(steps.total.item())
    head = [story.COLUMNS["key"], story.COLUMNS["exponential"], f"÷ {total}", story.COLUMNS["weight"]]
    rows = [
        [
            cells.token(made.keys[i], "key"),
            short(steps.exponentials[i].item()),
            cells.bar(steps.weights[i].item()),
            cells.weight(steps.weights[i].item()),
        ]
        for i in shown
    ]
    others = _others(steps, shown)
    if others:
        rows.append(
            [
                story.HINTS["others"].format(count=len(others)),
                short(steps.exponentials[others].sum().item()),
                cells.bar(steps.weights[others].sum().item()),
                cells.weight(steps.weights[others].sum().item()),
            ]
        )
    foot = [story.COLUMNS["sum"], total, "", short(steps.weights.sum().item())]
    return cells.table(head, rows, foot, caption=story.CAPTIONS["weights"])


def _blend(made: Computation, steps: Walk, shown: list[int]) -> str:
    head = [story.COLUMNS["key"], story.COLUMNS["weight"], "v", story.COLUMNS["weighted"]]
    top = cells.limit(steps.v)
    rows = [
        [
            cells.token(made.keys[i], "key"),
            cells.weight(steps.weights[i].item()) + '<span class="op">×</span>',
            cells.vector(steps.v[i], top, label="v") + '<span class="op">=</span>',
            cells.vector(steps.weighted[i], top, label=story.COLUMNS["weighted"]),
        ]
        for i in shown
    ]
    others = _others(steps, shown)
    if others:
        rest = steps.weighted[others].sum(0)
        rows.append(
            [
                story.HINTS["others"].format(count=len(others)),
                cells.weight(steps.weights[others].sum().item()),
                "",
                cells.vector(rest, top, label=story.COLUMNS["weighted"]),
            ]
        )
    foot = [f"{story.COLUMNS['sum']} = z", "", "", _ring("value", steps.context, "z", top)]
    return cells.table(head, rows, foot, caption=story.CAPTIONS["context"])


def _others(steps: Walk, shown: list[int]) -> list[int]:
    return sorted(set(range(steps.weights.numel())) - set(shown))


def _ring(role: str, vector: torch.Tensor, label: str, top: float | None = None) -> str:
    """A vector in the colour of its role."""
    return f'<span class="ring {role}">{cells.vector(vector, top or cells.limit(vector), label=label)}</span>'


def _factor(value: torch.Tensor) -> str:
    text = short(value.item())
    return f"({text})" if text.startswith("−") else text

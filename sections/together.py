"""The heads together: z of every head, concatenated, times W_O, the output row."""

import streamlit as st
from einops import rearrange

from models.trace import Step
from models.walk import contributions
from sections import story
from sections.scene import Computation
from sections.walk_through import formula, remark
from viz import cells


def render(made: Computation, head: int, query: int) -> None:
    """Every head's part in the output of one query; the chosen head is ringed. Both are counted from 0."""
    st.markdown(f"##### {story.HEADINGS['together']}")
    words, room = st.columns([2, 5], gap="medium")
    theme = st.context.theme.type or "light"
    title = story.STEPS[Step.OUTPUT].title
    words.markdown(f"**{title}** ${formula(made, Step.OUTPUT, query, theme)}$  \n:small[{remark(made, Step.OUTPUT)}]")
    room.html(picture(made, head, query))


def picture(made: Computation, head: int, query: int) -> str:
    """z of every head and what it adds to the output; below, both put together. HTML."""
    context = made.trace.context[0, :, query]
    output = made.trace.output[0, query]
    adds = contributions(context, made.layer.to_output)
    blend, added = cells.limit(context), cells.limit(adds, output)
    rows = [
        [
            story.HEADINGS["head"].format(head=i + 1),
            _ringed(cells.vector(context[i], blend, label="z"), i == head),
            cells.vector(adds[i], added, label=story.COLUMNS["adds"]),
        ]
        for i in range(len(context))
    ]
    joined = cells.vector(rearrange(context, "head head_dim -> (head head_dim)"), blend, label="z")
    foot = [
        story.COLUMNS["concatenated"],
        joined if not made.layer.config.output_projection else f'{joined}<span class="op">× W_O =</span>',
        f'<span class="ring output">{cells.vector(output, added, label=story.COLUMNS["output"])}</span>',
    ]
    head_row = ["", "z", story.COLUMNS["adds"]]
    return cells.table(head_row, rows, foot, caption=story.CAPTIONS["together"])


def _ringed(vector: str, chosen: bool) -> str:
    return f'<span class="ring value">{vector}</span>' if chosen else vector

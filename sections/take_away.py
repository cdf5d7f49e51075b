"""Take it with you: the numbers and the view as files."""

from dataclasses import asdict

import streamlit as st

from models.export import to_json, to_npz
from models.trace import AXES, Step
from sections import arithmetic, focus, heads, story, walk_through
from sections.attended import Attended
from sections.walk_through import Frame
from viz.cells import token
from viz.page import page


def render(made: Attended, step: Step, head: int, walk: Frame) -> None:
    """The downloads, offered while this is open, and each made when it is asked for. Head is counted from 0."""
    section = st.expander(story.HEADINGS["take_away"], key="files", on_change="rerun")
    if not section.open:
        return
    theme = st.context.theme.type or "light"
    files = {
        "attention.npz": lambda: to_npz(_arrays(made), _about(made)),
        "attention.json": lambda: to_json(_arrays(made), _about(made)),
        "attention.html": lambda: _page(made, step, head, walk.query, theme),
    }
    with section:
        with st.container(horizontal=True):
            for name, make in files.items():
                st.download_button(
                    story.DOWNLOADS[name], make, name, on_click="ignore", icon=":material/download:", help=story.HELP[name]
                )
        st.caption(story.HINTS["address"])


def _arrays(made: Attended) -> dict:
    trace = {str(step): made.trace[step][0] for step in Step}
    inputs = {f"input.{name}": vectors for name, vectors in made.inputs.items()}
    matrices = {f"layer.{name}": weight.detach() for name, weight in made.layer.state_dict().items()}
    visible = {} if made.visible is None else {"visible": made.visible}
    return {name: tensor.numpy() for name, tensor in (trace | inputs | matrices | visible).items()}


def _about(made: Attended) -> dict:
    return {
        "queries": made.queries,
        "keys": made.keys,
        "axes": {str(step): AXES[step] for step in Step},
        "config": asdict(made.layer.config),
        **made.about,
    }


def _page(made: Attended, step: Step, head: int, query: int, theme: str) -> str:
    """The view in one file."""
    pictures = arithmetic.pictures(made, head, query, products=True, every_key=True)

    return page(
        story.TITLE,
        [
            f"<h1>{story.TITLE}</h1><p>{' '.join(token(label) for label in made.queries)}</p>",
            f'<p class="say">{walk_through.sentence(made, head, query)}</p>',
            *([heads.figure(made, step)] if made.num_heads > 1 else []),
            focus.figure(made, step, head),
            *(
                walk_through.told(made, steps, theme) + picture
                for steps, picture in zip(arithmetic.STEPS, pictures, strict=True)
            ),
        ],
        dark=theme == "dark",
    )

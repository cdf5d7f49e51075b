"""Raw weights, weights times the length of what they weigh, and rollout: three readings of one head, side by side."""

import streamlit as st
from torch import Tensor

from models.pretrained.norms import head_norms
from models.pretrained.rollout import rollout
from sections import story
from sections.attend import First, pick_query
from sections.attended import Attended
from sections.choices import Look
from sections.pictures import show
from sections.pretrained.runs import Ran
from sections.widgets import whole_number
from viz import cells, heatmaps
from viz.numbers import short


def render(ran: Ran, layer: int, look: Look, first: First) -> None:
    """The three maps, each with what it claims, and one query's row in all of them."""
    made = ran.attended(layer)
    st.warning(story.NO_EXPLANATION)
    head = whole_number("head", 1, made.num_heads, width=130, default=first.head) - 1
    query = pick_query(made, head, first.query)
    read = {
        "weights": made.trace.weights[0, head],
        "norms": head_norms(made.layer, made.trace)[0, head],
        "rollout": rollout(ran.run.weights[: layer + 1])[layer],
    }
    columns = st.columns(len(read), gap="medium", vertical_alignment="bottom")
    for (name, values), column in zip(read.items(), columns, strict=True):
        with column:
            title = story.READINGS[name].title.format(layer=layer + 1, head=head + 1)
            st.markdown(f"**{title}**  \n:small[{story.READINGS[name].says}]")
            show(_figure(made, values, name), f"reading-{name}", look, alt=title)
    st.html(_row(made, query, read))


def _figure(made: Attended, values: Tensor, name: str):
    """Norms are no shares: their scale ends at the largest."""
    hidden = None if made.visible is None else (~made.visible).numpy()
    figure = heatmaps.focus(values.numpy(), made.queries, made.keys, signed=False, hidden=hidden)
    if name == "norms":
        most = float(values.max()) or 1.0
        ticks = {"tickvals": [0, most / 2, most], "ticktext": ["0", short(most / 2), short(most)]}
        figure.update_layout(coloraxis={"cmax": most, "colorbar": ticks})
    return figure


def _row(made: Attended, query: int, read: dict[str, Tensor]) -> str:
    """One query's numbers, a row a key. HTML."""
    top = float(read["norms"][query].max()) or 1.0
    rows = [
        [
            cells.token(key, "key"),
            cells.weight(read["weights"][query, place].item()),
            cells.bar(read["norms"][query, place].item() / top),
            short(read["norms"][query, place].item()),
            cells.weight(read["rollout"][query, place].item()),
        ]
        for place, key in enumerate(made.keys)
    ]
    head = [
        cells.token(made.queries[query], "query"),
        story.COLUMNS["weights"],
        story.COLUMNS["norms"],
        "",
        story.COLUMNS["rollout"],
    ]
    return cells.table(head, rows, caption=story.CAPTIONS["readings"])

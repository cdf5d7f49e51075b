"""What goes into the layer: the vectors the tokens start from, and the matrices they meet."""

from collections.abc import Sequence

import streamlit as st
from torch import Tensor

from sections import story
from sections.attended import Attended
from viz import cells

SHOWN = 64
"""Rows listed; the downloads have all."""
FIT = 24
"""Cells with room for a number, at this width."""


def render(made: Attended) -> None:
    """Every input of the layer, a row a token; every matrix, a row for each cell of the vectors it takes."""
    section = st.expander(story.HEADINGS["vectors"], key="vectors", on_change="rerun")
    if not section.open:
        return
    with section:
        for name, vectors in made.inputs.items():
            labels = [cells.token(label, name) for label in (made.queries if name == "query" else made.keys)]
            _table(labels, vectors, story.COLUMNS["token"], f"{name}: {made.origin}")
        for name, matrix in made.layer.state_dict().items():
            if matrix.ndim == 2:  # nn.Linear keeps it transposed
                _table([str(row + 1) for row in range(matrix.shape[1])], matrix.T, "", story.MATRICES[name])


def _table(labels: Sequence[str], vectors: Tensor, first: str, second: str) -> None:
    top = cells.limit(vectors)
    rows = [
        [label, cells.vector(vector, top, label=second, fit=FIT)]
        for label, vector in zip(labels[:SHOWN], vectors[:SHOWN], strict=True)
    ]
    st.html(cells.table([first, second], rows, caption=story.CAPTIONS["vectors"]))
    if len(labels) > SHOWN:
        st.caption(story.HINTS["shown tokens"].format(shown=SHOWN, count=len(labels)))

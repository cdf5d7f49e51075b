"""The app's page, the overview alone at any size, and the cheapest page there can be, on one server."""

import streamlit as st
import torch

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import Step
from sections import attend, lab, overview, sentence
from sections.attended import Attended
from sections.choices import Look

torch.set_num_threads(1)  # as the app does


def floor() -> None:
    """Rewrites one number."""
    st.session_state.setdefault("count", 0)
    st.button("count", on_click=lambda: st.session_state.update(count=st.session_state.count + 1))
    st.markdown(f"now {st.session_state.count}")


def alone() -> None:
    """The sentence and all heads of as many layers, heads and tokens as the address asks for; the app has limits."""
    layers = _layers(*(int(st.query_params[name]) for name in ("layers", "heads", "tokens")))

    @st.fragment
    def ask() -> None:
        sentence.render(layers[0], 0, st.session_state.setdefault("query", 1) - 1)

    ask()
    overview.render(layers[0], Look(), Step.WEIGHTS, [made.trace for made in layers], 0)


@st.cache_resource
def _layers(layers: int, heads: int, tokens: int) -> list[Attended]:
    torch.manual_seed(0)
    names, inputs = tuple(f"token{n}" for n in range(tokens)), 4 * torch.randn(tokens, 8 * heads)

    def one() -> Attended:
        layer = MultiHeadAttention(AttentionConfig(8 * heads, heads)).requires_grad_(False)
        trace = layer.trace(inputs[None])
        return Attended(
            queries=names, keys=names, inputs={"query": inputs}, visible=None, layer=layer, trace=trace, origin="random"
        )

    return [one() for _ in range(layers)]


st.set_page_config(layout="wide")
app = st.Page(lambda: lab.draw(attend.render), title="app", url_path="app", default=True)
others = [st.Page(page, title=page.__name__, url_path=page.__name__) for page in (floor, alone)]
st.navigation([app, *others], position="hidden").run()

"""The main page: what was typed, who looks at whom, and every number in between."""

import streamlit as st

from sections import chain, focus, heads, sentence, story, take_away, together, vectors, walk_through
from sections.choices import Places, choose, one_of, whole_number
from sections.scene import MAX_TOKENS, Computation, Refused, Scene, Source, compute
from models.trace import QUERY_BY_KEY, Step
from viz.cells import STYLE


def render() -> None:
    """The whole page, top to bottom."""
    st.html(STYLE)
    st.markdown(f"#### {story.TITLE} :gray[:small[· {story.TAGLINE}]]")
    scene, places = choose()
    _say_what_is_cut(scene, places)
    try:
        made = compute(scene)
    except Refused as refusal:
        places[refusal.choice].error(refusal.reason)
        return
    _look(made)
    vectors.render(made)


@st.fragment
def _look(made: Computation) -> None:
    """Everything that follows the chosen query, head and step; nothing here computes attention again."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        room = st.container(width="stretch")
        query = whole_number("query", 1, len(made.queries), width=120) - 1
        many = made.scene.num_heads > 1
        head = whole_number("head", 1, made.scene.num_heads, width=120) - 1 if many else 0
    with room:
        sentence.render(made, head, query)
    left, right = st.columns([5, 7], gap="large")
    with left:
        step = Step(one_of("step", list(QUERY_BY_KEY), default=Step.WEIGHTS))
        if many:
            heads.render(made, step)
        focus.render(made, step, head, query)
    with right:
        walk_through.render(made, head, query)
    together.render(made, head, query)
    chain.render(made, head)
    take_away.render(made, step, head, query)


def _say_what_is_cut(scene: Scene, places: Places) -> None:
    for choice in ("text", "context"):
        count = len(scene.split(choice))
        if choice in places and count > MAX_TOKENS:
            places[choice].warning(story.too_many_tokens(count, MAX_TOKENS))

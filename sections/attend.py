"""The main page: what was typed, who looks at whom, and every number in between."""

import streamlit as st

from models.trace import QUERY_BY_KEY, Step
from sections import chain, focus, heads, sentence, story, take_away, vectors, walk_through
from sections.choices import Look, Places, choose, one_of, whole_number
from sections.scene import MAX_TOKENS, Computation, Refused, compute
from viz.cells import STYLE


def render() -> None:
    """The whole page, top to bottom."""
    st.html(f'{STYLE}<div class="title"><h1>{story.TITLE}</h1><p>{story.TAGLINE}</p></div>')
    scene, look, places = choose()
    try:
        made = compute(scene)
    except Refused as refusal:
        places[refusal.choice].error(refusal.reason)
        return
    _remark(made, places)
    _draw(made, look)


def _draw(made: Computation, look: Look) -> None:
    """Every view of one computation. Only what follows the query is drawn again when it changes."""
    top = st.container()
    left, right = st.columns([5, 7], gap="large")
    many = made.scene.num_heads > 1
    with left, st.container(key="maps"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            step = Step(one_of("step", list(QUERY_BY_KEY), default=Step.WEIGHTS))
            head = whole_number("head", 1, made.scene.num_heads, width=130) - 1 if many else 0
        if many:
            heads.render(made, look, step)
        focus.render(made, look, step, head)
    walk = walk_through.frame(made, right)
    with top:
        _ask(made, look, head, walk)
    chain.render(made, look, head)
    vectors.render(made)
    take_away.render(made, step, head, walk)


@st.fragment
def _ask(made: Computation, look: Look, head: int, walk: walk_through.Frame) -> None:
    """The query, and what follows it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        room = st.container(width="stretch")
        query = whole_number("query", 1, len(made.queries), width=150) - 1
    with room:
        sentence.render(made, head, query)
    walk_through.fill(walk, made, look, head, query)


def _remark(made: Computation, places: Places) -> None:
    """What must be said of a scene that can be drawn."""
    places["source"].caption(story.SOURCES[made.scene.source].format(seed=made.scene.seed))
    for choice in ("text", "context"):
        count = len(made.scene.split(choice))
        if choice in places and count > MAX_TOKENS:
            places[choice].warning(story.too_many_tokens(count, MAX_TOKENS))
    if made.visible is not None and (blind := int((~made.visible).all(dim=-1).sum())):
        places["mask"].warning(story.blind_queries(blind))

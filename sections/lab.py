"""What every page stands on: title, choices, and the computation or the reason why there is none."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from models.recipes import RECIPES
from sections import attend, block, self_and_cross, story
from sections.choices import Look, Places, choose
from sections.scene import MAX_TOKENS, Computation, Refused, Scene, Source, compute
from viz.cells import STYLE

Page = Callable[[Computation, Look], None]

PAGES: dict[str, Page] = {"attention": attend.render, "self-and-cross": self_and_cross.render, "block": block.render}
"""Every page by its name in the address; the first is the home page."""


def run() -> None:
    """Choices above, the chosen page below."""
    pages = [
        st.Page(partial(draw, render), title=story.PAGES[name], url_path=name, default=render is attend.render)
        for name, render in PAGES.items()
    ]
    st.navigation(pages, position="top").run()


def draw(render: Page) -> None:
    """Choices, and the page where there is something to compute."""
    st.html(f'{STYLE}<div class="title"><h1>{story.TITLE}</h1><p>{story.TAGLINE}</p></div>')
    scene, look, places = choose()
    try:
        made = compute(scene)
    except Refused as refusal:
        places[refusal.choice].error(refusal.reason)
        return
    _remark(made, places)
    render(made, look)


def _remark(made: Computation, places: Places) -> None:
    """What must be said of a scene that can be drawn."""
    places["source"].caption(_origin(made.scene))
    for choice in ("text", "context"):
        count = len(made.scene.split(choice))
        if choice in places and count > MAX_TOKENS:
            places[choice].warning(story.too_many_tokens(count, MAX_TOKENS))
    if made.visible is not None and (blind := int((~made.visible).all(dim=-1).sum())):
        places["mask"].warning(story.blind_queries(blind))


def _origin(scene: Scene) -> str:
    said = story.SOURCES[scene.source].format(seed=scene.seed)
    if scene.source is Source.WORKED_EXAMPLE or scene.recipe == Scene.recipe:
        return said
    recipe = RECIPES[scene.recipe]
    return f"**{recipe.title}** ({recipe.source}). {recipe.remark} {said}"

"""What every page stands on: title, choices, and the computation or the reason why there is none."""

from collections.abc import Callable
from functools import partial
from html import escape

import streamlit as st

from models.recipes import RECIPES
from models.twin import Agreement
from sections import attend, block, crash, self_and_cross, shapes, story
from sections.choices import Look, Places, choose
from sections.scene import MAX_TOKENS, Computation, Refused, Scene, Source, agree, compute
from viz.cells import STYLE

EQUAL = 1e-12
"""The largest difference in float64 that is called equal: some thousand roundings of numbers around 1."""

Page = Callable[[Computation, Look], None]



def run() -> None:
    """One page, chosen above; every page by its name in the address."""
    pages = {
        "attention": partial(draw, attend.render),
        "shapes": partial(draw, shapes.render),
        "crash": crash.render,
        "self-and-cross": partial(draw, self_and_cross.render),
        "block": partial(draw, block.render),
    }
    listed = [
        st.Page(page, title=story.PAGES[name], url_path=name, default=name == "attention")
        for name, page in pages.items()
    ]
    st.html(STYLE)
    st.navigation(listed, position="top").run()


def draw(render: Page) -> None:
    """Choices, and a page of what they make, where there is something to compute."""
    st.html(f'<div class="title"><h1>{story.TITLE}</h1><p>{story.TAGLINE}</p></div>')
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
    places["source"].html(f'<p class="remark">{_badge(agree(made.scene))} {_origin(made.scene)}</p>')
    for choice in ("text", "context"):
        count = len(made.scene.split(choice))
        if choice in places and count > MAX_TOKENS:
            places[choice].warning(story.too_many_tokens(count, MAX_TOKENS))
    if made.visible is not None and (blind := int((~made.visible).all(dim=-1).sum())):
        places["mask"].warning(story.blind_queries(blind))


def _badge(agreement: Agreement) -> str:
    """Whether torch's own attention gives the same, and how far apart they are. HTML."""
    measured = [name for name in (agreement.weights, agreement.output) if name is not None]
    if not measured:
        return f'<span class="badge">{escape(agreement.reason)}</span>'
    good = max(measured) <= EQUAL
    title = escape(story.agreement(agreement.weights, agreement.output, agreement.reason))
    mark = story.EQUALS if good else story.DIFFERS
    return f'<span class="badge {"good" if good else "bad"}" title="{title}">{mark} {agreement.function}</span>'


def _origin(scene: Scene) -> str:
    said = story.SOURCES[scene.source].format(seed=scene.seed)
    if scene.source is Source.WORKED_EXAMPLE or scene.recipe == Scene.recipe:
        return said
    recipe = RECIPES[scene.recipe]
    return f"<b>{recipe.title}</b> ({recipe.source}). {recipe.remark} {said}"

"""What every page stands on: title, choices, and the computation or the reason why there is none."""

from collections.abc import Callable
from html import escape

import streamlit as st

from models.recipes import RECIPES
from models.twin import Agreement
from sections import attend, block, brought, crash, in_torch, self_and_cross, shapes, story, trained
from sections.choices import Chosen, Look, Places, choose, write
from sections.limits import MAX_TOKENS
from sections.pretrained import page as pretrained
from sections.scene import Computation, Refused, Scene, Source, agree, compute
from sections.server import TURN
from viz.cells import STYLE

EQUAL = 1e-12
"""The largest difference in float64 that is called equal: some thousand roundings of numbers around 1."""

Page = Callable[[Computation, Look], None]
HOME = "attention"
PAGES: dict[str, Page] = {
    HOME: attend.render,
    "shapes": shapes.render,
    "torch": in_torch.render,
    "self-and-cross": self_and_cross.render,
    "block": block.render,
}
"""Pages of what the choices make, by their names in the address."""
BARE: dict[str, Callable[[], None]] = {
    "trained": trained.render,
    "pretrained": pretrained.render,
    "brought": brought.render,
    "crash": crash.render,
}
"""Pages that stand by themselves."""


def run() -> None:
    """Choices, which outlive a change of page, and under them the page chosen at the top."""
    every = PAGES | BARE
    pages = [st.Page(every[name], title=title, url_path=name, default=name == HOME) for name, title in story.PAGES.items()]
    page = st.navigation(pages, position="top")
    name = page.url_path or HOME
    if name in BARE:
        st.html(STYLE)
        page.run()
    else:  # not by page.run(), which would forget what was typed when the page changes
        _made(PAGES[name], _choices())


def draw(render: Page) -> None:
    """Choices, and a page of what they make, styled as in the app."""
    _made(render, _choices())


def _choices() -> Chosen:
    """Title and choices."""
    st.html(f'{STYLE}<div class="title"><h1>{story.TITLE}</h1><p>{story.TAGLINE}</p></div>')
    with TURN:
        return choose()


@st.fragment
def _made(render: Page, chosen: Chosen) -> None:
    """The texts, and a page of what they make, or the reason why there is none. Typing runs this, and not the choices."""
    with TURN:
        scene, places = write(chosen)
        try:
            made = compute(scene)
        except Refused as refusal:
            places[refusal.choice].error(refusal.reason)
            return
        _remark(made, places)
        render(made, chosen.look)


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
    if scene.source is not Source.RANDOM or scene.recipe == Scene.recipe:
        return said
    recipe = RECIPES[scene.recipe]
    return f"<b>{recipe.title}</b> ({recipe.source}). {recipe.remark} {said}"

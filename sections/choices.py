"""The choices that make a scene, where they stand, and what one decides for another."""

from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.recipes import RECIPES
from models.tokens import SPLITTERS
from models.trace import QUERY_BY_KEY, Step
from sections import story, widgets
from sections.examples import EXAMPLES, WORKED
from sections.limits import MAX_HEADS, MAX_SEED, MAX_TOKENS, MAX_WIDTH
from sections.scene import Attention, Mask, Scale, Scene, Source
from sections.widgets import DEFAULTS, line, one_of, room, select, switch, whole_number


class Look(NamedTuple):
    """Choices that change no number, only what is shown of it."""

    step: Step = Step.WEIGHTS
    products: bool = False
    every_key: bool = False
    picture: str = "svg"
    together: str = "each"
    leave_out: str = "none"
    shade: str = "map"


Places = dict[str, DeltaGenerator]
"""Under a choice, the room for a sentence about it."""


class Chosen(NamedTuple):
    """What is chosen, and the room above it for the texts."""

    scene: Scene
    look: Look
    texts: DeltaGenerator


def choose() -> Chosen:
    """Every choice but texts, head and query."""
    _complete_link()
    governed = _governed(_asked("recipe", list(RECIPES), DEFAULTS.recipe))
    texts = room("texts", 68)
    with room("examples", 32):
        _examples()
    with room("choices", 67, horizontal=True, vertical_alignment="bottom"):
        attention = Attention(one_of("attention", Attention, default=governed["attention"], width=268))
        mask = Mask(one_of("mask", Mask, width=368))
        chosen: dict[str, Any] = {"attention": attention, "mask": mask}
        if mask is Mask.WINDOW:
            chosen["width"] = whole_number("width", 0, MAX_TOKENS, width=190)
        if mask is Mask.PREFIX:
            chosen["length"] = whole_number("length", 0, MAX_TOKENS, width=150)
        recipe = _asked("recipe", list(RECIPES), DEFAULTS.recipe)
        tokens = _asked("tokens", list(SPLITTERS), DEFAULTS.tokens)
        chosen["source"] = _source(Scene(**chosen, text=_before("text", DEFAULTS.text) or "", recipe=recipe, tokens=tokens))
        if attention is not Attention.SINGLE_HEAD and chosen["source"] is Source.RANDOM:
            chosen["heads"] = whole_number("heads", 1, MAX_HEADS, width=130)
        more = st.popover(story.LABELS["more"], icon=":material/tune:")
    with more:
        computed, shown = st.columns(2, gap="medium")
        with computed:
            st.markdown(story.LABELS["to compute"])
            chosen |= _more(Scene(**chosen))
        with shown:
            st.markdown(story.LABELS["to show"])
            look = choose_look()
    return Chosen(Scene(**chosen), look, texts)


def write(chosen: Chosen) -> tuple[Scene, Places]:
    """The texts, the scene they make of what is chosen, and where to put what must be said of a choice."""
    cross = chosen.scene.attention is Attention.CROSS
    names = ("text", "context") if cross else ("text",)
    texts, places = {}, dict.fromkeys(("source", "heads", "mask"), room("remarks", 24, gap="xsmall"))
    for name, column in zip(names, chosen.texts.columns(2) if cross else [chosen.texts], strict=True):
        with column:
            texts[name] = line(name, "text of queries" if cross and name == "text" else name)
        places[name] = column
    scene = replace(chosen.scene, **texts)
    if not scene.fits(scene.source):  # another text than the worked example's: choose again
        st.rerun()
    return scene, places


def choose_look() -> Look:
    """What is shown of the numbers, and how."""
    return Look(
        step=Step(one_of("step", list(QUERY_BY_KEY), default=Step.WEIGHTS)),
        together=one_of("together", ["each", "average", "maximum"], default="each"),
        leave_out=one_of("leave_out", ["none", "special", "first"], default="none"),
        shade=one_of("shade", ["map", "row"], default="map"),
        products=switch("products", False),
        every_key=switch("every_key", False),
        picture=one_of("picture", ["svg", "png"], default="svg"),
    )


def _examples() -> None:
    def apply() -> None:
        example = EXAMPLES[st.session_state.example]
        values = {field.name: getattr(example.scene, field.name) for field in fields(example.scene)}
        chosen = {name: str(value) if isinstance(value, StrEnum) else value for name, value in values.items()}
        widgets.choose(**chosen, query=example.query, head=example.head)
        st.session_state.example = None

    st.pills(
        story.LABELS["examples"],
        list(EXAMPLES),
        format_func=story.EXAMPLES.__getitem__,
        key="example",
        on_change=apply,
        label_visibility="collapsed",
    )


def _more(scene: Scene) -> dict[str, Any]:
    chosen: dict[str, Any] = {"tokens": one_of("tokens", list(SPLITTERS))}
    chosen["recipe"] = _recipe(replace(scene, recipe=_asked("recipe", list(RECIPES), DEFAULTS.recipe)))
    drawn = scene.source is Source.RANDOM
    chosen["embed_dim"] = whole_number("embed_dim", 1, MAX_WIDTH, disabled=not drawn)
    chosen["seed"] = whole_number("seed", 0, MAX_SEED, disabled=not drawn)
    chosen["head_dim"] = whole_number(
        "head_dim", 1, MAX_WIDTH, disabled=not drawn, placeholder=story.PLACEHOLDERS["head_dim"]
    )
    if drawn and scene.attention is Attention.CROSS:
        for name in ("kdim", "vdim"):
            chosen[name] = whole_number(name, 1, MAX_WIDTH, placeholder=story.PLACEHOLDERS[name])
    if drawn and scene.num_heads > 1:
        chosen["kv_heads"] = _kv_heads(scene.num_heads)
    chosen["scale"] = Scale(one_of("scale", Scale, default=_governed(chosen["recipe"])["scale"]))
    for name in ("positions", "padding"):
        chosen[name] = switch(name, getattr(DEFAULTS, name), disabled=name == "positions" and scene.source is Source.GLASS)
    return chosen


def _kv_heads(heads: int) -> int | None:
    """From a key–value head for every head, whatever their number, down to one for all of them."""
    shares = ["all", *(str(n) for n in range(heads - 1, 0, -1) if heads % n == 0)]
    if st.session_state.get("kv_heads", "all") not in shares:
        st.session_state.kv_heads = "all"
    chosen = st.select_slider(
        story.LABELS["kv_heads"], shares, "all", key="kv_heads", bind="query-params", help=story.HELP["kv_heads"]
    )
    return None if chosen == "all" else int(chosen)


def _recipe(scene: Scene) -> str:
    def follow() -> None:
        recipe = RECIPES[st.session_state.recipe]
        governed = _governed(st.session_state.recipe)
        attention = governed["attention"] if recipe.one_head or recipe.two_sequences else Attention.MULTI_HEAD
        scale = governed["scale"]
        st.session_state.update(attention=str(attention), scale=str(scale), source=str(Source.RANDOM), head_dim=None)

    if not scene.fits_recipe:
        st.session_state.recipe = DEFAULTS.recipe  # more heads or texts than the recipe has
    chosen = select("recipe", list(RECIPES), on_change=follow)
    if not replace(scene, recipe=chosen).fits_recipe:  # on a first run the address wins; the next puts it right
        st.rerun()
    return chosen


def _before(name: str, default: str | None = None) -> Any:
    """What a choice says before its widget is drawn, for what depends on it and stands further up the page."""
    return st.session_state.get(name, st.query_params.get(name, default))


def _asked(name: str, options: list[str], default: str) -> str:
    """The same of a choice among options, or the default where it says none of them."""
    asked = _before(name)
    return asked if asked in options else default


def _governed(name: str) -> dict[str, StrEnum]:
    """The choices a recipe decides, unless they are chosen otherwise."""
    recipe = RECIPES[name]
    factor = recipe.config(64, 1 if recipe.one_head else 4).scale
    scale = {None: Scale.HEAD_DIM, 1.0: Scale.NONE}.get(factor, Scale.EMBED_DIM)
    usual = Attention.SINGLE_HEAD if recipe.one_head else Attention.MULTI_HEAD
    return {"attention": Attention.CROSS if recipe.two_sequences else usual, "scale": scale}


def _source(scene: Scene) -> Source:
    def follow() -> None:
        source = Source(st.session_state.source)
        if source is Source.WORKED_EXAMPLE:
            st.session_state.update(text=WORKED.text, attention=str(WORKED.attention), recipe=WORKED.recipe, query=1)
        if source is Source.GLASS and not scene.fits(source):
            attention = scene.attention if scene.attention is Attention.CROSS else Attention.MULTI_HEAD
            st.session_state.update(attention=str(attention), recipe=DEFAULTS.recipe)

    if not scene.fits(Source(_asked("source", list(Source), DEFAULTS.source))):
        st.session_state.source = str(Source.RANDOM)
    chosen = Source(one_of("source", Source, on_change=follow))
    if not scene.fits(chosen):  # on a first run the address wins; the next puts it right
        st.rerun()
    return chosen


def _complete_link() -> None:
    """A link that asks for the worked example and no more gets the text and the attention it has."""
    if st.query_params.get("source") != Source.WORKED_EXAMPLE or "source" in st.session_state:
        return
    missing = [name for name in ("text", "attention") if name not in st.query_params]
    widgets.choose(**{name: str(getattr(WORKED, name)) for name in missing})

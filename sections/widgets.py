"""The few kinds of widget the pages are made of, each bound to the address under its own name."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from math import isinf
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from sections import story
from sections.scene import Scene

DEFAULTS = Scene()

Head = tuple[int, int]
"""Layer and head, both counted from 0."""


def room(name: str, height: int, **settings: Any) -> DeltaGenerator:
    """A container that is `height` pixels high from the first moment, so that nothing below it jumps when it fills.

    Once the style is there (viz/cells.css) it is as high as what is in it.
    """
    return st.container(key=f"room-{name}", height=height, border=False, **settings)


def _changed(name: str, then: Callable[[], None] | None = None) -> Callable[[], None]:
    """What happens when a bound widget changes.

    Streamlit keeps the address a page was opened at, and sends it again with the next widget that comes or goes: what
    has changed since must be told to it.
    """

    def tell() -> None:
        now = st.session_state[name]
        if st.query_params.get(name, str(now)) != str(now):
            st.session_state[name] = now
        if then:
            then()

    return tell


def one_of(name: str, options: type[StrEnum] | list[str], **settings: Any) -> str:
    """A bound choice between plain names, all in sight."""
    default = str(settings.pop("default", getattr(DEFAULTS, name, None)))
    if st.session_state.get(name, default) is None:
        st.session_state[name] = default
    chosen = st.segmented_control(
        story.LABELS[name],
        [str(option) for option in options],
        default=default,
        required=True,
        key=name,
        bind="query-params",
        help=story.HELP.get(name),
        on_change=_changed(name, settings.pop("on_change", None)),
        **settings,
    )
    if chosen is None:  # the address says `name=`, which Streamlit takes for a choice of nothing
        st.rerun()
    return chosen


def whole_number(name: str, low: int, high: int, **settings: Any) -> int | None:
    """A bound number that stays between its bounds when they move. None is a value where it is the default."""
    default = settings.pop("default", getattr(DEFAULTS, name, 1))
    now = st.session_state.get(name)
    if now is not None and not low <= now <= high:
        st.session_state[name] = min(max(now, low), high)
    return st.number_input(
        story.LABELS[name],
        low,
        high,
        default if default is None else min(max(default, low), high),
        step=1,
        key=name,
        bind=_bind(name),
        help=story.HELP.get(name),
        on_change=_changed(name),
        **settings,
    )


def _bind(name: str) -> Literal["query-params"] | None:
    """No binding where the address says infinity, which is taken out: of all nonsense, only there Streamlit raises."""
    with suppress(ValueError):
        if isinf(float(st.query_params.get(name, 0))):
            st.query_params.pop(name)
            return None
    return "query-params"


def switch(name: str, default: bool, *, disabled: bool = False) -> bool:
    """A bound yes or no."""
    return st.toggle(
        story.LABELS[name],
        default,
        key=name,
        bind="query-params",
        help=story.HELP.get(name),
        disabled=disabled,
        on_change=_changed(name),
    )


def line(name: str, label: str = "", default: str | None = None) -> str:
    """A bound line of text that follows the typing."""
    return (
        st.text_input(
            story.LABELS[label or name],
            getattr(DEFAULTS, name) if default is None else default,
            key=name,
            bind="query-params",
            live="300ms",
            on_change=_changed(name),
        )
        or ""
    )


def ranked(name: str, options: Sequence[str]) -> int:
    """A bound choice among ranked options: the place of the chosen one, or of the first while it says `most`."""
    every = ["most", *options]
    if st.session_state.get(name, "most") not in every:
        del st.session_state[name]
    chosen = st.selectbox(story.LABELS[name], every, key=name, bind="query-params", width=260)
    return max(every.index(chosen) - 1, 0)


def choose(**choices: object) -> None:
    """Sets bound choices from a callback, and in the address, which a widget that is not on the page cannot do."""
    st.session_state.update(choices)
    for name, value in choices.items():
        with suppress(StreamlitAPIException):  # a widget that is on the page writes by itself, and nobody else may
            if value == getattr(DEFAULTS, name, None):
                st.query_params.pop(name, None)
            else:
                st.query_params[name] = value if isinstance(value, list) else str(value)


def select(name: str, options: list[str], **settings: Any) -> str:
    """A bound choice between plain names, one in sight."""
    default = options.index(str(getattr(DEFAULTS, name)))
    return st.selectbox(
        story.LABELS[name],
        options,
        default,
        key=name,
        bind="query-params",
        help=story.HELP.get(name),
        on_change=_changed(name, settings.pop("on_change", None)),
        **settings,
    )

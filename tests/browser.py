"""A server, a real browser and what a person does in it, for tests and benchmarks."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, Playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DESK, PHONE = {"width": 1400, "height": 1000}, {"width": 400, "height": 800}
READY = ".st-key-focus .nsewdrag"
"""The last picture of the main page to be drawn."""
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
"""While no script runs for the page."""

_SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

_STILL = """() => new Promise(resolve => { // nothing on the page has changed for a while
  let timer = setTimeout(resolve, 500)
  new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(resolve, 500) })
    .observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true}) })"""


def launch(playwright: Playwright) -> Browser:
    """Headless Chromium, the one installed on this machine."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=_SWITCHES)


@contextmanager
def serve(script: str = "app.py", *, before: Path = ROOT) -> Iterator[str]:
    """Run a script with Streamlit on a free port; gives its address once it answers.

    before: a folder where Python looks for modules first.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}", "--server.headless=true"]
    paths = {"PYTHONPATH": f"{before}{os.pathsep}{ROOT}"}
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ | paths, stdout=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        _until_healthy(f"{address}/_stcore/health", server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=10)


def _until_healthy(address: str, server: subprocess.Popen, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            with urlopen(address, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)  # no event to wait for: the port is not open yet
    raise RuntimeError(f"the server did not answer at {address} within {seconds} s")


def settle(page: Page) -> None:
    """Wait until the page stands still."""
    page.evaluate(_STILL)


def open_section(page: Page, name: str) -> None:
    """Click a section open once nothing runs or moves, as a person does: Streamlit may lose a click while it runs."""
    page.wait_for_selector(IDLE)
    settle(page)
    page.locator(f".st-key-{name} summary").click()


def address_of(page: Page) -> dict[str, str]:
    """The choices in the address."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def until_address(page: Page, name: str, value: str) -> None:
    """Wait until the address has a choice."""
    page.wait_for_function("([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value])

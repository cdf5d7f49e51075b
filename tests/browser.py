"""A server and a real browser for tests and benchmarks."""

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
from urllib.request import urlopen

from playwright.sync_api import Browser, Playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def launch(playwright: Playwright) -> Browser:
    """Headless Chromium, the one installed on this machine."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=_SWITCHES)


@contextmanager
def serve(script: str = "app.py") -> Iterator[str]:
    """Run a script with Streamlit on a free port; gives its address once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}", "--server.headless=true"]
    paths = {"PYTHONPATH": str(ROOT)}
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

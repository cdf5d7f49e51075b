"""Nothing leaves the machine: no page's browser and no server asks anybody but each other."""

from pathlib import Path

from sections import lab
from tests.browser import IDLE, serve

LISTEN = """
import os, sys

def note(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1"):
        os.write(log, f"{event} {host}\\n".encode())

log = os.open(os.path.join(os.path.dirname(__file__), "asked"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
sys.addaudithook(note)
"""
"""Runs in the server before anything else: notes every name it looks up and every machine it turns to."""


def test_no_page_asks_anybody(visit, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(LISTEN, encoding="utf-8")
    with serve(before=tmp_path) as address:
        page = visit(address)
        for name in [*lab.PAGES, *lab.BARE]:
            page.goto(f"{address}/{'' if name == lab.HOME else name}")
            page.wait_for_selector(IDLE)
            page.wait_for_load_state("networkidle")
        page.context.close()  # before its server goes
        assert (tmp_path / "asked").read_text(encoding="utf-8") == ""

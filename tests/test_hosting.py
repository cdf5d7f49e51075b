"""The demo site as strangers meet it: replicas behind nginx, really started, leaned on, and one of them killed."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from itertools import islice
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed

from benchmarks.hosting import AFTERWARDS, HABITS, ROOT, arrive, behind_proxy, megabytes, on_one_process, one_process, with_a_death
from benchmarks.visitors import Visitor
from deploy import guard, supervisor
from models import brought
from sections import lab
from tests.browser import CHROMIUM, IDLE, launch

VISITORS, SECONDS = 12, 12
NGINX = supervisor.nginx()
needs_nginx = pytest.mark.skipif(
    NGINX is None and os.environ.get("CI") != "true", reason="no nginx on this machine; Debian's package is called nginx"
)


def free_port() -> int:
    """The first of three that nobody uses, outside those the system gives away."""
    for port in range(20_000, 30_000, 10):
        with socket.socket() as first, socket.socket() as second, socket.socket() as third:
            try:
                for offset, one in enumerate((first, second, third)):
                    one.bind(("127.0.0.1", port + offset))
            except OSError:
                continue
            return port
    raise RuntimeError("no three free ports in a row")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the proxy, once both replicas answer."""
    with behind_proxy(free_port()) as (address, answering):
        assert {name for name, _ in islice(answering, 3)} == {"proxy", "replica 1", "replica 2"}
        yield address


def status(request: str | Request) -> int:
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


# ---- what needs no server ----


def fed(*messages: BackMsg):
    """What a page is taken to have sent, one after the other."""
    waiting = iter(messages)

    async def receive() -> dict:
        return {"type": "websocket.receive", "bytes": next(waiting).SerializeToString()}

    return guard._paced(receive)


def test_nobody_empties_the_cache_of_everybody():
    receive = fed(BackMsg(clear_cache=True), BackMsg(clear_cache=True), BackMsg(app_heartbeat=True))
    assert BackMsg.FromString(asyncio.run(receive())["bytes"]).app_heartbeat


def test_a_flood_is_hung_up_on():
    async def flood() -> list[str]:
        receive = fed(*[BackMsg(app_heartbeat=True)] * 200)
        return [(await receive())["type"] for _ in range(200)]

    kinds = asyncio.run(flood())
    assert kinds[: guard.MESSAGES - 1] == ["websocket.receive"] * (guard.MESSAGES - 1)
    assert kinds[-1] == "websocket.disconnect"


def test_hosting_changes_what_it_says_and_keeps_the_rest():
    code = (
        "from streamlit import config\n"
        "config._main_script_path = 'deploy/hosted.py'\n"
        "names = 'browser.gatherUsageStats runner.postScriptGC client.showErrorDetails server.maxUploadSize'\n"
        "print(*[config.get_option(name) for name in names.split()], config.get_option('server.allowedHosts'))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said == "False False none 16 ['localhost', '127.0.0.1']\n"
    assert brought.MOST_BYTES == 16 * 2**20


def test_without_nginx_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="apt-get install nginx.*streamlit run deploy/hosted.py"):
        supervisor.serve(2, "127.0.0.1", 1)


@needs_nginx
def test_a_port_in_use_ends_it_with_a_reason():
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        command = [sys.executable, "-m", "deploy", f"--port={port}"]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and "proxy ended with 1 before it ever answered" in ended.stderr


# ---- what every answer carries ----


@needs_nginx
@pytest.mark.parametrize("path", ["/", "/block", "/favicon.png", "/_stcore/health", "/_stcore/host-config", "/media/x"])
def test_every_answer_is_guarded(site, path):
    try:
        answer = urlopen(site + path, timeout=10)
    except HTTPError as error:
        answer = error
    with answer:
        for name, value in guard.HEADERS.items():
            assert answer.headers.get_all(name) == [value]


@needs_nginx
@pytest.mark.parametrize("path", ["metrics", "metrics/", "agent/interact", "agent/openapi.json", "agent/mcp"])
def test_what_strangers_have_no_use_for_is_closed(site, path):
    assert status(f"{site}/_stcore/{path}") == 404
    assert status(Request(f"{site}/_stcore/{path}", data=b"{}", method="POST")) == 404


@needs_nginx
@pytest.mark.parametrize(
    "said, code",
    [
        ({"Host": "localhost"}, 101),
        ({"Host": "localhost", "Origin": "http://localhost"}, 101),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost", "Origin": "http://evil.example"}, 403),
        ({"Host": "localhost", "Origin": "null"}, 403),
        ({"Host": "localhost", "Origin": "http://["}, 403),
    ],
)
def test_only_the_site_s_own_names_and_pages_get_a_session(site, said, code):
    connection = HTTPConnection(site.removeprefix("http://"), timeout=10)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    connection.request("GET", "/_stcore/stream", headers=upgrade | said | {"Sec-WebSocket-Key": "A" * 22 + "=="})
    assert connection.getresponse().status == code
    connection.close()


@needs_nginx
def test_every_page_works_under_the_policy(site):
    if CHROMIUM is None:
        pytest.skip("no Chromium or Chrome on this machine")
    wrong = []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.on("console", lambda message: "Content Security" in message.text and wrong.append((page.url, message.text)))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url.startswith((site, "data:", "blob:")) or wrong.append(request.url))
        for name in [*lab.PAGES, *lab.BARE]:
            page.goto(f"{site}/{'' if name == lab.HOME else name}?source=random&attention=multi-head&text=one+two+three")
            page.wait_for_selector(IDLE, timeout=30_000)
            page.wait_for_load_state("networkidle")
            assert not page.locator("[data-testid=stException]").count()
        browser.close()
    assert not wrong


# ---- one visitor and two replicas ----


@needs_nginx
def test_a_download_comes_whole_however_many_runs_end_before(site):
    async def visit() -> list[bytes]:
        (visitor,) = await arrive(site, 1)
        files = []
        for number in range(3):
            path = await visitor.make(number)
            for query in (2, 3, 4):
                await visitor.change("query", query)
            files.append(await visitor.fetch(path))
        await visitor.close()
        return files

    archive, text, page = asyncio.run(visit())
    assert archive[:2] == b"PK" and text.endswith(b"}") and page.endswith(b"</html>\n")


@needs_nginx
def test_an_upload_finds_the_replica_of_its_session(site):
    """With the cookie of each of many visitors, whichever replica it leads to."""
    with urlopen(f"{site}/_stcore/health", timeout=10) as answer:
        cookies = SimpleCookie("; ".join(answer.headers.get_all("Set-Cookie")))
    token = cookies["_streamlit_xsrf"].value

    async def visit() -> list[int]:
        visitors = await arrive(site, 6)
        target = visitors[0]
        body = (
            b'--part\r\nContent-Disposition: form-data; name="file"; filename="a.npz"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n" + np.random.bytes(2**20) + b"\r\n--part--\r\n"
        )
        answers = [
            status(
                Request(
                    f"{site}/_stcore/upload_file/{target.session}/file-1",
                    data=body,
                    method="PUT",
                    headers={
                        "Content-Type": "multipart/form-data; boundary=part",
                        "Cookie": f"{visitor.cookie}; _streamlit_xsrf={token}",
                        "X-Xsrftoken": token,
                    },
                )
            )
            for visitor in visitors
        ]
        for visitor in visitors:
            await visitor.close()
        return answers

    assert asyncio.run(visit()) == [204] * 6


@needs_nginx
def test_too_many_connections_of_one_visitor_are_refused(site):
    async def visit() -> int:
        visitor = Visitor(site)
        await visitor.open()
        more = [asyncio.create_task(visitor.connect()) for _ in range(40)]
        sockets = await asyncio.gather(*more, return_exceptions=True)
        refused = [socket for socket in sockets if isinstance(socket, Exception)]
        for one in set(sockets) - set(refused):
            await one.close()
        await visitor.close()
        assert all("429" in str(error) for error in refused)
        return len(refused)

    assert asyncio.run(visit()) == 17  # 24 may be open, of which the page is one


@needs_nginx
def test_a_flooding_page_is_cut_off(site):
    async def visit() -> None:
        visitor = Visitor(site)
        await visitor.open()
        heartbeat = BackMsg(app_heartbeat=True).SerializeToString()
        for _ in range(1000):
            await visitor.socket.send(heartbeat)
        while True:
            await visitor.socket.recv()

    with pytest.raises(ConnectionClosed):
        asyncio.run(visit())


# ---- many, and a death ----


def test_typing_runs_what_is_made_of_the_text_and_not_the_choices():
    """What came last of each is what the last run drew: all that follows the text, and of the choices nothing."""

    async def typed() -> None:
        with one_process(free_port()) as (address, _):
            [visitor] = await arrive(address, 1)
            fragment = {name: inside for name, (_, inside) in visitor.widgets.items()}
            assert not any(fragment[name] for name in ("attention", "mask", "heads", "seed", "step"))
            assert fragment["text"] == fragment["head"] != fragment["query"] != ""
            before = set(visitor.widgets)
            visitor.widgets = {"text": visitor.widgets["text"]}
            await visitor.change("text", "three new words")
            assert visitor.tokens == visitor.walked == ["three", "new", "words"]
            assert before - set(visitor.widgets) >= {"attention", "mask", "heads", "seed", "step"}
            assert {"text", "head", "query", "overview", "focus", "pieces"} <= set(visitor.widgets)
            await visitor.close()

    asyncio.run(typed())


def test_many_lean_on_one_process():
    tally, (before, during, after) = asyncio.run(on_one_process(VISITORS, SECONDS / 2, free_port(), HABITS["texts typed"]))
    assert not tally.wrong and len(tally.times) >= VISITORS
    assert during < 700 and after < 1.1 * before


@needs_nginx
def test_the_death_of_a_replica_costs_nobody_the_address():
    tally, death = asyncio.run(with_a_death(VISITORS, SECONDS, free_port()))
    assert tally.wrong and not tally.late(death + AFTERWARDS)
    assert tally.downloads and len(tally.times) > 2 * VISITORS


@needs_nginx
def test_the_dead_and_the_silent_are_started_again():
    with behind_proxy(free_port()) as (address, answering):
        processes = dict(islice(answering, 3))
        for name in ("replica 2", "proxy"):
            os.kill(processes[name], signal.SIGKILL)
            again, process = next(answering)
            assert again == name and process != processes[name]
            assert megabytes(process) > 0
        assert status(f"{address}/_stcore/health") == 200

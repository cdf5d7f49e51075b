"""Visitors without a browser: they speak Streamlit's own protocol over its websocket, a hundred in one process."""

import asyncio
import json
from http.cookies import SimpleCookie
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from uuid import uuid4

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Block_pb2 import Block
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.util import calc_hash
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 10
"""Seconds after which an answer counts as none."""


class Failed(Exception):
    """A visit a person would call broken."""


class Visitor:
    """One tab: a page with its cookies, its websocket, and what the last run drew.

    session: its id on the server. cookie: as the browser sends it. tokens: of the sentence that the last run drew.
    walked: those that the walk-through has names for.
    widgets: the ids of each and of the fragment it is in, by its key. files: ids of the downloads, by their labels.
    """

    def __init__(self, address: str, page: str = "", **choices: object) -> None:
        self.address = address
        self.choices = choices
        self.socket: ClientConnection | None = None
        self.session = self.cookie = ""
        self._known: dict[str, ForwardMsg] = {}
        self._page = calc_hash(page) if page else ""
        self.widgets: dict[str, tuple[str, str]] = {}
        self.files: dict[str, str] = {}
        self.tokens: list[str] = []
        self.walked: list[str] = []

    async def open(self) -> None:
        """Load the page, and wait until it is drawn. Raises `Failed` where it is not."""
        page = await asyncio.to_thread(self._get, "/")
        cookies = SimpleCookie("; ".join(page.headers.get_all("Set-Cookie", [])))
        self.cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items() if morsel.value)
        self._known.clear()
        self.socket = await self.connect()
        await self._run()

    async def connect(self) -> ClientConnection:
        """One more websocket of this visitor."""
        return await connect(
            f"{self.address.replace('http', 'ws')}/_stcore/stream",
            additional_headers={"Cookie": self.cookie},
            subprotocols=["streamlit"],
            compression=None,
            max_size=None,
            open_timeout=PATIENCE,
        )

    async def close(self) -> None:
        """Leave."""
        if self.socket is not None:
            await self.socket.close()
            self.socket = None

    async def change(self, key: str, value: str | int) -> None:
        """Type a text or a number into a widget, and wait for what it changes: the page, or a fragment of it."""
        self.choices[key] = value
        name, fragment = self.widgets[key]
        kind = "string_value" if isinstance(value, str) else "double_value"
        await self._run({"widgets": [{"id": name, kind: value}]}, fragment)

    async def download(self, number: int = 0) -> bytes:
        """One of the files offered, whole. Raises `Failed` where there is none."""
        return await self.fetch(await self.make(number))

    async def make(self, number: int) -> str:
        """Where one of the files offered is, once it is made. They are offered in a section, which is opened for them."""
        if not self.files:
            name, fragment = self.widgets["files"]
            await self._run({"widgets": [{"id": name, "bool_value": True}]}, fragment)
        request = {"request_id": str(uuid4()), "session_id": self.session}
        message = BackMsg(backend_operation_request=request | {"deferred_file": {"file_id": list(self.files.values())[number]}})
        await self.socket.send(message.SerializeToString())
        while (answer := await self._receive()).WhichOneof("type") != "backend_operation_response":
            pass
        if answer.backend_operation_response.error_msg:
            raise Failed(answer.backend_operation_response.error_msg)
        return answer.backend_operation_response.deferred_file.url

    async def fetch(self, path: str) -> bytes:
        """A file of the site."""
        return await asyncio.to_thread(lambda: self._get(path).read())

    async def _run(self, changed: dict | None = None, fragment: str = "") -> None:
        state = {
            "query_string": urlencode(self.choices),
            "page_script_hash": self._page,
            "cached_message_hashes": self._known,
            "widget_states": changed,
            "fragment_id": fragment,
        }
        await self.socket.send(BackMsg(rerun_script=state).SerializeToString())
        self.tokens = []
        if not fragment:
            self.widgets, self.files = {}, {}
        while not self._take(await self._receive()):
            pass

    async def _receive(self) -> ForwardMsg:
        async with asyncio.timeout(PATIENCE):
            return ForwardMsg.FromString(await self.socket.recv())

    def _take(self, message: ForwardMsg) -> bool:
        """Note what a message draws; whether it was the last of a run."""
        if message.WhichOneof("type") == "ref_hash":
            message = self._known[message.ref_hash]
        elif message.metadata.cacheable:
            self._known[message.hash] = message
        match message.WhichOneof("type"):
            case "new_session":
                self.session = message.new_session.initialize.session_id
                self._page = message.new_session.page_script_hash
            case "delta" if message.delta.WhichOneof("type") == "new_element":
                self._draw(message.delta.new_element, message.delta.fragment_id)
            case "delta" if message.delta.add_block.WhichOneof("type") == "expandable":
                self._draw(message.delta.add_block, message.delta.fragment_id)
            case "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    raise Failed("the script does not compile")
                return message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
        return False

    def _draw(self, element: Element | Block, fragment: str) -> None:
        kind = element.WhichOneof("type")
        drawn = getattr(element, kind)
        if kind == "exception":
            raise Failed(f"{drawn.type}: {drawn.message}")
        if kind == "alert" and drawn.format == Alert.ERROR:
            raise Failed(drawn.body)
        if name := getattr(drawn, "id", ""):
            self.widgets[name.rpartition("-")[2]] = name, fragment
        if kind == "bidi_component" and drawn.component_name == "sentence":
            self.tokens = [token["label"] for token in json.loads(drawn.json)["queries"]]
        if kind == "bidi_component" and drawn.component_name == "pieces":
            self.walked = json.loads(drawn.mixed.json)["names"]["query"]
        if kind == "download_button":
            self.files[drawn.label] = drawn.deferred_file_id

    def _get(self, path: str):
        cookie = {"Cookie": self.cookie} if path != "/" else {}
        return urlopen(Request(self.address + path, headers=cookie), timeout=PATIENCE)

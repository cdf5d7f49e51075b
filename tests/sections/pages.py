"""The app without a browser, and its tables of numbers read back from their HTML."""

import json
import zlib
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow
from streamlit.proto.BidiComponent_pb2 import BidiComponent
from streamlit.testing.v1 import AppTest

from models.trace import QUERY_BY_KEY, Step
from sections.scene import Attention, Mask, Scale, Scene, Source
from sections.widgets import DEFAULTS
from viz.blanks import fill

APP = str(Path(__file__).parents[2] / "app.py")
LAST = ("query", "head")
TYPES = {"attention": Attention, "mask": Mask, "source": Source, "scale": Scale}


def fresh(**address: object) -> AppTest:
    """The app at an address, not yet run."""
    page = AppTest.from_file(APP, default_timeout=30)
    for name, value in address.items():
        page.query_params[name] = value if isinstance(value, list) else str(value)
    return page


def opened(**address: object) -> AppTest:
    """The app, opened at an address."""
    return fresh(**address).run()


def set_by_hand(**choices: object) -> AppTest:
    """The app, opened plain and then set widget by widget; some appear, or reach far enough, only after others."""
    page, left = opened(), dict(choices)
    while left:
        there = {name: value for name, value in left.items() if exists(page, name) and name not in LAST}
        there = there or {name: value for name, value in left.items() if exists(page, name)}
        assert there, f"no widget for {left}"
        for name, value in there.items():
            page.get_by_key(name).set_value(value)
        page.run()
        left = {name: value for name, value in left.items() if name not in there}
    return page


def exists(page: AppTest, name: str) -> bool:
    """Whether a widget is on the page and can be used."""
    try:
        return not getattr(page.get_by_key(name), "disabled", False)
    except KeyError:
        return False


def scene_of(page: AppTest) -> Scene:
    """The scene that the widgets now show; a choice without a widget is the default."""
    chosen = {one.name: state(page, one.name, getattr(DEFAULTS, one.name)) for one in fields(Scene)}
    chosen = {name: TYPES.get(name, lambda same: same)(value) for name, value in chosen.items()}
    shared = chosen["kv_heads"]
    return Scene(**chosen | {"kv_heads": None if shared in (None, "all") else int(shared)})


def state(page: AppTest, name: str, default: object = None) -> object:
    """What a widget holds."""
    return page.session_state[name] if name in page.session_state else default


def html(page: AppTest) -> list[str]:
    """Every piece of HTML but the style; first those of the walk, with the numbers of the chosen query in them."""
    sent = [piece for one in components(page, "pieces") for piece in filled(one, state(page, "query", 1) - 1)]
    return sent + [piece.proto.body for piece in page.get("html") if "<style" not in piece.proto.body]


def filled(sent: BidiComponent, query: int) -> list[str]:
    """Pieces as they were sent, with the numbers of one query in them, counted from 0."""
    data, [table] = json.loads(sent.mixed.json), sent.mixed.arrow_blobs.values()
    numbers = pyarrow.ipc.open_stream(table.data).read_all().column(0).to_numpy().reshape(-1, data["width"])
    row, names = query - data["first"], data["names"]
    return [fill(piece, numbers[row].tolist(), names, data["said"][row]) for pieces in data["pieces"].values() for piece in pieces]


def said(page: AppTest) -> str:
    """The sentence of the walk, as a reader reads it."""
    return next(text_of(piece) for piece in html(page) if 'class="say"' in piece)


def shown_step(page: AppTest) -> Step:
    """The step that the maps show."""
    assert page.session_state.step in QUERY_BY_KEY
    return Step(page.session_state.step)


@dataclass
class Cell:
    """One cell of a table. numbers: as written, those of a strip from its words; exact: as hovering shows them."""

    text: str = ""
    numbers: list[str] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)


@dataclass
class Table:
    """A table of the walk, or of the vectors."""

    caption: str = ""
    head: list[Cell] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)
    foot: list[Cell] = field(default_factory=list)


class _Reader(HTMLParser):
    VOID = {"meta", "br", "img", "hr", "input", "link", "wbr"}

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.cell: Cell | None = None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        if tag not in self.VOID:
            self.open.append(tag)
        classes = (given.get("class") or "").split()
        if tag == "table":
            self.tables.append(Table())
        elif tag == "tr" and "tbody" in self.open:
            self.tables[-1].rows.append([])
        elif tag in ("th", "td") and "table" in self.open:
            table, self.cell = self.tables[-1], Cell()
            row = table.head if "thead" in self.open else table.foot if "tfoot" in self.open else table.rows[-1]
            row.append(self.cell)
        elif self.cell is not None and "strip" in classes:
            whole = given["title"].split(", ") if "whole" in classes else []
            self.cell.numbers += whole or given["aria-label"].rpartition(": ")[2].split(", ")
            self.cell.exact += whole
        elif self.cell is not None and tag == "i" and "title" in given:
            self.cell.exact.append(given["title"])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag in ("th", "td"):
            self.cell = None

    def handle_data(self, data):
        self.words.append(data)
        if self.tables and self.open[-1:] == ["caption"]:
            self.tables[-1].caption += data
        if self.cell is not None:
            self.cell.text += data
            if self.open[-1] == "i":
                self.cell.numbers.append(data)
            if self.open[-1] == "bdi":
                self.cell.tokens.append(data)


def read(markup: str) -> _Reader:
    """HTML, parsed; fails where an element is closed that was not open, or never closed."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    assert not reader.open
    return reader


def text_of(markup: str) -> str:
    """The words of HTML."""
    return "".join(read(markup).words)


def tables(page: AppTest) -> dict[str, Table]:
    """Every table by its caption."""
    return {table.caption: table for piece in html(page) for table in read(piece).tables}


def following(page: AppTest, name: str) -> str:
    """The type of what stands right below a widget."""
    found = False
    for element in page.main:
        if found and element.type not in ("flex_container", "vertical", "horizontal", "column", "container"):
            return element.type
        found = found or getattr(element, "key", None) == name
    return ""


def maps(page: AppTest, name: str) -> list[np.ndarray]:
    """The numbers of a figure's maps that a reader can point at; NaN where a cell is blank."""
    data = json.loads(page.get_by_key(name).proto.spec)["data"]
    return [
        unpacked(trace["z"])
        for trace in data
        if trace["type"] == "heatmap" and "coloraxis" in trace and trace.get("hoverinfo") != "skip"
    ]


def unpacked(array: dict | list) -> np.ndarray:
    """An array as plotly writes it: nested lists, or bytes in base64."""
    if isinstance(array, list):
        return np.array([[np.nan if x is None else x for x in row] for row in array], float)
    shape = [int(n) for n in str(array["shape"]).split(",")]
    return np.frombuffer(b64decode(array["bdata"]), np.dtype(array["dtype"])).reshape(shape)


def component(page: AppTest, name: str) -> BidiComponent:
    """What a component of our own was given."""
    return next(components(page, name))


def components(page: AppTest, name: str) -> Iterator[BidiComponent]:
    """What each component of that name was given."""
    return (one.proto for one in page.get("bidi_component") if one.proto.component_name == name)


def chips(page: AppTest) -> dict:
    """What the sentence of tokens to pick from was given."""
    return json.loads(component(page, "sentence").json)


def overview(page: AppTest) -> dict:
    """What the canvas of all heads was given."""
    return json.loads(component(page, "overview").mixed.json)


def drawn(page: AppTest) -> np.ndarray:
    """The numbers the canvas of all heads shows, `map query key`; NaN where a cell is hidden."""
    given = component(page, "overview").mixed
    data, [table] = json.loads(given.json), given.arrow_blobs.values()
    packed = pyarrow.ipc.open_stream(table.data).read_all().column(0).to_numpy().tobytes()
    return decode(packed, data["zero"], data["decimals"]).reshape(data["shape"])


def decode(packed: bytes, zero: int, decimals: int) -> np.ndarray:
    """The numbers packed by `viz.codes`, worked out anew; NaN where hidden or not a number, 0 where too small to show."""
    low, high = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(2, -1).astype(int)
    codes = low + 256 * high
    numbers = (codes - zero) / 10.0**decimals
    for mark, value in {65_535: np.nan, 65_534: np.nan, 65_533: 0.0, 65_532: 0.0, 65_531: np.inf, 65_530: 1.0}.items():
        numbers[codes == mark] = value
    return numbers

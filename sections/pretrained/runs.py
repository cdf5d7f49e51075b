"""The pretrained model of this server, loaded once for all, and its latest runs."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import streamlit as st

from models.masks import causal
from models.pretrained import model
from models.pretrained.files import Source
from models.pretrained.model import Pretrained
from models.pretrained.pieces import Pieces
from models.pretrained.transformer import Run
from sections import story
from sections.attended import Attended
from sections.limits import MAX_RUN_BYTES
from sections.widgets import Head
from viz.cells import readable

Silenced = frozenset[Head]


def load(source: Source) -> Pretrained:
    """The model of a source. Raises `Unusable` with the reason, every time, until its files are put right."""
    return _load(str(source.folder), source.published)


@st.cache_resource(max_entries=1, show_spinner=False)
def _load(folder: str, published: bool) -> Pretrained:
    return model.load(Source(Path(folder), published))


class Runs:
    """The latest runs, as many as fit into `MAX_RUN_BYTES`. One is worked out at a time, for all."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple, tuple[Run, int]] = OrderedDict()
        self._lock = Lock()

    def of(self, pretrained: Pretrained, pieces: Pieces, silenced: Silenced = frozenset()) -> Run:
        """The run of a text, with some heads silenced: a kept one, or a new one in place of the longest unasked for."""
        key = (pretrained, pieces.ids, silenced)
        with self._lock:
            if key not in self._kept:
                run = pretrained.run(pieces, silenced=silenced)
                self._kept[key] = (run, _bytes(run))
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and self.bytes > MAX_RUN_BYTES:
                self._kept.popitem(last=False)
            return self._kept[key][0]

    @property
    def bytes(self) -> int:
        """What the kept runs take."""
        return sum(size for _, size in self._kept.values())


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    """Those of this server."""
    return Runs()


@dataclass(frozen=True)
class Ran:
    """What every tool works on: a text, and all that the model made of it."""

    pretrained: Pretrained
    pieces: Pieces
    run: Run

    @property
    def tokens(self) -> tuple[str, ...]:
        """The pieces, as one can see them."""
        return tuple(map(readable, self.pieces.pieces))

    def without(self, silenced: Silenced) -> "Ran":
        """The same text with some heads silenced."""
        return replace(self, run=runs().of(self.pretrained, self.pieces, silenced))

    def attended(self, layer: int) -> Attended:
        """One layer, counted from 0, for the views of every layer."""
        trace, made = self.run.traces[layer], self.pretrained.architecture
        return Attended(
            queries=self.tokens,
            keys=self.tokens,
            inputs={"query": (trace.before if made.block.norm == "post" else trace.normalised)[0]},
            visible=causal(len(self.pieces), len(self.pieces)) if made.causal else None,
            layer=self.pretrained.model.blocks[layer].attention,
            trace=trace.attention,
            origin=story.HINTS["trained"],
            about={"model": self.pretrained.name, "layer": layer + 1, "text": self.pieces.text},
        )


def run(pretrained: Pretrained, pieces: Pieces) -> Ran:
    """A text and its run, shared by all who ask for the same."""
    return Ran(pretrained, pieces, runs().of(pretrained, pieces))


def _bytes(run: Run) -> int:
    """Every array once, though one may stand in several places."""
    found = {}
    for trace in run.traces:
        trace.map(lambda array: found.setdefault(array.data_ptr(), array.nbytes))
    return sum(found.values())

"""Maps of query by key: one small map a head, one head large, one head step by step.

Arrays in, `go.Figure` out. A figure does not know its theme: both scales are left to the template, and ink and
paper are the two colours Streamlit's theme replaces in the browser, so light and dark need no second figure.
"""

import json
import math
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import plotly.graph_objects as go
import plotly.io

from models.trace import Step
from viz import numbers
from viz.colours import DIVERGING, SEQUENTIAL

WORDS = {"head": "head {}", "query": "query", "key": "key", "hidden": "hidden"}
"""Every word the figures show, besides the names of the steps."""

CLICKABLE = 48
"""The most queries, and the most keys, for which `focus` lays markers over the cells."""

HIDING = (Step.MASKED, Step.WEIGHTS)
"""The steps in which `chain` shows what a query may not look at as hidden."""

# Pixels. Figures are designed for these widths; the browser then fits them to the width there is.
_WIDTH, _ROW_WIDTH = 490, 1300
_ONE_HIGH, _MANY_HIGH = 440, 400  # of the maps and the labels below them; more from 16 maps on
_CELL = 120  # the side of a cell, at most
_SCALE = 52  # above the maps, for the colour scale
_NAME = 20  # above each map or scale, for its name
_GAP = 18  # between two maps
_LONGEST = 12  # characters of a token on an axis; wide ones count twice

_INK, _PAPER = "#000037", "#000038"  # Streamlit writes its text and background colour wherever these two stand
_HATCH = "rgba(128,134,145,0.65)"  # and one grey
_NO_WIDTH = "\u200b"
_TURN = {False: 0.53, True: 0.66}  # the share of a scale, by `signed`, from which paper reads better than ink


def head_grid(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    signed: bool,
    hidden: np.ndarray | None = None,
) -> go.Figure:
    """One map for each head of `values`, which is `head query key`, all on one colour scale.

    `hidden` is True where a query may not look, and broadcasts to `values`.
    """
    maps = _blank(values, hidden)
    sheet = _arrange(len(maps), rows, columns, name=_NAME if len(maps) > 1 else 0)
    places = [sheet.place(head) for head in range(len(maps))]
    names = [WORDS["head"].format(head + 1) for head in range(len(maps))]
    last = places[(len(maps) - 1) // sheet.across * sheet.across :]  # keys are written below these
    traces = [
        *_hatch(maps, places),
        *(trace for each in zip(maps, places, names, strict=True) for trace in _unseen(*each)),
        *(_heatmap(*each) for each in zip(maps, places, names, strict=True)),
        *(_names(names, places, sheet) if len(maps) > 1 else ()),
    ]
    return _figure(
        traces,
        sheet,
        xaxis=_across(columns, sheet, {x for x, _ in places}, {x for x, _ in last}),
        yaxis=_down(rows, sheet, {y for _, y in places}),
        coloraxis=_coloraxis(_limits(maps, signed)),
    )


def focus(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    signed: bool,
    hidden: np.ndarray | None = None,
) -> go.Figure:
    """One head large. `values` is `query key`; numbers stand in the cells while they fit.

    Heatmaps report no clicks to Streamlit, so transparent markers lie over the cells, with `[query, key]` as their
    customdata; beyond `CLICKABLE` there are none.
    """
    cells = _blank(values, hidden)
    limits = _limits(cells, signed)
    sheet = _arrange(1, rows, columns)
    numbered = _numbered(_heatmap(cells), limits, sheet)
    return _figure(
        [*_hatch([cells], [(0, 0)]), *_unseen(cells), *numbered, *_markers(cells, sheet)],
        sheet,
        xaxis=_across(columns, sheet, {0}, {0}),
        yaxis=_down(rows, sheet, {0}),
        coloraxis=_coloraxis(limits),
    )


def chain(
    steps: Mapping[Step, np.ndarray],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    hidden: np.ndarray | None = None,
) -> go.Figure:
    """The steps of one head in a row, for a full page: each `query key` and each on a scale of its own.

    Weights run from 0 to 1, all others symmetrically around zero. `hidden` is drawn in the steps of `HIDING`.
    """
    sheet = _arrange(len(steps), rows, columns, width=_ROW_WIDTH, across=len(steps))
    traces, layout = [], {}
    for index, (step, values) in enumerate(steps.items()):
        n = str(index + 1) if index else ""
        start = index * sheet.step_x / sheet.width
        cells = _blank(values, hidden if step in HIDING else None)
        limits = _limits(cells, step is not Step.WEIGHTS)
        heatmap = _heatmap(cells, name=str(step)) | {"coloraxis": f"coloraxis{n}"}
        hatch = [trace | {"showlegend": step is Step.WEIGHTS} for trace in _hatch([cells], [(0, 0)])]
        traces += [
            trace | {"xaxis": f"x{n}", "yaxis": f"y{n}"}
            for trace in (*hatch, *_unseen(cells, name=str(step)), *_numbered(heatmap, limits, sheet))
        ]
        length = len(columns) / sheet.width
        across = {"anchor": f"y{n}", "domain": [start, start + length], "constraintoward": "center"}
        down = _down(rows, sheet, {0}) | {"anchor": f"x{n}", "scaleanchor": f"x{n}"}
        if index:  # queries are written beside the first alone
            down["showticklabels"] = False
            del down["title"]
        layout |= {
            f"xaxis{n}": _across(columns, sheet, {0}, {0}) | across | {"range": [-0.5, len(columns) - 0.5]},
            f"yaxis{n}": down,
            f"coloraxis{n}": _coloraxis(
                limits, name=str(step), x=start + length / 2, anchor="center", length=0.75 * length
            ),
        }
    layout |= {
        "height": sheet.height + _NAME,
        "margin": sheet.margin | {"t": _SCALE + _NAME},
        "legend": _LEGEND | {"x": 1, "xanchor": "right", "y": 0, "yanchor": "bottom", "yref": "container"},
    }
    return _figure(traces, sheet, **layout)


def config(image_format: str, name: str) -> dict:
    """Plotly's settings: a mode bar of one button, which saves the picture as `name`, "svg" or "png"."""
    return {
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": image_format, "filename": name, "scale": 2},
        "scrollZoom": False,
        "doubleClick": False,
        "showTips": False,
        "typesetMath": False,
    }


def standalone(figure: go.Figure, *, dark: bool) -> go.Figure:
    """A copy that carries its colours, for a page without Streamlit's theme."""
    shade = "dark" if dark else "light"
    ink, paper = ("#eceff4", "#14161c") if dark else ("#14161c", "#ffffff")
    scales = {
        name: [[place / 9, colour] for place, colour in enumerate(getattr(scale, shade))]
        for name, scale in (("sequential", SEQUENTIAL), ("diverging", DIVERGING))
    }
    look = {
        "colorscale": scales,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": ink, "family": "system-ui, sans-serif"},
        "hoverlabel": {"bgcolor": paper, "bordercolor": ink, "font": {"color": ink}},
    }
    painted = json.loads(figure.to_json().replace(_INK, ink).replace(_PAPER, paper))
    return go.Figure(painted).update_layout(template={"layout": look})


def plain(token: str) -> str:
    """A token as text for plotly: marks that its labels, or Streamlit's theme colours, would obey are only shown."""
    return token.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("#", "&#35;")


def cut(token: str) -> str:
    """A token for an axis: plain, and no longer than there is room. A mark stays with its letter."""
    width = 0
    for place, character in enumerate(token):
        width += _width(character)
        if width > _LONGEST:
            return plain(token[: place - 1].rstrip()) + "…"
    return plain(token)


# ---- the sheet the maps are laid out on. Its unit is the cell, x to the right and y down, the first centre at 0 ----


@dataclass(frozen=True, slots=True)
class _Sheet:
    across: int  # maps side by side
    cell: float  # pixels, at the designed width
    step_x: float  # cells from one map to the next, in quarters, so that two decimals write every centre
    step_y: float
    width: float  # cells, the whole sheet
    top: float  # the edge above the first map's name
    bottom: float
    level: bool  # the keys are written without turning them
    font: int
    height: int  # pixels, the whole figure
    margin: dict[str, int]

    def place(self, index: int) -> tuple[float, float]:
        """The centre of the first cell of a map."""
        return index % self.across * self.step_x, index // self.across * self.step_y


def _arrange(
    count: int,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    width: int = _WIDTH,
    across: int | None = None,
    name: int = 0,
) -> _Sheet:
    """As many maps side by side as make the cells largest."""
    font = 14 if count == 1 else 12
    left, below = _longest(rows, font) + 36, _longest(columns, font) + 44
    height = _ONE_HIGH if count == 1 else _MANY_HIGH * max(1, math.sqrt(count / 16))

    def cell(across: int) -> float:
        down = math.ceil(count / across)
        wide = (width - left - (across - 1) * _GAP) / (across * len(columns))
        high = (height - below - down * name) / (down * len(rows))
        return max(min(wide, high, _CELL), 0.05)

    across = across or max(range(1, count + 1), key=lambda n: (cell(n), -n))
    side, down = cell(across), math.ceil(count / across)
    level = _longest(columns, font) + 8 <= side
    if level:
        below = font + 44
    gap, head = (math.ceil(4 * pixels / side) / 4 for pixels in (_GAP, name))
    step_x, step_y = len(columns) + gap, len(rows) + head
    top, bottom = -0.5 - head, (down - 1) * step_y + len(rows) - 0.5
    return _Sheet(
        across=across,
        cell=side,
        step_x=step_x,
        step_y=step_y,
        width=across * step_x - gap,
        top=top,
        bottom=bottom,
        level=level,
        font=font,
        height=round(_SCALE + (bottom - top) * side + below),
        margin={"l": left, "r": 8, "t": _SCALE, "b": below, "pad": 4},
    )


def _longest(tokens: Iterable[str], font: int) -> int:
    """Pixels for the longest label of an axis."""
    return round(0.56 * font * max(min(sum(map(_width, token)), _LONGEST) for token in tokens))


def _width(character: str) -> int:
    """In characters of a Latin alphabet."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# ---- axes ----


def _across(tokens: Sequence[str], sheet: _Sheet, places: set[float], labelled: set[float]) -> dict:
    every = 1 if sheet.level else _every(sheet)
    return _axis(WORDS["key"], tokens, sheet, places, labelled, every) | {
        "range": [-0.5, sheet.width - 0.5],
        **({"autotickangles": [0, -90]} if sheet.level else {"tickangle": -90}),
        "automargin": "bottom" if sheet.level else False,
        "constraintoward": "left",
    }


def _down(tokens: Sequence[str], sheet: _Sheet, places: set[float]) -> dict:
    axis = _axis(WORDS["query"], tokens, sheet, places, places, _every(sheet))
    return axis | {
        "range": [sheet.bottom, sheet.top],
        "scaleanchor": "x",
        "constraintoward": "top",
    }


def _every(sheet: _Sheet) -> int:
    """Every how many tokens there is room for the height of a line."""
    return math.ceil((sheet.font + 2) / sheet.cell)


def _axis(
    word: str, tokens: Sequence[str], sheet: _Sheet, places: set[float], labelled: set[float], every: int
) -> dict:
    """An axis whose coordinates read as tokens: cut at a tick (two decimals), whole on hover (three)."""
    ticks = {f"{place + n:.2f}": cut(tokens[n]) for place in labelled for n in range(0, len(tokens), every)}
    whole = [plain(token) for token in tokens]
    return {
        "title": {"text": word, "standoff": 8, "font": {"size": sheet.font, "color": _INK}},
        "tickvals": [float(place) for place in ticks],
        "tickformat": ".2f",
        "hoverformat": ".2f",  # plotly writes ticks at given places in the format for hovering; traces set their own
        "labelalias": ticks | {f"{place + n:.3f}": token for place in places for n, token in enumerate(whole)},
        "tickfont": {"size": sheet.font, "color": _INK},
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "constrain": "domain",
    }


# ---- traces ----


def _blank(values: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """The values as float32, with NaN where a query may not look, also where that is written as −inf."""
    values = np.asarray(values, np.float32)
    away = np.isneginf(values) if hidden is None else np.isneginf(values) | hidden
    return np.where(away, np.float32(np.nan), values) if away.any() else values


def _limits(values: np.ndarray, signed: bool) -> tuple[float, float]:
    """The ends of the scale: 0 and 1, or as far below zero as above it. What is hidden never counts."""
    if not signed:
        return 0.0, 1.0
    reach = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0))
    return (-reach, reach) if reach else (-1.0, 1.0)


def _heatmap(values: np.ndarray, place: tuple[float, float] = (0, 0), name: str = "") -> dict:
    return {
        "type": "heatmap",
        "z": values,
        "x0": place[0],
        "y0": place[1],
        "name": name,
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        **_hover(_digits(values), name),
    }


def _digits(values: np.ndarray) -> str:
    """Four decimals; six significant digits in a map where four decimals would show a small number as zero."""
    size = np.abs(values)
    return "%{z:.6~g}" if ((size > 0) & (size < 0.00005)).any() else "%{z:.4f}"


def _unseen(values: np.ndarray, place: tuple[float, float] = (0, 0), name: str = "") -> list[dict]:
    """What hovering says over blank cells: an empty map of the same cells below the real one."""
    if not np.isnan(values).any():
        return []
    high, wide = values.shape
    empty = {"z": [[0] * wide] + [[]] * (high - 1), "opacity": 0, "showscale": False}
    place = {"x0": place[0], "y0": place[1]}
    return [{"type": "heatmap"} | empty | place | _hover(WORDS["hidden"], name)]


def _hover(value: str, name: str = "") -> dict:
    lines = [f"<b>{name}</b>"] * bool(name) + [f"{WORDS['query']}  %{{y}}", f"{WORDS['key']}  %{{x}}", value]
    return {"hovertemplate": "<br>".join(lines) + "<extra></extra>", "xhoverformat": ".3f", "yhoverformat": ".3f"}


def _hatch(maps: Sequence[np.ndarray], places: Sequence[tuple[float, float]]) -> list[dict]:
    """One hatched ground below all maps, if any cell is blank: it shows through there."""
    if not any(np.isnan(cells).any() for cells in maps):
        return []
    high, wide = maps[0].shape
    xs, ys = [], []
    for x, y in places:
        xs += [x - 0.5, x + wide - 0.5, x + wide - 0.5, x - 0.5, x - 0.5, None]
        ys += [y - 0.5, y - 0.5, y + high - 0.5, y + high - 0.5, y - 0.5, None]
    return [
        {
            "type": "scatter",
            "x": xs,
            "y": ys,
            "mode": "lines",
            "line": {"width": 0},
            "fill": "toself",
            "fillpattern": {"shape": "/", "size": 6, "solidity": 0.2, "fgcolor": _HATCH, "bgcolor": _PAPER},
            "zorder": -1,
            "hoverinfo": "skip",
            "name": WORDS["hidden"],
            "showlegend": True,
        }
    ]


def _names(names: Sequence[str], places: Sequence[tuple[float, float]], sheet: _Sheet) -> list[dict]:
    """The name above each map, or only its number where there is no room."""
    if sheet.step_x * sheet.cell < _longest(names, sheet.font) + 8:
        names = [str(number) for number in range(1, len(names) + 1)]
    return [
        {
            "type": "scatter",
            "mode": "text",
            "x": [x - 0.5 for x, _ in places],
            "y": [y - 0.5 for _, y in places],
            "text": names,
            "textposition": "top right",
            "textfont": {"size": sheet.font, "color": _INK},
            "cliponaxis": False,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def _numbered(heatmap: dict, limits: tuple[float, float], sheet: _Sheet) -> list[dict]:
    """A heatmap with numbers, while they fit into its cells: in ink, and in paper where the scale is far along.

    One heatmap writes in one colour, so the far cells are drawn again on top. Plotly sizes the text by the longest
    label, so all are padded to one length.
    """
    if sheet.cell < 28:
        return [heatmap]
    values = heatmap["z"]
    text = [["" if math.isnan(value) else numbers.short(value) for value in row] for row in values.tolist()]
    length = max(len(number) for row in text for number in row)
    if sheet.cell < 6 * length:
        return [heatmap]
    far = np.abs(values) >= _TURN[limits[0] < 0] * limits[1]

    def written(where: np.ndarray, ink: str, paper: str) -> dict:
        shown = [
            [(number if here else "").ljust(length, _NO_WIDTH) for number, here in zip(*row, strict=True)]
            for row in zip(text, where.tolist(), strict=True)
        ]
        return {"text": shown, "texttemplate": "%{text}", "textfont": {"color": ink, "shadow": f"0 0 3px {paper}"}}

    top = {"type": "heatmap", "z": np.where(far, values, np.float32(np.nan)), "coloraxis": heatmap["coloraxis"]}
    return [heatmap | written(~far, _INK, _PAPER), top | {"hoverinfo": "skip"} | written(far, _PAPER, _INK)]


def _markers(values: np.ndarray, sheet: _Sheet) -> list[dict]:
    """Something to click on every cell."""
    high, wide = values.shape
    if max(high, wide) > CLICKABLE:
        return []
    cells = [[query, key] for query in range(high) for key in range(wide)]
    unseen = {"marker": {"opacity": 0}}
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [key for _, key in cells],
            "y": [query for query, _ in cells],
            "customdata": cells,
            "text": [WORDS["hidden"] if math.isnan(v) else numbers.exact(v) for v in values.ravel().tolist()],
            "marker": {"symbol": "square", "size": max(0.5 * sheet.cell, 4), "opacity": 0},
            "selected": unseen,
            "unselected": unseen,
            "showlegend": False,
            **_hover("%{text}"),
        }
    ]


# ---- the figure ----

_LEGEND = {
    "orientation": "h",
    "x": 0.38,
    "xanchor": "left",
    "y": 1,
    "yanchor": "bottom",
    "itemclick": False,
    "itemdoubleclick": False,
    "font": {"size": 12, "color": _INK},
}


class Figure(go.Figure):
    """A figure that plotly copies and checks only once somebody does more with it than draw it.

    That takes longer than all else, and who draws it needs no more than `to_dict`.
    """

    def __init__(self, drawn: dict) -> None:
        self.__dict__["_drawn"] = drawn

    def __getattr__(self, name: str):
        """What is not there before the figure is made."""
        if (drawn := self.__dict__.pop("_drawn", None)) is None:
            raise AttributeError(f"a figure has no {name!r}")
        super().__init__(drawn)
        return getattr(self, name)

    def to_dict(self) -> dict:
        """As of every figure of plotly."""
        if (drawn := self.__dict__.get("_drawn")) is None:
            return super().to_dict()
        template = {"template": _template(plotly.io.templates.default)}
        return {"data": [_packed(trace) for trace in drawn["data"]], "layout": template | drawn["layout"]}


@cache
def _template(name: str) -> dict:
    """The look that figures have without one of their own."""
    return plotly.io.templates[name].to_plotly_json()


def _packed(trace: dict) -> dict:
    """With arrays as plotly sends them: their bytes in base64."""
    return {name: _typed(value) if isinstance(value, np.ndarray) else value for name, value in trace.items()}


def _typed(array: np.ndarray) -> dict:
    data = b64encode(np.ascontiguousarray(array)).decode()
    return {"dtype": array.dtype.str[1:], "bdata": data, "shape": ", ".join(map(str, array.shape))}


def _coloraxis(
    limits: tuple[float, float], *, name: str = "", x: float = 0.0, anchor: str = "left", length: float = 0.3
) -> dict:
    """A scale whose colours come from the template: sequential from zero up, diverging around zero."""
    low, high = limits
    return {
        "cmin": low,
        "cmax": high,
        "autocolorscale": True,
        "colorbar": {
            "title": {"text": name, "side": "top", "font": {"size": 14, "color": _INK}},
            "orientation": "h",
            "x": x,
            "xanchor": anchor,
            "xpad": 0,
            "y": 1,
            "yanchor": "bottom",
            "ypad": 10,
            "len": length,
            "thickness": 8,
            "outlinewidth": 0,
            "tickvals": [low, (low + high) / 2, high],
            "ticktext": [numbers.short(low), "0", numbers.short(high)] if low else ["0", "0.5", "1"],
            "tickfont": {"size": 12, "color": _INK},
            "ticks": "",
        },
    }


def _figure(traces: list[dict], sheet: _Sheet, **layout) -> go.Figure:
    shared = {
        "height": sheet.height,
        "margin": sheet.margin,
        "dragmode": False,
        "hovermode": "closest",
        "font": {"size": 15},  # what is not given a size below: the numbers in the cells, at most
        "legend": _LEGEND,
    }
    return Figure({"data": traces, "layout": shared | layout})

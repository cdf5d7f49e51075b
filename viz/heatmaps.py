"""Maps of query by key: one small map a head, one head large, one head step by step.

Arrays in, `go.Figure` out. Cells carry no colours of their own: both scales are left to the template, so that
Streamlit's theme paints them in the browser, light or dark (`.streamlit/config.toml`).
"""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from models.trace import Step
from viz.colours import DIVERGING, ROLES, SEQUENTIAL, between

WORDS = {"head": "head {}", "query": "query", "key": "key", "hidden": "hidden"}
"""Every word the figures show, besides the names of the steps."""

CLICKABLE = 48
"""The most queries, and the most keys, for which `focus` lays markers over the cells."""

HIDING = (Step.MASKED, Step.WEIGHTS)
"""The steps in which `chain` shows the hidden cells as hidden."""

# Pixels. Figures are designed for these widths; the browser then fits them to the width they get.
_WIDTH, _ROW_WIDTH = 560, 1300
_MAPS = 420  # the height of the maps and the labels below them, at most
_CELL = 96  # the side of a cell, at most
_SCALE = 46  # above the maps, for the colour scale
_TITLE = 24  # above each map, for its title
_GAP = 18  # between two maps
_FONT = 12
_LONGEST = 11  # characters of a token on an axis; wide ones count twice
_OUTLINE = between((ROLES["query"].light, ROLES["query"].dark), 0.45)  # one violet for both themes
_HATCH = "rgba(128,134,145,0.7)"  # a grey for both themes


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
    sheet = _arrange(len(maps), rows, columns)
    places = [sheet.place(head) for head in range(len(maps))]
    names = [WORDS["head"].format(head + 1) for head in range(len(maps))]
    below = places[-((len(maps) - 1) % sheet.across + 1) :]  # the last row of maps: keys are written under it
    traces = [
        *_hatch(maps, places),
        *(_heatmap(*each, about="<b>%{fullData.name}</b><br>") for each in zip(maps, places, names, strict=True)),
        *(_titles(names, places, len(columns)) if len(maps) > 1 else ()),
    ]
    return _figure(
        traces,
        height=sheet.height,
        margin=sheet.margin,
        xaxis=_across(columns, sheet.cell, {x for x, _ in places}, {x for x, _ in below}, sheet.width),
        yaxis=_down(rows, sheet.cell, {y for _, y in places}, sheet.depth),
        coloraxis=_coloraxis(_limits(maps, signed)),
    )


def focus(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    signed: bool,
    hidden: np.ndarray | None = None,
    query: int | None = None,
) -> go.Figure:
    """One head large. `values` is `query key`; numbers stand in the cells while they fit.

    The row of `query`, counted from 0, is outlined. Heatmaps report no clicks to Streamlit, so transparent
    markers lie over the cells, with `[query, key]` as their customdata; beyond `CLICKABLE` there are none.
    """
    cells = _blank(values, hidden)
    sheet = _arrange(1, rows, columns)
    figure = _figure(
        [*_hatch([cells], [(0, 0)]), _numbered(cells, sheet.cell), *_markers(cells, sheet.cell)],
        height=sheet.height,
        margin=sheet.margin,
        xaxis=_across(columns, sheet.cell, {0}, {0}, sheet.width),
        yaxis=_down(rows, sheet.cell, {0}, sheet.depth, strong=query),
        coloraxis=_coloraxis(_limits(cells, signed)),
        shapes=_outline(query, len(columns)),
    )
    return figure


def chain(
    steps: Mapping[Step, np.ndarray],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    hidden: np.ndarray | None = None,
    query: int | None = None,
) -> go.Figure:
    """The steps of one head side by side, each `query key` and each on a scale of its own.

    Weights run from 0 to 1, all others symmetrically around zero. `hidden` is drawn in the steps of `HIDING`.
    """
    traces, layout, shapes = [], {}, []
    sheet = _arrange(len(steps), rows, columns, width=_ROW_WIDTH, across=len(steps))
    for index, (step, values) in enumerate(steps.items()):
        maps = _blank(values, hidden if step in HIDING else None)
        number = str(index + 1) if index else ""
        start, end = index / len(steps), (index + 1 - 0.12) / len(steps)
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        name = str(step)
        traces += [
            trace | axes
            for trace in (
                *_hatch([maps], [(0, 0)], showlegend=False),
                _heatmap(maps, (0, 0), name, about="<b>%{fullData.name}</b><br>") | {"coloraxis": f"coloraxis{number}"},
                *_titles([name], [(0, 0)], len(columns)),
            )
        ]
        layout[f"xaxis{number}"] = _across(columns, sheet.cell, {0}, {0}, len(columns)) | {
            "domain": [start, end],
            "anchor": f"y{number}",
        }
        layout[f"yaxis{number}"] = _down(rows, sheet.cell, {0}, sheet.depth, strong=query) | {
            "anchor": f"x{number}",
            "scaleanchor": f"x{number}",
        }
        layout[f"coloraxis{number}"] = _coloraxis(_limits(maps, step is not Step.WEIGHTS), start)
        shapes += [shape | {"xref": f"x{number}", "yref": f"y{number}"} for shape in _outline(query, len(columns))]
    return _figure(traces, height=sheet.height, margin=sheet.margin, shapes=shapes, **layout)


def config(image_format: str, name: str) -> dict:
    """Plotly's settings: a mode bar with one button, which saves a picture `name` as "svg" or "png"."""
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
        name: [[share / 9, colour] for share, colour in enumerate(getattr(scale, shade))]
        for name, scale in (("sequential", SEQUENTIAL), ("diverging", DIVERGING))
    }
    look = {
        "colorscale": scales | {"sequentialminus": scales["sequential"]},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": ink, "family": "system-ui, sans-serif"},
        "hoverlabel": {"bgcolor": paper, "font": {"color": ink}},
    }
    return go.Figure(figure).update_layout(template={"layout": look})


def plain(token: str) -> str:
    """A token as text for plotly, whose labels read some HTML: its marks are shown, never obeyed."""
    return token.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(token: str) -> str:
    """A token cut for an axis, escaped; a mark stays with its letter and a wide character counts twice."""
    length = 0
    for place, character in enumerate(token):
        length += _room(character)
        if length > _LONGEST:
            return plain(token[: place - 1].rstrip()) + "…"
    return plain(token)


def two_decimals(value: float) -> str:
    """A number for a cell. One that is not zero is never shown as zero."""
    text = f"{value:.2f}"
    if float(text) == 0 and value:
        return "<.01" if value > 0 else ">−.01"
    return text.replace("-", "−") if float(text) else "0.00"


# ---- the sheet the maps are laid out on: whole cells, x to the right, y downwards, the first centre at 0 ----


@dataclass(frozen=True, slots=True)
class _Sheet:
    across: int  # maps side by side
    cell: float  # pixels at the designed width
    step_x: float  # cells from one map to the next, always quarters so that labels are exact
    step_y: float
    width: float  # cells, the whole sheet
    depth: tuple[float, float]  # cells, from the top edge to the bottom edge
    height: int  # pixels, the whole figure
    margin: dict[str, int]

    def place(self, index: int) -> tuple[float, float]:
        """The centre of the first cell of a map."""
        return index % self.across * self.step_x, index // self.across * self.step_y


def _arrange(
    count: int, rows: Sequence[str], columns: Sequence[str], *, width: int = _WIDTH, across: int | None = None
) -> _Sheet:
    """As many maps side by side as make the cells largest."""
    left, bottom = _longest(rows) + 34, _longest(columns) + 34
    title = _TITLE if count > 1 else 0

    def cell(across: int) -> float:
        down = math.ceil(count / across)
        wide = (width - left - (across - 1) * _GAP) / (across * len(columns))
        high = (_MAPS - bottom - down * title) / (down * len(rows))
        return max(min(wide, high, _CELL), 0.05)

    across = across or max(range(1, count + 1), key=lambda n: (cell(n), -n))
    side, down = cell(across), math.ceil(count / across)
    if _level(columns, side):
        bottom = 50
    gap, space = (math.ceil(4 * pixels / side) / 4 for pixels in (_GAP, title))
    top, end = -0.5 - space, down * (len(rows) + space) - space - 0.5
    return _Sheet(
        across=across,
        cell=side,
        step_x=len(columns) + gap,
        step_y=len(rows) + space,
        width=across * (len(columns) + gap) - gap,
        depth=(top, end),
        height=round(_SCALE + (end - top) * side + bottom),
        margin={"l": left, "r": 8, "t": _SCALE, "b": bottom, "pad": 0},
    )


def _longest(tokens: Iterable[str]) -> int:
    """Pixels for the longest label of an axis."""
    return round(0.58 * _FONT * max(min(sum(map(_room, token)), _LONGEST) for token in tokens))


def _level(tokens: Sequence[str], cell: float) -> bool:
    """Whether the tokens fit side by side without being turned."""
    return _longest(tokens) + 8 <= cell


def _room(character: str) -> int:
    """The width of a character, in halves of a wide one."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# ---- axes ----


def _across(tokens: Sequence[str], cell: float, places: set[float], labelled: set[float], width: float) -> dict:
    level = _level(tokens, cell)
    room = cell if level else None
    return _axis(tokens, cell, places, labelled, room=room) | {
        "title": {"text": WORDS["key"], "standoff": 6},
        "range": [-0.5, width - 0.5],
        "tickangle": 0 if level else -90,
        "constrain": "domain",
        "constraintoward": "left",
    }


def _down(
    tokens: Sequence[str], cell: float, places: set[float], depth: tuple[float, float], strong: int | None = None
) -> dict:
    axis = _axis(tokens, cell, places, places)
    if strong is not None:
        axis["tickvals"] = sorted({*axis["tickvals"], float(strong)})
        axis["labelalias"][f"{strong:.2f}"] = f"<b>{short(tokens[strong])}</b>"
    return axis | {
        "title": {"text": WORDS["query"], "standoff": 6},
        "range": depth[::-1],
        "scaleanchor": "x",
        "constrain": "domain",
        "constraintoward": "top",
    }


def _axis(
    tokens: Sequence[str], cell: float, places: set[float], labelled: set[float], room: float | None = None
) -> dict:
    """An axis whose coordinates are read as tokens: short under a tick (two decimals), whole on hover (three)."""
    every = 1 if room else math.ceil((_FONT + 2) / cell)
    ticks = {start + index: short(tokens[index]) for start in labelled for index in range(0, len(tokens), every)}
    whole = [plain(token) for token in tokens]
    hover = {start + index: token for start in places for index, token in enumerate(whole)}
    return {
        "tickvals": list(ticks),
        "tickformat": ".2f",
        "hoverformat": ".3f",
        "labelalias": {f"{x:.2f}": token for x, token in ticks.items()} | {f"{x:.3f}": token for x, token in hover.items()},
        "tickfont": {"size": _FONT},
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
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
    visible = np.abs(values[np.isfinite(values)])
    reach = float(visible.max()) if visible.size else 0.0
    return (-reach, reach) if reach else (-1.0, 1.0)


def _heatmap(values: np.ndarray, place: tuple[float, float], name: str, about: str = "") -> dict:
    return {
        "type": "heatmap",
        "z": values,
        "x0": place[0],
        "y0": place[1],
        "name": name,
        "coloraxis": "coloraxis",
        "hovertemplate": about + _about("%{z:.4f}"),
        "hovertemplatefallback": WORDS["hidden"],
    }


def _about(value: str) -> str:
    return f"{WORDS['query']}  %{{y}}<br>{WORDS['key']}  %{{x}}<br>{value}<extra></extra>"


def _numbered(values: np.ndarray, cell: float) -> dict:
    """One heatmap, with the numbers in its cells while they fit."""
    trace = _heatmap(values, (0, 0), "")
    if cell < 26:
        return trace
    text = [["" if np.isnan(value) else two_decimals(value) for value in row] for row in values.tolist()]
    if max(len(number) for row in text for number in row) * 6 > cell:
        return trace
    return trace | {"text": text, "texttemplate": "%{text}"}


def _hatch(maps: Sequence[np.ndarray], places: Sequence[tuple[float, float]], showlegend: bool = True) -> list[dict]:
    """One hatched ground behind all maps, if any cell is blank: it shows through there."""
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
            "fillcolor": "rgba(0,0,0,0)",
            "fillpattern": {"shape": "/", "size": 6, "solidity": 0.2, "fgcolor": _HATCH, "bgcolor": "rgba(0,0,0,0)"},
            "zorder": -1,
            "hoverinfo": "skip",
            "name": WORDS["hidden"],
            "showlegend": showlegend,
        }
    ]


def _titles(names: Sequence[str], places: Sequence[tuple[float, float]], wide: int) -> list[dict]:
    return [
        {
            "type": "scatter",
            "mode": "text",
            "x": [x + (wide - 1) / 2 for x, _ in places],
            "y": [y - 0.5 for _, y in places],
            "text": names,
            "textposition": "top center",
            "textfont": {"size": _FONT},
            "cliponaxis": False,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def _markers(values: np.ndarray, cell: float) -> list[dict]:
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
            "text": [WORDS["hidden"] if np.isnan(value) else f"{value:.4f}" for value in values.ravel().tolist()],
            "marker": {"symbol": "square", "size": max(0.5 * cell, 4), "opacity": 0},
            "selected": unseen,
            "unselected": unseen,
            "hovertemplate": _about("%{text}"),
            "showlegend": False,
        }
    ]


def _outline(query: int | None, wide: int) -> list[dict]:
    if query is None:
        return []
    line = {"color": _OUTLINE, "width": 2.5}
    return [{"type": "rect", "x0": -0.5, "x1": wide - 0.5, "y0": query - 0.5, "y1": query + 0.5, "line": line}]


# ---- the figure ----


def _coloraxis(limits: tuple[float, float], start: float = 0.0) -> dict:
    """A scale whose colours come from the template: sequential from zero up, diverging around zero."""
    low, high = limits
    return {
        "cmin": low,
        "cmax": high,
        "autocolorscale": True,
        "colorbar": {
            "orientation": "h",
            "x": start,
            "xanchor": "left",
            "xpad": 0,
            "y": 1,
            "yanchor": "bottom",
            "ypad": 0,
            "lenmode": "pixels",
            "len": 130,
            "thickness": 8,
            "outlinewidth": 0,
            "tickvals": [low, (low + high) / 2, high],
            "ticktext": [two_decimals(low), "0", two_decimals(high)] if low else ["0", "0.5", "1"],
            "tickfont": {"size": _FONT},
            "ticks": "",
        },
    }


def _figure(traces: list[dict], **layout) -> go.Figure:
    return go.Figure(
        {
            "data": traces,
            "layout": {
                "dragmode": False,
                "hovermode": "closest",
                "legend": {
                    "orientation": "h",
                    "x": 1,
                    "xanchor": "right",
                    "y": 1,
                    "yanchor": "bottom",
                    "itemclick": False,
                    "itemdoubleclick": False,
                },
            }
            | layout,
        }
    )

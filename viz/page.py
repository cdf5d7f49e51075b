"""A page in one file: opens from disk, asks no network for anything."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from viz.cells import STYLE
from viz.heatmaps import standalone

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
_STYLE = """<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
body { color: light-dark(#14161c, #eceff4); background: light-dark(#ffffff, #14161c); }
</style>"""


def page(title: str, pieces: Sequence[str | go.Figure], *, dark: bool) -> str:
    """A whole HTML document of ready HTML pieces and figures, in order, in the light or the dark theme."""
    body = "\n".join(
        f"<section>{piece}</section>" if isinstance(piece, str) else _figure(piece, dark) for piece in pieces
    )
    return (
        f'<!doctype html>\n<html lang="en" style="color-scheme:{"dark" if dark else "light"}"><head>'
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"{STYLE}{_STYLE}<script>{get_plotlyjs()}</script></head>\n<body>{body}</body></html>\n"
    )


def _figure(figure: go.Figure, dark: bool) -> str:
    return standalone(figure, dark=dark).to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False})

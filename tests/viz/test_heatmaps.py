"""Figures by the arrays they carry: the numbers, the tokens they are read as, and where each cell lies."""

import json
import re
from html import unescape

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.trace import QUERY_BY_KEY, Step
from viz import heatmaps, numbers
from viz.heatmaps import CLICKABLE, HIDING, WORDS, chain, config, cut, focus, head_grid, plain, standalone

SHAPES = [(1, 1, 1), (1, 2, 2), (3, 2, 7), (5, 7, 3), (6, 5, 5), (7, 13, 11), (11, 3, 17), (2, 31, 29)]
HOSTILE = ["<b>x</b>", "<a href='#'>x</a>", "a<br>b", "H<sub>2</sub>", "&lt;", "&#36;", "$x^2$", "%{z}", "#000037", ""]


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def shares(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1]).astype(np.float32)


def names(word: str, count: int) -> list[str]:
    return [f"{word}{n}" for n in range(count)]


def after(query: int, key: int) -> np.ndarray:
    return np.triu(np.ones((query, key), bool), 1)


def maps(figure: go.Figure) -> list[go.Heatmap]:
    """The heatmaps a reader can point at, in the order they were drawn."""
    return [trace for trace in figure.data if trace.type == "heatmap" and trace.coloraxis and trace.hoverinfo != "skip"]


def of_type(figure: go.Figure, mode: str) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.type == "scatter" and trace.mode == mode]


def hovered(figure: go.Figure, trace: go.Heatmap, query: int, key: int) -> tuple[str, str]:
    """The tokens plotly shows on hovering: the alias of the coordinate in the format of the trace."""
    assert trace.xhoverformat == trace.yhoverformat == ".3f"
    x, y = f"{(trace.x0 or 0) + key:.3f}", f"{(trace.y0 or 0) + query:.3f}"
    number = (trace.xaxis or "x")[1:]
    down, across = figure.layout[f"yaxis{number}"], figure.layout[f"xaxis{number}"]
    return unescape(down.labelalias[y]), unescape(across.labelalias[x])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("signed", [True, False])
def test_every_head_is_drawn_with_its_own_numbers(shape: tuple[int, int, int], signed: bool) -> None:
    values = noise(*shape) if signed else shares(*shape)
    drawn = maps(head_grid(values, names("q", shape[1]), names("k", shape[2]), signed=signed))
    assert [trace.name for trace in drawn] == [f"head {n + 1}" for n in range(shape[0])]
    for head, trace in zip(values, drawn, strict=True):
        assert trace.z.dtype == np.float32
        np.testing.assert_array_equal(trace.z, head)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_cell_is_read_as_its_query_and_key(shape: tuple[int, int, int]) -> None:
    rows, columns = names("q", shape[1]), names("k", shape[2])
    figure = head_grid(noise(*shape), rows, columns, signed=True)
    for trace in maps(figure):
        for query, row in enumerate(rows):
            for key, column in enumerate(columns):
                assert hovered(figure, trace, query, key) == (row, column)


@pytest.mark.parametrize("shape", SHAPES)
def test_maps_lie_apart_inside_the_axes_and_the_first_query_is_on_top(shape: tuple[int, int, int]) -> None:
    heads, high, wide = shape
    figure = head_grid(noise(*shape), names("q", high), names("k", wide), signed=True)
    places = [(trace.y0, trace.x0) for trace in maps(figure)]
    assert places == sorted(places)  # heads are read like words: along a line, then down
    left, right = figure.layout.xaxis.range
    bottom, top = figure.layout.yaxis.range
    assert bottom > top
    taken = set()
    for trace in maps(figure):
        assert left <= trace.x0 - 0.5 and trace.x0 + wide - 0.5 <= right
        assert top <= trace.y0 - 0.5 and trace.y0 + high - 0.5 <= bottom
        cells = {(4 * trace.x0 + x, 4 * trace.y0 + y) for x in range(4 * wide) for y in range(4 * high)}
        assert not taken & cells
        taken |= cells
    titles = of_type(figure, "text")
    assert len(titles) == (heads > 1)
    for title in titles:
        assert list(title.text) == [f"head {n + 1}" for n in range(heads)]
        assert [*zip(title.x, title.y, strict=True)] == [(t.x0 - 0.5, t.y0 - 0.5) for t in maps(figure)]


@pytest.mark.parametrize("shape", SHAPES)
def test_ticks_stand_at_tokens_they_name(shape: tuple[int, int, int]) -> None:
    rows, columns = names("q", shape[1]), names("k", shape[2])
    figure = head_grid(noise(*shape), rows, columns, signed=True)
    for axis, tokens, starts in (
        (figure.layout.xaxis, columns, {t.x0 for t in maps(figure)}),
        (figure.layout.yaxis, rows, {t.y0 for t in maps(figure)}),
    ):
        meant = {start + n: token for start in starts for n, token in enumerate(tokens)}
        assert axis.tickformat == axis.hoverformat == ".2f"
        assert axis.tickvals
        for place in axis.tickvals:
            assert axis.labelalias[f"{place:.2f}"] == meant[place]


def test_eight_heads_of_sixteen_tokens_fit_the_panel() -> None:
    figure = head_grid(shares(8, 16, 16), names("token", 16), names("token", 16), signed=False)
    assert figure.layout.height <= 480


def test_a_figure_is_drawn_as_plotly_makes_it() -> None:
    values, tokens = shares(3, 5, 7), (names("q", 5), names("k", 7))
    for draw in (
        lambda: head_grid(values, *tokens, signed=False),
        lambda: head_grid(values.astype(np.float64), *tokens, signed=True, hidden=after(5, 7)),
        lambda: focus(values[0], *tokens, signed=False, hidden=after(5, 7)),
        lambda: focus(values[0, ::2], tokens[0][::2], tokens[1], signed=True),
        lambda: chain(dict.fromkeys(QUERY_BY_KEY, values[0]), *tokens),
    ):
        drawn, made = draw(), draw()
        assert len(made.data) and "_drawn" not in vars(made)
        assert drawn.to_dict() == made.to_dict()
        assert json.loads(drawn.to_json()) == json.loads(made.to_json())
        assert drawn == made
        np.testing.assert_equal(*([trace.to_plotly_json() for trace in one.data] for one in (drawn, made)))  # NaN is NaN


def test_a_figure_not_yet_made_is_checked_when_it_is() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        heatmaps.Figure({"data": [{"type": "heatmap", "nonsense": 1}], "layout": {}}).data  # noqa: B018 — asks for it
    figure = focus(noise(3, 3), [*"abc"], [*"abc"], signed=True)
    with pytest.raises(AttributeError, match="nonsense"):
        figure.nonsense  # noqa: B018 — asks for it


def test_figures_stay_still() -> None:
    for draw, values in ((head_grid, noise(2, 3, 3)), (focus, noise(3, 3))):
        figure = draw(values, [*"abc"], [*"abc"], signed=True)
        assert figure.layout.dragmode is False
        assert figure.layout.xaxis.fixedrange and figure.layout.yaxis.fixedrange
        assert figure.layout.yaxis.scaleanchor == "x"


def test_weights_run_from_zero_to_one_and_signed_values_as_far_down_as_up() -> None:
    weights = head_grid(shares(3, 5, 7) / 2, names("q", 5), names("k", 7), signed=False).layout.coloraxis
    assert (weights.cmin, weights.cmax) == (0, 1)
    values = np.array([[[-3.0, 2.0]], [[0.5, 1.0]]], np.float32)
    scores = head_grid(values, ["q"], ["k", "l"], signed=True).layout.coloraxis
    assert (scores.cmin, scores.cmax) == (-3, 3)
    nothing = head_grid(np.zeros((1, 2, 2)), ["q", "r"], ["k", "l"], signed=True).layout.coloraxis
    assert (nothing.cmin, nothing.cmax) == (-1, 1)


@pytest.mark.parametrize("extreme", [1e9, -np.inf, np.nan])
def test_what_is_hidden_is_blank_and_never_stretches_the_range(extreme: float) -> None:
    values = noise(3, 5, 5)
    hidden = after(5, 5)
    reach = np.abs(values[:, ~hidden]).max()
    values[:, hidden] = extreme
    figure = head_grid(values, [*"abcde"], [*"abcde"], signed=True, hidden=hidden)
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-reach, reach)
    for head, trace in zip(values, maps(figure), strict=True):
        np.testing.assert_array_equal(np.isnan(trace.z), hidden)
        np.testing.assert_array_equal(trace.z[~hidden], head[~hidden])


def test_minus_infinity_is_hidden_without_being_told() -> None:
    values = np.where(after(5, 5), -np.inf, noise(5, 5)).astype(np.float32)
    (trace,) = maps(focus(values, [*"abcde"], [*"abcde"], signed=True))
    np.testing.assert_array_equal(np.isnan(trace.z), after(5, 5))


def test_each_head_may_hide_cells_of_its_own() -> None:
    hidden = noise(3, 5, 7) > 0
    figure = head_grid(shares(3, 5, 7), names("q", 5), names("k", 7), signed=False, hidden=hidden)
    for away, trace in zip(hidden, maps(figure), strict=True):
        np.testing.assert_array_equal(np.isnan(trace.z), away)


def test_all_hidden_draws_all_the_same() -> None:
    everything = np.ones((3, 3), bool)
    for figure in (
        head_grid(noise(2, 3, 3), [*"abc"], [*"abc"], signed=True, hidden=everything),
        focus(noise(3, 3), [*"abc"], [*"abc"], signed=True, hidden=everything),
    ):
        assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-1, 1)
        assert np.isnan(maps(figure)[0].z).all()


def test_hidden_cells_are_hatched_from_below_and_say_so() -> None:
    values = noise(5, 3, 7)
    hidden = after(3, 7)
    assert not of_type(head_grid(values, names("q", 3), names("k", 7), signed=True), "lines")
    figure = head_grid(values, names("q", 3), names("k", 7), signed=True, hidden=hidden)
    (hatch,) = of_type(figure, "lines")
    assert hatch.fillpattern.shape and hatch.zorder < 0 and hatch.name == WORDS["hidden"]
    corners = [(x, y) for x, y in zip(hatch.x, hatch.y, strict=True) if x is not None]
    for head, trace in enumerate(maps(figure)):
        xs, ys = zip(*corners[5 * head : 5 * head + 5], strict=True)
        assert (min(xs), max(xs)) == (trace.x0 - 0.5, trace.x0 + 6.5)
        assert (min(ys), max(ys)) == (trace.y0 - 0.5, trace.y0 + 2.5)
    below = [trace for trace in figure.data if trace.type == "heatmap" and not trace.coloraxis]
    assert figure.data.index(below[-1]) < figure.data.index(maps(figure)[0])
    for head, (unseen, trace) in enumerate(zip(below, maps(figure), strict=True)):
        assert (unseen.x0, unseen.y0, unseen.opacity) == (trace.x0, trace.y0, 0)
        assert (len(unseen.z), len(unseen.z[0])) == (3, 7)
        assert f"head {head + 1}" in unseen.hovertemplate and WORDS["hidden"] in unseen.hovertemplate
        assert f"head {head + 1}" in trace.hovertemplate and "%{z:.4f}" in trace.hovertemplate
        assert trace.hoverongaps is False


@pytest.mark.parametrize("token", HOSTILE)
def test_a_token_is_shown_and_never_obeyed(token: str) -> None:
    assert unescape(plain(token)) == token
    assert not re.search("[<>]", plain(token))
    assert not re.search("#0000[0-4][0-9]", plain(token))  # what Streamlit's theme would paint over
    figure = focus(noise(1, 2), [token], [token, "b"], signed=True)
    assert hovered(figure, maps(figure)[0], 0, 0) == (token, token)
    labels = "".join([*figure.layout.xaxis.labelalias.values(), *figure.layout.yaxis.labelalias.values()])
    assert not re.search("<|#0", labels)
    assert token not in figure.to_json().replace("#000037", "") or not re.search("[<>#]", token)


@given(st.text(max_size=40))
def test_plain_is_only_an_escape(token: str) -> None:
    assert re.search("[<>#]|&(?!amp;|lt;|gt;|#35;)", plain(token).replace("&#35;", "")) is None
    for mark, written in (("&gt;", ">"), ("&lt;", "<"), ("&#35;", "#"), ("&amp;", "&")):
        assert plain(token).count(mark) == token.count(written)


def test_long_tokens_are_cut_on_the_axis_and_whole_on_hover() -> None:
    long = "Donaudampfschifffahrtsgesellschaft"
    assert cut("short") == "short"
    assert cut(long).endswith("…") and len(cut(long)) <= 12 and long.startswith(cut(long)[:-1])
    assert len(cut("注意力机制注意力机制")) == 6
    assert cut("e\u0301" * 12) == "e\u0301" * 12  # marks take no room
    assert cut("&" * 30) == "&amp;" * 11 + "…"  # cut before it is escaped
    figure = focus(noise(2, 2), [long, "b"], [long, "b"], signed=True)
    assert figure.layout.yaxis.labelalias["0.00"] == cut(long)
    assert hovered(figure, maps(figure)[0], 0, 0) == (long, long)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 7), (7, 2), (5, 5), (12, 12)])
@pytest.mark.parametrize("signed", [True, False])
def test_numbers_in_the_cells_are_the_values(shape: tuple[int, int], signed: bool) -> None:
    values = noise(*shape) * 3 if signed else shares(*shape)
    values.flat[0] = 0.0004
    hidden = after(*shape)
    figure = focus(values, names("q", shape[0]), names("k", shape[1]), signed=signed, hidden=hidden)
    layers = [trace for trace in figure.data if trace.texttemplate]
    for query, key in np.ndindex(shape):
        written = "".join(trace.text[query][key].replace("\u200b", "") for trace in layers)
        assert written == ("" if hidden[query, key] else numbers.short(float(values[query, key])))
    ink, paper = layers
    np.testing.assert_array_equal(paper.z[~np.isnan(paper.z)], values[~np.isnan(paper.z)])
    assert {len(text) for trace in layers for row in trace.text for text in row} == {
        max(len(text.replace("\u200b", "")) for trace in layers for row in trace.text for text in row)
    }
    share = np.abs(values) / figure.layout.coloraxis.cmax
    assert ink.textfont.color != paper.textfont.color
    for trace, where in ((ink, share < 0.5), (paper, share > 0.7)):
        other = paper if trace is ink else ink
        assert not any(other.text[q][k].strip("\u200b") for q, k in zip(*where.nonzero(), strict=True))


def test_numbers_without_room_are_left_out() -> None:
    for values in (shares(17, 17), np.eye(17), np.full((12, 12), -1234.56, np.float32)):
        figure = focus(values, names("q", len(values)), names("k", len(values)), signed=True)
        assert not [trace for trace in figure.data if trace.texttemplate]


@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (7, 3), (48, 47)])
def test_every_cell_can_be_clicked_and_says_which_it_is(shape: tuple[int, int]) -> None:
    values = noise(*shape)
    hidden = after(*shape)
    figure = focus(values, names("q", shape[0]), names("k", shape[1]), signed=True, hidden=hidden)
    (markers,) = of_type(figure, "markers")
    assert figure.data[-1] is markers
    assert markers.hoverinfo is None and "%{text}" in markers.hovertemplate  # plotly reports no click on skipped traces
    assert [list(cell) for cell in markers.customdata] == [[q, k] for q in range(shape[0]) for k in range(shape[1])]
    for x, y, (query, key), text in zip(markers.x, markers.y, markers.customdata, markers.text, strict=True):
        assert (x, y) == (key, query)
        assert text == (WORDS["hidden"] if hidden[query, key] else numbers.exact(float(values[query, key])))
        assert hovered(figure, markers.update(x0=0, y0=0), query, key) == (f"q{query}", f"k{key}")


def test_too_many_cells_have_no_markers() -> None:
    for shape in ((CLICKABLE + 1, 2), (2, CLICKABLE + 1)):
        figure = focus(noise(*shape), names("q", shape[0]), names("k", shape[1]), signed=True)
        assert not of_type(figure, "markers")


def steps(query: int, key: int) -> dict[Step, np.ndarray]:
    scores = noise(query, key)
    masked = np.where(after(query, key), -np.inf, scores / 4)
    return dict(zip(QUERY_BY_KEY, (scores, scores / 4, masked, shares(query, key)), strict=True))


@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (5, 3), (31, 29)])
def test_the_chain_draws_each_step_on_its_own_scale(shape: tuple[int, int]) -> None:
    made, hidden = steps(*shape), after(*shape)
    figure = chain(made, names("q", shape[0]), names("k", shape[1]), hidden=hidden)
    assert [trace.name for trace in maps(figure)] == [*made]
    for trace, (step, values) in zip(maps(figure), made.items(), strict=True):
        away = hidden if step in HIDING else np.zeros(shape, bool)
        np.testing.assert_array_equal(np.isnan(trace.z), away)
        np.testing.assert_array_equal(trace.z[~away], values[~away].astype(np.float32))
        scale = figure.layout[trace.coloraxis]
        reach = np.abs(trace.z[~away]).max()
        assert (scale.cmin, scale.cmax) == ((0, 1) if step is Step.WEIGHTS else (-reach, reach))
        assert scale.colorbar.title.text == step
        assert hovered(figure, trace, shape[0] - 1, shape[1] - 1) == (f"q{shape[0] - 1}", f"k{shape[1] - 1}")
    hatched = {trace.xaxis for trace in of_type(figure, "lines")}
    assert hatched == ({"x3", "x4"} if hidden.any() else set())
    domains = [figure.layout[f"xaxis{n}"].domain for n in ("", 2, 3, 4)]
    assert all(one[1] < other[0] for one, other in zip(domains, domains[1:], strict=False))


def test_scales_are_left_to_the_theme() -> None:
    figure = head_grid(noise(2, 3, 3), [*"abc"], [*"abc"], signed=True)
    assert figure.layout.coloraxis.autocolorscale and not figure.layout.coloraxis.colorscale
    assert not any(trace.colorscale for trace in maps(figure))


@pytest.mark.parametrize("dark", [True, False])
def test_a_figure_for_a_page_without_the_theme_carries_its_colours(dark: bool) -> None:
    figure = focus(shares(3, 3), [*"abc"], [*"abc"], signed=False, hidden=after(3, 3))
    painted = standalone(figure, dark=dark)
    text = painted.to_json()
    assert "#000037" not in text and "#000038" not in text
    scales = painted.layout.template.layout.colorscale
    assert len(scales.sequential) == len(scales.diverging) == 10
    before, after_ = (json.loads(one.to_json())["data"] for one in (figure, painted))
    assert [trace.get("z") for trace in before] == [trace.get("z") for trace in after_]
    assert "#000037" in figure.to_json()  # the original is as it was


def test_large_figures_build() -> None:
    figure = head_grid(noise(12, 512, 512), names("q", 512), names("k", 512), signed=True, hidden=after(512, 512))
    assert len(maps(figure)) == 12
    assert len(maps(head_grid(noise(144, 7, 7), names("q", 7), names("k", 7), signed=True))) == 144
    assert not of_type(focus(noise(512, 512), names("q", 512), names("k", 512), signed=True), "markers")


def test_a_weight_costs_little_on_the_way() -> None:
    values = shares(12, 256, 256)
    size = len(head_grid(values, names("q", 256), names("k", 256), signed=False).to_json())
    assert size / values.size < 5.8  # 5.33 in base64, some escaped slashes, labels


def test_the_mode_bar_only_saves() -> None:
    made = config("png", "weights")
    assert made["modeBarButtons"] == [["toImage"]] and made["displaylogo"] is False and made["scrollZoom"] is False
    assert made["toImageButtonOptions"] == {"format": "png", "filename": "weights", "scale": 2}


@pytest.mark.parametrize(("small", "digits"), [(0.00006, ".4f"), (0.00004, ".6~g"), (-0.00004, ".6~g"), (0.0, ".4f")])
def test_hover_never_shows_a_small_number_as_zero(small, digits):
    values = np.array([[[0.5, small]]], dtype=np.float32)
    assert f"%{{z:{digits}}}" in head_grid(values, ["a"], ["b", "c"], signed=True).data[-1].hovertemplate

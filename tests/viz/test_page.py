"""The page in one file: whole HTML, figures with their numbers, and nothing asked of a network."""

import re
from base64 import b64encode
from html.parser import HTMLParser

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from viz import cells, heatmaps
from viz.page import page

HOSTILE = ["<script>alert(1)</script>", "<b>x</b>", "</script><script>alert(2)</script>", "<!--", "javascript:1", "$x$", "注意"]
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 7)).astype(np.float32)


def document(dark: bool = False, labels=HOSTILE) -> str:
    return page(
        "A & B <title>",
        [
            f"<h1>{' '.join(cells.token(label) for label in labels)}</h1>",
            heatmaps.head_grid(WEIGHTS, labels, labels, signed=False),
            heatmaps.focus(WEIGHTS[0], labels, labels, signed=False),
        ],
        dark=dark,
    )


class Reader(HTMLParser):
    """Tags, and the text of scripts apart from all other text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open, self.tags, self.words, self.scripts = [], [], [], []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "img", "link", "hr"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts[-1] += data
        else:
            self.words.append(data)


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_a_whole_document(dark):
    read = Reader(document(dark))
    assert not read.open
    assert document(dark).startswith("<!doctype html>")
    assert [tag for tag, _ in read.tags if tag in ("html", "head", "body", "title")] == ["html", "head", "title", "body"]
    assert read.tags[0][1]["style"] == f"color-scheme:{'dark' if dark else 'light'}"
    assert "A & B <title>" in read.words


def test_nothing_comes_from_elsewhere():
    read = Reader(document())
    for tag, given in read.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form", "a")
        assert not set(given) & {"src", "href", "srcset", "action", "data", "poster"}
        assert not any(name.startswith("on") for name in given)
    rest = document().replace(get_plotlyjs(), "")
    assert len(rest) < 200_000
    assert not re.search(r"@import|url\(|//cdn|integrity=", rest)
    assert set(re.findall(r"https?://[^\s\"'<\\]+", rest)) <= {"https://plotly.com", "https://plot.ly"}  # figure config, unused


def test_the_browser_is_told_to_ask_nobody():
    policies = [given["content"] for _, given in Reader(document()).tags if given.get("http-equiv")]
    assert len(policies) == 1
    rules = dict(rule.split(" ", 1) for rule in policies[0].split("; "))
    assert rules["default-src"] == "'none'"
    assert not any("http" in sources or "*" in sources for sources in rules.values())
    assert "connect-src" not in rules


def test_plotly_is_in_it_once_and_each_figure_in_a_script_of_its_own():
    scripts = [script for script in Reader(document()).scripts if script.strip()]
    assert sum(script == get_plotlyjs() for script in scripts) == 1
    assert sum("Plotly.newPlot(" in script and script != get_plotlyjs() for script in scripts) == 2


def test_tokens_stay_text():
    read = Reader(document())
    assert [word for word in read.words if word in HOSTILE] == HOSTILE
    for script in read.scripts:
        if script != get_plotlyjs():
            shown = script.replace("\\u003c", "<").replace("\\u003e", ">")  # what plotly would draw as marks
            assert not any(mark in words for words in (script, shown) for mark in ("<script", "<b>x", "<!--", "</script"))
    assert not any(tag == "b" for tag, _ in read.tags)


def test_the_figures_are_the_ones_given():
    [first, second] = [s for s in Reader(document()).scripts if "Plotly.newPlot(" in s and s != get_plotlyjs()]
    drawn = [re.findall(r'"bdata":"(.*?)"', script.replace("\\u002f", "/")) for script in (first, second)]
    wanted = [b64encode(head.tobytes()).decode() for head in WEIGHTS]
    assert [written for written in drawn[0] if written in wanted] == wanted
    assert wanted[0] in drawn[1] and wanted[1] not in drawn[1]

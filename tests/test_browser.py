"""What a person does, in a real browser on a real server: typing, clicking, keys, links, files, hostile text."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from models.trace import Step
from sections import arithmetic, story, walk_through
from sections.scene import Attention, Mask, Scene, Source, compute
from tests.browser import DESK, PHONE, READY, address_of, open_section, settle, until_address
from tests.sections.oracle import agree, work_out
from tests.sections.pages import Table, read

RANDOM = {"source": "random"}
ONE_HEAD = RANDOM | {"attention": "single-head"}
WORKED = {"source": "worked-example", "attention": "single-head", "text": "Thinking Machines"}

# ---- reading the page ----


def tables(page: Page) -> dict[str, Table]:
    found = [read(markup).tables[0] for markup in page.locator("table.walk").evaluate_all("all => all.map(e => e.outerHTML)")]
    return {table.caption: table for table in found}


def walk(page: Page) -> list[str]:
    """All words and numbers of the walk, as they are shown."""
    return page.locator(".say, table.walk").all_text_contents()


def choose(page: Page, name: str, option: str) -> None:
    page.locator(f".st-key-{name}").get_by_role("radio", name=option, exact=True).click()


def says(page: Page, start: str) -> None:
    expect(page.locator(".say")).to_have_text(re.compile(f"^{re.escape(start)} "))


@contextmanager
def redrawn(page: Page) -> Iterator[None]:
    """Until the sentence of the walk is another one."""
    before = page.locator(".say").inner_text()
    yield
    expect(page.locator(".say")).not_to_have_text(before)


@contextmanager
def cut_off(page: Page) -> Iterator[None]:
    """What the page says to the server waits."""
    page.evaluate(
        """() => { const send = WebSocket.prototype.send, held = []
          WebSocket.prototype.send = function (message) { held.push([this, message]) }
          window.release = () => { WebSocket.prototype.send = send; held.forEach(([socket, message]) => socket.send(message)) } }"""
    )
    yield
    page.evaluate("release()")


def cell(page: Page, figure: str, query: int, key: int) -> tuple[float, float]:
    """Where the middle of a map's cell is on the screen; both counted from 0."""
    plot = page.locator(f".st-key-{figure} .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    return tuple(
        plot.evaluate(
            """(plot, [query, key]) => { const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect()
              return [box.x + xaxis._offset + xaxis.l2p(key), box.y + yaxis._offset + yaxis.l2p(query)] }""",
            [query, key],
        )
    )


def numbers_hold(page: Page, scene: Scene, head: int, query: int) -> None:
    """The numbers read off the page are those of formulas worked out here. Counted from 0."""
    page.wait_for_function("count => document.querySelectorAll('table.walk').length >= count", arg=6)
    made, table = compute(scene), tables(page)
    wanted = work_out(made, head, query)

    def column(name: str, place: int) -> list[str]:
        return [text for row in table[story.CAPTIONS[name]].rows for text in row[place].numbers]

    agree(column("query", 2), [*wanted["x"], *wanted["q"]])
    for place, name in ((1, "scores"), (2, "scaled"), (3, "masked")):
        agree(column("masked", place), wanted[name])
    agree(column("weights", 3), wanted["weights"])
    agree(column("context", 3), wanted["weighted"])
    agree(table[story.CAPTIONS["context"]].foot[3].numbers, wanted["z"])
    agree(table[story.CAPTIONS["together"]].foot[2].numbers, wanted["output"])


# ---- what a person does ----


def test_typing_choosing_and_clicking_a_cell(visit):
    page = visit(WORKED)
    expect(page.locator(".say")).to_have_text("Thinking takes 88 % from Thinking and 12 % from Machines.")
    box = page.locator(".st-key-text input")
    box.fill("")
    box.press_sequentially("the cat sat")  # no Enter: it follows the typing
    says(page, "the")
    expect(page.locator(".st-key-sentence button.chip bdi")).to_have_text(["the", "cat", "sat"])
    choose(page, "attention", "multi-head")
    open_section(page, "grid")
    page.wait_for_selector(".st-key-head-grid .nsewdrag", state="attached")
    with redrawn(page):
        choose(page, "mask", "causal")
    until_address(page, "mask", "causal")
    scene = Scene(text="the cat sat", attention=Attention.MULTI_HEAD, mask=Mask.CAUSAL, source=Source.RANDOM)
    numbers_hold(page, scene, 0, 0)

    settle(page)
    page.mouse.click(*cell(page, "focus", 2, 1))
    until_address(page, "query", "3")
    says(page, "sat")
    numbers_hold(page, scene, 0, 2)
    settle(page)
    page.mouse.click(*cell(page, "focus", 1, 0))
    says(page, "cat")
    assert address_of(page) == {
        "text": "the cat sat", "mask": "causal", "source": "random", "query": "2",
    }  # fmt: skip
    numbers_hold(page, scene, 0, 1)


def test_chips_by_mouse_and_by_keyboard(visit):
    page = visit({"text": "one two three four"} | ONE_HEAD)
    chips = page.locator(".st-key-sentence button.chip")
    scene = Scene(text="one two three four", attention=Attention.SINGLE_HEAD, source=Source.RANDOM)
    chips.nth(2).click()
    until_address(page, "query", "3")
    says(page, "three")
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    numbers_hold(page, scene, 0, 2)

    page.locator(".st-key-text input").focus()
    inside = "() => document.activeElement.shadowRoot?.activeElement?.innerText.split('\\n')[0] ?? ''"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(inside):
            break
    assert page.evaluate(inside) == "three"  # one stop for all of them, at the one that asks
    page.keyboard.press("ArrowRight")
    assert page.evaluate(inside) == "four"
    page.keyboard.press("Enter")
    until_address(page, "query", "4")
    says(page, "four")
    numbers_hold(page, scene, 0, 3)
    page.keyboard.press("Home")
    assert page.evaluate(inside) == "one"
    page.keyboard.press("Space")
    says(page, "one")
    expect(page.locator(".st-key-query input")).to_have_value("1")  # Python has followed
    page.locator(".st-key-query input").fill("2")
    page.keyboard.press("Enter")
    says(page, "two")


AS_WRITTEN = """wanted => { // where the walk is not what Python writes
  const shown = [...document.querySelectorAll(".place > section > :last-child")].map(piece => piece.cloneNode(true))
  return wanted.flatMap((html, index) => {
    const other = Object.assign(document.createElement("div"), {innerHTML: html})
    for (const node of shown[index]?.querySelectorAll("[data-blank]") ?? [])
      for (const name of ["data-blank", "data-label"]) node.removeAttribute(name)
    return shown[index]?.isEqualNode(other) ? [] : [`${shown[index]?.innerHTML}\\n\\n${html}`]
  })
}"""


def as_written(page: Page, scene: Scene, query: int, *, head: int = 0, products: bool = False) -> None:
    """Sentence and pictures are those of one query, whatever stood there before. Head and query are counted from 0."""
    made = compute(scene)
    drawn = arithmetic.pictures(made, head, query, products=products, every_key=False)
    wanted = [f'<p class="say">{walk_through.sentence(made, head, query)}</p>', *drawn]
    page.wait_for_function(f"wanted => ({AS_WRITTEN})(wanted).length === 0", arg=wanted)


def test_the_walk_is_written_over_to_what_is_chosen(visit):
    """Other numbers, fewer rows, hidden cells, words in the place of vectors."""
    page, example = visit(WORKED), Scene(text="Thinking Machines", attention=Attention.SINGLE_HEAD, source=Source.WORKED_EXAMPLE)
    as_written(page, example, 0)
    chips = page.locator(".st-key-sentence .chip")
    chips.nth(1).click()
    as_written(page, example, 1)
    text = "one two three four five six seven eight nine ten eleven twelve thirteen [PAD]"
    box = page.locator(".st-key-text input")
    box.fill(text)
    choose(page, "source", "random")
    scene = Scene(text=text, attention=Attention.SINGLE_HEAD, source=Source.RANDOM)
    as_written(page, scene, 1)
    choose(page, "mask", "causal")
    scene = replace(scene, mask=Mask.CAUSAL)
    as_written(page, scene, 1)
    for query in (13, 4):
        chips.nth(query).click()
        as_written(page, scene, query)
    page.locator("[data-testid=stPopoverButton]").first.click()
    page.locator(".st-key-products label").first.click()
    as_written(page, scene, 4, products=True)
    page.keyboard.press("Escape")
    box.fill("one")
    as_written(page, replace(scene, text="one"), 0, products=True)


def test_another_query_needs_nothing_from_the_server(visit):
    """All that follows it in the walk; another head does not, and is waited for."""
    page, scene = visit({"text": "one two three four"} | RANDOM), Scene(text="one two three four", source=Source.RANDOM)
    as_written(page, scene, 0)
    settle(page)
    with cut_off(page):
        for query in (2, 1, 3):
            page.locator(".st-key-sentence button.chip").nth(query).click()
            as_written(page, scene, query)
    until_address(page, "query", "4")
    settle(page)
    with cut_off(page):
        maps = page.locator(".st-key-overview .maps")
        maps.focus()
        for key in ("PageDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        expect(page.locator(".st-key-overview .overview")).to_have_attribute("data-query", "1")
        settle(page)
        as_written(page, scene, 3)  # that head's numbers are not here, and those of this head would be wrong
    until_address(page, "head", "2")
    as_written(page, scene, 1, head=1)


def test_an_answer_to_an_earlier_pick_takes_nothing_back(visit):
    page, scene = visit({"text": "one two three four"} | RANDOM), Scene(text="one two three four", source=Source.RANDOM)
    as_written(page, scene, 0)
    settle(page)
    page.evaluate(
        """() => { window.shown = []
          new MutationObserver(() => shown.push(document.querySelector(".say bdi").textContent))
            .observe(document.querySelector(".place"), {subtree: true, childList: true, characterData: true}) }"""
    )
    chips = page.locator(".st-key-sentence button.chip")
    chips.evaluate_all("async ([, second, third]) => { second.click(); await new Promise(r => setTimeout(r, 30)); third.click() }")
    until_address(page, "query", "3")
    settle(page)
    as_written(page, scene, 2)
    assert [token for token, _ in groupby(page.evaluate("shown"))] in (["two", "three"], ["three"])
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")


def test_another_head_by_its_number_is_shown_whole(visit):
    page, scene = visit({"text": "one two three", "query": 2} | RANDOM), Scene(text="one two three", source=Source.RANDOM)
    for head in (3, 1):
        page.locator(".st-key-head input").fill(str(head))
        page.keyboard.press("Enter")
        as_written(page, scene, 1, head=head - 1)


def test_of_a_long_text_the_server_has_the_numbers(visit):
    text = " ".join(f"word{n}" for n in range(180))
    scene = Scene(text=text, source=Source.RANDOM, heads=16, embed_dim=64)
    page = visit({"text": text, "heads": 16, "embed_dim": 64} | RANDOM)
    as_written(page, scene, 0)
    for query in (179, 3):
        page.locator(".st-key-sentence button.chip").nth(query).click()
        as_written(page, scene, query)


def test_a_piece_brings_nothing_but_words_and_tables(visit):
    page = visit(WORKED)
    page.evaluate(
        """attentionLab.pieces = {of: () => ({said: "", numbers: [], names: {}}), html: {steps: [`<p onclick="wrong()" id="x">a<img src="x" onerror="wrong()"><script>wrong()</script>
          <a href="javascript:wrong()">b</a><strong style="color: red">c</strong><svg onload="wrong()"></svg></p>`]}};
        attentionLab.dispatchEvent(new Event("pieces"))"""
    )
    place = page.locator(".st-key-place-steps .place > section:first-child > :last-child")
    assert re.sub(r"\s", "", place.inner_html()) == '<p>a<strongstyle="color:red">c</strong></p>'


def test_a_copied_link_restores_the_view(visit):
    page = visit(WORKED)
    with redrawn(page):
        page.locator(".st-key-example").get_by_text(story.EXAMPLES["cross"]).click()
    page.locator("[data-testid=stPopoverButton]").first.click()
    choose(page, "step", "scaled")
    until_address(page, "step", "scaled")
    page.locator(".st-key-head input").fill("2")
    page.keyboard.press("Enter")
    until_address(page, "head", "2")
    settle(page)
    again = visit(page.url)
    for one in (page, again):  # what is open is no choice: links open on the calm page
        open_section(one, "grid")
        one.wait_for_selector(".st-key-head-grid .nsewdrag", state="attached")
    expect(again.locator(".say")).to_have_text(page.locator(".say").inner_text())
    settle(again)
    assert again.url == page.url
    assert walk(again) == walk(page)
    for name in ("attention", "mask"):
        chosen = "[role=radio][aria-checked=true]"
        assert again.locator(f".st-key-{name} {chosen}").inner_text() == page.locator(f".st-key-{name} {chosen}").inner_text()
    drawn = "plot => JSON.stringify(plot.data.filter(trace => trace.type === 'heatmap').map(trace => trace.z))"
    for figure in ("focus", "head-grid"):
        plots = [one.locator(f".st-key-{figure} .js-plotly-plot").evaluate(drawn) for one in (page, again)]
        assert plots[0] == plots[1] and len(plots[0]) > 100


def download(page: Page, name: str, folder: Path) -> Path:
    button = page.get_by_role("button", name=story.DOWNLOADS[name])
    if not button.is_visible():
        open_section(page, "files")
    with page.expect_download() as coming:
        button.click()
    assert coming.value.suggested_filename == name
    coming.value.save_as(folder / name)
    return folder / name


def test_downloads_open(visit, browser, tmp_path):
    page = visit({"text": "one two three", "attention": "cross", "context": "vier fünf", "mask": "causal", "heads": 2, "query": 2} | RANDOM)
    scene = Scene(
        text="one two three", context="vier fünf", attention=Attention.CROSS, mask=Mask.CAUSAL, heads=2, source=Source.RANDOM
    )
    made = compute(scene)
    page.locator(".st-key-sentence button.chip").nth(2).click()
    until_address(page, "query", "3")
    shown = walk(page)
    with np.load(download(page, "attention.npz", tmp_path), allow_pickle=False) as archive:
        for step in Step:
            np.testing.assert_array_equal(archive[step], made.trace[step][0].numpy())
    listed = json.loads(download(page, "attention.json", tmp_path).read_text(encoding="utf-8"))
    np.testing.assert_array_equal(
        np.array(listed["arrays"]["weights"]["values"], np.float32), made.trace.weights[0].numpy()
    )
    file = download(page, "attention.html", tmp_path)

    context = browser.new_context(viewport=DESK, offline=True)
    asked, wrong = [], []
    alone = context.new_page()
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
    alone.on("pageerror", lambda error: wrong.append(str(error)))
    alone.goto(file.as_uri())
    expect(alone.locator(".js-plotly-plot .hm image").nth(2)).to_be_attached()  # two heads and the chosen one
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
    assert not wrong
    assert alone.locator(".say").text_content() == shown[0]
    assert alone.locator("math").count() == 7
    assert all(box["height"] > 5 for box in alone.locator("math").evaluate_all("all => all.map(e => e.getBoundingClientRect())"))
    there = {read(markup).tables[0].caption for markup in alone.locator("table.walk").evaluate_all("all => all.map(e => e.outerHTML)")}
    assert {story.CAPTIONS[name] for name in ("weights", "context", "together")} <= there
    found = tables(alone)
    agree([text for row in found[story.CAPTIONS["weights"]].rows for text in row[3].numbers], made.trace.weights[0, 0, 2])
    assert not overflows(alone)
    context.close()


PAYLOADS = (
    "<img/src=x/onerror=__fired=1> <script>__fired=1</script> <svg/onload=__fired=1> [a](javascript:__fired=1) "
    "<a/href=javascript:__fired=1>x</a> \"onmouseover='__fired=1' $\\href{javascript:__fired=1}{x}$ <b>bold</b> ** :red[x] {{7*7}} %{z}"
)


def test_hostile_text_is_only_text(visit):
    page = visit({"text": PAYLOADS, "context": PAYLOADS, "attention": "cross", "heads": 2, "every_key": "true", "products": "true"} | RANDOM)
    tokens = Scene(text=PAYLOADS).split("text")
    page.add_init_script("window.__fired = 0")
    expect(page.locator(".st-key-sentence button.chip bdi")).to_have_text(tokens)
    expect(page.locator(".st-key-sentence .keys bdi")).to_have_text(tokens)
    opens = {"chain": ".st-key-matrices .js-plotly-plot", "grid": ".st-key-head-grid .js-plotly-plot", "vectors": "table.walk"}
    for name, what in opens.items():
        open_section(page, name)
        page.wait_for_selector(f".st-key-{name} {what}")
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    settle(page)
    for figure in ("focus", "head-grid"):
        for query, key in ((0, 1), (tokens.index("<b>bold</b>"), 0), (1, tokens.index("<b>bold</b>"))):
            x, y = cell(page, figure, query, key)
            page.mouse.move(x - 1, y)
            page.mouse.move(x, y)
            for token in (tokens[query], tokens[key]):
                expect(page.locator(f".st-key-{figure} .hoverlayer")).to_contain_text(token)
    for index in range(4):
        page.locator(".st-key-sentence button.chip").nth(index).click()
        says(page, tokens[index])
        page.locator("table.walk bdi").nth(index).hover()
    page.locator("[data-testid=stPopoverButton]").click()
    page.wait_for_selector(".st-key-seed")
    assert page.evaluate("window.__fired") in (0, None)
    for selector in ("table.walk bdi", ".say bdi"):
        assert set(page.locator(selector).all_text_contents()) <= set(tokens)
    dangerous = "img[src=x], b:not(.js-plotly-plot b), a[href^=javascript], [onerror], [onload], [onmouseover]"
    for root in ("[data-testid=stColumn]:has(.st-key-focus)", "table.walk", ".say", ".st-key-chain", ".st-key-vectors"):
        assert page.locator(root).first.locator(dangerous).count() == 0
    assert "__fired" not in page.evaluate("[...document.scripts].map(s => s.textContent).join()")


def overflows(page: Page) -> bool:
    return page.evaluate("document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth")


def background(page: Page) -> float:
    """How light the page is, from 0 to 1."""
    colour = page.locator("[data-testid=stApp]").evaluate("e => getComputedStyle(e).backgroundColor")
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3 / 255


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_both_themes_at_desk_and_phone_width(visit, scheme, size):
    page = visit({"text": "one two three four five", "attention": "multi-head", "mask": "causal"} | RANDOM, viewport=size, color_scheme=scheme)
    settle(page)
    assert (background(page) > 0.5) == (scheme == "light")
    assert not overflows(page)
    cut = """all => all.filter(table => { for (let e = table; e; e = e.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(e).overflowX) && e.dataset.testid !== "stMain") return false
      return table.getBoundingClientRect().right > innerWidth }).length"""
    assert page.locator("table.walk").evaluate_all(cut) == 0  # what does not fit scrolls by itself
    unreadable = page.locator(".say, .say bdi, table.walk th, table.walk i:not(:empty), [data-testid=stMarkdown] p").evaluate_all(
        """all => { const light = colour => { const [r, g, b, a] = colour.match(/[\\d.]+/g).map(Number)
             const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
             return a === 0 ? null : 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) }
           const paper = e => { for (; e; e = e.parentElement) {
             const found = light(getComputedStyle(e).backgroundColor); if (found !== null) return found } return 1 }
           return all.filter(e => e.getClientRects().length && e.innerText.trim()).map(e => {
             const [a, b] = [light(getComputedStyle(e).color), paper(e)]
             return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.innerText] })
             .filter(([contrast]) => contrast < 4.5) }"""
    )
    assert not unreadable


@pytest.mark.parametrize("shown", [{}, {"every_key": "true"}, {"products": "true"}], ids=["few-keys", "every-key", "products"])
def test_a_section_one_goes_to_stays_where_it_is(visit, shown):
    """Nothing that is drawn late, when it comes near the screen, pushes it away."""
    page = visit({"text": " ".join("abcdefgh" * 6), "attention": "multi-head", "heads": 2} | RANDOM | shown, viewport=PHONE)
    settle(page)
    section = page.locator(".st-key-chain summary")
    before = section.evaluate("section => { section.focus(); return section.getBoundingClientRect().top }")
    settle(page)
    assert abs(section.bounding_box()["y"] - before) < 60
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-matrices .hm image").last).to_be_attached()


CONTROLS = """() => [...document.querySelectorAll(
    "[data-testid=stTextInput], [data-testid=stButtonGroup], [data-testid=stNumberInput], [data-testid=stSelectbox], "
    + "[data-testid=stCheckbox], [data-testid=stPopover], [data-testid=stSlider], [data-testid=stDownloadButton], "
    + "[data-testid=stExpander]")]
  .filter(e => e.getClientRects().length && e.getBoundingClientRect().top < innerHeight)
  .map(e => e.closest("[class*=st-key-]")?.className.match(/st-key-([\\w-]+)/)[1] ?? e.dataset.testid)"""


def test_the_first_screen(visit, record_property):
    page = visit()
    settle(page)
    shift = page.evaluate("window.__shift")
    record_property("layout_shift", shift)
    print(f"layout shift while loading: {shift:.3f}")
    assert shift < 0.05
    controls = page.evaluate(CONTROLS)
    assert len(controls) <= 8, controls
    choices, parts = ("text", "attention", "mask", "source"), (".st-key-overview .maps", ".st-key-overview .lines", ".st-key-overview .readout")
    for selector in (*(f".st-key-{name}" for name in choices), ".st-key-sentence .chip >> nth=-1", *parts, ".say", "table.walk >> nth=0"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= DESK["height"], selector
    assert not overflows(page)


@pytest.mark.parametrize(
    "address, place, message",
    [
        ({"text": " "}, "text", story.EMPTY["text"]),
        ({"attention": "cross", "context": ""}, "context", story.EMPTY["context"]),
        ({"attention": "multi-head", "heads": 3} | RANDOM, "heads", story.does_not_divide(8, 3)),
    ],
    ids=["empty", "no context", "heads"],
)
def test_a_message_stands_beside_what_is_at_fault(visit, address, place, message):
    page = visit(address, wait="[data-testid=stAlert]")
    alert = page.locator("[data-testid=stAlert]")
    assert alert.inner_text() == message
    expect(page.locator("[data-testid=stException]")).to_have_count(0)
    widget, below = page.locator(f".st-key-{place}").bounding_box(), alert.bounding_box()
    assert 0 <= below["y"] - (widget["y"] + widget["height"]) < 120
    page.locator(f".st-key-{place} input").fill("4")
    page.keyboard.press("Enter")
    page.wait_for_selector(READY, state="attached")
    expect(alert).to_have_count(0)


def test_nonsense_in_the_address_is_the_default_page(visit):
    names = "attention mask heads embed_dim head_dim seed tokens source step query head scale positions padding recipe kv_heads"
    page = visit({name: ("", "nope", "1e400", "-1")[number % 4] for number, name in enumerate(names.split())})
    expect(page.locator(".say")).to_have_text("The takes >99 % from animal and <1 % from the rest.")
    expect(page.locator("[data-testid=stException]")).to_have_count(0)

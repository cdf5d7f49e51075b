"""All heads at once, in a real browser: what is drawn, said and chosen by mouse, keyboard and finger."""

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from sections import story
from sections.scene import Attention, Scene, Source, compute
from tests.browser import PHONE, READY, address_of, serve, settle, until_address
from tests.maps_site import CASES
from viz.colours import SEQUENTIAL, between
from viz.numbers import exact

TEXT = "one two three four five"
HEADS, TOKENS = 4, TEXT.split()
ADDRESS = {"text": TEXT, "attention": "multi-head", "source": "random", "heads": HEADS, "embed_dim": 16}
PLACES = {  # where a picture's cells or labels are, found by pointing at it: what is pointed at, and where from its corner
    "maps": """async maps => {
      const root = maps.closest(".overview"), box = maps.getBoundingClientRect(), found = {}
      const look = async (x, y) => {
        const at = {clientX: box.x + x, clientY: box.y + y, bubbles: true, pointerType: "mouse"}
        maps.dispatchEvent(new PointerEvent("pointermove", at))
        await new Promise(requestAnimationFrame)
        return root.dataset.look
      }
      let row = null, column = null
      for (let y = 2; y < box.height && row === null; y += 8)
        for (let x = 2; x < box.width; x += 8) if (await look(x, y)) { row = y; column = x; break }
      const xs = {}, ys = {} // by map and key along one row of maps, by map and query down one column of them
      for (let x = 1; x < box.width; x += 6) { const [, k, m] = (await look(x, row)).split(","); if (k) (xs[`${m},${k}`] ??= []).push(x) }
      for (let y = 1; y < box.height; y += 6) { const [q, , m] = (await look(column, y)).split(","); if (q) (ys[`${m},${q}`] ??= []).push(y) }
      const middle = all => (all[0] + all.at(-1)) / 2
      for (const x of Object.values(xs).map(middle)) for (const y of Object.values(ys).map(middle)) {
        const [q, k, m] = (await look(x, y)).split(",")
        if (k) found[`${m},${q},${k}`] = [x, y]
      }
      maps.dispatchEvent(new PointerEvent("pointerleave"))
      await new Promise(requestAnimationFrame)
      return found
    }""",
    "lines": """async lines => {
      const root = lines.closest(".overview"), box = lines.getBoundingClientRect(), found = {}
      for (const x of [4, box.width - 4]) for (let y = 1; y < box.height; y += 6) {
        lines.dispatchEvent(new PointerEvent("pointermove", {clientX: box.x + x, clientY: box.y + y, bubbles: true}))
        await new Promise(requestAnimationFrame)
        const [query, key] = root.dataset.look.split(",")
        if (query) (found[`query ${query}`] ??= []).push([x, y])
        if (key) (found[`key ${key}`] ??= []).push([x, y])
      }
      lines.dispatchEvent(new PointerEvent("pointerleave"))
      await new Promise(requestAnimationFrame)
      return Object.fromEntries(Object.entries(found).map(([name, all]) => [name, all[all.length >> 1]]))
    }""",
}
PIXELS = """(canvas, [width, height, points]) => { // colour and opacity at places counted in CSS pixels
  const context = canvas.getContext("2d"), scale = canvas.width / canvas.getBoundingClientRect().width
  return points.map(([x, y]) => {
    const area = [Math.round((x - width / 2) * scale), Math.round((y - height / 2) * scale), Math.max(1, width * scale), Math.max(1, height * scale)]
    return [...context.getImageData(...area).data]
  })
}"""


@lru_cache
def made(**choices: object):
    scene = {"text": TEXT, "attention": Attention.MULTI_HEAD, "source": Source.RANDOM, "heads": HEADS, "embed_dim": 16}
    return compute(Scene(**scene | choices))


def weights(**choices: object) -> np.ndarray:
    return made(**choices).trace.weights[0].numpy()


def part(page: Page, name: str) -> Locator:
    return page.locator(f".st-key-overview {name}")


def cells(page: Page) -> dict[tuple[int, int, int], tuple[float, float]]:
    """The middle of every cell, from the corner of the maps, by map, query and key."""
    found = part(page, ".maps").evaluate(PLACES["maps"])
    return {tuple(map(int, name.split(","))): tuple(place) for name, place in found.items()}


def labels(page: Page) -> dict[str, tuple[float, float]]:
    """A place on every label of the lines, by side and index."""
    return part(page, ".lines").evaluate(PLACES["lines"])


def point(page: Page, picture: str, place: tuple[float, float]) -> None:
    """Move the real mouse there, in two steps as a hand does."""
    box = part(page, picture).bounding_box()
    page.mouse.move(box["x"] + place[0] - 1, box["y"] + place[1])
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])


def click(page: Page, picture: str, place: tuple[float, float]) -> None:
    box = part(page, picture).bounding_box()
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])


def dimmed(page: Page, places: dict) -> set:
    """The cells a veil lies over."""
    drawn = part(page, ".maps canvas").nth(1).evaluate(PIXELS, [1, 1, list(places.values())])
    return {cell for cell, pixel in zip(places, drawn, strict=True) if pixel[3] > 0}


def picture(page: Page, name: str, layer: int) -> str:
    return part(page, f"{name} canvas").nth(layer).evaluate("canvas => canvas.toDataURL()")


def looks(page: Page, query: object = "", key: object = "", head: object = "") -> None:
    """Wait until that is what is looked at; nothing, without any."""
    said = ",".join(map(str, (query, key, head)))
    expect(part(page, ".overview")).to_have_attribute("data-look", said if said != ",," else "")


def others(places: dict, lit) -> set:
    return {cell for cell in places if not lit(*cell)}


def says(page: Page, start: str) -> None:
    expect(page.locator(".say")).to_have_text(re.compile(f"^{re.escape(start)} "))


# ---- pointing ----


def test_pointing_at_a_cell_lights_its_row_and_column_in_every_head(visit):
    page = visit(ADDRESS)
    settle(page)
    places = cells(page)
    assert set(places) == {(head, query, key) for head in range(HEADS) for query in range(5) for key in range(5)}
    assert not dimmed(page, places)
    still, lines = picture(page, ".maps", 0), picture(page, ".lines", 1)
    for head, query, key in ((0, 3, 1), (2, 1, 4), (3, 4, 4)):
        point(page, ".maps", places[head, query, key])
        looks(page, query, key, head)
        assert dimmed(page, places) == others(places, lambda _, q, k, query=query, key=key: q == query or k == key)
        expect(part(page, ".readout")).to_have_text(
            f"head {head + 1}  {TOKENS[query]} → {TOKENS[key]}  {exact(weights()[head, query, key])}"
        )
        assert picture(page, ".lines", 1) != lines
        lines = picture(page, ".lines", 1)
    assert picture(page, ".maps", 0) == still  # the numbers are not drawn again
    page.mouse.move(5, 5)
    looks(page)
    assert not dimmed(page, places)


def test_pointing_at_tokens_lights_rows_and_columns(visit):
    page = visit(ADDRESS)
    settle(page)
    places, names = cells(page), labels(page)
    assert set(names) == {f"{side} {n}" for side in ("query", "key") for n in range(5)}
    page.locator(".st-key-sentence button.chip").nth(3).hover()
    looks(page, query=3)
    assert dimmed(page, places) == others(places, lambda _, q, k: q == 3)
    point(page, ".lines", names["query 2"])
    looks(page, query=2)
    assert dimmed(page, places) == others(places, lambda _, q, k: q == 2)
    expect(page.locator(".st-key-sentence .chip.looked-at bdi")).to_have_text("three")
    shares = page.locator(".st-key-sentence .chip small").all_inner_texts()
    assert [float(text.strip("<> %")) for text in shares] == pytest.approx(100 * weights()[0, 2], abs=0.51)
    point(page, ".lines", names["key 4"])
    looks(page, key=4)
    assert dimmed(page, places) == others(places, lambda _, q, k: k == 4)
    expect(part(page, ".readout")).to_have_text("five")


def test_pointing_at_a_head_shows_its_lines_alone(visit):
    page = visit(ADDRESS | {"query": 2})
    settle(page)
    every = picture(page, ".lines", 1)
    part(page, ".heads button").nth(2).hover()
    looks(page, query=1, head=2)
    assert picture(page, ".lines", 1) != every
    most = int(weights()[2, 1].argmax())
    expect(part(page, ".readout")).to_contain_text(f"head 3: two takes {100 * float(exact(weights()[2, 1, most])):.2f} % from {TOKENS[most]}")


# ---- choosing ----


def test_a_click_pins_and_python_follows(visit):
    page = visit(ADDRESS)
    settle(page)
    places, before = cells(page), picture(page, ".maps", 1)
    click(page, ".maps", places[0, 3, 1])
    until_address(page, "query", "4")
    says(page, "four")
    assert "head" not in address_of(page)
    expect(part(page, ".overview")).to_have_attribute("data-query", "3")
    page.mouse.move(5, 5)
    looks(page)
    assert picture(page, ".maps", 1) != before  # its row has an outline, in every head
    click(page, ".lines", labels(page)["query 1"])
    until_address(page, "query", "2")
    says(page, "two")


def test_a_click_in_another_head_changes_the_head_too(visit):
    page = visit(ADDRESS)
    settle(page)
    places = cells(page)
    click(page, ".maps", places[2, 4, 0])
    until_address(page, "head", "3")
    until_address(page, "query", "5")
    expect(page.locator(".st-key-head input")).to_have_value("3")
    expect(part(page, ".heads .chosen")).to_have_text("head 3")
    says(page, "five")
    most = TOKENS[int(weights()[2, 4].argmax())]
    expect(page.locator(".say")).to_contain_text(f"from {most}")
    again = visit(page.url)
    expect(again.locator(".say")).to_have_text(page.locator(".say").inner_text())


def test_shift_adds_tokens_and_sums_what_they_take(visit):
    page = visit(ADDRESS)
    settle(page)
    places, chips = cells(page), page.locator(".st-key-sentence button.chip")
    chips.nth(1).click()
    says(page, "two")
    chips.nth(3).click(modifiers=["Shift"])
    expect(page.locator(".remark", has_text="Summed")).to_contain_text("two")
    page.keyboard.down("Shift")
    click(page, ".maps", places[0, 4, 0])
    page.keyboard.up("Shift")
    expect(page.locator(".remark", has_text="Summed over 3 queries")).to_be_visible()
    page.mouse.move(5, 5)
    total = weights()[0, [1, 3, 4]].astype(np.float64).sum(axis=0)
    expect(chips.locator("small")).to_have_text([f"{share:.2f}" for share in total])
    assert [chip.get_attribute("aria-pressed") for chip in chips.all()] == ["false", "true", "false", "true", "true"]
    part(page, ".maps").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".remark", has_text="Summed")).to_have_count(0)
    assert [chip.get_attribute("aria-pressed") for chip in chips.all()] == ["false", "true", "false", "false", "false"]


def test_heads_can_be_shown_hidden_and_seen_alone(visit):
    page = visit(ADDRESS)
    settle(page)
    heads, whole = part(page, ".heads button"), picture(page, ".maps", 0)
    expect(heads).to_have_text(["head 1", "head 2", "head 3", "head 4"])
    heads.nth(1).click()
    expect(heads).to_have_text(["head 1", "head 2", "head 3", "head 4", "show all"])
    assert [chip.get_attribute("aria-pressed") for chip in heads.all()[:4]] == ["true", "false", "true", "true"]
    assert {head for head, _, _ in cells(page)} == {0, 2, 3}
    heads.nth(2).focus()
    page.keyboard.press("s")
    assert [chip.get_attribute("aria-pressed") for chip in heads.all()[:4]] == ["false", "false", "true", "false"]
    assert {head for head, _, _ in cells(page)} == {2}
    heads.nth(2).click()  # the last one stays: then all are back
    page.mouse.move(5, 5)
    expect(heads).to_have_count(4)
    assert picture(page, ".maps", 0) == whole
    heads.nth(3).click(modifiers=["Shift"])
    assert {head for head, _, _ in cells(page)} == {3}
    heads.filter(has_text="show all").click()
    assert len({head for head, _, _ in cells(page)}) == 4


# ---- by keyboard ----


def share(value: float) -> str:
    """How a weight is spoken."""
    return f"{100 * float(exact(value)):.2f} percent"


def test_walking_by_keyboard_says_every_cell(visit):
    page = visit(ADDRESS)
    settle(page)
    status = part(page, "[role=status]")
    page.locator(".st-key-sentence button.chip").first.focus()
    inside = "() => document.activeElement.shadowRoot?.activeElement?.className ?? ''"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(inside) == "maps":
            break
    assert page.evaluate(inside) == "maps"
    expect(part(page, ".keys")).to_be_visible()
    here = {"query": 0, "key": 0, "head": 0}
    for press, moved in (
        ("ArrowRight", {"key": 1}), ("ArrowDown", {"query": 1}), ("End", {"key": 4}), ("ArrowRight", {"key": 4}), ("PageDown", {"head": 1}),
        ("ArrowDown", {"query": 2}), ("ArrowUp", {"query": 1}), ("ArrowLeft", {"key": 3}), ("PageDown", {"head": 2}), ("PageUp", {"head": 1}),
        ("Home", {"key": 0}), ("ArrowLeft", {"key": 0}),
    ):  # fmt: skip
        here |= moved
        page.keyboard.press(press)
        value = weights()[here["head"], here["query"], here["key"]]
        expect(status).to_have_text(
            f"query {TOKENS[here['query']]}, key {TOKENS[here['key']]}, head {here['head'] + 1}, {share(value)}"
        )
        looks(page, here["query"], here["key"], here["head"])
    page.keyboard.press("r")
    order = weights()[1, 1].argsort()[::-1]
    parts = ", ".join(f"{share(weights()[1, 1, key]).replace('percent', '%')} from {TOKENS[key]}" for key in order)
    expect(status).to_have_text(f"head 2: two takes {parts}")
    page.keyboard.press("Enter")
    until_address(page, "query", "2")
    until_address(page, "head", "2")
    says(page, "two")
    page.keyboard.press("Escape")
    looks(page)


def test_what_is_hidden_is_hatched_and_said(visit):
    page = visit(ADDRESS | {"mask": "causal"})
    settle(page)
    places = cells(page)
    size = places[0, 0, 1][0] - places[0, 0, 0][0]
    drawn = part(page, ".maps canvas").nth(0).evaluate(PIXELS, [size * 0.7, size * 0.7, list(places.values())])
    for (_, query, key), pixels in zip(places, drawn, strict=True):
        colours = {tuple(pixels[n : n + 4]) for n in range(0, len(pixels), 4)}
        assert (len(colours) > 1) == (key > query)  # strokes and paper, or one colour
    part(page, ".maps").focus()
    page.keyboard.press("ArrowRight")
    expect(part(page, "[role=status]")).to_have_text("query one, key two, head 1, hidden")
    page.keyboard.press("R")
    expect(part(page, "[role=status]")).to_have_text("head 1: one takes 100.00 % from one")
    point(page, ".maps", places[1, 0, 3])
    expect(part(page, ".readout")).to_have_text("head 2  one → four  hidden")


# ---- what is drawn and said of the numbers ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_those_of_the_scale(visit, scheme):
    page = visit(ADDRESS, color_scheme=scheme)
    settle(page)
    places = cells(page)
    drawn = part(page, ".maps canvas").nth(0).evaluate(PIXELS, [1, 1, list(places.values())])
    for (head, query, key), pixel in zip(places, drawn, strict=True):
        wanted = between(getattr(SEQUENTIAL, scheme), float(weights()[head, query, key]))
        assert np.abs(np.array(pixel[:3]) - [int(wanted[n : n + 2], 16) for n in (1, 3, 5)]).max() <= 3
    switched = "dark" if scheme == "light" else "light"
    before = picture(page, ".maps", 0)
    page.emulate_media(color_scheme=switched)
    page.wait_for_function(
        "before => [...document.querySelectorAll('.st-key-overview *')].find(e => e.shadowRoot)"
        ".shadowRoot.querySelector('.maps canvas').toDataURL() !== before",
        arg=before,
    )


def test_rows_can_be_shaded_by_their_largest(visit):
    page = visit(ADDRESS | {"shade": "row"})
    settle(page)
    places = cells(page)
    drawn = part(page, ".maps canvas").nth(0).evaluate(PIXELS, [1, 1, list(places.values())])
    darkest = [int(SEQUENTIAL.light[-1][n : n + 2], 16) for n in (1, 3, 5)]
    most = {(head, query): int(weights()[head, query].argmax()) for head in range(HEADS) for query in range(5)}
    assert {cell for cell, pixel in zip(places, drawn, strict=True) if pixel[:3] == darkest} == {(*row, key) for row, key in most.items()}


@pytest.mark.parametrize("step", ["scores", "scaled"])
def test_signed_numbers_are_said_as_they_are(visit, step):
    page = visit(ADDRESS | {"step": step})
    settle(page)
    places, values = cells(page), made().trace[step][0].numpy()
    for cell in ((0, 0, 0), (1, 2, 3), (3, 4, 1)):
        point(page, ".maps", places[cell])
        looks(page, *cell[1:], cell[0])
        shown = part(page, ".readout bdi").nth(2).inner_text().replace("−", "-")
        decimals = len(shown.partition(".")[2])
        assert decimals >= 2 and shown == f"{values[cell]:.{decimals}f}"


@pytest.mark.parametrize("together, summed", [("average", np.mean), ("maximum", np.max)])
def test_a_summary_warns_and_its_numbers_hold(visit, together, summed):
    page = visit(ADDRESS | {"together": together})
    expect(page.get_by_text(story.TOGETHER[together])).to_be_visible()
    settle(page)
    places = cells(page)
    assert {head for head, _, _ in places} == {0}
    point(page, ".maps", places[0, 3, 2])
    value = float(summed(weights().astype(np.float64)[:, 3, 2]))
    expect(part(page, ".readout")).to_have_text(f"{together} of 4 heads  four → three  {exact(value)}")


def test_keys_left_out_are_said_and_the_rest_adds_up(visit):
    page = visit(ADDRESS | {"text": "[CLS] two three four [SEP]", "leave_out": "special"})
    settle(page)
    expect(page.get_by_text("Left out of the maps as keys")).to_be_visible()
    rest = weights(text="[CLS] two three four [SEP]")[0, 1].astype(np.float64)
    rest[[0, 4]] = 0
    rest /= rest.sum()
    part(page, ".maps").focus()
    for press, wanted in (("ArrowDown", "hidden"), ("ArrowRight", share(rest[1])), ("ArrowRight", share(rest[2])), ("End", "hidden")):
        page.keyboard.press(press)
        expect(part(page, "[role=status]")).to_have_text(re.compile(f", {re.escape(wanted)}$"))


def test_the_table_has_the_numbers_of_the_trace(visit):
    page = visit(ADDRESS | {"head": 3})
    settle(page)
    part(page, "summary").click()
    table = part(page, "table")
    expect(table.locator("caption")).to_have_text("head 3, weights")
    assert table.locator("th[scope=col]").all_inner_texts() == table.locator("th[scope=row]").all_inner_texts() == TOKENS
    wanted = [exact(value) for value in weights()[2].ravel()]
    assert table.locator("td").all_inner_texts() == wanted


HOSTILE = "<img/src=x/onerror=__fired=1> <script>__fired=1</script> </canvas><b>bold</b> {query} {key} $x$"


def test_hostile_tokens_stay_text(visit):
    page = visit(ADDRESS | {"text": HOSTILE})
    settle(page)
    tokens = Scene(text=HOSTILE).split("text")
    part(page, "summary").click()
    assert part(page, "th[scope=row]").all_inner_texts() == tokens
    places = cells(page)
    point(page, ".maps", places[0, 0, 2])
    assert part(page, ".readout bdi").all_inner_texts()[:2] == [tokens[0], tokens[2]]
    part(page, ".maps").focus()
    page.keyboard.press("ArrowRight")
    expect(part(page, "[role=status]")).to_contain_text(f"query {tokens[0]}, key {tokens[1]}, head 1")
    page.keyboard.press("r")
    for token in tokens:
        expect(part(page, "[role=status]")).to_contain_text(token)
    assert page.locator(".st-key-overview").locator("img, script, b, [onerror]").count() == 0
    assert page.evaluate("window.__fired") is None


# ---- shapes and sizes ----


def test_across_two_texts_maps_are_rectangles(visit):
    page = visit({"attention": "cross", "source": "random", "heads": 2, "text": "one two", "context": "drei vier fünf"})
    settle(page)
    assert set(cells(page)) == {(head, query, key) for head in range(2) for query in range(2) for key in range(3)}
    assert set(labels(page)) == {"query 0", "query 1", "key 0", "key 1", "key 2"}
    page.locator(".st-key-sentence .keys .chip").nth(2).hover()
    looks(page, key=2)


@pytest.fixture(scope="module")
def site(browser) -> Iterator[str]:
    with serve("tests/maps_site.py") as address:
        yield address


@pytest.fixture
def shown(visit, site):
    def show(case: str) -> Page:
        page = visit(f"{site}/?case={case}", wait=".st-key-overview .overview[data-shape]")
        assert part(page, ".overview").get_attribute("data-shape") == ",".join(map(str, np.shape(CASES[case])))
        return page

    return show


def test_what_is_not_a_number_is_marked_and_said(shown):
    page = shown("nan")
    places = cells(page)
    drawn = part(page, ".maps canvas").nth(0).evaluate(PIXELS, [1, 1, [places[0, 0, 1], places[0, 2, 1]]])
    assert drawn[0][:3] == [49, 51, 63] or max(drawn[0][:3]) < 80  # the ink of the text
    assert min(drawn[1][:3]) > 200  # plain zero
    for cell, said in (((0, 0, 1), "NaN"), ((0, 2, 1), "0"), ((0, 2, 0), "1"), ((0, 0, 0), "0.2500")):
        point(page, ".maps", places[cell])
        expect(part(page, ".readout bdi").nth(2)).to_have_text(said)
    part(page, ".maps").focus()
    page.keyboard.press("ArrowDown")
    expect(part(page, "[role=status]")).to_have_text("query t1, key t0, head 1, NaN")
    page.keyboard.press("r")
    expect(part(page, "[role=status]")).to_have_text("head 1: t1 sees no key")


def test_infinite_scores_are_drawn(shown):
    page = shown("infinite")
    places = cells(page)
    for cell, said in (((0, 0, 0), "∞"), ((0, 0, 1), "hidden"), ((0, 1, 0), "−1.5000"), ((0, 1, 1), "2.2500")):
        point(page, ".maps", places[cell])
        expect(part(page, ".readout bdi").nth(2)).to_have_text(said)


def test_nothing_is_written_as_nothing_or_as_all_without_being_it(shown):
    page = shown("tiny")
    places = cells(page)
    said = {(0, 0, 0): "≈0", (0, 0, 1): "1.0000", (0, 1, 0): "0", (0, 1, 1): "1"}
    for cell, wanted in said.items():
        point(page, ".maps", places[cell])
        expect(part(page, ".readout bdi").nth(2)).to_have_text(wanted)
    part(page, ".maps").focus()
    spoken = part(page, "[role=status]")
    for press, wanted in (("Home", "<0.01 percent"), ("ArrowRight", ">99.99 percent"), ("ArrowDown", "100.00 percent"), ("Home", "0.00 percent")):
        page.keyboard.press(press)
        expect(spoken).to_have_text(re.compile(f", {re.escape(wanted)}$"))


@pytest.mark.parametrize("case", ["one", "wide", "tall", "many heads"])
def test_any_shape_is_drawn(shown, case):
    page = shown(case)
    values = np.array(CASES[case])
    part(page, ".maps").focus()
    page.keyboard.press("End")
    expect(part(page, "[role=status]")).to_have_text(
        re.compile(rf"^query t0, key t{values.shape[2] - 1}, head 1, {100 * values[0, 0, -1]:.2f} percent$")
    )
    drawn = part(page, ".maps canvas").nth(0).bounding_box()
    assert drawn["width"] > 20 and drawn["height"] > 20
    settle(page)
    if case != "many heads":
        assert len(cells(page)) == values.size


def test_no_tokens_are_no_error(shown):
    page = shown("no tokens")
    part(page, ".maps").focus()
    for press in ("ArrowRight", "ArrowDown", "End", "r", "Enter", "Escape"):
        page.keyboard.press(press)
    settle(page)


# ---- by finger ----


def test_a_tap_pins_on_a_phone(visit):
    page = visit(ADDRESS, viewport=PHONE, has_touch=True, is_mobile=True)
    settle(page)
    maps, lines = part(page, ".maps"), part(page, ".lines")
    maps.scroll_into_view_if_needed()
    places = cells(page)
    box = maps.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    x, y = places[0, 3, 1]
    page.touchscreen.tap(box["x"] + x, box["y"] + y)
    until_address(page, "query", "4")
    says(page, "four")
    expect(part(page, ".readout")).to_contain_text("four")
    lines.scroll_into_view_if_needed()
    x, y = labels(page)["query 1"]
    box = lines.bounding_box()
    assert box["x"] + box["width"] <= PHONE["width"]
    page.touchscreen.tap(box["x"] + x, box["y"] + y)
    until_address(page, "query", "2")
    assert not page.evaluate("document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth")


def test_a_long_text_still_opens(visit):
    page = visit({"text": " ".join(f"t{n}" for n in range(300)), "source": "random", "attention": "multi-head", "heads": 12, "embed_dim": 24})
    expect(part(page, ".overview")).to_have_attribute("data-shape", "12,300,300", timeout=20_000)
    assert page.locator(READY).count()
    sentence = page.locator(".st-key-sentence").bounding_box()
    assert sentence["height"] < 200  # it scrolls by itself

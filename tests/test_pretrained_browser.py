"""What a person does on the page of the pretrained model, in a real browser on a real server with the real weights."""

import re

import pytest
from playwright.sync_api import Page, expect

from sections import story
from tests.browser import PHONE, address_of, settle, until_address
from tests.sections.oracle import agree
from tests.sections.pages import read

TIRED, WIDE = story.REAL["real_text"], story.REAL["real_other"]
SHOWN = {
    "look": ".st-key-overview", "find": ".st-key-scores_table", "compare": ".st-key-side-2",
    "knock-out": ".st-key-silenced", "readings": ".st-key-reading-rollout",
}  # fmt: skip
"""A part of each tool that no other has."""
HOSTILE = "<script>document.title='owned'</script> <img src=x onerror=alert(1)> ![x](https://example.org/x.png) $x^2$"


@pytest.fixture
def enter(visit, server, minilm):
    """Opens the page at an address once its first view stands."""
    return lambda address="", **settings: visit(f"{server}/pretrained{address}", wait=".st-key-tool", **settings)


def tool(page: Page, name: str) -> None:
    page.locator(".st-key-tool").get_by_role("radio", name=name, exact=True).click()


def chip(page: Page, token: str):
    return page.locator(".st-key-sentence button.chip").filter(has=page.locator("bdi").get_by_text(token, exact=True))


def number(page: Page, label: str):
    """The button of one head's number."""
    return page.locator(".st-key-scores").get_by_role("button", name=re.compile(f"^{label}: "))


def overflows(page: Page) -> bool:
    return page.evaluate("(e => e.scrollWidth > e.clientWidth)(document.querySelector('[data-testid=stMain]'))")


def test_the_famous_sentence_from_its_opening_to_z(enter, minilm):
    page = enter()
    expect(chip(page, "animal")).to_contain_text("68 %")
    expect(chip(page, "it")).to_have_attribute("aria-pressed", "true")
    box = chip(page, "animal").bounding_box()
    assert box["y"] + box["height"] < 500, "not seen at once"
    expect(page.locator(".say")).to_have_text(re.compile("^it takes 68 % from animal, "))

    page.locator(".st-key-real_text input").fill(WIDE)  # no Enter: it follows the typing
    expect(chip(page, "animal")).to_contain_text("28 %")
    expect(page.locator(".say")).to_have_text(re.compile(r"^it takes 33 % from \[CLS\], 28 % from animal"))

    chip(page, "street").first.click()
    until_address(page, "query", "9")
    expect(page.locator(".say")).to_have_text(re.compile("^street takes "))
    settle(page)  # the tables follow the sentence
    table = page.locator("table.walk").filter(has_text=story.CAPTIONS["context"])
    z = read(table.evaluate("e => e.outerHTML")).tables[0].foot[3].numbers
    agree(z, minilm.run(minilm.read(WIDE)).traces[3].attention.context[0, 1, 8].tolist())


def test_the_head_of_the_piece_before_is_found_in_two_clicks_or_by_keys(enter):
    page = enter()
    tool(page, "find")
    expect(number(page, "layer 1, head 3")).to_have_attribute("aria-pressed", "true")
    number(page, "layer 1, head 3").click()
    expect(page.locator(".say")).to_have_text("it takes >99 % from because and <1 % from the rest.")
    assert address_of(page) == {"layer": "1", "head": "3"}

    tool(page, "find")
    expect(number(page, "layer 1, head 1")).to_have_attribute("tabindex", "0")
    number(page, "layer 1, head 1").focus()
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowLeft"):
        page.keyboard.press(key)
    expect(number(page, "layer 3, head 11")).to_be_focused()
    page.keyboard.press("Enter")
    until_address(page, "head", "11")
    until_address(page, "layer", "3")


def test_a_word_is_changed_and_a_head_looked_at_by_clicks(enter):
    page = enter("?tool=compare")
    expect(page.locator(".say").first).to_have_text(re.compile("^In layer 6, head 9, 19 % of the weight"))
    number(page, "layer 4, head 2").click()
    until_address(page, "moved_head", "4.2")
    expect(page.locator(".say").first).to_have_text(re.compile("^In layer 4, head 2, 14 % .* for too: 63 %"))
    page.get_by_role("button", name=story.LABELS["change a word"]).click()
    page.locator(".st-key-instead input").fill("narrow")
    page.locator(".st-key-word").get_by_text("wide", exact=True).click()
    expect(page.locator(".st-key-real_other input")).to_have_value(WIDE.replace("wide", "narrow"))
    until_address(page, "real_other", WIDE.replace("wide", "narrow"))


def test_heads_are_silenced_and_let_speak_by_clicks_and_a_link_restores_it(enter):
    page = enter("?tool=knock-out")
    expect(page.locator(".say").first).to_contain_text("cosine of 0.9979")
    number(page, "layer 1, head 3").click()
    expect(number(page, "layer 1, head 3")).to_have_attribute("aria-pressed", "true")
    number(page, "layer 4, head 2").click()
    expect(number(page, "layer 4, head 2")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".say").first).to_contain_text("cosine of 0.9977")
    until_address(page, "silenced", "1.3")
    settle(page)
    again = enter(page.url.split("/pretrained")[1])
    expect(number(again, "layer 1, head 3")).to_have_attribute("aria-pressed", "true")
    expect(again.locator(".say").first).to_contain_text("cosine of 0.9977")
    assert again.locator(".say").all_inner_texts() == page.locator(".say").all_inner_texts()


def test_every_tool_fits_a_phone_and_takes_hostile_text_for_text(enter):
    page = enter(viewport=PHONE, color_scheme="dark")
    page.locator(".st-key-real_text input").fill(HOSTILE)
    expect(chip(page, "script").first).to_be_visible()
    for name in story.TOOLS:
        tool(page, name)
        expect(page.locator(SHOWN[name]).first).to_be_visible()
        settle(page)
        assert not overflows(page), name
        expect(page.locator("[data-testid=stException], [data-testid=stMain] img[src*=example]")).to_have_count(0)
    assert page.title() != "owned"

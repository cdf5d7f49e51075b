"""Markup as tokens, typed text, names and files: in a real browser, and in the files saved from it, it is only text.

Each payload has a mark of its own, `pwn` and its number. Run, it sets a variable of that name or asks x.invalid; obeyed
in a smaller way, it leaves its mark in an element's attribute, or the text around its mark is not the whole payload.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from models.pretrained.model import Pretrained
from models.trace import Step
from models.trained.tasks import TASKS
from sections import story
from sections.scene import Scene
from tests.browser import DESK, IDLE, READY, open_section, settle
from tests.models.test_brought import WRITERS, packed
from tests.test_browser import cell, choose, download
from viz import cells, heatmaps
from viz.cells import readable
from viz.page import page as document

TEMPLATES = (
    # elements that run
    "<script>RUN</script>",
    "<ScRiPt>RUN</sCrIpT>",
    "<script/src=ASK></script>",
    "<script/src=data:,RUN></script>",
    "<script/type='module'>window.RUN</script>",
    "<script>RUN</script/x>",
    "<<script>RUN//<</script>",
    "<svg><script>RUN</script></svg>",
    "<svg><script/href='data:,RUN'/></svg>",
    "<img/src/onerror=RUN>",
    "<IMG/SRC/ONERROR='RUN'//>",
    '<img/src/onerror="alert(`MARK`)">',
    "<image/src/onerror=RUN>",
    "<svg/onload=RUN>",
    "<svg/onload=confirm(`MARK`)>",
    "<svg><animate/onbegin='RUN'/attributeName='x'>",
    "<svg><foreignObject><img/src/onerror=RUN>",
    "<svg><style><img/src/onerror=RUN></style>",
    "<math><style><img/src/onerror=RUN></style>",
    "<iframe/srcdoc='<script>parent.RUN</script>'>",
    "<iframe/src=javascript:parent.RUN>",
    "<iframe/onload=RUN>",
    "<object/data='data:text/html,<script>RUN</script>'>",
    "<input/autofocus/onfocus=RUN>",
    "<p/autofocus/tabindex='1'/onfocus=RUN>x",
    "<details/open/ontoggle=RUN>x",
    "<video><source/onerror=RUN></video>",
    "<audio/src/onerror=RUN>",
    "<marquee/onstart=RUN>x",
    "<body/onload=RUN>",
    "<p/onpointerover=RUN>x",
    "<template><img/src/onerror=RUN></template>",
    '<noscript><p/title="</noscript><img/src/onerror=RUN>">',
    # elements that ask another host
    "<img/src=ASK>",
    "<img/srcset=ASK>",
    "<svg><image/href=ASK></svg>",
    "<iframe/src=ASK></iframe>",
    "<object/data=ASK>",
    "<embed/src=ASK>",
    "<link/rel='stylesheet'/href=ASK>",
    "<style>@import'ASK'</style>",
    "<p/style=background:url(ASK)>x",
    "<p/style=width:expression(RUN)>x",
    "<table/background=ASK>",
    "<video/poster=ASK>",
    "<meta/http-equiv='refresh'/content='0;url=ASK'>",
    "<base/href=ASK>",
    # links and forms that run
    "<a/href=javascript:RUN>x</a>",
    "<a/href='java&Tab;script:RUN'>x</a>",
    "<a/href='data:text/html,<script>RUN</script>'>x",
    "<svg><a/xlink:href='javascript:RUN'>x</a></svg>",
    "<math><mi/xlink:href=javascript:RUN>x",
    "<form/action=javascript:RUN><button>x",
    "<button/formaction=javascript:RUN>x",
    # ways out of what a text stands in
    '"><img/src/onerror=RUN>',
    "'><svg/onload=RUN>",
    '"/onpointerover="RUN"/x="',
    "'/onfocus='RUN'/autofocus/x='",
    "--><script>RUN</script>",
    "<!--><script>RUN</script>-->",
    "</script><script>RUN</script>",
    "</style><script>RUN</script>",
    "</textarea></title><script>RUN</script>",
    "</text></svg></table></bdi><img/src/onerror=RUN>",
    "]]><script>RUN</script>",
    '"}];RUN//',
    "\\');RUN//",
    "`+(RUN)+`${RUN}",
    "{{constructor.constructor('RUN')()}}",
    # written otherwise
    "&lt;img/src/onerror=RUN&gt;x",
    "&#60;script&#62;RUN&#60;/script&#62;x",
    "\\u003cscript\\u003eRUN\\u003c/script\\u003e",
    "\u202e<script>RUN</script>",
    "\u200b<img/src/onerror='RUN'\u2066>",
    "<scr\0ipt>RUN</scr\0ipt>",
    "<img\x01/src/onerror\x01=RUN>",
    "\uff1cscript\uff1eRUN\uff1c/script\uff1e",
    # what plotly takes for its own
    "<b>MARK</b><br>x",
    "<sup>#000037MARK</sup>",
    "<a\ufeffhref='javascript:RUN'>x</a>",
    "<a href='ASK' target='_top'>x</a>",
    '<span style="background:url(ASK)">x</span>',
    "%{customdata}%{x}MARK<extra></extra>",
    # what markdown and formulas take for theirs
    "[MARK](javascript:RUN)",
    "![MARK](ASK)",
    "x`![MARK](ASK)`x",
    "<ASK>",
    "www.x.invalid/MARK",
    "$\\href{javascript:RUN}{MARK}$",
    ":red[MARK]:material/home::smile:x",
)


def _made(number: int, template: str) -> str:
    mark = f"pwn_{number}"
    return template.replace("RUN", f"{mark}=1").replace("ASK", f"http://x.invalid/{mark}").replace("MARK", mark)


PAYLOADS = tuple(_made(number, template) for number, template in enumerate(TEMPLATES, 10))  # all marks of one length
SHOWN = tuple(map(readable, PAYLOADS))
TEXT = " ".join(PAYLOADS)


# ---- what is looked for ----

FOUND = """(root) => {
  const mark = /pwn_\\d|x\\.invalid/, plain = ["title", "aria-label", "alt", "value"]
  const texts = [], wrong = Object.keys(window).filter(name => mark.test(name)).map(name => `${name} ran`)
  const walk = (node) => {
    for (const { name, value } of node.attributes ?? [])
      if (mark.test(name + value) && !plain.includes(name) && !name.startsWith("data-"))
        wrong.push(`<${node.localName} ${name}="${value}">`)
    if (node.data && mark.test(node.data)) {
      const inside = node.parentNode?.localName
      const drawing = inside === "script" && node.data.includes("Plotly.newPlot(") // plotly's own, in a saved page
      if (node.nodeType === Node.TEXT_NODE && !["script", "style"].includes(inside)) texts.push(node.data)
      else if (!drawing) wrong.push(`<${inside}>${node.data}`)
    }
    for (const child of [...node.childNodes, node.shadowRoot, node.content]) if (child instanceof Node) walk(child)
  }
  walk(root ?? document)
  return [texts, wrong]
}"""
"""Every text with a mark, in shadow roots and templates too; and everything with a mark that is not only text."""

MARK = re.compile(r"pwn_\d\d")


def found(page: Page, first: int = 0) -> tuple[list[str], list[str]]:
    """Texts with a mark, and what is wrong, in all frames from the first on; the page itself is number 0."""
    frames = [frame.evaluate(FOUND) for frame in page.frames[first:]]
    return [text for texts, _ in frames for text in texts], [one for _, wrong in frames for one in wrong]


def torn(texts: Iterable[str], tokens: Sequence[str]) -> list[str]:
    """Texts whose mark has not all of its token around it. A text may be cut, and says so by its last sign."""
    return [text for text in dict.fromkeys(texts) if not all(_whole(text, mark, tokens) for mark in MARK.findall(text))]


def _whole(text: str, mark: str, tokens: Sequence[str]) -> bool:
    own, cut = [token for token in tokens if mark in token], text.strip().removesuffix("…")
    return any(token in text for token in own) or (cut != text and any(cut in token for token in own))


def only_text(page: Page, tokens: Sequence[str], *, every: bool = True) -> None:
    """Wherever a mark is on the page, it is in a text with all of its token; and every token with a mark is there."""
    texts, wrong = found(page)
    assert not wrong
    assert not torn(texts, tokens)
    assert not every or not [one for one in tokens if MARK.search(one) and not any(one in text for text in texts)]


def test_the_payloads_are_no_toys(browser):
    """Most are HTML; written as they are, each into a frame of its own, they run or leave what the other tests look for."""
    context, asked = browser.new_context(), []
    page = context.new_page()
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.route("http://**", lambda route: route.fulfill(status=204))
    page.set_content("".join(f'<iframe srcdoc="{escape(payload)}"></iframe>' for payload in PAYLOADS))
    texts, wrong = found(page, 1)
    context.close()
    ran = {mark for one in [*asked, *(one for one in wrong if one.endswith(" ran"))] for mark in MARK.findall(one)}
    obeyed = ran | {mark for one in [*wrong, *torn(texts, PAYLOADS)] for mark in MARK.findall(one)}
    print(f"{len(PAYLOADS)} payloads: {len(ran)} run by themselves, {len(obeyed)} are obeyed")
    assert len(ran) >= 50 and len(obeyed) >= 70


# ---- what the tests do ----

INSIDE = {
    "chain": ".st-key-matrices .hm image",
    "grid": ".st-key-head-grid .hm image",
    "vectors": ".st-key-vectors table.walk",
    "overview": ".st-key-overview th",
}
"""What is in a section once it is open."""

ALL = {"source": "random", "heads": 2, "every_key": "true", "products": "true"}


def split(text: str, **choices: str) -> list[str]:
    """The tokens of a text, as they are shown."""
    return list(map(readable, Scene(text=text, **choices).split("text")))


def without_nul(text: str) -> str:
    """As markdown shows it."""
    return text.replace("\0", "\ufffd")


def written(locator: Locator) -> list[str]:
    return locator.evaluate_all("all => all.map(one => one.textContent)")


def chips(page: Page) -> Locator:
    return page.locator(".st-key-sentence button.chip bdi")


def keys(page: Page) -> Locator:
    return page.locator(".st-key-overview th[scope=col]")


def type_in(page: Page, name: str, text: str) -> None:
    page.locator(f".st-key-{name} input").fill(text)


def open_all(page: Page, *names: str) -> None:
    for name in names:
        open_section(page, name)
        expect(page.locator(INSIDE[name]).last).to_be_attached()
    settle(page)


def upload(page: Page, name: str, data: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.locator("[data-testid=stFileUploader] input").set_input_files(file)


def point(page: Page, figure: str, queries: Sequence[str], keys: Sequence[str], first: int, count: int = 1) -> None:
    """Move the mouse down the diagonal of a map; what is then said of each cell names its tokens and is only text."""
    (x, y), (right, below) = (cell(page, figure, place, place) for place in (first, first + 1))
    for step in range(count):
        query, key = queries[first + step], keys[first + step]
        page.mouse.move(x + step * (right - x), y + step * (below - y), steps=2)
        page.wait_for_function(TOLD, arg=[figure, [f"query  {query}", f"key  {key}"]])
        texts, wrong = page.locator(f".st-key-{figure} .hoverlayer").evaluate(FOUND)
        assert not wrong and not torn(texts, [*queries, *keys])


TOLD = """([figure, lines]) => {
  const said = document.querySelector(`.st-key-${figure} .hoverlayer`).textContent
  return lines.every(line => said.includes(line))
}"""

SPOKEN = """(maps, steps) => { // what is said at every cell down the diagonal, and of its row
  const said = maps.closest(".overview").querySelector("[role=status]"), texts = []
  for (const key of ["ArrowUp", ...Array(steps - 1).fill(["r", "ArrowDown", "ArrowRight"]).flat(), "r"]) {
    maps.dispatchEvent(new KeyboardEvent("keydown", { key }))
    if (key !== "ArrowDown") texts.push(said.textContent)
  }
  return texts
}"""


def photograph(page: Page, figure: str, folder: Path) -> Path:
    """What the camera of a figure saves."""
    page.locator(f".st-key-{figure} .js-plotly-plot").hover()
    with page.expect_download() as coming:
        page.locator(f".st-key-{figure} .modebar-btn").click()
    coming.value.save_as(folder / coming.value.suggested_filename)
    return folder / coming.value.suggested_filename


@contextmanager
def from_disk(browser: Browser, file: Path) -> Iterator[Page]:
    """A saved file, opened with the whole network there to be asked."""
    wrong: list[str] = []
    page = browser.new_page(viewport=DESK)
    page.on("request", lambda request: request.url.startswith((file.as_uri(), "data:", "blob:")) or wrong.append(request.url))
    page.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(file.as_uri())
    yield page
    page.close()
    assert not wrong


# ---- the main page, and what is saved from it ----


def test_typed_words_and_what_is_saved_of_them(visit, browser, tmp_path):
    page = visit(ALL | {"attention": "multi-head"})
    type_in(page, "text", TEXT)
    tokens = split(TEXT)
    expect(chips(page)).to_have_count(len(tokens))
    open_all(page, *INSIDE)
    assert written(chips(page)) == written(keys(page)) == tokens
    assert not re.search("[\0\1\u202e\u2066]", "".join(tokens))  # as `readable` names them
    chips(page).nth(3).click(modifiers=["Shift"])
    expect(page.locator(".remark", has_text="Summed")).to_contain_text(tokens[3])
    only_text(page, tokens)
    for figure in ("focus", "head-grid", "matrices"):
        point(page, figure, tokens, tokens, 77)
        with from_disk(browser, photograph(page, figure, tmp_path)) as alone:
            texts, wrong = found(alone)
            assert texts and not wrong and not torn(texts, tokens)
    with from_disk(browser, download(page, "attention.html", tmp_path)) as alone:
        expect(alone.locator(".js-plotly-plot .hm image").nth(2)).to_be_attached()
        only_text(alone, tokens)


def test_addresses_of_two_texts_of_characters_and_of_one_long_token(visit, server):
    other = " ".join(reversed(PAYLOADS))
    page = visit(ALL | {"attention": "cross", "text": TEXT, "context": other, "mask": "causal"})
    open_all(page, "grid", "overview")
    assert written(chips(page)) == split(TEXT)
    assert written(keys(page)) == written(page.locator(".st-key-sentence .keys bdi")) == split(other)
    only_text(page, split(TEXT))

    text = "".join(dict.fromkeys(TEXT.replace(" ", ""))) + TEXT  # the box keeps it all; the first 512 are drawn
    page.goto(f"{server}/?{urlencode({'source': 'random', 'heads': 1, 'tokens': 'characters', 'text': text})}")
    expect(chips(page)).to_have_count(512)
    settle(page)
    assert written(chips(page)) == split(text, tokens="characters")[:512]
    only_text(page, [])

    page.goto(f"{server}/?leave_out=first")
    token = "·".join(TEXT.replace(":material/", "").split())  # Streamlit rewrites the name of an icon, in code too
    type_in(page, "text", f"{token} x")
    expect(page.get_by_text("Left out of the maps")).to_contain_text(MARK.search(token)[0])
    settle(page)
    only_text(page, [readable(token)])
    type_in(page, "text", "a" * 98_000)  # no markup, yet it once kept the browser busy for minutes
    expect(page.locator(".st-key-overview .readout")).to_contain_text("aaaa")


# ---- files of one's own ----

HALF = len(PAYLOADS) // 2
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(2 * HALF), size=(1, 2 * HALF)).astype(np.float32)
VECTORS = np.random.default_rng(1).normal(size=(1, 2 * HALF, 4)).astype(np.float32)


@pytest.fixture
def enter(visit, server) -> Callable[..., Page]:
    """Opens a page by its name, at an address."""

    def enter_at(name: str, **address: object) -> Page:
        ready = f"{IDLE} [data-testid=stMain] input"
        return visit(f"{server}/{name}?{urlencode(address)}", wait=ready)

    return enter_at


def test_tokens_and_names_of_files(enter):
    page = enter("brought")
    asking, asked = SHOWN[:HALF], SHOWN[HALF:]
    file = {"queries": list(PAYLOADS[:HALF]), "keys": list(PAYLOADS[HALF:])}
    upload(page, "mine.npz", WRITERS["npz"](weights=WEIGHTS[:, :HALF, :HALF], **file))
    page.wait_for_selector(READY, state="attached")
    open_all(page, "overview")
    assert written(keys(page)) == list(asked)
    assert written(page.locator(".st-key-overview th[scope=row]")) == list(asking)
    said = page.locator(".st-key-overview .maps").evaluate(SPOKEN, HALF)
    for query, key, of_cell, of_row in zip(asking, asked, said[::2], said[1::2], strict=True):
        assert of_cell.startswith(f"query {query}, key {key}, head 1, ") and of_row.startswith(f"head 1: {query} takes ")
    point(page, "focus", asking, asked, 0, HALF)
    only_text(page, SHOWN)
    for kind in ("json", "safetensors"):
        arrays = {"weights": WEIGHTS, "q": VECTORS, "k": VECTORS, "v": VECTORS}
        upload(page, f"mine.{kind}", WRITERS[kind](tokens=list(PAYLOADS), **arrays))
        expect(chips(page)).to_have_count(len(PAYLOADS))
        settle(page)
        assert written(chips(page)) == list(SHOWN)
        only_text(page, SHOWN)
        names_of_files(page, 0 if kind == "json" else HALF)
    for payload in ("![x](http://x.invalid)", "<img/src=//x.invalid>", "www.x.invalid"):
        upload(page, "mine.npz", packed("weights.npy", headed(payload)))
        expect(page.get_by_test_id("stAlert")).to_contain_text(f"not a valid dtype descriptor: '{payload}'")
        only_text(page, [payload])


def headed(kind: str) -> bytes:
    """An array whose numbers are of a kind that there is not; numpy says so in its own words."""
    header = repr({"descr": kind, "fortran_order": False, "shape": (1, 1, 1)}).encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header


def names_of_files(page: Page, first: int) -> None:
    """A half of the payloads as names in files, and of files."""
    said = page.get_by_test_id("stAlert")
    for start in range(first, first + HALF, 8):
        names = PAYLOADS[start : min(start + 8, first + HALF)]
        quoted = [name if len(name) <= 40 else f"{name[:40]}…" for name in map(without_nul, names)]
        shown = start % 16 < 8  # with weights they are a remark, without them a refusal
        values = {"weights": np.eye(start + 1)[None]} if shown else {}
        file = "".join(names).replace("\0", "") + " of mine.json"  # no disk takes that sign
        upload(page, file, WRITERS["json"](**dict.fromkeys(names, 0), **values))
        expect(said).to_contain_text(f"{'keys:' if shown else 'this file holds'} “{quoted[0]}”")
        assert all(f"“{name}”" in said.text_content() for name in quoted)
        assert page.get_by_test_id("stFileChipName").get_attribute("title") == file
        texts, wrong = found(page)
        assert not wrong and not torn(texts, [file, *" ".join(quoted).split()])


# ---- the other pages ----


def turn_to(page: Page, name: str) -> None:
    page.get_by_role("link", name=story.PAGES[name], exact=True).click()
    page.wait_for_function("name => location.pathname.endsWith(name)", arg=f"/{name}")
    page.wait_for_selector(IDLE)
    settle(page)


def test_other_pages(enter, minilm):
    page = enter("self-and-cross", **ALL, text=TEXT, context=TEXT)
    page.wait_for_selector(".st-key-side-cross .nsewdrag", state="attached")
    expect(page.locator("table.walk")).to_have_count(3)
    settle(page)
    tokens = split(TEXT)
    only_text(page, tokens, every=False)  # it lists the heaviest
    for figure in ("side-self", "side-cross"):
        point(page, figure, tokens, tokens, 77, 6)
    turn_to(page, "block")
    assert written(chips(page)) == tokens
    only_text(page, tokens)
    turn_to(page, "shapes")
    only_text(page, tokens, every=False)
    turn_to(page, "torch")
    only_text(page, [repr(token)[1:-1] for token in Scene(text=TEXT).split("text")])
    turn_to(page, "crash")
    choose(page, "call_mask_kind", "attn_mask")
    type_in(page, "call_mask_shape", TEXT)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stAlert")).to_contain_text(PAYLOADS[0])
    only_text(page, without_nul(TEXT).split())
    turn_to(page, "trained")
    heads_that_learned(page)
    turn_to(page, "pretrained")
    a_real_model(page, minilm)


def heads_that_learned(page: Page) -> None:
    """Every small world shows what it does not know; where letters are tokens, each sign once is enough."""
    halves, signs = (" ".join(PAYLOADS[:HALF]), " ".join(PAYLOADS[HALF:])), "".join(dict.fromkeys(TEXT))
    for name, task in TASKS.items():
        choose(page, "task", name)
        for text in [signs] if all(len(token) == 1 for token in task.vocabulary) else halves:
            type_in(page, f"{name}_text", text)
            tokens, shown = list(map(readable, task.recognise(text).tokens)), page.locator(".say .token")
            expect(shown).to_have_count(len(tokens))
            expect(shown.first).to_have_text(tokens[0])
            only_text(page, tokens)


NAMED = """pieces => {
  const names = new Set([...document.querySelectorAll("table.walk bdi")].map(name => name.textContent))
  return pieces.every(piece => names.has(piece))
}"""


def a_real_model(page: Page, minilm: Pretrained) -> None:
    """No payload outlives being cut into its pieces, which are letters, digits or one sign."""
    type_in(page, "real_text", TEXT)
    expect(page.get_by_test_id("stAlert")).to_contain_text("this model reads at most")
    only_text(page, [])
    one, other = " ".join(PAYLOADS[::15]), " ".join(PAYLOADS[7::15])
    type_in(page, "real_text", one)
    pieces = minilm.read(one)
    expect(chips(page)).to_have_count(len(pieces))
    settle(page)
    assert written(chips(page)) == list(map(readable, pieces.pieces))
    only_text(page, [])
    choose(page, "tool", "compare")
    type_in(page, "real_other", other)
    page.get_by_role("button", name=story.LABELS["change a word"]).click()
    words = [readable(word) for word in minilm.read(other).words[1:-1]]
    expect(page.locator(".st-key-word button")).to_have_text(words)
    page.wait_for_function(NAMED, arg=list(map(readable, minilm.read(other).pieces)))
    only_text(page, [])


# ---- a page of one's own making ----


def test_a_page_of_pictures_opened_from_disk(browser, tmp_path):
    maps = np.stack([WEIGHTS[0], WEIGHTS[0].T])
    pieces = [
        " ".join(map(cells.token, SHOWN)),
        cells.table(map(cells.token, SHOWN), [map(cells.token, SHOWN)], caption=SHOWN[0]),
        cells.vector(VECTORS[0, 0], 1, label="".join(SHOWN)),
        heatmaps.head_grid(maps, SHOWN, SHOWN, signed=False),
        heatmaps.focus(WEIGHTS[0, :HALF, :HALF], SHOWN[:HALF], SHOWN[HALF:], signed=False),
        heatmaps.chain({Step.WEIGHTS: WEIGHTS[0]}, SHOWN, SHOWN),
    ]
    file = tmp_path / "mine.html"
    file.write_text(document("".join(SHOWN), pieces, dark=True), encoding="utf-8")
    with from_disk(browser, file) as alone:
        expect(alone.locator(".js-plotly-plot .hm image")).to_have_count(4)
        only_text(alone, ["".join(SHOWN), *SHOWN])
        assert alone.title() == "".join(SHOWN)

"""All heads at once: how soon it answers, what it weighs, and the same against bertviz.

    python -m benchmarks.overview

Headless Chromium, one run; what is compared takes turns; medians of `ROUNDS`. The floor is the cheapest rerun
there can be: a page of the same server that rewrites one number. Every time ends when the frame is painted.

bertviz is needed here only: `pip install --no-deps bertviz==1.4.1`; without it its rows are left out. Its page asks
a CDN for three scripts. They are answered from npm's packages, fetched into a temporary folder, so that no network
is timed. Exits with 1 if a bound is missed.
"""

import subprocess
import sys
import tarfile
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.proto.BidiComponent_pb2 import BidiComponent
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from sections.scene import Attention, Scene, Source, compute
from tests.browser import DESK, IDLE, READY, launch, serve

ROUNDS, ROUNDS_OF_PAGES = 15, 7
SIZES = {  # heads, tokens: bounds against the floor on the repainted component, and on the walk-through
    (8, 16): (2.0, 4),
    (12, 64): (2.5, 5),
    (12, 256): (4, None),
}
HOVER = {(1, 12, 64): 16, (1, 12, 256): 33, (12, 12, 32): 33, (1, 12, 1024): None}  # layers, heads, tokens: ms
MOST_BYTES, MOST_HEAP = 1.5, 250  # a weight; MB
FASTER, LIGHTER = 10, 25  # than bertviz
LIBRARIES = {  # what bertviz's page asks for, and the package that has it
    "require.min.js": ("requirejs@2.3.6", "require.js"),
    "d3.min.js": ("d3@5.7.0", "dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.0", "dist/jquery.min.js"),  # 2.0.0 was never published there
}


# `inside` finds an element of a component; `painted` resolves when the frame is on the screen that a test holds in.
TOOLS = """
window.inside = (name, selector) => {
  const host = [...document.querySelectorAll(`.st-key-${name} *`)].find(e => e.shadowRoot)
  return host?.shadowRoot.querySelector(selector)
}
window.painted = (holds, patience = 120000) => new Promise((resolve, reject) => {
  const end = performance.now() + patience, after = new MessageChannel()
  after.port1.onmessage = () => resolve(performance.now())
  const frame = () => requestAnimationFrame(() => {
    if (holds()) after.port2.postMessage(0) // comes when the frame is painted
    else if (performance.now() > end) reject(new Error("never painted"))
    else frame()
  })
  frame()
})
window.walk = selector => [...document.querySelectorAll(selector)].map(e => e.textContent).join()
window.query = () => inside("overview", ".overview")?.dataset.query
"""
PIN = """async query => { // clicks a token
  const parts = [".say", "table.walk"], before = parts.map(walk)
  const chip = inside("sentence", ".queries").children[query], start = performance.now()
  chip.click()
  const repainted = painted(() => window.query() === String(query))
  const complete = before[0] === "" ? start : painted(() => parts.every((part, i) => walk(part) !== before[i]))
  return [await repainted - start, await complete - start]
}"""
STEP = """async query => { // asks Python first, by the number field
  const start = performance.now()
  document.querySelector(`.st-key-query [data-testid=stNumberInputStepUp]`).click()
  return await painted(() => window.query() === String(query)) - start
}"""
COUNT = """async () => {
  const said = () => document.querySelector("[data-testid=stMarkdown] p").textContent
  const before = said(), start = performance.now()
  document.querySelector("[data-testid=stButton] button").click()
  return await painted(() => said() !== before) - start
}"""
LISTEN = """() => { // from the event of the real mouse to the frame
  const root = inside("overview", ".overview"), before = root.dataset.look, once = {once: true}
  window.hovered = new Promise(resolve => {
    let start
    addEventListener("pointermove", () => start = performance.now(), {...once, capture: true})
    addEventListener("pointermove", () => { // after the component, whose drawing is then the first in the frame
      painted(() => root.dataset.look !== before).then(end => resolve(end - start))
    }, once)
  })
}"""


class Table:
    """Rows as they are measured, and whether a bound was missed."""

    missed = False

    def row(self, what: str, ours: str, other: str, ratio: float | None = None, bound: str = "", *, good: bool = True) -> None:
        self.missed |= not good
        said = "" if ratio is None else f"{ratio:.2f} ×" if ratio < 100 else f"{ratio:,.0f} ×"
        print(f"{what:68}{ours:>14}{other:>16}{said:>11}{bound:>10}{'' if good else '  missed'}", flush=True)


def main() -> int:
    """Print the table."""
    table = Table()
    with serve("benchmarks/site.py") as address, sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = launch(playwright)
        table.row("", "ours", "floor")
        for (heads, tokens), bounds in SIZES.items():
            _pins(table, browser, address, heads, tokens, bounds)
        table.row("", "ours", "")
        for size, bound in HOVER.items():
            _hovers(table, browser, address, size, bound)
        for heads, tokens in ((12, 64), (12, 256)):
            whole, numbers = (size / (heads * tokens**2) for size in _message(browser, f"{address}/?{_scene(heads, tokens)}"))
            table.row(
                f"bytes a weight: numbers, tokens and words, {heads} × {tokens}", f"{numbers:.2f}", "",
                bound=f"≤ {MOST_BYTES}", good=numbers <= MOST_BYTES,
            )  # fmt: skip
            table.row("the same with the component's own code, sent along", f"{whole:.2f}", "")
        _large(table, browser, address)
        _against_bertviz(table, browser, address, Path(folder))
        browser.close()
    return int(table.missed)


def _pins(table: Table, browser: Browser, address: str, heads: int, tokens: int, bounds: tuple[float, float | None]) -> None:
    app, floor = _open(browser, f"{address}/?{_scene(heads, tokens)}"), _open(browser, f"{address}/floor", "text=now 0")
    pins, steps, least = [], [], []
    for turn in range(ROUNDS + 2):
        app.bring_to_front()
        pins.append(app.evaluate(PIN, 3 + 2 * (turn % 2)))
        _still(app, 3 + 2 * (turn % 2))
        steps.append(app.evaluate(STEP, 4 + 2 * (turn % 2)))
        _still(app, 4 + 2 * (turn % 2))
        floor.bring_to_front()
        least.append(floor.evaluate(COUNT))
    pins, steps, least = pins[2:], steps[2:], median(least[2:])  # two to warm up
    repainted, complete = (median(column) for column in zip(*pins, strict=True))
    size, (most, walk) = f"{heads} × {tokens}", bounds
    for what, ours, bound in (
        (f"a token is picked → all heads repainted, {size}", repainted, most),
        (f"the same by the number field, which asks Python first, {size}", median(steps), None),
        (f"a token is picked → walk-through complete, {size}", complete, walk),
    ):
        ratio = ours / least
        table.row(what, f"{ours:.0f} ms", f"{least:.0f} ms", ratio, f"≤ {bound} ×" if bound else "", good=not bound or ratio <= bound)
    app.close(), floor.close()


def _still(app: Page, query: int) -> None:
    """Until Python has followed, to the last number."""
    app.wait_for_function("wanted => document.querySelector('.st-key-query input').value === wanted", arg=str(query + 1))
    app.wait_for_selector(IDLE)


def _hovers(table: Table, browser: Browser, address: str, size: tuple[int, int, int], bound: int | None) -> None:
    page = _alone(browser, address, size)
    times = _hover(page)
    table.row(
        f"hover → highlighted frame, {' × '.join(map(str, size))}", f"{times:.1f} ms", "", bound=f"≤ {bound} ms" if bound else "",
        good=not bound or times <= bound,
    )  # fmt: skip
    page.close()


def _hover(page: Page) -> float:
    box = page.locator(".st-key-overview .maps").bounding_box()
    times = []
    for turn in range(11):
        page.evaluate(LISTEN)
        page.mouse.move(box["x"] + 8 + 4 * turn, box["y"] + 22 + 4 * turn)  # along the diagonal of the first map
        times.append(page.evaluate("window.hovered"))
    return median(times[2:])


def _large(table: Table, browser: Browser, address: str) -> None:
    start = perf_counter()
    page = _alone(browser, address, (1, 12, 1024))
    opened = perf_counter() - start
    pinned = median(page.evaluate(PIN, turn % 2)[0] for turn in range(ROUNDS))
    _hover(page)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    heap = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}["JSHeapUsedSize"] / 1e6
    process = max(map(_resident, _renderers(browser)))
    table.row("12 × 1024: opened", f"{opened:.1f} s", "")
    table.row("12 × 1024: a token is picked → all heads repainted", f"{pinned:.0f} ms", "")
    table.row("12 × 1024: heap of the page", f"{heap:.0f} MB", "", bound=f"≤ {MOST_HEAP} MB", good=heap <= MOST_HEAP)
    table.row("12 × 1024: memory of its process, buffers and pictures too", f"{process:.0f} MB", "")
    page.close()


def _renderers(browser: Browser) -> list[int]:
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return [process["id"] for process in processes if process["type"] == "renderer"]


def _resident(process: int) -> float:
    """MB of memory a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3


def _message(browser: Browser, address: str) -> tuple[int, int]:
    """Bytes of the message that brings the overview, and of the data in it."""
    page, frames = browser.new_page(viewport=DESK), []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    page.goto(address)
    page.wait_for_selector(READY, state="attached", timeout=60_000)
    page.close()
    components = [(len(frame), _component(frame)) for frame in frames if isinstance(frame, bytes)]
    return max((size, component.mixed.ByteSize()) for size, component in components if component.component_name == "overview")


def _component(frame: bytes) -> BidiComponent:
    return ForwardMsg.FromString(frame).delta.new_element.bidi_component


def _against_bertviz(table: Table, browser: Browser, address: str, folder: Path) -> None:
    heads, tokens = 12, 256
    site, theirs = f"{address}/?{_scene(heads, tokens)}", folder / "bertviz.html"
    try:
        theirs.write_text(_bertviz(heads, tokens), encoding="utf-8")
    except ImportError:
        return print("bertviz is not installed: its rows are left out")
    libraries = {name: _fetch(folder, *package) for name, package in LIBRARIES.items()}

    def open_theirs() -> float:
        drawn = f"document.querySelectorAll('svg line').length >= {heads * tokens**2}"
        return _opening(browser, theirs.as_uri(), drawn, libraries)

    page = _open(browser, f"{address}/?{_scene(heads, 4)}")
    rounds = [
        (_typed(page, turn, heads, tokens), _opening(browser, site, "window.query() !== undefined"), open_theirs())
        for turn in range(ROUNDS_OF_PAGES)
    ]
    ours, cold, other = (median(column) for column in zip(*rounds, strict=True))
    light, heavy = _message(browser, site)[0], theirs.stat().st_size
    table.row("", "ours", "bertviz 1.4.1")
    table.row(
        "opening 12 × 256 in the page → painted", f"{ours:.1f} s", f"{other:.1f} s", other / ours, f"≥ {FASTER} ×",
        good=other >= FASTER * ours,
    )  # fmt: skip
    table.row("the same, and the app itself opened anew for it", f"{cold:.1f} s", f"{other:.1f} s", other / cold)
    table.row(
        "bytes of its weights, tokens and code", f"{light / 1e6:.2f} MB", f"{heavy / 1e6:.2f} MB", heavy / light,
        f"≥ {LIGHTER} ×", good=heavy >= LIGHTER * light,
    )  # fmt: skip


def _bertviz(heads: int, tokens: int) -> str:
    """bertviz's own page of the weights of our scene."""
    kept = lambda data: SimpleNamespace(data=data)
    shown = SimpleNamespace(HTML=kept, Javascript=kept, display=None)
    sys.modules.setdefault("IPython.display", shown)  # it hands its page to a notebook; there is none
    from bertviz import head_view

    made = compute(Scene(text=_text(tokens), attention=Attention.MULTI_HEAD, source=Source.RANDOM, heads=heads, embed_dim=8 * heads))
    page = head_view(attention=[made.trace.weights], tokens=list(made.queries), html_action="return").data
    return f'<!doctype html><html><head><meta charset="utf-8"></head><body>{page}</body></html>'


def _fetch(folder: Path, package: str, path: str) -> Path:
    """A file of a package of npm's."""
    packing = subprocess.run(["npm", "pack", package], cwd=folder, capture_output=True, text=True, check=True)
    with tarfile.open(folder / packing.stdout.split()[-1]) as archive:
        archive.extract(f"package/{path}", folder / package, filter="data")
    return folder / package / "package" / path


def _opening(browser: Browser, address: str, drawn: str, libraries: dict[str, Path] | None = None) -> float:
    """Seconds from asking for a page, in a browser that has nothing of it yet, until it is painted."""
    context = browser.new_context(viewport=DESK)
    context.set_default_timeout(300_000)
    context.add_init_script(TOOLS)
    page = context.new_page()
    if libraries:
        page.route("https://cdnjs.cloudflare.com/**", lambda route: route.fulfill(path=libraries[Path(route.request.url).name]))
    start = perf_counter()
    page.goto(address, wait_until="commit")
    page.evaluate(f"painted(() => {drawn}, 300000)")
    taken = perf_counter() - start
    context.close()
    return taken


def _typed(page: Page, turn: int, heads: int, tokens: int) -> float:
    """Seconds from a new text's last key until all its heads are painted."""
    box = page.locator(".st-key-text input")
    box.fill("a few more words")
    page.evaluate(f"painted(() => inside('overview', '.overview').dataset.shape === '{heads},4,4')")
    box.fill(_text(tokens).replace("t", "abcdefghijklm"[turn]))
    start = perf_counter()
    box.press("Enter")
    page.evaluate(f"painted(() => inside('overview', '.overview').dataset.shape === '{heads},{tokens},{tokens}')")
    return perf_counter() - start


def _scene(heads: int, tokens: int) -> str:
    choices = {"text": _text(tokens), "attention": "multi-head", "source": "random", "heads": heads, "embed_dim": 8 * heads}
    return urlencode(choices)


def _text(tokens: int) -> str:
    return " ".join(f"t{n}" for n in range(tokens))


def _open(browser: Browser, address: str, wait: str = READY) -> Page:
    page = browser.new_page(viewport=DESK)
    page.add_init_script(TOOLS)
    page.goto(address)
    page.wait_for_selector(wait, state="attached", timeout=60_000)
    page.wait_for_selector(IDLE)
    return page


def _alone(browser: Browser, address: str, size: tuple[int, int, int]) -> Page:
    layers, heads, tokens = size
    page = _open(browser, f"{address}/alone?{urlencode({'layers': layers, 'heads': heads, 'tokens': tokens})}", ".st-key-overview")
    page.evaluate("painted(() => window.query() !== undefined)")
    return page


if __name__ == "__main__":
    sys.exit(main())

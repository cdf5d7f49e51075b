"""Changing the query until the new walk-through is painted, against the cheapest rerun of the same server.

`python -m benchmarks.page`. Headless Chromium; both pages in one run, taking turns; medians.
"""

import statistics
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from tests.browser import launch, serve

ROUNDS = 21
TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
SCENES = {
    "8 heads × 16 tokens": {"text": TEXT, "attention": "multi-head", "heads": 8, "embed_dim": 64, "source": "random"},
    "the opening scene": {},
}

# Clicks, waits until every watched text has changed, and one frame more, until it is on the screen.
TIMED = """([button, watched]) => new Promise(resolve => {
  const read = () => watched.map(selector => [...document.querySelectorAll(selector)].map(e => e.textContent).join())
  const before = read()
  const start = performance.now()
  document.querySelector(button).click()
  const look = () => {
    const now = read()
    if (now.every((text, i) => text !== before[i])) requestAnimationFrame(() => resolve(performance.now() - start))
    else requestAnimationFrame(look)
  }
  look()
})"""


def main() -> None:
    """Print the table."""
    with serve("benchmarks/site.py") as address, sync_playwright() as playwright:
        browser = launch(playwright)
        print(f"{'change of query → painted':28}{'median':>10}{'bound':>10}{'floor':>10}{'ratio':>8}{'bound':>8}")
        for name, choices in SCENES.items():
            app, floor = browser.new_page(), browser.new_page()
            app.set_viewport_size({"width": 1400, "height": 1000})
            app.goto(f"{address}/?{urlencode(choices)}")
            app.wait_for_selector(".st-key-focus .nsewdrag", state="attached")
            floor.goto(f"{address}/floor")
            floor.wait_for_selector("text=now 0")
            times = [(_change_query(app, turn), _count(floor)) for turn in range(ROUNDS)][2:]  # two to warm up
            ours, least = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{name:28}{ours:7.0f} ms{200:7} ms{least:7.0f} ms{ours / least:8.2f}{4:8}")
            app.close(), floor.close()
        browser.close()


def _change_query(page: Page, turn: int) -> float:
    page.bring_to_front()
    way = "Up" if turn % 2 == 0 else "Down"
    return page.evaluate(
        TIMED, [f".st-key-query [data-testid=stNumberInputStep{way}]", [".say", "table.walk"]]
    )


def _count(page: Page) -> float:
    page.bring_to_front()
    return page.evaluate(TIMED, ["[data-testid=stButton] button", ["[data-testid=stMarkdown] p"]])


if __name__ == "__main__":
    main()

"""axe-core finds nothing serious on any page, in either theme. tests/vendor/axe.min.js is npm's axe-core 4.14.1 (MPL 2.0)."""

from pathlib import Path

import pytest

from sections.lab import BARE, HOME, PAGES
from tests.browser import IDLE, PHONE, READY, open_section, settle

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
FOUND = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .flatMap(({id, nodes}) => nodes.map(({target, failureSummary}) => [id, target.flat().join(" "), failureSummary]))"""
DRAWN = f"{IDLE} [data-testid=stMain] [data-testid=stElementContainer]"


def violations(page) -> list:
    settle(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate(FOUND)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*PAGES, *BARE])
def test_no_page_shuts_anyone_out(visit, name, scheme):
    page = visit("" if name == HOME else name, wait=DRAWN, color_scheme=scheme)
    page.wait_for_load_state("networkidle")
    found = violations(page)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "address",
    [
        {"attention": "cross", "source": "random", "text": "one two", "context": " ".join(f"t{n}" for n in range(60))},
        {"attention": "multi-head", "source": "random", "mask": "causal", "step": "masked", "together": "average", "shade": "row"},
    ],
    ids=["scrolling", "hidden"],
)
def test_what_the_first_visit_does_not_show(visit, address):
    page = visit(address, wait=READY, viewport=PHONE)
    open_section(page, "overview")
    open_section(page, "files")
    page.wait_for_selector("[data-testid=stDownloadButton]")
    found = violations(page)
    assert not found, "\n".join(map(str, found))

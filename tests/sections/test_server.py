"""Pages take turns."""

import pytest
from pages import opened

from sections import lab
from sections.choices import choose
from sections.scene import compute


class Turns:
    def __init__(self) -> None:
        self.held = self.taken = 0

    def __enter__(self) -> None:
        self.held += 1
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.held -= 1


@pytest.mark.parametrize("text", ["one two", ""])  # "": there is nothing to compute
def test_choices_and_page_take_a_turn_each_and_give_it_back(monkeypatch, text):
    turns, held = Turns(), []
    monkeypatch.setattr(lab, "TURN", turns)
    monkeypatch.setattr(lab, "choose", lambda: held.append(turns.held) or choose())
    monkeypatch.setattr(lab, "compute", lambda scene: held.append(turns.held) or compute(scene))
    page = opened(text=text)
    assert not page.exception and bool(page.error) == (text == "")
    assert set(held) == {1} and turns.taken == len(held) and turns.held == 0

"""Pages take turns."""

from contextlib import ExitStack

import pytest
from pages import opened

from sections import lab
from sections.choices import choose
from sections.limits import MAX_AT_ONCE
from sections.scene import compute
from sections.server import TURNS


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
    monkeypatch.setattr(lab, "TURNS", turns)
    monkeypatch.setattr(lab, "choose", lambda: held.append(turns.held) or choose())
    monkeypatch.setattr(lab, "compute", lambda scene: held.append(turns.held) or compute(scene))
    page = opened(text=text)
    assert not page.exception and bool(page.error) == (text == "")
    assert set(held) == {1} and turns.taken == len(held) > 1 and turns.held == 0


def test_there_are_as_many_turns_as_the_limit_says():
    with ExitStack() as every:
        for _ in range(MAX_AT_ONCE):
            every.enter_context(TURNS)
        assert not TURNS.acquire(blocking=False)

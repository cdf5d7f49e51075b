"""What a silenced head changes: nothing before it, something after it, and how much in closed form."""

import re

import pytest
import torch
from torch.testing import assert_close

from models.pretrained.knock_out import effect


@pytest.fixture
def model(opened):
    return opened("bert")


def test_nothing_silenced_has_no_effect(model):
    pieces = model.read("the cat sat.")
    none = effect(model.run(pieces), model.run(pieces))
    assert none.sentence == pytest.approx(1)
    assert_close(none.pieces, torch.ones(6))
    assert torch.equal(none.moved, torch.zeros(3, 2, 6))


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_only_the_layers_after_it_look_elsewhere(model, layer):
    pieces = model.read("the cat sat.")
    changed = effect(model.run(pieces), model.run(pieces, silenced={(layer, 1)}))
    assert (changed.moved[: layer + 1] == 0).all()
    assert (changed.moved[layer + 1 :].mean(dim=-1) > 0).all()
    assert changed.sentence < 1 - 1e-6


def test_it_is_measured_as_said(model):
    pieces = model.read("the cat sat.")
    intact, silenced = model.run(pieces), model.run(pieces, silenced={(0, 0), (0, 1)})
    changed = effect(intact, silenced)
    assert changed.sentence == pytest.approx(float(intact.sentence[0] @ silenced.sentence[0]), abs=1e-6)
    one, other = intact.final[0, 3], silenced.final[0, 3]
    assert changed.pieces[3].item() == pytest.approx(float(one @ other / one.norm() / other.norm()), abs=1e-6)
    rows = [(intact.weights[2, 1, i] - silenced.weights[2, 1, i]).abs().sum() / 2 for i in range(6)]
    assert_close(changed.moved[2, 1], torch.stack(rows))


def test_two_texts_are_no_knock_out(model):
    message = "both runs must be of one text; got 3 and 4 pieces. Run the same pieces twice."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        effect(model.run(model.read("cat")), model.run(model.read("the cat")))

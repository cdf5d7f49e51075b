"""Scores of hand-made heads, in closed form, and of the real ones."""

import math

import pytest
import torch
from torch.testing import assert_close

from models.pretrained.find_heads import Pattern, find_heads, ranked, score
from models.pretrained.pieces import Pieces
from models.pretrained.sentences import SENTENCES

N = 7  # [CLS] a b a c d [SEP]
IDS = (101, 5, 6, 5, 7, 8, 102)


def text(ids=IDS, special=(0, 6)) -> Pieces:
    names = tuple(map(str, ids))
    return Pieces(
        text="", ids=ids, pieces=names, word=tuple(range(len(ids))), words=names,
        special=tuple(place in special for place in range(len(ids))),
    )  # fmt: skip


def shifted(by: int) -> torch.Tensor:
    """A head that gives everything to the piece `by` places on, or to the last one there is."""
    return torch.eye(N)[[min(max(place + by, 0), N - 1) for place in range(N)]]


def to(key: int) -> torch.Tensor:
    return torch.eye(N)[[key] * N]


UNIFORM = torch.full((N, N), 1 / N)


@pytest.mark.parametrize(
    "weights, scores",
    [
        (shifted(-1), {"previous": 1, "next": 0, "same": 0, "first": 1 / 5, "separator": 0, "broad": 0, "entropy": 0}),
        (shifted(1), {"previous": 0, "next": 1, "same": 0, "first": 0, "separator": 1 / 5}),
        (shifted(0), {"previous": 0, "next": 0, "same": 1}),
        (shifted(2), {"same": 1 / 5}),  # the first a looks at the second
        (to(0), {"previous": 1 / 5, "first": 1, "separator": 0}),
        (to(6), {"next": 1 / 5, "first": 0, "separator": 1}),
        (UNIFORM, {"previous": 1 / N, "next": 1 / N, "same": 1.4 / N, "first": 1 / N, "separator": 1 / N}),
        (UNIFORM, {"broad": 1, "entropy": math.log(N)}),
        ((to(0) + to(6)) / 2, {"broad": math.log(2) / math.log(N), "entropy": math.log(2)}),
    ],
)
def test_a_head_made_by_hand_scores_what_it_must(weights, scores):
    given = score(weights, text())
    for pattern, wanted in scores.items():
        assert given[Pattern(pattern)].item() == pytest.approx(wanted, abs=1e-6), pattern


def test_rows_of_special_pieces_count_for_nothing():
    weights = UNIFORM.clone()
    weights[[0, 6]] = torch.eye(N)[[3, 3]]
    for pattern, given in score(weights, text()).items():
        assert_close(given, score(UNIFORM, text())[pattern])


def test_without_special_pieces_every_row_counts_that_can():
    plain = text(special=())
    given = score(shifted(-1), plain)
    assert given[Pattern.PREVIOUS] == 1                             # the first row has none before it
    assert given[Pattern.SAME].item() == pytest.approx(1 / N)       # the first row, at itself
    assert score(shifted(1), plain)[Pattern.NEXT] == 1
    assert given[Pattern.SEPARATOR] == 0


def test_broad_goes_by_the_keys_that_can_be_seen():
    past = torch.ones(N, N).tril()
    weights = past / past.sum(dim=-1, keepdim=True)
    plain = text(special=())
    assert score(weights, plain, causal=True)[Pattern.BROAD].item() == pytest.approx(1)
    assert score(weights, plain)[Pattern.BROAD] < 0.8


def test_what_cannot_be_is_no_number():
    alone = text(ids=(5,), special=())
    given = score(torch.ones(1, 1), alone)
    assert [pattern for pattern in Pattern if given[pattern].isnan()] == ["previous", "next", "broad"]
    assert (given[Pattern.SAME], given[Pattern.FIRST], given[Pattern.ENTROPY]) == (1, 1, 0)


def test_every_head_of_every_layer_has_its_own():
    weights = torch.stack([torch.stack([shifted(-1), UNIFORM, to(6)]), torch.stack([to(0), shifted(1), shifted(-1)])])
    assert ranked(score(weights, text())[Pattern.PREVIOUS]) == [
        (0, 0, 1.0), (1, 2, 1.0), (1, 0, pytest.approx(1 / 5)), (0, 1, pytest.approx(1 / N)), (0, 2, 0.0), (1, 1, 0.0),
    ]  # fmt: skip


def test_no_number_is_ranked_last():
    assert [head[:2] for head in ranked(torch.tensor([[math.nan, 0.2], [0.9, -0.1]]))] == [
        (1, 0), (0, 1), (1, 1), (0, 0),
    ]  # fmt: skip


def test_over_texts_it_is_the_mean_of_those_that_have_a_number(opened):
    model = opened("gpt2")
    texts = ["a", "ab", "a cat"]
    alone = [find_heads(model, [text])[Pattern.PREVIOUS] for text in texts]
    assert alone[0].isnan().all() and alone[0].shape == (3, 2)
    assert_close(find_heads(model, texts)[Pattern.PREVIOUS], (alone[1] + alone[2]) / 2)


def test_the_causal_model_is_measured_by_what_it_sees(opened):
    model = opened("gpt2")
    pieces = model.read("ab cat")
    wanted = score(model.run(pieces).weights, pieces, causal=True)
    assert torch.equal(find_heads(model, [pieces.text])[Pattern.BROAD], wanted[Pattern.BROAD])


def test_the_bundled_sentences_are_short_and_no_two_the_same(minilm):
    assert len(set(SENTENCES)) == len(SENTENCES) == 40
    assert all(len(minilm.read(sentence)) <= 20 for sentence in SENTENCES)


def test_minilm_s_previous_piece_head_is_found_alike_in_one_sentence_and_in_all(minilm):
    for texts in (SENTENCES[:1], SENTENCES):
        layer, head, best = ranked(find_heads(minilm, texts)[Pattern.PREVIOUS])[0]
        assert (layer, head) == (0, 2) and best > 0.95

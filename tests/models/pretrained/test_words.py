"""Weights between words, and without special pieces, in numbers one can check."""

import pytest
import torch
from torch.testing import assert_close

from models.pretrained.pieces import Pieces
from models.pretrained.words import keep_only, merge, show

PIECES = Pieces(
    text="Catkin sat",
    ids=(0, 1, 2, 3, 4),
    pieces=("[CLS]", "cat", "##kin", "sat", "[SEP]"),
    word=(0, 1, 1, 2, 3),
    special=(True, False, False, False, True),
    words=("[CLS]", "Catkin", "sat", "[SEP]"),
)
WEIGHTS = torch.tensor(
    [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.0, 0.4, 0.1, 0.3, 0.2],
        [0.1, 0.2, 0.3, 0.0, 0.4],
        [0.5, 0.1, 0.1, 0.1, 0.2],
        [1.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


def test_what_a_word_gives_is_averaged_and_what_it_is_given_is_summed():
    wanted = [[0.2, 0.4, 0.2, 0.2], [0.05, 0.5, 0.15, 0.3], [0.5, 0.2, 0.1, 0.2], [1.0, 0.0, 0.0, 0.0]]
    assert_close(merge(WEIGHTS, PIECES.word), torch.tensor(wanted))


def test_merging_is_its_formula_for_every_head_and_keeps_rows_at_one():
    word = (0, 0, 1, 2, 2, 2, 3)
    weights = torch.rand(3, 2, 7, 7, dtype=torch.float64).softmax(dim=-1)
    merged = merge(weights, word)
    for query in range(4):
        for key in range(4):
            rows = [weights[..., i, j] for i in range(7) for j in range(7) if (word[i], word[j]) == (query, key)]
            assert_close(merged[..., query, key], sum(rows) / word.count(query))
    assert_close(merged.sum(dim=-1), torch.ones(3, 2, 4, dtype=torch.float64))


def test_what_is_left_is_divided_by_what_remains():
    kept, nothing_left = keep_only(WEIGHTS, (1, 2, 3))
    assert_close(kept, torch.tensor([[0.5, 0.125, 0.375], [0.4, 0.6, 0.0], [1 / 3, 1 / 3, 1 / 3]]))
    assert not nothing_left.any()


def test_a_row_with_nothing_left_stays_zero_and_is_told():
    kept, nothing_left = keep_only(WEIGHTS, (1, 4))
    assert_close(kept, torch.tensor([[2 / 3, 1 / 3], [0.0, 0.0]]))
    assert nothing_left.tolist() == [False, True]


@pytest.mark.parametrize(
    "merged, special, tokens, places",
    [
        (False, True, ("[CLS]", "cat", "##kin", "sat", "[SEP]"), (0, 1, 2, 3, 4)),
        (True, True, ("[CLS]", "Catkin", "sat", "[SEP]"), (0, 1, 2, 3)),
        (False, False, ("cat", "##kin", "sat"), (1, 2, 3)),
        (True, False, ("Catkin", "sat"), (1, 2)),
    ],
)
def test_what_is_shown_is_merged_first_and_then_cut(merged, special, tokens, places):
    weights = torch.stack([WEIGHTS, WEIGHTS.flip(0)])
    shown = show(weights, PIECES, merged=merged, special=special)
    assert (shown.tokens, shown.places) == (tokens, places)
    wanted = merge(weights, PIECES.word) if merged else weights
    wanted = wanted if special else keep_only(wanted, places)[0]
    assert torch.equal(shown.weights, wanted)
    assert shown.nothing_left.shape == (2, len(tokens)) and not shown.nothing_left.any()


def test_a_text_without_special_pieces_is_shown_whole():
    bare = Pieces(text="a b", ids=(0, 1), pieces=("a", "b"), word=(0, 1), special=(False, False), words=("a", "b"))
    weights = torch.eye(2)
    assert torch.equal(show(weights, bare, special=False).weights, weights)

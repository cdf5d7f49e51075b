"""Weights between words in numbers one can check, and texts with a word changed."""

import pytest
import torch
from torch.testing import assert_close

from models.pretrained.pieces import Pieces
from models.pretrained.words import merge, replaced, typed

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


@pytest.mark.parametrize(
    "text, word, by, wanted",
    [
        ("Too tired, it sat.", "tired", "wide", "Too wide, it sat."),
        ("Too tired, it sat.", "tired", "  very  wide ", "Too very  wide, it sat."),
        ("Too tired, it sat.", "tired", "", "Too, it sat."),
        ("Too tired, it sat.", "Too", "", "tired, it sat."),
        ("Too tired, it sat.", "it", " ", "Too tired, sat."),
        ("It sat where it sat", "sat", "", "It where it sat"),
        ("isn't", "'", "", "isnt"),
        ("the <b>cat</b>", "cat", "dog", "the <b>dog</b>"),
    ],
)
def test_a_word_is_replaced_where_it_stands_or_goes_with_a_space(opened, text, word, by, wanted):
    pieces = opened("bert").read(text)
    assert replaced(pieces, pieces.words.index(word), by) == wanted


def test_the_second_of_two_equal_words_is_replaced_alone(opened):
    pieces = opened("bert").read("the cat, the dog")
    second = [place for place, word in enumerate(pieces.words) if word == "the"][1]
    assert replaced(pieces, second, "a") == "the cat, a dog"


def test_only_typed_words_are_typed():
    assert typed(PIECES) == (1, 2)

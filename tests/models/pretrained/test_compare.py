"""Aligning two sentences, and how much of each head's weight moved between them, by hand."""

import pytest
import torch
from torch.testing import assert_close

from models.pretrained.compare import align, compare, total_variation
from models.pretrained.find_heads import ranked


@pytest.mark.parametrize(
    "first, second, pairs",
    [
        ("it was tired .", "it was wide .", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("a b c", "a c", [(0, 0), (2, 1)]),
        ("a c", "a b c", [(0, 0), (1, 2)]),
        ("a x c", "a y z c", [(0, 0), (2, 3)]),
        ("a b c d", "x b c y", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("a b", "x y z", []),
        ("", "a", []),
    ],
)
def test_equal_words_are_paired_and_words_replaced_one_for_one(first, second, pairs):
    assert align(first.split(), second.split()) == tuple(pairs)


def test_a_long_text_s_frequent_words_are_paired_too():
    words = ["a", "b"] * 150
    assert align(words, ["x", *words]) == tuple((place, place + 1) for place in range(300))


def test_total_variation_is_the_share_that_moved():
    before = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    after = torch.tensor([[0.5, 0.2, 0.3], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5]])
    assert_close(total_variation(before, after), torch.tensor([0.3, 1.0, 0.0]))


def test_keys_without_a_partner_count_together_as_one():
    first = torch.tensor([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])   # a b c
    second = torch.tensor([[0.6, 0.4], [0.9, 0.1]])                             # a c
    difference = compare(first, second, ((0, 0), (2, 1)))
    assert_close(difference.change, torch.tensor([[0.0, 0.1], [0.9, -0.9]]))
    assert_close(difference.moved, torch.tensor([0.1, 0.9]))  # the first: b had .1, which went to c
    assert_close(difference.distance, torch.tensor(0.5))


def test_where_the_other_keys_went_among_each_other_is_not_counted():
    first, second = torch.tensor([[0.4, 0.6, 0.0]] * 3), torch.tensor([[0.4, 0.0, 0.6]] * 3)
    assert_close(compare(first, second, ((0, 0),)).moved, torch.zeros(1))


def test_the_same_weights_differ_nowhere_and_heads_are_told_apart():
    first = torch.rand(3, 2, 5, 5).softmax(dim=-1)
    second = first.clone()
    second[1, 0] = second[1, 0].roll(1, dims=-1)
    second[2, 1, 4] = torch.eye(5)[0]
    pairs = tuple((place, place) for place in range(5))
    distance = compare(first, second, pairs).distance
    assert distance.nonzero().tolist() == [[1, 0], [2, 1]]
    assert_close(distance[2, 1], (1 - first[2, 1, 4, 0]) / 5)


def test_two_runs_the_other_way_round_differ_as_much():
    first, second = torch.rand(2, 5, 5).softmax(dim=-1), torch.rand(2, 7, 7).softmax(dim=-1)
    pairs = ((0, 1), (2, 3), (4, 6))
    there, back = compare(first, second, pairs), compare(second, first, [(j, i) for i, j in pairs])
    assert_close(there.distance, back.distance)
    assert_close(there.change, -back.change)
    assert (there.moved <= 1).all() and (there.moved >= 0).all()


def test_with_nothing_paired_there_is_no_number():
    assert compare(torch.eye(3), torch.eye(2), ()).distance.isnan()


def test_the_head_that_resolves_it_is_among_those_that_moved_most(minilm):
    texts = [minilm.read(f"The animal didn't cross the street because it was too {word}.") for word in ("tired", "wide")]
    first, second = (minilm.run(text).weights for text in texts)
    pairs = align(*(text.pieces for text in texts))
    difference = compare(first, second, pairs)
    assert (3, 1) in [head[:2] for head in ranked(difference.distance)[:5]]
    it, animal = texts[0].pieces.index("it"), texts[0].pieces.index("animal")
    assert difference.change[3, 1, it, animal] < -0.3

"""Sums over heads and over what is kept, against numbers one can work out in the head."""

import torch
from torch import tensor

from models.summaries import average, leave_out, maximum

HEADS = tensor([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]], [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]], dtype=torch.float64)


def test_average():
    assert average(HEADS).tolist() == [[[0.375, 0.5, 0.125], [0.25, 0.5, 0.25]]]


def test_maximum():
    assert maximum(HEADS).tolist() == [[[0.5, 0.75, 0.25], [0.5, 1.0, 0.5]]]
    assert (maximum(HEADS).sum(dim=-1) >= 1).all()


def test_one_head_is_its_own_summary():
    assert torch.equal(average(HEADS[:1]), HEADS[:1])
    assert torch.equal(maximum(HEADS[:1]), HEADS[:1])


def test_what_is_left_adds_up_to_one_in_the_same_proportion():
    left = leave_out(HEADS, tensor([False, True, True]))
    assert left.tolist() == [[[0, 0.5, 0.5], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]]


def test_a_row_with_nothing_left_is_zeros():
    assert leave_out(HEADS, tensor([True, False, True]))[0, 1].tolist() == [0, 0, 0]
    assert not leave_out(HEADS, tensor([False, False, False])).any()


def test_keeping_everything_changes_nothing():
    assert torch.equal(leave_out(HEADS, tensor([True, True, True])), HEADS)


def test_leaving_a_key_out_is_the_softmax_without_it():
    scores = torch.randn(5, 7, 11, dtype=torch.float64)
    keep = torch.arange(11) % 3 != 0
    torch.testing.assert_close(leave_out(scores.softmax(-1), keep)[..., keep], scores[..., keep].softmax(-1))


def test_a_nan_stays_where_it_is():
    weights = HEADS.clone()
    weights[0, 0, 1] = torch.nan
    assert leave_out(weights, tensor([True, True, False]))[0, 0].isnan().any()
    assert leave_out(weights, tensor([True, False, True]))[0, 0].tolist() == [2 / 3, 0, 1 / 3]

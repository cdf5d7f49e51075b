"""Rollout in closed form, and against its definition path by path."""

from itertools import product

import torch
from torch.testing import assert_close

from models.pretrained.rollout import rollout


def test_uniform_weights_in_closed_form():
    """With W = 1/n everywhere, A^l = 2^−l I + (1 − 2^−l) W."""
    n, layers = 5, 3
    uniform = torch.full((layers, 2, n, n), 1 / n, dtype=torch.float64)
    for depth, rolled in enumerate(rollout(uniform), 1):
        stays = 0.5**depth
        assert_close(rolled, stays * torch.eye(n, dtype=torch.float64) + (1 - stays) * uniform[0, 0])


def test_two_layers_by_hand():
    first = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])        # both look at the first
    second = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])       # both look at the second
    rolled = rollout(torch.stack([first, second]))
    assert_close(rolled, torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.75, 0.25], [0.5, 0.5]]]))


def test_it_is_the_sum_over_all_paths_of_the_product_along_each():
    weights = torch.rand(3, 2, 4, 4, dtype=torch.float64).softmax(dim=-1)
    steps = weights.mean(dim=1) / 2 + torch.eye(4) / 2
    rolled = rollout(weights)[-1]
    for query, key in product(range(4), repeat=2):
        paths = [steps[2, query, i] * steps[1, i, j] * steps[0, j, key] for i, j in product(range(4), repeat=2)]
        assert_close(rolled[query, key], sum(paths))
    assert_close(rolled.sum(dim=-1), torch.ones(4, dtype=torch.float64))


def test_under_a_causal_mask_nothing_comes_from_the_future():
    weights = torch.rand(3, 2, 5, 5).tril()
    assert (rollout(weights).triu(1) == 0).all()

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from models.embedding import embed

ROOT = Path(__file__).parents[2]


def test_one_row_a_token():
    assert embed(["the", "cat", "sat"], 5, seed=0).shape == (3, 5)
    assert embed([], 5, seed=0).shape == (0, 5)


def test_the_same_token_has_the_same_vector_whatever_the_sentence():
    one, other = embed(["the", "cat", "saw", "the", "dog"], 7, seed=3), embed(["a", "dog", "saw", "the"], 7, seed=3)
    assert torch.equal(one[0], one[3])
    assert torch.equal(one[0], other[3])
    assert torch.equal(one[4], other[1])
    assert torch.equal(one[2], embed(["saw"], 7, seed=3)[0])


def test_rows_are_in_the_order_of_the_tokens():
    tokens = ["b", "a", "d", "c", "a"]
    rows = embed(tokens, 7, seed=0)
    for token, row in zip(tokens, rows, strict=True):
        assert torch.equal(row, embed([token], 7, seed=0)[0])


def test_other_tokens_and_other_seeds_have_other_vectors():
    tokens = ["the", "The", "", " ", "1", "1:1", "é", "e", "\ud800", "猫"]
    vectors = torch.cat([embed(tokens, 3, seed) for seed in (0, 1, 11, -1)])
    assert len(set(map(tuple, vectors.tolist()))) == len(vectors)


@pytest.mark.parametrize("embed_dim", [1, 5, 64])
def test_vectors_are_roughly_standard_normal(embed_dim):
    numbers = embed([f"token {i}" for i in range(20_000 // embed_dim)], embed_dim, seed=0).flatten()
    assert numbers.mean().item() == pytest.approx(0, abs=0.03)
    assert numbers.std().item() == pytest.approx(1, abs=0.03)
    assert (numbers.abs() < 1).double().mean().item() == pytest.approx(0.683, abs=0.02)
    assert (numbers.abs() < 2).double().mean().item() == pytest.approx(0.954, abs=0.01)


def test_tokens_are_not_alike_by_accident():
    vectors = embed([f"token {i}" for i in range(100)], 500, seed=0)
    alike = torch.corrcoef(vectors) - torch.eye(100)
    assert alike.abs().max() < 0.3


def test_torch_s_own_generator_is_left_alone():
    before = torch.get_rng_state()
    embed(["the", "cat"], 5, seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_torch_s_own_generator_has_no_say():
    one = embed(["the", "cat"], 5, seed=0)
    torch.manual_seed(12345)
    assert torch.equal(embed(["the", "cat"], 5, seed=0), one)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_draws_the_same(hash_seed):
    code = "from models.embedding import embed; print(embed(['the', '猫'], 3, seed=5).tolist())"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONUTF8": "1"}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == str(embed(["the", "猫"], 3, seed=5).tolist())

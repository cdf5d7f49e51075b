import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
import torch
from einops import parse_shape

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import AXES, QUERY_BY_KEY, AttentionTrace, Step

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, EMBED = 3, 2, 5, 7, 11, 13
SIZES = {"batch": BATCH, "head": HEADS, "query": QUERIES, "key": KEYS, "head_dim": HEAD_DIM, "embed": EMBED}

# Written out, so that adding, renaming or moving a step is a decision: links and exports carry these names.
STEPS = ["q", "k", "v", "scores", "scaled", "masked", "weights", "context", "output"]


@pytest.fixture
def trace() -> AttentionTrace[torch.Tensor]:
    module = MultiHeadAttention(AttentionConfig(embed_dim=EMBED, num_heads=HEADS, head_dim=HEAD_DIM))
    return module.trace(torch.randn(BATCH, QUERIES, EMBED), torch.randn(BATCH, KEYS, EMBED))


def numbered() -> AttentionTrace[int]:
    return AttentionTrace(**{name: number for number, name in enumerate(STEPS)})


def test_the_steps_are_these_in_this_order():
    assert [step.value for step in Step] == STEPS


def test_every_step_is_a_field_and_every_field_a_step():
    assert [field.name for field in fields(AttentionTrace)] == STEPS


def test_every_step_has_axes():
    assert list(AXES) == list(Step)


def test_axes_cannot_be_changed():
    with pytest.raises(TypeError):
        AXES[Step.Q] = "anything"


@pytest.mark.parametrize("step", Step)
def test_axes_say_what_the_arrays_are(trace, step):
    assert parse_shape(trace[step], f"batch {AXES[step]}") == {
        axis: SIZES[axis] for axis in ["batch", *AXES[step].split()]
    }


def test_axes_use_each_word_for_one_size(trace):
    sizes = {(axis, size) for step in Step for axis, size in parse_shape(trace[step], f"batch {AXES[step]}").items()}
    assert sizes == set(SIZES.items())


def test_the_square_steps_are_those_between_scores_and_weights():
    assert QUERY_BY_KEY == (Step.SCORES, Step.SCALED, Step.MASKED, Step.WEIGHTS)


@pytest.mark.parametrize("number, name", list(enumerate(STEPS)))
def test_a_step_is_looked_up_by_step_or_by_name(number, name):
    assert numbered()[Step(name)] == numbered()[name] == getattr(numbered(), name) == number


@pytest.mark.parametrize("name", ["attention", "map", "", "Scores"])
def test_a_name_that_is_no_step_is_refused(name):
    with pytest.raises(ValueError, match=f"{name!r} is not a valid Step"):
        numbered()[name]


def test_a_trace_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        numbered().weights = 0


@pytest.mark.parametrize("missing", STEPS)
def test_every_step_must_be_given(missing):
    with pytest.raises(TypeError, match=f"'{missing}'"):
        AttentionTrace(**{name: 0 for name in STEPS if name != missing})


def test_steps_are_given_by_name_only():
    with pytest.raises(TypeError, match="positional"):
        AttentionTrace(*range(len(STEPS)))


def test_map_gives_a_new_record_and_leaves_the_old():
    before = numbered()
    after = before.map(lambda number: 10 * number)
    assert [after[step] for step in Step] == [0, 10, 20, 30, 40, 50, 60, 70, 80]
    assert before == numbered()


def test_map_turns_tensors_into_arrays(trace):
    arrays = trace.map(lambda tensor: tensor.detach().numpy())
    assert isinstance(arrays, AttentionTrace)
    for step in Step:
        assert isinstance(arrays[step], np.ndarray)
        np.testing.assert_array_equal(arrays[step], trace[step].detach())


def test_the_record_needs_no_torch():
    code = "import models.trace, sys; sys.exit(bool({'torch', 'numpy', 'einops'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0

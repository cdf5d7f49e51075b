"""Every task trained once from nothing, by its own recipe, reaches what the shipped weights reach."""

import pytest
import torch
from held_figures import missed

from models.trained.induction import ONE_LAYER
from models.trained.task import TRAINED, Task
from models.trained.tasks import TASKS
from models.trained.training import Model


def trained(task: Task, variant: str) -> dict[int, Model]:
    """The model at its end, having been measured at steps 50 and 150."""
    measured = {}
    for progress in task.train(variant):
        if progress.step in (50, 150, progress.steps):
            with torch.inference_mode():
                measured[progress.step] = task.measure(progress.model)
    return measured


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_fresh_training_reaches_the_same(task):
    measured = trained(task, TRAINED)
    assert not missed(task.name, measured[max(measured)])
    if task.name == "induction":
        assert measured[50]["accuracy"] < 0.15
        assert measured[150]["accuracy"] > 0.95


@pytest.mark.slow
def test_one_layer_never_learns_it():
    measured = trained(TASKS["induction"], ONE_LAYER)
    assert measured[max(measured)]["accuracy"] <= 0.2

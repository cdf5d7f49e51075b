"""The training loop: the same every time, alone with its generator, and stopped whenever its caller likes."""

from copy import deepcopy
from dataclasses import replace
from itertools import islice
from threading import Thread

import pytest
import torch
from torch.testing import assert_close

from models.trained.task import FREE, TRAINED, Variant
from models.trained.tasks import TASKS
from models.trained.training import Recipe, begin, empty, train

TASK = TASKS["reverse"]


def after(steps: int) -> dict[str, torch.Tensor]:
    for progress in islice(TASK.train(), steps + 1):
        weights = {name: tensor.clone() for name, tensor in progress.model.state_dict().items()}
    return weights


def test_the_same_recipe_gives_the_same_model_whatever_torch_drew_before():
    one = after(3)
    torch.manual_seed(5)
    assert all(torch.equal(one[name], tensor) for name, tensor in after(3).items())


def test_training_draws_nothing_from_torch_s_generator():
    before = torch.get_rng_state()
    for task in TASKS.values():
        for variant in task.variants:
            next(task.train(variant))
    assert torch.equal(torch.get_rng_state(), before)


def test_two_trainings_at_once_do_not_disturb_each_other():
    alone, together = after(5), []
    threads = [Thread(target=lambda: together.append(after(5))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for weights in together:
        assert all(torch.equal(alone[name], tensor) for name, tensor in weights.items())


def test_step_0_is_the_untrained_model_and_each_step_changes_it():
    steps = []
    for progress in islice(TASK.train(), 3):
        steps.append((progress.step, progress.model.readout.weight.clone()))
    assert [step for step, _ in steps] == [0, 1, 2]
    assert not torch.equal(steps[0][1], steps[1][1])


def test_training_ends_after_the_recipe_s_steps():
    assert [progress.step for progress in TASK.train()][-1] == TASK.variants["trained"].recipe.steps


def test_training_works_where_the_caller_switched_gradients_off():
    with torch.no_grad():
        first, second = (progress.model.readout.weight.sum().item() for progress in islice(TASK.train(), 2))
    assert first != second


@pytest.mark.parametrize("variant, wanted", [("trained", True), ("free", False)])
def test_the_free_variant_has_no_penalty(variant, wanted):
    for task in TASKS.values():
        assert (task.variants[variant].recipe.penalty > 0) == wanted


def test_rate_and_penalty_follow_their_schedules():
    recipe = Recipe(steps=100, rate=2.0, warm_up=10, hold=0.5, floor=0.1, penalty=3.0)
    rates = [recipe.rate_at(step) for step in (0, 9, 50, 75, 100)]
    assert_close(rates, [0.2, 2.0, 2.0, 1.1, 0.2])
    assert_close([recipe.penalty_at(step) for step in (0, 40, 50, 60, 100)], [0.0, 0.0, 1.5, 3.0, 3.0])


def test_the_penalty_begins_after_the_unpenalised_steps():
    for steps in (7, 10, 400, 1000, 1200):
        recipe = Recipe(steps=steps, rate=1.0, penalty=3.0)
        assert recipe.penalty_at(recipe.unpenalised) == 0 < recipe.penalty_at(recipe.unpenalised + 1)


def whole(build, recipe):
    """The weights after a training without a break."""
    training = begin(build, recipe)
    list(train(training, recipe, TASK.losses))
    return training.model.state_dict()


def test_a_copy_goes_on_as_if_it_had_been_alone():
    build, recipe = TASK.variants[TRAINED]
    recipe = replace(recipe, steps=7)
    shared = begin(build, recipe)
    steps = [progress.step for progress in train(shared, recipe, TASK.losses, until=3)]
    assert steps == [0, 1, 2]
    for one in (recipe, recipe.without_penalty()):
        training = deepcopy(shared)
        assert [progress.step for progress in train(training, one, TASK.losses)] == [3, 4, 5, 6, 7]
        assert all(torch.equal(tensor, training.model.state_dict()[name]) for name, tensor in whole(build, one).items())


def test_shipping_saves_every_variant_as_if_it_had_been_trained_alone(monkeypatch):
    task = TASKS["coreference"]  # two variants that share a start, and one that does not
    short = {name: Variant(build, replace(recipe, steps=5)) for name, (build, recipe) in task.variants.items()}
    monkeypatch.setattr(type(task), "variants", short)
    saved, told = {}, []
    monkeypatch.setattr(type(task), "save", lambda _, variant, model: saved.update({variant: model}))
    task.ship(lambda variant, progress: told.append((variant, progress.step)))
    shared = short[TRAINED].recipe.unpenalised
    begins = {TRAINED: 0, FREE: shared, "ordinary": 0}
    assert shared > 0 and told == [(variant, step) for variant, first in begins.items() for step in range(first, 6)]
    for variant in short:
        alone = list(task.train(variant))[-1].model
        assert all(torch.equal(tensor, saved[variant].state_dict()[name]) for name, tensor in alone.state_dict().items())


def test_an_empty_model_draws_nothing():
    before = torch.get_rng_state()
    empty(TASK.variants["trained"].build)
    assert torch.equal(torch.get_rng_state(), before)

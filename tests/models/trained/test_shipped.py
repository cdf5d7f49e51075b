"""The weights that are shipped: what they reach, what their cards say, how large they are, and what they answer."""

from pathlib import Path

import pytest
import torch
from held_figures import BOUNDS, missed
from torch.testing import assert_close

from models.trained.induction import FILM, FRAMES, ONE_LAYER
from models.trained.task import FREE, TRAINED, Task
from models.trained.tasks import TASKS

SHIPPED = [(task, variant) for task in TASKS.values() for variant in task.variants]
NAMES = [f"{task.name}-{variant}" for task, variant in SHIPPED]
shipped = pytest.mark.parametrize("task, variant", SHIPPED, ids=NAMES)
each = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def measured(task: Task, variant: str = TRAINED) -> dict[str, float]:
    with torch.inference_mode():
        return task.measure(task.load(variant))


def test_every_task_has_bounds():
    assert TASKS.keys() == BOUNDS.keys()


@each
def test_figures_are_reached_on_held_out_data(task):
    assert not missed(task.name, measured(task))


@shipped
def test_cards_say_what_is_measured(task, variant):
    figures = task.load_with_card(variant)[1].figures
    assert_close(measured(task, variant), dict(figures), rtol=0, atol=0.005)


@shipped
def test_files_are_small(task, variant):
    assert task.path(variant).stat().st_size <= 300_000


def test_the_film_is_small_and_nothing_else_is_shipped():
    film = TASKS["induction"].path(FILM)
    assert film.stat().st_size <= 1_000_000
    folder = Path(film).parents[1]
    assert set(folder.rglob("*.safetensors")) == {film, *(task.path(variant) for task, variant in SHIPPED)}


@shipped
def test_every_example_is_understood_and_run(task, variant):
    model = task.load(variant)
    for text in task.examples:
        recognised = task.recognise(text)
        assert recognised.outside is None
        assert task.run(model, text).tokens == recognised.tokens


@shipped
def test_a_layer_seen_is_the_layer_that_ran(task, variant):
    run = task.run(task.load(variant), task.examples[0])
    for seen in run.seen:
        trace = seen.layer.trace(*(seen.inputs[name][None] for name in ("query", "key", "value")), visible=seen.visible)
        assert torch.equal(trace.output, seen.trace.output)
        assert torch.equal(trace.weights, seen.trace.weights)
        assert seen.trace.weights.shape[2:] == (len(seen.queries), len(seen.keys))


@shipped
def test_probabilities_fall_and_are_at_most_one(task, variant):
    for prediction in task.run(task.load(variant), task.examples[0]).predictions:
        probabilities = [guess.probability for guess in prediction.guesses]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) <= 1 + 1e-6
        assert (prediction.token, prediction.probability) == (prediction.guesses[0].token, probabilities[0])


@each
def test_silencing_every_head_changes_the_answer_or_its_certainty(task):
    model, text = task.load(), task.examples[0]
    run = task.run(model, text)
    heads = [(seen.name, head) for seen in run.seen for head in range(seen.layer.config.num_heads)]
    silenced = task.run(model, text, silence=heads)
    assert silenced.predictions != run.predictions
    for seen in silenced.seen:
        assert (seen.trace.context == 0).all()


@each
def test_a_hidden_key_gets_no_weight_and_the_others_get_it_all(task):
    model, text = task.load(), task.examples[0]
    for seen in task.run(model, text).seen:
        weights = task.run(model, text, hide=[(seen.name, 1)])[seen.name].trace.weights
        assert (weights[..., 1] == 0).all()
        sums = weights.sum(-1)
        assert_close(sums[sums > 0], torch.ones_like(sums[sums > 0]))


@each
def test_what_lies_outside_is_not_run(task):
    with pytest.raises(ValueError, match=f"^the text must lie in the small world of {task.name}; got 'Ω'"):
        task.run(task.load(), "Ω")


def test_without_the_penalty_attention_is_less_sharp_where_both_are_right():
    for name, figure in (("translation", "mass"), ("coreference", "it_to_adjective")):
        assert measured(TASKS[name], FREE)[figure] < measured(TASKS[name])[figure] - 0.05


# Induction


def test_one_layer_cannot_do_it():
    assert measured(TASKS["induction"], ONE_LAYER)["accuracy"] <= 0.2


def test_the_film_shows_the_phase_change():
    film = {frame.step: frame for frame in TASKS["induction"].film()}
    assert tuple(film) == FRAMES
    assert film[50].accuracy < 0.15
    assert film[150].accuracy > 0.95
    assert film[50].induction < 0.3
    assert film[150].induction > 0.8


def test_the_film_s_figures_are_its_models_and_its_end_is_the_trained_one():
    task = TASKS["induction"]
    film = task.film()
    with torch.inference_mode():
        for frame in film:
            figures = task.measure(frame.model)
            assert_close([figures["accuracy"], figures["induction"]], [frame.accuracy, frame.induction], rtol=0, atol=0.005)
    for trained, last in zip(task.load().parameters(), film[-1].model.parameters(), strict=True):
        assert torch.equal(trained, last)


def test_every_frame_runs_on_the_user_s_text():
    task = TASKS["induction"]
    answers = [task.run(frame.model, "the cat sat the c").answer[-1] for frame in task.film()]
    assert answers[0] != "a"
    assert answers[-1] == "a"


def test_the_letters_to_copy_are_all_found():
    task = TASKS["induction"]
    assert task.earlier(tuple("banana ban")) == (3, 5)
    assert task.earlier(tuple("abc")) == ()


# Coreference


def test_the_adjective_decides_and_hiding_it_takes_the_reason_away():
    task = TASKS["coreference"]
    model = task.load()
    text = "the animal did not cross the street because it was too {}"
    assert task.run(model, text.format("tired")).answer == ("animal",)
    assert task.run(model, text.format("wide")).answer == ("street",)
    blind = [task.run(model, text.format(word), hide=[("first", 11)]).answer for word in ("tired", "wide")]
    assert blind[0] == blind[1]


def test_the_ordinary_model_is_right_and_does_not_look_at_the_noun():
    figures = measured(TASKS["coreference"], "ordinary")
    assert figures["accuracy"] >= 0.99
    assert figures["it_to_adjective"] < 0.6
    assert figures["it_to_noun"] < 0.6


# Reverse and four heads


@pytest.mark.parametrize("word", ["python", "ab", "abcdefghijkl", "aaaa"])
def test_a_word_comes_back_reversed(word):
    task = TASKS["reverse"]
    assert "".join(task.run(task.load(), word).answer) == word[::-1] + "."


def test_every_question_has_a_head_of_its_own():
    task = TASKS["four_heads"]
    assert sorted(task.heads(task.load()).values()) == [0, 1, 2, 3]


# Translation


def test_the_sentence_of_bahdanau_et_al_crosses_where_it_should():
    task = TASKS["translation"]
    run = task.run(task.load(), "the agreement on the european economic area was signed in august 1992 .")
    assert " ".join(run.answer) == "l' accord sur la zone économique européenne a été signé en août 1992 ."
    looked = [run["cross"].keys[place] for place in run["cross"].trace.weights[0, 0].argmax(-1)]
    assert looked[4:7] == ["area", "economic", "european"]


def test_hiding_the_attended_word_changes_the_answer():
    task = TASKS["translation"]
    text = "the new bank was signed ."
    assert "banque" in task.run(task.load(), text).answer
    assert "banque" not in task.run(task.load(), text, hide=[("cross", 2)]).answer

"""Heads that learned: small trained models on what is typed, every head by the same views."""

from collections.abc import Iterator
from html import escape
from threading import BoundedSemaphore
from time import monotonic, sleep

import streamlit as st
import torch
from torch import Tensor, nn

from models import glass
from models.trained.card import BadWeights
from models.trained.four_heads.data import Question
from models.trained.induction import FRAMES, Frame
from models.trained.record import Guess, Places, Prediction, Run, Seen
from models.trained.task import TRAINED, Outside, Recognised, Task
from models.trained.tasks import TASKS
from sections import attend, film, overview, story
from sections.attended import Attended
from sections.choices import choose_look
from sections.limits import MAX_SECONDS, MAX_TRAININGS
from sections.widgets import line, one_of
from viz import cells
from viz.numbers import percent

RANDOM, GLASS = "random", "glass"
"""The same architecture before its first step of training; for induction, weights set by hand."""

_TRAINING = BoundedSemaphore(MAX_TRAININGS)


def render() -> None:
    """One task: what it is, a text to try it on, what the model says, and where its heads look."""
    task = TASKS[one_of("task", list(TASKS), default="coreference")]
    st.markdown(story.TASKS[task.name].says)
    recognised = _text(task)
    if recognised.outside:
        _outside(task, recognised)
        return
    text = st.session_state[_name(task)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        variant = one_of("weights_of", _weights(task), default=TRAINED)
        try:
            run = _run(task.name, variant, text)
        except BadWeights as refusal:
            st.error(str(refusal))
            return
        seen = run[one_of("layer_of", [seen.name for seen in run.seen], default=run.seen[-1].name)]
        knock = one_of("knock_out", ["nothing", "word", "head"], default="nothing")
        with st.popover(story.LABELS["more"], icon=":material/tune:"):
            look = choose_look()
    if run.predictions:
        _answer(task, run)
    changed = st.empty()
    st.caption(story.VARIANTS[variant])
    attended = _attended(seen, run, task, variant)
    if "query" not in st.session_state and "query" not in st.query_params:
        st.session_state.query = len(seen.queries) if task.name == "induction" else 1  # the place that answers

    def follow(query: int) -> None:
        head = int(st.session_state.get("head", 1)) - 1 if attended.num_heads > 1 else 0
        if knock != "nothing" and run.predictions:
            changed.html(_knocked_out(task, variant, text, run, seen, knock, head, query))

    attend.render(attended, look, follow=follow)
    _side_by_side(task, text, seen.name, int(st.session_state.get("head", 1)) - 1)
    if task.name == "induction":
        _film(text)


def _weights(task: Task) -> list[str]:
    """The models there are for a task."""
    return [*task.variants, RANDOM, *([GLASS] if task.name == "induction" else [])]


# ---- the text ----


def _name(task: Task) -> str:
    """Of its text in the address; each task keeps its own."""
    return f"{task.name}_text"


def _text(task: Task) -> Recognised:
    """What is typed, taken from the examples, or built by clicking, and what the task makes of it."""
    name = _name(task)

    def take_sample() -> None:
        st.session_state.update({name: st.session_state.sample, "sample": None})

    recognised = task.recognise(line(name, "text", task.examples[0]))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.pills(story.LABELS["examples"], task.examples, key="sample", on_change=take_sample, label_visibility="collapsed")
        with st.popover(story.HEADINGS["pieces"], icon=":material/extension:"):
            _pieces(task, recognised)
    return recognised


def _pieces(task: Task, recognised: Recognised) -> None:
    """What may come next, to build a text by clicking."""
    glue = "" if all(len(token) == 1 for token in task.vocabulary) else " "

    def add() -> None:
        longer = glue.join([*recognised.tokens, st.session_state.piece])
        st.session_state.update({_name(task): longer, "piece": None})

    def take() -> None:
        st.session_state[_name(task)] = glue.join(recognised.tokens[:-1])

    st.button(story.LABELS["take back"], on_click=take, disabled=not recognised.tokens)
    pieces = task.pieces(recognised.tokens)
    if pieces:
        st.pills(story.LABELS["pieces"], pieces, key="piece", on_change=add, format_func=_label)
    else:
        st.caption(story.HINTS["no pieces"])


def _outside(task: Task, recognised: Recognised) -> None:
    """Why a text is outside the small world, which tokens are at fault, and the nearest text inside."""
    st.warning(story.OUTSIDE[recognised.outside].format(most=task.longest, count=len(recognised.tokens)))
    if recognised.outside is not Outside.EMPTY:
        marked = [
            f'<span class="{"fault" if place in recognised.faults else ""}">{cells.token(_label(token))}</span>'
            for place, token in enumerate(recognised.tokens)
        ]
        st.html(f'<p class="say">{" ".join(marked)}</p>')
    inside = {_name(task): recognised.nearest}
    st.button(story.nearest(recognised.nearest), on_click=lambda: st.session_state.update(inside))


# ---- the model ----


@st.cache_resource(max_entries=24, show_spinner=False)
def _model(task: str, variant: str) -> nn.Module:
    """Read-only, one for all visitors. Raises `BadWeights` for a file that cannot be used."""
    chosen = TASKS[task]
    model = next(chosen.train(TRAINED)).model if variant == RANDOM else chosen.load(variant)
    return model.requires_grad_(False)


@st.cache_data(max_entries=64, show_spinner=False)
def _run(task: str, variant: str, text: str, hide: Places = (), silence: Places = ()) -> Run:
    if variant == GLASS:
        return _glass_pair(TASKS[task].recognise(text).tokens)
    return TASKS[task].run(_model(task, variant), text, hide=hide, silence=silence)


def _attended(seen: Seen, run: Run, task: Task, variant: str) -> Attended:
    """A layer of a trained model, for the views of every layer."""
    queries, keys = (tuple(map(_label, labels)) for labels in (seen.queries, seen.keys))
    return Attended(
        queries=queries,
        keys=keys,
        two_texts=queries != keys,
        inputs=seen.inputs if queries != keys else {"query": seen.inputs["query"]},
        visible=seen.visible,
        layer=seen.layer,
        trace=seen.trace,
        origin=story.HINTS["trained"],
        about={"task": task.name, "weights": variant, "layer": seen.name, "tokens": run.tokens, "answer": run.answer},
    )


# ---- what it says ----


def _answer(task: Task, run: Run) -> None:
    """The predicted tokens, each with its probability; what else it considered on demand."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(_said(story.TASKS[task.name].answers, task, run, run), width="content")
        with st.popover(story.HEADINGS["guesses"]):
            rows = [[str(n + 1), *map(_alternative, one.guesses)] for n, one in enumerate(run.predictions)]
            guesses = [story.COLUMNS["guess"].format(n=n + 1) for n in range(max(map(len, rows)) - 1)]
            st.html(cells.table(["", *guesses], rows, caption=story.CAPTIONS["guesses"]))
    if task.name == "induction":
        places = task.earlier(run.tokens)
        st.caption(story.earlier([place + 1 for place in places], [_label(run.tokens[place]) for place in places]))


def _answers(task: Task, run: Run) -> dict[str, tuple[Prediction, ...]]:
    """The predictions that answer, by what they answer."""
    if task.name == "induction":
        return {"": run.predictions[-1:]}  # of the letters foretold, the only one that is not typed yet
    if task.name == "four_heads":
        count = len(run.tokens)
        return {story.QUESTIONS[one]: run.predictions[n * count : (n + 1) * count] for n, one in enumerate(Question)}
    return {"": run.predictions}


def _said(words: str, task: Task, run: Run, intact: Run) -> str:
    """What a model answers, each token with its probability; those that an intact run has not are marked. HTML."""
    lines = [
        f"{escape(question)} {' '.join(_guess(one, place, before) for place, one in enumerate(predictions))}"
        for (question, predictions), before in zip(
            _answers(task, run).items(), _answers(task, intact).values(), strict=True
        )
    ]
    return f'<p class="say">{words} {"<br>".join(lines)}</p>'


def _guess(prediction: Prediction, place: int, before: tuple[Prediction, ...]) -> str:
    same = place < len(before) and before[place].token == prediction.token
    return f'<span class="guess {"" if same else "changed"}">{_alternative(prediction.guesses[0])}</span>'


def _alternative(guess: Guess) -> str:
    return f"{cells.token(_label(guess.token))} <small>{escape(percent(guess.probability))}</small>"


def _label(token: str) -> str:
    """A token as one can see it; a space, which is a letter here, as an open box."""
    return "␣" if token == " " else cells.readable(token)


def _knocked_out(
    task: Task, variant: str, text: str, run: Run, seen: Seen, knock: str, head: int, query: int
) -> str:
    """What the model says without the word this query looks at most, or without the head. HTML."""
    key = int(seen.trace.weights[0, head, query].argmax())
    without = {"hide": ((seen.name, key),)} if knock == "word" else {"silence": ((seen.name, head),)}
    what = cells.token(_label(seen.keys[key]), "key") if knock == "word" else str(head + 1)
    now = _run(task.name, variant, text, **without)
    return _said(story.KNOCKED_OUT[knock].format(what=what), task, now, run)


# ---- side by side ----


def _side_by_side(task: Task, text: str, layer: str, head: int) -> None:
    """One head on the same text with other weights: untrained, trained, trained otherwise, set by hand."""
    st.markdown(f"##### {story.HEADINGS['side by side']}")
    seen = _same(_run(task.name, TRAINED, text), layer)
    sides = {name: (one, says) for name, one, says in _sides(task, text, layer)}
    st.caption("  \n".join(f"{story.WEIGHTS_OF[name]}: {says}" for name, (_, says) in sides.items()))
    alike = {name: one for name, (one, _) in sides.items() if one.trace.weights.shape[2:] == seen.trace.weights.shape[2:]}
    if len(alike) < len(sides):
        st.caption(story.HINTS["other length"])
    maps = torch.stack([one.trace.weights[0, min(head, one.layer.config.num_heads - 1)] for one in alike.values()])
    hidden = [torch.zeros_like(maps[0]).bool() if one.visible is None else ~one.visible for one in alike.values()]
    names = [story.WEIGHTS_OF[name] for name in alike]
    queries, keys = ([_label(token) for token in labels] for labels in (seen.queries, seen.keys))
    summed_up = {"summary": True, "lines": False}  # not heads of one layer: choosing one chooses nothing
    overview.show(overview.sheet(maps.numpy(), torch.stack(hidden).numpy(), names, queries, keys) | summed_up, key="sides")


def _sides(task: Task, text: str, layer: str) -> Iterator[tuple[str, Seen, str]]:
    """Each model by its name, its layer, and what it says."""
    for variant in (RANDOM, *task.variants):
        run = _run(task.name, variant, text)
        answer = (f"`{_label(one.token)}`" for group in _answers(task, run).values() for one in group)
        yield variant, _same(run, layer), " ".join(answer)
    if task.name == "induction":
        yield GLASS, _same(_run(task.name, GLASS, text), layer), story.GLASS_INDUCTION


def _same(run: Run, layer: str) -> Seen:
    """The layer of that name, or the last one of a model that has none."""
    return next((seen for seen in run.seen if seen.name == layer), run.seen[-1])


def _glass_pair(tokens: tuple[str, ...]) -> Run:
    """The induction pair set by hand, on the same text. It only looks: it predicts nothing."""
    pair = glass.induction_pair()
    below, above = glass.induce(pair, tokens)
    x, causal = glass.embed_pair(tokens), torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
    ran = {"first": (pair[0], x, causal.tril(-1), below), "second": (pair[1], x + below.output[0], causal, above)}
    return Run(
        tokens=tokens,
        predictions=(),
        seen=tuple(
            Seen(
                name=name,
                layer=layer,
                inputs={"query": inputs},
                visible=visible,
                trace=trace,
                queries=tokens,
                keys=tokens,
            )
            for name, (layer, inputs, visible, trace) in ran.items()
        ),
    )


# ---- learning ----


def _film(text: str) -> None:
    """The shipped checkpoints on the typed text, and a training of one's own."""
    st.markdown(f"##### {story.HEADINGS['film']}")
    st.caption(story.HINTS["film"])
    task = TASKS["induction"]
    frames = _frames()
    film.render([_moment(task, text, frame) for frame in frames], *_shown(task, text), key="film")
    _train_yourself(text)


@st.cache_resource(show_spinner=False)
def _frames():
    return TASKS["induction"].film()


def _moment(task: Task, text: str, frame) -> film.Moment:
    run = task.run(frame.model, text)
    maps = torch.cat([seen.trace.weights[0] for seen in run.seen])
    measured = {name: getattr(frame, name) for name in ("loss", "accuracy", "previous", "induction")}
    return film.Moment(frame.step, story.film_answer(_label(run.predictions[-1].token), percent(run.predictions[-1].probability)), maps, measured)


def _shown(task: Task, text: str) -> tuple[list[str], list[str], Tensor]:
    """Tokens, names of layers, and what is hidden."""
    run = _run(task.name, TRAINED, text)
    hidden = torch.stack([~seen.visible for seen in run.seen])
    return [_label(token) for token in run.tokens], [story.LAYERS[seen.name] for seen in run.seen], hidden


@st.fragment
def _train_yourself(text: str) -> None:
    """The real training, here and now. Pressing stop, or anything else, ends it."""
    start = st.button(story.LABELS["train"], icon=":material/play_arrow:", help=story.HELP["train"])
    if not start:
        return
    if not _TRAINING.acquire(blocking=False):
        st.warning(story.HINTS["training is taken"])
        return
    try:
        _train(text)
    finally:
        _TRAINING.release()


def _train(text: str) -> None:
    """Step by step, drawing as it goes; the film of it when it is done."""
    task, moments = TASKS["induction"], []
    bar, said = st.progress(0.0), st.empty()
    st.button(story.LABELS["stop"], icon=":material/stop:")
    end = monotonic() + MAX_SECONDS
    for now in task.train():
        sleep(0.001)  # between two steps others get their turn
        if now.step in FRAMES:
            frame = Frame(now.step, model=now.model, **task.measure(now.model))
            moments.append(_moment(task, text, frame))
            said.caption(story.learning(now.step, now.loss, now.accuracy, moments[-1].answer))
        if now.step % 10 == 0:
            bar.progress(now.step / now.steps)
        if monotonic() > end:
            st.warning(story.HINTS["out of time"].format(seconds=MAX_SECONDS))
            break
    film.render(moments, *_shown(task, text), key="own-film")

"""Heads that learned: small trained models on what is typed, every head by the same views."""

from collections.abc import Iterator
from threading import BoundedSemaphore
from time import monotonic, sleep

import streamlit as st
import torch
from torch import Tensor, nn

from models import glass
from models.trained.card import BadWeights
from models.trained.induction import FRAMES, Frame
from models.trained.record import Places, Prediction, Run, Seen
from models.trained.task import TRAINED, Outside, Recognised, Task
from models.trained.tasks import TASKS
from sections import attend, film, story
from sections.attended import Attended
from sections.choices import Look, choose_look
from sections.limits import MAX_SECONDS, MAX_TRAININGS
from sections.pictures import show
from sections.widgets import one_of
from viz import cells, heatmaps
from viz.numbers import percent

RANDOM = "random"
"""The same architecture before its first step of training."""

_TRAINING = BoundedSemaphore(MAX_TRAININGS)


def render() -> None:
    """One task: what it is, a text to try it on, what the model says, and where its heads look."""
    st.markdown(f"#### {story.PAGES['trained']}")
    task = TASKS[one_of("task", list(TASKS), default="coreference")]
    st.markdown(story.TASKS[task.name].says)
    text = _text(task)
    recognised = task.recognise(text)
    _pieces(task, recognised)
    if recognised.outside:
        _outside(task, recognised)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        variant = one_of("weights_of", [*task.variants, RANDOM], default=TRAINED)
        run = _run_or_say(task, variant, text)
        if run is None:
            return
        layer = one_of("layer_of", [seen.name for seen in run.seen], default=run.seen[-1].name)
        knock = one_of("knock_out", ["nothing", "word", "head"], default="nothing")
        with st.popover(story.LABELS["more"], icon=":material/tune:"):
            look = choose_look()
    st.caption(story.VARIANTS[variant])
    seen = run[layer]
    _answer(task, run)
    changed = st.empty()
    attended = _attended(seen, run, task, variant)

    def follow(query: int) -> None:
        head = int(st.session_state.get("head", 1)) - 1 if attended.num_heads > 1 else 0
        _knocked_out(task, variant, text, run, seen, knock, head, query, changed)

    attend.render(attended, look, follow=follow)
    _side_by_side(task, text, layer, look)
    if task.name == "induction":
        _film(text)


# ---- the text ----


def _text(task: Task) -> str:
    """What is typed for a task; each keeps its own."""
    name = f"{task.name}_text"

    def apply() -> None:
        st.session_state[name] = st.session_state.sample
        st.session_state.sample = None

    text = st.text_input(story.LABELS["text"], task.examples[0], key=name, bind="query-params", live="300ms") or ""
    st.pills(story.LABELS["examples"], task.examples, key="sample", on_change=apply, label_visibility="collapsed")
    return text


def _pieces(task: Task, recognised: Recognised) -> None:
    """What may come next, to build a text by clicking."""
    name = f"{task.name}_text"
    glue = "" if all(len(token) == 1 for token in task.vocabulary) else " "

    def add() -> None:
        st.session_state[name] = glue.join([*recognised.tokens, st.session_state.piece])
        st.session_state.piece = None

    def take() -> None:
        st.session_state[name] = glue.join(recognised.tokens[:-1])

    section = st.expander(story.HEADINGS["pieces"], key="pieces", on_change="rerun")
    if not section.open:
        return
    with section:
        st.button(story.LABELS["take back"], on_click=take, disabled=not recognised.tokens)
        pieces = task.pieces(recognised.tokens)
        if pieces:
            st.pills(story.LABELS["pieces"], pieces, key="piece", on_change=add, format_func=cells.readable)
        else:
            st.caption(story.HINTS["no pieces"])


def _outside(task: Task, recognised: Recognised) -> None:
    """Why a text is outside the small world, which tokens are at fault, and the nearest text inside."""
    name = f"{task.name}_text"
    st.warning(story.OUTSIDE[recognised.outside].format(most=task.longest, count=len(recognised.tokens)))
    if recognised.outside is not Outside.EMPTY:
        marked = [
            f'<span class="{"fault" if place in recognised.faults else ""}">{cells.token(cells.readable(token))}</span>'
            for place, token in enumerate(recognised.tokens)
        ]
        st.html(f'<p class="say">{" ".join(marked)}</p>')
    st.button(
        story.nearest(recognised.nearest), on_click=lambda: st.session_state.update({name: recognised.nearest})
    )


# ---- the model ----


@st.cache_resource(max_entries=24, show_spinner=False)
def _model(task: str, variant: str) -> nn.Module:
    """Read-only, one for all visitors. Raises `BadWeights` for a file that cannot be used."""
    chosen = TASKS[task]
    model = next(chosen.train(TRAINED)).model if variant == RANDOM else chosen.load(variant)
    return model.requires_grad_(False)


@st.cache_data(max_entries=64, show_spinner=False)
def _run(task: str, variant: str, text: str, hide: Places = (), silence: Places = ()) -> Run:
    return TASKS[task].run(_model(task, variant), text, hide=hide, silence=silence)


def _run_or_say(task: Task, variant: str, text: str) -> Run | None:
    try:
        return _run(task.name, variant, text)
    except BadWeights as refusal:
        st.error(str(refusal))
        return None


def _attended(seen: Seen, run: Run, task: Task, variant: str) -> Attended:
    """A layer of a trained model, for the views of every layer."""
    queries, keys = (tuple(map(cells.readable, labels)) for labels in (seen.queries, seen.keys))
    return Attended(
        queries=queries,
        keys=keys,
        two_texts=queries != keys,
        inputs={name: seen.inputs[name] for name in (("query",) if queries == keys else seen.inputs)},
        visible=seen.visible,
        layer=seen.layer,
        trace=seen.trace,
        origin=story.HINTS["trained"],
        about={"task": task.name, "weights": variant, "layer": seen.name, "tokens": run.tokens, "answer": run.answer},
    )


# ---- what it says ----


def _answer(task: Task, run: Run) -> None:
    """The predicted tokens, each with its probability; what else it considered on demand."""
    said = " ".join(_guess(prediction) for prediction in _answers(task, run))
    st.html(f'<p class="say">{story.TASKS[task.name].answers} {said}</p>')
    if note := _note(task, run):
        st.caption(note)
    section = st.expander(story.HEADINGS["guesses"], key="guesses", on_change="rerun")
    if section.open:
        rows = [[str(place + 1), *map(_alternative, prediction.guesses)] for place, prediction in enumerate(run.predictions)]
        head = ["", *(story.COLUMNS["guess"].format(n=n + 1) for n in range(max(len(row) for row in rows) - 1))]
        section.html(cells.table(head, rows, caption=story.CAPTIONS["guesses"]))


def _answers(task: Task, run: Run) -> tuple[Prediction, ...]:
    """The predictions that answer: of foretold letters the last, which is the only one not typed yet."""
    return run.predictions[-1:] if task.name == "induction" else run.predictions


def _guess(prediction: Prediction) -> str:
    return f'<span class="guess">{cells.token(cells.readable(prediction.token))} <small>{percent(prediction.probability).replace("<", "&lt;")}</small></span>'


def _alternative(guess) -> str:
    return f"{cells.token(cells.readable(guess.token))} {percent(guess.probability).replace('<', '&lt;')}"


def _note(task: Task, run: Run) -> str:
    """For induction: the places there are to copy from."""
    if task.name != "induction":
        return ""
    return story.earlier([place + 1 for place in task.earlier(run.tokens)], [run.tokens[place] for place in task.earlier(run.tokens)])


def _knocked_out(
    task: Task, variant: str, text: str, run: Run, seen: Seen, knock: str, head: int, query: int, room
) -> None:
    """What the model says without the word this query looks at most, or without the head."""
    if knock == "nothing":
        return
    key = int(seen.trace.weights[0, head, query].argmax())
    hide = ((seen.name, key),) if knock == "word" else ()
    silence = ((seen.name, head),) if knock == "head" else ()
    now = _run(task.name, variant, text, hide, silence)
    what = cells.token(cells.readable(seen.keys[key]), "key") if knock == "word" else str(head + 1)
    before, after = _answers(task, run), _answers(task, now)
    said = " ".join(
        f'<span class="{"changed" if place >= len(before) or before[place].token != one.token else ""}">{_guess(one)}</span>'
        for place, one in enumerate(after)
    )
    room.html(f'<p class="say">{story.KNOCKED_OUT[knock].format(what=what)} {said}</p>')


# ---- side by side ----


def _side_by_side(task: Task, text: str, layer: str, look: Look) -> None:
    """The same text in the same layer with other weights: untrained, trained, trained otherwise, set by hand."""
    section = st.expander(story.HEADINGS["side by side"], key="sides", on_change="rerun")
    if not section.open:
        return
    sides = list(_sides(task, text, layer))
    with section:
        for (name, seen, says), column in zip(sides, st.columns(len(sides), gap="medium"), strict=True):
            with column:
                st.markdown(f"**{story.WEIGHTS_OF[name]}**  \n{says}")
                hidden = None if seen.visible is None else (~seen.visible).numpy()
                queries, keys = ([cells.readable(token) for token in labels] for labels in (seen.queries, seen.keys))
                figure = heatmaps.focus(seen.trace.weights[0, 0].numpy(), queries, keys, signed=False, hidden=hidden)
                show(figure, f"side-{name}", look, alt=story.alt("focus", "weights", 1))


def _sides(task: Task, text: str, layer: str) -> Iterator[tuple[str, Seen, str]]:
    for variant in (RANDOM, *task.variants):
        run = _run(task.name, variant, text)
        seen = next((one for one in run.seen if one.name == layer), run.seen[-1])
        yield variant, seen, story.said([cells.readable(one.token) for one in _answers(task, run)])
    if task.name == "induction":
        yield "glass", _glass_induction(task.recognise(text).tokens, layer), story.GLASS_INDUCTION


def _glass_induction(tokens: tuple[str, ...], layer: str) -> Seen:
    """The pair set by hand, on the same text."""
    traces = dict(zip(("first", "second"), glass.induce(glass.induction_pair(), tokens), strict=True))
    trace = traces.get(layer, traces["second"])
    visible = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril(-1 if layer == "first" else 0)
    pair = dict(zip(("first", "second"), glass.induction_pair(), strict=True))
    return Seen(
        name=layer, layer=pair.get(layer, pair["second"]), inputs={}, visible=visible, trace=trace, queries=tokens, keys=tokens
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
    return film.Moment(frame.step, story.film_answer(run.predictions[-1].token, percent(run.predictions[-1].probability)), maps, measured)


def _shown(task: Task, text: str) -> tuple[list[str], list[str], Tensor]:
    """Tokens, names of layers, and what is hidden."""
    run = _run(task.name, TRAINED, text)
    hidden = torch.stack([~seen.visible for seen in run.seen])
    return [cells.readable(token) for token in run.tokens], [story.LAYERS[seen.name] for seen in run.seen], hidden


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

"""The one place where choices become numbers: what it refuses, what it keeps, what it leaves alone."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch
from torch.testing import assert_close

from models import glass
from models.multi_head import MultiHeadAttention
from models.trace import Step
from sections import scene as rooms, story
from sections.examples import EXAMPLES, WORKED
from sections.limits import MAX_CHARACTERS, MAX_INNER, MAX_TOKENS, MAX_WEIGHTS
from sections.scene import Attention, Mask, Refused, Scale, Scene, Source, compute
from tests.sections.oracle import sees

RANDOM = Scene(text="one two three one", attention=Attention.SINGLE_HEAD, source=Source.RANDOM)
CROSS = replace(RANDOM, attention=Attention.CROSS, context="vier fünf", kdim=7, vdim=5)


def refusal(scene: Scene) -> Refused:
    with pytest.raises(Refused) as raised:
        compute.__wrapped__(scene)
    return raised.value


def test_the_worked_example():
    made = compute(WORKED)
    assert made.queries == made.keys == ("Thinking", "Machines")
    assert made.trace.scores[0, 0, 0].tolist() == [112, 96]
    assert made.trace.scaled[0, 0, 0].tolist() == [14, 12]
    assert_close(made.trace.weights[0, 0, 0], torch.tensor([0.8808, 0.1192]), atol=5e-5, rtol=0)
    assert_close(made.trace.context[0, 0, 0], made.trace.weights[0, 0, 0] @ made.trace.v[0, 0])


def test_equal_scenes_are_computed_once():
    assert compute(replace(RANDOM)) is compute(replace(RANDOM))
    assert compute(replace(RANDOM, seed=1)) is not compute(RANDOM)


def test_every_choice_is_part_of_the_key():
    other = {
        "text": "x", "context": "y", "attention": Attention.CROSS, "mask": Mask.CAUSAL, "width": 2, "length": 2,
        "padding": True, "heads": 2, "embed_dim": 12, "head_dim": 3, "kdim": 3, "vdim": 3, "scale": Scale.NONE, "kv_heads": 1, "recipe": "torch",
        "positions": True, "seed": 1, "tokens": "characters", "source": Source.RANDOM,
    }  # fmt: skip
    assert set(other) == {one.name for one in fields(Scene)}
    assert len({Scene(), *(replace(Scene(), **{name: value}) for name, value in other.items())}) == len(other) + 1
    with pytest.raises(FrozenInstanceError):
        Scene().text = "other"


def test_no_more_scenes_are_kept_than_there_is_room_for():
    before = compute(replace(RANDOM, seed=1000))
    for seed in range(1001, 1020):
        compute(replace(RANDOM, seed=seed))
    assert compute(replace(RANDOM, seed=1000)) is not before


@pytest.mark.parametrize("scene", [RANDOM, CROSS, Scene(), replace(RANDOM, attention=Attention.MULTI_HEAD)], ids=str)
def test_nothing_random_is_used_up(scene):
    before = torch.random.get_rng_state()
    compute.__wrapped__(scene)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_numbers_do_not_hang_on_what_was_drawn_before():
    first = compute.__wrapped__(CROSS)
    torch.randn(7)
    second = compute.__wrapped__(CROSS)
    for step in Step:
        assert torch.equal(first.trace[step], second.trace[step])


def test_the_same_token_has_the_same_vector():
    made = compute(RANDOM)
    assert torch.equal(made.inputs["query"][0], made.inputs["query"][3])
    assert not torch.equal(made.inputs["query"][0], made.inputs["query"][1])
    alone = compute(replace(RANDOM, text="one"))
    assert torch.equal(alone.inputs["query"][0], made.inputs["query"][0])
    across = compute(replace(CROSS, context="one more", kdim=None))
    assert torch.equal(across.inputs["key"][0], made.inputs["query"][0])


def test_positions_are_added_to_every_input():
    for scene in (RANDOM, CROSS, WORKED):
        plain, moved = compute(scene), compute(replace(scene, positions=True))
        for name, vectors in plain.inputs.items():
            difference = (moved.inputs[name] - vectors).double()
            width = vectors.shape[1]
            position = torch.arange(len(vectors), dtype=torch.float64)
            for column in range(width):
                angle = position / 10000 ** (2 * (column // 2) / width)
                wanted = angle.sin() if column % 2 == 0 else angle.cos()
                assert_close(difference[:, column], wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("scene", [RANDOM, CROSS, replace(RANDOM, attention=Attention.MULTI_HEAD, head_dim=3)], ids=str)
def test_the_trace_is_that_of_the_one_module(scene):
    made = compute(scene)
    assert type(made.layer) is MultiHeadAttention
    inputs = [vectors[None] for vectors in made.inputs.values()]
    with torch.no_grad():
        assert torch.equal(made.layer(*inputs, visible=made.visible), made.trace.output)
    assert made.layer.config.num_heads == scene.num_heads == made.trace.weights.shape[1]
    assert not made.trace.output.requires_grad


def test_widths_are_those_chosen():
    made = compute(replace(CROSS, embed_dim=11, heads=3, head_dim=2))
    assert {name: vectors.shape[1] for name, vectors in made.inputs.items()} == {"query": 11, "key": 7, "value": 5}
    assert made.trace.q.shape == (1, 3, 4, 2) and made.trace.k.shape == (1, 3, 2, 2)
    assert made.trace.output.shape == (1, 4, 11)


def test_scaling_is_one_over_the_root_of_head_dim_or_off():
    made = compute(replace(RANDOM, head_dim=5))
    assert_close(made.trace.scaled, made.trace.scores / 5**0.5)
    off = compute(replace(RANDOM, head_dim=5, scale=Scale.NONE))
    assert torch.equal(off.trace.scaled, off.trace.scores)
    assert torch.equal(off.trace.scores, made.trace.scores)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("attention", [Attention.SINGLE_HEAD, Attention.CROSS])
def test_who_sees_whom(attention, mask, padding):
    scene = replace(
        RANDOM, text="one [PAD] two [PAD] three", context="x [PAD] z", attention=attention, mask=mask, padding=padding,
        width=1, length=2,
    )  # fmt: skip
    made = compute(scene)
    wanted = [[sees(scene, i, j, key) for j, key in enumerate(made.keys)] for i in range(len(made.queries))]
    assert (made.trace.weights[0, 0] > 0).tolist() == wanted
    if made.visible is None:
        assert mask is Mask.NONE and not padding
    else:
        assert made.visible.tolist() == wanted
    assert not made.trace.output.isnan().any()


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u3000"])
def test_without_a_token_there_is_nothing_to_compute(text):
    assert (refusal(replace(RANDOM, text=text)).choice, str(refusal(replace(RANDOM, text=text)))) == (
        "text", story.EMPTY["text"],
    )  # fmt: skip
    assert refusal(replace(CROSS, context=text)).choice == "context"
    assert refusal(replace(CROSS, context=text)).reason == story.EMPTY["context"]


def test_a_context_that_nobody_reads_may_be_empty():
    assert compute(replace(RANDOM, context="")).keys == ("one", "two", "three", "one")


@pytest.mark.parametrize("heads, embed_dim", [(3, 16), (16, 8), (7, 1), (5, 512)])
def test_heads_that_do_not_divide(heads, embed_dim):
    scene = replace(RANDOM, attention=Attention.MULTI_HEAD, heads=heads, embed_dim=embed_dim)
    refused = refusal(scene)
    assert refused.choice == "heads"
    assert str(heads) in refused.reason and str(embed_dim) in refused.reason
    offered = [int(word) for word in refused.reason.split("Use ")[1].split(" heads")[0].split(" or ")]
    assert all(embed_dim % n == 0 for n in offered)  # what the sentence offers, works
    for n in offered:
        compute.__wrapped__(replace(scene, heads=n))
    compute.__wrapped__(replace(scene, head_dim=3))
    assert compute(replace(scene, attention=Attention.SINGLE_HEAD)).trace.q.shape[-1] == embed_dim


def test_tokens_beyond_the_limit_are_left_out():
    long = " ".join(map(str, range(10_000)))
    made = compute.__wrapped__(replace(RANDOM, text=long, embed_dim=2))
    assert MAX_TOKENS >= 512
    assert made.queries == tuple(map(str, range(MAX_TOKENS)))
    assert made.trace.weights.shape == (1, 1, MAX_TOKENS, MAX_TOKENS)


def test_too_many_weights_are_refused_before_any_is_made(monkeypatch):
    for name in ("_inputs", "_layer", "_visible"):
        monkeypatch.setattr(rooms, name, lambda *_: pytest.fail("worked out although refused"))
    long = " ".join(["word"] * MAX_TOKENS)
    refused = refusal(replace(RANDOM, text=long, attention=Attention.MULTI_HEAD, heads=16))
    assert refused.choice == "text"
    assert f"{16 * MAX_TOKENS**2:,}" in refused.reason and f"{MAX_WEIGHTS:,}" in refused.reason


def test_the_limit_itself_is_allowed():
    assert MAX_WEIGHTS == 8 * MAX_TOKENS**2
    long = " ".join(["word"] * MAX_TOKENS)
    made = compute.__wrapped__(replace(RANDOM, text=long, attention=Attention.MULTI_HEAD, heads=8))
    assert made.trace.weights.numel() == MAX_WEIGHTS


def test_heads_too_wide_for_all_of_them_are_refused():
    most = MAX_INNER // 16
    scene = replace(RANDOM, attention=Attention.MULTI_HEAD, heads=16, head_dim=most)
    assert compute.__wrapped__(scene).trace.q.shape[-1] == most
    refused = refusal(replace(scene, head_dim=most + 1))
    assert refused.choice == "heads" and f"{16 * (most + 1):,}" in refused.reason and f"{MAX_INNER:,}" in refused.reason


def test_a_query_that_sees_nothing_takes_nothing():
    made = compute(replace(RANDOM, text="[PAD] [PAD]", mask=Mask.PADDING))
    assert made.trace.weights.eq(0).all() and made.trace.context.eq(0).all() and made.trace.output.eq(0).all()


def test_tokens_are_shown_as_text_one_can_see():
    made = compute(replace(RANDOM, text="\u200b a\u202eb \ufeff c"))
    assert made.queries == ("⟨U+200B⟩", "a⟨U+202E⟩b", "⟨U+FEFF⟩", "c")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_can_be_computed(name):
    example = EXAMPLES[name]
    made = compute(example.scene)
    assert 1 <= example.query <= len(made.queries) and 1 <= example.head <= example.scene.num_heads
    assert Scene(**{one.name: getattr(example.scene, one.name) for one in fields(Scene)}) == example.scene
    assert example.scene.source is Source.RANDOM or example.scene.fits(example.scene.source)


@pytest.mark.parametrize(
    "scene, fits",
    [
        (WORKED, True),
        (replace(WORKED, text="Machines Thinking Machines"), True),
        (replace(WORKED, text=""), True),
        (replace(WORKED, text="thinking"), False),
        (replace(WORKED, text="Thinking " * MAX_CHARACTERS), False),
        (replace(WORKED, tokens="characters"), False),
        (replace(WORKED, attention=Attention.CROSS), False),
        (replace(WORKED, attention=Attention.MULTI_HEAD, heads=1), False),
        (replace(WORKED, recipe="torch"), False),
    ],
    ids=str,
)
def test_where_the_worked_example_has_vectors(scene, fits):
    assert scene.fits(Source.WORKED_EXAMPLE) is fits


@pytest.mark.parametrize(
    "scene, fits",
    [
        (Scene(), True),
        (Scene(attention=Attention.CROSS), True),
        (Scene(attention=Attention.SINGLE_HEAD), False),
        (Scene(recipe="torch"), False),
    ],
    ids=str,
)
def test_where_there_are_glass_heads(scene, fits):
    assert scene.fits(Source.GLASS) is fits
    assert scene.fits(Source.RANDOM)


def test_it_opens_on_glass_heads_that_say_what_they_do():
    made = compute(Scene())
    assert made.num_heads == len(made.names) == len(made.says) == len(glass.Job)
    assert made.names == tuple(story.GLASS[job].title for job in glass.Job)
    weights = made.trace.weights[0, list(glass.Job).index(glass.Job.PREVIOUS)]
    assert weights.diagonal(-1).min() > 0.95


def test_glass_heads_copy_from_the_second_text_or_from_nowhere():
    made = compute(Scene(text="one two", context="two three", attention=Attention.CROSS))
    assert made.keys == (story.NOWHERE, "two", "three")
    assert made.trace.weights[0, 0].argmax(dim=-1).tolist() == [0, 1]


def test_a_text_without_end_is_refused_before_it_is_cut():
    assert refusal(Scene(text="x" * (MAX_CHARACTERS + 1))).choice == "text"



def test_visitors_at_the_same_moment_get_the_numbers_of_their_own_seed():
    scenes = [replace(RANDOM, attention=Attention.MULTI_HEAD, seed=seed, embed_dim=256) for seed in range(2)]
    wanted = [compute.__wrapped__(scene).layer.to_q.weight for scene in scenes]
    with ThreadPoolExecutor(8) as visitors:
        found = list(visitors.map(compute.__wrapped__, scenes * 60))
    assert all(torch.equal(made.layer.to_q.weight, wanted[made.scene.seed]) for made in found)

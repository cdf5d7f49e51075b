"""The crash page against really building and calling `nn.MultiheadAttention`, whatever is typed."""

from dataclasses import fields, replace

import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from models.diagnose import Call, diagnose
from sections import story
from sections.crash import MISTAKES, MOST, START
from tests.sections.pages import exists, fresh, state, tables

SILENT = {"mask reversed"}
TOO_LARGE = {"huge"}


def opened(**address: object) -> AppTest:
    """The crash page at an address."""
    page = fresh(**address)
    page._page_hash = calc_hash("crash")  # the only way to a page that is a function
    return page.run()


def after(mistake: str) -> AppTest:
    page = opened()
    page.get_by_key("mistake").set_value(mistake).run()
    assert not page.exception
    return page


def addressed(call: Call) -> dict[str, object]:
    """A call under the names in the address."""
    given = {f"call_{field.name}": getattr(call, field.name) for field in fields(call)}
    given["call_mask_shape"] = ", ".join(map(str, call.mask_shape or ()))
    written = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    return {name: value for name, value in written.items() if value not in (None, "")}


def run(code: str) -> dict:
    """A fresh namespace, in which code has run."""
    names = {"__name__": "pasted"}
    with torch.random.fork_rng(devices=[]):
        exec(compile(code, "pasted", "exec"), names)
    return names


def error_of(code: str) -> str | None:
    try:
        run(code)
    except Exception as error:
        return str(error)


def code_for(call: Call) -> str:
    """The call as a reader would write it, with no help from what is tested."""
    values = call.keys if call.value_tokens is None else call.value_tokens
    tokens = {"query": call.queries, "key": call.keys, "value": values}
    widths = {"query": call.query_width, "key": call.key_width, "value": call.value_width}
    order = "{0}, {1}" if call.layout == "batch first" else "{1}, {0}"
    shapes = {name: f"{order.format(call.batch, tokens[name])}, {widths[name]}" for name in tokens}
    mask = "" if call.mask_shape is None else f", {call.mask_kind}=torch.zeros({call.mask_shape}, dtype=torch.bool)"
    return (
        "import torch\n"
        f"layer = torch.nn.MultiheadAttention({call.embed_dim}, {call.num_heads}, kdim={call.kdim}, vdim={call.vdim}, "
        f"batch_first={call.batch_first})\n"
        + "".join(f"{name} = torch.randn({shape})\n" for name, shape in shapes.items())
        + f"output, weights = layer(query, key, value{mask}, average_attn_weights=False)\n"
    )


def verdict_of(page: AppTest) -> str:
    """The one verdict on the page: works, fails or silent."""
    told = [box.value for box in (*page.success, *page.error, *page.warning)]
    (verdict,) = [key for key, words in story.VERDICTS.items() if any(f"**{words}**" in text for text in told)]
    assert len(told) == 1
    return verdict


def sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(" × ")))


def shapes_shown(page: AppTest) -> dict[str, tuple[int, ...]]:
    return {row[0].text: sizes(row[1].text) for row in tables(page)[story.CAPTIONS["shapes"]].rows}


def holds(page: AppTest, call: Call) -> None:
    """Verdict, torch's words, shapes and mend of the page, against the real thing."""
    error, verdict, codes = error_of(code_for(call)), verdict_of(page), [block.value for block in page.code]
    expected = diagnose(call)
    assert verdict == ("fails" if error else "silent" if expected.rule else "works")
    words = [text.value for text in page.markdown]
    assert (story.HEADINGS["torch says"] in words) == (error is not None)
    if error:
        assert codes[0] == error.strip()
    if verdict == "works":
        assert error_of(codes[-1]) is None
        _shapes(page, run(codes[-1]))
        return
    (told,) = [box.value for box in (*page.error, *page.warning)]
    assert told == f"**{story.VERDICTS[verdict]}** {expected.rule}"
    rule = {row[0].text: row[1].text for row in tables(page)[story.CAPTIONS["rule"]].rows}
    assert rule == {story.COLUMNS["wanted"]: expected.wanted, story.COLUMNS["came"]: expected.came}
    (mend,) = [text for text in words if text.startswith(story.HEADINGS["mend"])]
    assert mend.splitlines()[1:] == [f"- {change}" for change in expected.mend] and expected.mend
    assert error_of(codes[-1]) is None
    if verdict == "fails":
        _shapes(page, run(codes[-1]))


def _shapes(page: AppTest, names: dict) -> None:
    shown = shapes_shown(page)
    for name in ("query", "key", "value", "weights", "output"):
        assert shown[name] == tuple(names[name].shape), name
    query, layer = names["query"], names["layer"]
    batch, length = query.shape[:2] if layer.batch_first else query.shape[:2][::-1]
    assert shown["q"] == (batch, layer.num_heads, length, layer.head_dim)
    assert shown["k"] == shown["v"] == (batch, layer.num_heads, names["weights"].shape[-1], layer.head_dim)


def test_it_opens_on_a_call_that_works():
    page = opened()
    assert not page.exception
    holds(page, START)
    assert verdict_of(page) == "works"


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_click_away_with_its_rule_torch_s_words_and_the_mended_code(name):
    page, call = after(name), replace(START, **MISTAKES[name])
    assert state(page, "mistake") is None  # can be clicked again
    assert name in story.MISTAKES
    if name in TOO_LARGE:  # never tried, here neither
        assert verdict_of(page) == "fails" and "1 GB" in page.error[0].value
        assert story.HEADINGS["torch says"] not in [text.value for text in page.markdown]
        assert error_of(page.code[-1].value) is None
        _shapes(page, run(page.code[-1].value))
    else:
        holds(page, call)
        assert verdict_of(page) == ("silent" if name in SILENT else "fails")
    for part in fields(call):
        if exists(page, f"call_{part.name}") and part.name != "mask_shape":
            assert state(page, f"call_{part.name}") == getattr(call, part.name), part.name
    assert call.mask_shape is None or state(page, "call_mask_shape") == ", ".join(map(str, call.mask_shape))


def test_mistakes_one_after_another_leave_nothing_behind():
    page = opened(call_batch=3, call_layout="tokens first", call_vdim=5)
    for name in [*MISTAKES, *reversed(MISTAKES)]:
        page.get_by_key("mistake").set_value(name).run()
        assert not page.exception
        alone = after(name)
        assert [block.value for block in page.code] == [block.value for block in alone.code]
        assert verdict_of(page) == verdict_of(alone)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_can_be_linked_to(name):
    page = after(name)
    linked = opened(**page.query_params)
    assert verdict_of(linked) == verdict_of(page)
    assert [block.value for block in linked.code] == [block.value for block in page.code]
    assert tables(linked) == tables(page)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_shown_mend_taken_by_hand_works(name):
    mended = diagnose(replace(START, **MISTAKES[name])).mended
    page = opened(**addressed(mended))
    assert not page.exception
    holds(page, mended)
    assert verdict_of(page) == "works"


# Whatever is typed

small = st.integers(1, 5)
some = small | st.none()
near = st.sampled_from([4, 6, 8])


@st.composite
def calls(draw) -> Call:
    """Often nearly right, so that every verdict comes up."""
    embed_dim = draw(near | small)
    batch, queries, keys, heads = draw(small), draw(small), draw(small), draw(st.sampled_from([1, 2, 2, 3, 4]))
    kind = draw(st.sampled_from(["none", "attn_mask", "key_padding_mask"]))
    shape = draw(
        st.sampled_from([(queries, keys), (batch, keys), (keys, queries), (batch * heads, queries, keys), (batch, 1, 1, keys)])
        | st.lists(st.integers(-1, 4), min_size=1, max_size=4).map(tuple)
    )
    width = st.just(embed_dim) | st.just(embed_dim) | near
    return Call(
        batch=batch,
        queries=queries,
        keys=keys,
        value_tokens=draw(st.none() | st.none() | small),
        embed_dim=draw(st.just(embed_dim) | st.integers(-1, 9)),
        num_heads=draw(st.just(heads) | st.integers(-1, 5)),
        kdim=draw(st.none() | near),
        vdim=draw(st.none() | near),
        query_width=draw(width),
        key_width=draw(width),
        value_width=draw(width),
        batch_first=draw(st.booleans()),
        layout=draw(st.sampled_from(["batch first", "tokens first"])),
        mask_kind=kind,
        mask_shape=None if kind == "none" else shape,
        mask_true_hides=draw(st.booleans()) if kind != "none" else True,
    )


@settings(max_examples=40)
@given(calls())
@example(replace(START, num_heads=0))
@example(replace(START, batch=0))
@example(replace(START, batch_first=False, queries=7))
def test_every_verdict_is_that_of_a_real_call(call):
    page = opened(**addressed(call))
    assert not page.exception
    if min(every_size(call)) < 1:  # refused by rule, whatever torch makes of it
        assert verdict_of(page) == "fails"
        assert page.error[0].value.endswith("must be 1 or more.")
        return
    holds(page, call)


def every_size(call: Call) -> list[int]:
    given = [getattr(call, field.name) for field in fields(call)]
    return [size for size in (*given, *(call.mask_shape or ())) if type(size) is int]


@pytest.mark.parametrize(
    "typed", ["", "  ", "two, seven", "2.5, 7", "2 7", ",", "()", "<b>x</b>", "1e3, 2", "9" * 40, "$x$", "\u202e7, 2", "2, 7]"]
)
def test_nonsense_in_the_mask_s_shape_gets_a_sentence_and_stays(typed):
    page = opened(call_mask_kind="attn_mask", call_mask_shape=typed)
    assert not page.exception
    assert [error.value for error in page.error] == [story.mask_shape(typed)]
    assert state(page, "call_mask_shape") == typed
    assert not page.code and not page.success
    page.get_by_key("call_mask_shape").set_value("5, 7").run()
    assert verdict_of(page) == "works"


@pytest.mark.parametrize("typed", ["2, 7", "(2, 7)", "2×7", "2 x 7", " 2 ,7, "])
def test_a_shape_can_be_written_in_several_ways(typed):
    page = opened(call_mask_kind="key_padding_mask", call_mask_shape=typed)
    holds(page, replace(START, mask_kind="key_padding_mask", mask_shape=(2, 7)))
    assert verdict_of(page) == "works"


@pytest.mark.parametrize("nonsense", ["", "nope", "1e400", "2.5", "9" * 30, "-3", "0"])
def test_nonsense_in_every_choice_is_no_traceback(nonsense):
    page = opened(call_mask_shape=nonsense, **{name: nonsense for name in addressed(START) if name != "call_mask_kind"})
    assert not page.exception
    assert verdict_of(page) == ("fails" if nonsense in ("-3", "0") else "works")


@pytest.mark.parametrize("name", ["embed_dim", "kdim", "key_width", "queries", "batch", "num_heads"])
def test_the_largest_size_that_can_be_typed_is_refused_and_not_made(name):
    page = opened(**{"call_embed_dim": 64, f"call_{name}": MOST})
    assert not page.exception
    assert verdict_of(page) == "fails"


@pytest.mark.parametrize("shape", ["10000000, 10000000", "1" + ", 1" * 80, "-1, 7", "0"])
def test_a_mask_no_memory_would_hold_is_refused_and_not_made(shape):
    page = opened(call_mask_kind="attn_mask", call_mask_shape=shape)
    assert not page.exception
    assert verdict_of(page) == "fails"

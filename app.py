"""Attention Lab: `streamlit run app.py`."""

import torch
import streamlit as st

from sections import attend, story

torch.set_num_threads(1)  # many visitors share one process; short scripts beat parallel ones

st.set_page_config(page_title=story.TITLE, page_icon=story.ICON, layout="wide")
attend.render()

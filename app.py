"""Attention Lab: `streamlit run app.py`."""

import streamlit as st
import torch

from sections import lab, story

torch.set_num_threads(1)  # many visitors share one process; short scripts beat parallel ones

st.set_page_config(page_title=story.TITLE, page_icon=story.ICON, layout="wide")
lab.run()

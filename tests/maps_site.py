"""Maps the app itself would not make, for the browser tests of the overview: `?case=` names one."""

import numpy as np
import streamlit as st

from models.trace import Step
from sections import overview

CASES = {
    "nan": [[[0.25, np.nan, 0.75], [np.nan, np.nan, np.nan], [1, 0, 0]]],
    "infinite": [[[np.inf, -np.inf], [-1.5, 2.25]]],
    "tiny": [[[1e-9, 1 - 2**-24, 0.5], [0, 1, 0.00005], [0.1, 0.2, 0.7]]],
    "one": [[[1]]],
    "no tokens": np.zeros((1, 0, 0)),
    "wide": np.full((2, 1, 7), 1 / 7),
    "tall": np.full((2, 7, 1), 1),
    "many heads": np.full((40, 3, 3), 1 / 3),
}
"""`map query key`; `infinite` as scores, the others as weights."""

if __name__ == "__main__":
    case = st.query_params["case"]
    values = np.array(CASES[case], np.float32)
    heads, queries, keys = values.shape
    tokens = [f"t{n}" for n in range(max(queries, keys))]
    names = [f"head {n + 1}" for n in range(heads)]
    step = Step.SCORES if case == "infinite" else Step.WEIGHTS
    overview.show(overview.sheet(values, None, names, tokens[:queries], tokens[:keys], step))

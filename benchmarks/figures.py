"""What a figure of all heads costs before it reaches the browser: time to build, and until it is handed over, bytes to send.

    python -m benchmarks.figures

Weights as a softmax makes them; a time is the median of `ROUNDS`. `causal` hides half of the cells, which adds
the hatch and one light trace a head. Bytes are those of the figure as JSON, a float32 being 5.33 in base64. Plotly's own
to_json, which Streamlit sends, writes every slash of that base64 as \\u002f, six characters: shown beside it.
Times depend on the machine, bytes do not. Exits with 1 if a bound is missed.
"""

import json
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import plotly.graph_objects as go

from viz.heatmaps import focus, head_grid

ROUNDS = 25
BOUNDS = {  # heads, tokens: ms to build, bytes a weight
    (1, 8): (None, None),
    (8, 16): (5, None),
    (12, 64): (None, None),
    (12, 256): (15, 5.4),
    (144, 32): (None, None),
}


def weights(heads: int, tokens: int) -> np.ndarray:
    scores = np.random.default_rng(0).normal(size=(heads, tokens, tokens)) * 2
    shares = np.exp(scores)
    return (shares / shares.sum(-1, keepdims=True)).astype(np.float32)


def milliseconds(build: Callable[[], go.Figure]) -> float:
    build()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        build()
        times.append(1000 * (perf_counter() - start))
    return median(times)


def main() -> int:
    missed = False
    print(f"{'figure':24} {'ms':>6} {'bound':>6} {'sent':>6}   {'bytes/weight':>12} {'bound':>6}   {'escaped':>8}")
    for (heads, tokens), (most_ms, most_bytes) in BOUNDS.items():
        values, labels = weights(heads, tokens), [f"token{n}" for n in range(tokens)]
        for name, hidden in (("", None), (" causal", np.triu(np.ones((tokens, tokens), bool), 1))):

            def build(values=values, labels=labels, hidden=hidden) -> go.Figure:
                return head_grid(values, labels, labels, signed=False, hidden=hidden)

            time, sent, escaped = milliseconds(build), milliseconds(lambda: build().to_dict()), build().to_json()
            size = len(json.dumps(json.loads(escaped), separators=(",", ":"))) / values.size
            missed |= bool(most_ms and time > most_ms) or bool(most_bytes and size > most_bytes)
            print(
                f"{f'{heads} × {tokens}²{name}':24} {time:6.1f} {most_ms or '–':>6} {sent:6.1f}   "
                f"{size:12.2f} {most_bytes or '–':>6}   {len(escaped) / values.size:8.2f}"
            )
    for tokens in (8, 48, 256):
        values, labels = weights(1, tokens)[0], [f"token{n}" for n in range(tokens)]

        def build(values=values, labels=labels) -> go.Figure:
            return focus(values, labels, labels, signed=False)

        print(f"{f'focus {tokens}²':24} {milliseconds(build):6.1f} {'–':>6} {milliseconds(lambda: build().to_dict()):6.1f}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

"""What a figure of all heads costs before it reaches the browser: time to build, bytes to send.

    python -m benchmarks.figures

Weights as a softmax makes them; a time is the median of `ROUNDS`. `causal` hides half of the cells, which adds
the hatch and one light trace a head. A float32 is 5.33 bytes in base64; the rest are labels and the slashes that
plotly escapes. Times depend on the machine, bytes do not. Exits with 1 if a bound is missed.
"""

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import plotly.graph_objects as go

from viz.heatmaps import focus, head_grid

ROUNDS = 25
BOUNDS = {  # heads, tokens: ms to build, bytes a weight
    (1, 8): (5, None),
    (8, 16): (5, None),
    (12, 64): (8, 6.5),
    (12, 256): (15, 5.8),
    (144, 32): (50, 6.5),
}
CAUSAL_TIME, CAUSAL_BYTES = 1.5, 1.0  # as long, at most; so much more a weight: NaN has more slashes than numbers have


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
    print(f"{'figure':24} {'ms':>6} {'bound':>6}   {'bytes/weight':>12} {'bound':>6}")
    for (heads, tokens), (most_ms, most_bytes) in BOUNDS.items():
        values, labels = weights(heads, tokens), [f"token{n}" for n in range(tokens)]
        for name, hidden in (("", None), (" causal", np.triu(np.ones((tokens, tokens), bool), 1))):

            def build(values=values, labels=labels, hidden=hidden) -> go.Figure:
                return head_grid(values, labels, labels, signed=False, hidden=hidden)

            time, size = milliseconds(build), len(build().to_json()) / values.size
            long = most_ms * (1 if hidden is None else CAUSAL_TIME)
            most = most_bytes and most_bytes + (0 if hidden is None else CAUSAL_BYTES)
            missed |= time > long or bool(most and size > most)
            print(f"{f'{heads} × {tokens}²{name}':24} {time:6.1f} {long:6.1f}   {size:12.2f} {most or '–':>6}")
    for tokens in (8, 48, 256):
        values, labels = weights(1, tokens)[0], [f"token{n}" for n in range(tokens)]
        time = milliseconds(lambda values=values, labels=labels: focus(values, labels, labels, signed=False))
        print(f"{f'focus {tokens}²':24} {time:6.1f}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

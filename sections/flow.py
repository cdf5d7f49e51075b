"""What happens to one token on its way through a transformer block, part by part."""

from torch import Tensor

from models.block import BlockStep, BlockTrace, change
from sections import story
from viz import cells
from viz.numbers import percent, short


def table(trace: BlockTrace[Tensor], query: int, name: str) -> str:
    """Every step of one token's way through a block, and how far each moved it. HTML."""
    rows, stream = [], trace.before
    top = cells.limit(*(trace[step][0, query] for step in trace.flow))
    for step in trace.flow:
        tale, now = story.BLOCK_STEPS[step], trace[step]
        passed = step in _STREAM[trace.norm]
        moved = _moved(stream, now, query) if passed else ""
        stream = now if passed else stream
        picture = cells.vector(now[0, query], top, label=tale.title, fit=16)
        rows.append([tale.title, f"<span class='strip-wide'>{picture}</span>", moved, cells.prose(tale.sentence)])
    head = [cells.token(name, "query"), story.COLUMNS["vector"], story.COLUMNS["moved"], ""]
    return cells.table(head, rows, caption=story.CAPTIONS["block"])


_SUMS = {BlockStep.ADDED, BlockStep.ADDED_AGAIN}
_STREAM = {"post": _SUMS | {BlockStep.NORMALISED, BlockStep.NORMALISED_AGAIN}, "pre": _SUMS}
"""The steps the token itself passes through, in each norm order; the others lie on the branches beside it."""


def _moved(before: Tensor, after: Tensor, query: int) -> str:
    moved = change(before, after)
    return story.MOVED.format(
        relative=percent(moved.relative[0, query].item()).replace("<", "&lt;"),
        cosine=short(moved.cosine[0, query].item()),
    )

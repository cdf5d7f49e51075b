"""The record of one attention layer: every intermediate, named, in the order it is computed.

Imports no torch, so that pictures can be drawn from a record of plain numpy arrays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

Array = TypeVar("Array")
Other = TypeVar("Other")


class Step(StrEnum):
    """The steps of attention in computing order; each value is a field of `AttentionTrace`."""

    Q = "q"
    K = "k"
    V = "v"
    SCORES = "scores"
    SCALED = "scaled"
    MASKED = "masked"
    WEIGHTS = "weights"
    CONTEXT = "context"
    OUTPUT = "output"


AXES: Mapping[Step, str] = MappingProxyType(
    {
        Step.Q: "head query head_dim",
        Step.K: "head key head_dim",
        Step.V: "head key head_dim",
        Step.SCORES: "head query key",
        Step.SCALED: "head query key",
        Step.MASKED: "head query key",
        Step.WEIGHTS: "head query key",
        Step.CONTEXT: "head query head_dim",
        Step.OUTPUT: "query embed",
    }
)
"""The axes of each step, as words. A `batch` axis stands in front of them all."""

QUERY_BY_KEY: tuple[Step, ...] = tuple(step for step in Step if AXES[step] == "head query key")
"""The steps that are one number for every pair of a query and a key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionTrace(Generic[Array]):
    """Every intermediate of one attention layer (Vaswani et al. 2017, sections 3.2.1 and 3.2.2).

    Each field is `batch` followed by `AXES[step]`; `scores` are before scaling, `scaled` before
    hiding, `masked` before the softmax.
    """

    q: Array
    k: Array
    v: Array
    scores: Array
    scaled: Array
    masked: Array
    weights: Array
    context: Array
    output: Array

    def __getitem__(self, step: Step | str) -> Array:
        """The array of one step. Raises `ValueError` for a name that is no step."""
        return getattr(self, Step(step))

    def map(self, function: Callable[[Array], Other]) -> "AttentionTrace[Other]":
        """The same record with `function` applied to every array."""
        return AttentionTrace(**{field.name: function(self[field.name]) for field in fields(self)})

"""What every view reads: one layer that ran on tokens one can read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from models.multi_head import MultiHeadAttention
from models.trace import AttentionTrace, Step


@dataclass(frozen=True, kw_only=True)
class Attended:
    """One layer's attention. Tensors are those torch computed, batch of one.

    queries, keys: one readable token each. inputs: `token width` by name, as they enter the layer.
    visible: `query key`, or None where nothing is hidden.
    two_texts: whether queries and keys are tokens of different texts, even where they read alike.
    origin: what the input vectors are, in words. names, says: what each head is called and does, where that is known.
    first_head: which head of the page is the first one of this layer, counted from 0, where a page shows one at a time.
    remarks: what is special about a step here, in words.
    about: what a download says of where the numbers come from.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    inputs: Mapping[str, Tensor]
    visible: Tensor | None
    layer: MultiHeadAttention
    trace: AttentionTrace[Tensor]
    origin: str
    two_texts: bool = False
    names: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    first_head: int = 0
    remarks: Mapping[Step, str] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)

    @property
    def num_heads(self) -> int:
        """Heads of the layer."""
        return self.layer.config.num_heads

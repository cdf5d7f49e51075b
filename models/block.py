"""The transformer block around the shared attention, in both norm orders, and a stack of blocks.

    post-norm  x = norm_1(x + attention(x)),  y = norm_2(x + feed_forward(x))    Vaswani et al. 2017, section 3.1
    pre-norm   x = x + attention(norm_1(x)),  y = x + feed_forward(norm_2(x))    Xiong et al. 2020, table 1

    feed_forward(x) = W_2 activation(W_1 x + b_1) + b_2                          Vaswani et al. 2017, equation (2)
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Generic

from einops import rearrange
from torch import Tensor, nn

from models.multi_head import MOST_BYTES, AttentionConfig, MultiHeadAttention
from models.trace import Array, AttentionTrace, Other

MOST_BLOCKS = 6
"""As many as the base model of Vaswani et al. 2017 stacks (section 3.1)."""

_ACTIVATIONS = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh")}

Heads = Collection[tuple[int, int]]
"""Some of a stack's heads, each as (layer, head), both counted from 0."""


class BlockStep(StrEnum):
    """The steps of a block; each value is a field of `BlockTrace`. In post-norm's computing order; `FLOW` has both."""

    BEFORE = "before"
    ATTENDED = "attended"
    ADDED = "added"
    NORMALISED = "normalised"
    EXPANDED = "expanded"
    ACTIVATED = "activated"
    FED_FORWARD = "fed_forward"
    ADDED_AGAIN = "added_again"
    NORMALISED_AGAIN = "normalised_again"


BLOCK_AXES: Mapping[BlockStep, str] = MappingProxyType(
    {step: "query embed" for step in BlockStep}
    | {BlockStep.EXPANDED: "query feed_forward", BlockStep.ACTIVATED: "query feed_forward"}
)
"""The axes of each step, as words. A `batch` axis stands in front of them all."""

FLOW: Mapping[str, tuple[BlockStep, ...]] = MappingProxyType(
    {
        "post": tuple(BlockStep),
        "pre": (
            BlockStep.BEFORE,
            BlockStep.NORMALISED,
            BlockStep.ATTENDED,
            BlockStep.ADDED,
            BlockStep.NORMALISED_AGAIN,
            BlockStep.EXPANDED,
            BlockStep.ACTIVATED,
            BlockStep.FED_FORWARD,
            BlockStep.ADDED_AGAIN,
        ),
    }
)
"""The steps in computing order, for each norm order. Both take the same nine; the last is the block's output."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockTrace(Generic[Array]):
    """Every intermediate of one block; each array is `batch` followed by `BLOCK_AXES[step]`.

    norm: "post" or "pre", the order in which the steps were taken.
    attention: the record of the attention inside; its output is `attended`.
    before: the block's input.
    added, added_again: the sum with what went around the attention, around the feed-forward.
    normalised, normalised_again: after `norm_1`, after `norm_2`, wherever in the order they stand.
    expanded, activated: the feed-forward's middle, before and after its activation.
    """

    norm: str
    attention: AttentionTrace[Array]
    before: Array
    attended: Array
    added: Array
    normalised: Array
    expanded: Array
    activated: Array
    fed_forward: Array
    added_again: Array
    normalised_again: Array

    @property
    def flow(self) -> tuple[BlockStep, ...]:
        """The steps in the order they were taken."""
        return FLOW[self.norm]

    @property
    def output(self) -> Array:
        """What the block gives on: the last step of the flow, `query embed`."""
        return self[self.flow[-1]]

    def __getitem__(self, step: BlockStep | str) -> Array:
        """The array of one step. Raises `ValueError` for a name that is no step."""
        return getattr(self, BlockStep(step))

    def map(self, function: Callable[[Array], Other]) -> "BlockTrace[Other]":
        """The same record with `function` applied to every array, those of the attention too."""
        steps = {step.value: function(self[step]) for step in BlockStep}
        return BlockTrace(norm=self.norm, attention=self.attention.map(function), **steps)


@dataclass(frozen=True)
class BlockConfig:
    """What one block is made of.

    attention: its attention, from embed_dim back to embed_dim, so that input and output can be added.
    norm: "post" normalises after each addition, "pre" before attention and before the feed-forward.
    activation: "relu", "gelu" or "gelu_tanh", between the two matrices of the feed-forward; the last is the
        approximation of Hendrycks and Gimpel 2016, section 2, which GPT-2 uses.
    feed_forward_dim: width of the feed-forward's middle; None is the paper's 4 · embed_dim.
    norm_eps: added to the variance in both norms, so that equal numbers are not divided by 0.

    Raises `ValueError` for values that cannot be, with what was wanted, what came and what to change.
    """

    attention: AttentionConfig
    norm: str = "post"
    activation: str = "relu"
    feed_forward_dim: int | None = None
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        if self.norm not in FLOW:
            raise ValueError(f'norm must be "post" or "pre"; got {self.norm!r}.')
        if self.activation not in _ACTIVATIONS:
            raise ValueError(f'activation must be "relu", "gelu" or "gelu_tanh"; got {self.activation!r}.')
        if self.feed_forward_dim is not None and self.feed_forward_dim < 1:
            raise ValueError(f"feed_forward_dim must be 1 or more; got {self.feed_forward_dim}.")
        if not self.norm_eps > 0:
            raise ValueError(f"norm_eps must be above 0; got {self.norm_eps}.")
        _check_widths(self.attention)
        if self.parameters * 4 > MOST_BYTES:
            raise ValueError(
                f"this block would need {self.parameters * 4 / 1e9:,.1f} GB for its {self.parameters:,} parameters; "
                f"at most {MOST_BYTES / 1e9:.0f} GB is allowed. Use a smaller embed_dim or feed_forward_dim."
            )

    @property
    def hidden_dim(self) -> int:
        """Width of the feed-forward's middle: `feed_forward_dim`, worked out where it was not given."""
        return self.feed_forward_dim or 4 * self.attention.embed_dim

    @property
    def parameters(self) -> int:
        """How many numbers the block learns: attention, two norms, two matrices with biases."""
        embed, hidden = self.attention.embed_dim, self.hidden_dim
        return self.attention.parameters + 4 * embed + (embed + 1) * hidden + (hidden + 1) * embed


class TransformerBlock(nn.Module):
    """One layer of a transformer's encoder, or under a causal mask of a decoder without cross-attention."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.config = config
        embed, hidden = config.attention.embed_dim, config.hidden_dim
        self.attention = MultiHeadAttention(config.attention)
        self.norm_1, self.norm_2 = (nn.LayerNorm(embed, eps=config.norm_eps) for _ in range(2))
        self.feed_forward_in = nn.Linear(embed, hidden)
        self.feed_forward_out = nn.Linear(hidden, embed)
        self.activation = _ACTIVATIONS[config.activation]

    def forward(self, x: Tensor, *, visible: Tensor | None = None) -> Tensor:
        """The output alone; arguments, shapes and errors are those of `trace`."""
        return self.trace(x, visible=visible).output

    def trace(
        self, x: Tensor, *, visible: Tensor | None = None, silenced: Collection[int] = ()
    ) -> BlockTrace[Tensor]:
        """Every intermediate, from the input to the output.

        x: `batch query embed_dim`.
        visible: boolean, True where a query may look; broadcasts to `batch head query key`.
        silenced: heads whose context is zero before W_O, so that nothing they found goes on.

        Raises `ValueError` or `TypeError` where these do not fit together.
        """
        embed = self.config.attention.embed_dim
        if x.ndim != 3 or x.shape[-1] != embed:
            came = " × ".join(map(str, x.shape)) or "a single number"
            raise ValueError(
                f"x must be batch × tokens × {embed}; got {came}. "
                f"Change its last axis, or embed_dim; x[None] puts a batch axis in front of one sequence."
            )
        return (self._post_norm if self.config.norm == "post" else self._pre_norm)(x, visible, silenced)

    def _post_norm(self, x: Tensor, visible: Tensor | None, silenced: Collection[int]) -> BlockTrace[Tensor]:
        attention = self._attend(x, visible, silenced)
        added = x + attention.output                                # batch query embed
        normalised = self.norm_1(added)                             # batch query embed
        feed_forward = self._feed_forward(normalised)
        added_again = normalised + feed_forward["fed_forward"]      # batch query embed
        return BlockTrace(
            norm="post", attention=attention, before=x, attended=attention.output, added=added, normalised=normalised,
            added_again=added_again, normalised_again=self.norm_2(added_again), **feed_forward,
        )  # fmt: skip

    def _pre_norm(self, x: Tensor, visible: Tensor | None, silenced: Collection[int]) -> BlockTrace[Tensor]:
        normalised = self.norm_1(x)                                 # batch query embed
        attention = self._attend(normalised, visible, silenced)
        added = x + attention.output                                # batch query embed
        normalised_again = self.norm_2(added)                       # batch query embed
        feed_forward = self._feed_forward(normalised_again)
        added_again = added + feed_forward["fed_forward"]           # batch query embed
        return BlockTrace(
            norm="pre", attention=attention, before=x, attended=attention.output, added=added, normalised=normalised,
            added_again=added_again, normalised_again=normalised_again, **feed_forward,
        )  # fmt: skip

    def _attend(self, x: Tensor, visible: Tensor | None, silenced: Collection[int]) -> AttentionTrace[Tensor]:
        whole = self.attention.trace(x, visible=visible)
        if not silenced:
            return whole
        context = whole.context.clone()
        context[:, list(silenced)] = 0
        concatenated = rearrange(context, "batch head query head_dim -> batch query (head head_dim)")
        return replace(whole, context=context, output=self.attention.to_output(concatenated))

    def _feed_forward(self, x: Tensor) -> dict[str, Tensor]:
        expanded = self.feed_forward_in(x)                          # batch query feed_forward
        activated = self.activation(expanded)                       # batch query feed_forward
        return {"expanded": expanded, "activated": activated, "fed_forward": self.feed_forward_out(activated)}


def stack(
    blocks: Sequence[TransformerBlock], x: Tensor, visible: Tensor | None = None
) -> list[BlockTrace[Tensor]]:
    """The records of one to six blocks built by hand; arguments are those of `run_through`.

    Raises `ValueError` for none or too many.
    """
    if not 1 <= len(blocks) <= MOST_BLOCKS:
        raise ValueError(f"a stack has 1 to {MOST_BLOCKS} blocks; got {len(blocks)}. Add or leave out some.")
    return run_through(blocks, x, visible)


def run_through(
    blocks: Iterable[TransformerBlock], x: Tensor, visible: Tensor | None = None, *, silenced: Heads = ()
) -> list[BlockTrace[Tensor]]:
    """The records of any number of blocks, each fed the output of the one before; all hide the same keys.

    x: `batch query embed_dim`. visible: as for `TransformerBlock.trace`. silenced: heads as (layer, head).

    Pre-norm models end in one more LayerNorm after the last block (Xiong et al. 2020, table 1); that is no block's.
    """
    traces = []
    for layer, block in enumerate(blocks):
        heads = {head for of_layer, head in silenced if of_layer == layer}
        traces.append(block.trace(x, visible=visible, silenced=heads))
        x = traces[-1].output
    return traces


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How far one step moved each token; both `batch query`.

    relative: length of what changed over length of what was, |after − before| / |before|. 0 is untouched;
        where `before` is all zeros it is ∞, or NaN if `after` is zeros too.
    cosine: of the angle between before and after. 1 is the same direction, 0 a right angle, −1 turned round;
        NaN where either is all zeros, since zeros point nowhere.
    """

    relative: Tensor
    cosine: Tensor


def change(before: Tensor, after: Tensor) -> Change:
    """How much a part changed each token: `batch query embed` twice -> `batch query` in each measure.

    Raises `ValueError` if the two differ in shape.
    """
    if before.shape != after.shape:
        raise ValueError(
            f"before and after must have one shape; got {tuple(before.shape)} and {tuple(after.shape)}. "
            f"Compare two steps whose axes are query × embed."
        )
    old, new = before.norm(dim=-1), after.norm(dim=-1)
    return Change(relative=(after - before).norm(dim=-1) / old, cosine=(before * after).sum(dim=-1) / (old * new))


def _check_widths(attention: AttentionConfig) -> None:
    embed, heads, width = attention.embed_dim, attention.num_heads, attention.width
    if attention.input_widths != (embed, embed, embed):
        raise ValueError(
            f"in a block queries, keys and values come from one sequence, each {embed} wide; "
            f"got kdim {attention.input_widths[1]} and vdim {attention.input_widths[2]}. Leave kdim and vdim out."
        )
    if not attention.output_projection and heads * width != embed:
        raise ValueError(
            f"attention in a block must give back embed_dim = {embed} numbers a token, to be added to its input; "
            f"without W_O it gives num_heads · head_dim = {heads} · {width} = {heads * width}. "
            f"Set output_projection=True, or leave head_dim out."
        )

"""The attention of each source document as a config of the one module, with what differs from the paper.

The paper is Vaswani et al. 2017: heads of embed_dim / num_heads, no bias, an output projection,
scores times 1/√head_dim.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from models.multi_head import AttentionConfig

MakeConfig = Callable[..., AttentionConfig]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One document's attention.

    title, source, remark: for a reader; the remark says what differs from the paper.
    config: `config(embed_dim, num_heads=…, head_dim=None, kdim=None, vdim=None)` gives the `AttentionConfig`,
        or its `ValueError`; num_heads is the document's own unless given, sizes without a meaning in it are ignored.
    one_head: whether the document has a single head. two_sequences: whether it is about cross-attention.
    """

    title: str
    source: str
    remark: str
    config: MakeConfig
    one_head: bool = False
    two_sequences: bool = False


def _plain(embed_dim: int, num_heads: int = 1, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    return AttentionConfig(embed_dim, output_projection=False, scale=1.0, projections=False)


def _single_head(embed_dim: int, num_heads: int = 1, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    return AttentionConfig(embed_dim, output_projection=False)


def _multi_head(embed_dim: int, num_heads: int = 8, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    return AttentionConfig(embed_dim, num_heads, head_dim, kdim, vdim)


def _cross(embed_dim: int, num_heads: int = 8, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    return _over_whole_width(
        AttentionConfig(embed_dim, num_heads, head_dim, kdim, vdim, bias=True, output_projection=False)
    )


def _unify_heads(embed_dim: int, num_heads: int = 4, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    return _over_whole_width(AttentionConfig(embed_dim, num_heads))


def _torch(embed_dim: int, num_heads: int = 8, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    return AttentionConfig(embed_dim, num_heads, kdim=kdim, vdim=vdim, bias=True)


def _tensorflow(embed_dim: int, num_heads: int = 8, head_dim=None, kdim=None, vdim=None) -> AttentionConfig:
    config = AttentionConfig(
        embed_dim, num_heads, head_dim, kdim, vdim, bias=True, output_projection=False, projection_activation="relu"
    )
    return _over_whole_width(replace(config, output_projection=num_heads * config.width != embed_dim))


def _over_whole_width(config: AttentionConfig) -> AttentionConfig:
    """Scores over √embed_dim, of a config made first, so that an embed_dim of 0 meets its rule and no division."""
    return replace(config, scale=config.embed_dim**-0.5)


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "plain": Recipe(
            title="No parameters at all",
            source="Self-attention from first principles, step 0",
            remark="softmax(X Xᵀ) X: no matrices, no scaling. Most tokens look mainly at themselves, "
            "since a vector meets itself at full length; a longer one in the same direction can still win.",
            config=_plain,
            one_head=True,
        ),
        "single_head": Recipe(
            title="Single head",
            source="Einsum-style self-attention notes",
            remark="As the paper’s scaled dot-product attention; the projections are one fused matrix "
            "without bias. Its formulas end in W_O, its code does not, and neither does this.",
            config=_single_head,
            one_head=True,
        ),
        "multi_head": Recipe(
            title="Multi-head",
            source="Einsum-style self-attention notes; Vaswani et al. 2017",
            remark="The paper’s own: no bias, W_O at the end, scores divided by √head_dim. "
            "head_dim may be chosen freely here; the paper uses embed_dim / heads.",
            config=_multi_head,
        ),
        "cross": Recipe(
            title="Cross-attention",
            source="Notes on self- and cross-attention",
            remark="Divides by √embed_dim, the whole width; the paper divides by √head_dim. "
            "With several heads that brings scores closer to zero and weights closer together. "
            "Biases, but no output projection. Its mask says True for keys to keep. "
            "As printed it needs both texts equally long; here they need not be.",
            config=_cross,
            two_sequences=True,
        ),
        "unify_heads": Recipe(
            title="Heads unified",
            source="Self-attention from first principles, the full module",
            remark="The text says divide by √(embed_dim / heads), as the paper does; its code divides by √embed_dim, "
            "and so does this recipe. With several heads the weights come out closer together.",
            config=_unify_heads,
        ),
        "torch": Recipe(
            title="torch.nn.MultiheadAttention",
            source="PyTorch",
            remark="The paper’s, with a bias in every projection. embed_dim must be divisible by the "
            "number of heads; from these two follow head_dim, the width of a head’s values and that of the output.",
            config=_torch,
        ),
        "tensorflow": Recipe(
            title="TensorFlow 1 code",
            source="Code beside a walk-through of the Illustrated Transformer",
            remark="A bias, then ReLU, in each projection, so no q, k or v is ever negative; divides by √embed_dim; "
            "W_O only where heads × head_dim is not already embed_dim. The paper has no ReLU here.",
            config=_tensorflow,
        ),
    }
)

"""The model around the blocks: embeddings in front, and the one LayerNorm that belongs to no block.

    post-norm  x = norm(word + position + segment), then the blocks     Devlin et al. 2019, figure 2
    pre-norm   x = word + position, then the blocks, then norm          Radford et al. 2019, section 2.3
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.block import BlockConfig, BlockTrace, Heads, TransformerBlock, run_through
from models.masks import causal, padding


@dataclass(frozen=True)
class Architecture:
    """What a pretrained model is made of.

    block: one of its blocks, all alike; its norm order says where the LayerNorm outside the blocks stands.
    layers: how many blocks.
    tables: the embedding tables and how many rows each has: word, position, and in BERT segment.
    causal: whether a piece sees only itself and those before it.
    """

    block: BlockConfig
    layers: int
    tables: Mapping[str, int]
    causal: bool

    @property
    def heads(self) -> int:
        """How many heads each layer has."""
        return self.block.attention.num_heads


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Every intermediate of one run.

    embeddings: what is added up for each piece, by name (word, position, segment): `batch query embed` each.
        Their sum, after the norm where it stands in front, is `traces[0].before`.
    traces: the record of every layer.
    final: what leaves the model for each piece, `batch query embed`.
    sentence: one vector for the whole text, `batch embed`: the mean of `final` over the pieces, special ones
        included, brought to length 1, as all-MiniLM makes it (Reimers and Gurevych 2019, section 3).
    """

    embeddings: Mapping[str, Tensor]
    traces: tuple[BlockTrace[Tensor], ...]
    final: Tensor
    sentence: Tensor

    @property
    def weights(self) -> Tensor:
        """The weights of every head of the first text in the batch: `layer head query key`."""
        return torch.stack([trace.attention.weights[0] for trace in self.traces])


class Transformer(nn.Module):
    """A BERT or a GPT-2 without what stands on its last layer, built from the lab's own blocks.

    It is made to be loaded: the embedding tables start as no numbers in particular.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        embed = architecture.block.attention.embed_dim
        self.tables = nn.ParameterDict({name: torch.empty(rows, embed) for name, rows in architecture.tables.items()})
        self.norm = nn.LayerNorm(embed, eps=architecture.block.norm_eps)
        self.blocks = nn.ModuleList(TransformerBlock(architecture.block) for _ in range(architecture.layers))

    def trace(self, ids: Tensor, *, keep: Tensor | None = None, silenced: Heads = ()) -> Run:
        """Every intermediate, from the ids to the sentence's vector.

        ids: `batch query`, rows of the word table; no more than the position table has.
        keep: boolean `batch query`, True for a real piece, False for padding; None is all real.
        silenced: heads whose context is zero before W_O, as (layer, head).
        """
        keep = torch.ones_like(ids, dtype=torch.bool) if keep is None else keep
        post = self.architecture.block.norm == "post"
        embeddings = self._embed(ids)
        before = sum(embeddings.values())                               # batch query embed
        traces = run_through(
            self.blocks, self.norm(before) if post else before, self._visible(keep), silenced=silenced
        )
        final = traces[-1].output if post else self.norm(traces[-1].output)
        kept = final * keep[..., None]                                  # batch query embed
        sentence = F.normalize(kept.sum(dim=1), dim=-1)                 # the sum points where the mean does
        return Run(embeddings=embeddings, traces=tuple(traces), final=final, sentence=sentence)

    def _embed(self, ids: Tensor) -> dict[str, Tensor]:
        rows = {"word": ids, "position": torch.arange(ids.shape[1]).expand_as(ids), "segment": torch.zeros_like(ids)}
        return {name: F.embedding(rows[name], self.tables[name]) for name in self.architecture.tables}

    def _visible(self, keep: Tensor) -> Tensor | None:
        visible = None if keep.all() else padding(keep)
        if not self.architecture.causal:
            return visible
        past = causal(keep.shape[1], keep.shape[1])
        return past if visible is None else past & visible

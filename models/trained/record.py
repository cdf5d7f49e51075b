"""What a trained model saw and said: the records that every task gives, and the watch that takes them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import torch
from einops import rearrange
from torch import Tensor

from models.multi_head import MultiHeadAttention
from models.trace import AttentionTrace

Places = Collection[tuple[str, int]]
"""Pairs of a layer's name and the number of a key or of a head in it, counted from 0."""

MOST_GUESSES = 5


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One attention layer that ran on the user's text, batch of one.

    name: the layer's, unique within its model.
    inputs: `token width` by the names "query", "key" and "value", as the layer's `trace` takes them.
    visible: `query key`, or None where nothing is hidden.
    queries, keys: one label each; a row that predicts a token is labelled by that token.
    """

    name: str
    layer: MultiHeadAttention
    inputs: Mapping[str, Tensor]
    visible: Tensor | None
    trace: AttentionTrace[Tensor]
    queries: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """A token and the probability a model gives it."""

    token: str
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What a model says at one place: its guesses, likeliest first."""

    guesses: tuple[Guess, ...]

    @property
    def token(self) -> str:
        """The likeliest token."""
        return self.guesses[0].token

    @property
    def probability(self) -> float:
        """That of the likeliest token."""
        return self.guesses[0].probability


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a model on one text: its tokens, what it predicts, and all its attention layers in computing order."""

    tokens: tuple[str, ...]
    predictions: tuple[Prediction, ...]
    seen: tuple[Seen, ...]

    @property
    def answer(self) -> tuple[str, ...]:
        """The tokens predicted."""
        return tuple(prediction.token for prediction in self.predictions)

    def __getitem__(self, name: str) -> Seen:
        """The layer of that name. Raises `KeyError` where there is none."""
        return {seen.name: seen for seen in self.seen}[name]


@dataclass
class Watch:
    """Runs a model's attention layers and keeps what each did last; hides keys and silences heads on the way.

    hide: keys that no query of a layer may look at. silence: heads whose context is zero before W_O.
    """

    hide: Places = ()
    silence: Places = ()
    seen: dict[str, Seen] = field(default_factory=dict)

    def __call__(
        self,
        name: str,
        layer: MultiHeadAttention,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        visible: Tensor | None = None,
    ) -> Tensor:
        """The layer's output; arguments are those of its `trace`."""
        key = query if key is None else key
        value = key if value is None else value
        visible = self._without_hidden(name, key.shape[1], visible)
        trace = self._without_silenced(name, layer, layer.trace(query, key, value, visible=visible))
        self.seen[name] = Seen(
            name=name,
            layer=layer,
            inputs={"query": query[0], "key": key[0], "value": value[0]},
            visible=None if visible is None else visible.expand(*trace.weights.shape)[0, 0],
            trace=trace,
            queries=(),
            keys=(),
        )
        return trace.output

    def labelled(self, **labels: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[Seen, ...]:
        """What was seen, in order, with the labels of queries and of keys of each layer."""
        return tuple(replace(seen, queries=labels[name][0], keys=labels[name][1]) for name, seen in self.seen.items())

    def entropy(self, name: str) -> Tensor:
        """How spread a layer's rows are, −Σ w ln w in nats: `batch head query`."""
        weights = self.seen[name].trace.weights
        return torch.special.entr(weights.clamp_min(1e-9)).sum(-1)  # its slope at 0 would be infinite

    def _without_hidden(self, name: str, keys: int, visible: Tensor | None) -> Tensor | None:
        hidden = [place for layer, place in self.hide if layer == name and place < keys]
        if not hidden:
            return visible
        kept = torch.ones(keys, dtype=torch.bool)
        kept[hidden] = False
        return kept if visible is None else visible & kept

    def _without_silenced(
        self, name: str, layer: MultiHeadAttention, trace: AttentionTrace[Tensor]
    ) -> AttentionTrace[Tensor]:
        silenced = [head for of_layer, head in self.silence if of_layer == name]
        if not silenced:
            return trace
        context = trace.context.clone()
        context[:, silenced] = 0
        joined = rearrange(context, "batch head query head_dim -> batch query (head head_dim)")
        return replace(trace, context=context, output=layer.to_output(joined))


def numbers(tokens: tuple[str, ...], vocabulary: tuple[str, ...]) -> Tensor:
    """The tokens' places in a vocabulary, batch of one: `1 token`."""
    return torch.tensor([[vocabulary.index(token) for token in tokens]])


def guess(logits: Tensor, vocabulary: tuple[str, ...]) -> tuple[Prediction, ...]:
    """The likeliest few tokens at every place: `place vocabulary`."""
    likeliest = logits.softmax(-1).topk(min(MOST_GUESSES, len(vocabulary)))
    return tuple(
        Prediction(tuple(Guess(vocabulary[token], probability) for token, probability in zip(*place, strict=True)))
        for place in zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
    )

"""Scenes worth looking at, one click away."""

from typing import NamedTuple

from sections.scene import Attention, Mask, Scale, Scene, Source


class Example(NamedTuple):
    """A scene, and the query and head (counted from 1) to begin with."""

    scene: Scene
    query: int = 1
    head: int = 1


def _random(text: str, **choices: object) -> Scene:
    return Scene(text=text, source=Source.RANDOM, **choices)


EXAMPLES: dict[str, Example] = {
    "worked": Example(Scene()),
    "sentence": Example(
        _random(
            "The animal didn't cross the street because it was too tired.", attention=Attention.MULTI_HEAD, heads=8, embed_dim=32
        ),
        query=8,
    ),
    "twice": Example(_random("a rose is a rose is a rose"), query=2),
    "causal": Example(
        _random("one step after another", attention=Attention.MULTI_HEAD, mask=Mask.CAUSAL, positions=True, embed_dim=16), query=2
    ),
    "padding": Example(
        _random("a short one [PAD] [PAD]", attention=Attention.MULTI_HEAD, heads=2, mask=Mask.PADDING), query=3
    ),
    "cross": Example(
        _random(
            "la zone économique européenne", context="the European Economic Area was agreed", attention=Attention.CROSS, embed_dim=16
        ),
        query=3,
    ),
    "saturated": Example(_random("what happens without the division", embed_dim=64, scale=Scale.NONE)),
    "characters": Example(_random("注意力机制", tokens="characters", attention=Attention.MULTI_HEAD, heads=2), query=2),
}

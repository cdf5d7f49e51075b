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


WORKED = Scene(text="Thinking Machines", attention=Attention.SINGLE_HEAD, source=Source.WORKED_EXAMPLE)

EXAMPLES: dict[str, Example] = {
    "worked": Example(WORKED),
    "glass": Example(Scene(), query=2),
    "twice": Example(Scene(text="a rose is a rose is a rose"), query=2, head=3),
    "copy": Example(
        Scene(text="the agreement was signed in august 1992", context="in august 1992 the accord was signed", attention=Attention.CROSS), query=4
    ),
    "random": Example(_random(Scene.text, heads=8, embed_dim=32), query=8),
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
    "saturated": Example(_random("what happens without the division", attention=Attention.SINGLE_HEAD, embed_dim=64, scale=Scale.NONE)),
    "characters": Example(_random("注意力机制", tokens="characters", attention=Attention.MULTI_HEAD, heads=2), query=2),
}

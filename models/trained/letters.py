"""Small worlds of letters: recognising a text that is any string of them, within bounds."""

from models.trained.task import Outside, Recognised


def recognise(text: str, letters: tuple[str, ...], shortest: int, longest: int) -> Recognised:
    """Whether a text is `shortest` to `longest` of the letters, in capitals or not; else the nearest one that is.

    The nearest leaves unknown letters out, is cut at the end, and repeats itself until it is long enough.
    """
    tokens = tuple(text.lower())
    unknown = tuple(place for place, letter in enumerate(tokens) if letter not in letters)
    known = [letter for letter in tokens if letter in letters] or [letters[0]]
    nearest = "".join(known * (shortest // len(known) + 1) if len(known) < shortest else known)
    nearest = nearest[: max(shortest, len(known))][:longest]
    if not tokens:
        return Recognised(tokens=tokens, outside=Outside.EMPTY, nearest=nearest)
    if unknown:
        return Recognised(tokens=tokens, outside=Outside.UNKNOWN, faults=unknown, nearest=nearest)
    if len(tokens) > longest:
        faults = tuple(range(longest, len(tokens)))
        return Recognised(tokens=tokens, outside=Outside.TOO_LONG, faults=faults, nearest=nearest)
    outside = Outside.TOO_SHORT if len(tokens) < shortest else None
    return Recognised(tokens=tokens, outside=outside, nearest=nearest)

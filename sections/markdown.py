"""Text from outside, as markdown that shows it as it is."""

import re

_OBEYED = re.compile(r"https?://|www\.|@|:streamlit:|^(?:<->|->|<-|--|[<>~]=)$", re.IGNORECASE)
"""In a word, what Streamlit makes a link, a picture or an arrow of even where its marks are escaped."""


def literal(text: str) -> str:
    """Whatever marks are in it; as code, where nothing else keeps them."""
    return re.sub(r"\S+", lambda word: code(word[0]) if _OBEYED.search(word[0]) else _escaped(word[0]), text)


def code(text: str) -> str:
    """In the face of code, between more backticks than there are in it."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _escaped(word: str) -> str:
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", word)

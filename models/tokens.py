"""From typed text to tokens: words or characters of any script."""

import unicodedata

import regex

PAD = "[PAD]"

_MARKS = r"[.,!?;:…。，！？；：、،؛؟]+"  # ends a sentence or a clause
_SOLO = r"[\p{Han}\p{Hiragana}\p{Katakana}]\p{M}*"  # stands for a word, in scripts that write no spaces
_SPECIAL = r"\[[A-Z]+\]"  # [PAD] and its kind
_END = rf"{_MARKS}(?=$|{_SOLO})"
_WORD = regex.compile(rf"{_SPECIAL}|{_END}|{_SOLO}|(?:(?!{_END}|{_SOLO}).)+")
_CHARACTER = regex.compile(rf"{_SPECIAL}|\X")


def words(text: str) -> list[str]:
    """Words as spaces divide them, with the marks that end a sentence or clause as tokens of their own.

    A Han or Kana character is a word, since those scripts write no spaces. Tokens are in Unicode
    normal form C, so that one word typed in two ways is one token.
    """
    return _pieces(_WORD, text)


def characters(text: str) -> list[str]:
    """What a reader calls a character (Unicode's grapheme clusters), spaces left out; `[PAD]` stays whole."""
    return _pieces(_CHARACTER, text)


def is_special(token: str) -> bool:
    """Whether a token is one that models put in by themselves: `[CLS]`, `[SEP]`, `[PAD]` and their kind."""
    return regex.fullmatch(_SPECIAL, token) is not None


def _pieces(pattern: regex.Pattern[str], text: str) -> list[str]:
    return [piece for run in unicodedata.normalize("NFC", text).split() for piece in pattern.findall(run, concurrent=False)]


SPLITTERS = {"words": words, "characters": characters}

"""A grammar of English sentences, their French, and which word each French word comes from.

Adjectives that follow a French noun come in the reverse of their English order, so words cross.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import torch
from torch import Generator, Tensor

from models.trained.grammar import END, Grammar

PAD, START, STOP = "<pad>", "<s>", "</s>"
MOST_ENGLISH = 18
MOST_FRENCH = 26
"""Tokens of a sentence: as many as were trained on."""

_MASCULINE, _FEMININE = 0, 1
_DETERMINERS = {  # before a masculine noun, a feminine one, a vowel of either
    "the": ("le", "la", "l'", "l'"),
    "this": ("ce", "cette", "cet", "cette"),
    "our": ("notre", "notre", "notre", "notre"),
}
_BEFORE = {  # adjectives before the noun: masculine, feminine, masculine before a vowel
    "new": ("nouveau", "nouvelle", "nouvel"),
    "old": ("vieux", "vieille", "vieil"),
    "great": ("grand", "grande", "grand"),
    "small": ("petit", "petite", "petit"),
    "good": ("bon", "bonne", "bon"),
    "first": ("premier", "première", "premier"),
}
_BEHIND = {  # adjectives behind the noun: masculine, feminine
    "european": ("européen", "européenne"),
    "economic": ("économique", "économique"),
    "national": ("national", "nationale"),
    "social": ("social", "sociale"),
    "military": ("militaire", "militaire"),
    "public": ("public", "publique"),
    "french": ("français", "française"),
    "african": ("africain", "africaine"),
    "agricultural": ("agricole", "agricole"),
    "historic": ("historique", "historique"),
    "private": ("privé", "privée"),
    "secret": ("secret", "secrète"),
    "legal": ("légal", "légale"),
    "global": ("mondial", "mondiale"),
    "technical": ("technique", "technique"),
    "cultural": ("culturel", "culturelle"),
    "regional": ("régional", "régionale"),
    "modern": ("moderne", "moderne"),
}
_NOUNS = {
    "agreement": ("accord", _MASCULINE),
    "treaty": ("traité", _MASCULINE),
    "report": ("rapport", _MASCULINE),
    "project": ("projet", _MASCULINE),
    "plan": ("plan", _MASCULINE),
    "document": ("document", _MASCULINE),
    "contract": ("contrat", _MASCULINE),
    "market": ("marché", _MASCULINE),
    "council": ("conseil", _MASCULINE),
    "minister": ("ministre", _MASCULINE),
    "government": ("gouvernement", _MASCULINE),
    "parliament": ("parlement", _MASCULINE),
    "state": ("état", _MASCULINE),
    "committee": ("comité", _MASCULINE),
    "budget": ("budget", _MASCULINE),
    "area": ("zone", _FEMININE),
    "law": ("loi", _FEMININE),
    "commission": ("commission", _FEMININE),
    "bank": ("banque", _FEMININE),
    "region": ("région", _FEMININE),
    "city": ("ville", _FEMININE),
    "letter": ("lettre", _FEMININE),
    "decision": ("décision", _FEMININE),
    "union": ("union", _FEMININE),
    "industry": ("industrie", _FEMININE),
    "army": ("armée", _FEMININE),
    "school": ("école", _FEMININE),
    "company": ("société", _FEMININE),
    "reform": ("réforme", _FEMININE),
    "team": ("équipe", _FEMININE),
}
_PREPOSITIONS = {"on": "sur", "with": "avec", "for": "pour", "against": "contre"}
_VERBS = {  # done to, did, to do
    "signed": "signé",
    "adopted": "adopté",
    "published": "publié",
    "accepted": "accepté",
    "rejected": "rejeté",
    "discussed": "discuté",
    "presented": "présenté",
    "confirmed": "confirmé",
}
_PLAIN = {
    "sign": "signé",
    "adopt": "adopté",
    "publish": "publié",
    "accept": "accepté",
    "reject": "rejeté",
    "discuss": "discuté",
    "present": "présenté",
    "confirm": "confirmé",
}
_MONTHS = dict(
    zip(
        ("january", "february", "march", "april", "may", "june",
         "july", "august", "september", "october", "november", "december"),
        ("janvier", "février", "mars", "avril", "mai", "juin",
         "juillet", "août", "septembre", "octobre", "novembre", "décembre"),
        strict=True,
    )
)  # fmt: skip
_YEARS = {str(year): str(year) for year in range(1988, 1998)}

_ENGLISH_WORDS = (
    *_DETERMINERS, *_BEFORE, *_BEHIND, *_NOUNS, *_PREPOSITIONS, "was", "did", "not", "by", *_VERBS, *_PLAIN,
    "in", *_MONTHS, *_YEARS, ".",
)  # fmt: skip
_FRENCH_WORDS = dict.fromkeys(
    (
        *(form for forms in (*_DETERMINERS.values(), *_BEFORE.values(), *_BEHIND.values()) for form in forms),
        *(noun for noun, _ in _NOUNS.values()), *_PREPOSITIONS.values(), "n'", "a", "pas", "été", "par",
        *(participle + ending for participle in _VERBS.values() for ending in ("", "e")),
        "en", *_MONTHS.values(), *_YEARS.values(), ".",
    )
)  # fmt: skip
CONTENT = frozenset((*_BEFORE, *_BEHIND, *_NOUNS, *_VERBS, *_PLAIN, *_MONTHS, *_YEARS))
"""English words that name something, rather than hold a sentence together."""

ENGLISH = (PAD, *_ENGLISH_WORDS)
FRENCH = (PAD, START, STOP, *_FRENCH_WORDS)

FAMOUS = "the agreement on the european economic area was signed in august 1992 ."
"""The sentence of Bahdanau et al. 2015, figure 3a."""


@dataclass(frozen=True)
class Word:
    """A French word and where it comes from.

    sure: the English word it translates, None for a word that grammar asks for.
    possible: English words that it may as well be said to come from; those that `sure` gives included.
    crosses: whether the words of its noun phrase come in another order than in English.
    """

    french: str
    sure: int | None
    possible: frozenset[int]
    crosses: bool = False


def _phrase(moves: dict[str, dict[str, str]], name: str) -> None:
    """A noun phrase: from `name` to `name end`."""
    moves[name] = dict.fromkeys(_DETERMINERS, f"{name} 0")
    behind = dict.fromkeys(_NOUNS, f"{name} end")
    for adjectives in range(3):
        moves[f"{name} {adjectives}"] = behind | dict.fromkeys(_BEHIND, f"{name} {adjectives + 1}")
    moves[f"{name} 3"] = behind
    moves[f"{name} before"] = moves[f"{name} 0"]
    moves[f"{name} 0"] = moves[f"{name} before"] | dict.fromkeys(_BEFORE, f"{name} before")


def _grammar() -> Grammar:
    """Who, on what, did or was done what, when; see `draw` for the order."""
    moves: dict[str, dict[str, str]] = {}
    for phrase in ("who", "who on", "what", "what on", "by whom"):
        _phrase(moves, phrase)
    when = {"in": "in", ".": "stop"}
    verb = {"was": "was", "did": "did", **dict.fromkeys(_VERBS, "what")}
    moves["who on end"], moves["what on end"] = verb, when
    moves["who end"] = verb | dict.fromkeys(_PREPOSITIONS, "who on")
    moves["what end"] = when | dict.fromkeys(_PREPOSITIONS, "what on")
    moves["was not"] = dict.fromkeys(_VERBS, "done")
    moves["was"] = moves["was not"] | {"not": "was not"}
    moves["did"] = {"not": "did not"}
    moves["did not"] = dict.fromkeys(_PLAIN, "what")
    moves["done"] = when | {"by": "by whom"}
    moves["by whom end"] = when
    moves["month"] = dict.fromkeys(_YEARS, "year")
    moves["in"] = moves["month"] | dict.fromkeys(_MONTHS, "month")
    moves["year"] = {".": "stop"}
    moves["stop"] = {END: END}
    return Grammar(moves, "who")


GRAMMAR = _grammar()


def translate(words: Sequence[str]) -> tuple[Word, ...]:
    """The French of a sentence of the grammar, word by word."""
    return _Translator(words).sentence()


class _Translator:
    """Reads a sentence from the left, a phrase at a time."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.place = 0

    def sentence(self) -> tuple[Word, ...]:
        french, feminine = self._phrases()
        french += self._verb(feminine)
        if self._next() == "by":
            french += [self._take(lambda _: "par"), *self._phrase()[0]]
        elif self._next() not in ("in", "."):
            french += self._phrases()[0]
        return (*french, *self._rest())

    def _next(self) -> str:
        return self.words[self.place]

    def _take(self, forms: Callable[[str], str], crosses: bool = False) -> Word:
        """The next word as its French form, which surely comes from it."""
        self.place += 1
        at = self.place - 1
        return Word(forms(self.words[at]), at, frozenset({at}), crosses)

    def _phrases(self) -> tuple[list[Word], int]:
        """A noun phrase and the one a preposition hangs on it; the gender is the first one's."""
        french, gender = self._phrase()
        if self._next() in _PREPOSITIONS:
            french += [self._take(_PREPOSITIONS.get), *self._phrase()[0]]
        return french, gender

    def _phrase(self) -> tuple[list[Word], int]:
        start = self.place
        end = next(place for place in range(start, len(self.words)) if self.words[place] in _NOUNS)
        noun, gender = _NOUNS[self.words[end]]
        self.place += 1
        before = self._next() in _BEFORE
        follows = _BEFORE[self._next()][gender] if before else noun
        crosses = end - start - before > 1
        french = []
        if before:
            form = gender if gender == _FEMININE or not _vowel(noun) else 2
            french = [self._take(lambda word: _BEFORE[word][form])]
        adjectives = [self._take(lambda word: _BEHIND[word][gender], crosses) for _ in range(self.place, end)]
        french += [self._take(lambda _: noun, crosses), *reversed(adjectives)]
        determiner = _DETERMINERS[self.words[start]][gender + 2 * _vowel(follows)]
        return [Word(determiner, None, frozenset({start, start + 1, end})), *french], gender

    def _verb(self, gender: int) -> list[Word]:
        start = self.place
        passive = self._next() == "was"
        self.place += self._next() in ("was", "did")
        negated = self._next() == "not"
        self.place += negated
        participle = self._take(lambda word: (_VERBS | _PLAIN)[word] + "e" * (passive and gender == _FEMININE))
        around = frozenset(range(start, self.place))
        helpers = ["n'", "a", "pas"] if negated else ["a"]
        return [*(Word(helper, None, around) for helper in helpers + ["été"] * passive), participle]

    def _rest(self) -> list[Word]:
        forms = _MONTHS | _YEARS | {"in": "en", ".": "."}
        return [self._take(forms.get) for _ in range(self.place, len(self.words))]


def _vowel(word: str) -> bool:
    return word[0] in "aeéiou"


def repeated(words: Sequence[str]) -> tuple[int, ...]:
    """The adjectives that a noun has already, which training never shows: it would not tell the one from the other."""
    found: list[int] = []
    phrase: set[str] = set()
    for place, word in enumerate(words):
        if word in _DETERMINERS:
            phrase = set()
        if word in phrase:
            found.append(place)
        if word in _BEHIND:
            phrase.add(word)
    return tuple(found)


@cache
def held_out() -> frozenset[tuple[str, str]]:
    """About a tenth of all pairs of an adjective and its noun, never seen in training; those of `FAMOUS` among them."""
    pairs = [(adjective, noun) for adjective in (*_BEFORE, *_BEHIND) for noun in _NOUNS]
    order = torch.randperm(len(pairs), generator=Generator().manual_seed(1)).tolist()
    return frozenset(pairs[place] for place in order[: len(pairs) // 10]) | {("european", "area"), ("economic", "area")}


def is_held_out(words: Sequence[str]) -> bool:
    """Whether a noun of a sentence has an adjective that training never gave it."""
    adjectives: list[str] = []
    for word in words:
        if word in _NOUNS:
            if any((adjective, word) in held_out() for adjective in adjectives):
                return True
            adjectives = []
        elif word in _BEFORE or word in _BEHIND:
            adjectives.append(word)
    return False


def draw(chooser: Random) -> tuple[str, ...]:
    """A sentence of the grammar."""

    def chance(share: float) -> bool:
        return chooser.random() < share

    def one(words: Iterable[str]) -> str:
        return chooser.choice(tuple(words))

    def phrase() -> list[str]:
        adjectives = chooser.sample(tuple(_BEHIND), chooser.randrange(4))
        return [one(_DETERMINERS), *([one(_BEFORE)] if chance(0.25) else []), *adjectives, one(_NOUNS)]

    def phrases() -> list[str]:
        return phrase() + ([one(_PREPOSITIONS), *phrase()] if chance(0.4) else [])

    words = phrases()
    if chance(0.5):
        words += ["was", *(["not"] if chance(0.3) else []), one(_VERBS), *(["by", *phrase()] if chance(0.4) else [])]
    else:
        words += [*(["did", "not", one(_PLAIN)] if chance(0.3) else [one(_VERBS)]), *phrases()]
    if chance(0.6):
        words += ["in", *([one(_MONTHS)] if chance(0.6) else []), one(_YEARS)]
    return (*words, ".")


def sentences(number: int, seed: int, *, unseen: bool) -> list[tuple[str, ...]]:
    """That many sentences short enough, each with a pair that training never shows, or all without one."""
    chooser, found = Random(seed), []
    while len(found) < number:
        words = draw(chooser)
        if len(words) <= MOST_ENGLISH and is_held_out(words) == unseen:
            found.append(words)
    return found


def batch(sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
    """Sentences and their French with `START` and `STOP` around it, filled up with `PAD`: twice `batch token`."""
    french = [(START, *(word.french for word in translate(words)), STOP) for words in sentences]
    return _numbers(sentences, ENGLISH), _numbers(french, FRENCH)


def _numbers(texts: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> Tensor:
    number = {word: place for place, word in enumerate(vocabulary)}
    longest = max(map(len, texts))
    return torch.tensor([[number[word] for word in text] + [0] * (longest - len(text)) for text in texts])

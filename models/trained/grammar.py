"""Small worlds of sentences: what may come next, whether a sentence is one, and which is nearest."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count

from models.trained.task import Outside, Recognised

MOST_WORDS = 64
"""More of a text than this is not read."""

END = ""
"""The piece after which a sentence is whole."""


@dataclass(frozen=True)
class Grammar:
    """A finite automaton over words. moves: from each state, a word to the next state; `END` leads to no state.

    start: the state before the first word.
    """

    moves: Mapping[str, Mapping[str, str]]
    start: str

    def state(self, words: tuple[str, ...]) -> tuple[str | None, int]:
        """The state after as many words as fit, and how many do."""
        state = self.start
        for place, word in enumerate(words):
            if word not in self.moves[state]:
                return state, place
            state = self.moves[state][word]
        return state, len(words)

    def whole(self, words: tuple[str, ...]) -> bool:
        """Whether the words are a sentence."""
        state, fitting = self.state(words)
        return fitting == len(words) and END in self.moves[state]

    def pieces(self, words: tuple[str, ...], longest: int) -> tuple[str, ...]:
        """The words that may come after these in a sentence of at most `longest`; none where they begin none."""
        state, fitting = self.state(words)
        if fitting < len(words):
            return ()
        room = longest - len(words) - 1
        return tuple(word for word, after in self.moves[state].items() if word != END and self._least[after] <= room)

    @cached_property
    def _least(self) -> Mapping[str, int]:
        """How many words it takes at least to end a sentence from each state."""
        least = {state: 0 for state, moves in self.moves.items() if END in moves}
        while len(least) < len(self.moves):
            known = dict(least)
            for state, moves in self.moves.items():
                ways = [known[after] for after in moves.values() if after in known]
                if state not in known and ways:
                    least[state] = 1 + min(ways)
        return least

    def nearest(self, words: tuple[str, ...], longest: int) -> tuple[str, ...]:
        """The sentence of at most `longest` words with the fewest words changed, left out or put in."""
        order = count()
        queue = [(0, next(order), self.start, 0, ())]
        done = set()
        while queue:
            cost, _, state, place, said = heappop(queue)
            if (state, place, len(said)) in done:
                continue
            done.add((state, place, len(said)))
            if place == len(words) and END in self.moves[state]:
                return said
            if place < len(words):
                heappush(queue, (cost + 1, next(order), state, place + 1, said))
            if len(said) == longest:
                continue
            for word, after in self._ways_on(state).items():
                heappush(queue, (cost + 1, next(order), after, place, (*said, word)))
                if place < len(words):
                    heappush(queue, (cost + 1, next(order), after, place + 1, (*said, word)))
            if place < len(words) and words[place] in self.moves[state]:
                after = self.moves[state][words[place]]
                heappush(queue, (cost, next(order), after, place + 1, (*said, words[place])))
        raise ValueError(f"a grammar needs a sentence of at most {longest} words; this one has none.")

    def _ways_on(self, state: str) -> dict[str, str]:
        """One word for each state that may come next: any word that leads there does as well."""
        first = {after: word for word, after in reversed(self.moves[state].items()) if word != END}
        return {word: after for after, word in first.items()}

    def recognise(self, text: str, vocabulary: Collection[str], longest: int) -> Recognised:
        """Whether a text is a sentence of at most `longest` words, and the nearest one that is."""
        words = tuple(text.lower().replace(".", " . ").split())[:MOST_WORDS]
        if len(words) <= longest and self.whole(words):
            return Recognised(tokens=words, nearest=" ".join(words))
        unknown = tuple(place for place, word in enumerate(words) if word not in vocabulary)
        if not words:
            outside, faults = Outside.EMPTY, ()
        elif unknown:
            outside, faults = Outside.UNKNOWN, unknown
        elif len(words) > longest:
            outside, faults = Outside.TOO_LONG, tuple(range(longest, len(words)))
        else:
            fitting = self.state(words)[1]
            outside = Outside.TOO_SHORT if fitting == len(words) else Outside.STRUCTURE
            faults = tuple(range(fitting, len(words)))[:1]
        nearest = " ".join(self.nearest(words, longest))
        return Recognised(tokens=words, outside=outside, faults=faults, nearest=nearest)

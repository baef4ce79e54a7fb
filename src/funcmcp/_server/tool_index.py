"""Search in texts about tools: how a text becomes words, and BM25 over the words.

How it works: a text is split at everything that is not a letter or a digit, and where the case changes, so that
``getUser``, ``get_user`` and "Get users" have the same words. Endings are cut off (`stem`). The words of one tool are a
number for each word: how often it occurs, times the weight of the place where it occurs.

An `Index` has the words of some tools, and `best_matches` searches in several of them as if they were one. Tools with
different access rules are in different indexes: a search reads only those that its caller may use, so that neither the
order of the matches nor the time of a search depends on other tools.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, for the sum and its
constants; Turtle and Flood, "Query evaluation: strategies and optimizations", 1995, for leaving out tools that can't be
among the best any more.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

_SATURATION = 6.0
"""BM25's k1: how much a word counts that occurs more than once. Numbers of words are weighted, so it is high."""

_LENGTH_SHARE = 0.7
"""BM25's b: how much the length of a tool's texts counts."""

_SYNONYM_WEIGHT = 0.4
"""How much a word of the same meaning counts."""

_COMMON_SHARE = 0.2
"""The share of the tools that may have a synonym, unless they are few."""

_FEW_TOOLS = 100

_MAX_COUNT = 250
"""The largest number for a word. Python has only one object for each integer up to 256, which saves memory."""

_RUN = re.compile(r"[^\W_]+")
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{2,}")
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese. Pairs of characters stand for
their words."""

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a all also am an and any are as at be been but by can could did do does for from had has have how i if in into
        is it its let like me my need of on or our please should so some than that the their them then there these they
        this those to us using via want was we were what when where which who will with would you your
        """,
    )
)
"""English words that say nothing about a tool."""


class Index:
    """The words of tools.

    Attributes:
        lengths: The sum of the numbers of a tool's words, by the tool's name.
        total_length: The sum of the lengths.
    """

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        self.total_length = 0
        self._tools: dict[str, dict[str, int]] = {}  # by word, then by name: the number of the word
        self._words: dict[str, tuple[str, ...]] = {}  # by name

    def add(self, name: str, words: Mapping[str, int]) -> None:
        """Add the words of a tool that the index does not have."""
        for word, count in words.items():
            self._tools.setdefault(word, {})[name] = min(count, _MAX_COUNT)
        self._words[name] = tuple(words)
        self.lengths[name] = length = sum(words.values())
        self.total_length += length

    def remove(self, name: str) -> None:
        """Remove the words of a tool; raise KeyError if the index does not have it."""
        for word in self._words.pop(name):
            tools = self._tools[word]
            del tools[name]
            if not tools:
                del self._tools[word]
        self.total_length -= self.lengths.pop(name)

    def tools_with(self, word: str) -> Mapping[str, int]:
        """Return the names of the tools that have a word, each with its number."""
        return self._tools.get(word, _NONE)


_NONE: Mapping[str, int] = {}


def best_matches(indexes: Sequence[Index], terms: Iterable[Mapping[str, float]], limit: int) -> list[str]:
    """Return the names of the tools that match terms best, the best first.

    Args:
        indexes: The indexes to search in.
        terms: Words of one meaning each, with their weights. A tool counts with the word that gives it the most.
        limit: The largest number of names.
    """
    count = sum(len(index.lengths) for index in indexes)
    if not count:
        return []
    mean_length = sum(index.total_length for index in indexes) / count or 1.0
    rarities = [(_rarity(indexes, term, count), _without_common(indexes, term, count)) for term in terms]
    rarities.sort(key=lambda pair: -pair[0])
    scores: dict[str, float] = {}
    possible = sum(rarity for rarity, _ in rarities) * (_SATURATION + 1)
    for rarity, term in rarities:
        # A tool without any word so far can't get more than what is possible with this term and those after it.
        is_complete = len(scores) >= limit and heapq.nlargest(limit, scores.values())[-1] > possible
        possible -= rarity * (_SATURATION + 1)
        for index in indexes:
            candidates = scores.keys() if is_complete else None
            for name, value in _values(index, term, mean_length, candidates).items():
                scores[name] = scores.get(name, 0.0) + rarity * value
    return heapq.nsmallest(limit, scores, key=lambda name: (-scores[name], name))


def _rarity(indexes: Sequence[Index], term: Mapping[str, float], count: int) -> float:
    """Return how much a term counts: the fewer tools have its first word, the more."""
    for word in term:
        frequency = sum(len(index.tools_with(word)) for index in indexes)
        if frequency:
            return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
    return 0.0


def _without_common(indexes: Sequence[Index], term: Mapping[str, float], count: int) -> dict[str, float]:
    """Return a term without the synonyms that many tools have. They hardly distinguish tools, and take time."""
    max_tools = max(count * _COMMON_SHARE, _FEW_TOOLS)
    return {
        word: weight
        for word, weight in term.items()
        if weight == 1.0 or sum(len(index.tools_with(word)) for index in indexes) <= max_tools
    }


def _values(
    index: Index, term: Mapping[str, float], mean_length: float, candidates: Set[str] | None
) -> dict[str, float]:
    """Return what a term gives to tools of an index that have one of its words, without the term's rarity.

    Args:
        index: The index.
        term: The words with their weights.
        mean_length: The mean length of all tools.
        candidates: The tools that can still be among the best; None for all.
    """
    fixed, by_length = _SATURATION * (1 - _LENGTH_SHARE), _SATURATION * _LENGTH_SHARE / mean_length
    lengths = index.lengths
    values: dict[str, float] = {}
    for word, weight in term.items():
        highest = weight * (_SATURATION + 1)
        tools = index.tools_with(word)
        if candidates is not None:
            tools = {name: tools[name] for name in candidates & tools.keys()}
        for name, number in tools.items():
            value = highest * number / (number + fixed + by_length * lengths[name])
            if value > values.get(name, 0.0):
                values[name] = value
    return values


def terms_in(query: str, limit: int) -> list[dict[str, float]]:
    """Return the different words of a query, each with the words of the same meaning that the query does not have."""
    words = dict.fromkeys(itertools.islice(words_in(query), limit))
    terms: list[dict[str, float]] = []
    for word in words:
        synonyms = _synonyms().get(word, frozenset()) - words.keys()
        terms.append({word: 1.0, **dict.fromkeys(sorted(synonyms), _SYNONYM_WEIGHT)})
    return terms


def words_in(text: str) -> Iterator[str]:
    """Yield the words of a text, each as often as it occurs, without their endings and without stop words."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    for run in _RUN.findall(text):
        yield from _words_in_run(run)


@lru_cache(maxsize=32_768)
def _words_in_run(run: str) -> tuple[str, ...]:
    """Return the words in a run of letters and digits."""
    parts = _CASE_CHANGE.split(run)
    if len(parts) > 1:
        parts.append(run)  # GitHub is written in several ways
    words: list[str] = []
    for part in parts:
        word = part.casefold()
        if _UNSPACED.search(word):
            words += (word[place : place + 2] for place in range(len(word) - 1))
        elif word not in _STOP_WORDS:
            words.append(stem(word))
    return tuple(words)


def count_words(texts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the numbers of the words in texts that have weights."""
    counts: dict[str, int] = {}
    for text, weight in texts:
        for word in words_in(text):
            counts[word] = counts.get(word, 0) + weight
    return counts


def stem(word: str) -> str:
    """Return a word in lower case without the endings of English plurals, verbs and some nouns.

    What remains need not be a word, but must be the same for the forms of one. Of words with other letters the
    beginning remains, which does as well as rules in languages with many endings.
    """
    if not word.isascii():
        return word[:_BEGINNING]
    if len(word) <= 3:  # noqa: PLR2004 - shorter words have no endings
        return word
    word = _without_plural(word)
    for ending, shortest in _ENDINGS:
        base = word.removesuffix(ending)
        if base != word and len(base) >= shortest and _VOWEL.search(base):
            word = _without_double(base) if ending in ("ing", "ed") else base
            break
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004 - as above


_ENDINGS = (("ing", 3), ("ed", 3), ("ion", 4), ("ment", 5))
"""Endings, and the fewest letters that must be before them."""

_BEGINNING = 5
"""Letters of a word in another script. Source: McNamee, Nicholas and Mayfield, "Addressing morphological variation in
alphabetic languages", 2009."""

_VOWEL = re.compile("[aeiouy]")


def _without_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_double(base: str) -> str:
    """Return the base of ``planning`` and ``planned`` as that of ``plan``."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":  # noqa: PLR2004 - add has two
        return base[:-1]
    return base


_MEANINGS = """
create add new make insert register generate
delete remove erase clear drop discard clean
list show get find search view display see read fetch retrieve look lookup query
update edit change modify set alter adjust
send post publish share
start run launch begin execute trigger open
stop end cancel terminate kill abort close
move transfer
copy duplicate clone
buy order purchase
restart reboot
download save export
upload import attach
undo revert restore rollback
calculate compute sum add math
on enable activate
off disable deactivate
done complete finish close resolve
approve review
log print output
error exception failure fail crash
count number many
history recent last late
free available availability
mail email
chat conversation message
meeting event appointment calendar
comment reply
picture image photo media
video clip
film movie
series tv
folder directory
file document
note page
paper article
row record entry
label tag
ticket issue
task todo
sprint iteration
repository repo
member user person people
customer client contact
bill invoice
price quote
money balance
ship fulfill deliver
phone mobile
site web website
wifi wlan wireless network
room channel
drive car
direction route distance
nearby area near place
temperature weather
"""
"""Words of the same meaning in each line, which people and tools use for each other."""


@cache
def _synonyms() -> dict[str, frozenset[str]]:
    """Return the words of the same meaning as each word."""
    synonyms: dict[str, frozenset[str]] = {}
    for line in _MEANINGS.splitlines():
        words = frozenset(map(stem, line.split()))
        for word in words:
            synonyms[word] = synonyms.get(word, frozenset()) | words - {word}
    return synonyms

"""JSON values and texts, shortened to a number of characters.

How it works: an array is shortened to as many of its first items as fit, and never to none: if the first item is too
long by itself, the arrays in it are shortened. The members of an object share the characters: short ones stay whole,
and the longest ones are shortened to equal parts. A text is shortened to whole paragraphs, sentences or lines, but not
inside an item of an array, because an item is whole or missing. Nothing else can be shortened.

A shortened value may no longer fit its schema, such as an array with `minItems`. The places that the schema objects to
then stay whole, and the others are shortened more.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from funcmcp._protocol.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Faults: TypeAlias = Callable[[Any], Iterable["Path"]]

Path: TypeAlias = tuple[str | int, ...]
"""The names and indexes that lead to a part of a JSON value."""

_ATTEMPTS = 12
_SHORT_TEXT = 400
"""Characters of a text that is never shortened, because it may be a name or a title."""

_SEPARATORS = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"[.!?]['\")\]]*\s+|[\u3002\uff01\uff1f]"),
    re.compile(r"\n"),
)
"""What ends a paragraph, a sentence and a line."""

_WORD = re.compile(r"\s+")
_TAIL = 500
"""Characters before the end of a part in which a line or a word is searched."""


class Cut(NamedTuple):
    """A place where a part of a value is missing.

    Attributes:
        path: The array or the text.
        shown: How many of its items or characters are shown: the first ones.
        total: How many it has.
        is_text: Whether it is a text.
    """

    path: Path
    shown: int
    total: int
    is_text: bool = False


class IndivisibleError(ValueError):
    """A value can't be shortened enough; the text says why, as the end of a sentence."""


def size_of(value: Any) -> int:
    """Return the number of characters of a JSON value, as compact JSON."""
    return len(encode(value).decode())


def shortened(value: Any, size: int, faults: Faults) -> tuple[Any, list[Cut]]:
    """Return a JSON value of at most *size* characters, and what is missing in it.

    Args:
        value: The value, which has more characters.
        size: The characters.
        faults: Returns the paths of the parts of a value that its schema objects to.

    Raises:
        IndivisibleError: There is no such value, or none that fits its schema.
    """
    fixed: set[Path] = set()
    for _ in range(_ATTEMPTS):
        shortening = _Shortening(fixed)
        short = shortening.part(value, size, ())
        objections = list(faults(short))
        if not objections:
            return short, shortening.cuts
        blamed = _blamed(objections, shortening.cuts) - fixed
        if not blamed:
            break
        fixed |= blamed
    raise IndivisibleError("its output schema does not allow a part of it")


def _blamed(objections: list[Path], cuts: list[Cut]) -> set[Path]:
    """Return the places, in the form of `_kind_of`, that a schema objects to because they are shortened."""
    places = {_kind_of(cut.path) for cut in cuts}
    blamed: set[Path] = set()
    for objection in map(_kind_of, objections):
        if objection in places:
            blamed.add(objection)
        else:
            blamed.update(place for place in places if place[: len(objection)] == objection)
    return blamed


def _kind_of(path: Path) -> Path:
    """Return a path with the same step for all items of an array."""
    return tuple("*" if isinstance(step, int) else step for step in path)


class _Shortening:
    """One attempt to shorten a value.

    Args:
        fixed: Arrays and texts that stay whole, in the form of `_kind_of`.

    Attributes:
        cuts: What is missing, in the order of the value.
    """

    def __init__(self, fixed: set[Path]) -> None:
        self.cuts: list[Cut] = []
        self._fixed = fixed

    def part(self, value: Any, size: int, path: Path) -> Any:
        """Return a part of the value with at most *size* characters; raise IndivisibleError if there is none."""
        if size_of(value) <= size:
            return value
        least = self._least(value, path)
        if least > size:
            raise IndivisibleError(f"it has a part of {least:,} characters that can't be divided")
        if isinstance(value, str):
            return self._text(value, size, path)
        if isinstance(value, list) and not self._is_fixed(path):
            return self._items(value, size, path)
        if isinstance(value, list):
            return [*self._members(dict(enumerate(value)), size - len(value) - 1, path).values()]
        names = sum(size_of(name) + 1 for name in value)
        return self._members(value, size - names - len(value) - 1, path)

    def _is_fixed(self, path: Path) -> bool:
        return _kind_of(path) in self._fixed

    def _least(self, value: Any, path: Path) -> int:
        """Return the fewest characters to which a part of the value can be shortened."""
        if isinstance(value, str):
            return self._least_text(value, path)
        if isinstance(value, list) and value and not self._is_fixed(path):
            return 2 + self._least(value[0], (*path, 0))
        if isinstance(value, list):
            return max(2, len(value) + 1) + sum(self._least(item, (*path, index)) for index, item in enumerate(value))
        if isinstance(value, dict):
            members = sum(size_of(name) + 1 + self._least(member, (*path, name)) for name, member in value.items())
            return max(2, len(value) + 1) + members
        return size_of(value)

    def _least_text(self, text: str, path: Path) -> int:
        size = size_of(text)
        is_in_item = any(isinstance(step, int) for step in path)
        if size <= _SHORT_TEXT or is_in_item or self._is_fixed(path):
            return size
        ends = [match.end() for separator in _SEPARATORS if (match := separator.search(text))]
        return size_of(text[: min(ends)]) if ends else size

    def _text(self, text: str, size: int, path: Path) -> str:
        longest = bisect_right(range(min(len(text), size)), size, key=lambda end: size_of(text[:end])) - 1
        end = last_end(text, 0, longest)
        self.cuts.append(Cut(path, end, len(text), is_text=True))
        return text[:end]

    def _items(self, items: list[Any], size: int, path: Path) -> list[Any]:
        """Return the first items of an array, at least one."""
        count = 0
        used = 2 + size_of(items[0])
        while used <= size:  # which ends before the last item, because the array is too long
            count += 1
            used += 1 + size_of(items[count])
        if max(1, count) < len(items):
            self.cuts.append(Cut(path, max(1, count), len(items)))
        return items[:count] or [self.part(items[0], size - 2, (*path, 0))]

    def _members(self, members: dict[Any, Any], size: int, path: Path) -> dict[Any, Any]:
        """Return the members of an object, or the items of an array that stays whole.

        Args:
            members: The members by name, or the items by index.
            size: The characters of all values together.
            path: The path of the object.
        """
        sizes = {name: size_of(member) for name, member in members.items()}
        least = {name: self._least(member, (*path, name)) for name, member in members.items()}
        reserved = sum(least.values())
        parts: dict[Any, Any] = {}
        for count, name in enumerate(sorted(sizes, key=sizes.__getitem__)):
            reserved -= least[name]
            share = max(least[name], min(size // (len(sizes) - count), size - reserved))
            parts[name] = self.part(members[name], share, (*path, name))
            size -= size_of(parts[name])
        return {name: parts[name] for name in members}


def last_end(text: str, start: int, limit: int) -> int:
    """Return where the last paragraph of a part of a text ends, or else the last sentence or line; *start* without one.

    Paragraphs precede sentences, and sentences precede lines, if they end in the second half of the part.

    Args:
        text: The text.
        start: Where the part begins.
        limit: Where the part has to end, at the latest.
    """
    half = start + (limit - start) // 2
    for begin in (half, start):
        for separator in _SEPARATORS:
            ends = [match.end() for match in separator.finditer(text, begin, limit)]
            if ends:
                return ends[-1]
    return start


def end_of_part(text: str, start: int, size: int) -> int:
    """Return where a part of a text ends that has at most *size* characters.

    It is the end of the text, or else the end of a paragraph, a sentence, a line or a word, or else any character.
    """
    limit = start + size
    if limit >= len(text):
        return len(text)
    end = last_end(text, start, limit)
    if end > start:
        return end
    words = [match.end() for match in _WORD.finditer(text, max(start + 1, limit - _TAIL), limit)]
    return words[-1] if words else limit

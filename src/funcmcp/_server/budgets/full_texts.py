"""Whole results as texts, and the pages in which models read them.

How it works: a text stays as it is. A JSON value is written with each item of its long arrays on a line of its own. An
item that is longer than a page is divided in the same way. So a page ends between two items wherever that is possible,
and all pages together are the text, which is JSON again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.codec import encode
from funcmcp._server.budgets.cut_values import end_of_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp._server.budgets.cut_values import Path

_LINE = "\n"
_NEXT = ",\n"
_ESCAPED_LINE = re.compile(r"(?:\\n)+|[.!?]['\")\]]*\s+")
"""What ends a line or a sentence inside a JSON string."""

_ESCAPE = 6
"""Characters of the longest escape in a JSON string, such as ``\\u0007``."""


class FullText(NamedTuple):
    """The text of a result.

    Attributes:
        text: The text.
        is_json: Whether the text is one JSON value.
    """

    text: str
    is_json: bool

    def page(self, start: int, size: int) -> str:
        """Return the page that begins at a character and has at most *size* characters; "" behind the end."""
        if not self.is_json:
            return self.text[start : end_of_part(self.text, start, size)]
        return self.text[start : self._end_of_json_page(start, size)]

    def _end_of_json_page(self, start: int, size: int) -> int:
        limit = start + size
        if limit >= len(self.text):
            return len(self.text)
        end = self.text.rfind(_LINE, start, limit) + 1
        if end > start:
            return end
        ends = [match.end() for match in _ESCAPED_LINE.finditer(self.text, start + size // 2, limit)]
        if ends:
            return ends[-1]
        escape = self.text.find("\\", limit - _ESCAPE, limit)
        return limit if escape <= start else escape


class JSONWriter:
    """Writes a JSON value in lines.

    Args:
        width: Characters of a line, at most, unless it has a longer text.
        places: Paths of parts whose first character is noted.

    Attributes:
        starts: The places that were noted, with the number of characters before them.
    """

    def __init__(self, width: int, places: Iterable[Path] = ()) -> None:
        self.starts: dict[Path, int] = {}
        self._width = width
        self._places = set(places)
        self._divided = {place[:length] for place in self._places for length in range(len(place))}
        self._parts: list[str] = []
        self._length = 0

    def text(self, value: Any) -> str:
        """Return the JSON text of a value."""
        self._write(value, ())
        return "".join(self._parts)

    def _write(self, value: Any, path: Path, used: int = 0) -> None:
        """Write a part of the value.

        Args:
            value: The part.
            path: Its path.
            used: The characters before it on its line.
        """
        if path in self._places:
            self.starts[path] = self._length
        compact = encode(value).decode()
        is_short = used + len(compact) + len(_NEXT) <= self._width and path not in self._divided
        if is_short or not value or not isinstance(value, dict | list):
            self._add(compact)
        elif isinstance(value, list):
            self._add("[")
            for index, item in enumerate(value):
                self._add(_NEXT if index else _LINE)
                self._write(item, (*path, index))
            self._add("\n]")
        else:
            self._add("{")
            for count, (name, member) in enumerate(value.items()):
                begin = f"{encode(name).decode()}:"
                self._add(_NEXT if count else _LINE)
                self._add(begin)
                self._write(member, (*path, name), len(begin))
            self._add("\n}")

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

"""Text from outside with its control and hidden characters escaped.

Control characters move a terminal's cursor or reverse the order of a text. Hidden characters have no width: they carry
instructions that a model reads and a person does not see. The page at the endpoint has the same characters in
`_page/files/elements.js`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"  # controls, line separators, lone surrogates
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"  # direction marks, default ignorables of Unicode
    # Joiners and variation selectors belong to scripts and emoji. They hide text after ASCII or after each other, but
    # for one joiner after the selector of an emoji, as in the rainbow flag.
    "|(?<![^\x00-\x7f\u200c\u200d\ufe00-\ufe0f])(?!(?<=[^\x00-\x7f\u200c\u200d\ufe00-\ufe0f]\ufe0f)\u200d)"
    "[\u200c\u200d\ufe00-\ufe0f]"
)

_USUAL = "\t\n\r"
_SHOWN = 5
"""Characters of one text that are named."""

_PASSWORD = re.compile(r"(?<=//)([^/?#@:]*:)[^/?#]*@")
_TOKEN = re.compile(r"(?<=//)[^/?#@:]+@")
"""Credentials without a colon are a token as often as the name of a user."""

_QUERY = re.compile(r"(?<=\?)[^#]+")


def visible_url(url: str) -> str:
    """Return a URL for messages: without its password or token, and without its query, which may contain a key."""
    return _QUERY.sub("***", _TOKEN.sub("***@", _PASSWORD.sub(r"\1***@", url)))


def visible(text: object) -> str:
    r"""Return a text with each hidden or control character escaped, such as ``\x1b``. Tabs and line feeds remain."""
    return UNSAFE.sub(_escape_unless_space, str(text).replace("\r\n", "\n"))


def visible_line(line: str) -> str:
    """Return a text with each hidden or control character escaped, those that end a line included."""
    return UNSAFE.sub(_escape, line)


def _escape_unless_space(match: re.Match[str]) -> str:
    return match[0] if match[0] in "\t\n" else _escape(match)


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


def hidden_in(subject: str, definition: Any) -> Iterator[str]:
    """Yield a sentence for each text of a definition that has hidden or control characters."""
    for place, text in _texts_in(definition, ""):
        characters = list(dict.fromkeys(match[0][0] for match in UNSAFE.finditer(text) if match[0] not in _USUAL))
        if characters:
            names = [f"U+{ord(character):04X}" for character in characters[:_SHOWN]]
            more = " and others" if len(characters) > _SHOWN else ""
            where = f" in {visible_line(place)}" if place else ""
            yield f"{visible_line(subject)} has hidden characters{where}: {', '.join(names)}{more}."


def _texts_in(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a JSON value with their places, names of members included."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, member in value.items():
            inner = f"{place}.{name}" if place else str(name)
            yield f"a name in {place or 'the definition'}", str(name)
            yield from _texts_in(member, inner)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts_in(item, f"{place}[{number}]")

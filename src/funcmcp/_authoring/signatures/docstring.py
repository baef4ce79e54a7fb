"""Descriptions from docstrings: of a feature, and of each of its parameters.

How it works: the docstring is read line by line into parts. A part is either plain lines, or an entry that documents
one parameter. Entries come from sections (``Args:``, ``Parameters`` with an underline, a list of ``- name: text`` under
such a heading) and from reST fields (``:param name: text``). Each part keeps its lines as written, so a description is
the docstring without the entries that clients read elsewhere, and no other text is lost. Code fences are plain lines.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.signatures.partials import signature_of, without_partials

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_PARAMETERS = re.compile(
    r"(?:#{1,6} *)?[*_]{0,3}(?:(?:keyword|other|required|optional|input) +)?"
    r"(?:args|arguments|params|parameters?)[*_]{0,2} *:?[*_]{0,3}",
    re.IGNORECASE,
)
"""Headings of sections that describe parameters."""
_FIELDS = re.compile(
    r"(?:#{1,6} *)?[*_]{0,3}(?:attributes|fields|args|arguments|params|parameters)[*_]{0,2} *:?[*_]{0,3}", re.IGNORECASE
)
"""Headings of sections that describe the fields of a class."""

_UNDERLINE = re.compile(r"[-=~]{3,}")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")
_ENTRY = re.compile(
    r"[`\"']?\*{0,4}[`\"']?(?P<name>[^\W\d]\w*)[`\"']?\*{0,2}[`\"']?\s*"
    r"(?P<type>\([^()]*(?:\([^()]*\)[^()]*){0,8}\)|\[[^\[\]]*\]|<[^<>]*>)?\*{0,2}\s*"
    r"(?:(?P<colon>:\*{0,2}(?=\s|$))|\uff1a|:|\s(?:--?|[\u2013\u2014])\s)\s*(?P<text>.*)"
)
"""A name, its type and its text; a colon before a blank separates them whether the name is known or not."""
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}[^\W\d]\w*(?:\s*,\s*\*{0,2}[^\W\d]\w*){0,20})\s*(?::\s*(?P<text>.*))?")
_REST_FIELD = re.compile(
    r"\s*:(?:param|parameter|arg|argument|key|keyword|kwarg)\s+"
    r"(?:(?P<type>[^:]*?)\s+)?\\?\*{0,2}(?P<name>[^\W\d]\w*)\s*:\s*(?P<text>.*)"
)
_JAVADOC_FIELD = re.compile(
    r"\s*@(?:param|arg|argument)\s+(?:\{(?P<type>[^}]*)\}\s+)?(?P<name>[^\W\d]\w*)(?:\s*:|\s+-|\s)\s*(?P<text>.*)"
)
_REST_TYPE = re.compile(r"\s*:type\s+(?P<name>[^\W\d]\w*)\s*:\s*(?P<type>.*)")
_WORD = re.compile(r"[^\W_]+")
_SCHEMA_WORDS = frozenset(
    [
        *("any", "array", "bool", "boolean", "dict", "dictionary", "float", "int", "integer", "list", "none", "null"),
        *("number", "object", "of", "optional", "or", "required", "set", "str", "string", "tuple", "union"),
    ]
)
"""Words of a type that say nothing beyond the parameter's schema."""
_STRUCTURE = re.compile(r"[-*+•>|]\s|\d{1,3}[.)]\s|```|~~~|>>>|#{1,6}\s|\|")


class Part(NamedTuple):
    """Lines of a docstring.

    Attributes:
        lines: The lines as they are in the docstring.
        names: The parameters that the lines document. Plain text has none.
        text: The description of these parameters.
        heading: The number of the section, if the lines are its heading.
        section: The number of the section that the lines belong to, if any.
        is_type: Whether the lines only name a parameter's type, which its schema also has.
    """

    lines: list[str]
    names: tuple[str, ...] = ()
    text: str = ""
    heading: int | None = None
    section: int | None = None
    is_type: bool = False


def description(function: Any, in_schema: Collection[str] = ()) -> str:
    """Return a callable's docstring without the entries of bound arguments and of those that a schema describes.

    Args:
        function: A function, a `functools.partial` or a callable object.
        in_schema: The descriptions in the schema.
    """
    docstring = docstring_of(function)
    names = _parameter_names(without_partials(function))
    parts = _parts(docstring, names, _PARAMETERS)
    bound = set(names) - set(_parameter_names(function))
    bound_texts = [text for name, text in described_names(parts).items() if name in bound]
    return remaining_text(docstring, parts, {*in_schema, *bound_texts})


def parameter_descriptions(function: Any) -> dict[str, str]:
    """Return the descriptions of parameters in a callable's docstring: Google, NumPy and reST styles, and lists."""
    return described_names(_parts(docstring_of(function), _parameter_names(function), _PARAMETERS))


def described_fields(cls: type, names: Collection[str]) -> dict[str, str]:
    """Return the descriptions of fields in a class's own docstring."""
    return described_names(_parts(inspect.cleandoc(cls.__dict__.get("__doc__") or ""), names, _FIELDS))


def class_description(cls: type, names: Collection[str], in_schema: Collection[str]) -> str:
    """Return a class's own docstring without the entries whose text clients read in a schema."""
    docstring = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    return remaining_text(docstring, _parts(docstring, names, _FIELDS), in_schema)


def descriptions_in(schema: Any) -> set[str]:
    """Return the descriptions of the properties of a JSON schema."""
    properties = schema.get("properties", {}).values() if isinstance(schema, dict) else ()
    return {
        property_schema["description"]
        for property_schema in properties
        if isinstance(property_schema, dict) and isinstance(property_schema.get("description"), str)
    }


def described_names(parts: list[Part]) -> dict[str, str]:
    """Return the text of each documented name. If a name has several entries, the first one counts."""
    descriptions: dict[str, str] = {}
    for part in parts:
        for name in part.names:
            if part.text:
                descriptions.setdefault(name, part.text)
    return descriptions


def remaining_text(docstring: str, parts: list[Part], in_schema: Collection[str]) -> str:
    """Return a docstring without the entries whose text is in a schema, and without headings of empty sections."""
    removed = {name for part in parts if part.text in in_schema for name in part.names}
    remaining = [part for part in parts if not _is_in_schema(part, in_schema, removed)]
    if len(remaining) == len(parts):
        return docstring
    emptied = _emptied_sections(parts, remaining)
    lines: list[str] = []
    for part in remaining:
        if part.heading not in emptied:
            lines += part.lines
    return _without_double_gaps(docstring, "\n".join(line if line.strip() else "" for line in lines).strip())


def _emptied_sections(parts: list[Part], remaining: list[Part]) -> set[int | None]:
    """Return the numbers of the sections with entries of which no text remains."""
    with_entries = {part.section for part in parts if part.names}
    return with_entries - {part.section for part in remaining if _is_filled(part)} - {None}


def _is_in_schema(part: Part, in_schema: Collection[str], removed: Collection[str]) -> bool:
    if part.is_type:
        return part.names[0] in removed
    return bool(part.names) and part.text in in_schema


def _is_filled(part: Part) -> bool:
    return any(line.strip() for line in part.lines)


def docstring_of(function: Any) -> str:
    """Return a callable's docstring. For a `functools.partial` without its own it is that of the inner function."""
    docstring = getattr(function, "__doc__", None)
    if docstring == functools.partial.__doc__:
        function = without_partials(function)
        docstring = function.__doc__
    if not docstring and not inspect.isroutine(function):
        docstring = type(function).__call__.__doc__
    return inspect.cleandoc(docstring or "")


def _without_double_gaps(docstring: str, text: str) -> str:
    """Remove double blank lines that removed entries leave, unless the author used some."""
    if "\n\n\n" in docstring:
        return text
    return re.sub(r"\n{3,}", "\n\n", text)


def _parameter_names(function: Any) -> Collection[str]:
    try:
        return signature_of(function).parameters.keys()
    except (TypeError, ValueError):
        return ()


def _parts(docstring: str, names: Collection[str], heading: re.Pattern[str]) -> list[Part]:
    return list(_Reader(docstring.split("\n"), names, heading).parts())


class _Reader:
    """Reads the parts of a docstring.

    Args:
        lines: The docstring's lines, without common indentation.
        names: The names of the parameters, which distinguish entries from plain text.
        heading: Matches the headings of sections with entries.
    """

    def __init__(self, lines: list[str], names: Collection[str], heading: re.Pattern[str]) -> None:
        self._lines = lines
        self._names = names
        self._heading = heading
        self._next = 0
        self._sections = 0

    def parts(self) -> Iterator[Part]:
        while self._next < len(self._lines):
            line = self._lines[self._next]
            field = _REST_FIELD.fullmatch(line) or _JAVADOC_FIELD.fullmatch(line)
            if _FENCE.match(line):
                yield Part(self._fenced())
            elif field is not None:
                yield self._rest_field(field)
            elif self._heading.fullmatch(line.rstrip()):
                yield from self._section()
            else:
                self._next += 1
                yield _line_part(line)

    def _fenced(self) -> list[str]:
        """Return the lines of a code fence. A fence that is not closed ends with the docstring."""
        start = self._next
        match = _FENCE.match(self._lines[start])
        mark = match[1] if match else ""
        self._next += 1
        while self._next < len(self._lines):
            self._next += 1
            if self._lines[self._next - 1].strip().startswith(mark):
                break
        return self._lines[start : self._next]

    def _rest_field(self, field: re.Match[str]) -> Part:
        start = self._next
        self._next += 1
        self._next += len(self._deeper(_indentation(self._lines[start])))
        lines = self._lines[start : self._next]
        return Part(lines, (field["name"],), _text(field["type"], field["text"], lines[1:]))

    def _deeper(self, indentation: int) -> list[str]:
        """Return the lines from here that are indented deeper, with blank lines between them."""
        end = index = self._next
        while index < len(self._lines):
            line = self._lines[index]
            if line.strip() and _indentation(line) <= indentation:
                break
            index += 1
            if line.strip():
                end = index
        return self._lines[self._next : end]

    def _section(self) -> Iterator[Part]:
        self._sections += 1
        section = self._sections
        start = self._next
        self._next += 1
        underlined = self._next < len(self._lines) and _UNDERLINE.fullmatch(self._lines[self._next].strip()) is not None
        if underlined:
            self._next += 1
        yield Part(self._lines[start : self._next], heading=section)
        while self._next < len(self._lines):
            blank = self._blank_lines()
            if self._next < len(self._lines) and _indentation(self._lines[self._next]) > 0:
                parts = self._indented_entries()
            else:
                parts = self._entry_without_indentation(underlined=underlined)
            if blank:
                yield Part(blank, section=section if parts else None)
            if not parts:
                return
            yield from (part._replace(section=section) for part in parts)

    def _blank_lines(self) -> list[str]:
        start = self._next
        while self._next < len(self._lines) and not self._lines[self._next].strip():
            self._next += 1
        return self._lines[start : self._next]

    def _indented_entries(self) -> list[Part]:
        """Return the entries of an indented block. Lines before the first entry are plain text."""
        block = self._deeper(0)
        self._next += len(block)
        parts: list[Part] = []
        base: int | None = None
        start = 0
        entry: re.Match[str] | None = None
        for index, line in enumerate([*block, None]):
            match = None if line is None else self._entry(line, base)
            if match is None and line is not None:
                continue
            if index > start:
                parts.append(_entry_part(block[start:index], entry))
            if match is not None and line is not None:
                base = _indentation(line) if base is None else base
            entry, start = match, index
        return parts

    def _entry(self, line: str, base: int | None) -> re.Match[str] | None:
        """Return the match of a line that begins an entry of an indented block."""
        text = line.strip()
        if not text or (base is not None and _indentation(line) > base):
            return None
        match = _ENTRY.fullmatch(_without_bullet(text))
        if match is None:
            return None
        if match["name"] in self._names or match["colon"] is not None:
            return match
        return None

    def _entry_without_indentation(self, *, underlined: bool) -> list[Part]:
        """Return the entry that begins at this line, which is not indented. The end of the section has none."""
        if self._next >= len(self._lines):
            return []
        line = self._lines[self._next]
        bullet = _BULLET.match(line)
        entry = _ENTRY.fullmatch(_without_bullet(line.strip()))
        start = self._next
        self._next += 1
        deeper = self._deeper(0)
        self._next += len(deeper)
        lines = self._lines[start : self._next]
        if underlined and not bullet:
            numpy = _NUMPY_ENTRY.fullmatch(line.strip())
            follows = self._lines[start + 1].strip() if start + 1 < len(self._lines) else ""
            if numpy is not None and not _UNDERLINE.fullmatch(follows):
                names = tuple(name.strip(" *") for name in numpy["names"].split(","))
                if deeper:
                    return [Part(lines, names, _text(numpy["text"], "", deeper))]
                if names[0] in self._names:
                    text = numpy["text"] if _says_more_than_a_schema(numpy["text"]) else ""
                    return [Part(lines, names, text)]
        elif entry is not None and (bullet or entry["name"] in self._names):
            return [_entry_part(lines, entry)]
        self._next = start
        return []


def _without_bullet(text: str) -> str:
    bullet = _BULLET.match(text)
    if bullet:
        return text[bullet.end() :]
    return text


def _line_part(line: str) -> Part:
    type_field = _REST_TYPE.fullmatch(line)
    if type_field is None or _says_more_than_a_schema(type_field["type"]):
        return Part([line])
    return Part([line], (type_field["name"],), is_type=True)


def _entry_part(lines: list[str], entry: re.Match[str] | None) -> Part:
    if entry is None:
        return Part(lines)
    return Part(lines, (entry["name"],), _text((entry["type"] or "")[1:-1], entry["text"], lines[1:]))


def _text(type_text: str | None, first: str, following: list[str]) -> str:
    """Return the text of an entry: its type if it says more than a schema, its first line, and the lines below."""
    if _says_more_than_a_schema(type_text):
        first = f"({type_text}) {first}".rstrip()
    below = textwrap.dedent("\n".join(following)).rstrip()
    lines = below.split("\n") if below else []
    if any(not line.strip() or line[0] == " " or _STRUCTURE.match(line) for line in lines):
        return f"{first}\n{below}".strip()
    return " ".join([first, *lines]).strip()


def _says_more_than_a_schema(type_text: str | None) -> bool:
    return any(word.lower() not in _SCHEMA_WORDS for word in _WORD.findall(type_text or ""))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())

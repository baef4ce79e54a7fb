"""URI templates (RFC 6570), read backwards: from a URI to the values of its template's variables.

The forms that resource templates use: `{a}` (one path segment or less), `{+a}` (reserved characters too), `{a*}` (the
segments of a path, as a list), `{?q,r*}` (query parameters, each of them optional; `r*` takes all values of `r`, as a
list). No value but those of a query is empty. Matching takes time proportional to the length of the URI, whatever the
client sends.

Source: RFC 6570 section 3; 2026-07-28 "server/resources, Security" (values are checked for path traversal).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

Values: TypeAlias = dict[str, str | list[str]]

MAX_URI = 8192
"""Characters; a longer URI matches nothing."""

_EXPRESSION = re.compile(r"\{([+?]?)([A-Za-z_][A-Za-z0-9_]*\*?(?:,[A-Za-z_][A-Za-z0-9_]*\*?)*)\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DRIVE = re.compile(r"[A-Za-z]:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNSAFE = "The URI has a value that is not allowed: '..', an absolute path, a backslash or NUL."


class InvalidTemplateError(ValueError):
    """The text is no template that funcmcp can match; the message says why."""


class UnsafeValueError(ValueError):
    """A URI has a value that could lead out of where it belongs, such as `..`."""


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    reserved: bool = False
    exploded: bool = False


class URITemplate:
    """A template, parsed once.

    Args:
        text: such as `menu://categories/{category_id}{?lang}`.

    Raises:
        InvalidTemplateError: the text has no scheme, an expression that is not supported, the same variable or a
            query twice, or two variables with nothing between them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._query: tuple[str, ...] = ()
        self.repeated: frozenset[str] = frozenset()
        """The variables of the query that take all values of their name, as a list."""
        parts = list(self._parse(text))
        variables = [part for part in parts if isinstance(part, _Variable)]
        self._path = tuple(variables)
        literals = [part for part in parts if isinstance(part, str)]
        if len(literals) == len(variables):
            literals.append("")
        self._begin, self._end = literals[0], literals[-1]
        # A variable of many segments takes what all the others leave; where there is none, the last one does.
        many = (index for index, variable in enumerate(variables) if variable.reserved or variable.exploded)
        widest = next(many, len(variables) - 1)
        self._left, self._right = tuple(literals[1 : widest + 1]), tuple(literals[-2:widest:-1])
        """The literals between the variables before the widest one, and those behind it from the right."""
        self.variables = tuple(variable.name for variable in variables) + self._query
        if len(set(self.variables)) != len(self.variables):
            raise InvalidTemplateError(f"The template {text!r} has a variable twice.")

    @property
    def exploded(self) -> frozenset[str]:
        """The variables that take all segments of a path, as a list."""
        return frozenset(variable.name for variable in self._path if variable.exploded)

    @property
    def optional(self) -> tuple[str, ...]:
        """The variables of the query, each of which a URI may leave out."""
        return self._query

    def match(self, uri: str) -> Values | None:
        """Return the decoded values of a URI that the template describes, or None.

        Raises:
            UnsafeValueError: a value is a path that leads upwards, an absolute one, or has a NUL or a backslash.
        """
        if not uri.startswith(self._begin) or len(uri) > MAX_URI:
            return None
        path, mark, query = uri.partition("?") if self._query else (uri, "", "")
        values = self._match_path(path)
        if values is None:
            return None
        given = self._match_query(query) if mark else {}
        if given is None:
            return None
        for value in values.values():
            _check(value)
        for value in given.values():
            for text in (value,) if isinstance(value, str) else value:  # together they are no path
                _check(text)
        values.update(given)
        return values

    def _match_path(self, text: str) -> Values | None:
        values: Values = {}
        raws = self._split(text)
        if raws is None:
            return None
        for variable, raw in zip(self._path, raws, strict=True):
            decoded = _decoded(raw) if _allowed(raw, variable) else None
            if not decoded:
                return None
            values[variable.name] = [unquote(piece) for piece in raw.split("/")] if variable.exploded else decoded
        return values

    def _split(self, text: str) -> list[str] | None:
        """Return what stands between the literals: from the left up to the widest variable, then from the right.

        Every other variable takes as little as it can. A longer value would have in it all that the shorter one has, so
        there is nothing to try twice.
        """
        if not self._path:
            return [] if text == self._begin else None
        if not text.endswith(self._end):
            return None
        start, end = len(self._begin), len(text) - len(self._end)
        left: list[str] = []
        right: list[str] = []
        for literal in self._left:
            found = text.find(literal, start + 1, end)
            if found < 0:
                return None
            left.append(text[start:found])
            start = found + len(literal)
        for literal in self._right:
            found = text.rfind(literal, start, end - 1)
            if found < 0:
                return None
            right.append(text[found + len(literal) : end])
            end = found
        left.append(text[start:end])
        return left + right[::-1] if right else left

    def _match_query(self, query: str) -> Values | None:
        """Read the query's parameters; with one that is unknown or one too many, the URI is another resource's."""
        values: Values = {}
        for name, raw in (pair.partition("=")[::2] for pair in query.split("&") if pair):
            value = _decoded(raw.replace("+", " "))
            if name not in self._query or value is None:
                return None
            known = values.setdefault(name, [] if name in self.repeated else value)
            if isinstance(known, list):
                known.append(value)
            elif known is not value:
                return None
        return values

    def _parse(self, text: str) -> Iterator[str | _Variable]:
        if not _SCHEME.match(text):
            raise InvalidTemplateError(f"The URI {text!r} must begin with a scheme, such as 'menu://'.")
        position = 0
        for match in _EXPRESSION.finditer(text):
            literal = text[position : match.start()]
            if literal:
                yield _checked(literal, text)
            elif position and match[1] != "?":
                raise InvalidTemplateError(f"The template {text!r} has two variables with nothing between them.")
            position = match.end()
            operator, names = match.groups()
            if operator == "?":
                if position != len(text) or "?" in text[: match.start()]:
                    raise InvalidTemplateError(
                        f"In the template {text!r} the query must stand at the end, and only there."
                    )
                self._query = tuple(names.replace("*", "").split(","))
                self.repeated = frozenset(name[:-1] for name in names.split(",") if name.endswith("*"))
            elif "," in names:
                raise InvalidTemplateError(f"In the template {text!r} write {{a}}/{{b}} for {{a,b}}.")
            else:
                yield _Variable(names.rstrip("*"), reserved=operator == "+", exploded=names.endswith("*"))
        if position < len(text):
            yield _checked(text[position:], text)


def _checked(literal: str, text: str) -> str:
    if "{" in literal or "}" in literal:
        raise InvalidTemplateError(
            f"The template {text!r} has an expression that is not supported; use {{a}}, {{+a}}, {{a*}} or {{?a,b*}}."
        )
    return literal


def _allowed(raw: str, variable: _Variable) -> bool:
    if variable.reserved:
        return True
    return "?" not in raw and "#" not in raw and (variable.exploded or "/" not in raw)


def _decoded(raw: str) -> str | None:
    """Return percent-decoded text, or None if it is not UTF-8 or has half an escape, as a literal may leave one."""
    if "%" not in raw:
        return raw
    if _BAD_ESCAPE.search(raw):
        return None
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None


def _check(value: str | list[str]) -> None:
    """Look at a value as a path; a list of segments also as the path that they are together."""
    for path in (value,) if type(value) is str else (*value, "/".join(value)):
        upwards = ".." in path and ".." in path.split("/")
        drive = path[1:2] == ":" and _DRIVE.match(path) is not None
        if upwards or drive or "\0" in path or "\\" in path or path[:1] == "/":
            raise UnsafeValueError(_UNSAFE)

"""URI templates (RFC 6570), read backwards: from a URI to the values of its template's variables.

The forms that resource templates use: `{a}` (one path segment or less), `{+a}` (reserved characters too), `{a*}` (the
segments of a path, as a list), `{?q,r}` (query parameters, each of them optional). Matching takes time proportional to
the length of the URI, whatever the client sends.

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

_EXPRESSION = re.compile(r"\{([+?]?)([A-Za-z_][A-Za-z0-9_,]*)(\*?)\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DRIVE = re.compile(r"[A-Za-z]:(/|$)")
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
        InvalidTemplateError: the text has no scheme, an expression that is not supported, the same variable twice,
            or two variables with nothing between them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._query: tuple[str, ...] = ()
        parts = list(self._parse(text))
        self._begin = str(parts[0])
        self._steps = tuple(_steps(parts[1:]))
        self.variables = tuple(variable.name for variable, _ in self._steps) + self._query
        if len(set(self.variables)) != len(self.variables):
            raise InvalidTemplateError(f"The template {text!r} has a variable twice.")

    @property
    def optional(self) -> tuple[str, ...]:
        """The variables of the query, each of which a URI may leave out."""
        return self._query

    def match(self, uri: str) -> Values | None:
        """Return the decoded values of a URI that the template describes, or None.

        Raises:
            UnsafeValueError: a value is a path that leads upwards, an absolute one, or has a NUL or a backslash.
        """
        if not uri.startswith(self._begin) or len(uri) > MAX_URI or ("%" in uri and _BAD_ESCAPE.search(uri)):
            return None
        path, mark, query = uri.partition("?") if self._query else (uri, "", "")
        values = self._match_path(path)
        if values is None:
            return None
        for value in values.values():
            if type(value) is str:
                _check(value)
            else:
                for piece in value:
                    _check(piece)
        if not mark:
            return values
        given = self._match_query(query)
        return None if given is None else {**values, **given}

    def _match_query(self, query: str) -> Values | None:
        """Read the query's parameters; with one that is unknown or comes twice, the URI is another resource's."""
        values: Values = {}
        for name, raw in (pair.partition("=")[::2] for pair in query.split("&") if pair):
            value = _decoded(raw.replace("+", " "))
            if name not in self._query or name in values or value is None:
                return None
            if "\0" in value:
                raise UnsafeValueError(_UNSAFE)
            values[name] = value
        return values

    def _match_path(self, text: str) -> Values | None:
        """Walk the variables from left to right; the text begins as the template does.

        A plain variable ends at the first place where the literal after it stands, a reserved or exploded one at the
        last: there is nothing to try twice.
        """
        values: Values = {}
        position = len(self._begin)
        for variable, literal in self._steps:
            end = _end(text, position, variable, literal) if literal else len(text)
            raw = text[position:end] if end >= 0 else ""
            decoded = _decoded(raw) if _allowed(raw, variable) else None
            if not decoded:
                return None
            values[variable.name] = [unquote(piece) for piece in raw.split("/")] if variable.exploded else decoded
            position = end + len(literal)
        return values if position == len(text) else None

    def _parse(self, text: str) -> Iterator[str | _Variable]:
        if not _SCHEME.match(text):
            raise InvalidTemplateError(f"The template {text!r} must begin with a scheme, such as 'menu://'.")
        position = 0
        for match in _EXPRESSION.finditer(text):
            literal = text[position : match.start()]
            if literal:
                yield _checked(literal, text)
            elif position and match[1] != "?":
                raise InvalidTemplateError(f"The template {text!r} has two variables with nothing between them.")
            position = match.end()
            operator, names, star = match.groups()
            if operator == "?":
                if position != len(text) or star:
                    raise InvalidTemplateError(f"In the template {text!r} the query must stand at the end.")
                self._query = tuple(names.split(","))
            elif "," in names:
                raise InvalidTemplateError(f"In the template {text!r} write {{a}}/{{b}} for {{a,b}}.")
            else:
                yield _Variable(names, reserved=operator == "+", exploded=star == "*")
        if position < len(text):
            yield _checked(text[position:], text)


def _checked(literal: str, text: str) -> str:
    if "{" in literal or "}" in literal:
        raise InvalidTemplateError(
            f"The template {text!r} has an expression that is not supported; use {{a}}, {{+a}}, {{a*}} or {{?a,b}}."
        )
    return literal


def _steps(parts: list[str | _Variable]) -> Iterator[tuple[_Variable, str]]:
    """Return each variable with the literal that ends it; an empty one for the last, where none does."""
    for part, following in zip(parts, [*parts, ""][1:], strict=True):
        if isinstance(part, _Variable):
            yield part, str(following)


def _end(text: str, start: int, variable: _Variable, literal: str) -> int:
    if variable.reserved or variable.exploded:
        return text.rfind(literal, start)
    return text.find(literal, start)


def _allowed(raw: str, variable: _Variable) -> bool:
    if variable.reserved:
        return True
    return "?" not in raw and "#" not in raw and (variable.exploded or "/" not in raw)


def _decoded(raw: str) -> str | None:
    """Return percent-decoded text, or None if it is not UTF-8."""
    if "%" not in raw:
        return raw
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None


def _check(value: str) -> None:
    upwards = ".." in value and ".." in value.split("/")
    drive = value[1:2] == ":" and _DRIVE.match(value) is not None
    if upwards or drive or "\0" in value or "\\" in value or value[0:1] == "/":
        raise UnsafeValueError(_UNSAFE)

"""URI templates (RFC 6570), and matching URIs against them.

Templates may have these expressions:

- `{a}`: one path segment or a part of it;
- `{+a}`: any text, with reserved characters;
- `{a*}`: segments of a path, as a list;
- `{/a,b*}`: a slash before each value;
- `{?q,r*}` and `{&q,r*}`: optional query parameters. `r*` has all values of `r`, as a list.

Names may have hyphens, and the variable of ``{user-id}`` is ``user_id``. Values are not empty, except those of a query.
The scheme may have any case. A fragment names a part of the resource, so it is left out, and so are parameters of the
query that the template does not have. Only `{+a}` takes them, if there is no `{?q}`. Characters that a URI can't have
match their percent-encoded form (section 3.1). Matching takes time proportional to the length of the URI.

Source: RFC 6570 section 3; 2026-07-28 "server/resources, Security" (values are checked for path traversal).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

Values: TypeAlias = dict[str, str | list[str]]

MAX_URI = 8192
"""Maximum number of characters. A longer URI does not match."""

_EXPRESSION = re.compile(r"\{([+?&/]?)([A-Za-z_][A-Za-z0-9_-]*\*?(?:,[A-Za-z_][A-Za-z0-9_-]*\*?)*)\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DRIVE = re.compile(r"[A-Za-z]:")
_DRIVE_PATH = re.compile(r"[A-Za-z]:(/|$)")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_RESERVED = ":/?#[]@!$&'()*+,;="
"""Characters that ``{+a}`` leaves as they are (RFC 3986 section 2.2)."""
_CANONICAL = re.compile(r"[\w:/?#\[\]@!$&'()*+,;=.~-]*", re.ASCII)
"""A text without characters that may be percent-encoded."""
_LOWER_ESCAPE = re.compile(r"%(?=.?[a-f])[0-9A-Fa-f]{2}")

_UNSAFE = "The URI has a value that is not allowed: '..', an absolute path, a backslash or NUL."


class InvalidTemplateError(ValueError):
    """The text is not a template that `URITemplate` supports."""


class UnsafeValueError(ValueError):
    """A URI has a value that could lead to a path traversal, such as `..`.

    Args:
        message: The text.
        is_hidden: Whether clients get the error of a resource that does not exist.
    """

    def __init__(self, message: str, *, is_hidden: bool = False) -> None:
        super().__init__(message)
        self.is_hidden: bool = is_hidden


@dataclass(frozen=True, slots=True)
class Screening:
    """Which values of variables a template rejects.

    Attributes:
        is_strict: Whether values are rejected that are a path with ``..`` or an absolute path, or have a NUL or a
            backslash.
        rules: Functions that get the values, and return whether they are rejected.
        is_hidden: Whether clients get the error of a resource that does not exist.
        is_inherited: Whether the rules are those of the server, so that a server that mounts it adds its own.
    """

    is_strict: bool = True
    rules: tuple[Callable[[Values], bool], ...] = ()
    is_hidden: bool = False
    is_inherited: bool = True


STRICT = Screening()


class _Variable(NamedTuple):
    name: str
    reserved: bool = False
    exploded: bool = False


class URITemplate:
    """A parsed template.

    How it works: of variables in one segment of a path, each but the first takes as little as it can, so ``{a}.{b}``
    splits at the last point. One variable may have several segments, and takes the text that the others leave. Literals
    behind it are searched from the right. Those before it are divided into runs. A run ends with a literal that has a
    slash, which is searched from the left because no value before it has one, or with the last literal. Within a run,
    literals are searched from the right. A longer value would contain the shorter one, so nothing is tried twice.

    Args:
        text: A template such as ``menu://categories/{category_id}{?lang}``.
        joined: Variables of the query whose values are lists joined with commas, as in ``?tags=a,b``.
        screening: Which values are rejected.

    Attributes:
        text: The template.
        variables: Names of all variables, those of the query last.
        repeated: Names of the query variables whose values are lists, each in a parameter of its own.
        joined: Names of the query variables whose values are lists joined with commas.
        screening: Which values are rejected.

    Raises:
        InvalidTemplateError: The text has no scheme, an expression that is not supported, the same variable twice, a
            query as a text and as an expression, or two variables without text between them.
    """

    def __init__(self, text: str, *, joined: Collection[str] = (), screening: Screening = STRICT) -> None:
        self.text: str = text
        self.screening: Screening = screening
        # Elsewhere "a:b" is a value like any other. In a path of Windows it is a file of the drive A.
        self._drive = _DRIVE if text[:5].lower() == "file:" else _DRIVE_PATH
        self._query: tuple[str, ...] = ()
        self._names: dict[str, str] = {}
        """The variables of the query by the names of their parameters, which may have hyphens."""
        self.repeated: frozenset[str] = frozenset()
        parts = _without_neighbours(list(self._parse(text)), text)
        variables = [part for part in parts if isinstance(part, _Variable)]
        self._path = tuple(variables)
        literals = [part for part in parts if isinstance(part, str)]
        if len(literals) == len(variables):
            literals.append("")
        self._begin = with_lower_scheme(literals[0])
        self._end = literals[-1]
        widest = _widest(variables)
        self._left_runs = _runs(literals[1 : widest + 1])
        """The literals between the variables before the widest one."""
        self._right = literals[widest + 1 : -1]
        """The literals between the variables behind the widest one."""
        self._takes_any = any(variable.reserved for variable in variables)
        self._has_literal_query = any("?" in literal or "#" in literal for literal in literals)
        self.variables: tuple[str, ...] = tuple(variable.name for variable in variables) + self._query
        self.joined: frozenset[str] = frozenset(joined).intersection(self._query) - self.repeated
        self._check()

    def _check(self) -> None:
        """Raise InvalidTemplateError if the template has two queries, or a variable twice."""
        if self._has_literal_query and self._query:
            raise InvalidTemplateError(
                f"The template {self.text!r} has a '?' or '#' in its text, so it can't have {{?a}}."
            )
        if len(set(self.variables)) != len(self.variables):
            raise InvalidTemplateError(f"The template {self.text!r} has a variable twice.")

    @property
    def names(self) -> dict[str, str]:
        """The names of the variables in the text, which may have hyphens, by variable."""
        expressions = [match[2].split(",") for match in _EXPRESSION.finditer(self.text)]
        return {variable_name(name): name.rstrip("*") for names in expressions for name in names}

    @property
    def exploded(self) -> frozenset[str]:
        """The variables whose values are lists of path segments."""
        return frozenset(variable.name for variable in self._path if variable.exploded)

    @property
    def optional(self) -> tuple[str, ...]:
        """The variables of the query, which are all optional."""
        return self._query

    def match(self, uri: str) -> Values | None:
        """Return the decoded values of the variables in a URI, or None if the URI does not match.

        Raises:
            UnsafeValueError: A value is a path with ``..`` or an absolute path, or has a NUL or a backslash.
        """
        values = self.unchecked_match(uri)
        if values is None:
            return None
        screening = self.screening
        if screening.is_strict and not self._is_safe(uri, values):
            raise UnsafeValueError(_UNSAFE, is_hidden=screening.is_hidden)
        if any(rejects(values) for rejects in screening.rules):
            raise UnsafeValueError(_UNSAFE, is_hidden=screening.is_hidden)
        return values

    def _is_safe(self, uri: str, values: Values) -> bool:
        """Return whether no value leads out of the place that the template stands for."""
        path, _ = self._divided(with_lower_scheme(uri))
        if ".." in unquote(path).split("/"):  # of a value and the text beside it, as in {dir}/.{name}
            return False
        for name, value in values.items():
            texts = [value] if isinstance(value, str) else value
            # The values of a parameter of the query are separate: joined they are not a path.
            paths = texts if isinstance(value, str) or name in self._query else [*texts, "/".join(texts)]
            if not all(is_safe(path, self._drive) for path in paths):
                return False
        return True

    def with_text(self, text: str) -> URITemplate:
        """Return a template with another text, whose values are read and rejected as those of this one."""
        return type(self)(text, joined=self.joined, screening=self.screening)

    def with_screening(self, screening: Screening) -> URITemplate:
        """Return a template that rejects other values."""
        return type(self)(self.text, joined=self.joined, screening=screening)

    def unchecked_match(self, uri: str) -> Values | None:
        """Return the values as `match` does, without the checks for a path traversal."""
        if len(uri) > MAX_URI:
            return None
        path, query = self._divided(_canonical(with_lower_scheme(uri)))
        if not path.startswith(self._begin):
            return None
        values = self._match_path(path)
        if values is None:
            return None
        parameters = self._match_query(query)
        if parameters is None:
            return None
        return values | parameters

    def expand(self, values: Mapping[str, object]) -> str:
        """Return the URI for values of the variables; those of the query may be missing.

        Raises:
            KeyError: A value of the path is missing.
        """
        uri = ""
        position = 0
        has_query = False
        for match in _EXPRESSION.finditer(self.text):
            uri += _canonical(self.text[position : match.start()])
            position = match.end()
            operator, names = match.groups()
            if operator and operator in "?&":
                pairs = self._expanded_query(names, values)
                uri += f"{'&' if has_query else '?'}{pairs}" if pairs else ""
                has_query = has_query or bool(pairs)
                continue
            for name in names.split(","):
                uri += "/" if operator == "/" else ""
                uri += _expanded(values[variable_name(name)], name, is_reserved=operator == "+")
        return uri + _canonical(self.text[position:])

    def _expanded_query(self, names: str, values: Mapping[str, object]) -> str:
        pairs = []
        for parameter in names.replace("*", "").split(","):
            variable = variable_name(parameter)
            value = values.get(variable)
            items = [quote(str(item), safe="") for item in (value if isinstance(value, list) else [value])]
            if variable in self.joined and value:
                pairs.append(f"{parameter}={','.join(items)}")
            elif value is not None:
                pairs += [f"{parameter}={item}" for item in items]
        return "&".join(pairs)

    def _divided(self, uri: str) -> tuple[str, str]:
        """Return the part of a URI that the path matches, and its query."""
        if self._takes_any:
            if not self._query:
                return uri, ""
            path, _, query = uri.partition("?")
            return path, query.partition("#")[0]
        if self._has_literal_query:
            return uri, ""
        path, _, query = uri.partition("#")[0].partition("?")
        return path, query

    def _match_path(self, text: str) -> Values | None:
        values: Values = {}
        raws = self._split(text)
        if raws is None:
            return None
        for variable, raw in zip(self._path, raws, strict=True):
            decoded = _decode(raw) if _is_allowed(raw, variable) else None
            if not decoded:
                return None
            if variable.exploded:
                values[variable.name] = [unquote(segment) for segment in raw.split("/")]
            else:
                values[variable.name] = decoded
        return values

    def _split(self, text: str) -> list[str] | None:
        """Return the texts between the literals, or None if a literal is missing."""
        if not self._path:
            return [] if text == self._begin else None
        if not text.endswith(self._end):
            return None
        start, end = len(self._begin), len(text) - len(self._end)
        left: list[str] = []
        for *inner, last in self._left_runs:
            if "/" in last:
                position = text.find(last, start + 1, end)
            else:
                slash = text.find("/", start, end)
                position = text.rfind(last, start + 1, end - 1 if slash < 0 else slash)
            values = None if position < 0 else _split_from_right(text, start, position, inner)
            if values is None:
                return None
            left += values
            start = position + len(last)
        right = _split_from_right(text, start, end, self._right)
        return None if right is None else [*left, *right]

    def _match_query(self, query: str) -> Values | None:
        """Return the values of the query's parameters, the first for a repeated one. None if one is malformed."""
        values: dict[str, str] = {}
        lists: dict[str, list[str]] = {}
        for pair in query.split("&"):
            if not pair:
                continue
            parameter, _, raw = pair.partition("=")
            name = self._names.get(parameter)
            if name is None:
                continue
            items = raw.split(",") if name in self.joined and raw else [raw]
            texts = [_decode(item.replace("+", " ")) for item in items]
            if any(text is None for text in texts):
                return None
            decoded = [text for text in texts if text is not None]
            if name in self.repeated:
                lists.setdefault(name, []).extend(decoded)
            elif name in self.joined:
                lists.setdefault(name, decoded if raw else [])
            else:
                values.setdefault(name, decoded[0])
        return {**values, **lists}

    def _parse(self, text: str) -> Iterator[str | _Variable]:
        if not _SCHEME.match(text):
            raise InvalidTemplateError(f"The URI {text!r} must begin with a scheme, such as 'menu://'.")
        position = 0
        for match in _EXPRESSION.finditer(text):
            if position < match.start():
                yield _check_literal(text[position : match.start()], text)
            position = match.end()
            operator, names = match.groups()
            if operator and operator in "?&":
                parameters = names.split(",")
                variables = tuple(map(variable_name, parameters))
                self._query += variables
                self._names.update(zip(names.replace("*", "").split(","), variables, strict=True))
                self.repeated |= {variable_name(name) for name in parameters if name.endswith("*")}
            elif operator == "/":
                for name in names.split(","):
                    yield "/"
                    yield _Variable(variable_name(name), exploded=name.endswith("*"))
            elif "," in names:
                raise InvalidTemplateError(f"In the template {text!r} write {{a}}/{{b}} instead of {{a,b}}.")
            else:
                yield _Variable(variable_name(names), reserved=operator == "+", exploded=names.endswith("*"))
        if position < len(text):
            yield _check_literal(text[position:], text)


def _expanded(value: object, name: str, *, is_reserved: bool) -> str:
    """Return the text of a value in the path of a URI."""
    if isinstance(value, list):
        return "/".join(quote(str(segment), safe="") for segment in value)
    if is_reserved:
        return quote(str(value), safe=_RESERVED)
    return quote(str(value), safe="/" if name.endswith("*") else "")


def _widest(variables: list[_Variable]) -> int:
    """Return the index of the variable that takes the text that the others leave.

    It is that of several segments, and without one the first.
    """
    wide = (index for index, variable in enumerate(variables) if variable.reserved or variable.exploded)
    return next(wide, 0)


def _without_neighbours(parts: list[str | _Variable], text: str) -> list[str | _Variable]:
    """Return the parts of a template with literals joined; raise InvalidTemplateError for two variables in a row."""
    joined: list[str | _Variable] = []
    for part in parts:
        previous = joined[-1] if joined else None
        if isinstance(part, _Variable) and isinstance(previous, _Variable):
            raise InvalidTemplateError(f"The template {text!r} has two variables without text between them.")
        if isinstance(part, str) and isinstance(previous, str):
            joined[-1] = previous + part
        else:
            joined.append(part)
    return joined


def variable_name(name: str) -> str:
    """Return the name of the parameter for a name in a template."""
    return name.rstrip("*").replace("-", "_")


def _canonical(text: str) -> str:
    """Return a URI or a literal with percent-encoded characters where a URI can't have them; section 3.1."""
    if _CANONICAL.fullmatch(text):
        return text
    encoded = quote(text, safe=f"{_RESERVED}%", errors="surrogatepass")
    return _LOWER_ESCAPE.sub(lambda escape: escape[0].upper(), encoded)


def with_lower_scheme(uri: str) -> str:
    """Return a URI with its scheme in lower case: the case makes no difference (RFC 3986 section 6.2.2.1)."""
    scheme, colon, remainder = uri.partition(":")
    return f"{scheme.lower()}{colon}{remainder}"


def _runs(literals: list[str]) -> list[list[str]]:
    """Return literals divided after each one that has a slash."""
    runs: list[list[str]] = []
    begins = True
    for literal in literals:
        if begins:
            runs.append([])
        runs[-1].append(literal)
        begins = "/" in literal
    return runs


def _split_from_right(text: str, start: int, end: int, literals: list[str]) -> list[str] | None:
    """Return the texts between literals in a part of a text. Each but the first is as short as it can be.

    Return None if a literal is missing.
    """
    texts: list[str] = []
    for literal in reversed(literals):
        position = text.rfind(literal, start, end - 1)
        if position < 0:
            return None
        texts.append(text[position + len(literal) : end])
        end = position
    return [text[start:end], *reversed(texts)]


def _check_literal(literal: str, text: str) -> str:
    if "{" in literal or "}" in literal:
        raise InvalidTemplateError(
            f"The template {text!r} has an expression that is not supported. Use {{a}}, {{+a}}, {{a*}} or {{?a,b*}}."
        )
    return _canonical(literal)


def _is_allowed(raw: str, variable: _Variable) -> bool:
    if variable.reserved:
        return True
    return "?" not in raw and "#" not in raw and (variable.exploded or "/" not in raw)


def _decode(raw: str) -> str | None:
    """Return percent-decoded text, or None if it is not UTF-8 or has an incomplete escape."""
    if "%" not in raw:
        return raw
    if _BAD_ESCAPE.search(raw):
        return None
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None


def is_safe(path: str, drive: re.Pattern[str] = _DRIVE_PATH) -> bool:
    """Return whether a value of a variable stays below a folder that it is appended to."""
    upwards = ".." in path and ".." in path.split("/")
    has_drive = path[1:2] == ":" and drive.match(path) is not None
    return not (upwards or has_drive or "\0" in path or "\\" in path or path[:1] == "/")

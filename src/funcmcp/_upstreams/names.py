"""Names of an upstream's features here: allowed characters, short names, templates of URIs, and `only=`.

How it works: a feature keeps its name, or gets one that depends on its name and on nothing else, so no other feature
can change it. Its handler has the name at the upstream, so names are never taken apart. The prefix of the mount comes
later (`_providers/namespace.py`), and after it `NameLengths`, which sees names as clients do.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote

from funcmcp._authoring.signatures.naming import is_name, is_text
from funcmcp._objects.mappings import remember
from funcmcp._protocol.uri_template import MAX_URI, InvalidTemplateError, URITemplate, Values, with_lower_scheme
from funcmcp._providers.selection import with_members
from funcmcp._server.catalog.features import Prompt, Tool
from funcmcp._server.catalog.transformed import Transform
from funcmcp._server.log import logger
from funcmcp._state.line_limit import LineOfEach
from funcmcp._text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._server.catalog.transformed import AnyFeature, Transformed
    from funcmcp._upstreams.definitions import UpstreamLists

    Only: TypeAlias = Collection[str] | Callable[[Mapping[str, Any]], bool]

MAX_NAME = 64
"""Characters of a tool's name that model providers take."""

_HASH = 8
"""Characters of a hash in a name: with 100,000 names, one pair in a million servers is equal."""

_MAX_SHORTENED = 50_000
"""Names that are shortened and remembered. An upstream may change them often."""

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def tool_name(name: str) -> str:
    """Return the name of a tool here: its own if the specification allows it, or one with a hash of its own."""
    if is_name(name):
        return name
    return f"{_NOT_ALLOWED.sub('_', name)[:100].strip('_') or 'tool'}_{_hash_of(name)}"


def prompt_name(name: str) -> str:
    """Return the name of a prompt here: its own if it is one line of text, or one with a hash of its own."""
    return name if is_text(name) else tool_name(name)


def short_name(name: str) -> str:
    """Return a name of at most `MAX_NAME` characters: the beginning of a longer name, and a hash of all of it."""
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - _HASH - 1].rstrip('_.-')}_{_hash_of(name)}"


def _hash_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_HASH]


class NameLengths(Transform):
    """Shortens names of tools and prompts that model providers refuse, or warns of them.

    Args:
        upstream: The name of the upstream, for the log.
        shortens: Whether names are shortened.
    """

    def __init__(self, upstream: str, *, shortens: bool) -> None:
        self._upstream = upstream
        self._shortens = shortens
        self._names: OrderedDict[str, str] = OrderedDict()  # long names by short ones
        self._lines = LineOfEach()

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature, with a shorter name if it is too long."""
        if not isinstance(feature, Tool | Prompt) or len(feature.name) <= MAX_NAME:
            return feature
        short = short_name(feature.name)
        if self._shortens:
            remember(self._names, short, feature.name, _MAX_SHORTENED)
            return with_members(feature, name=short)
        self._lines.write(
            feature.name,
            "%s: the name %s has %d characters. Most models take %d. With short_names=True it would be %s.",
            *(self._upstream, visible_line(feature.name), len(feature.name), MAX_NAME, short),
        )
        return feature

    def source_key(self, kind: type, key: str) -> str:
        """Return the long name."""
        return self._names.get(key, key) if kind in {Tool, Prompt} else key


class _Operator(NamedTuple):
    """How an expression of RFC 6570 with an operator is written (its appendix A).

    Attributes:
        first: What comes before the first value.
        separator: What comes between values.
        is_named: Whether each value has its name before it.
        if_empty: What follows the name of an empty value.
        reserved: Characters of values that are not escaped.
    """

    first: str = ""
    separator: str = ","
    is_named: bool = False
    if_empty: str = ""
    reserved: str = ""


_RESERVED = ":/?#[]@!$&'()*+,;="
_OPERATORS = {
    "": _Operator(),
    "+": _Operator(reserved=_RESERVED),
    "#": _Operator("#", reserved=_RESERVED),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", is_named=True),
    "?": _Operator("?", "&", is_named=True, if_empty="="),
    "&": _Operator("&", "&", is_named=True, if_empty="="),
}
_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]+)\}")
_VARIABLE = re.compile(r"([A-Za-z0-9_.%]+)(?::([0-9]+))?(\*?)")


class AnyTemplate(URITemplate):
    """A template with any expression of RFC 6570. It says which URIs can be its own; the upstream reads the values.

    Literals are searched from left to right, so matching takes a time that is proportional to the length of the URI.

    Args:
        text: The template.

    Raises:
        InvalidTemplateError: The text is not a template of RFC 6570, or has no scheme.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = _EXPRESSION.split(text)  # a literal, then an operator, the variables and a literal for each expression
        literals = parts[::3]
        variables = [_VARIABLE.fullmatch(variable) for part in parts[2::3] for variable in part.split(",")]
        names = [variable[1] for variable in variables if variable is not None]
        is_valid = len(names) == len(variables) and not any("{" in literal or "}" in literal for literal in literals)
        if not is_valid or not _SCHEME.match(text):
            raise InvalidTemplateError(f"The template {text!r} is not a template of RFC 6570 with a scheme.")
        self._literals = [with_lower_scheme(literals[0]), *literals[1:]]
        self.variables = tuple(dict.fromkeys(names))
        self.repeated = frozenset()

    @property
    def exploded(self) -> frozenset[str]:
        """The variables whose values are lists of path segments: none, because any value may be a text."""
        return frozenset()

    @property
    def optional(self) -> tuple[str, ...]:
        """The variables that may be missing: all of them."""
        return self.variables

    def match(self, uri: str) -> Values | None:
        """Return no values if the URI can be one of the template, or None."""
        first, *inner = self._literals
        path = with_lower_scheme(uri)
        if not inner:
            return {} if path == first else None
        last = inner.pop()
        if len(uri) > MAX_URI or not path.startswith(first) or not path.endswith(last):
            return None
        position, end = len(first), len(path) - len(last)
        for literal in inner:
            position = path.find(literal, position, end)
            if position < 0:
                return None
            position += len(literal)
        return {} if position <= end else None

    def expand(self, values: Mapping[str, object]) -> str:
        """Return the URI for values of the variables, of which any may be missing."""

        def expanded(match: re.Match[str]) -> str:
            return _expanded(_OPERATORS[match[1]], match[2].split(","), values)

        return _EXPRESSION.sub(expanded, self.text)


def _expanded(operator: _Operator, variables: list[str], values: Mapping[str, object]) -> str:
    """Return the text of an expression (RFC 6570 section 3.2)."""
    texts: list[str] = []
    for variable in variables:
        match = _VARIABLE.fullmatch(variable)
        value = None if match is None else values.get(match[1])
        if match is None or value is None or value == []:
            continue
        name, length, is_exploded = match[1], match[2], bool(match[3])
        items = value if isinstance(value, list) else [value]
        escaped = [quote(str(item)[: int(length) if length else None], safe=operator.reserved) for item in items]
        groups = [[text] for text in escaped] if is_exploded else [escaped]
        texts += [_named(operator, name, ",".join(group)) for group in groups]
    return operator.first + operator.separator.join(texts) if texts else ""


def _named(operator: _Operator, name: str, text: str) -> str:
    """Return a value, with its name if the operator says so."""
    if not operator.is_named:
        return text
    return f"{name}={text}" if text else f"{name}{operator.if_empty}"


def template_of(text: str) -> URITemplate:
    """Return the template of an upstream; raise InvalidTemplateError."""
    try:
        return URITemplate(text)
    except InvalidTemplateError:
        return AnyTemplate(text)


class Selection:
    """Which definitions of an upstream are used.

    Args:
        only: Names and URIs, with ``*`` and ``?`` as wildcards, or a function of the definition. None: all of them.
        upstream: The name of the upstream, for the log.

    Raises:
        TypeError: *only* has another type.
    """

    def __init__(self, only: Only | None, upstream: str) -> None:
        self._function = only if callable(only) else None
        self._patterns = () if only is None or callable(only) else _patterns_in(only)
        self._is_all = only is None
        self._upstream = upstream
        self._unused = {pattern for pattern in self._patterns if not _is_wildcard(pattern)}

    def chosen(self, lists: UpstreamLists) -> UpstreamLists:
        """Return the definitions that are used, and warn of names that the upstream does not have."""
        if self._is_all:
            return lists
        chosen = {
            kind: {key: definition for key, definition in definitions.items() if self._includes(key, definition)}
            for kind, definitions in lists.definitions.items()
        }
        self._warn_of_unused()
        return lists._replace(definitions=chosen)

    def includes_key(self, key: str) -> bool:
        """Return whether a name or URI is used of which there is no definition."""
        return self._is_all or any(_fits(key, pattern) for pattern in self._patterns)

    def _includes(self, key: str, definition: Mapping[str, Any]) -> bool:
        if self._function is not None:
            return self._function(definition) is True
        self._unused.discard(key)
        return self.includes_key(key)

    def _warn_of_unused(self) -> None:
        if self._unused:
            names = ", ".join(visible_line(name) for name in sorted(self._unused))
            logger.warning("%s has nothing with the names in only=: %s.", self._upstream, names)
            self._unused.clear()


def _is_wildcard(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _patterns_in(only: Collection[str]) -> tuple[str, ...]:
    """Return the names in an option; raise TypeError if it is not a collection of texts."""
    if isinstance(only, str) or not all(isinstance(name, str) for name in only):
        raise TypeError("only= must be a list of names, such as ['search', 'get_*'], or a function of a definition.")
    return tuple(only)


def _fits(key: str, pattern: str) -> bool:
    # A bracket in a URI or in the text of a template is a character, not a set of characters.
    return key == pattern or fnmatchcase(key, pattern.replace("[", "[[]"))

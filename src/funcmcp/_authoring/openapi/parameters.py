"""Values of parameters in requests: in a path, a query, a header, a cookie or a form, in each style of OpenAPI.

A value can't leave its place: each part of it is percent-encoded by itself, and only the separators of the style are
written as they are. A value in a path fills one segment, unless the document says otherwise.

Source: OpenAPI 3.0.4 and 3.1.1, "Parameter Object, Style Values"; RFC 6570 (URI Template).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from funcmcp._authoring.openapi.http_requests import header_text, path_text, text_of
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DEFAULT_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
"""The places of parameters, with the style that each has by default."""

_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
_PREFIXES = {"label": ".", "matrix": ";"}
_RESERVED = ":/?@!$'()*,[]"
"""What ``allowReserved`` leaves as it is: reserved characters but for ``& = # ; +``, which separate parameters."""


class Place(NamedTuple):
    """The place of an argument in a request.

    Attributes:
        argument: The argument's name.
        name: The parameter's name in the request.
        location: "path", "query", "header", "cookie", or "form" for a member of a form.
        style: How lists and objects are written, such as "form" or "deepObject".
        explode: Whether each item of a list, or each member of an object, is written by itself.
        is_json: Whether the value is written as JSON.
        allow_reserved: Whether reserved characters of URLs are written as they are.
        many_segments: Whether a value in a path may have several segments.
    """

    argument: str
    name: str
    location: str
    style: str = "form"
    explode: bool = False
    is_json: bool = False
    allow_reserved: bool = False
    many_segments: bool = False


def path_value(place: Place, value: Any) -> str:
    """Return a value for a path, percent-encoded. Raise ToolError if it would change the structure of the path."""
    prefix = _PREFIXES.get(place.style, "")
    if place.is_json:
        return prefix + _path_part(place, encode(value).decode())
    if isinstance(value, dict):
        equals = "=" if place.explode else ","
        texts = [_path_part(place, key) + equals + _path_part(place, member) for key, member in value.items()]
    else:
        texts = [_path_part(place, item) for item in (value if isinstance(value, list) else [value])]
    if not texts:
        raise ToolError(f"{place.argument}: must not be empty")
    separator = prefix if prefix and place.explode else ","
    if place.style != "matrix":
        return prefix + separator.join(texts)
    name = quote(place.name, safe="")
    if not place.explode:
        return f";{name}={','.join(texts)}"
    return prefix + separator.join(texts if isinstance(value, dict) else [f"{name}={text}" for text in texts])


def _path_part(place: Place, value: Any) -> str:
    return path_text(place.argument, value, many_segments=place.many_segments)


def query_parts(place: Place, value: Any, other_names: Collection[str] = ()) -> list[str]:
    """Return a value as parts of a query or a form, ``name=value``, percent-encoded.

    Args:
        place: The place.
        value: The value.
        other_names: The names of other parameters, which members of an object must not have.

    Raises:
        ToolError: A member of the value would be another parameter.
    """
    safe = _RESERVED if place.allow_reserved else ""
    return [f"{quote(name, safe='')}={text}" for name, text in _pairs(place, value, other_names, safe)]


def _pairs(place: Place, value: Any, other_names: Collection[str], safe: str) -> Iterator[tuple[str, str]]:
    """Yield the names, and the values percent-encoded."""

    def text(item: Any) -> str:
        return quote(text_of(item), safe=safe)

    name = place.name
    if place.is_json or not isinstance(value, dict | list):
        yield name, quote(encode(value).decode(), safe="") if place.is_json else text(value)
    elif place.style == "deepObject":
        for path, item in _leaves(value, name):
            yield path, text(item)
    elif not place.explode:
        parts = _flat(value)
        if parts:
            yield name, _SEPARATORS.get(place.style, ",").join(map(text, parts))
    elif isinstance(value, dict):
        for key, member in value.items():
            if key in other_names:
                raise ToolError(f"{place.argument}: must not have a member {key!r}, which is another parameter")
            yield key, text(member)
    else:
        yield from ((name, text(item)) for item in value)


def _flat(value: dict[str, Any] | list[Any]) -> list[Any]:
    """Return the items of a list, or the names and values of an object, in one list."""
    if isinstance(value, list):
        return value
    return [part for member in value.items() for part in member]


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield what is inside a value, with names such as ``filter[price][0]``."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{name}[{key}]")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{name}[{index}]")
    else:
        yield name, value


def header_value(place: Place, value: Any) -> str:
    """Return a value for a header. Raise ToolError if a header can't contain it."""
    return header_text(place.argument, value if place.is_json else _joined(place, value))


def cookie_part(place: Place, value: Any) -> str:
    """Return a value as a part of the header Cookie, percent-encoded."""
    if place.is_json:
        return f"{quote(place.name, safe='')}={quote(encode(value).decode(), safe='')}"
    return f"{quote(place.name, safe='')}={quote(_joined(place, value), safe=',')}"


def _joined(place: Place, value: Any) -> str:
    """Return a value in the style "simple"."""
    if isinstance(value, dict):
        between = "=" if place.explode else ","
        return ",".join(f"{key}{between}{text_of(member)}" for key, member in value.items())
    return ",".join(map(text_of, value)) if isinstance(value, list) else text_of(value)

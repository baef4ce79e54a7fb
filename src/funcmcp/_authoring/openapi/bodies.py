"""Bodies of requests from arguments: JSON, forms, forms with files, texts and bytes.

How it works: `body_of` chooses one of the media types of an operation: JSON if there is one, else the first that a
model can write best. The members of an object become arguments if the schema only lists them, always for forms.
Otherwise the whole body is one argument. A file is a text, or a ``data:`` URL for other bytes.

Source: OpenAPI 3.0.4 and 3.1.1, "Request Body Object", "Media Type Object", "Encoding Object"; RFC 2397 (data URLs);
RFC 7578 (multipart/form-data).
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from funcmcp._authoring.openapi.http_requests import text_of
from funcmcp._authoring.openapi.parameters import Place, query_parts
from funcmcp._authoring.openapi.references import has_mark, resolved
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JSON = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?json(?:\s*;.*)?", re.IGNORECASE)
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_TEXTS = re.compile(
    r"text/.*|application/(?:[\w.-]+\+)?(?:xml|yaml|x-yaml|x-ndjson|jsonl|graphql|javascript)(?:\s*;.*)?"
)
_KINDS = ("json", "form", "multipart", "text", "bytes")
_DEFAULT_MEDIA_TYPE = {"json": "application/json", "text": "text/plain", "bytes": "application/octet-stream"}
FILE = "A text, or a data: URL for other files, such as data:image/png;name=a.png;base64,..."


class Body(NamedTuple):
    """The body of a request.

    Attributes:
        content_type: The value of the header Content-Type.
        data: The bytes.
    """

    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class BodyPlan:
    """How arguments become a body.

    Attributes:
        media_type: The media type, with its parameters.
        kind: "json", "form", "multipart", "text" or "bytes".
        schema: The schema in the document.
        required: Whether there is a body even without arguments.
        description: What the document says about the body.
        members: The places of the members of an object, by the name of the member.
        argument: The name of the argument that is the whole body; "" if its members are arguments.
        is_spread: Whether the members are arguments.
    """

    media_type: str
    kind: str
    schema: Any
    required: bool
    description: str
    members: dict[str, Place] = field(default_factory=dict)
    argument: str = ""
    is_spread: bool = False

    def body(self, arguments: Mapping[str, Any]) -> Body | None:
        """Return the body for arguments; None for a request without a body."""
        value = self._value(arguments)
        if value is None and self.kind != "json":
            return None
        if value is _ABSENT:
            return None
        if self.kind == "json":
            return Body(self.media_type, encode(value))
        if self.kind in {"form", "multipart"}:
            members = value if isinstance(value, dict) else {}
            return self._form(members) if self.kind == "form" else self._multipart(members)
        if self.kind == "text":
            return Body(self.media_type, text_of(value).encode())
        file = file_of(self.argument, text_of(value))
        return Body(file.media_type if "*" in self.media_type else self.media_type, file.data)

    def _value(self, arguments: Mapping[str, Any]) -> Any:
        if not self.is_spread:
            return arguments.get(self.argument, _ABSENT)
        present = {
            name: arguments[place.argument] for name, place in self.members.items() if place.argument in arguments
        }
        return present if present or self.required else _ABSENT

    def _place(self, name: str) -> Place:
        return self.members.get(name) or Place(name, name, "form", _NO_STYLE, explode=True)

    def _form(self, members: Mapping[str, Any]) -> Body:
        parts: list[str] = []
        for name, value in members.items():
            if value is not None:
                place = self._place(name)
                is_json = place.is_json or (isinstance(value, dict) and place.style == _NO_STYLE)
                parts += query_parts(place._replace(is_json=is_json), value, self.members.keys())
        return Body(self.media_type, "&".join(parts).encode())

    def _multipart(self, members: Mapping[str, Any]) -> Body:
        boundary = token_hex(16)
        data = bytearray()
        for name, value in members.items():
            for header, content in self.form_parts(name, value):
                data += f"--{boundary}\r\n{header}\r\n\r\n".encode() + content + b"\r\n"
        data += f"--{boundary}--\r\n".encode()
        return Body(f"{_MULTIPART}; boundary={boundary}", bytes(data))

    def form_parts(self, name: str, value: Any) -> Iterator[tuple[str, bytes]]:
        """Yield the header and the content of each part that a member is."""
        disposition = f'Content-Disposition: form-data; name="{_quoted(name)}"'
        place = self._place(name)
        for item in value if isinstance(value, list) and not place.is_json else [value]:
            if place.style == FILE_STYLE and isinstance(item, str):
                file = file_of(place.argument, item)
                filename = _quoted(file.name or name)
                yield f'{disposition}; filename="{filename}"\r\nContent-Type: {file.media_type}', file.data
            elif isinstance(item, dict | list) or place.is_json:
                yield f"{disposition}\r\nContent-Type: application/json", encode(item)
            elif item is not None:
                yield disposition, text_of(item).encode()


_ABSENT: Any = object()
FILE_STYLE = "file"
"""The style of a member of a form that is a file, or a list of files. It is not a style of OpenAPI."""

_NO_STYLE = ""
"""The style of a member of a form without a style in the document: lists are exploded, and objects are JSON."""


def body_of(document: Mapping[str, Any], node: Any) -> BodyPlan | None:
    """Return the plan of an operation's body, whose arguments have no names yet; None if it takes no body."""
    if node is None:
        return None
    body = resolved(document, node)
    content = body.get("content")
    if not isinstance(content, dict) or not content:
        return None
    choices = [(_kind_of(media_type, document, entry), media_type, entry) for media_type, entry in content.items()]
    kind, media_type, entry = min(choices, key=lambda choice: _KINDS.index(choice[0]))
    if any(character < " " or character > "~" for character in media_type):
        raise RegistrationError(f"has a body of the media type {media_type!r}, which is not valid.")
    entry = entry if isinstance(entry, dict) else {}
    schema = entry.get("schema", {})
    plan = BodyPlan(
        media_type=_DEFAULT_MEDIA_TYPE[kind] if "*" in media_type and kind != "bytes" else media_type,
        kind=kind,
        schema=schema,
        required=body.get("required") is True,
        description=str(body.get("description") or ""),
    )
    if kind in {"form", "multipart"}:
        encoding = entry.get("encoding")
        plan.members.update(_form_places(document, schema, encoding if isinstance(encoding, dict) else {}, kind))
    return plan


def _kind_of(media_type: str, document: Mapping[str, Any], entry: Any) -> str:
    """Return how a body of a media type is written."""
    name = media_type.partition(";")[0].strip().lower()
    if JSON.fullmatch(media_type):
        return "json"
    if name == _FORM:
        return "form"
    if name == _MULTIPART:
        return "multipart"
    if _TEXTS.fullmatch(name):
        return "text"
    if name in {"*/*", "application/*"}:
        schema = members_of(document, entry.get("schema", {}) if isinstance(entry, dict) else {})
        return "json" if schema is not None else "bytes"
    return "bytes"


def members_of(
    document: Mapping[str, Any], node: Any, seen: set[int] | None = None
) -> tuple[dict[str, Any], list[str]] | None:
    """Return the members of an object that a schema lists, also by ``allOf``, and the names of the required ones.

    Args:
        document: The document.
        node: The schema.
        seen: The identities of schemas that are read already.

    Returns:
        None if the schema does not describe an object.
    """
    if not isinstance(node, dict):
        return None
    schema = resolved(document, node)
    seen = set() if seen is None else seen
    if id(schema) in seen or len(seen) > _MAX_PARTS:
        return None
    seen.add(id(schema))
    properties: dict[str, Any] = {}
    required: list[str] = []
    parts = schema.get("allOf")
    described = schema.get("type") == "object" or isinstance(schema.get("properties"), dict)
    for part in parts[:_MAX_PARTS] if isinstance(parts, list) else []:
        inner = members_of(document, part, seen)
        if inner is not None:
            described = True
            properties.update(inner[0])
            required += inner[1]
    members = schema.get("properties")
    properties.update(members if isinstance(members, dict) else {})
    names = schema.get("required")
    required += names if isinstance(names, list) else []
    return (properties, required) if described else None


_MAX_PARTS = 50
"""The schemas of an ``allOf``, also of those inside of it, that are read."""


def _form_places(document: Mapping[str, Any], schema: Any, encoding: Mapping[str, Any], kind: str) -> dict[str, Place]:
    members = members_of(document, schema)
    places = {}
    for name, node in (members or ({}, []))[0].items():
        if has_mark(node, "readOnly"):
            continue
        rules = encoding.get(name)
        rules = rules if isinstance(rules, dict) else {}
        if kind == "multipart" and is_file(document, node):
            places[name] = Place(name, name, "form", FILE_STYLE)
            continue
        has_style = "style" in rules or "explode" in rules
        style = str(rules.get("style", "form")) if has_style else _NO_STYLE
        explode = rules.get("explode", style in {"form", "deepObject", _NO_STYLE}) is True
        is_json = bool(JSON.fullmatch(str(rules.get("contentType", ""))))
        places[name] = Place(name, name, "form", style, explode, is_json)
    return places


def is_file(document: Mapping[str, Any], node: Any) -> bool:
    """Return whether a schema describes a file, or a list of files."""
    schema = resolved(document, node) if isinstance(node, dict) else {}
    if schema.get("type") == "array":
        items = schema.get("items")
        schema = resolved(document, items) if isinstance(items, dict) else {}
    if schema.get("type") == "file" or schema.get("format") == "binary":
        return True
    return "contentMediaType" in schema and "contentEncoding" not in schema


class File(NamedTuple):
    """A file in an argument.

    Attributes:
        name: Its name, or "".
        media_type: Its media type.
        data: Its bytes.
    """

    name: str
    media_type: str
    data: bytes


_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)


def file_of(argument: str, text: str) -> File:
    """Return the file in an argument: a ``data:`` URL, or a text. Raise ToolError if it is a malformed URL."""
    if not text.startswith("data:"):
        return File("", "text/plain; charset=utf-8", text.encode())
    header, comma, content = text[5:].partition(",")
    media_type, *parameters = header.split(";")
    name = next((unquote(part[5:]) for part in parameters if part.startswith("name=")), "")
    media_type = media_type or "text/plain"
    if not comma or not _MEDIA_TYPE.fullmatch(media_type):
        raise ToolError(f"{argument}: is not a data: URL, such as data:image/png;base64,...")
    if "base64" not in parameters:
        return File(name, media_type, unquote_to_bytes(content))
    try:
        return File(name, media_type, b64decode(content, validate=True))
    except (Base64Error, ValueError):
        raise ToolError(f"{argument}: the data: URL does not contain valid Base64") from None


def _quoted(name: str) -> str:
    """Return a name for the header of a part: HTML's forms escape these three characters."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")

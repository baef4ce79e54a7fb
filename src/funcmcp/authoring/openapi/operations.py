"""Operations of an OpenAPI document as tools: one schema of arguments for each, and where each argument goes.

Source: OpenAPI 3.0.4 and 3.1.1, "Operation Object", "Parameter Object", "Request Body Object".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from funcmcp.authoring.openapi.http_requests import (
    header_key,
    header_text,
    is_header_name,
    is_reserved,
    path_text,
    text_of,
    written_path,
)
from funcmcp.authoring.openapi.schemas import Schemas, reading, resolved
from funcmcp.authoring.signatures.naming import humanised
from funcmcp.protocol.codec import encode
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

METHODS = ("get", "put", "post", "patch", "delete")
"""Methods whose operations can be tools: HEAD, OPTIONS and TRACE tell a model nothing."""

_BODY = "body"
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 128
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json(?:\s*;.*)?", re.IGNORECASE)
_SPREADABLE = frozenset(
    {
        *("additionalProperties", "description", "example", "examples", "externalDocs", "properties", "required"),
        *("title", "type", "xml"),
    }
)
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|"}
_STYLES = {"path": ("simple",), "query": ("form", *_SEPARATORS), "header": ("simple",)}
_SUCCESS = re.compile(r"2\d\d|2XX")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of an OpenAPI document.

    Attributes:
        name: the tool's name: the operation's id, or its method and path.
        method: in capitals.
        path: with variables in braces.
        tags: its tags.
        title: its summary, or its name in words.
        description: its description, or its summary.
        source: the operation as it stands in the document, with the parameters of its path.
    """

    name: str
    method: str
    path: str
    tags: tuple[str, ...]
    title: str
    description: str
    source: Mapping[str, Any]


class Place(NamedTuple):
    """Where an argument goes.

    Attributes:
        argument: its name.
        where: "path", "query" or "header".
        is_json: whether it is written as JSON.
        explode: whether each item of a list is a query parameter of its own.
        separator: what stands between items that are not.
    """

    argument: str
    where: str
    is_json: bool = False
    explode: bool = False
    separator: str = ","


class Target(NamedTuple):
    """A request, as far as arguments decide it.

    Attributes:
        path: percent-encoded.
        query: percent-encoded.
        headers: by lower-case name.
        body: JSON, or None without one.
    """

    path: str
    query: str
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation takes and gives.

    Attributes:
        path: with variables in braces.
        input_schema: of all its arguments.
        output_schema: of what it answers, if that is always a JSON object.
        places: where arguments go that are not of the body.
        members: arguments that are members of the body.
        whole: whether there is an argument that is the body.
        needs_body: whether there is a body even if nothing of it is given.
    """

    path: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    places: tuple[Place, ...]
    members: frozenset[str]
    whole: bool
    needs_body: bool

    def target(self, arguments: Mapping[str, Any]) -> Target:
        """Return the request that arguments make; raise ToolError if one would lead elsewhere."""
        variables: dict[str, str] = {}
        query: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        for place in self.places:
            name, value = place.argument, arguments.get(place.argument)
            if value is None and not place.is_json:
                continue
            if place.where == "path":
                variables[name] = path_text(name, _joined(place, value))
            elif place.where == "header":
                headers[name.lower()] = header_text(name, _joined(place, value))
            elif place.explode and isinstance(value, list):
                query += [(name, text_of(item)) for item in value]
            else:
                query.append((name, _joined(place, value)))
        path = _VARIABLE.sub(lambda match: variables[match[1]], self.path)
        return Target(written_path(path), urlencode(query, quote_via=quote), headers, self._body(arguments))

    def _body(self, arguments: Mapping[str, Any]) -> bytes | None:
        if self.whole:
            return encode(arguments[_BODY]) if _BODY in arguments else None
        given = {name: value for name, value in arguments.items() if name in self.members}
        return encode(given) if given or self.needs_body else None


def _joined(place: Place, value: Any) -> str:
    if place.is_json:
        return encode(value).decode()
    return place.separator.join(map(text_of, value)) if isinstance(value, list) else text_of(value)


def operations(document: Mapping[str, Any]) -> list[Operation]:
    """Return the operations of a document that are not deprecated.

    Raises:
        RegistrationError: it is no document of OpenAPI 3.
    """
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise RegistrationError("This is no document of OpenAPI 3.0 or later; one has a member `openapi`.")
    found = []
    with reading("The OpenAPI document is"):
        for path, item in document.get("paths", {}).items():
            if not path.startswith("/"):
                continue  # an extension
            whole = resolved(document, item)
            for method in METHODS:
                source = whole.get(method)
                if isinstance(source, dict) and source.get("deprecated") is not True:
                    found.append(_operation(method, path, source, whole.get("parameters", [])))
    return found


def _operation(method: str, path: str, source: dict[str, Any], shared: list[Any]) -> Operation:
    name = _name(str(source.get("operationId", ""))) or _name(f"{method}_{path.strip('/{')}")
    summary = str(source.get("summary") or "")
    return Operation(
        name=name,
        method=method.upper(),
        path=path,
        tags=tuple(source.get("tags", ())),
        title=summary or humanised(name),
        description=str(source.get("description") or summary),
        source={**source, "parameters": [*shared, *source.get("parameters", [])]},
    )


def _name(text: str) -> str:
    return _NO_NAME.sub("_", text).strip("_")[:_LONGEST_NAME]


def plan_of(operation: Operation, document: Mapping[str, Any], *, forwarded: Collection[str] = ()) -> Plan:
    """Work out what an operation takes and gives.

    Args:
        operation: one of the document.
        document: where its references lead.
        forwarded: names of headers of the MCP request that go along with the call, so that they are not arguments.

    Raises:
        RegistrationError: the operation can't be a tool.
    """
    with reading("is"):
        return _plan(operation, document, forwarded)


def _plan(operation: Operation, document: Mapping[str, Any], forwarded: Collection[str]) -> Plan:
    schemas = Schemas(document, "request")
    parameters = _parameters(operation, document, forwarded)
    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    places = []
    for parameter in parameters:
        place, schema = _place(parameter, schemas)
        if place.argument in merged["properties"]:
            raise RegistrationError(f"has two parameters named {place.argument!r}.")
        places.append(place)
        merged["properties"][place.argument] = schema
        if parameter.get("required") is True:
            merged["required"].append(place.argument)
    missing = set(_VARIABLE.findall(operation.path)) - {place.argument for place in places if place.where == "path"}
    if missing:
        raise RegistrationError(f"does not describe {', '.join(sorted(missing))} of its path.")
    members, whole, needs_body = _add_body(operation, document, schemas, merged)
    if not merged["required"]:
        del merged["required"]
    input_schema, output_schema = schemas.arranged(merged), _output_schema(operation, document)
    return Plan(operation.path, input_schema, output_schema, tuple(places), members, whole, needs_body)


def _parameters(operation: Operation, document: Mapping[str, Any], forwarded: Collection[str]) -> list[dict[str, Any]]:
    """Return the parameters that become arguments; those of the operation stand for those of its path."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for node in operation.source["parameters"]:
        parameter = resolved(document, node)
        found[parameter.get("in", ""), parameter.get("name", "")] = parameter
    kept = []
    forwarded_keys = set(map(header_key, forwarded))
    for (where, name), parameter in found.items():
        if where == "cookie":
            if parameter.get("required") is True:
                raise RegistrationError(f"needs the cookie {name!r}, and a tool has none.")
        elif where not in _STYLES:
            raise RegistrationError(f"has the parameter {name!r} in {where!r}, which is not supported.")
        elif where != "header" or not (is_reserved(name) or header_key(name) in forwarded_keys):
            kept.append(parameter)
    return kept


def _place(parameter: dict[str, Any], schemas: Schemas) -> tuple[Place, Any]:
    where, name = parameter["in"], parameter["name"]
    if where == "header" and not is_header_name(name):
        raise RegistrationError(f"has a parameter in a header named {name!r}, which is not the name of a header.")
    content = parameter.get("content")
    node = parameter.get("schema", {})
    if content is not None:
        ((media, described),) = content.items() if len(content) == 1 else (("", {}),)
        if not _JSON.fullmatch(media):
            raise RegistrationError(f"has the parameter {name!r}, whose content is not JSON.")
        node = described.get("schema", {})
    style = parameter.get("style", _STYLES[where][0])
    if style not in _STYLES[where]:
        raise RegistrationError(f"has the parameter {name!r} in the style {style!r}, which is not supported.")
    schema = schemas.member(name, node)
    if isinstance(schema, dict) and parameter.get("description"):
        schema = {**schema, "description": parameter["description"]}
    explode = where == "query" and parameter.get("explode", style == "form") is True
    return Place(name, where, content is not None, explode, _SEPARATORS.get(style, ",")), schema


def _add_body(
    operation: Operation, document: Mapping[str, Any], schemas: Schemas, merged: dict[str, Any]
) -> tuple[frozenset[str], bool, bool]:
    """Add the body's members as arguments, or the whole body as one.

    Members of an object stand beside the parameters, where that says the same and no two have one name.

    Returns:
        The members, whether there is an argument for the whole, and whether there is always a body.
    """
    node = operation.source.get("requestBody")
    if node is None:
        return frozenset(), False, False
    body = resolved(document, node)
    required = body.get("required") is True
    described = next((value for media, value in body.get("content", {}).items() if _JSON.fullmatch(media)), None)
    if described is None:
        if not required:
            return frozenset(), False, False
        raise RegistrationError("takes a body that is not JSON.")
    schema = described.get("schema", {})
    plain = resolved(document, schema) if isinstance(schema, dict) else {}
    if _spreads(plain, required=required) and not plain["properties"].keys() & merged["properties"].keys():
        converted = schemas.convert({**plain})
        merged["properties"].update(converted["properties"])
        merged["required"] += converted.get("required", [])
        return frozenset(converted["properties"]), False, required
    if _BODY in merged["properties"]:
        raise RegistrationError(f"has a parameter named {_BODY!r} beside its body.")
    merged["properties"][_BODY] = schemas.convert(schema)
    if body.get("description"):
        merged["properties"][_BODY] = {**merged["properties"][_BODY], "description": body["description"]}
    if required:
        merged["required"].append(_BODY)
    return frozenset(), True, required


def _spreads(schema: Mapping[str, Any], *, required: bool) -> bool:
    """Tell whether a body's schema says no more than which members it has."""
    keywords = {keyword for keyword in schema if not keyword.startswith("x-")}
    closed = schema.get("additionalProperties", False) is False
    return (
        keywords <= _SPREADABLE
        and schema.get("type") == "object"
        and bool(schema.get("properties"))
        and closed
        and (required or not schema.get("required"))
    )


def _output_schema(operation: Operation, document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of what an operation answers if there is one success only, and it is a JSON object."""
    found = [node for code, node in operation.source.get("responses", {}).items() if _SUCCESS.fullmatch(str(code))]
    if len(found) != 1:
        return None
    content = resolved(document, found[0]).get("content", {})
    if len(content) != 1 or not all(map(_JSON.fullmatch, content)):
        return None
    (described,) = content.values()
    schemas = Schemas(document, "response")
    converted = schemas.convert(described.get("schema", {}))
    schema = schemas.arranged(converted) if isinstance(converted, dict) else {}
    return schema if schema.get("type") == "object" else None

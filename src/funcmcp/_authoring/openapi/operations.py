"""Operations of an OpenAPI document as tools: the schema of arguments, and the place of each argument in the request.

How it works: `operations` lists the operations of a document. `plan_of` creates the `Plan` of an operation when its
tool is registered: each parameter becomes an argument with a `Place` in the path, the query or the headers. A JSON body
whose schema only lists members becomes one argument for each member, unless a name is taken. Any other body is the
argument ``body``. At a call, `Plan.target` converts validated arguments to the path, query, headers and body of the
request. Parameters that proxies or platforms set, and headers that are forwarded, are not arguments.

Source: OpenAPI 3.0.4 and 3.1.1, "Operation Object", "Parameter Object", "Request Body Object".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from funcmcp._authoring.openapi.http_requests import (
    header_key,
    header_text,
    is_header_name,
    is_reserved,
    path_text,
    text_of,
    written_path,
)
from funcmcp._authoring.openapi.schemas import Schemas, reading, resolved
from funcmcp._authoring.signatures.naming import humanised
from funcmcp._mappings import only
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.features import in_member
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from funcmcp._server.catalog.features import LeftOut

METHODS = ("get", "put", "post", "patch", "delete")
"""Methods whose operations can be tools. Responses to HEAD, OPTIONS and TRACE are of no use to a model."""

_BODY = "body"
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME_LENGTH = 128
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
        name: The tool's name: the operation's id, or its method and path.
        method: The method, in capitals.
        path: The path, with variables in braces.
        tags: The operation's tags.
        title: The operation's summary, or its name in words.
        description: The operation's description, or its summary.
        source: The operation in the document, with the parameters of its path.
    """

    name: str
    method: str
    path: str
    tags: tuple[str, ...]
    title: str
    description: str
    source: Mapping[str, Any]


class Place(NamedTuple):
    """The place of an argument in a request.

    Attributes:
        argument: The argument's name.
        location: "path", "query" or "header".
        is_json: Whether the value is written as JSON.
        explode: Whether each item of a list is a separate query parameter.
        separator: The text between the items of a list that is one parameter.
    """

    argument: str
    location: str
    is_json: bool = False
    explode: bool = False
    separator: str = ","


class Target(NamedTuple):
    """The parts of a request that arguments determine.

    Attributes:
        path: The path, percent-encoded.
        query: The query, percent-encoded.
        headers: The headers by lower-case name.
        body: The JSON body, or None.
    """

    path: str
    query: str
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The arguments of an operation, their places in the request, and its result.

    Attributes:
        path: The path, with variables in braces.
        input_schema: The schema of all arguments.
        output_schema: The schema of the response, if the response is always a JSON object.
        places: The places of arguments outside the body.
        body_members: The arguments that are members of the body.
        has_body_argument: Whether one argument is the body.
        requires_body: Whether the request has a body even if no argument belongs to it.
        left_out: What the schemas do not say. Paths begin with ``inputSchema`` or ``outputSchema``.
    """

    path: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    places: tuple[Place, ...]
    body_members: frozenset[str]
    has_body_argument: bool
    requires_body: bool
    left_out: tuple[LeftOut, ...] = ()

    def target(self, arguments: Mapping[str, Any]) -> Target:
        """Return the request for arguments. Raise ToolError if an argument would change the path's structure."""
        variables: dict[str, str] = {}
        query: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        for place in self.places:
            name, value = place.argument, arguments.get(place.argument)
            if value is None and not place.is_json:
                continue
            if place.location == "path":
                variables[name] = path_text(name, _joined(place, value))
            elif place.location == "header":
                headers[name.lower()] = header_text(name, _joined(place, value))
            elif place.explode and isinstance(value, list):
                query += [(name, text_of(item)) for item in value]
            else:
                query.append((name, _joined(place, value)))
        path = _VARIABLE.sub(lambda match: variables[match[1]], self.path)
        return Target(written_path(path), urlencode(query, quote_via=quote), headers, self._body(arguments))

    def _body(self, arguments: Mapping[str, Any]) -> bytes | None:
        if self.has_body_argument:
            return encode(arguments[_BODY]) if _BODY in arguments else None
        members = only(arguments, self.body_members)
        return encode(members) if members or self.requires_body else None


def _joined(place: Place, value: Any) -> str:
    if place.is_json:
        return encode(value).decode()
    return place.separator.join(map(text_of, value)) if isinstance(value, list) else text_of(value)


def operations(document: Mapping[str, Any]) -> list[Operation]:
    """Return the operations of a document that are not deprecated.

    Raises:
        RegistrationError: The document is not an OpenAPI document of version 3.
    """
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise RegistrationError("The document is not OpenAPI 3.0 or later, which has a member `openapi`.")
    listed = []
    with reading("The OpenAPI document is"):
        for path, item in document.get("paths", {}).items():
            if not path.startswith("/"):
                continue  # an extension
            path_item = resolved(document, item)
            for method in METHODS:
                source = path_item.get(method)
                if isinstance(source, dict) and source.get("deprecated") is not True:
                    listed.append(_operation(method, path, source, path_item.get("parameters", [])))
    return listed


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
    return _INVALID_CHARACTERS.sub("_", text).strip("_")[:_MAX_NAME_LENGTH]


def plan_of(operation: Operation, document: Mapping[str, Any], *, forwarded: Collection[str] = ()) -> Plan:
    """Return the plan of an operation.

    Args:
        operation: An operation of the document.
        document: The document.
        forwarded: The names of headers of the MCP request that the call repeats. They are not arguments.

    Raises:
        RegistrationError: The operation can't be a tool.
    """
    with reading("is"):
        return _plan(operation, document, forwarded)


def _plan(operation: Operation, document: Mapping[str, Any], forwarded: Collection[str]) -> Plan:
    schemas = Schemas(document, "request")
    parameters = _parameters(operation, document, forwarded)
    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    places = []
    for parameter in parameters:
        place, schema = _place(parameter, schemas)
        if place.argument in merged["properties"]:
            raise RegistrationError(f"has two parameters named {place.argument!r}.")
        places.append(place)
        merged["properties"][place.argument] = schema
        if parameter.get("required") is True:
            merged["required"].append(place.argument)
    missing = set(_VARIABLE.findall(operation.path)) - {place.argument for place in places if place.location == "path"}
    if missing:
        raise RegistrationError(f"does not describe {', '.join(sorted(missing))} of its path.")
    body_members, has_body_argument, requires_body = _add_body(operation, document, schemas, merged)
    if not merged["required"]:
        del merged["required"]
    of_input: list[LeftOut] = []
    of_output: list[LeftOut] = []
    input_schema = schemas.arranged(merged, of_input)
    output_schema = _output_schema(operation, document, of_output)
    return Plan(
        path=operation.path,
        input_schema=input_schema,
        output_schema=output_schema,
        places=tuple(places),
        body_members=body_members,
        has_body_argument=has_body_argument,
        requires_body=requires_body,
        left_out=(*in_member("inputSchema", of_input), *in_member("outputSchema", of_output)),
    )


def _parameters(operation: Operation, document: Mapping[str, Any], forwarded: Collection[str]) -> list[dict[str, Any]]:
    """Return the parameters that become arguments. Those of the operation replace those of its path."""
    parameters: dict[tuple[str, str], dict[str, Any]] = {}
    for node in operation.source["parameters"]:
        parameter = resolved(document, node)
        parameters[parameter.get("in", ""), parameter.get("name", "")] = parameter
    arguments = []
    forwarded_keys = set(map(header_key, forwarded))
    for (location, name), parameter in parameters.items():
        if location == "cookie":
            if parameter.get("required") is True:
                raise RegistrationError(f"needs the cookie {name!r}, but calls of tools have no cookies.")
        elif location not in _STYLES:
            raise RegistrationError(f"has the parameter {name!r} in {location!r}, which is not supported.")
        elif location == "header" and (is_reserved(name) or header_key(name) in forwarded_keys):
            continue
        else:
            arguments.append(parameter)
    return arguments


def _place(parameter: dict[str, Any], schemas: Schemas) -> tuple[Place, Any]:
    """Return the place and the schema of a parameter."""
    location, name = parameter["in"], parameter["name"]
    if location == "header" and not is_header_name(name):
        raise RegistrationError(f"has a parameter in the header {name!r}, which is not a valid name of a header.")
    content = parameter.get("content")
    node = parameter.get("schema", {})
    if content is not None:
        if len(content) != 1 or not all(map(_JSON.fullmatch, content)):
            raise RegistrationError(f"has the parameter {name!r}, whose content is not JSON.")
        (media_type_object,) = content.values()
        node = media_type_object.get("schema", {})
    style = parameter.get("style", _STYLES[location][0])
    if style not in _STYLES[location]:
        raise RegistrationError(f"has the parameter {name!r} in the style {style!r}, which is not supported.")
    schema = schemas.member(name, node)
    if isinstance(schema, dict) and parameter.get("description"):
        schema = {**schema, "description": parameter["description"]}
    explode = location == "query" and parameter.get("explode", style == "form") is True
    return Place(name, location, content is not None, explode, _SEPARATORS.get(style, ",")), schema


def _add_body(
    operation: Operation, document: Mapping[str, Any], schemas: Schemas, merged: dict[str, Any]
) -> tuple[frozenset[str], bool, bool]:
    """Add the body's members as arguments, or the body as one argument.

    Members of an object are arguments if this loses nothing of the schema, and if no parameter has the same name.

    Returns:
        The arguments that are members, whether one argument is the body, and whether there is always a body.
    """
    node = operation.source.get("requestBody")
    if node is None:
        return frozenset(), False, False
    body = resolved(document, node)
    required = body.get("required") is True
    json_contents = [value for media, value in body.get("content", {}).items() if _JSON.fullmatch(media)]
    if not json_contents:
        if not required:
            return frozenset(), False, False
        raise RegistrationError("takes a body that is not JSON.")
    schema = json_contents[0].get("schema", {})
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
    """Return whether a body's schema only lists members, so that they can be arguments.

    Args:
        schema: The schema.
        required: Whether the body is required. If it is not, its members must not be required either.
    """
    keywords = {keyword for keyword in schema if not keyword.startswith("x-")}
    if not keywords <= _SPREADABLE or schema.get("type") != "object" or not schema.get("properties"):
        return False
    if schema.get("additionalProperties", False) is not False:
        return False
    return required or not schema.get("required")


def _output_schema(operation: Operation, document: Mapping[str, Any], left_out: list[LeftOut]) -> dict[str, Any] | None:
    """Return the schema of an operation's response if there is only one for success, and it is a JSON object."""
    responses = operation.source.get("responses", {})
    successes = [node for code, node in responses.items() if _SUCCESS.fullmatch(str(code))]
    if len(successes) != 1:
        return None
    content = resolved(document, successes[0]).get("content", {})
    if len(content) != 1 or not all(map(_JSON.fullmatch, content)):
        return None
    (media_type_object,) = content.values()
    schemas = Schemas(document, "response")
    converted = schemas.convert(media_type_object.get("schema", {}))
    of_schema: list[LeftOut] = []
    schema = schemas.arranged(converted, of_schema) if isinstance(converted, dict) else {}
    if schema.get("type") != "object":
        return None
    left_out += of_schema
    return schema

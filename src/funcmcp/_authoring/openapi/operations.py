"""Operations of an OpenAPI document as tools: the schema of arguments, and the place of each argument in the request.

How it works: `operations` lists the operations of a document; those of Swagger 2.0 in the form of 3.0. `plan_of`
creates the `OperationPlan` of an operation when its tool is registered: each parameter becomes an argument with a
`Place` in the path, the query, the headers or the cookies (`parameters.py`), and the body becomes arguments, too
(`bodies.py`). The schemas are made when the tool is first listed or called, because a document may have thousands of
operations. At a call, `OperationPlan.target` converts validated arguments to the path, query, headers and body of the
request. Parameters that proxies or platforms set, credentials, and headers that are forwarded, are not arguments.

Source: OpenAPI 3.0.4 and 3.1.1, "Operation Object", "Parameter Object", "Request Body Object".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.openapi.bodies import JSON, body_of, members_of
from funcmcp._authoring.openapi.documents import dialect_of
from funcmcp._authoring.openapi.http_requests import header_key, is_reserved, written_path
from funcmcp._authoring.openapi.parameters import (
    DEFAULT_STYLES,
    Place,
    cookie_part,
    header_value,
    path_value,
    query_parts,
)
from funcmcp._authoring.openapi.references import has_mark, reading, resolved
from funcmcp._authoring.openapi.schemas import Schemas, described_only
from funcmcp._authoring.signatures.naming import humanised
from funcmcp._protocol.codec import encode
from funcmcp._protocol.http_rules import FIELD_NAME
from funcmcp._server.catalog.features import in_member
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from funcmcp._authoring.openapi.bodies import BodyPlan
    from funcmcp._server.catalog.features import LeftOut

METHODS = ("get", "put", "post", "patch", "delete")
"""Methods whose operations can be tools. Responses to HEAD, OPTIONS and TRACE are of no use to a model."""

_BODY = "body"
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_INVALID_IN_ARGUMENTS = re.compile(r"[^A-Za-z0-9_.-]+")
MAX_NAME_LENGTH = 64
"""Clients and APIs of models refuse longer names of tools and of arguments."""

_MAX_MEMBERS = 200
"""The members of a body that become arguments."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_SPREADABLE = frozenset(
    {
        *("additionalProperties", "description", "example", "examples", "externalDocs", "properties", "required"),
        *("title", "type", "xml"),
    }
)
_SUCCESS = re.compile(r"2\d\d|2XX", re.IGNORECASE)


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
        source: The operation in the document, with the parameters and servers of its path.
        operation_id: The operation's id in the document, or "".
        deprecated: Whether the document calls the operation deprecated.
    """

    name: str
    method: str
    path: str
    tags: tuple[str, ...]
    title: str
    description: str
    source: Mapping[str, Any]
    operation_id: str = ""
    deprecated: bool = False


class Target(NamedTuple):
    """The parts of a request that arguments determine.

    Attributes:
        path: The path, percent-encoded.
        query: The query, percent-encoded.
        headers: The headers by lower-case name, with the Content-Type of a body.
        body: The body, or None.
    """

    path: str
    query: str
    headers: dict[str, str]
    body: bytes | None


class OperationSchemas(NamedTuple):
    """The schemas of an operation's tool.

    Attributes:
        input_schema: The schema of all arguments.
        output_schema: The schema of the response, if it is a JSON object.
        left_out: What the schemas do not say. Paths begin with ``inputSchema`` or ``outputSchema``.
        problems: Parts of the document that could not be read. They accept anything.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    left_out: tuple[LeftOut, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperationPlan:
    """The arguments of an operation, their places in the request, and its result.

    Attributes:
        operation: The operation.
        document: The document.
        places: The places of arguments outside the body, with the parameters that they are from.
        body: How arguments become the body; None for an operation without a body.
        validates_output: Whether responses have to match the schema in the document. Otherwise the output schema only
            describes their members.
        hidden_query: The names of keys in the query, which no argument can add.
        shares_query: Whether members of an argument may have the names of other parameters.
    """

    operation: Operation
    document: Mapping[str, Any]
    places: tuple[tuple[Place, Mapping[str, Any]], ...]
    body: BodyPlan | None
    validates_output: bool = True
    hidden_query: frozenset[str] = frozenset()
    shares_query: bool = False

    @cached_property
    def arguments(self) -> frozenset[str]:
        """The names of all arguments."""
        names = {place.argument for place, _ in self.places}
        if self.body is not None:
            if self.body.is_spread:
                names |= {place.argument for place in self.body.members.values()}
            else:
                names.add(self.body.argument)
        return frozenset(names)

    @cached_property
    def _query_names(self) -> frozenset[str]:
        """The names of the query that have a place of their own, or are hidden."""
        if self.shares_query:
            return self.hidden_query
        return self.hidden_query | {place.name for place, _ in self.places if place.location == "query"}

    @cached_property
    def schemas(self) -> OperationSchemas:
        """The schemas. Raise RegistrationError if the document is not valid there."""
        with reading("is"):
            return _schemas_of(self)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of all arguments."""
        return self.schemas.input_schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of the response, if the response is always a JSON object."""
        return self.schemas.output_schema

    def plain_schemas(self) -> OperationSchemas:
        """Return schemas without what is not valid, for an operation whose schemas in the document are not."""
        try:
            schema = self.schemas.input_schema
        except RegistrationError:
            names: dict[str, Any] = {name: {} for name in sorted(self.arguments)}
            return OperationSchemas({"type": "object", "properties": names}, None)
        properties = {}
        for name, member in schema["properties"].items():
            alone = {**schema, "properties": {name: member}, "required": []}
            if b'"$ref"' not in encode(member):
                alone.pop("$defs", None)
            properties[name] = member if _is_valid(alone) else {}
        plain = {**schema, "properties": properties}
        if b'"$ref"' not in encode(properties):
            plain.pop("$defs", None)
        return OperationSchemas(plain, None)

    def target(self, arguments: Mapping[str, Any]) -> Target:
        """Return the request for arguments. Raise ToolError if an argument would leave its place."""
        variables: dict[str, str] = {}
        query: list[str] = []
        headers: dict[str, str] = {}
        cookies: list[str] = []
        for place, _ in self.places:
            value = arguments.get(place.argument)
            if value is None and not (place.is_json and place.argument in arguments):
                continue
            if place.location == "path":
                variables[place.name] = path_value(place, value)
            elif place.location == "header":
                headers[place.name.lower()] = header_value(place, value)
            elif place.location == "cookie":
                cookies.append(cookie_part(place, value))
            else:
                query += query_parts(place, value, self._query_names)
        if cookies:
            headers["cookie"] = "; ".join(cookies)
        body = None if self.body is None else self.body.body(arguments)
        if body is not None:
            headers["content-type"] = body.content_type
        path = _VARIABLE.sub(lambda match: variables[match[1]], self.operation.path)
        return Target(written_path(path), "&".join(query), headers, None if body is None else body.data)


def _is_valid(schema: dict[str, Any]) -> bool:
    """Return whether a schema of arguments is valid."""
    from funcmcp._authoring.schemas.handwritten_schema import check_schema, schema_checker  # noqa: PLC0415 - late

    try:
        check_schema(schema, "input_schema", objects_only=True)
        schema_checker(schema, "input_schema")
    except RegistrationError:
        return False
    return True


def operations(document: Mapping[str, Any], problems: list[str] | None = None) -> list[Operation]:
    """Return the operations of a document.

    Args:
        document: The document.
        problems: Gets the errors of operations that can't be read, which are then left out.

    Raises:
        RegistrationError: The document is not an OpenAPI document, or an operation can't be read.
    """
    is_2_0 = dialect_of(document) == "2.0"
    listed: list[Operation] = []
    with reading("The OpenAPI document is"):
        paths = [(path, item) for path, item in (document.get("paths") or {}).items() if path.startswith("/")]
    for path, item in paths:
        try:
            with reading("The OpenAPI document is"):
                listed += _operations_of_path(document, path, resolved(document, item), is_2_0=is_2_0)
        except RegistrationError as error:
            if problems is None:
                raise
            problems.append(f"{path}: {error}")
    return listed


def _operations_of_path(
    document: Mapping[str, Any], path: str, path_item: Mapping[str, Any], *, is_2_0: bool
) -> Iterator[Operation]:
    shared = path_item.get("parameters") or []
    for method in METHODS:
        source = path_item.get(method)
        if isinstance(source, dict):
            source = {"servers": path_item.get("servers"), **source}
            if is_2_0:
                from funcmcp._authoring.openapi.swagger2 import operation_of_2_0  # noqa: PLC0415 - few documents

                yield _operation(method, path, operation_of_2_0(document, source, shared), [])
            else:
                yield _operation(method, path, source, shared)


def _operation(method: str, path: str, source: dict[str, Any], shared: list[Any]) -> Operation:
    operation_id = source.get("operationId")
    operation_id = str(operation_id) if operation_id is not None else ""
    name = tool_name(operation_id) or tool_name(f"{method}_{path.strip('/{')}") or method
    summary = str(source.get("summary") or "")
    return Operation(
        name=name,
        method=method.upper(),
        path=path,
        tags=tuple(source.get("tags", ())),
        title=summary or humanised(name),
        description=str(source.get("description") or summary),
        source={**source, "parameters": [*shared, *source.get("parameters", [])]},
        operation_id=operation_id,
        deprecated=source.get("deprecated") is True,
    )


def tool_name(text: str) -> str:
    """Return a text as a name of a tool, as all clients accept it. It is empty if the text has no such character."""
    return _INVALID_CHARACTERS.sub("_", text).strip("_")[:MAX_NAME_LENGTH].rstrip("_")


def free_name(base: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name, with a number at its end if it is taken, as long as the names of tools may be."""
    name, number = base, 1
    while is_taken(name):
        number += 1
        suffix = f"_{number}"
        name = base[: MAX_NAME_LENGTH - len(suffix)] + suffix
    return name


def plan_of(
    operation: Operation,
    document: Mapping[str, Any],
    *,
    forwarded: Collection[str] = (),
    hidden: Collection[tuple[str, str]] = (),
    takes_cookies: bool = False,
    validates_output: bool = True,
) -> OperationPlan:
    """Return the plan of an operation.

    Args:
        operation: An operation of the document.
        document: The document.
        forwarded: The names of headers of the MCP request that the call repeats. They are not arguments.
        hidden: The places and names of other parameters that are not arguments, such as keys.
        takes_cookies: Whether cookies are arguments. Otherwise an operation must not require any.
        validates_output: Whether responses have to match the schema in the document.

    Raises:
        RegistrationError: The operation can't be a tool.
    """
    with reading("is"):
        parameters = parameters_of(operation, document, forwarded, takes_cookies=takes_cookies)
        parameters = [part for part in parameters if (part["in"], part["name"]) not in hidden]
        body = body_of(document, operation.source.get("requestBody"))
        members = None if body is None else _spread_members(document, body)
        taken = {part["name"] for part in parameters}
        if members is not None and (taken & set(members) or len(members) > _MAX_MEMBERS):
            members = None  # the body is one argument beside them
        names = _ArgumentNames(parameters)
        places = tuple((place_of(part, names.of_parameter(part["name"], part["in"])), part) for part in parameters)
        if body is not None:
            body = _named(body, members, names)
        keys = frozenset(name for location, name in hidden if location == "query")
        return OperationPlan(operation, document, places, body, validates_output, keys)


class _ArgumentNames:
    """Gives each parameter and each member of the body an argument's name that is its own.

    Args:
        parameters: The parameters.
    """

    def __init__(self, parameters: Iterable[Mapping[str, Any]]) -> None:
        self._count = Counter(parameter["name"] for parameter in parameters)
        self._taken: set[str] = set()

    def of_parameter(self, name: str, location: str) -> str:
        """Return the name of a parameter's argument, with its place if another one has the name."""
        return self.of_member(f"{name}__{location}" if self._count[name] > 1 else name)

    def of_member(self, name: str) -> str:
        """Return the name of an argument, as the APIs of models accept it."""
        base = _INVALID_IN_ARGUMENTS.sub("_", name).strip("_")[:MAX_NAME_LENGTH] or "argument"
        chosen = free_name(base, self._taken.__contains__)
        self._taken.add(chosen)
        return chosen


def parameters_of(
    operation: Operation, document: Mapping[str, Any], forwarded: Collection[str], *, takes_cookies: bool
) -> list[dict[str, Any]]:
    """Return the parameters that become arguments. Those of the operation replace those of its path."""
    parameters: dict[tuple[str, str], dict[str, Any]] = {}
    for node in operation.source["parameters"]:
        parameter = resolved(document, node)
        parameters[parameter.get("in", ""), parameter["name"]] = parameter
    variables = list(dict.fromkeys(_VARIABLE.findall(operation.path)))
    forwarded_keys = set(map(header_key, forwarded))
    arguments = []
    for (location, name), parameter in parameters.items():
        if location == "cookie" and not takes_cookies:
            if parameter.get("required") is True:
                raise RegistrationError(f"needs the cookie {name!r}, but calls of tools have no cookies.")
        elif location not in DEFAULT_STYLES:
            raise RegistrationError(f"has the parameter {name!r} in {location!r}, which is not supported.")
        elif location == "header":
            if _is_header_argument(name, forwarded_keys):
                arguments.append(parameter)
        elif location != "path" or name in variables:
            arguments.append(parameter)
    undescribed = [name for name in variables if ("path", name) not in parameters]
    return arguments + [{"name": name, "in": "path", "schema": {"type": "string"}} for name in undescribed]


def _is_header_argument(name: str, forwarded_keys: Collection[str]) -> bool:
    """Return whether a header is an argument. Raise RegistrationError if its name is not valid."""
    if is_reserved(name) or header_key(name) in forwarded_keys:
        return False
    if not FIELD_NAME.fullmatch(name):
        raise RegistrationError(f"has a parameter in the header {name!r}, which is not a valid name of a header.")
    return True


def place_of(parameter: dict[str, Any], argument: str) -> Place:
    """Return the place of a parameter with the name of its argument."""
    location = parameter["in"]
    content = parameter.get("content")
    style = parameter.get("style") or DEFAULT_STYLES[location]
    explode = parameter.get("explode")
    return Place(
        argument=argument,
        name=parameter["name"],
        location=location,
        style=style,
        explode=style in {"form", "deepObject"} if explode is None else explode is True,
        is_json=isinstance(content, dict) and any(map(JSON.fullmatch, content)),
        allow_reserved=parameter.get("allowReserved") is True,
        many_segments=parameter.get("x-multi-segment") is True,
    )


def _spread_members(document: Mapping[str, Any], body: BodyPlan) -> list[str] | None:
    """Return the members of a body that become arguments; None if the whole body becomes one argument."""
    if body.kind in {"form", "multipart"}:
        return list(body.members) or None
    if body.kind != "json":
        return None
    schema = resolved(document, body.schema) if isinstance(body.schema, dict) else {}
    if not _spreads(schema, required=body.required):
        return None
    return [name for name, node in schema["properties"].items() if not has_mark(node, "readOnly")]


def _named(body: BodyPlan, members: list[str] | None, names: _ArgumentNames) -> BodyPlan:
    """Return a plan of a body with the names of its arguments."""
    if members is None:
        return replace(body, argument=names.of_member(_BODY))
    places = {name: body.members.get(name) or Place(name, name, _BODY) for name in members}
    named = {name: place._replace(argument=names.of_member(name)) for name, place in places.items()}
    return replace(body, members=named, is_spread=True)


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


def _schemas_of(plan: OperationPlan) -> OperationSchemas:
    schemas = Schemas(plan.document, "request")
    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for place, parameter in plan.places:
        merged["properties"][place.argument] = _parameter_schema(place, parameter, schemas)
        if parameter.get("required") is True or place.location == "path":
            merged["required"].append(place.argument)
    if plan.body is not None:
        _add_body(plan, plan.body, schemas, merged)
    if not merged["required"]:
        del merged["required"]
    of_input: list[LeftOut] = []
    of_output: list[LeftOut] = []
    input_schema = schemas.arranged(merged, of_input)
    problems = list(schemas.problems)
    response = _response_schema(plan)
    output_schema = None
    if response is not None:
        if plan.validates_output:
            output_schema = _checked_output(plan, response, of_output, problems)
        else:
            output_schema = described_only(plan.document, response)
    return OperationSchemas(
        input_schema,
        output_schema,
        (*in_member("inputSchema", of_input), *in_member("outputSchema", of_output)),
        tuple(problems),
    )


def _parameter_schema(place: Place, parameter: Mapping[str, Any], schemas: Schemas) -> Any:
    content = parameter.get("content")
    node = parameter.get("schema", {})
    if isinstance(content, dict):
        entries = list(content.values())
        node = entries[0].get("schema", {}) if place.is_json else {"type": "string"}
    schema = schemas.member(place.name, node)
    return _described(schema, parameter.get("description"), place)


def _described(schema: Any, description: Any, place: Place) -> Any:
    """Return a schema with a description. One whose name is not that of the parameter names the parameter."""
    if isinstance(schema, dict) and isinstance(description, str) and description:
        schema = {**schema, "description": description}
    if place.argument != place.name and isinstance(schema, dict) and "description" not in schema:
        schema = {**schema, "description": f"The {place.location} parameter {place.name}."}
    return schema


def _add_body(plan: OperationPlan, body: BodyPlan, schemas: Schemas, merged: dict[str, Any]) -> None:
    """Add the arguments that become the body to the schema of all arguments."""
    if body.is_spread:
        listed = members_of(plan.document, body.schema)
        properties, required = listed if listed is not None else ({}, [])
        for name, place in body.members.items():
            merged["properties"][place.argument] = _described(schemas.member(name, properties[name]), None, place)
            if name in required and body.required:
                merged["required"].append(place.argument)
        return
    node = body.schema
    if body.kind == "text":
        media_type = body.media_type.partition(";")[0]
        node = {"type": "string", "description": f"The body, a text of the type {media_type}."}
    elif body.kind == "bytes":
        node = {"type": "string", "format": "binary"}
    schema = schemas.convert(node)
    if body.description and isinstance(schema, dict) and (body.kind == "json" or "description" not in schema):
        schema = {**schema, "description": body.description}
    merged["properties"][body.argument] = schema
    if body.required:
        merged["required"].append(body.argument)


def _response_schema(plan: OperationPlan) -> Any:
    """Return the schema of an operation's response if there is only one for success, and it is JSON; otherwise None."""
    responses = plan.operation.source.get("responses", {})
    successes = [node for code, node in responses.items() if _SUCCESS.fullmatch(str(code))]
    if len(successes) != 1:
        return None
    content = resolved(plan.document, successes[0]).get("content", {})
    if len(content) != 1 or not all(map(JSON.fullmatch, content)):
        return None
    (media_type_object,) = content.values()
    return media_type_object.get("schema", {})


def _checked_output(
    plan: OperationPlan, response: Any, left_out: list[LeftOut], problems: list[str]
) -> dict[str, Any] | None:
    """Return the output schema for a response that has to match it; None if it is not always an object."""
    schemas = Schemas(plan.document, "response")
    converted = schemas.convert(response)
    of_schema: list[LeftOut] = []
    schema = schemas.arranged(converted, of_schema) if isinstance(converted, dict) else {}
    problems += schemas.problems
    if schema.get("type") != "object":
        return None
    left_out += of_schema
    return schema

"""The arguments that FastMCP makes of an operation's parameters and body, and their schemas.

They differ from those of ``funcmcp.MCPServer.tools_from_openapi`` in their names: a parameter that has the name of
another one, or of a member of the body, is ``name__location``; the members of every object are arguments; another body
is named after its title.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.openapi.bodies import FILE_STYLE, BodyPlan, body_of, members_of
from funcmcp._authoring.openapi.operations import OperationPlan, parameters_of, place_of
from funcmcp._authoring.openapi.parameters import Place
from funcmcp._authoring.openapi.references import has_mark, reading, resolved
from funcmcp._authoring.openapi.schemas import Schemas
from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from funcmcp._authoring.openapi.operations import Operation

WRAPPED = "x-fastmcp-wrap-result"
"""The mark of output schemas whose member ``result`` is the response."""

_BODY = "body"
_JSON_TYPES = (
    "application/json",
    "application/vnd.api+json",
    "application/hal+json",
    "application/ld+json",
    "text/json",
)
_MAX_DEPTH = 8
"""The depth to which the types of a member of a form are searched."""

_DEFAULT_ENCODING = {
    "style": "form",
    "explode": True,
    "contentType": "text/plain",
    "allowReserved": False,
    "headers": {},
}
"""The encoding of a member of ``multipart/form-data`` that has none."""

_SUCCESSES = ("200", "201", "202", "204")


@dataclass(frozen=True, slots=True)
class FormDataPlan(BodyPlan):
    """A body of the type ``multipart/form-data``, with lists as FastMCP sends them.

    A list of texts is sent as one part for each item. Every other list, and one whose member has an encoding in the
    document that is not the default, is one part, with the list as Python writes it.

    Attributes:
        encoded: The members that have another encoding than the default.
    """

    encoded: frozenset[str] = frozenset()

    def form_parts(self, name: str, value: Any) -> Iterator[tuple[str, bytes]]:
        """Yield the header and the content of each part that a member is."""
        place = self.members.get(name)
        is_file = place is not None and place.style == FILE_STYLE
        if is_file or not isinstance(value, list) or self._is_repeated(name, value):
            return BodyPlan.form_parts(self, name, value)
        return BodyPlan.form_parts(replace(self, members={}), name, str(value))

    def _is_repeated(self, name: str, items: list[Any]) -> bool:
        return bool(items) and name not in self.encoded and all(isinstance(item, str) for item in items)


def plan_of(operation: Operation, document: Mapping[str, Any]) -> OperationPlan:
    """Return the plan of an operation with FastMCP's arguments; raise RegistrationError if it can't be read."""
    with reading("is"):
        parameters = parameters_of(operation, document, (), takes_cookies=True)
        node = operation.source.get("requestBody")
        body = _with_parts(document, body_of(document, node))
        if body is not None and body.kind == "multipart":
            body = _form_data(body, resolved(document, node)["content"][body.media_type])
        members = [] if body is None else _members(document, body)
        body_names = set(members) if members or body is None else {_name_of_body(document, body)}
        counts = Counter(parameter["name"] for parameter in parameters)
        places = []
        for parameter in parameters:
            name = parameter["name"]
            is_taken = counts[name] > 1 or name in body_names
            places.append((place_of(parameter, f"{name}__{parameter['in']}" if is_taken else name), parameter))
        if body is not None and members:
            named = {name: body.members.get(name) or Place(name, name, _BODY) for name in members}
            body = replace(body, members=named, is_spread=True)
        elif body is not None:
            body = replace(body, argument=_name_of_body(document, body))
        return OperationPlan(operation, document, tuple(places), body, shares_query=True)


def _form_data(body: BodyPlan, entry: Mapping[str, Any]) -> FormDataPlan:
    """Return the plan of a body of the type ``multipart/form-data`` with FastMCP's lists."""
    encodings = entry.get("encoding")
    encoded = frozenset(
        name
        for name, encoding in (encodings if isinstance(encodings, dict) else {}).items()
        if isinstance(encoding, dict) and not encoding.items() <= _DEFAULT_ENCODING.items()
    )
    return FormDataPlan(**{field.name: getattr(body, field.name) for field in fields(body)}, encoded=encoded)


def _with_parts(document: Mapping[str, Any], body: BodyPlan | None) -> BodyPlan | None:
    """Return the plan of a body in which a reference with members beside it has both, and lists of objects are JSON."""
    if body is None:
        return None
    schema = body.schema
    if isinstance(schema, dict) and "$ref" in schema and isinstance(schema.get("properties"), dict):
        body = replace(body, schema={"type": "object", "allOf": [{"$ref": schema["$ref"]}, without(schema, "$ref")]})
    if body.kind == "form":
        members = members_of(document, body.schema)
        for name, node in (members or ({}, []))[0].items():
            if name in body.members and _lists_objects(document, node):
                body.members[name] = body.members[name]._replace(is_json=True)
    return body


def _lists_objects(document: Mapping[str, Any], node: Any, depth: int = 0) -> bool:
    """Return whether a schema describes a list of objects, also as one of several types."""
    if not isinstance(node, dict) or depth > _MAX_DEPTH:
        return False
    schema = resolved(document, node)
    parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in schema.get(keyword) or ()]
    if any(_lists_objects(document, part, depth + 1) for part in parts):
        return True
    items = schema.get("items")
    return isinstance(items, dict) and members_of(document, items) is not None


def _members(document: Mapping[str, Any], body: BodyPlan) -> list[str]:
    """Return the members of a body that are arguments; none if the whole body is one."""
    if body.kind not in {"json", "form", "multipart"}:
        return []
    schema = resolved(document, body.schema) if isinstance(body.schema, dict) else {}
    if "oneOf" in schema or "anyOf" in schema or "not" in schema:
        return []
    members = members_of(document, body.schema)
    if members is None:
        return []
    return [name for name, node in members[0].items() if not has_mark(node, "readOnly")]


def _name_of_body(document: Mapping[str, Any], body: BodyPlan) -> str:
    schema = body.schema if isinstance(body.schema, dict) else {}
    if "$ref" in schema:
        schema = resolved(document, schema)
        if schema.get("type") != "object":
            return _BODY
    name = re.sub(r"[^a-zA-Z0-9_]", "_", str(schema.get("title", _BODY)).lower())
    return "body_data" if not name or name[0].isdigit() else name


def output_schema_of(plan: OperationPlan, *, validates: bool) -> dict[str, Any] | None:
    """Return the output schema of an operation; None if it has none.

    Args:
        plan: The plan of the operation.
        validates: Whether it is the schema of the document. Otherwise it allows any object.
    """
    node = _response_schema(plan)
    if not isinstance(node, dict) or not node:
        return None
    schemas = Schemas(plan.document, "response")
    converted = schemas.convert(node)
    flat = schemas.arranged(converted, []) if isinstance(converted, dict) else {}
    is_wrapped = flat.get("type") != "object"
    if not validates:
        permissive: dict[str, Any] = {"type": "object", "additionalProperties": True}
        return {**permissive, WRAPPED: True, "properties": {"result": {}}} if is_wrapped else permissive
    if not is_wrapped:
        return flat
    wrapper = {"type": "object", "properties": {"result": converted}, "required": ["result"]}
    return {**schemas.arranged(wrapper, []), WRAPPED: True}


def _response_schema(plan: OperationPlan) -> Any:
    """Return the schema of the response to a successful request; None if one may have no body."""
    nodes = {str(code): resolved(plan.document, node) for code, node in _responses(plan).items()}
    successes = {code: node for code, node in nodes.items() if code.startswith("2")}
    if not successes or not all(node.get("content") for node in successes.values()):
        return None
    response = next((successes[code] for code in _SUCCESSES if code in successes), None)
    content = (response or next(iter(successes.values())))["content"]
    entry = next((content[name] for name in _JSON_TYPES if name in content), None) or next(iter(content.values()))
    return entry.get("schema") if isinstance(entry, dict) else None


def _responses(plan: OperationPlan) -> Mapping[str, Any]:
    """Return the responses of an operation by their status codes."""
    responses: Mapping[str, Any] = plan.operation.source.get("responses") or {}
    return responses


def media_type_of(plan: OperationPlan) -> str:
    """Return the media type of a successful response; JSON if there is one or none."""
    nodes = {str(code): resolved(plan.document, node) for code, node in _responses(plan).items()}
    codes = [*(code for code in _SUCCESSES if code in nodes), *(code for code in nodes if code.startswith("2"))]
    content = nodes[codes[0]].get("content") if codes else None
    if not content:
        return "application/json"
    return next((name for name in _JSON_TYPES if name in content), next(iter(content)))

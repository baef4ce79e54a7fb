"""Conversion of an OpenAPI document's schemas to JSON Schema 2020-12, without references to the document.

Swagger 2.0 and OpenAPI 3.0 have their own dialects of JSON Schema. 3.1 and later use 2020-12 with a few additional
keywords.

How it works: `Schemas` converts the schemas of one tool. A reference becomes a definition, which is converted when all
schemas before it have been, so that what is near the root comes first. A tool has at most `MAX_PARTS` parts: what is
deeper becomes a schema that only names a type, and the API checks the rest. Keywords that the dialect does not have, or
with a wrong value, are left out, because a document that others wrote may have any.

Source: OpenAPI 3.0.4 "Schema Object", 3.1.1 "Schema Object"; Swagger 2.0 "Schema Object".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.openapi.bodies import FILE, members_of
from funcmcp._authoring.openapi.references import has_mark, resolved, target_of
from funcmcp._authoring.schemas.handwritten_schema import TYPES
from funcmcp._objects.mappings import only
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from funcmcp._server.catalog.features import LeftOut

MAX_PARTS = 1000
"""The schemas inside the schema of one tool. Those of a few APIs have hundreds of thousands, which no model reads."""

_CHARACTERS_OF_PART = 60
"""The characters of a description that count as much as a schema."""

_MAX_EXPANSIONS = 200
_MAX_DESCRIBED = 100
"""The members that the description of a response has at most."""

_MAX_EXAMPLE_BYTES = 300
_MODEL = re.compile(r"-(?:Input|Output)$")
"""Suffixes that FastAPI adds to a model's name if requests and responses have different schemas of it."""

_NOT_LINEAR = re.compile(r"\(\?<?[=!]|\\[1-9k]")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset(
    {
        *("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
_DEPENDENT = frozenset(
    {"additionalProperties", "else", "if", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that are left out where other parts are left out: with fewer parts they would accept fewer values."""

_TIMES = frozenset({"date", "date-time", "time"})
_LOOSE_FORMATS = frozenset({"date-time", "time"})
"""Formats that frameworks also declare for times without an offset from UTC, which these formats require."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_linear(value: Any) -> bool:
    """Return whether the server can check a pattern: it has no regular expressions with look-around or references."""
    return isinstance(value, str) and _NOT_LINEAR.search(value) is None


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(name in TYPES for name in value)
    return value in TYPES


def _is_example(value: Any) -> bool:
    """Return whether an example is short. References in it are data, but those who read the schema may follow them."""
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return len(text) <= _MAX_EXAMPLE_BYTES and b'"$ref"' not in text


def _is_default(value: Any) -> bool:
    return not isinstance(value, dict | list) or _is_example(value)


_DATA: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), _is_text),
    "pattern": _is_linear,
    **dict.fromkeys(("maximum", "minimum"), _is_number),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), lambda value: isinstance(value, int | float)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"), _is_count),
    **dict.fromkeys(("maxContains", "minContains"), _is_count),
    "uniqueItems": lambda value: isinstance(value, bool),
    "required": _is_names,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
    "type": _is_type,
    "enum": lambda value: isinstance(value, list) and bool(value),
    **dict.fromkeys(("const", "default"), _is_default),
    "examples": lambda value: isinstance(value, list) and _is_example(value),
}
"""The keywords whose values are not schemas, with the check of a value."""


class Schemas:
    """Converts schemas of a document to JSON schemas.

    Args:
        document: The OpenAPI document.
        use: The use of the schemas. Those of requests omit read-only members, those of responses write-only ones.

    Attributes:
        problems: What could not be converted. A schema that accepts anything is in its place.
    """

    def __init__(self, document: Mapping[str, Any], use: Literal["request", "response"]) -> None:
        self._document = document
        self._hidden = "readOnly" if use == "request" else "writeOnly"
        self._is_response = use == "response"
        self._names: dict[str, str] = {}  # of definitions, by reference
        self._pending: list[str] = []
        self._definitions: dict[str, Any] = {}
        self._remaining = MAX_PARTS
        self.problems: list[str] = []

    def arranged(self, schema: dict[str, Any], left_out: list[LeftOut]) -> dict[str, Any]:
        """Return a schema that contains converted ones, with its references replaced as in `json_schema.arranged`."""
        from funcmcp._authoring.schemas.json_schema import arranged  # noqa: PLC0415 - loads pydantic

        while self._pending:
            self._define(self._pending.pop(0))
        result = arranged({**schema, "$defs": self._definitions}, left_out, max_expansions=_MAX_EXPANSIONS)
        _require_less(result)
        return result

    def convert(self, node: Any) -> Any:
        """Return a converted schema. Its references are to definitions that `arranged` adds."""
        if isinstance(node, bool):
            return node
        if node is None:
            return {}  # a member without a value in YAML
        if not isinstance(node, dict):
            raise TypeError(f"a {type(node).__name__} in the place of a schema")
        values = node.get("enum")
        texts = len(str(node.get("description", ""))) + (len(values) * 10 if isinstance(values, list) else 0)
        self._remaining -= 1 + texts // _CHARACTERS_OF_PART
        if self._remaining < 0:
            return _type_only(node)
        if "$ref" in node:
            return {**self._reference(node["$ref"]), **self._keywords(node)}
        converted = self._keywords(node)
        # Many documents of 3.1 have keywords of 3.0, too.
        _with_exclusive_limits(converted)
        if node.get("nullable") is True or node.get("x-nullable") is True:
            return _nullable(converted)
        return converted

    def _reference(self, reference: Any) -> dict[str, Any]:
        name = self._names.get(str(reference))
        if name is None:
            try:
                target = target_of(self._document, reference)
            except RegistrationError as error:
                self.problems.append(str(error))
                return {}
            if self._remaining <= 0:
                return _type_only(target) if isinstance(target, dict) else {}
            last = _NOT_A_NAME.sub("_", str(reference).rpartition("/")[2])
            name = last if last not in self._definitions else f"{last}_{len(self._definitions)}"
            self._names[str(reference)] = name
            self._definitions[name] = {}  # so that a schema that refers to itself ends
            self._pending.append(str(reference))
        return {"$ref": f"#/$defs/{name}"}

    def _define(self, reference: str) -> None:
        name = self._names[reference]
        converted = self.convert(target_of(self._document, reference))
        if isinstance(converted, dict) and converted.get("title") == _MODEL.sub("", name):
            del converted["title"]  # it is only the model's name
        self._definitions[name] = converted

    def _keywords(self, node: dict[str, Any]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in _DATA:
                if _DATA[keyword](value):
                    converted[keyword] = value
            elif keyword == "example":
                if _is_example(value):
                    converted.setdefault("examples", [value])
            elif keyword == "properties":
                converted[keyword] = self._members(value)
            elif keyword in _SCHEMAS or keyword in _MAPS or keyword in _LISTS:
                self._add_schemas(converted, keyword, value)
        return self._corrected(converted, node)

    def _corrected(self, converted: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
        """Return converted keywords without those that say too much about the values."""
        if converted.get("format") in _TIMES:
            converted.pop("pattern", None)  # often a picture of the format, such as YYYY-MM-DD
        if self._is_response and converted.get("format") in _LOOSE_FORMATS:
            del converted["format"]
        if self._remaining < 0:
            # Parts are left out, so what depends on all of them would be wrong.
            converted = {name: member for name, member in converted.items() if name not in _DEPENDENT}
        if _is_file(node) and not self._is_response:
            return _file_schema(converted)
        return converted

    def _members(self, properties: dict[str, Any]) -> dict[str, Any]:
        """Return the converted members of an object that are not hidden."""
        members: dict[str, Any] = {}
        for name, schema in properties.items():
            if self._remaining >= 0 and not has_mark(schema, self._hidden):
                members[name] = self.member(name, schema)
        return members

    def _add_schemas(self, converted: dict[str, Any], keyword: str, value: Any) -> None:
        """Add a keyword whose value is a schema, a list of schemas or schemas by name."""
        if keyword not in _SCHEMAS and len(value) > max(self._remaining, 0):
            self._remaining = -1
        elif keyword in _MAPS:
            converted[keyword] = {name: self.convert(schema) for name, schema in value.items()}
        elif keyword in _LISTS:
            converted[keyword] = [self.convert(schema) for schema in value]
        elif isinstance(value, list):
            if keyword == "items":
                converted["prefixItems"] = [self.convert(schema) for schema in value]  # before 2020-12
        else:
            converted[keyword] = self.convert(value)

    def member(self, name: str, schema: Any) -> Any:
        """Return the converted schema of a member or a parameter, without a title that is only its name."""
        converted = self.convert(schema)
        if isinstance(converted, dict) and converted.get("title") == name.replace("_", " ").title():
            del converted["title"]
        return converted


def _require_less(node: Any) -> None:
    """Remove names that are not described from the required ones: those of hidden members, and what APIs refuse."""
    if isinstance(node, list):
        for item in node:
            _require_less(item)
    if not isinstance(node, dict):
        return
    required, properties = node.get("required"), node.get("properties", {})
    if isinstance(required, list) and isinstance(properties, dict):
        node["required"] = [name for name in required if name in properties]
        if not node["required"]:
            del node["required"]
    for keyword, member in node.items():
        if keyword not in _DATA:
            _require_less(member)


def _type_only(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schema says about the type of its values."""
    schema = only(node, ("type", "description")) if _is_type(node.get("type")) else {}
    return schema if isinstance(schema.get("description", ""), str) else only(schema, ("type",))


def _is_file(node: Mapping[str, Any]) -> bool:
    """Return whether a schema describes bytes."""
    return node.get("type") == "file" or (node.get("type") == "string" and node.get("format") == "binary")


def _file_schema(converted: Mapping[str, Any]) -> dict[str, Any]:
    description = converted.get("description")
    return {"type": "string", "description": f"{description} {FILE}" if description else FILE}


def _with_exclusive_limits(schema: dict[str, Any]) -> None:
    """Replace the ``exclusiveMinimum: true`` of OpenAPI 3.0, beside a minimum, by that number."""
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and limit in schema:
            schema[exclusive] = schema.pop(limit)
        elif isinstance(schema.get(exclusive), bool):
            del schema[exclusive]


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, list) and "null" in kind:
        return schema
    if not isinstance(kind, str):
        return {"anyOf": [schema, {"type": "null"}]}
    nullable = {**schema, "type": [kind, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def described_only(document: Mapping[str, Any], schema: Any) -> dict[str, Any] | None:
    """Return a schema that every JSON object fits, with the names and descriptions of the members of a response.

    Args:
        document: The OpenAPI document.
        schema: The schema of the response, in the document.

    Returns:
        None if the schema does not describe an object.
    """
    try:
        if members_of(document, schema) is None:
            return None
    except RegistrationError:
        return None  # a reference to another document
    root: dict[str, Any] = {"type": "object"}
    pending: list[tuple[Any, dict[str, Any]]] = [(schema, root)]
    remaining = _MAX_DESCRIBED
    while pending and remaining > 0:
        node, described = pending.pop(0)
        try:
            _describe(document, node, described, pending)
        except RegistrationError:
            continue  # a reference to another document
        remaining -= 1 + len(described.get("properties", ()))
    return root


def _describe(
    document: Mapping[str, Any], node: Any, described: dict[str, Any], pending: list[tuple[Any, dict[str, Any]]]
) -> None:
    """Add what a schema says to a schema that describes it, and its parts to those that are still to be described."""
    plain = resolved(document, node)
    text = plain.get("description")
    if isinstance(text, str) and text.strip():
        described["description"] = text
    if isinstance(plain.get("items"), dict):
        described["items"] = {}
        pending.append((plain["items"], described["items"]))
    listed = members_of(document, plain)
    if listed is not None and listed[0]:
        names = [str(name) for name in listed[0] if not has_mark(listed[0][name], "writeOnly")][:_MAX_DESCRIBED]
        described["properties"] = {name: {} for name in names}
        pending += [(listed[0][name], described["properties"][name]) for name in names]

"""Conversion of an OpenAPI document's schemas to JSON Schema 2020-12, without references to the document.

OpenAPI 3.0 has its own dialect of JSON Schema. 3.1 and later use 2020-12 with a few additional keywords.

Source: OpenAPI 3.0.4 "Schema Object", 3.1.1 "Schema Object", "Reference Object".
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Literal

    from funcmcp._server.catalog.features import LeftOut

_COMPONENTS = "#/components/schemas/"
_MAX_STEPS = 50
_MODEL = re.compile(r"-(?:Input|Output)$")
"""Suffixes that FastAPI adds to a model's name if requests and responses have different schemas of it."""

_DROPPED = frozenset({"discriminator", "externalDocs", "nullable", "readOnly", "writeOnly", "xml"})
_MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset(
    {
        *("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
_LOOSE_FORMATS = frozenset({"date-time", "time"})
"""Formats that frameworks also declare for times without an offset from UTC, which these formats require."""


@contextmanager
def reading(subject: str) -> Iterator[None]:
    """Convert errors about an invalid document to RegistrationError. The document is not validated before.

    Args:
        subject: The beginning of the message, up to "is".

    Raises:
        RegistrationError: A part of the document has a wrong type, is missing, or is nested too deeply.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise RegistrationError(f"{subject} not valid OpenAPI ({type(error).__name__}: {error}).") from error


def resolved(document: Mapping[str, Any], node: Any) -> dict[str, Any]:
    """Return an object of a document, or the one that it refers to.

    Raises:
        RegistrationError: A reference leads out of the document, does not exist, or is part of a circle.
    """
    for _ in range(_MAX_STEPS):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if reference is None:
            break
        node = _target(document, reference)
    else:
        raise RegistrationError("The OpenAPI document has a circle of references.")
    if not isinstance(node, dict):
        raise RegistrationError(f"The OpenAPI document has a {type(node).__name__} in the place of an object.")
    return node


def _target(document: Mapping[str, Any], reference: str) -> Any:
    node: Any = document
    try:
        start, *parts = reference.split("/")
        if start != "#":
            raise KeyError(reference)
        for part in parts:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            node = node[int(name) if isinstance(node, list) else name]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        raise RegistrationError(f"The OpenAPI document refers to {reference!r}, which is not in it.") from None
    return node


class Schemas:
    """Converts schemas of a document to JSON schemas.

    Args:
        document: The OpenAPI document.
        use: The use of the schemas. Those of requests omit read-only members, those of responses write-only ones.
    """

    def __init__(self, document: Mapping[str, Any], use: Literal["request", "response"]) -> None:
        self._document = document
        self._is_3_0 = str(document.get("openapi", "")).startswith("3.0")
        self._hidden = "readOnly" if use == "request" else "writeOnly"
        self._is_response = use == "response"
        self._definitions: dict[str, Any] = {}

    def arranged(self, schema: dict[str, Any], left_out: list[LeftOut]) -> dict[str, Any]:
        """Return a schema that contains converted ones, with its references replaced as in `json_schema.arranged`."""
        from funcmcp._authoring.values.json_schema import arranged  # noqa: PLC0415 - loads pydantic

        return arranged({**schema, "$defs": self._definitions}, left_out)

    def convert(self, node: Any) -> Any:
        """Return a converted schema. Its references are to definitions that `arranged` adds."""
        if not isinstance(node, dict):
            return node  # true or false
        if "$ref" in node:
            return {"$ref": f"#/$defs/{self._defined(node['$ref'])}", **self._keywords(node)}
        converted = self._keywords(node)
        if self._is_3_0:
            _with_exclusive_limits(converted)
            if node.get("nullable") is True:
                return _nullable(converted)
        return converted

    def _defined(self, reference: Any) -> str:
        name = str(reference).removeprefix(_COMPONENTS)
        if not str(reference).startswith(_COMPONENTS) or "/" in name:
            raise RegistrationError(
                f"The OpenAPI document refers to {reference!r}. Only references to {_COMPONENTS}... are supported."
            )
        if name not in self._definitions:
            self._definitions[name] = {}  # so that a schema that refers to itself ends
            converted = self.convert(_target(self._document, str(reference)))
            if isinstance(converted, dict) and converted.get("title") == _MODEL.sub("", name):
                del converted["title"]  # it is only the model's name
            self._definitions[name] = converted
        return name

    def _keywords(self, node: dict[str, Any]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in _DROPPED or keyword == "$ref" or keyword.startswith("x-"):
                continue
            if keyword == "example":
                converted.setdefault("examples", [value])
            elif keyword == "format" and self._is_response and value in _LOOSE_FORMATS:
                continue
            else:
                converted[keyword] = self._keyword(keyword, value)
        if "required" in converted and isinstance(node.get("properties"), dict):
            hidden = node["properties"].keys() - converted["properties"].keys()
            converted["required"] = [name for name in converted["required"] if name not in hidden]
        return converted

    def _keyword(self, keyword: str, value: Any) -> Any:
        if keyword == "properties":
            return {name: self.member(name, schema) for name, schema in value.items() if not self._hides(schema)}
        if keyword in _MAPS:
            return {name: self.convert(schema) for name, schema in value.items()}
        if keyword in _LISTS:
            return [self.convert(schema) for schema in value]
        return self.convert(value) if keyword in _SCHEMAS else value

    def member(self, name: str, schema: Any) -> Any:
        """Return the converted schema of a member or a parameter, without a title that is only its name."""
        converted = self.convert(schema)
        if isinstance(converted, dict) and converted.get("title") == name.replace("_", " ").title():
            del converted["title"]
        return converted

    def _hides(self, schema: Any) -> bool:
        return isinstance(schema, dict) and schema.get(self._hidden) is True


def _with_exclusive_limits(schema: dict[str, Any]) -> None:
    """Replace the ``exclusiveMinimum: true`` of OpenAPI 3.0, beside a minimum, by that number."""
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and limit in schema:
            schema[exclusive] = schema.pop(limit)
        elif isinstance(schema.get(exclusive), bool):
            del schema[exclusive]


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [schema, {"type": "null"}]}
    nullable = {**schema, "type": [kind, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    return nullable

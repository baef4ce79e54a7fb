"""Schemas of an OpenAPI document as JSON schemas of 2020-12 that stand alone.

OpenAPI 3.0 has a dialect of its own; 3.1 and later are 2020-12 with a few more keywords.

Source: OpenAPI 3.0.4 "Schema Object", 3.1.1 "Schema Object", "Reference Object".
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Literal

_COMPONENTS = "#/components/schemas/"
_MOST_STEPS = 50
_MODEL = re.compile(r"-(?:Input|Output)$")
"""What FastAPI adds to a model's name where it reads and writes the model in different ways."""

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
"""Formats that frameworks claim for what they write without an offset from UTC, too."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Say of a document that is not as OpenAPI has it that it can't be read: nothing else checks it.

    Raises:
        RegistrationError: something in it is of another type, missing, or nested too deeply.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        words = f"{type(error).__name__}: {error}"
        raise RegistrationError(f"{what} not written as OpenAPI has it ({words}).") from error


def resolved(document: Mapping[str, Any], node: Any) -> dict[str, Any]:
    """Return an object of a document, following references inside of the document.

    Raises:
        RegistrationError: a reference leads out of the document, to nothing, or in a circle.
    """
    for _ in range(_MOST_STEPS):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if reference is None:
            break
        node = _target(document, reference)
    else:
        raise RegistrationError("The OpenAPI document has a reference that leads in a circle.")
    if not isinstance(node, dict):
        raise RegistrationError(f"The OpenAPI document has {type(node).__name__} where an object has to be.")
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
    """Turns schemas of a document into JSON schemas.

    Args:
        document: the OpenAPI document.
        use: whether the schemas are of requests, which have no members that are read-only, or of responses.
    """

    def __init__(self, document: Mapping[str, Any], use: Literal["request", "response"]) -> None:
        self._document = document
        self._is_3_0 = str(document.get("openapi", "")).startswith("3.0")
        self._hidden = "readOnly" if use == "request" else "writeOnly"
        self._is_response = use == "response"
        self._definitions: dict[str, Any] = {}

    def arranged(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema that is made of converted ones, references in place unless they are recursive."""
        from funcmcp.authoring.values.json_schema import arranged  # noqa: PLC0415 - loads pydantic

        return arranged({**schema, "$defs": self._definitions})

    def convert(self, node: Any) -> Any:
        """Return a schema, with references to definitions that `arranged` puts in."""
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
            raise RegistrationError(f"The OpenAPI document refers to {reference!r}; only {_COMPONENTS}... is followed.")
        if name not in self._definitions:
            self._definitions[name] = {}  # for schemas that refer to themselves
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
        """Return the schema of a member or a parameter, without a title that is only its name."""
        converted = self.convert(schema)
        if isinstance(converted, dict) and converted.get("title") == name.replace("_", " ").title():
            del converted["title"]
        return converted

    def _hides(self, schema: Any) -> bool:
        return isinstance(schema, dict) and schema.get(self._hidden) is True


def _with_exclusive_limits(schema: dict[str, Any]) -> None:
    """Turn 3.0's ``exclusiveMinimum: true`` beside a minimum into the number that it means."""
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and limit in schema:
            schema[exclusive] = schema.pop(limit)
        elif isinstance(schema.get(exclusive), bool):
            del schema[exclusive]


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [schema, {"type": "null"}]}
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema and None not in schema["enum"] else {}
    return {**schema, "type": [kind, "null"], **enum}

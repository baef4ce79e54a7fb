"""Values for JSON Schemas: arguments that a model could send, and results that a tool could return."""

from __future__ import annotations

from typing import Any

import jsonschema

_TEXTS = {
    "date": "2026-11-25",
    "date-time": "2026-11-25T08:00:00Z",
    "time": "08:00:00Z",
    "duration": "PT5M",
    "uuid": "7f0c7a3c-4d2e-4a6a-9a51-6a1f0c7b2d11",
    "uri": "https://example.com/",
    "email": "ada@example.com",
    "ipv4": "192.0.2.1",
    "binary": "aGVsbG8=",
    "path": "/tmp",
}
_LITERALS = ("const", "enum", "default", "examples")


def example(schema: dict[str, Any]) -> Any:
    """Return a small value that a schema allows, with required members only; raise ValidationError if there is none."""
    value = _Examples(schema.get("$defs", {})).of(schema)
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


class _Examples:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def of(self, schema: dict[str, Any]) -> Any:
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if "$ref" in schema:
            return self.of(self._definitions[schema["$ref"].rpartition("/")[2]])
        for keyword in ("anyOf", "oneOf", "allOf"):
            if keyword in schema and "properties" not in schema:
                return self.of(schema[keyword][0])
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        return getattr(self, f"_{kind}")(schema)

    def _object(self, schema: dict[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        return {name: self.of(properties.get(name, {})) for name in schema.get("required", [])}

    def _array(self, schema: dict[str, Any]) -> list[Any]:
        first = [self.of(item) for item in schema.get("prefixItems", [])]
        missing = schema.get("minItems", 0) - len(first)
        return first + [self.of(schema.get("items", {})) for _ in range(missing)]

    def _string(self, schema: dict[str, Any]) -> str:
        text = _TEXTS.get(schema.get("format", ""), "a")
        return text.ljust(schema.get("minLength", 0), "a")

    def _integer(self, schema: dict[str, Any]) -> int:
        return int(self._number(schema))

    def _number(self, schema: dict[str, Any]) -> float:
        lowest: float = max(1, schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))
        highest: float = schema.get("maximum", lowest)
        return min(lowest, highest)

    def _boolean(self, schema: dict[str, Any]) -> bool:
        return True

    def _null(self, schema: dict[str, Any]) -> None:
        return None

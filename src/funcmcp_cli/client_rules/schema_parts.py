"""The parts of a JSON schema: the schema itself and all schemas in it, each with its place.

A schema comes from any server, so the walk is limited in depth and in the number of parts, follows no references, and
expects values of wrong types everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PARTS = 20_000
"""The maximum number of parts of one schema that are examined."""

MAX_DEPTH = 100
"""The maximum number of schemas in one another that are examined."""

_SINGLE = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")


class SchemaPart(NamedTuple):
    """A schema in a schema.

    Attributes:
        path: Its place, such as ``("properties", "code")``.
        keywords: The keywords on this path, without names and numbers, such as ``("properties",)``.
        schema: The schema: an object, true, false, or a value of another type in a schema that is not valid.
    """

    path: tuple[str, ...]
    keywords: tuple[str, ...]
    schema: Any

    def get(self, keyword: str) -> Any:
        """Return the value of a keyword. Return None if the schema does not have it."""
        return self.schema.get(keyword) if isinstance(self.schema, dict) else None

    def has(self, keyword: str) -> bool:
        """Return whether the schema has a keyword."""
        return isinstance(self.schema, dict) and keyword in self.schema


def parts_of(schema: Any) -> list[SchemaPart]:
    """Return the parts of a schema in the order of the text, `MAX_PARTS` at most."""
    parts: list[SchemaPart] = []
    pending = [iter([SchemaPart((), (), schema)])]
    while pending and len(parts) < MAX_PARTS:
        part = next(pending[-1], None)
        if part is None:
            pending.pop()
            continue
        parts.append(part)
        if len(pending) <= MAX_DEPTH:
            pending.append(_members(part))
    return parts


def _members(part: SchemaPart) -> Iterator[SchemaPart]:
    if not isinstance(part.schema, dict):
        return
    for keyword, value in part.schema.items():
        path, keywords = (*part.path, str(keyword)), (*part.keywords, str(keyword))
        if keyword in _MAPS and isinstance(value, dict):
            for name, member in value.items():
                yield SchemaPart((*path, str(name)), keywords, member)
        elif keyword in _LISTS and isinstance(value, list):
            for number, member in enumerate(value):
                yield SchemaPart((*path, str(number)), keywords, member)
        elif keyword in _SINGLE:
            yield SchemaPart(path, keywords, value)

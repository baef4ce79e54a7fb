"""What a client's declaration of a tool no longer says that the tool's schema says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEPTH = 8
"""Levels of a recursive schema that are compared."""
_KEYS = {"object": ("properties", "additionalProperties"), "array": ("items", "prefixItems")}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class Schema:
    """A part of a JSON Schema, or of a schema in Gemini's dialect, without references and unions at its top.

    Attributes:
        members: The members of the union that it is; itself where it is none.
    """

    def __init__(self, part: dict[str, Any] | bool, root: dict[str, Any]) -> None:
        self._part = part if isinstance(part, dict) else {}
        self._root = root

    @property
    def members(self) -> list[Schema]:
        part = self._resolved()
        union = part.get("anyOf") or part.get("oneOf")
        if not union or "type" in part:
            return [Schema(part, self._root)]
        members = [member for alternative in union for member in Schema(alternative, self._root).members]
        return [member for member in members if member.types != {"null"}]

    def _resolved(self) -> dict[str, Any]:
        part = self._part
        while "$ref" in part:
            target: Any = self._root
            for key in part["$ref"].removeprefix("#").split("/")[1:]:
                target = target.get(key, {})
            part = {**target, **{key: value for key, value in part.items() if key != "$ref"}}
        if isinstance(part.get("allOf"), list) and len(part["allOf"]) == 1:
            return {**Schema(part["allOf"][0], self._root)._resolved(), **part}
        return part

    @property
    def types(self) -> set[str]:
        """The types that it names; an empty set where it allows any."""
        part = self._resolved()
        if "type" not in part and (part.get("anyOf") or part.get("oneOf")):
            each = [member.types for member in self.members]
            return set() if set() in each else set().union(*each)
        types = {name.lower() for name in _names(part)}
        types.discard("type_unspecified")
        if not types:
            types = {_TYPES[type(value)] for value in self.values if value is not None}
        if not types:
            types = {name for name, keys in _KEYS.items() if any(key in part for key in keys)}
        return types - {"null"} or types

    @property
    def values(self) -> list[Any]:
        """The values that it names."""
        part = self._resolved()
        return [part["const"]] if "const" in part else part.get("enum") or []

    @property
    def properties(self) -> dict[str, Schema]:
        return {name: Schema(part, self._root) for name, part in self._resolved().get("properties", {}).items()}

    @property
    def required(self) -> list[str]:
        """The names of the properties that have to be present."""
        required: list[str] = self._resolved().get("required", [])
        return required

    @property
    def takes_null(self) -> bool:
        part = self._resolved()
        alternatives = part.get("anyOf", [])
        return (
            part.get("nullable", False)
            or "null" in _names(part)
            or any("null" in _names(member) for member in alternatives)
        )

    @property
    def items(self) -> Schema | None:
        items = self._resolved().get("items")
        return Schema(items, self._root) if isinstance(items, dict) else None


def _names(part: dict[str, Any]) -> list[str]:
    """Return the types that a part names itself."""
    named = part.get("type", [])
    return [named] if isinstance(named, str) else named


def losses(listed: dict[str, Any], declared: dict[str, Any]) -> list[str]:
    """Return what is lost from a tool's input schema to its declaration, each with the path of the argument.

    Not compared are descriptions, limits of numbers and lengths, and members of objects without names.
    """
    return list(_lost(Schema(listed, listed), Schema(declared, declared), "", _DEPTH))


def _lost(listed: Schema, declared: Schema, path: str, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if message := _lost_types(listed.types, declared.types):
        yield f"{path or 'arguments'}: {message}"
        return
    before, after = listed.members, declared.members
    if len(before) != len(after) and len(before) > 1:
        yield f"{path}: alternatives are merged"
        return
    for member, counterpart in zip(before, after, strict=False):
        yield from _lost_in(member, counterpart, path, depth)


def _lost_types(listed: set[str], declared: set[str]) -> str:
    if listed and not declared:
        return "no type"
    if declared and not listed:
        return f"any type becomes {' or '.join(sorted(declared))}"
    missing = listed - declared - ({"integer"} if "number" in declared else set())
    return f"{' or '.join(sorted(missing))} is missing" if missing else ""


def _lost_in(listed: Schema, declared: Schema, path: str, depth: int) -> Iterator[str]:
    if listed.values and not declared.values:
        yield f"{path}: no values"
    properties = declared.properties
    for name, part in listed.properties.items():
        inner = f"{path}.{name}" if path else name
        if name not in properties:
            yield f"{inner}: absent"
        elif name in declared.required and name not in listed.required and not properties[name].takes_null:
            yield f"{inner}: becomes required"
        else:
            yield from _lost(part, properties[name], inner, depth - 1)
    if listed.items is not None and listed.items.types:
        if declared.items is None:
            yield f"{path}[]: no type"
        else:
            yield from _lost(listed.items, declared.items, f"{path}[]", depth - 1)

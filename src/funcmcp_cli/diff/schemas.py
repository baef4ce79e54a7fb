"""Differences between two JSON Schemas, and which of them break clients.

How it works: a client sends arguments and receives results. So the new schema of arguments has to accept each value
that the old one accepts, and the old schema of results has to accept each value that the new one accepts. `_Comparison`
compares a *reader's* schema, which has to accept the values, with a *writer's* schema, which describes them: for
arguments the reader is the new schema, for results it is the old one. A difference breaks clients if the reader accepts
less than the writer describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import without
from funcmcp_cli.diff.differences import Difference, Level, changed, level_of, short
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = ("title", "description", "examples", "$comment", "deprecated")
_LOWER_LIMITS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_UPPER_LIMITS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_RULES = ("pattern", "multipleOf", "format", "uniqueItems", "contentEncoding", "contentMediaType")
_JUDGED = {
    *_WORDS, *_LOWER_LIMITS, *_UPPER_LIMITS, *_RULES,
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "default", "definitions", "enum", "items",
    "nullable", "oneOf", "properties", "required", "type", "x-mcp-header",
}  # fmt: skip
_ALL_TYPES = frozenset({"array", "boolean", "null", "number", "object", "string"})
_MAX_DEPTH = 20


def argument_differences(subject: str, old: Any, new: Any) -> list[Difference]:
    """Return the differences between two schemas of a tool's arguments."""
    comparison = _Comparison(subject, old, new, new_reads=True)
    comparison.compare("", old, new, 0)
    return comparison.differences


def result_differences(subject: str, old: Any, new: Any) -> list[Difference]:
    """Return the differences between two schemas of a tool's results. None stands for a missing one."""
    if old is None or new is None:
        if old == new:
            return []
        if old is None:
            return [Difference("compatible", subject, "results now have a schema")]
        return [Difference("breaking", subject, "results no longer have a schema and structured content")]
    comparison = _Comparison(subject, old, new, new_reads=False)
    comparison.compare("", old, new, 0)
    return comparison.differences


class _Comparison:
    """The comparison of two schemas.

    Args:
        subject: The feature that the schemas belong to.
        old: The old schema, for its definitions.
        new: The new schema, for its definitions.
        new_reads: Whether the new schema is the reader's.
    """

    def __init__(self, subject: str, old: Any, new: Any, *, new_reads: bool) -> None:
        self.subject = subject
        self.old_root = as_object(old)
        self.new_root = as_object(new)
        self.new_reads = new_reads
        self.differences: list[Difference] = []

    def add(self, level: Level, place: str, text: str) -> None:
        side = "argument" if self.new_reads else "result"
        name = f"{side} {place}: " if place else f"{side}s: "
        self.differences.append(Difference(level, self.subject, name + text))

    def add_narrowed(self, place: str, text: str, *, new_is_narrower: bool) -> None:
        """Add a difference that breaks clients if it is the reader's schema that accepts less."""
        self.add(level_of(is_breaking=new_is_narrower is self.new_reads), place, text)

    def compare(self, place: str, old: Any, new: Any, depth: int) -> None:
        """Compare two schemas at a place, such as ``order.items[]``."""
        old = _resolved(old, self.old_root)
        new = _resolved(new, self.new_root)
        if old == new and self.old_root.get("$defs") == self.new_root.get("$defs"):
            return
        if depth > _MAX_DEPTH:  # a recursive model: its levels are the same
            return
        for keyword in _WORDS:
            if old.get(keyword) != new.get(keyword):
                self.add("wording", place, changed(keyword, old.get(keyword), new.get(keyword)))
        if old.get("default") != new.get("default"):
            self.add("compatible", place, changed("default", old.get("default"), new.get("default")))
        self.compare_types(place, old, new)
        self.compare_values(place, old, new)
        self.compare_limits(place, old, new)
        self.compare_members(place, old, new, depth)
        if "items" in old or "items" in new:
            self.compare(f"{place}[]", old.get("items", {}), new.get("items", {}), depth + 1)
        self.compare_alternatives(place, old, new)
        for keyword in sorted((set(old) | set(new)) - _JUDGED):
            if old.get(keyword) != new.get(keyword):
                is_breaking = not keyword.startswith("x-")  # validators ignore these keywords
                self.add(level_of(is_breaking=is_breaking), place, changed(keyword, old.get(keyword), new.get(keyword)))

    def compare_types(self, place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        old_types, new_types = _types(old), _types(new)
        if old_types == new_types:
            return
        text = f"type changed from {_listed(old_types)} to {_listed(new_types)}"
        if _covers(new_types, old_types):
            self.add_narrowed(place, text, new_is_narrower=False)
        elif _covers(old_types, new_types):
            self.add_narrowed(place, text, new_is_narrower=True)
        else:
            self.add("breaking", place, text)

    def compare_values(self, place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        old_values, new_values = _values(old), _values(new)
        if old_values == new_values:
            return
        if old_values is None or new_values is None:
            text = changed("the list of values", old_values, new_values)
            self.add_narrowed(place, text, new_is_narrower=old_values is None)
            return
        removed = [value for value in old_values if value not in new_values]
        added = [value for value in new_values if value not in old_values]
        if removed:
            self.add_narrowed(place, f"values removed: {', '.join(map(short, removed))}", new_is_narrower=True)
        if added:
            self.add_narrowed(place, f"values added: {', '.join(map(short, added))}", new_is_narrower=False)

    def compare_limits(self, place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        for keyword in (*_LOWER_LIMITS, *_UPPER_LIMITS, *_RULES):
            before, after = old.get(keyword), new.get(keyword)
            if before == after:
                continue
            text = changed(keyword, before, after)
            if before is None or after is None:
                self.add_narrowed(place, text, new_is_narrower=before is None)
            elif keyword in _LOWER_LIMITS:
                self.add_narrowed(place, text, new_is_narrower=after > before)
            elif keyword in _UPPER_LIMITS:
                self.add_narrowed(place, text, new_is_narrower=after < before)
            else:
                self.add("breaking", place, text)

    def compare_members(self, place: str, old: Mapping[str, Any], new: Mapping[str, Any], depth: int) -> None:
        old_members, new_members = as_object(old.get("properties")), as_object(new.get("properties"))
        old_required, new_required = as_list(old.get("required")), as_list(new.get("required"))
        for name in dict.fromkeys([*old_members, *new_members]):
            member = f"{place}.{name}" if place else name
            if name not in new_members:
                is_breaking = self.new_reads or name in old_required
                self.add(level_of(is_breaking=is_breaking), member, "removed")
            elif name in old_members:
                if name in new_required and name not in old_required:
                    self.add_narrowed(member, "required now", new_is_narrower=True)
                if name in old_required and name not in new_required:
                    self.add_narrowed(member, "no longer required", new_is_narrower=False)
                self.compare(member, old_members[name], new_members[name], depth + 1)
            elif name in new_required:
                self.add(level_of(is_breaking=self.new_reads), member, "new and required")
            else:
                self.add("compatible", member, "new")
        self.compare_other_members(place, old, new, depth)

    def compare_other_members(self, place: str, old: Mapping[str, Any], new: Mapping[str, Any], depth: int) -> None:
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if before == after or {str(before), str(after)} == {"True", "{}"}:
            return
        if isinstance(before, dict) and isinstance(after, dict):
            self.compare(f"{place}.*" if place else "*", before, after, depth + 1)
            return
        text = changed("additionalProperties", before, after)
        self.add_narrowed(place, text, new_is_narrower=after is False or before is True or before == {})

    def compare_alternatives(self, place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Compare the schemas of ``anyOf`` and ``oneOf``: each one needs an equal or wider one on the other side."""
        old_schemas, new_schemas = _alternatives(old), _alternatives(new)
        if old_schemas == new_schemas:
            return
        missing = [schema for schema in old_schemas if not self.has_wider(new_schemas, schema, of_new=True)]
        extra = [schema for schema in new_schemas if not self.has_wider(old_schemas, schema, of_new=False)]
        if missing:
            self.add_narrowed(place, f"alternatives removed: {', '.join(map(short, missing))}", new_is_narrower=True)
        if extra:
            self.add_narrowed(place, f"alternatives added: {', '.join(map(short, extra))}", new_is_narrower=False)

    def has_wider(self, candidates: list[Any], schema: Any, *, of_new: bool) -> bool:
        """Return whether one of the candidates accepts all values of a schema of the other side."""
        for candidate in candidates:
            attempt = _Comparison(self.subject, self.old_root, self.new_root, new_reads=of_new)
            if of_new:
                attempt.compare("", schema, candidate, 1)
            else:
                attempt.compare("", candidate, schema, 1)
            if "breaking" not in [difference.level for difference in attempt.differences]:
                return True
        return False


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema as an object without references, and with its simple alternatives merged."""
    if schema is False:
        return {"enum": []}
    schema = as_object(schema)
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        target: Any = root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name:
                target = as_object(target).get(name)
        schema = {**as_object(target), **without(schema, "$ref")}
    return _without_null(schema)


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``{"anyOf": [T, {"type": "null"}]}`` and ``{"nullable": true}`` as T with the type null."""
    if schema.get("nullable") is True:
        return {**schema, "nullable": None, "type": sorted({*_types(schema), "null"})}
    for keyword in ("anyOf", "oneOf"):
        alternatives = as_list(schema.get(keyword))
        non_null = [alternative for alternative in alternatives if as_object(alternative).get("type") != "null"]
        if len(non_null) == 1 and len(alternatives) == 2 and isinstance(non_null[0], dict) and "type" in non_null[0]:  # noqa: PLR2004
            remaining = without(schema, keyword)
            merged = {**non_null[0], **remaining, "type": sorted({*_types(non_null[0]), "null"})}
            if "enum" in merged:
                merged["enum"] = [*merged["enum"], None]
            return merged
    return schema


def _alternatives(schema: Mapping[str, Any]) -> list[Any]:
    return [*as_list(schema.get("anyOf")), *as_list(schema.get("oneOf"))]


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list) and named:
        return frozenset(map(str, named))
    return _ALL_TYPES


def _covers(wide: frozenset[str], narrow: frozenset[str]) -> bool:
    """Return whether values of some types are all of other types. An integer is a number."""
    if "number" in wide:
        wide |= {"integer"}
    return narrow <= wide


def _listed(types: frozenset[str]) -> str:
    if types == _ALL_TYPES:
        return "any"
    return " | ".join(sorted(types))


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    if isinstance(values, list):
        return values
    return None

"""A bound on values with equal hashes in sets and as keys of dicts.

Python's hash of a number is the number modulo 2**61 - 1, so a client can send numbers with equal hashes. A set of n of
them takes n * n steps: 70,000 numbers in 1.5 MB take half a minute. Hashes of strings, bytes, dates and times are keyed
at random and are not affected.

How it works: before pydantic reads a set or a dict, its members or keys are read one by one, and those with equal
hashes are counted. Equal members count once. The count is the discriminator of a tagged union with one member, the set
itself, because pydantic passes the value to a discriminator in every mode and does not change it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic_core import ValidationError, core_schema

from funcmcp._authoring.schemas.pydantic_schema_tree import children, nodes_of, with_children
from funcmcp._authoring.schemas.pydantic_versions import compiled_validator
from funcmcp._protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from pydantic_core import SchemaValidator

    Node: TypeAlias = dict[str, Any]

MAX_MEMBERS = 10_000
"""The maximum number of different members of a set or dict whose hashes a client can choose. They take at most about
0.1 s, whatever their hashes are."""

MAX_EQUAL_HASHES = 16

_TAG = -1
_ANY: Any = {"type": "any"}
_SETS = frozenset({"frozenset", "set"})
_DICTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_KEYED = frozenset({"bool", "bytes", "date", "datetime", "none", "str", "time"})
"""Types with hashes that are keyed at random, or with few values."""

_WRAPPERS = frozenset(
    {
        *("custom-error", "default", "function-after", "function-before", "function-wrap", "nullable"),
        *("json-or-python", "lax-or-strict", "union"),
    }
)


class _Hashes:
    """The hashes of the members of one set or dict."""

    def __init__(self) -> None:
        self._members: dict[int, list[Any]] = {}
        self._count = 0

    def add(self, member: Any) -> None:
        """Count a member. Raise ToolError if there are too many members, or too many with one hash."""
        try:
            equal = self._members.setdefault(hash(member), [])
        except TypeError:
            return  # not hashable, which the set or dict reports
        if member in equal:
            return
        equal.append(member)
        self._count += 1
        if len(equal) > MAX_EQUAL_HASHES:
            raise ToolError("A set or the keys of an object have too many values with equal hashes. Remove some.")
        if self._count > MAX_MEMBERS:
            raise ToolError(
                f"A set or an object has more than {MAX_MEMBERS:,} members, the maximum for members of this type. "
                "Send fewer at once."
            )


def with_hash_limits(schema: Node) -> Node:
    """Return a schema with bounds on sets and dicts whose hashes clients can choose.

    A schema without such sets and dicts is returned unchanged.
    """
    if not any(map(_member_key, nodes_of(schema))):
        return schema
    return _limited(schema, schema.get("definitions", []))


def _limited(node: Node, definitions: list[Node]) -> Node:
    copied = with_children(node, lambda child: _limited(child, definitions))
    key = _member_key(node)
    if key is None:
        return copied
    reference = copied.pop("ref", None)
    choices: Any = {_TAG: copied}
    is_counted = _is_mapping if node["type"] in _DICTS else _is_set_or_list
    count = _counting(node.get(key, _ANY), definitions, is_counted)
    return dict(core_schema.tagged_union_schema(choices, count, ref=reference))


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_set_or_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, Mapping | str | bytes)


def _counting(member: Any, definitions: Any, is_counted: Callable[[Any], bool]) -> Callable[[Any], int]:
    """Return the discriminator that counts the members of a value.

    Args:
        member: The schema of a member.
        definitions: The schemas to which *member* refers.
        is_counted: Whether a value can be one of the set or dict. A value of another kind belongs to another member of
            a union, or is refused.
    """

    @cache
    def reader() -> SchemaValidator:
        return compiled_validator(core_schema.definitions_schema(member, definitions))

    def count(value: Any) -> int:
        if is_counted(value) and len(value) > MAX_EQUAL_HASHES:
            hashes = _Hashes()
            for part in value:
                try:
                    hashes.add(reader().validate_python(part, strict=False))
                except ValidationError:
                    continue  # which the set or dict reports
        return _TAG

    return count


def _member_key(node: Node) -> str | None:
    """Return the key of the items or keys of a set or dict whose hashes a client can choose; None for other nodes."""
    kind = node.get("type")
    if kind in _SETS:
        return None if _has_keyed_hashes(node.get("items_schema", _ANY)) else "items_schema"
    if kind in _DICTS and "keys_schema" in node:
        return None if _has_keyed_hashes(node["keys_schema"]) else "keys_schema"
    return None


def _has_keyed_hashes(node: Node) -> bool:
    kind = node["type"]
    if kind in {"enum", "literal"}:
        return True  # only the author's values are possible
    if kind in _WRAPPERS:
        return all(map(_has_keyed_hashes, children(node)))
    if kind == "chain":
        first, *steps = node["steps"]
        return _has_keyed_hashes(first) and all(step["type"] == "any" or _has_keyed_hashes(step) for step in steps)
    return kind in _KEYED

"""The tree of pydantic's core schemas: which keys of a schema contain other schemas.

A core schema is a tree of dicts. Between its nodes are dicts whose keys are names that an author chose: a model with
a field named ``type`` has a dict of fields that looks like a schema. Therefore only `SUBSCHEMAS` decides which dicts
are schemas.

Serializers under ``serialization`` are not part of the tree, because the author chose them.

Source: the typed dicts of `pydantic_core.core_schema`, with which a test compares the table.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]


class Layout(Enum):
    """How a key of a schema contains schemas."""

    SINGLE = "a schema"
    LIST = "a list of schemas, or of pairs of a schema and its label"
    DICT = "a dict with schemas as its values"


_INNER = {"schema": Layout.SINGLE}
_ITEMS = {"items_schema": Layout.SINGLE}
_PAIRS = {"keys_schema": Layout.SINGLE, "values_schema": Layout.SINGLE}

PARAMETER = _INNER
"""Keys of the parameters in ``arguments_schema``, which have no ``type``."""

SUBSCHEMAS: dict[str, dict[str, Layout]] = {
    "arguments": {
        "arguments_schema": Layout.LIST,
        "var_args_schema": Layout.SINGLE,
        "var_kwargs_schema": Layout.SINGLE,
    },
    "arguments-v3": {"arguments_schema": Layout.LIST},
    "call": {"arguments_schema": Layout.SINGLE, "return_schema": Layout.SINGLE},
    "chain": {"steps": Layout.LIST},
    "computed-field": {"return_schema": Layout.SINGLE},
    "counter": _PAIRS,
    "custom-error": _INNER,
    "dataclass": _INNER,
    "dataclass-args": {"fields": Layout.LIST, "computed_fields": Layout.LIST},
    "dataclass-field": _INNER,
    "default": _INNER,
    "definitions": {"schema": Layout.SINGLE, "definitions": Layout.LIST},
    "deque": _ITEMS,
    "dict": _PAIRS,
    "frozendict": _PAIRS,
    "frozenset": _ITEMS,
    "function-after": _INNER,
    "function-before": {"schema": Layout.SINGLE, "json_schema_input_schema": Layout.SINGLE},
    "function-plain": {"json_schema_input_schema": Layout.SINGLE},
    "function-wrap": {"schema": Layout.SINGLE, "json_schema_input_schema": Layout.SINGLE},
    "generator": _ITEMS,
    "json": _INNER,
    "json-or-python": {"json_schema": Layout.SINGLE, "python_schema": Layout.SINGLE},
    "lax-or-strict": {"lax_schema": Layout.SINGLE, "strict_schema": Layout.SINGLE},
    "list": _ITEMS,
    "missing-sentinel": _INNER,
    "model": _INNER,
    "model-field": _INNER,
    "model-fields": {
        "fields": Layout.DICT,
        "computed_fields": Layout.LIST,
        "extras_schema": Layout.SINGLE,
        "extras_keys_schema": Layout.SINGLE,
    },
    "named-tuple": {"fields": Layout.LIST},
    "named-tuple-field": _INNER,
    "nullable": _INNER,
    "ordered-dict": _PAIRS,
    "set": _ITEMS,
    "tagged-union": {"choices": Layout.DICT},
    "tuple": {"items_schema": Layout.LIST},
    "typed-dict": {"fields": Layout.DICT, "computed_fields": Layout.LIST, "extras_schema": Layout.SINGLE},
    "typed-dict-field": _INNER,
    "union": {"choices": Layout.LIST},
}
"""The keys that contain schemas, by the ``type`` of a node. Other types contain no schemas."""


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node."""
    for key, layout in _keys(node).items():
        value = node.get(key)
        if value is None:
            continue
        if layout is Layout.SINGLE:
            yield value
        elif layout is Layout.DICT:
            yield from value.values()
        else:
            for member in value:
                yield member[0] if isinstance(member, tuple) else member


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield all nodes of a schema that have a type, the schema itself first."""
    pending = [node]
    while pending:
        current = pending.pop()
        if "type" in current:
            yield current
        pending += children(current)


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of a node with each node directly below it replaced by what *change* returns for it."""
    copied = dict(node)
    for key, layout in _keys(node).items():
        value = node.get(key)
        if value is None:
            continue
        if layout is Layout.SINGLE:
            copied[key] = change(value)
        elif layout is Layout.DICT:
            copied[key] = {name: change(member) for name, member in value.items()}
        else:
            copied[key] = [_changed(member, change) for member in value]
    return copied


def _changed(member: Any, change: Callable[[Node], Node]) -> Any:
    if isinstance(member, tuple):
        schema, label = member
        return change(schema), label
    return change(member)


def _keys(node: Node) -> dict[str, Layout]:
    kind = node.get("type")
    return PARAMETER if kind is None else SUBSCHEMAS.get(kind, {})

"""Where pydantic's core schemas contain other schemas.

A core schema is a tree of dicts. Between its nodes are dicts whose keys are names that an author chose: a model with
a field named ``type`` has a dict of fields that looks like a schema. So `SUBSCHEMAS` alone decides what is a schema.

Serializers under ``serialization`` are not part of the tree: they are the author's own.

Source: the typed dicts of `pydantic_core.core_schema`, with which a test compares the table.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]


class Holds(Enum):
    """What a key of a schema holds."""

    ONE = "a schema"
    LIST = "a list of schemas, or of pairs of a schema and its label"
    DICT = "a dict with schemas as its values"


_INNER = {"schema": Holds.ONE}
_ITEMS = {"items_schema": Holds.ONE}
_PAIRS = {"keys_schema": Holds.ONE, "values_schema": Holds.ONE}

PARAMETER = _INNER
"""Keys of the parameters in ``arguments_schema``, which have no ``type``."""

SUBSCHEMAS: dict[str, dict[str, Holds]] = {
    "arguments": {"arguments_schema": Holds.LIST, "var_args_schema": Holds.ONE, "var_kwargs_schema": Holds.ONE},
    "arguments-v3": {"arguments_schema": Holds.LIST},
    "call": {"arguments_schema": Holds.ONE, "return_schema": Holds.ONE},
    "chain": {"steps": Holds.LIST},
    "computed-field": {"return_schema": Holds.ONE},
    "counter": _PAIRS,
    "custom-error": _INNER,
    "dataclass": _INNER,
    "dataclass-args": {"fields": Holds.LIST, "computed_fields": Holds.LIST},
    "dataclass-field": _INNER,
    "default": _INNER,
    "definitions": {"schema": Holds.ONE, "definitions": Holds.LIST},
    "deque": _ITEMS,
    "dict": _PAIRS,
    "frozendict": _PAIRS,
    "frozenset": _ITEMS,
    "function-after": _INNER,
    "function-before": {"schema": Holds.ONE, "json_schema_input_schema": Holds.ONE},
    "function-plain": {"json_schema_input_schema": Holds.ONE},
    "function-wrap": {"schema": Holds.ONE, "json_schema_input_schema": Holds.ONE},
    "generator": _ITEMS,
    "json": _INNER,
    "json-or-python": {"json_schema": Holds.ONE, "python_schema": Holds.ONE},
    "lax-or-strict": {"lax_schema": Holds.ONE, "strict_schema": Holds.ONE},
    "list": _ITEMS,
    "missing-sentinel": _INNER,
    "model": _INNER,
    "model-field": _INNER,
    "model-fields": {
        "fields": Holds.DICT,
        "computed_fields": Holds.LIST,
        "extras_schema": Holds.ONE,
        "extras_keys_schema": Holds.ONE,
    },
    "named-tuple": {"fields": Holds.LIST},
    "named-tuple-field": _INNER,
    "nullable": _INNER,
    "ordered-dict": _PAIRS,
    "set": _ITEMS,
    "tagged-union": {"choices": Holds.DICT},
    "tuple": {"items_schema": Holds.LIST},
    "typed-dict": {"fields": Holds.DICT, "computed_fields": Holds.LIST, "extras_schema": Holds.ONE},
    "typed-dict-field": _INNER,
    "union": {"choices": Holds.LIST},
}
"""The keys that hold schemas, by the ``type`` of a node. Other types contain no schemas."""


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node."""
    for key, holds in _keys(node).items():
        value = node.get(key)
        if value is None:
            continue
        if holds is Holds.ONE:
            yield value
        elif holds is Holds.DICT:
            yield from value.values()
        else:
            for member in value:
                yield member[0] if isinstance(member, tuple) else member


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield all nodes of a schema that have a type, the schema itself first."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if "type" in current:
            yield current
        waiting += children(current)


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of a node with each node directly below it replaced by what *change* returns for it."""
    copied = dict(node)
    for key, holds in _keys(node).items():
        value = node.get(key)
        if value is None:
            continue
        if holds is Holds.ONE:
            copied[key] = change(value)
        elif holds is Holds.DICT:
            copied[key] = {name: change(member) for name, member in value.items()}
        else:
            copied[key] = [_changed(member, change) for member in value]
    return copied


def _changed(member: Any, change: Callable[[Node], Node]) -> Any:
    if isinstance(member, tuple):
        schema, label = member
        return change(schema), label
    return change(member)


def _keys(node: Node) -> dict[str, Holds]:
    kind = node.get("type")
    return PARAMETER if kind is None else SUBSCHEMAS.get(kind, {})

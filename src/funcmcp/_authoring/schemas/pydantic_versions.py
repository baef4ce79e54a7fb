"""What differs between the versions of pydantic that funcmcp runs on.

pydantic 2.14 has a core schema for named tuples. Before it describes them as calls of their classes. The other modules
know the form of 2.14 only: `with_named_tuples` returns it, and the functions that compile a schema go back from it.

From pydantic 2.13 on, an argument keeps a compiled schema from containing the validators and serializers that pydantic
has built for models and dataclasses, which are not changed as the schema is. pydantic 2.12 uses those of each class
that it has marked as complete, so the mark is removed while a schema is compiled.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaSerializer, SchemaValidator, core_schema

from funcmcp._authoring.schemas.pydantic_schema_tree import nodes_of, with_children
from funcmcp._objects.mappings import only, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]

_HAS_NAMED_TUPLES = hasattr(core_schema, "named_tuple_schema")
_CAN_IGNORE_PREBUILT = "_use_prebuilt" in (SchemaValidator.__text_signature__ or "")

_COMPLETE = "__pydantic_complete__"
"""The attribute with which pydantic marks a class whose validator and serializer are built."""

_SERIALIZED = frozenset({"return_schema", "schema"})
"""The keys of a serializer that contain schemas."""

_COMPILING = Lock()
"""Held while marks are removed: two schemas may contain one class."""


def with_named_tuples(schema: Node) -> Node:
    """Return a core schema that pydantic has created, with its named tuples as pydantic 2.14 describes them."""
    return schema if _HAS_NAMED_TUPLES else _changed(schema, _named_tuple_of_call)


def compiled_validator(schema: Any, config: core_schema.CoreConfig | None = None) -> SchemaValidator:
    """Return the validator of a changed schema."""
    if _CAN_IGNORE_PREBUILT:
        return SchemaValidator(_supported(schema), config, _use_prebuilt=False)
    with _incomplete_classes(schema):
        return SchemaValidator(_supported(schema), config)


def compiled_serializer(schema: Any, config: core_schema.CoreConfig) -> SchemaSerializer:
    """Return the serializer of a changed schema."""
    if _CAN_IGNORE_PREBUILT:
        return SchemaSerializer(_supported(schema), config, _use_prebuilt=False)
    with _incomplete_classes(schema):
        return SchemaSerializer(_supported(schema), config)


def _supported(schema: Any) -> Any:
    return schema if _HAS_NAMED_TUPLES else _changed(schema, _call_of_named_tuple)


def _changed(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of a schema with each node replaced by what *change* returns for it, innermost nodes first."""
    copied = with_children(node, lambda child: _changed(child, change))
    if "serialization" in copied:
        serialization = dict(copied["serialization"])
        for key in _SERIALIZED & serialization.keys():
            serialization[key] = _changed(serialization[key], change)
        copied["serialization"] = serialization
    return change(copied)


def _named_tuple_of_call(node: Node) -> Node:
    """Return pydantic 2.14's node for a named tuple in place of the call of its class."""
    cls = node.get("function")
    if node.get("type") != "call" or not hasattr(cls, "_fields"):
        return node
    fields = []
    for parameter in node["arguments_schema"]["arguments_schema"]:
        field = {"type": "named-tuple-field", **only(parameter, ("name", "schema"))}
        if "alias" in parameter:
            field["validation_alias"] = parameter["alias"]
        fields.append(field)
    return {"type": "named-tuple", "cls": cls, "fields": fields, **only(node, ("ref", "metadata", "serialization"))}


def _call_of_named_tuple(node: Node) -> Node:
    """Return the call of a class in place of pydantic 2.14's node for a named tuple."""
    if node.get("type") != "named-tuple":
        return node
    parameters = []
    for field in node["fields"]:
        parameter = only(field, ("name", "schema"))
        if "validation_alias" in field:
            parameter["alias"] = field["validation_alias"]
        parameters.append(parameter)
    arguments = {"type": "arguments", "arguments_schema": parameters}
    return {
        "type": "call",
        "function": node["cls"],
        "arguments_schema": arguments,
        **without(node, "type", "cls", "fields"),
    }


@contextmanager
def _incomplete_classes(schema: Node) -> Iterator[None]:
    """Remove the mark of completeness from the classes of a schema while it is compiled.

    pydantic itself does this in ``model_rebuild``. Other threads may use the classes meanwhile, because validation does
    not read the mark.
    """
    with _COMPILING:
        marked = [cls for cls in _classes_in(schema) if vars(cls).get(_COMPLETE)]
        for cls in marked:
            type.__setattr__(cls, _COMPLETE, False)
        try:
            yield
        finally:
            for cls in marked:
                type.__setattr__(cls, _COMPLETE, True)


def _classes_in(schema: Node) -> set[type]:
    """Return the models and dataclasses in a schema, also in the schemas of its serializers."""
    classes: set[type] = set()
    for node in nodes_of(schema):
        if node["type"] in {"dataclass", "model"}:
            classes.add(node["cls"])
        serialization = node.get("serialization", {})
        for key in _SERIALIZED & serialization.keys():
            classes |= _classes_in(serialization[key])
    return classes

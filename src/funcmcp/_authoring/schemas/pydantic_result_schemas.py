"""pydantic's core schemas, changed so that results are written as the output schema describes them.

Decimals are numbers, named tuples are objects, and bytes are base64 or in the encoding of the author's config.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pydantic_core import (
    PydanticCustomError,
    PydanticKnownError,
    PydanticSerializationUnexpectedValue,
    SchemaValidator,
    core_schema,
    to_jsonable_python,
)

from funcmcp._authoring.schemas.bytes_encodings import BASE64, encoding_of, with_encodings
from funcmcp._authoring.schemas.json_schema import float_or_int
from funcmcp._authoring.schemas.pydantic_choices import KINDS as CHOICES
from funcmcp._authoring.schemas.pydantic_choices import (
    are_written_by_pydantic,
    choices_in,
    choices_schema,
    invalid_choice,
    reading_choices,
    reading_tags,
)
from funcmcp._authoring.schemas.pydantic_schema_tree import children, nodes_of
from funcmcp._authoring.schemas.pydantic_schemas import (
    UnknownTypeError,
    adapted,
    core_schema_of,
    is_encoded_bytes,
    schema_with_any_classes,
    validated_first,
)
from funcmcp._authoring.schemas.python_values import python_schema, python_value, remedy_for, type_name
from funcmcp._authoring.schemas.schema_forms import ANNOTATIONS
from funcmcp._authoring.signatures.choices import distinct_json, json_value
from funcmcp._objects.mappings import without
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.schemas.pydantic_schemas import Node

_ANY: Node = {"type": "any"}
_EXACT = frozenset(
    {
        *("any", "bool", "dataclass", "dataclass-args", "dataclass-field", "date", "datetime", "default"),
        *("definition-ref", "definitions", "dict", "enum", "float", "generator", "int", "list", "literal", "model"),
        *("model-field", "model-fields", "named-tuple", "named-tuple-field", "none", "nullable", "str", "tagged-union"),
        *("time", "timedelta", "tuple", "typed-dict", "typed-dict-field", "union", "uuid"),
    }
)
"""Kinds of schemas that write a valid value of another shape as it stands, if it fits their JSON schema."""

_CLASSES = frozenset({"dataclass", "model"})
_VALIDATED = frozenset(
    {
        *("any", "bool", "date", "datetime", "default", "dict", "float", "int", "list", "literal", "none", "nullable"),
        *("str", "time", "timedelta", "tuple", "typed-dict", "typed-dict-field", "union", "uuid"),
    }
)
"""Kinds of schemas without functions and classes of the author."""

_MEMBERS = {"dict": frozenset({"keys_schema", "values_schema"}), "list": frozenset({"items_schema"})}
"""The keys of a collection's schema that describe its members. Without these keys, members are of any type."""

_MEMBER_KEYS = {"dict": "values_schema", "list": "items_schema"}
"""The keys of a collection's schema that describe its values."""

_NAMES = frozenset({"any", "enum", "literal", "str"})
"""Kinds of schemas whose check finds wrong names of a dict's members."""

_CHANGING_OPTIONS = (
    *("computed_fields", "custom_init", "post_init", "serialization_exclude_if", "strip_whitespace", "to_lower"),
    "to_upper",
)
_CHANGING_CONFIG = ("str_strip_whitespace", "str_to_lower", "str_to_upper")
_UNSURE_FORMATS = frozenset({"email", "ipv6", "regex", "uri"})
_OBJECTS = frozenset({"dataclass", "model", "typed-dict"})
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_JSON_VALUE = "pydantic.types.JsonValue:"
"""The beginning of the reference to pydantic's type of any JSON value."""

_REMEDY = "Return a dataclass, a TypedDict, a pydantic model or a dict."
_MAX_EXPONENT = 307
"""Larger decimals are written as floats, because a reader whose numbers are doubles can't read more digits."""


def result_schema(annotation: Any, place: str) -> Node:
    """Return the core schema that writes results of a type.

    Args:
        annotation: The type.
        place: The type's place, for errors, such as "What get_order returns".

    Raises:
        RegistrationError: JSON can't carry the type.
    """
    try:
        schema = core_schema_of(annotation, place)
    except UnknownTypeError as error:
        schema = _schema_with_libraries(annotation, place, error)
    schema = with_encodings(schema, "ser_json_bytes")
    for node in nodes_of(schema):
        problem = invalid_choice(node)
        if problem is not None:
            raise RegistrationError(f"{place} has {problem}.")
    return adapted(schema, _result)


def _schema_with_libraries(annotation: Any, place: str, error: UnknownTypeError) -> Node:
    """Return the core schema of a type with classes that pydantic does not know, such as ``DataFrame``.

    Args:
        annotation: The type.
        place: The type's place, for errors.
        error: pydantic's error about one of the classes.

    Raises:
        RegistrationError: A class is not one that `python_schema` describes.
    """
    schema = schema_with_any_classes(annotation)
    if schema is None:
        raise RegistrationError(f"{place} has a type that JSON can't carry ({error.kind}). {_REMEDY}")
    for node in nodes_of(schema):
        if node["type"] == "is-instance" and python_schema(node["cls"]) is None:
            cls = node["cls"]
            remedy = remedy_for(cls) or _REMEDY
            raise RegistrationError(f"{place} has a type that JSON can't carry ({type_name(cls)}). {remedy}")
    return schema


def readable(schema: Node) -> Node:
    """Return a core schema of results that reads the JSON of choices."""
    return adapted(schema, _readable)


def _readable(node: Node) -> Node:
    kind = node.get("type")
    if kind in CHOICES:
        return reading_choices(node, lax=False)
    if kind in {"date", "datetime"}:
        return _read_from_iso(node)
    return reading_tags(node) if kind == "tagged-union" else node


_ISO = {kind: SchemaValidator({"type": kind}) for kind in ("date", "datetime")}

INSTANCE: Final = f"\0{uuid4().hex}"
"""The name of the member of an object that stands for an instance of a class. No client knows it."""


def classes_in(schema: Node) -> tuple[type, ...]:
    """Return the models and dataclasses in a core schema, and ``bytes`` if some have an author's encoding.

    A text in base64 may also be valid in the author's encoding, so such bytes are not read from their text.
    """
    classes = {node["cls"] for node in nodes_of(schema) if node.get("type") in _CLASSES}
    if any(node["type"] == "bytes" and encoding_of(node) is not BASE64 for node in nodes_of(schema)):
        classes.add(bytes)
    return tuple(classes)


def part_of_class(schema: Node, cls: type) -> Node:
    """Return the part of a core schema that describes a class, as a schema of its own."""
    definitions: list[Any] = schema.get("definitions", [])
    part = next(node for node in nodes_of(schema) if node.get("type") in _CLASSES and node["cls"] is cls)
    if any(part is definition for definition in definitions):
        return dict(core_schema.definitions_schema(core_schema.definition_reference_schema(part["ref"]), definitions))
    return {"type": "definitions", "schema": part, "definitions": definitions}


def reading_instances(schema: Node) -> Node:
    """Return a core schema that takes, for an object with the member `INSTANCE`, the instance of that index.

    The context of the validation is the list of instances. An instance is valid where its class is expected, or a dict,
    or any type. It is not read as another class or a TypedDict.
    """
    return adapted(schema, _or_instance)


def _or_instance(node: Node) -> Node:
    kind = node.get("type")
    if kind == "tagged-union":  # the object that stands for an instance has no tag
        members: Any = [member for member in node["choices"].values() if isinstance(member, dict)]
        return dict(core_schema.union_schema(members, mode="left_to_right", ref=node.get("ref")))
    if kind == "any":
        return dict(core_schema.with_info_plain_validator_function(_with_instances, ref=node.get("ref")))
    if kind in _MEMBER_KEYS:
        node.setdefault(_MEMBER_KEYS[kind], core_schema.with_info_plain_validator_function(_with_instances))
    is_binary = kind == "json-or-python" and node["python_schema"]["type"] == "bytes"
    if kind not in _OBJECTS and kind != "dict" and not is_binary:
        return node
    reference = node.pop("ref", None)
    cls = bytes if is_binary else node.get("cls")
    take = _members_of_instance if kind == "dict" else partial(_instance_of, cls)
    instance: Any = core_schema.with_info_plain_validator_function(take)
    choices: Any = {True: instance, False: node}
    return dict(core_schema.tagged_union_schema(choices, _stands_for_instance, ref=reference))


def _stands_for_instance(value: Any) -> bool:
    return isinstance(value, dict) and INSTANCE in value


def _with_instances(value: Any, info: Any) -> Any:
    """Return a value with its instances in place of the objects that stand for them."""
    if _stands_for_instance(value):
        return info.context[value[INSTANCE]]
    if isinstance(value, dict):
        return {name: _with_instances(member, info) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_instances(member, info) for member in value]
    return value


def _members_of_instance(value: Any, info: Any) -> Any:
    """Return an instance as a dict, which the check of the written JSON compares with the type."""
    return to_jsonable_python(info.context[value[INSTANCE]], by_alias=True, bytes_mode="base64", fallback=python_value)


def _instance_of(cls: type | None, value: Any, info: Any) -> Any:
    instance = info.context[value[INSTANCE]]
    if cls is None or not isinstance(instance, cls):
        raise PydanticCustomError("instance", "must not be an object of another class")
    return instance


def _read_from_iso(node: Node) -> Node:
    """Return a node for dates, or dates and times, that reads ISO 8601 from JSON, and not a number of seconds."""
    kind = node["type"]
    not_iso: Any = f"{kind}_parsing"

    def parsed(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if "-" not in value[1:]:
            raise PydanticKnownError(not_iso, {"error": "not ISO 8601"})
        return _ISO[kind].validate_python(value)

    without_ref: Any = without(node, "ref")
    from_json: Any = validated_first(parsed, without_ref)
    return dict(core_schema.json_or_python_schema(from_json, without_ref, ref=node.get("ref")))


def is_exact(node: Node) -> bool:
    """Return whether the check against the complete schema of a type finds each value of another shape.

    If it does, a dict that fits the schema of a model is written exactly as the model would be. This is not so where a
    function of the author validates or serializes a part, and where a validator changes values.
    """
    if "serialization" in node:
        function = node["serialization"].get("function")
        if function in {_number, BASE64.write, json_value}:
            return True
        if function is not _members and function is not _items:
            return False
    if node.get("type", "named-tuple-field") not in _EXACT or any(map(node.get, _CHANGING_OPTIONS)):
        return False
    if any(map(node.get("config", {}).get, _CHANGING_CONFIG)):
        return False
    if node.get("type") == "dict" and node.get("keys_schema", _ANY)["type"] not in _NAMES:
        return False
    return all(map(is_exact, children(node)))


def is_validated(schema: Node) -> bool:
    """Return whether the values that are strictly valid have JSON that fits the schema of a type.

    An object of a class is valid whatever its members are. Together with ``Any``, a float may be NaN, which is an error
    in a float and null under ``Any``.
    """
    kinds = {node["type"] for node in nodes_of(schema)}
    if "float" in kinds and is_open(schema):
        return False
    return is_exact(schema) and kinds <= _VALIDATED and not any(map(_has_schema_of_author, nodes_of(schema)))


def is_ambiguous(schema: Node) -> bool:
    """Return whether a type has a union of int and float, which takes an integer of numpy for a float."""
    return {"float", "int", "union"} <= {node["type"] for node in nodes_of(schema)}


def is_open(schema: Node) -> bool:
    """Return whether parts of a type are of any type."""
    return any(
        node["type"] == "any" or not node.keys() >= _MEMBERS.get(node["type"], frozenset()) for node in nodes_of(schema)
    )


def _result(node: Node) -> Node:
    kind = node.get("type")
    if kind == "json-or-python" and str(node.get("ref")).startswith(_JSON_VALUE):
        return {"type": "any", "ref": node["ref"]}
    return _as_written(node)


def _as_written(node: Node) -> Node:
    """Return a node whose serializer writes what its JSON schema says."""
    kind = node.get("type")
    if _has_schema_of_pydantic(node):
        node["metadata"] = _with_sure_format(node["metadata"])
    if is_encoded_bytes(node):
        return _encoded(node)
    if "serialization" in node:
        node["serialization"] = _with_return_schema(node["serialization"], kind)
    elif kind == "decimal":
        updates = {"type": "number", **_limits(node)}
        node["serialization"] = _serialized(_number, {"type": "any", "metadata": {"pydantic_js_updates": updates}})
    elif kind == "bytes":
        return _binary(node)
    elif kind in CHOICES and not are_written_by_pydantic(node):
        updates = choices_schema(distinct_json(choices_in(node)))
        node["serialization"] = _serialized(json_value, {"type": "any", "metadata": {"pydantic_js_updates": updates}})
    elif kind == "generator":
        node["serialization"] = _serialized(_items, {"type": "list", "items_schema": node.get("items_schema", _ANY)})
    elif kind == "named-tuple":
        fields = {
            field["name"]: {"type": "typed-dict-field", "schema": field["schema"], "required": True}
            for field in node["fields"]
        }
        node["serialization"] = _serialized(_members, {"type": "typed-dict", "fields": fields})
    elif kind == "is-instance":
        return {**node, **(python_schema(node["cls"]) or {})}
    return node


def _has_schema_of_author(node: Node) -> bool:
    """Return whether the author changed the JSON schema of a type, as with ``WithJsonSchema``."""
    metadata = node.get("metadata", {})
    functions = ("pydantic_js_functions", "pydantic_js_annotation_functions")
    if any(map(metadata.get, functions)) or callable(metadata.get("pydantic_js_extra")):
        return True
    changes = {**metadata.get("pydantic_js_updates", {}), **(metadata.get("pydantic_js_extra") or {})}
    return not changes.keys() <= ANNOTATIONS


def _has_schema_of_pydantic(node: Node) -> bool:
    """Return whether pydantic itself defines the JSON schema of a type with a function, as for ``EmailStr``."""
    return any(map(_is_defined_by_pydantic, node.get("metadata", {}).get("pydantic_js_functions", ())))


def _is_defined_by_pydantic(function: Any) -> bool:
    return getattr(function, "__module__", "").startswith("pydantic.")


def _encoded(node: Node) -> Node:
    """Return a node for bytes in an encoding, such as ``Base64Bytes``, which are text in the encoding in JSON."""
    encode = node["serialization"]["function"]

    def text(value: Any) -> Any:
        encoded = encode(value)
        return encoded.decode("ascii") if isinstance(encoded, bytes) else encoded

    return {**node, "serialization": _serialized(text, {"type": "str"})}


def _with_sure_format(metadata: dict[str, Any]) -> dict[str, Any]:
    return {**metadata, "pydantic_js_functions": [*metadata["pydantic_js_functions"], _without_unsure_format]}


def _without_unsure_format(schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Remove a format that the values of pydantic's type may break, such as ``email`` for an address with umlauts."""
    result = handler(schema)
    if result.get("format") in _UNSURE_FORMATS:
        del result["format"]
    return result


def _with_return_schema(serialization: dict[str, Any], kind: str | None) -> dict[str, Any]:
    """Return an author's serializer so that a function without a return annotation may return anything.

    pydantic announces the schema of the type that is serialized, though the function may return another.
    """
    if "function" not in serialization or "return_schema" in serialization:
        return serialization
    if _is_defined_by_pydantic(serialization["function"]):
        return _with_items(serialization)
    updates = {"type": "object"} if kind in _OBJECTS else {}
    return {**serialization, "return_schema": {"type": "any", "metadata": {"pydantic_js_updates": updates}}}


def _with_items(serialization: dict[str, Any]) -> dict[str, Any]:
    """Return pydantic's serializer of a ``Sequence``, which has a schema of the items, with that schema changed."""
    if "schema" not in serialization:
        return serialization
    return {**serialization, "schema": adapted(serialization["schema"], _result)}


def _limits(node: Node) -> dict[str, Any]:
    """Return the keywords for the limits of a decimal."""
    return {keyword: float_or_int(node[limit]) for limit, keyword in _LIMITS.items() if limit in node}


def _binary(node: Node) -> Node:
    """Return a node for bytes that are text in JSON, both as output and in a dict that is returned for a model."""
    encoding = encoding_of(node)
    without_ref: Any = without(node, "ref")
    from_json = core_schema.no_info_before_validator_function(encoding.read, without_ref)
    updates: dict[str, Any] = {**encoding.keywords, **encoding.limits(node)}
    if encoding.written_format is not None:
        updates["format"] = encoding.written_format
    serialization = _serialized(encoding.write, {"type": "str", "metadata": {"pydantic_js_updates": updates}})
    return dict(
        core_schema.json_or_python_schema(from_json, without_ref, ref=node.get("ref"), serialization=serialization)
    )


def _serialized(function: Callable[[Any], Any], schema: Node) -> Any:
    return core_schema.plain_serializer_function_ser_schema(function, return_schema=schema, when_used="json")


def _number(value: Any) -> Any:
    """Return a decimal as an int if it has no fraction, and otherwise as the nearest float."""
    if not isinstance(value, Decimal):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value  # an assignment to a model's attribute is not validated
        raise PydanticSerializationUnexpectedValue(f"Expected a number, not {type(value).__name__}")
    if value.is_finite() and value.adjusted() <= _MAX_EXPONENT and value == value.to_integral_value():
        return int(value)
    return float(value)


def _items(value: Any) -> Any:
    """Return the items of an iterable, which pydantic's own serializer accepts only from an iterator."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise PydanticSerializationUnexpectedValue(f"Expected items, not {type(value).__name__}")
    return list(value)


def _members(value: Any) -> Any:
    if not hasattr(value, "_asdict"):
        raise PydanticSerializationUnexpectedValue(f"Expected a named tuple, not {type(value).__name__}")
    return value._asdict()

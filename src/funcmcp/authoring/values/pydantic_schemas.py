"""pydantic's core schemas, changed so that they say the same as the JSON schema that clients read.

Loaded when a tool is first listed or called. A core schema is a tree of dicts; the ones of models are shared, so
the tree is copied, never changed.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from pydantic import EncodedBytes, PydanticUserError, TypeAdapter
from pydantic_core import (
    PydanticKnownError,
    SchemaSerializer,
    SchemaValidator,
    core_schema,
    from_json,
)

from funcmcp.authoring.values.hash_limits import with_hash_limits
from funcmcp.authoring.values.pydantic_schema_tree import nodes_of, with_children
from funcmcp.authoring.values.union_limits import BoundedValidator, bounded
from funcmcp.protocol.codec import has_more_values
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]
    Adapt: TypeAlias = Callable[[Node], Node]

_DICTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_OBJECTS = frozenset({"dataclass", "model", "named-tuple", "typed-dict"})
_NO_KEYS = _DICTS | _OBJECTS | {"deque", "frozenset", "list", "none", "set", "tuple"}
"""Kinds of schemas that can't be read from the name of an object's member."""

_NUMBERS = frozenset({"bool", "decimal", "float", "int"})
_FIELDS = frozenset({"dataclass-field", "model-field", "named-tuple-field", "typed-dict-field"})
_NAMED_FIELDS = frozenset({"dataclass-args", "model-fields", "named-tuple", "typed-dict"})
_PLAIN = frozenset(
    {
        *("any", "bool", "default", "definition-ref", "definitions", "dict", "float", "int", "list", "literal"),
        *("model", "model-field", "model-fields", "nullable", "str", "typed-dict", "typed-dict-field"),
    }
)
"""Kinds of schemas that take what JSON decoding gives as strictly as they take JSON text."""

_FINITE = (_PLAIN | {"date", "datetime", "time", "timedelta", "uuid"}) - {"any", "float"}
"""Kinds of schemas that never write NaN or Infinity by themselves."""

_COLLECTIONS = frozenset(
    {"counter", "deque", "dict", "frozendict", "frozenset", "list", "ordered-dict", "set", "tuple"}
)
"""Kinds of schemas that can be told to stop at the first wrong item."""

_MEMBERS = {"list": "items_schema", "dict": "values_schema"}
"""Where a collection says what is in it; without that, it is anything."""
_FROM_JSON_TEXT = (_COLLECTIONS | _OBJECTS) | {"tagged-union"}
"""Kinds of schemas that are objects or arrays in JSON, which some clients send as a string with JSON in it."""

_MOST_TEXT_VALUES = 250_000
"""Values in a text that is read as JSON, counted by its commas and opening brackets: as many as a message may have."""

_UNKNOWN_CLASS = re.compile(r"schema for <class '(?:.*\.)?(\w+)'>")
"""Finds the name of the class in pydantic's message about a type that it does not know."""

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))


def core_schema_of(annotation: Any, what: str) -> Node:
    """Return pydantic's core schema of a type.

    Args:
        annotation: the type.
        what: names the type's place in the error, such as "The parameter 'orders' of get_order".

    Raises:
        RegistrationError: the type has no meaning as JSON.
    """
    try:
        schema: Any = TypeAdapter(annotation).core_schema
    except PydanticUserError as error:
        reason = error.message.partition("\n")[0].partition(". ")[0].removesuffix(".")
        unknown = _UNKNOWN_CLASS.search(reason)
        if unknown is not None:
            reason = unknown[1]
        raise RegistrationError(
            f"{what} has a type that JSON can't carry and that is not a registered service ({reason}). "
            "Use a dataclass, a TypedDict or a pydantic model, or register the type with mcp.services."
        ) from None
    return dict(schema)


def is_plain(schema: Any) -> bool:
    """Tell whether every value that a schema describes is what JSON decoding gives: nothing has to be converted."""
    return all(node["type"] in _PLAIN for node in nodes_of(schema))


def is_finite(schema: Any) -> bool:
    """Tell whether nothing that a schema describes can be written as NaN or Infinity."""
    return all(
        node["type"] in _FINITE and "serialization" not in node and _MEMBERS.get(node["type"], "type") in node
        for node in nodes_of(schema)
    )


def for_arguments(schema: Node, what: str, *, lax: bool) -> Node:
    """Return the schema by which arguments are read.

    A field that may be None may also be left out. Bytes are read from base64, and keys that are numbers from text.
    Unless `lax`, what pydantic would still convert in JSON and the JSON schema does not allow is refused: strings for
    decimals, ``true`` for 1, digits for dates. With `lax`, objects and arrays are also read from strings with JSON.

    Raises:
        RegistrationError: the keys of a dict can't be names in JSON.
    """
    for node in nodes_of(schema):
        if node["type"] in _DICTS and {key["type"] for key in _choices(node.get("keys_schema"))} <= _NO_KEYS:
            raise RegistrationError(f"{what} has a dict whose keys JSON can't carry. Use strings or numbers as keys.")
        duplicate = _duplicate_field(node)
        if duplicate is not None:
            raise RegistrationError(f"{what}: two fields have the name {duplicate!r} in JSON. Change an alias.")
    return adapted(schema, _lax_argument if lax else _strict_argument)


def _duplicate_field(node: Node) -> str | None:
    """Return the name that two fields of an object have in JSON, or None."""
    if node["type"] not in _NAMED_FIELDS:
        return None
    fields = node["fields"]
    named_fields = fields.items() if isinstance(fields, dict) else [(field["name"], field) for field in fields]
    names: set[str] = set()
    for field_name, field in named_fields:
        name = field.get("validation_alias", field_name)
        if not isinstance(name, str):
            continue  # a choice of paths, of which pydantic takes the first that exists
        if name in names:
            return name
        names.add(name)
    return None


def for_texts(schema: Node) -> Node:
    """Return a lenient schema by which texts are read: digits are no dates in it."""
    return adapted(schema, _written_date)


def hasty(schema: Node) -> Node:
    """Return a schema by which the first wrong item of a list, a set or a dict ends it."""
    return adapted(schema, _hasty)


def _hasty(node: Node) -> Node:
    if node.get("type") in _COLLECTIONS:
        node["fail_fast"] = True
    return node


def validator(schema: Node) -> SchemaValidator | BoundedValidator:
    """Build the validator of a changed schema; the ready-made ones of models inside it don't know the changes."""
    schema = with_hash_limits(schema)
    with_bounds = bounded(schema)
    if with_bounds is None:
        return SchemaValidator(schema, _use_prebuilt=False)
    return BoundedValidator(SchemaValidator(with_bounds, _use_prebuilt=False))


def serializer(schema: Node) -> SchemaSerializer:
    """Build the serializer of a changed schema."""
    return SchemaSerializer(schema, core_schema.CoreConfig(ser_json_bytes="base64"), _use_prebuilt=False)


def compiles(pattern: str) -> bool:
    """Tell whether the linear regular expression engine that checks arguments can compile a pattern."""
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except Exception:  # noqa: BLE001 - pydantic_core.SchemaError; which one does not matter
        return False
    return True


def adapted(node: Node, adapt: Adapt) -> Node:
    """Return a copy of a schema with each node replaced by what *adapt* returns for it, innermost nodes first.

    *adapt* may change the copy that it gets. It also gets the fields of models, dataclasses, typed dicts and named
    tuples, and the parameters of calls, which have no ``type``.
    """
    if _decodes(node):
        return adapt(dict(node))
    copied = with_children(node, lambda child: adapted(child, adapt))
    if copied.get("type") == "enum":
        _drop_made_up_title(copied)
    return adapt(copied)


def _decodes(node: Node) -> bool:
    """Tell whether a node is pydantic's own for bytes in an encoding, such as Base64Bytes."""
    function = node.get("function")
    return isinstance(function, dict) and isinstance(getattr(function["function"], "__self__", None), EncodedBytes)


def _drop_made_up_title(enum: Node) -> None:
    """Take away the function by which pydantic gives an enum's JSON schema the class's name as its title."""
    metadata = enum.get("metadata", {})
    functions = metadata.get("pydantic_js_functions", ())
    kept = [function for function in functions if "_enum_schema" not in getattr(function, "__qualname__", "")]
    enum["metadata"] = {**metadata, "pydantic_js_functions": kept}


def _before(function: Callable[[Any], Any], node: Node) -> Node:
    """Put a function before a node. A reference to the node must lead to both."""
    wrapped: Any = core_schema.no_info_before_validator_function(function, node)
    if "ref" in node:
        wrapped["ref"] = node.pop("ref")
    return dict(wrapped)


def _lenient_argument(node: Node) -> Node:
    kind = node.get("type")
    if kind in _FIELDS and _may_be_left_out(node):
        node["schema"] = {"type": "default", "schema": node["schema"], "default": None}
        if kind == "typed-dict-field":
            node["required"] = False
    elif kind == "str" and "pattern" in node:
        node["pattern"] = linear_pattern(node["pattern"])
        node["regex_engine"] = "rust-regex"
    elif kind == "bytes":
        return _before(_from_base64, _as_base64(node))
    elif kind in _DICTS and _is_told_by_text(node.get("keys_schema")):
        node["keys_schema"] = _before(_of_name, node["keys_schema"])
    return node


def _lax_argument(node: Node) -> Node:
    node = _lenient_argument(node)
    if node.get("type") in _FROM_JSON_TEXT:
        return _before(_from_json_text, node)
    if node.get("type") == "union":
        return _text_first(node)
    return node


def _text_first(union: Node) -> Node:
    """Return a schema that reads a string as a string where a union has a member for it.

    Lax arguments are validated in Python mode; the JSON schema is made of the other part, which is the union itself.
    """
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in union["choices"]]
    texts = [choice for choice in choices if any(member["type"] == "str" for member in _choices(choice))]
    if not texts:
        return union
    reference = union.pop("ref", None)
    original: Any = union
    ordered = core_schema.union_schema([*texts, original], mode="left_to_right")
    return dict(core_schema.json_or_python_schema(original, ordered, ref=reference))


def _from_json_text(value: Any) -> Any:
    """Return the object or array that a string has as JSON; other values as they are, and JSON of too many values."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        if len(value) > _MOST_TEXT_VALUES and has_more_values(value.encode(), _MOST_TEXT_VALUES):
            return value
        return from_json(value, allow_inf_nan=False)
    except ValueError:
        return value


def _as_base64(node: Node) -> Node:
    """Return a node for bytes whose JSON schema describes the text: its limits count characters, not bytes."""
    metadata = node.get("metadata", {})
    updates = {**metadata.get("pydantic_js_updates", {}), "contentEncoding": "base64"}
    for limit, keyword in (("min_length", "minLength"), ("max_length", "maxLength")):
        if limit in node:
            updates[keyword] = (node[limit] + 2) // 3 * 4
    return {**node, "metadata": {**metadata, "pydantic_js_updates": updates}}


def _from_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return b64decode(value, validate=True)
    except ValueError:
        raise PydanticKnownError("bytes_invalid_encoding", {"encoding": "base64", "encoding_error": ""}) from None


def _is_told_by_text(keys: Node | None) -> bool:
    """Tell whether keys of a dict are numbers or booleans, which are texts where they are names of an object."""
    nodes = list(_choices(keys))
    kinds = {node["type"] for node in nodes}
    options = [option for node in nodes if node["type"] == "literal" for option in node["expected"]]
    options += [member.value for node in nodes if node["type"] == "enum" for member in node["members"]]
    told = bool(kinds & _NUMBERS) or not all(isinstance(option, str) for option in options)
    return told and "str" not in kinds


def _choices(schema: Node | None) -> Iterator[Node]:
    """Yield the members of a union, or the schema alone, without what is wrapped around them."""
    if schema is None:
        yield {"type": "any"}
    elif schema["type"] == "union":
        for choice in schema["choices"]:
            yield from _choices(choice[0] if isinstance(choice, tuple) else choice)
    elif "schema" in schema:
        yield from _choices(schema["schema"]) if schema["type"] not in _OBJECTS else [schema]
    else:
        yield schema


def _of_name(name: Any) -> Any:
    """Return what the name of an object's member says as JSON, such as 17 for "17"."""
    try:
        return from_json(name, allow_inf_nan=False)
    except ValueError:
        return name


def _strict_argument(node: Node) -> Node:
    node = _lenient_argument(node)
    kind = node.get("type")
    if kind == "decimal":
        return _before(_decimal, node)
    if kind == "datetime":
        return _before(_datetime, node)
    if kind == "date":
        return _before(_date, node)
    if kind == "literal" and not all(isinstance(value, str) for value in node["expected"]):
        return _before(_literal(node["expected"]), node)
    if kind == "enum" and not all(isinstance(member.value, str) for member in node["members"]):
        return _before(_member(node["members"]), node)
    return node


def _written_date(node: Node) -> Node:
    """Put a check before a date, or a date and time, that it is written as one, not as a number of seconds."""
    kind = node.get("type")
    if kind not in {"date", "datetime"}:
        return node

    def check(value: Any) -> Any:
        if isinstance(value, int | float):
            raise PydanticKnownError("date_type" if kind == "date" else "datetime_type")
        if isinstance(value, str) and "-" not in value[1:]:
            raise _not_iso("date_parsing" if kind == "date" else "datetime_parsing")
        return value

    return _before(check, node)


def _may_be_left_out(field: Node) -> bool:
    """Tell whether a required field may be None; a default may be hidden in the schema but never outside of it."""
    if field.get("required") is False or field.get("init") is False:
        return False
    schema = field["schema"]
    while schema.get("type", "").startswith("function-") and "schema" in schema:
        schema = schema["schema"]
    return bool(schema.get("type") == "nullable")


def linear_pattern(pattern: str | re.Pattern[str]) -> str:
    """Return a pattern as text; the flags of a compiled one go into it."""
    if isinstance(pattern, str):
        return pattern
    flags = "".join(letter for flag, letter in _FLAGS if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


def _decimal(value: Any) -> Any:
    if type(value) is int or type(value) is float:
        return Decimal(str(value))
    if isinstance(value, Decimal):
        return value
    raise PydanticKnownError("decimal_type")


def _datetime(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if "-" in value and ":" in value:
        try:
            return _ISO.validate_python(value)
        except ValueError:
            pass  # said in the same words as for text that can't be a time at all
    raise _not_iso("datetime_parsing")


def _date(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if _ISO_DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass  # as above
    raise _not_iso("date_parsing")


def _not_iso(kind: Literal["date_parsing", "datetime_parsing"]) -> PydanticKnownError:
    return PydanticKnownError(kind, {"error": "not ISO 8601"})


_ISO = SchemaValidator(core_schema.datetime_schema())


def _same(option: Any, value: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return bool(option == value) and isinstance(option, bool) == isinstance(value, bool)


def _listed(options: list[Any]) -> str:
    *others, last = map(repr, options)
    return f"{', '.join(others)} or {last}" if others else last


def _literal(expected: list[Any]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, int) and not any(_same(option, value) for option in expected):
            raise PydanticKnownError("literal_error", {"expected": _listed(expected)})
        return value

    return check


def _member(members: list[Any]) -> Callable[[Any], Any]:
    def find(value: Any) -> Any:
        for member in members:
            if value is member or _same(member.value, value):
                return member
        raise PydanticKnownError("enum", {"expected": _listed([member.value for member in members])})

    return find

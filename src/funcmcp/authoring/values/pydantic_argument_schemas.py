"""pydantic's core schemas, changed so that arguments are validated as the JSON schema describes them.

pydantic converts more than its JSON schema says: a string for a decimal, ``true`` for 1, digits for a date. Strict
arguments accept only values that fit the JSON schema. Lax arguments are converted as pydantic does by default, and
objects and arrays are also read from strings with JSON. For both, bytes are base64 and patterns are linear.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import (
    PydanticKnownError,
    PydanticOmit,
    PydanticUseDefault,
    SchemaValidator,
    core_schema,
    from_json,
    to_json,
)

from funcmcp.authoring.values.argument_errors import NOT_NULL
from funcmcp.authoring.values.pydantic_schema_tree import nodes_of
from funcmcp.authoring.values.pydantic_schemas import (
    adapted,
    core_schema_of,
    linear_pattern,
    never_exact,
    validated_first,
)
from funcmcp.protocol.codec import has_more_values
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from funcmcp.authoring.values.pydantic_schemas import Node

_DICTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_OBJECTS = frozenset({"dataclass", "model", "named-tuple", "typed-dict"})
_NOT_KEYS = _DICTS | _OBJECTS | {"deque", "frozenset", "list", "none", "set", "tuple"}
"""Kinds of schemas that can't be read from the name of an object's member."""

_NUMBERS = frozenset({"bool", "decimal", "float", "int"})
_FIELDS = frozenset({"dataclass-field", "model-field", "named-tuple-field", "typed-dict-field"})
_WITH_FIELDS = frozenset({"dataclass-args", "model-fields", "named-tuple", "typed-dict"})
_COLLECTIONS = frozenset(
    {"counter", "deque", "dict", "frozendict", "frozenset", "list", "ordered-dict", "set", "tuple"}
)
"""Kinds of schemas that can stop at the first wrong item."""

_FROM_JSON_TEXT = (_COLLECTIONS | _OBJECTS) | {"tagged-union"}
"""Kinds of schemas that are objects or arrays in JSON. Some clients send these as a string with JSON."""

_FROM_TEXT = frozenset({"complex", "multi-host-url", "time", "timedelta", "url", "uuid"})
"""Kinds of schemas, beside those in `_CONVERSIONS`, that pydantic reads from text in strict JSON."""

_MAX_TEXT_VALUES = 250_000
"""The maximum number of values in a text that is read as JSON, counted by its commas and opening brackets. A message
has the same maximum."""

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO_DATETIME = SchemaValidator(core_schema.datetime_schema())


def argument_schema(annotation: Any, place: str, *, lax: bool) -> Node:
    """Return the core schema that validates arguments of a type.

    A field that may be None may also be absent. Bytes are read from base64, and keys that are numbers from text.

    Args:
        annotation: The type.
        place: The type's place, for errors, such as "The parameter 'orders' of get_order".
        lax: Whether values are converted.

    Raises:
        RegistrationError: JSON can't carry the type or the keys of a dict, or two fields have one name in JSON.
    """
    schema = core_schema_of(annotation, place)
    for node in nodes_of(schema):
        if node["type"] in _DICTS and {key["type"] for key in _members(node.get("keys_schema"))} <= _NOT_KEYS:
            raise RegistrationError(f"{place} has a dict whose keys JSON can't carry. Use strings or numbers as keys.")
        duplicate = _duplicate_name(node)
        if duplicate is not None:
            raise RegistrationError(f"{place}: two fields have the name {duplicate!r} in JSON. Change an alias.")
    return adapted(schema, _lax_argument if lax else _strict_argument)


def _duplicate_name(node: Node) -> str | None:
    """Return a name that two fields of an object have in JSON, or None."""
    if node["type"] not in _WITH_FIELDS:
        return None
    fields = node["fields"]
    named_fields = fields.items() if isinstance(fields, dict) else [(field["name"], field) for field in fields]
    names: set[str] = set()
    for field_name, field in named_fields:
        name = field.get("validation_alias", field_name)
        if not isinstance(name, str):
            continue  # several paths, of which pydantic takes the first that exists
        if name in names:
            return name
        names.add(name)
    return None


def for_texts(schema: Node) -> Node:
    """Return a lax schema for texts, in which digits alone are not a date."""
    return adapted(schema, _check_date_text)


def strings_first(schema: Node) -> Node:
    """Return a schema whose unions keep a string as it is if one of their members accepts it.

    The result is only for validation: the JSON schema of a changed union has some members twice.
    """
    references = {node["ref"] for node in nodes_of(schema) if "ref" in node and _is_string(node)}
    return adapted(schema, partial(_strings_first, references))


def _strings_first(references: AbstractSet[str], node: Node) -> Node:
    if node.get("type") != "union":
        return node
    strings = []
    for choice in node["choices"]:
        member = choice[0] if isinstance(choice, tuple) else choice
        if all(leaf["type"] == "str" or leaf.get("schema_ref") in references for leaf in _members(member)):
            strings.append(member)
    if not strings:
        return node
    reference = node.pop("ref", None)
    union: Any = node
    return dict(core_schema.union_schema([*strings, union], mode="left_to_right", ref=reference))


def _is_string(node: Node) -> bool:
    return all(leaf["type"] == "str" for leaf in _members(node))


def fail_fast(schema: Node) -> Node:
    """Return a schema that stops at the first wrong item of a list, a set or a dict."""
    return adapted(schema, _fail_fast)


def _fail_fast(node: Node) -> Node:
    if node.get("type") in _COLLECTIONS:
        node["fail_fast"] = True
    return node


def null_as_absent(schema: Node) -> Node:
    """Return a schema in which null stands for the default of a field that has one, unless the field accepts null.

    Models send null for arguments that they do not set. The schema calls a function for each field with a default, so
    it is slower than the one that it is made of.
    """
    return adapted(schema, _null_as_absent)


def _null_as_absent(node: Node) -> Node:
    kind = node.get("type")
    if kind == "default" and ("default" in node or "default_factory" in node):
        node["schema"] = _or_null(node["schema"], _use_default)
    elif kind == "typed-dict-field" and node.get("required") is False and node["schema"]["type"] != "default":
        node["schema"] = _or_null(node["schema"], _omit)
    return node


def _or_null(schema: Any, for_null: Callable[[Any], Any]) -> Node:
    """Return a schema that calls a function for null if *schema* rejects null.

    A function around *schema* would pass it a value of Python, and a list of Python is not a set in strict validation.
    """
    null = core_schema.custom_error_schema(core_schema.none_schema(), NOT_NULL, custom_error_message="not null")
    absent = core_schema.no_info_after_validator_function(for_null, null)
    return dict(core_schema.union_schema([(schema, "\0value"), absent], mode="left_to_right"))


def _use_default(_: None) -> Any:
    raise PydanticUseDefault


def _omit(_: None) -> Any:
    raise PydanticOmit


def _any_argument(node: Node) -> Node:
    """Make the changes that strict and lax arguments share."""
    kind = node.get("type")
    if kind in _FIELDS and _may_be_none(node):
        node["schema"] = {"type": "default", "schema": node["schema"], "default": None}
        if kind == "typed-dict-field":
            node["required"] = False
    elif kind == "str" and "pattern" in node:
        node["pattern"] = linear_pattern(node["pattern"])
        node["regex_engine"] = "rust-regex"
    elif kind == "bytes":
        return never_exact(validated_first(_from_base64, _described_as_base64(node)))
    elif kind in _DICTS and _are_texts_of_numbers(node.get("keys_schema")):
        node["keys_schema"] = validated_first(_from_member_name, node["keys_schema"])
    return node


def _strict_argument(node: Node) -> Node:
    node = _any_argument(node)
    kind = node.get("type")
    if kind in _CONVERSIONS:
        return never_exact(validated_first(_CONVERSIONS[kind], node))
    if kind in _FROM_TEXT:
        return never_exact(node)
    if kind == "literal" and not all(isinstance(value, str) for value in node["expected"]):
        return validated_first(_literal_reader(node["expected"]), node)
    if kind == "enum" and not all(isinstance(member.value, str) for member in node["members"]):
        return never_exact(validated_first(_enum_reader(node["members"]), node))
    return node


def _lax_argument(node: Node) -> Node:
    node = _any_argument(node)
    if node.get("type") in _FROM_JSON_TEXT:
        return validated_first(_from_json_text, node)
    return node


def _from_json_text(value: Any) -> Any:
    """Return the object or array that a string contains as JSON. Other values are returned unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        if len(value) > _MAX_TEXT_VALUES and has_more_values(value.encode(), _MAX_TEXT_VALUES):
            return value
        return from_json(value, allow_inf_nan=False)
    except ValueError:
        return value


def _described_as_base64(node: Node) -> Node:
    """Return a node for bytes whose JSON schema describes the base64 text, in characters instead of bytes."""
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


def _are_texts_of_numbers(keys: Node | None) -> bool:
    """Return whether keys of a dict are numbers or booleans, which are texts as names of an object's members."""
    kinds = set()
    options = []
    for node in _members(keys):
        kinds.add(node["type"])
        if node["type"] == "literal":
            options += node["expected"]
        elif node["type"] == "enum":
            options += [member.value for member in node["members"]]
    if "str" in kinds:
        return False
    return bool(kinds & _NUMBERS) or not all(isinstance(option, str) for option in options)


def _members(schema: Node | None) -> Iterator[Node]:
    """Yield the members of a union, or the schema alone, without the schemas wrapped around them."""
    if schema is None:
        yield {"type": "any"}
    elif schema["type"] == "union":
        for choice in schema["choices"]:
            yield from _members(choice[0] if isinstance(choice, tuple) else choice)
    elif schema["type"] == "chain":
        yield from _members(schema["steps"][0])
    elif "schema" in schema and schema["type"] not in _OBJECTS:
        yield from _members(schema["schema"])
    else:
        yield schema


def _from_member_name(name: Any) -> Any:
    """Return the JSON value in the name of an object's member, such as 17 for "17"; other names unchanged."""
    try:
        return from_json(name, allow_inf_nan=False)
    except ValueError:
        return name


def _check_date_text(node: Node) -> Node:
    """Return a node for dates, or dates and times, that accepts only ISO 8601, not a number of seconds."""
    kind = node.get("type")
    if kind not in {"date", "datetime"}:
        return node

    def check(value: Any) -> Any:
        if isinstance(value, int | float):
            raise PydanticKnownError("date_type" if kind == "date" else "datetime_type")
        if isinstance(value, str) and "-" not in value[1:]:
            raise _not_iso("date_parsing" if kind == "date" else "datetime_parsing")
        return value

    return validated_first(check, node)


def _may_be_none(field: Node) -> bool:
    """Return whether a required field accepts None, so that its absence can mean None."""
    if field.get("required") is False or field.get("init") is False:
        return False
    schema = field["schema"]
    while schema.get("type", "").startswith("function-") and "schema" in schema:
        schema = schema["schema"]
    return bool(schema.get("type") == "nullable")


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
            return _ISO_DATETIME.validate_python(value)
        except ValueError:
            pass  # the same error as for a text that is not a time at all
    raise _not_iso("datetime_parsing")


def _date(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if _ISO_DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass  # the same error as for a text that is not a date at all
    raise _not_iso("date_parsing")


_CONVERSIONS = {"date": _date, "datetime": _datetime, "decimal": _decimal}
"""Kinds of schemas for which funcmcp converts the JSON value of a strict argument."""


def _not_iso(kind: Literal["date_parsing", "datetime_parsing"]) -> PydanticKnownError:
    return PydanticKnownError(kind, {"error": "not ISO 8601"})


def _literal_reader(expected: list[Any]) -> Callable[[Any], Any]:
    """Return a function that returns the option of a literal with a value. True is not the value 1."""

    def find(value: Any) -> Any:
        for option in expected:
            if value is option or _equal_in_json(option.value if isinstance(option, Enum) else option, value):
                return option
        raise PydanticKnownError("literal_error", {"expected": _joined(expected)})

    return find


def _enum_reader(members: list[Any]) -> Callable[[Any], Any]:
    """Return a function that returns the member of an enum with a value. True is not the value 1."""

    def find(value: Any) -> Any:
        for member in members:
            if value is member or _equal_in_json(member.value, value):
                return member
        raise PydanticKnownError("enum", {"expected": _joined([member.value for member in members])})

    return find


def _equal_in_json(option: Any, value: Any) -> bool:
    """Return whether two values are equal in JSON, where true is not 1."""
    return bool(option == value) and isinstance(option, bool) == isinstance(value, bool)


def _text_of(option: Any) -> str:
    """Return an option as a client writes it. Strings have the quotes that pydantic gives them."""
    value = option.value if isinstance(option, Enum) else option
    return repr(value) if isinstance(value, str) else to_json(value, serialize_unknown=True).decode()


def _joined(options: list[Any]) -> str:
    texts = [_text_of(option) for option in options]
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"

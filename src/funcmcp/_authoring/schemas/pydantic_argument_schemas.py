"""pydantic's core schemas, changed so that arguments are validated as the JSON schema describes them.

pydantic converts more than its JSON schema says: a string for a decimal, ``true`` for 1, digits for a date. Strict
arguments accept only values that fit the JSON schema. Lax arguments are converted as pydantic does by default, and
objects and arrays are also read from strings with JSON. For both, patterns are linear, and bytes are base64 unless the
author's config names another encoding.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

import operator
import re
from datetime import date
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import IPvAnyAddress, IPvAnyInterface, IPvAnyNetwork
from pydantic_core import (
    PydanticCustomError,
    PydanticKnownError,
    PydanticOmit,
    PydanticUseDefault,
    SchemaValidator,
    ValidationError,
    core_schema,
    from_json,
)

from funcmcp._authoring.schemas.argument_errors import JSON_ERROR, MEMBER_LABEL, NOT_NULL
from funcmcp._authoring.schemas.argument_type_checks import accepts_none, check_argument_types, members_of
from funcmcp._authoring.schemas.bytes_encodings import encoding_of, with_encodings
from funcmcp._authoring.schemas.pydantic_choices import KINDS as CHOICES
from funcmcp._authoring.schemas.pydantic_choices import choices_in, reading_choices, reading_tags
from funcmcp._authoring.schemas.pydantic_schema_tree import children, nodes_of, with_children
from funcmcp._authoring.schemas.pydantic_schemas import (
    adapted,
    core_schema_of,
    linear_pattern,
    never_exact,
    validated_first,
)
from funcmcp._authoring.signatures.choices import expected_json, json_value
from funcmcp._objects.mappings import only, without
from funcmcp._protocol.codec import has_more_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from funcmcp._authoring.schemas.pydantic_schemas import Node

_DICTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_OBJECTS = frozenset({"dataclass", "model", "named-tuple", "typed-dict"})
_NUMBERS = frozenset({"bool", "decimal", "float", "int"})
_NUMBERS_WITHOUT_FRACTION = frozenset({"bool", "int"})
_SCALARS = frozenset({"bool", "float", "int", "str"})
"""Kinds of schemas that accept the same JSON values as strict types."""

_CLASSES = frozenset({"dataclass", "model"})
"""Kinds of schemas that do not inherit the config of the schema around them."""

_INTEGER_LIMITS = frozenset({"ge", "gt", "le", "lt", "multiple_of"})
_MIN_LARGE = 2.0**63
_FIELDS = frozenset({"dataclass-field", "model-field", "named-tuple-field", "typed-dict-field"})
_COLLECTIONS = frozenset(
    {"counter", "deque", "dict", "frozendict", "frozenset", "list", "ordered-dict", "set", "tuple"}
)
"""Kinds of schemas that can stop at the first wrong item."""

_FROM_JSON_TEXT = (_COLLECTIONS | _OBJECTS) | {"tagged-union"}
"""Kinds of schemas that are objects or arrays in JSON. Some clients send these as a string with JSON."""

_TRANSPARENT = frozenset({"default", "function-after", "function-wrap", "nullable"})
"""Kinds of schemas around another, that take the same JSON values or more."""

_FROM_TEXT = frozenset({"complex", "multi-host-url", "time", "timedelta", "url", "uuid"})
"""Kinds of schemas, beside those in `_CONVERSIONS`, that pydantic reads from text in strict JSON."""

_ADDRESSES = (IPvAnyAddress, IPvAnyInterface, IPvAnyNetwork)
_CUSTOM_ERROR = ("custom_error_type", "custom_error_message", "custom_error_context")
"""The members of a union's schema with the error that replaces those of its members."""

_MAX_TEXT_VALUES = 250_000
"""The maximum number of values in a text that is read as JSON, counted by its commas and opening brackets. A message
has the same maximum."""

_WITHOUT_EMPTY_TEXT = frozenset({"bool", "date", "datetime", "decimal", "float", "int", "time", "timedelta", "uuid"})
"""Kinds of core schemas for which an empty text is never valid."""

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO_DATETIME = SchemaValidator(core_schema.datetime_schema())


def argument_schema(annotation: Any, place: str, *, lax: bool) -> Node:
    """Return the core schema that validates arguments of a type.

    A field that may be None may also be absent. Bytes are read from their encoding, and keys that are numbers from
    text.

    Args:
        annotation: The type.
        place: The type's place, for errors, such as "The parameter 'orders' of get_order".
        lax: Whether values are converted.

    Raises:
        RegistrationError: JSON can't carry the type, or no argument could be valid for a part of it.
    """
    schema = with_encodings(core_schema_of(annotation, place), "val_json_bytes")
    check_argument_types(schema, place)
    definitions = {node["ref"]: node for node in nodes_of(schema) if "ref" in node}
    schema = adapted(schema, partial(_none_if_absent, definitions))
    return adapted(adapted(schema, _none_if_empty), _lax_argument) if lax else adapted(schema, _strict_argument)


def _none_if_empty(node: Node) -> Node:
    """Read an empty text as None where a value may be None and no text is valid: clients send it for no value."""
    value: Node = node["schema"] if node.get("type") == "nullable" else {}
    if value.get("type") in _WITHOUT_EMPTY_TEXT and not value.get("strict"):
        return validated_first(_value_of_text, node)
    return node


def _value_of_text(value: Any) -> Any:
    return None if value == "" else value


def _none_if_absent(definitions: Mapping[str, Node], node: Node) -> Node:
    """Give each required field that accepts None the default None."""
    kind = node.get("type")
    if kind not in _FIELDS or node.get("required") is False or node.get("init") is False:
        return node
    if node["schema"]["type"] != "default" and accepts_none(node["schema"], definitions):
        node["schema"] = {"type": "default", "schema": node["schema"], "default": None}
        if kind == "typed-dict-field":
            node["required"] = False
    return node


def for_texts(schema: Node) -> Node:
    """Return a lax schema for texts, in which digits alone are not a date, and strict types convert texts."""
    return adapted(schema, _for_text)


def _for_text(node: Node) -> Node:
    node.pop("strict", None)
    return _check_date_text(node)


def locating_errors(schema: Node) -> Node:
    """Return a schema whose errors can be located in the value, and show choices as JSON.

    pydantic puts the names of a union's members into the paths of errors, and an object may have members with these
    names. In the returned schema, the name of a member begins with `MEMBER_LABEL`, and a tag is followed by a label.
    """
    return adapted(schema, _locating_errors)


def _locating_errors(node: Node) -> Node:
    kind = node.get("type")
    if kind == "union":
        choices = [choice[0] if isinstance(choice, tuple) else choice for choice in node["choices"]]
        node["choices"] = [(choice, f"{MEMBER_LABEL}{index}") for index, choice in enumerate(choices)]
    elif kind == "tagged-union":
        node["choices"] = {tag: _labelled(choice) for tag, choice in node["choices"].items()}
    elif kind in CHOICES:
        reference = node.pop("ref", None)
        context = {"expected": expected_json(choices_in(node))}
        choice: Any = node
        return dict(core_schema.custom_error_schema(choice, "enum", custom_error_context=context, ref=reference))
    return node


def _labelled(choice: Any) -> Any:
    """Return a member of a tagged union with a label after its tag in the paths of errors."""
    return core_schema.union_schema([(choice, MEMBER_LABEL)], mode="left_to_right", auto_collapse=False)


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
        if _is_string(member, references):
            strings.append(member)
    if not strings:
        return node
    reference = node.pop("ref", None)
    error: Any = {name: node.pop(name) for name in _CUSTOM_ERROR if name in node}
    union: Any = node
    return dict(core_schema.union_schema([*strings, union], mode="left_to_right", ref=reference, **error))


def _is_string(node: Node, references: AbstractSet[str] = frozenset()) -> bool:
    """Return whether each value of a schema is a string, or a root model with a string in it.

    Args:
        node: The schema.
        references: The references to such schemas.
    """
    return all(
        leaf["type"] == "str"
        or leaf.get("schema_ref") in references
        or (bool(leaf.get("root_model")) and _is_string(leaf["schema"], references))
        for leaf in members_of(node)
    )


def strict_schema(schema: Node) -> Node:
    """Return a schema that is strict by its own options, for a validator that is built with ``strict=True``.

    When a call to pydantic asks for strictness, no part can be lax. `whole_numbers` adds parts that are.
    """
    return adapted(schema, _strict)


def _strict(node: Node) -> Node:
    node.pop("strict", None)
    kind = node.get("type")
    if kind == "int":
        node["strict"] = True
    elif kind in _CLASSES or "config" in node:
        node["config"] = {**node.get("config", {}), "strict": True}
    return node


def whole_numbers(schema: Node) -> Node:
    """Return a schema whose strict integers also accept floats without a fraction: in JSON, 5.0 is an integer.

    For unions, 5.0 is an integer only by conversion, as it is for pydantic's integers that are not strict.
    """
    return adapted(schema, _whole_number)


def _whole_number(node: Node) -> Node:
    if node.get("type") != "int" or not node.get("strict"):
        return node
    converted = validated_first(_digits_of_large, dict(core_schema.int_schema(strict=False)))
    from_float: Any = core_schema.chain_schema([core_schema.float_schema(strict=True), cast("Any", converted)])
    number: Any = core_schema.union_schema(
        [core_schema.int_schema(strict=True), from_float], mode="left_to_right", custom_error_type="int_type"
    )
    limits: Any = only(node, _INTEGER_LIMITS)
    if limits:
        number = core_schema.chain_schema([number, core_schema.int_schema(**limits)])
    if "ref" in node:
        number["ref"] = node["ref"]
    return dict(number)


def _digits_of_large(value: float) -> float | str:
    """Return the digits of a float without a fraction that pydantic does not convert to an integer."""
    if value.is_integer() and abs(value) >= _MIN_LARGE:
        return str(int(value))
    return value


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
    if kind == "str" and "pattern" in node:
        node["pattern"] = linear_pattern(node["pattern"])
        node["regex_engine"] = "rust-regex"
    elif kind == "generator":
        return _list_of(node)
    elif kind == "tagged-union":
        if callable(node["discriminator"]):
            node["discriminator"] = _without_errors(node["discriminator"])
        return reading_tags(node)
    elif "config" in node and not node["config"].get("validate_by_alias", True):
        _remove_aliases(node)
    elif kind == "bytes":
        return never_exact(validated_first(encoding_of(node).read, _described_as_encoded(node)))
    elif kind in _DICTS and _are_texts_of_numbers(node.get("keys_schema")):
        kinds = {key["type"] for key in members_of(node["keys_schema"])}
        read_name = _integer_from_name if kinds <= _NUMBERS_WITHOUT_FRACTION else _from_member_name
        node["keys_schema"] = validated_first(read_name, node["keys_schema"])
    return node


def _strict_argument(node: Node) -> Node:
    node = _any_argument(node)
    kind = node.get("type")
    if kind in _CONVERSIONS:
        return never_exact(validated_first(_CONVERSIONS[kind], node))
    if kind in _FROM_TEXT:
        return never_exact(node)
    if kind == "function-plain" and getattr(node["function"]["function"], "__self__", None) in _ADDRESSES:
        return validated_first(_text_only, node)
    if kind in CHOICES:
        return reading_choices(node, lax=False)
    return node


def _lax_argument(node: Node) -> Node:
    node = _any_argument(node)
    kind = node.get("type")
    if kind not in _SCALARS:
        node.pop("strict", None)  # strict dates and sets are Python's own, which JSON does not have
    if "config" in node:
        node["config"] = {**node["config"], "strict": False}
    if kind == "union":
        return _json_text_last(node)
    if kind in _FROM_JSON_TEXT and not node.get("root_model"):
        return _json_text_last(node) if callable(node.get("discriminator")) else validated_first(_from_json_text, node)
    if kind in CHOICES:
        return reading_choices(node, lax=True)
    return node


def _json_text_last(node: Node) -> Node:
    """Return a union that reads a text as JSON only if no member takes the text itself."""
    plain = with_children(node, _without_json_text)
    if node["type"] == "union" and all(map(operator.is_, children(plain), children(node))):
        return node
    reference = plain.pop("ref", None)
    inner: Any = plain
    return dict(core_schema.no_info_wrap_validator_function(_text_before_json, inner, ref=reference))


def _without_json_text(node: Node) -> Node:
    """Return a member of a union that does not read texts as JSON, except in its own members and items."""
    kind = node["type"]
    function = node.get("function", {}).get("function") if kind.startswith("function-") else None
    if function is _from_json_text or function is _text_before_json:
        inner: Node = node["schema"]
        return {**inner, "ref": node["ref"]} if "ref" in node else inner
    if node.get("root_model") or kind in _TRANSPARENT:
        copied = with_children(node, _without_json_text)
        changed = any(map(operator.is_not, children(copied), children(node)))
        return copied if changed else node
    return node


def _text_before_json(value: Any, validate: Callable[[Any], Any]) -> Any:
    try:
        return validate(value)
    except ValidationError:
        read = _from_json_text(value)
        if read is value:
            raise
    return validate(read)


def _without_errors(discriminator: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an author's discriminator that has no tag for a value for which it raises, unless that is an object."""

    def tag_of(value: Any) -> Any:
        try:
            return discriminator(value)
        except Exception:
            if isinstance(value, dict):
                raise
            return None  # a function for objects, such as ``lambda pet: pet["kind"]``, got something else

    return tag_of


def _from_json_text(value: Any) -> Any:
    """Return the object or array that a string contains as JSON. Other values are returned unchanged.

    Raises:
        PydanticCustomError: A string begins like an object or an array, and is not JSON.
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    if len(value) > _MAX_TEXT_VALUES and has_more_values(value.encode(), _MAX_TEXT_VALUES):
        return value
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError as error:
        raise PydanticCustomError(JSON_ERROR, "must be JSON: {reason}", {"reason": str(error)}) from None


def requires_json(schema: Node, field: Node) -> bool:
    """Return whether each value of a lax field but None is an object or an array in JSON.

    Args:
        schema: The schema that contains the field.
        field: The field.
    """
    definitions = {node["ref"]: node for node in nodes_of(schema) if "ref" in node}
    return _requires_json(field["schema"], definitions)


def _requires_json(node: Node, definitions: Mapping[str, Node]) -> bool:
    kind = node["type"]
    if kind == "definition-ref":
        name = node["schema_ref"]
        return name in definitions and _requires_json(definitions[name], without(definitions, name))
    if kind == "union" or callable(node.get("discriminator")):
        return all(_requires_json(choice, definitions) for choice in children(node) if choice["type"] != "none")
    if kind == "chain":
        return _requires_json(node["steps"][0], definitions)
    if node.get("root_model") or kind in _TRANSPARENT or kind == "function-before":
        return _requires_json(node["schema"], definitions)
    return kind in _FROM_JSON_TEXT


def reads_texts(field: Node) -> bool:
    """Return whether an author's function is called before a field is validated, which may read any text."""
    node = field["schema"]
    while node["type"] in _TRANSPARENT or node["type"] == "function-before" or node.get("root_model"):
        function = node["function"]["function"] if node["type"] in {"function-before", "function-wrap"} else None
        if function is not None and function is not _from_json_text and function is not _text_before_json:
            return True
        node = node["schema"]
    return False


def _list_of(node: Node) -> Node:
    """Return a list in place of pydantic's iterator, which would validate its items while the function reads them."""
    return {**node, "type": "list"}


def _remove_aliases(node: Node) -> None:
    """Remove the aliases of fields that are read by their names only."""
    while ("fields" not in node and "schema" in node) or node["type"] == "dataclass":
        node = node["schema"]
    fields = node["fields"]
    for field in fields.values() if isinstance(fields, dict) else fields:
        field.pop("validation_alias", None)


def _described_as_encoded(node: Node) -> Node:
    """Return a node for bytes whose JSON schema describes the text of their encoding."""
    encoding = encoding_of(node)
    metadata = node.get("metadata", {})
    updates = {**metadata.get("pydantic_js_updates", {}), **encoding.keywords, **encoding.limits(node)}
    return {**node, "metadata": {**metadata, "pydantic_js_updates": updates}}


def _are_texts_of_numbers(keys: Node | None) -> bool:
    """Return whether keys of a dict are numbers or booleans, which are texts as names of an object's members."""
    kinds = set()
    choices: list[Any] = []
    for node in members_of(keys):
        kinds.add(node["type"])
        if node["type"] in CHOICES:
            choices += map(json_value, choices_in(node))
    if "str" in kinds:
        return False
    return bool(kinds & _NUMBERS) or not all(isinstance(choice, str) for choice in choices)


def _from_member_name(name: Any) -> Any:
    """Return the JSON value in the name of an object's member, such as 17 for "17"; other names unchanged."""
    try:
        return from_json(name, allow_inf_nan=False)
    except ValueError:
        return name


def _integer_from_name(name: Any) -> Any:
    """Return what `_from_member_name` returns, but "17.0" unchanged. As 17 it could be a second equal key of a dict."""
    value = _from_member_name(name)
    return name if isinstance(value, float) else value


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


def _text_only(value: Any) -> Any:
    """Return a value that is not a number. pydantic takes a number for an IP address."""
    if isinstance(value, int | float):
        raise PydanticKnownError("string_type")
    return value


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

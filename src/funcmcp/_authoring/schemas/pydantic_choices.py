"""Literals, enums and flags in pydantic's core schemas, so that each choice is its JSON value.

pydantic compares the options of a literal with Python objects, and takes only Python's own values for bytes, tuples and
dates. It accepts combined flags that its JSON schema does not have. Here a function before the validation finds the
choice of a JSON value, as `signatures/choices.py` defines it. Lax choices are also found by their texts. Choices that
are strings stay with pydantic, which is faster.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

from enum import Enum, Flag
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, PydanticKnownError

from funcmcp._authoring.schemas.argument_errors import TAG_ERROR
from funcmcp._authoring.schemas.pydantic_schemas import never_exact, validated_first
from funcmcp._authoring.signatures.choices import (
    choice_text,
    expected_json,
    has_unnamed_bits,
    joined_json,
    json_key,
    json_value,
    sum_of,
)
from funcmcp._protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.schemas.pydantic_schemas import Node

KINDS = frozenset({"enum", "literal"})
MAX_COMBINATIONS = 65_536
"""The maximum number of combinations of one flag, of about 300 bytes each. Clients choose among 2 to the power of the
number of its members."""

_MISSING_METHODS = (Enum.__dict__["_missing_"], Flag.__dict__["_missing_"])
_FAILURES = (AttributeError, LookupError, TypeError, ValueError)
"""What `_missing_` of an author raises for a value of a kind that it does not expect."""

_JSON_TYPES = {bool: "boolean", dict: "object", float: "number", int: "integer", list: "array", str: "string"}


def choices_in(node: Node) -> list[Any]:
    """Return the choices of a literal or an enum."""
    return list(node["expected"] if node["type"] == "literal" else node["members"])


def invalid_choice(node: Node) -> str | None:
    """Return a phrase about a choice that JSON can't carry, or None."""
    if node["type"] not in KINDS:
        return None
    for choice in choices_in(node):
        try:
            json_value(choice)
        except ValueError:
            return f"the choice {choice!r}, which JSON can't carry. Use strings or numbers as values"
    return None


def reading_choices(node: Node, *, lax: bool) -> Node:
    """Return the schema of a literal or an enum that reads choices from JSON.

    Args:
        node: The schema.
        lax: Whether a choice is also found by its text, such as "1" for 1.
    """
    choices = choices_in(node)
    kind: type[Enum] | None = node.get("cls")
    if kind is None:
        if all(type(choice) is str for choice in choices):
            return node
        return validated_first(_reader(choices, None, lax=lax), node)
    has_lookup = _has_own_lookup(kind)
    if issubclass(kind, Flag) and not has_lookup:
        return never_exact(validated_first(_flag_reader(kind, lax=lax), node))
    if all(type(choice.value) is str for choice in choices) and not has_lookup:
        return node
    return never_exact(validated_first(_reader(choices, kind if has_lookup else None, lax=lax), node))


def _has_own_lookup(kind: type[Enum]) -> bool:
    """Return whether an author's enum finds members for values that are not theirs."""
    method = next(cls.__dict__["_missing_"] for cls in kind.__mro__ if "_missing_" in cls.__dict__)
    return method not in _MISSING_METHODS


def _reader(choices: list[Any], enum: type[Enum] | None, *, lax: bool) -> Callable[[Any], Any]:
    """Return a function that returns the choice with a JSON value.

    Args:
        choices: The choices.
        enum: The enum, if it finds members for further values.
        lax: Whether a choice is also found by its text.
    """
    by_value = {json_key(json_value(choice)): choice for choice in reversed(choices)}
    by_text = {choice_text(choice): choice for choice in choices} if lax else {}
    expected = cache(lambda: expected_json(choices))

    def find(value: Any) -> Any:
        key = json_key(value) if type(value) in _JSON_TYPES or value is None else None
        if key in by_value:
            return by_value[key]
        if isinstance(value, str) and value in by_text:
            return by_text[value]
        for choice in choices:
            if type(value) is type(choice) and value == choice:
                return choice  # a default, which is not JSON
        member = None if enum is None else _looked_up(enum, value)
        if member is None:
            raise PydanticKnownError("enum", {"expected": expected()})
        return member

    return find


def _looked_up(enum: type[Enum], value: Any) -> Enum | None:
    """Return the member that an author's enum finds for a value, or None."""
    try:
        member = enum._missing_(value)
    except _FAILURES:
        return None
    if isinstance(member, enum):
        return member
    return None


def _flag_reader(kind: type[Flag], *, lax: bool) -> Callable[[Any], Any]:
    """Return a function that returns the flags whose sum is a number. Bits without names are rejected."""
    expected = joined_json(kind.__members__.values())
    limit = sum_of(kind)
    combinations = kind._value2member_map_  # Python keeps each combination forever

    def read(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if lax and isinstance(value, str) and value.isdecimal() and value.isascii():
            value = int(value)
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or value < 0 or value & ~limit:
            raise PydanticCustomError("flag", "must be a sum of {expected}", {"expected": expected})
        if value not in combinations and len(combinations) >= MAX_COMBINATIONS:
            raise ToolError(f"Too many different combinations of {kind.__name__} have been sent. Use an earlier one.")
        return kind(value)

    return read


def reading_tags(node: Node) -> Node:
    """Return a tagged union that also finds the JSON values of its tags, and whose errors show them.

    Its errors about tags have the type `TAG_ERROR`.
    """
    tags: dict[Any, Any] = {}
    for tag, choice in node["choices"].items():
        tags[tag] = choice
        value = json_value(tag)
        if not isinstance(value, dict | list):
            tags.setdefault(value, choice)
    node["choices"] = tags
    discriminator = node["discriminator"]
    if "custom_error_type" in node:
        return node
    node["custom_error_type"] = TAG_ERROR
    node["custom_error_message"] = "fits none of its alternatives"
    if not callable(discriminator):
        paths = [[discriminator]] if isinstance(discriminator, str) else discriminator
        names = [path[0] for path in paths]  # the field's name, and its alias if it has one
        node["custom_error_context"] = {"discriminators": names, "expected": expected_json(list(tags))}
    return node


def choices_schema(values: list[Any]) -> dict[str, Any]:
    """Return the JSON schema of choices with some JSON values.

    A single value is an ``enum``, too, because Gemini's API and others do not have ``const``.
    """
    if values == [None]:
        return {"type": "null"}
    schema: dict[str, Any] = {"enum": values}
    kinds = {_JSON_TYPES.get(type(value), "null") for value in values}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) == 1:
        schema["type"] = kinds.pop()
    return schema


def flag_schema(kind: type[Flag], *, in_results: bool) -> dict[str, Any]:
    """Return the JSON schema of the sums of flags. In results, flags may have bits without names if their type may."""
    members = ", ".join(f"{name} = {member.value}" for name, member in kind.__members__.items())
    schema = {"type": "integer", "minimum": 0, "description": f"A sum of {members}"}
    if in_results and has_unnamed_bits(kind):
        return schema
    return {**schema, "maximum": sum_of(kind)}


def are_written_by_pydantic(node: Node) -> bool:
    """Return whether pydantic writes each choice of a literal or an enum as its JSON value."""
    values = [choice.value if isinstance(choice, Enum) else choice for choice in choices_in(node)]
    return all(isinstance(value, str | int | float | None) for value in values)

"""Values in JSON form as FastMCP writes them: with pydantic, by the return annotation of a function.

Numbers, arrays and tables of other libraries are data, where FastMCP writes some of them as text and refuses others.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from pydantic_core import CoreConfig, PydanticSerializationError, SchemaSerializer, from_json

from funcmcp._authoring.schemas.python_values import is_of_library, python_value, with_python_values
from funcmcp._compat.errors import ToolError
from funcmcp._compat.typed_dicts import readable

if TYPE_CHECKING:
    from collections.abc import Callable

_OPEN = (inspect.Signature.empty, None, Any, ...)
"""Annotations that say nothing about a value."""

_UNWRITABLE = (
    "The function returned a value that can't be written as JSON: it contains itself, is nested too deep, or has text "
    "that is not valid Unicode."
)


def serializer_of(annotation: Any) -> Callable[[Any], Any]:
    """Return a function that returns values of a type in JSON form.

    It raises ToolError for a number that JSON can't carry, and ValueError for any other such value.
    """
    serializer = _any_serializer()
    if not isinstance(annotation, str) and not any(annotation is hint for hint in _OPEN):
        serializer = _serializer(annotation) or serializer

    def serialize(value: Any) -> Any:
        try:
            text = serializer.to_json(value, warnings=False)
        except PydanticSerializationError:
            # FastMCP has a text for such a value, so a NaN in it is null and not an error, if no schema forbids it
            writer = _plain_serializer() if serializer is _any_serializer() else serializer
            text = writer.to_json(_with_data(value), warnings=False)
        parsed = from_json(text)
        if b"NaN" in text or b"Infinity" in text:
            _check_numbers(parsed, "$")
        return parsed

    return serialize


def serialized(value: Any) -> Any:
    """Return a value in JSON form.

    Raises:
        ToolError: It has a number that JSON can't carry.
        ValueError: JSON can't carry it.
    """
    return serializer_of(Any)(value)


def json_text(value: Any) -> str:
    """Return a value as JSON text. What JSON can't carry is written as its text."""
    try:
        return _plain_serializer().to_json(value, warnings=False).decode()
    except PydanticSerializationError:
        return _text_with_data(value)


def _text_with_data(value: Any) -> str:
    with suppress(ValueError):  # the value is read once more only if it has what pydantic does not know
        return _plain_serializer().to_json(_with_data(value), warnings=False).decode()
    try:
        return _plain_serializer().to_json(value, fallback=str, warnings=False).decode()
    except PydanticSerializationError:
        raise ValueError(_UNWRITABLE) from None


def _with_data(value: Any) -> Any:
    """Return a value with Python values in place of those of other libraries, such as the rows of a DataFrame."""
    return python_value(value) if is_of_library(type(value)) else with_python_values(value)


def _serializer(annotation: Any) -> SchemaSerializer | None:
    """Return the serializer of a type; None if pydantic can't read the type."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - loads slowly
    from pydantic.errors import PydanticUserError  # noqa: PLC0415 - as above

    try:
        schema = TypeAdapter(readable(annotation)).core_schema
    except (PydanticUserError, NameError):
        return None
    return SchemaSerializer(schema, CoreConfig(ser_json_inf_nan="constants"))


@cache
def _any_serializer() -> SchemaSerializer:
    return SchemaSerializer({"type": "any"}, CoreConfig(ser_json_inf_nan="constants"))


@cache
def _plain_serializer() -> SchemaSerializer:
    return SchemaSerializer({"type": "any"})


def _check_numbers(value: Any, path: str) -> None:
    """Raise ToolError if a value contains a number that is not finite."""
    if isinstance(value, float) and not isfinite(value):
        raise ToolError(
            f"Tool result contains a non-finite float ({value!r}) at {path}; JSON cannot represent NaN or Infinity"
        )
    if isinstance(value, dict):
        for name, member in value.items():
            _check_numbers(member, f"{path}.{name}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _check_numbers(member, f"{path}[{index}]")

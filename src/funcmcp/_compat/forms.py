"""Forms of `Context.elicit` as FastMCP makes them: the schema that the client shows, and how its answer is read.

How it works: a type without fields, and choices in a list or a dict, become a form with one field, ``value``. Other
types are forms themselves. Pydantic writes the schema and reads the answer.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_origin

from pydantic import TypeAdapter, ValidationError

from funcmcp._authoring.schemas.argument_errors import validation_errors, wrong_arguments
from funcmcp._compat.errors import ToolError
from funcmcp._compat.input_schemas import dereferenced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIMPLE = frozenset({"boolean", "integer", "number", "string"})
_LIMITS = "Elicitation schemas must be flat objects with primitive properties only."


class Form(NamedTuple):
    """A form.

    Attributes:
        schema: The schema that the client shows.
        read: Returns the value for the content of an answer. It raises ToolError if the content does not fit.
    """

    schema: dict[str, Any]
    read: Callable[[Any], Any]


def form_of(response_type: Any, title: str | None = None, description: str | None = None) -> Form:
    """Return the form for what the author wants to know.

    Args:
        response_type: A type; choices in a list, or in a dict with their titles; either of them in a list for several
            answers; a JSON schema; or None for a form without fields.
        title: The title of the field, for types without fields and choices.
        description: The description of the field, as *title*.

    Raises:
        TypeError: A form can't show the type, or there is a title for a type with fields.
        ValueError: There are no choices.
    """
    if response_type is None or (isinstance(response_type, dict) and response_type.get("type") == "object"):
        return Form(response_type or {"type": "object", "properties": {}}, lambda content: content)
    field = _field_of(response_type)
    if field is None:
        if title is not None or description is not None:
            raise TypeError(
                "response_title and response_description are only supported for a scalar, Literal, Enum, or choices in "
                "a list or dict. For a model, use Field(title=..., description=...) on its fields."
            )
        adapter: TypeAdapter[Any] = TypeAdapter(response_type)
        return Form(checked_schema(adapter.json_schema()), _reader(adapter))
    schema, adapter = field
    texts = {"title": title, "description": description}
    schema = {**schema, **{name: text for name, text in texts.items() if text is not None}}
    form = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    read = _reader(adapter)
    return Form(checked_schema(form), lambda content: read(_value_in(content)))


def _field_of(response_type: Any) -> tuple[dict[str, Any], TypeAdapter[Any]] | None:
    """Return the schema of the one field of a form, and what reads it; None for a type with fields."""
    if isinstance(response_type, dict):
        return _titled(response_type, "oneOf"), TypeAdapter(_one_of(response_type))
    if isinstance(response_type, list):
        return _field_of_choices(response_type)
    is_enum = isinstance(response_type, type) and issubclass(response_type, Enum)
    is_scalar = response_type in {bool, int, float, str} or is_enum
    if not is_scalar and get_origin(response_type) not in {Literal, list}:
        return None
    adapter: TypeAdapter[Any] = TypeAdapter(response_type)
    return {"title": "Value", **dereferenced(adapter.json_schema())}, adapter


def _field_of_choices(choices: list[Any]) -> tuple[dict[str, Any], TypeAdapter[Any]]:
    inner = choices[0] if len(choices) == 1 else None
    if isinstance(inner, dict) and inner:
        return {"type": "array", "items": _titled(inner, "anyOf")}, TypeAdapter(_several_of(inner))
    if isinstance(inner, list) and inner and all(isinstance(choice, str) for choice in inner):
        schema = {"type": "array", "items": {"type": "string", "enum": inner}}
        return schema, TypeAdapter(_several_of(inner))
    if choices and all(isinstance(choice, str) for choice in choices):
        adapter: TypeAdapter[Any] = TypeAdapter(_one_of(choices))
        return {"title": "Value", **adapter.json_schema()}, adapter
    raise ValueError(f"Invalid list response_type format. Received: {choices}")


def _titled(choices: Mapping[str, Any], keyword: str) -> dict[str, Any]:
    """Return the schema of choices with titles."""
    if not choices:
        raise ValueError("Dict response_type cannot be empty.")
    alternatives = [{"const": name, "title": members.get("title", name)} for name, members in choices.items()]
    return {"type": "string", keyword: alternatives} if keyword == "oneOf" else {keyword: alternatives}


def _one_of(choices: Any) -> Any:
    return Literal[tuple(choices)]


def _several_of(choices: Any) -> Any:
    return list[_one_of(choices)]  # type: ignore[misc] # a type that is made here


def _value_in(content: Any) -> Any:
    if not isinstance(content, dict) or "value" not in content:
        raise ToolError("Elicitation response missing required 'value' field.")
    return content["value"]


def _reader(adapter: TypeAdapter[Any]) -> Callable[[Any], Any]:
    def read(content: Any) -> Any:
        try:
            return adapter.validate_python(content)
        except ValidationError as error:
            problems = wrong_arguments(validation_errors(error, content))
            raise ToolError(f"The answer to the form does not fit it:\n{problems}") from None

    return read


def checked_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a form with its definitions in the place of references.

    Raises:
        TypeError: A form can't show it.
    """
    schema = dereferenced(schema)
    if schema.get("type") != "object":
        raise TypeError(f"Elicitation schema must be an object schema, got type {schema.get('type')!r}. {_LIMITS}")
    for name, field in schema.get("properties", {}).items():
        _check_field(name, field)
    return schema


def _check_field(name: str, field: dict[str, Any]) -> None:
    """Raise TypeError if a form can't show a field."""
    if "const" in field or "enum" in field:
        return
    alternatives = [*field.get("oneOf", ()), *field.get("anyOf", ())]
    if alternatives:
        _check_alternatives(name, alternatives)
        return
    kind = field.get("type")
    if kind == "array":
        _check_items(name, field.get("items", {}))
    elif kind == "object":
        raise TypeError(
            f"Elicitation schema field {name!r} is an object, but nested objects are not allowed. {_LIMITS}"
        )
    elif kind not in _SIMPLE:
        raise TypeError(
            f"Elicitation schema field {name!r} has type {kind!r} which is not a primitive type. Only "
            f"{', '.join(sorted(_SIMPLE))} are allowed in elicitation schemas."
        )


def _check_alternatives(name: str, alternatives: list[dict[str, Any]]) -> None:
    for alternative in alternatives:
        kind = alternative.get("type")
        if "const" not in alternative and "enum" not in alternative and kind not in _SIMPLE:
            raise TypeError(f"Elicitation schema field {name!r} has union type {kind!r} which is not a primitive type.")


def _check_items(name: str, items: dict[str, Any]) -> None:
    if items.get("type") == "object":
        raise TypeError(
            f"Elicitation schema field {name!r} is an array of objects, but arrays of objects are not allowed. "
            f"{_LIMITS}"
        )
    choices = [*items.get("oneOf", ()), *items.get("anyOf", ())]
    if "enum" not in items and "const" not in items and not (choices and all("const" in item for item in choices)):
        raise TypeError(
            f"Elicitation schema field {name!r} is an array, but arrays are only allowed when items are enums (for "
            "multi-select)."
        )

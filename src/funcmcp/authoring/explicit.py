"""Hand-written JSON schemas: checked and applied by `jsonschema-rs`, loaded when the first of them is needed.

Its regular expressions are linear, and it never fetches what a reference names.

Source: 2026-07-28 "basic, JSON Schema Usage": implementations MUST NOT fetch references.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
"""What the keyword ``type`` may say."""

_SCHEMAS = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_MAPS = ("$defs", "dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MOST_ERRORS = 100


def check_schema(schema: object, option: str, *, objects_only: bool) -> None:
    """Check what can be told of a schema at once, without the library.

    Args:
        schema: what the author gave.
        option: the name of the option that it was given as.
        objects_only: whether its type must be ``"object"``.

    Raises:
        RegistrationError: it is not JSON, not of the right type, or names a type that does not exist.
    """
    if not isinstance(schema, dict):
        raise RegistrationError(f"{option} must be a JSON schema as a dict, not {type(schema).__name__}.")
    check_json(schema, option)
    if objects_only and schema.get("type") != "object":
        raise RegistrationError(f'{option} must have "type": "object", because arguments are an object.')
    unknown = _unknown_type(schema)
    if unknown is not None:
        raise RegistrationError(f"{option} has the type {unknown!r}; there are {', '.join(TYPES)}.")


def _unknown_type(schema: Any) -> Any:
    """Return the first value of a ``type`` keyword that names no type of JSON, or None."""
    if not isinstance(schema, dict):
        return None
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in TYPES:
            return kind
    inside = [schema[keyword] for keyword in _SCHEMAS if keyword in schema]
    for keyword in _MAPS:
        inside += schema[keyword].values() if isinstance(schema.get(keyword), dict) else []
    for keyword in _LISTS:
        inside += schema[keyword] if isinstance(schema.get(keyword), list) else []
    return next((unknown for member in inside if (unknown := _unknown_type(member)) is not None), None)


def check_json(value: object, option: str) -> None:
    """Raise RegistrationError unless a value is JSON: strings, finite numbers, booleans, None, lists, dicts."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise RegistrationError(f"{option} must be JSON: {error}.") from None
    if not same:
        raise RegistrationError(f"{option} must be JSON: its keys must be strings, and its sequences lists.")


def explicit_errors(schema: Mapping[str, Any], what: str) -> Callable[[Any], list[tuple[str, str]]]:
    """Return a function that lists path and words of what does not fit a schema.

    Args:
        schema: a JSON schema; 2020-12 unless ``$schema`` says otherwise.
        what: names the schema in the error.

    Raises:
        RegistrationError: the schema is not valid, has a pattern that the linear engine can't compile, or refers
            to another document.
    """
    import jsonschema_rs  # noqa: PLC0415 - loaded when a hand-written schema is first applied

    from funcmcp.authoring.wording import of_keyword  # noqa: PLC0415 - needed with the library alone

    try:
        validator = jsonschema_rs.validator_for(
            dict(schema), pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse, validate_formats=True
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(error).partition("\n")[0]
        raise RegistrationError(f"{what} is not a valid JSON schema: {reason}") from None

    def errors(value: Any) -> list[tuple[str, str]]:
        if validator.is_valid(value):
            return []
        found = []
        for number, error in enumerate(validator.iter_errors(value)):
            if number == _MOST_ERRORS:
                break
            found += of_keyword(error)
        return found

    return errors


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed ({uri})")

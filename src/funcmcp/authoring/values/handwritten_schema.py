"""Hand-written JSON schemas: checked and applied by `jsonschema-rs`, loaded when the first of them is needed.

Its regular expressions are linear, and it never fetches what a reference names.

Source: 2026-07-28 "basic, JSON Schema Usage": implementations MUST NOT fetch references.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from funcmcp.authoring.values.handwritten_schema_applications import Work
from funcmcp.authoring.values.handwritten_schema_value_cost import cost_exceeds
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
"""What the keyword ``type`` may say."""

_SCHEMAS = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_MAPS = ("$defs", "dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MOST_ERRORS = 100
_LISTED_WORK = 2_000
"""Applications of parts of a schema to parts of a value for which all errors are listed: about 50 ms at worst.
Listing the errors of a megabyte takes minutes."""

_CHECKED_WORK = 20_000
"""The same for which a value is checked at all, where checking does not remember what it has checked."""

_MOST_COST = 1_000_000
"""What checking a value may cost, in plain applications: about 0.1 s at worst."""

_TOO_MUCH = (
    "The value does not fit the schema, and is too large or too deeply nested to say where: "
    "compare it with the schema, or send less."
)
_TOO_DEEP = "The value is too large or too deeply nested to be checked against the schema: send less, or nest it less."


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


def schema_checker(schema: Mapping[str, Any], what: str) -> Callable[[Any], list[tuple[str, str]]]:
    """Return a function that lists path and words of what does not fit a schema.

    Args:
        schema: a JSON schema; 2020-12 unless ``$schema`` says otherwise.
        what: names the schema in the error.

    Raises:
        RegistrationError: the schema is not valid, has a pattern that the linear engine can't compile, or refers
            to another document.
    """
    import jsonschema_rs  # noqa: PLC0415 - loaded when a hand-written schema is first applied

    from funcmcp.authoring.values.argument_errors import of_keyword  # noqa: PLC0415 - needed with the library alone

    copied = json.loads(json.dumps(schema))
    try:
        validator = jsonschema_rs.validator_for(
            copied, pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse, validate_formats=True
        )
        work = Work(copied)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(error).partition("\n")[0]
        raise RegistrationError(f"{what} is not a valid JSON schema: {reason}") from None
    # With unevaluatedProperties, is_valid() takes exponential time for some schemas that refer to themselves.
    count_always = work.has_unevaluated and work.has_references
    has_multiples, has_unique = work.uses("multipleOf"), work.uses("uniqueItems")

    def exceeds(value: Any, per_part: int) -> bool:
        return cost_exceeds(value, _MOST_COST // per_part, has_multiples=has_multiples, has_unique=has_unique)

    def errors(value: Any) -> list[tuple[str, str]]:
        may_exceed = count_always or exceeds(value, work.per_part)
        if may_exceed and (exceeds(value, 1) or work.exceeds(value, _CHECKED_WORK)):
            return [("", _TOO_DEEP)]
        if validator.is_valid(value):
            return []
        # iter_errors() lists all errors before it returns the first one.
        if work.exceeds(value, _LISTED_WORK):
            return [("", _TOO_MUCH)]
        lines = []
        for error in islice(validator.iter_errors(value), _MOST_ERRORS):
            lines += of_keyword(error)
        return lines

    return errors


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed ({uri})")

"""Hand-written JSON schemas: their checks at registration, and the validation of values against them.

How it works: `check_schema` finds simple mistakes when the schema is registered. `schema_checker` compiles the schema
with `jsonschema-rs`, which is loaded when the first schema is needed. Its regular expressions are linear, and it never
fetches the document that a reference names. Its time is not bounded, so two limits come first. A value whose parts
cost too much to check, and to which parts of the schema apply too often
(`handwritten_schema_applications.py`), is rejected without validation. For a value that is not valid, all errors are
listed only if parts of the schema do not apply too often. Most parts cost one unit. Large numbers take the library far
longer: for ``multipleOf`` it divides exact fractions, and for ``uniqueItems`` it compares integers with equal
double-precision values one by one.

Source: 2026-07-28 "basic, JSON Schema Usage": implementations MUST NOT fetch references.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from math import frexp
from typing import TYPE_CHECKING, Any, NoReturn

from funcmcp._authoring.schemas.handwritten_schema_applications import Applications
from funcmcp._authoring.schemas.json_values import check_json
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
"""The values of the keyword ``type``."""

_SCHEMAS = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_MAPS = ("$defs", "dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAX_ERRORS = 100
_MAX_APPLICATIONS_FOR_ERRORS = 2_000
"""The maximum number of applications of parts of a schema to parts of a value for which all errors are listed: about
50 ms at worst. To list the errors of a megabyte takes minutes."""

_MAX_APPLICATIONS = 20_000
"""The maximum for which a value is checked at all, if the library does not cache its checks."""

_MAX_COST = 1_000_000
"""The maximum cost of a value's check, in plain applications: about 0.1 s at worst."""

_TOO_MUCH = (
    "The value does not fit the schema, and is too large or too deeply nested to list the errors. "
    "Compare it with the schema, or send less."
)
_TOO_DEEP = (
    "The value is too large or too deeply nested to be checked against the schema. Send less, or nest it less deeply."
)


def check_schema(schema: object, option: str, *, objects_only: bool) -> None:
    """Find simple mistakes in a schema, without loading the library.

    Args:
        schema: The author's schema.
        option: The option and its feature, for errors, such as "input_schema of get_order".
        objects_only: Whether its type must be ``"object"``.

    Raises:
        RegistrationError: The schema is not JSON, describes something other than an object, or has an unknown type.
    """
    if not isinstance(schema, dict):
        raise RegistrationError(f"{option} must be a JSON schema as a dict, not {type(schema).__name__}.")
    check_json(schema, option)
    if objects_only and schema.get("type") != "object":
        raise RegistrationError(f'{option} must have "type": "object", because arguments are an object.')
    unknown = _unknown_type(schema)
    if unknown is not None:
        raise RegistrationError(f"{option} has the unknown type {unknown!r}. Valid types: {', '.join(TYPES)}.")


def _unknown_type(schema: Any) -> Any:
    """Return the first value of a ``type`` keyword that is not a type of JSON, or None."""
    if not isinstance(schema, dict):
        return None
    types = schema.get("type", [])
    for type_name in types if isinstance(types, list) else [types]:
        if type_name not in TYPES:
            return type_name
    for subschema in _subschemas(schema):
        unknown = _unknown_type(subschema)
        if unknown is not None:
            return unknown
    return None


def _subschemas(schema: dict[str, Any]) -> list[Any]:
    """Return the schemas directly inside a schema."""
    subschemas = [schema[keyword] for keyword in _SCHEMAS if keyword in schema]
    for keyword in _MAPS:
        if isinstance(schema.get(keyword), dict):
            subschemas += schema[keyword].values()
    for keyword in _LISTS:
        if isinstance(schema.get(keyword), list):
            subschemas += schema[keyword]
    return subschemas


def schema_checker(schema: Mapping[str, Any], place: str) -> Callable[[Any], list[tuple[str, str]]]:
    """Return `SchemaChecker.errors` for a schema; raise RegistrationError as it does."""
    return SchemaChecker(schema, place).errors


class SchemaChecker:
    """Checks values against a schema.

    Args:
        schema: A JSON schema. Its dialect is 2020-12 if it has no ``$schema``.
        place: The option and its feature, for errors, such as "input_schema of get_order".

    Raises:
        RegistrationError: The schema is not valid, has a pattern that the linear engine can't compile, or refers to
            another document.
    """

    def __init__(self, schema: Mapping[str, Any], place: str) -> None:
        import jsonschema_rs  # noqa: PLC0415 - loads the library

        self._schema = json.loads(json.dumps(schema))
        try:
            self._validator = jsonschema_rs.validator_for(
                self._schema, pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse, validate_formats=True
            )
            self._applications = Applications(self._schema)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            reason = str(error).partition("\n")[0]
            raise RegistrationError(f"{place} is not a valid JSON schema: {reason}") from None
        # With unevaluatedProperties, is_valid() takes exponential time for some schemas that refer to themselves.
        self._counts_always = self._applications.has_unevaluated and self._applications.has_references
        self._has_multiples = self._applications.uses("multipleOf")
        self._has_unique = self._applications.uses("uniqueItems")

    def errors(self, value: Any) -> list[tuple[str, str]]:
        """Return the errors of a value, each as a path and a phrase. A valid value has none."""
        refusal = self._refusal(value)
        if refusal is not None:
            return [("", refusal)] if refusal else []
        from funcmcp._authoring.schemas.argument_errors import keyword_errors  # noqa: PLC0415 - only for errors

        lines = []
        for error in islice(self._validator.iter_errors(value), _MAX_ERRORS):
            lines += keyword_errors(error, self._schema)
        return lines

    def faults(self, value: Any) -> list[tuple[str | int, ...]]:
        """Return the paths of the parts of a value that have errors. A valid value has none."""
        refusal = self._refusal(value)
        if refusal is not None:
            return [()] if refusal else []
        return [tuple(error.instance_path) for error in islice(self._validator.iter_errors(value), _MAX_ERRORS)]

    def _refusal(self, value: Any) -> str | None:
        """Return why the errors of a value are not listed; "" if it has none, and None if they can be listed."""
        may_exceed = self._counts_always or self._exceeds(value, self._applications.per_part)
        if may_exceed and (self._exceeds(value, 1) or self._applications.exceeds(value, _MAX_APPLICATIONS)):
            return _TOO_DEEP
        if self._validator.is_valid(value):
            return ""
        # iter_errors() computes all errors before it returns the first one.
        return _TOO_MUCH if self._applications.exceeds(value, _MAX_APPLICATIONS_FOR_ERRORS) else None

    def _exceeds(self, value: Any, per_part: int) -> bool:
        limit = _MAX_COST // per_part
        return cost_exceeds(value, limit, has_multiples=self._has_multiples, has_unique=self._has_unique)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed ({uri})")


_EXACT = 2**53
_MAX_BITS = 64
_COST_OF_DIVISION = 20


def cost_exceeds(value: Any, limit: int, *, has_multiples: bool, has_unique: bool) -> bool:
    """Return whether the parts of a JSON value cost more than *limit* to check.

    Args:
        value: The value.
        limit: The limit, in applications of a plain schema to a small part.
        has_multiples: Whether the schema has the keyword ``multipleOf``.
        has_unique: Whether the schema has the keyword ``uniqueItems``.
    """
    total = 0
    equal: Counter[float] = Counter()
    pending = [value]
    while pending:
        part = pending.pop()
        total += 1
        if isinstance(part, dict | list):
            if total + len(pending) + len(part) > limit:
                return True
            pending += part.values() if isinstance(part, dict) else part
        elif isinstance(part, int):
            bits = part.bit_length()
            if bits > _MAX_BITS:
                total += bits + bits * bits // 8192
            if has_unique and not -_EXACT <= part <= _EXACT:
                rounded = _rounded(part)
                total += equal[rounded] * (20 + bits * bits // 16384)
                equal[rounded] += 1
        elif has_multiples and isinstance(part, float):
            total += _COST_OF_DIVISION + abs(frexp(part)[1])
        if total > limit:
            return True
    return False


def _rounded(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")

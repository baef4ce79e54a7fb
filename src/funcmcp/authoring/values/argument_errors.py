"""Errors about arguments that are not valid, in plain English for models.

How it works: each error has a path, such as ``items[0].quantity``, and a phrase, such as "must be an integer, not a
string". Errors come from pydantic (`validation_errors`) or from a hand-written schema (`keyword_errors`);
`wrong_arguments` joins them, one path on each line. pydantic reports an error for each member of a union, and puts the
member's name into the path. `_located` recognizes these names, because they are not in the arguments, and `_nearest`
chooses the members that fit best, because the errors of the others do not help.

Errors contain paths and kinds of values, but never a value from the input.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, get_args

from funcmcp.authoring.values.string_formats import FORMATS
from funcmcp.protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from pydantic_core import ErrorDetails, ValidationError

    Path: TypeAlias = list[str | int]
    Lines: TypeAlias = list[tuple[Path, str]]

NOT_NULL = "not_null"
"""The type of an error about a value that is not null where null means the default. The type has an error as well."""

MAX_LINES = 20
_MAX_ERRORS = 1000
_MAX_NAME_LENGTH = 64

_MISSING = "is required"
_UNEXPECTED = "is not expected"
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    ((list, tuple), "an array"),
    (dict, "an object"),
    (type(None), "null"),
)
_TYPES = {
    "bool": "a boolean",
    "bytes": "a string",
    "dataclass": "an object",
    "date": "a date such as 2026-07-28",
    "date_from_datetime": "a date such as 2026-07-28",
    "datetime": "a date and time such as 2026-07-28T12:00:00Z",
    "datetime_from_date": "a date and time such as 2026-07-28T12:00:00Z",
    "decimal": "a number",
    "dict": "an object",
    "float": "a number",
    "frozen_set": "an array",
    "int": "an integer",
    "int_from_float": "an integer",
    "iterable": "an array",
    "list": "an array",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "named_tuple": "an object",
    "set": "an array",
    "string": "a string",
    "time": "a time such as 12:00:00",
    "time_delta": "a duration such as PT1H30M",
    "tuple": "an array",
    "url": "a URI",
    "uuid": "a UUID",
}
_LIMITS = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "missing": _MISSING,
    "extra_forbidden": _UNEXPECTED,
    "unexpected_keyword_argument": _UNEXPECTED,
    "bytes_invalid_encoding": "must be base64",
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_too_long": "must have at most {max_length} bytes",
    "byte_size": "must be a size such as 10 MiB",
    "byte_size_unit": "must be a size such as 10 MiB",
    "none_required": "must be null",
    "complex_str_parsing": "must be a complex number such as 1+2j",
    "fraction_parsing": "must be a fraction such as 1/3",
    "int_parsing_size": "is too long",
    "ip_any_address": "must be an IP address",
    "ip_any_interface": "must be an IP address with a prefix such as 10.0.0.1/8",
    "ip_any_network": "must be an IP network such as 10.0.0.0/8",
    "json_invalid": "must be a text with JSON in it",
    "pattern_regex": "must be a regular expression",
    "zoneinfo_str": "must be a time zone such as Europe/Berlin",
    "finite_number": "must be a finite number",
    "format": "must be {phrase}",
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} decimal places",
    "date_past": "must be in the past",
    "date_future": "must be in the future",
    "datetime_past": "must be in the past",
    "datetime_future": "must be in the future",
}
_ENDINGS = ("_type", "_parsing", "_exact", "_inexact", "_unicode", "_size", "_scheme", "_syntax_violation", "_too_long")
_JSON_TYPES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_KEYWORDS: dict[str, Callable[[Any], str]] = {
    "additionalProperties": lambda _: _UNEXPECTED,
    "falseSchema": lambda _: _UNEXPECTED,
    "unevaluatedProperties": lambda _: _UNEXPECTED,
    "required": lambda _: _MISSING,
    "type": lambda kind: f"must be {' or '.join(_JSON_TYPES[name] for name in sorted(kind['types']))}",
    "enum": lambda kind: f"must be one of {', '.join(map(repr, kind['options']))}",
    "const": lambda kind: f"must be {kind['expected_value']!r}",
    "minimum": lambda kind: f"must be at least {kind['limit']}",
    "exclusiveMinimum": lambda kind: f"must be greater than {kind['limit']}",
    "maximum": lambda kind: f"must be at most {kind['limit']}",
    "exclusiveMaximum": lambda kind: f"must be less than {kind['limit']}",
    "multipleOf": lambda kind: f"must be a multiple of {kind['multiple_of']}",
    "minLength": lambda kind: f"must have at least {kind['limit']} characters",
    "maxLength": lambda kind: f"must have at most {kind['limit']} characters",
    "minItems": lambda kind: f"must have at least {kind['limit']} items",
    "maxItems": lambda kind: f"must have at most {kind['limit']} items",
    "minProperties": lambda kind: f"must have at least {kind['limit']} members",
    "maxProperties": lambda kind: f"must have at most {kind['limit']} members",
    "uniqueItems": lambda _: "must not have the same item twice",
    "pattern": lambda kind: f"must match the pattern {kind['pattern']}",
    "format": lambda kind: f"must be {FORMATS.get(kind['format'], (kind['format'],))[0]}",
}


def wrong_arguments(lines: Iterable[tuple[str, str]]) -> ToolError:
    """Return the ToolError for errors, which are pairs of a path and a phrase.

    Several errors with one path, such as those of a union's members, are on one line.
    """
    phrases_by_path: dict[str, list[str]] = {}
    for path, phrase in lines:
        phrases = phrases_by_path.setdefault(path, [])
        if phrase not in phrases:
            phrases.append(phrase)
    text: list[str] = []
    for path, phrases in phrases_by_path.items():
        joined = " or ".join(phrases)
        text.append(f"{path}: {joined}" if path else joined)
    if len(text) > MAX_LINES:
        text[MAX_LINES:] = [f"and {len(text) - MAX_LINES} more"]
    return ToolError("\n".join(text))


def validation_errors(error: ValidationError, arguments: Any) -> list[tuple[str, str]]:
    """Return the path and phrase of each of pydantic's errors in arguments."""
    count = error.error_count()
    if count > _MAX_ERRORS:
        return [("", f"The arguments have {count} errors. Compare them with the tool's input schema.")]
    lines = _located(error.errors(include_url=False), [], arguments)
    return [(path_text(path), phrase) for path, phrase in lines]


def keyword_errors(error: Any) -> list[tuple[str, str]]:
    """Return the path and phrase of an error of a hand-written schema, or those of each member that it is about."""
    keyword, kind, path = error.kind.name, error.kind.as_dict(), list(error.instance_path)
    if keyword == "falseSchema" and error.schema_path[-1] == "additionalProperties":
        return [(path_text(path), "must have no members")]  # the library does not list the members
    phrase_of = _KEYWORDS.get(keyword)
    phrase = f"does not fit the schema ({keyword})" if phrase_of is None else phrase_of(kind)
    if keyword == "type":
        phrase += f", not {kind_of(error.instance)}"
    if keyword == "required":
        names = [kind["property"]]
    else:
        names = kind.get("unexpected", [])
    if not names:
        return [(path_text(path), phrase)]
    return [(path_text([*path, name]), phrase) for name in names]


def kind_of(value: object) -> str:
    """Return the kind of a JSON value with its article, such as "a string"."""
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    return "something else"


def path_text(path: Sequence[str | int]) -> str:
    """Return the text of a path, such as ``items[0].quantity``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() and len(part) <= _MAX_NAME_LENGTH:
            text += f".{part}" if text else part
        else:
            shown = part[:_MAX_NAME_LENGTH].encode("unicode_escape").decode("ascii")
            text += f'["{shown}"]'
    return text


def _located(errors: Sequence[ErrorDetails], path: Path, value: Any, depth: int = 0) -> Lines:
    """Return the path and phrase of errors at a value or below it.

    Args:
        errors: pydantic's errors. The first *depth* parts of their locations lead to the value. A part that is not in
            the value is the name of a union's member.
        path: The value's path.
        value: The value.
        depth: The number of parts that lead to the value.
    """
    lines: Lines = []
    by_member: dict[str | int, list[ErrorDetails]] = {}
    by_choice: dict[str | int, list[ErrorDetails]] = {}
    for details in errors:
        remaining = details["loc"][depth:]
        if details["type"] == NOT_NULL:
            continue
        if not remaining or remaining == ("[key]",) or (details["type"] == "missing" and len(remaining) == 1):
            lines.append(_line(details, path))
        elif _is_inside(remaining[0], value):
            by_member.setdefault(remaining[0], []).append(details)
        else:
            by_choice.setdefault(remaining[0], []).append(details)
    for part, member_errors in by_member.items():
        lines += _located(member_errors, [*path, part], value[part], depth + 1)
    groups = [(choice_errors, _located(choice_errors, path, value, depth + 1)) for choice_errors in by_choice.values()]
    return lines + _nearest(groups, path, depth + 1)


def _nearest(groups: Sequence[tuple[Sequence[ErrorDetails], Lines]], path: Path, depth: int) -> Lines:
    """Return the lines of the members of a union that fit best.

    Args:
        groups: The errors of each member, and their lines.
        path: The union's path.
        depth: The number of parts in a location that lead to a member of the union.
    """
    if not groups:
        return []
    smallest = min(_distance(errors, depth) for errors, _ in groups)
    best = [lines for errors, lines in groups if _distance(errors, depth) == smallest]
    first_path = best[0][0][0]
    if len(best) == 1 or all(len(lines) == 1 and lines[0][0] == first_path for lines in best):
        return [line for lines in best for line in lines]
    alternatives: list[str] = []
    for lines in best:
        phrases = [f"{path_text(line_path[len(path) :])} {phrase}".strip() for line_path, phrase in lines]
        alternatives.append(", ".join(phrases))
    return [(path, f"fits none of its alternatives: {'; or '.join(dict.fromkeys(alternatives))}")]


def _distance(errors: Sequence[ErrorDetails], depth: int) -> tuple[bool, int, int]:
    """Return how far a value is from a type: whether it is of another kind, has other tags, and the count of errors."""
    wrong_tags = sum(details["type"] in {"literal_error", "enum"} for details in errors)
    return any(len(details["loc"]) == depth for details in errors), wrong_tags, len(errors)


def _is_inside(part: str | int, value: Any) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and part in range(len(value))


def _line(details: ErrorDetails, path: Path) -> tuple[Path, str]:
    kind, context, value = details["type"], details.get("ctx", {}), details.get("input")
    if kind == "missing":
        return [*path, details["loc"][-1]], _MISSING
    member = context.get("discriminator", "").strip("'")
    if kind == "union_tag_not_found" and member.isidentifier():
        return [*path, member], _MISSING
    if kind == "union_tag_invalid" and member.isidentifier():
        return [*path, member], f"must be one of {context['expected_tags']}"
    if kind in {"union_tag_not_found", "union_tag_invalid"}:  # the discriminator is a function of the author's
        return path, "fits none of its alternatives"
    phrase = _phrase(kind, context, value) or _other_phrase(details)
    if "[key]" in details["loc"]:
        phrase = f"the name {phrase.partition(', not ')[0]}"
    return path, phrase


def _phrase(kind: str, context: Mapping[str, Any], value: Any) -> str | None:
    """Return the phrase for an error of a certain kind, or None if the kind has no phrase of its own.

    Args:
        kind: pydantic's ``type`` of the error.
        context: pydantic's ``ctx`` of the error.
        value: The wrong value.
    """
    limit = _LIMITS.get(kind)
    if limit is not None:
        phrase = limit.format_map(context)
        if kind in {"literal_error", "enum"} and " or " not in context["expected"]:
            phrase = phrase.replace("must be one of", "must be")
        return phrase
    if kind == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return "must be a number that is not that large"
    if type(context.get("error")).__module__ == "ipaddress":
        return "must be an IP address"
    if _is_authors_error(context.get("error")):
        return str(context["error"])
    if kind == "value_error" and "error" not in context:  # pydantic's own error for an email address
        return "must be an email address"
    for ending in _ENDINGS:
        expected = _TYPES.get(kind.removesuffix(ending))
        if expected is not None:
            return f"must be {expected}, not {kind_of(value)}" if ending == "_type" else f"must be {expected}"
    return None


def _is_authors_error(error: object) -> bool:
    """Return whether an exception comes from a check of the author's, and not from a type of the standard library."""
    if type(error) in {ValueError, AssertionError}:
        return True
    package = type(error).__module__.partition(".")[0]
    return isinstance(error, Exception) and package not in sys.stdlib_module_names


def _other_phrase(details: ErrorDetails) -> str:
    """Return the message of an error that an author or an extension defined, unless it contains the input."""
    from pydantic_core.core_schema import ErrorType  # noqa: PLC0415 - rarely needed

    message = details["msg"]
    is_pydantics = details["type"] in get_args(ErrorType) or message.startswith("Input ")
    if is_pydantics or str(details["input"]) in message:
        return "is not valid"
    return message

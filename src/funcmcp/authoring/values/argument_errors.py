"""Plain words for arguments that don't fit.

Nothing of the input is repeated but the path of the wrong value and the kind of thing that it is.
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

MOST_LINES = 20
_MOST_ERRORS = 1000
_LONGEST_NAME = 64

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
    "format": "must be {words}",
    "union_tag_invalid": "must have {discriminator} set to one of {expected_tags}",
    "union_tag_not_found": "must have {discriminator}",
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
    """Return the error that reports problems, given as path and words, one line each.

    Several problems of one path, such as those of a union's members, stand on one line.
    """
    by_path: dict[str, list[str]] = {}
    for path, words in lines:
        said = by_path.setdefault(path, [])
        if words not in said:
            said.append(words)
    text = [f"{path}: {' or '.join(said)}" if path else " or ".join(said) for path, said in by_path.items()]
    if len(text) > MOST_LINES:
        text[MOST_LINES:] = [f"and {len(text) - MOST_LINES} more"]
    return ToolError("\n".join(text))


def of_validation(error: ValidationError, arguments: Any) -> list[tuple[str, str]]:
    """Return path and words of everything that pydantic found wrong in arguments."""
    count = error.error_count()
    if count > _MOST_ERRORS:
        return [("", f"The arguments have {count} errors; compare them with the tool's input schema.")]
    found = _told(error.errors(include_url=False), [], arguments)
    return [(path_text(path), words) for path, words in found]


def of_keyword(error: Any) -> list[tuple[str, str]]:
    """Return path and words of one error of a hand-written schema."""
    keyword, kind, path = error.kind.name, error.kind.as_dict(), list(error.instance_path)
    if keyword == "falseSchema" and error.schema_path[-1] == "additionalProperties":
        return [(path_text(path), "must have no members")]  # the library does not say which ones it has
    names: Sequence[str] = [kind["property"]] if keyword == "required" else kind.get("unexpected", ())
    in_words = _KEYWORDS.get(keyword)
    words = in_words(kind) if in_words else f"does not fit the schema ({keyword})"
    if keyword == "type":
        words += f", not {kind_of(error.instance)}"
    return [(path_text([*path, name]), words) for name in names] or [(path_text(path), words)]


def kind_of(value: object) -> str:
    """Return what a JSON value is, with its article."""
    return next((name for types, name in _KINDS if isinstance(value, types)), "something else")


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as one would write it: ``items[0].quantity``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() and len(part) <= _LONGEST_NAME:
            text += f".{part}" if text else part
        else:
            shown = part[:_LONGEST_NAME].encode("unicode_escape").decode("ascii")
            text += f'["{shown}"]'
    return text


def _told(errors: Sequence[ErrorDetails], path: Path, value: Any, depth: int = 0) -> Lines:
    """Return path and words of errors that lie at or below a value, to which the first parts of their places lead.

    Args:
        errors: pydantic's errors. Parts of their places that are nowhere in the arguments name members of unions.
        path: the value's path.
        value: the value.
        depth: how many parts of the places lead to it.
    """
    lines: Lines = []
    below: dict[str | int, list[ErrorDetails]] = {}
    choices: dict[str | int, list[ErrorDetails]] = {}
    for details in errors:
        rest = details["loc"][depth:]
        if not rest or rest == ("[key]",) or (details["type"] == "missing" and len(rest) == 1):
            lines.append(_line(details, path))
        else:
            (below if _is_inside(rest[0], value) else choices).setdefault(rest[0], []).append(details)
    for part, some in below.items():
        lines += _told(some, [*path, part], value[part], depth + 1)
    groups = [(some, _told(some, path, value, depth + 1)) for some in choices.values()]
    return lines + _nearest(groups, path, depth + 1)


def _nearest(groups: Sequence[tuple[Sequence[ErrorDetails], Lines]], path: Path, depth: int) -> Lines:
    """Return the lines of the members of a union that fit best: what is wrong with the others helps nobody."""
    if not groups:
        return []
    distances = [_distance(errors, depth) for errors, _ in groups]
    best = [lines for (_, lines), distance in zip(groups, distances, strict=True) if distance == min(distances)]
    if len(best) == 1 or all(len(lines) == 1 and lines[0][0] == best[0][0][0] for lines in best):
        return [line for lines in best for line in lines]
    said = [", ".join(f"{path_text(sub[len(path) :])} {words}".strip() for sub, words in lines) for lines in best]
    return [(path, f"fits none of its alternatives: {'; or '.join(dict.fromkeys(said))}")]


def _distance(errors: Sequence[ErrorDetails], depth: int) -> tuple[bool, int, int]:
    """Tell how far a value is from a type: not even of its kind, with the marks of another one, with faults."""
    marks = sum(details["type"] in {"literal_error", "enum"} for details in errors)
    return any(len(details["loc"]) == depth for details in errors), marks, len(errors)


def _is_inside(part: str | int, value: Any) -> bool:
    return part in value if isinstance(value, dict) else isinstance(value, list) and part in range(len(value))


def _line(details: ErrorDetails, path: Path) -> tuple[Path, str]:
    kind, context, value = details["type"], details.get("ctx", {}), details.get("input")
    if kind == "missing":
        return [*path, details["loc"][-1]], _MISSING
    member = context.get("discriminator", "").strip("'")
    if kind == "union_tag_not_found" and member.isidentifier():
        return [*path, member], _MISSING
    if kind == "union_tag_invalid" and member.isidentifier():
        return [*path, member], f"must be one of {context['expected_tags']}"
    words = _words(kind, context, value) or _other_words(details)
    if "[key]" in details["loc"]:
        words = f"the name {words.partition(', not ')[0]}"
    return path, words


def _words(kind: str, context: Mapping[str, Any], value: Any) -> str | None:
    limit = _LIMITS.get(kind)
    if limit is not None:
        words = limit.format_map(context)
        one = kind in {"literal_error", "enum"} and " or " not in context["expected"]
        return words.replace("must be one of", "must be") if one else words
    if kind == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return "must be a number that is not that large"
    if type(context.get("error")).__module__ == "ipaddress":
        return "must be an IP address"
    if _is_author_s(context.get("error")):
        return str(context["error"])
    if kind == "value_error" and "error" not in context:  # pydantic's own, of an email address
        return "must be an email address"
    for ending in _ENDINGS:
        wanted = _TYPES.get(kind.removesuffix(ending))
        if wanted is not None:
            return f"must be {wanted}, not {kind_of(value)}" if ending == "_type" else f"must be {wanted}"
    return None


def _is_author_s(error: object) -> bool:
    """Tell whether an exception was raised by a check of the author's, and not by a type of the standard library."""
    home = type(error).__module__.partition(".")[0]
    return isinstance(error, Exception) and (
        type(error) in {ValueError, AssertionError} or home not in sys.stdlib_module_names
    )


def _other_words(details: ErrorDetails) -> str:
    """Return the message of an error that an author or an extension defined, unless it repeats the input."""
    from pydantic_core.core_schema import ErrorType  # noqa: PLC0415 - rarely needed

    message = details["msg"]
    own = details["type"] in get_args(ErrorType) or message.startswith("Input ")
    if own or str(details["input"]) in message:
        return "is not valid"
    return message

"""What is wrong with arguments, in words for a model or a person: no library's names, no addresses, no input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, ValidationError

MAX_LINES = 20

_KINDS: dict[type, str] = {
    str: "a text",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}

_WANTED = {
    "int": "an integer",
    "float": "a number",
    "decimal": "a number",
    "string": "a text",
    "bytes": "a text",
    "bool": "a boolean",
    "list": "an array",
    "tuple": "an array",
    "set": "an array",
    "frozen_set": "an array",
    "dict": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "dataclass": "an object",
    "mapping": "an object",
    "date": "a date such as 2026-01-31",
    "datetime": "a date and time such as 2026-01-31T12:00:00Z",
    "time": "a time such as 12:00:00",
    "time_delta": "a duration such as PT1H30M",
    "uuid": "a UUID",
    "url": "a URL",
    "none": "null",
}

_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "is not an argument here",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "value_error": "{error}",
    "assertion_error": "{error}",
    "missing_argument": "is required",
    "union_tag_invalid": "must have {discriminator} set to one of {expected_tags}",
    "union_tag_not_found": "must have {discriminator}",
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} decimal places",
    "timezone_aware": "must have a time zone",
    "timezone_naive": "must have no time zone",
    "date_past": "must be in the past",
    "date_future": "must be in the future",
    "datetime_past": "must be in the past",
    "datetime_future": "must be in the future",
}


def in_words(error: ValidationError, value: Any, prefix: tuple[str, ...] = ()) -> str:
    """Return one line for each fault, with the path of its argument.

    Args:
        error: what the validator found.
        value: what was validated, to tell which steps of a place are the caller's.
        prefix: the steps before it.
    """
    faults: dict[str, list[str]] = {}
    for details in error.errors(include_url=False):
        path = _path(details, value, prefix)
        sentence = _sentence(details)
        if sentence not in faults.setdefault(path, []):
            faults[path].append(sentence)
    lines = [
        f"{path}: {', or '.join(sentences)}" if path else ", or ".join(sentences) for path, sentences in faults.items()
    ]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more"]
    return "\n".join(lines)


def _path(details: ErrorDetails, value: Any, prefix: tuple[str, ...]) -> str:
    """Return the place of a fault as the caller would write it: `items[0].quantity`.

    Pydantic's places also have names of union members in them; a step that is not in the data is only kept where it
    is the name of something missing.
    """
    text = ".".join(prefix)
    steps = details["loc"]
    for index, step in enumerate(steps):
        inside = isinstance(value, dict) and step in value
        missing = index == len(steps) - 1 and details["type"].startswith("missing")
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            text += f"[{step}]"
            value = value[step]
        elif inside or missing:
            text += f".{_name(step)}" if text else _name(step)
            value = value[step] if inside else None
    return text


def _name(step: int | str) -> str:
    """Return a member name fit for a message: it may be the caller's own, of any length."""
    return str(step)[:64]


def _sentence(details: ErrorDetails) -> str:
    kind = details["type"]
    context = details.get("ctx", {})
    if kind == "is_instance_of":
        return "has a value of the wrong type"
    if kind in _SENTENCES:
        return _SENTENCES[kind].format(**{name: _short(part) for name, part in context.items()})
    for suffix in ("_type", "_parsing", "_from_datetime_inexact", "_parsing_size", "_from_float", "_sub_type"):
        if kind.endswith(suffix) and kind.removesuffix(suffix) in _WANTED:
            return f"must be {_WANTED[kind.removesuffix(suffix)]}{_instead(details, suffix)}"
    return details["msg"][:200] if kind == "custom" else "is not valid"


def _instead(details: ErrorDetails, suffix: str) -> str:
    given = _KINDS.get(type(details["input"]))
    return f", not {given}" if suffix == "_type" and given is not None else ""


def _short(part: Any) -> str:
    return str(part)[:500]

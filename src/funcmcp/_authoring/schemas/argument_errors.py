"""Errors about arguments that are not valid, in plain English for models.

How it works: each error has a path, such as ``items[0].quantity``, and a phrase, such as "must be an integer, not a
string". Errors come from pydantic (`validation_errors`) or from a hand-written schema (`keyword_errors`);
`wrong_arguments` joins them, one path on each line. pydantic reports an error for each member of a union, and puts the
member's name into the path. `_located` recognizes these names by their label (`MEMBER_LABEL`), or because they are not
in the arguments, and `_nearest` chooses the members that fit best, because the errors of the others do not help.

Errors contain paths and kinds of values, but never a value from the input. Values of the author are JSON. A line about
a missing argument has its type and description, which come from the JSON schema.
"""

from __future__ import annotations

import re
import sys
from dis import opname
from typing import TYPE_CHECKING, Any, get_args

from funcmcp._authoring.schemas.string_formats import CHECKED, FORMATS
from funcmcp._authoring.signatures.choices import choice_text, expected_json, json_text
from funcmcp._protocol.errors import WrongArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from pydantic_core import ErrorDetails, ValidationError

    Path: TypeAlias = list[str | int]
    Lines: TypeAlias = list[tuple[Path, str]]

NOT_NULL = "not_null"
"""The type of an error about a value that is not null where null means the default. The type has an error as well."""

MEMBER_LABEL = "\0member"
"""The beginning of the labels of a union's members in the paths of errors, and the label after a tag."""

MAX_LINES = 20
_MAX_ERRORS = 1000
_MAX_NAME_LENGTH = 64
_MAX_DESCRIPTION_LENGTH = 200

JSON_ERROR = "json_text"
"""The type of an error about a text that must be JSON. Its ``reason`` is a text of pydantic's, without the input."""

TAG_ERROR = "tag"
"""The type of an error about the tag of a union."""

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
_ABSENT = frozenset({"missing", "missing_argument"})
"""Kinds of errors whose location ends with the name of what is missing: the second are those of calls."""

_FRACTION = "a number with a fraction"
_KIND_NAMES = frozenset([*(name for _, name in _KINDS), _FRACTION, "something else"])
_MUST_BE = "must be "
_TYPES = {
    "arguments": "an object",
    "bool": "a boolean",
    "bytes": "a string",
    "complex": "a complex number such as 1+2j",
    "counter": "an object",
    "dataclass": "an object",
    "dataclass_exact": "an object",
    "date": "a date such as 2026-07-28",
    "date_from_datetime": "a date such as 2026-07-28",
    "datetime": "a date and time such as 2026-07-28T12:00:00Z",
    "datetime_from_date": "a date and time such as 2026-07-28T12:00:00Z",
    "datetime_object_invalid": "a date and time such as 2026-07-28T12:00:00Z",
    "decimal": "a number",
    "deque": "an array",
    "dict": "an object",
    "float": "a number",
    "frozen_set": "an array",
    "fraction": "a fraction such as 1/3",
    "frozen_dict": "an object",
    "int": "an integer",
    "int_from_float": "an integer",
    "iterable": "an array",
    "iteration_error": "an array",
    "json": "a string with JSON in it",
    "list": "an array",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "named_tuple": "an object",
    "ordered_dict": "an object",
    "path": "a path",
    "pattern": "a regular expression",
    "pattern_str": "a regular expression",
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
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "flag": "must be 0 or a sum of {expected}",
    "missing": _MISSING,
    "missing_argument": _MISSING,
    "missing_keyword_only_argument": _MISSING,
    "missing_positional_only_argument": _MISSING,
    "extra_forbidden": _UNEXPECTED,
    "unexpected_keyword_argument": _UNEXPECTED,
    "unexpected_positional_argument": _UNEXPECTED,
    "base64_decode": "must be base64",
    "bytes_invalid_encoding": "must be {encoding}",
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_too_long": "must have at most {max_length} bytes",
    "byte_size": "must be a size such as 10 MiB, or a number of bytes",
    "byte_size_unit": "must be a size such as 10 MiB, or a number of bytes",
    "none_required": "must be null",
    "complex_str_parsing": "must be a complex number such as 1+2j",
    "fraction_parsing": "must be a fraction such as 1/3",
    "import_error": "must be the name of a Python object such as math.pi",
    "int_parsing_size": "is too long",
    "ip_v4_address": "must be an IPv4 address",
    "ip_v4_interface": "must be an IPv4 address with a prefix such as 10.0.0.1/8",
    "ip_v4_network": "must be an IPv4 network such as 10.0.0.0/8",
    "ip_v6_address": "must be an IPv6 address",
    "ip_v6_interface": "must be an IPv6 address with a prefix such as 2001:db8::1/32",
    "ip_v6_network": "must be an IPv6 network such as 2001:db8::/32",
    "ip_any_address": "must be an IP address",
    "ip_any_interface": "must be an IP address with a prefix such as 10.0.0.1/8",
    "ip_any_network": "must be an IP network such as 10.0.0.0/8",
    "invalid_key": "must have strings as names",
    JSON_ERROR: "must be JSON: {reason}",
    "json_invalid": "must be a string with JSON in it",
    "recursion_depth_exceeded": "is nested too deeply",
    "recursion_loop": "is nested too deeply",
    "set_item_not_hashable": "must not be an array or an object",
    "string_not_ascii": "must have only ASCII characters",
    "timezone_aware": "must have an offset such as Z",
    "timezone_naive": "must not have an offset such as Z",
    "timezone_offset": "must have an offset of {tz_expected} seconds",
    "url_scheme": "must be a URI with the scheme {expected_schemes}",
    "uuid_version": "must be a UUID of version {expected_version}",
    "pattern_regex": "must be a regular expression",
    "zoneinfo_str": "must be a time zone such as Europe/Berlin",
    "finite_number": "must be a finite number",
    "format": "must be {phrase}",
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} decimal places",
    "decimal_whole_digits": "must have at most {whole_digits} digits before the decimal point",
    "date_past": "must be in the past",
    "date_future": "must be in the future",
    "datetime_past": "must be in the past",
    "datetime_future": "must be in the future",
}
_ONE = re.compile(r"\b(1 (?:different )?(?:byte|character|digit|item|member|decimal place))s\b")
_SETS = frozenset({"Frozenset", "Set"})
"""What pydantic calls a type whose length it counts without duplicates."""

_WRONG_CHOICES = frozenset({"enum", "literal_error"})
_NOISE = "default_factory_not_called"
"""The type of an error about a field whose default depends on another field, which has the error."""

_ENDINGS = ("_type", "_parsing", "_exact", "_inexact", "_unicode", "_size", "_syntax_violation", "_too_long")
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
    "enum": lambda kind: f"must be {expected_json(kind['options'])}",
    "const": lambda kind: f"must be {json_text(kind['expected_value'])}",
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
    "format": lambda kind: f"must be {_format_phrase(kind['format'].removeprefix(CHECKED))}",
}


def _format_phrase(name: str) -> str:
    if name in FORMATS:
        return FORMATS[name][0]
    return name


def wrong_arguments(lines: Iterable[tuple[str, str]]) -> WrongArguments:
    """Return the ToolError for errors, which are pairs of a path and a phrase.

    Several errors with one path, such as those of a union's members, are on one line.
    """
    phrases_by_path: dict[str, list[str]] = {}
    for path, phrase in lines:
        phrases = phrases_by_path.setdefault(path, [])
        if phrase not in phrases:
            phrases.append(phrase)
    joined = [(path, _joined(phrases)) for path, phrases in phrases_by_path.items()]
    if len(joined) > MAX_LINES:
        joined[MAX_LINES:] = [("", f"and {len(joined) - MAX_LINES} more")]
    return WrongArguments(joined)


def _joined(phrases: Sequence[str]) -> str:
    """Return phrases about one value as one phrase, such as "must be an integer or a string, not an array"."""
    if len(phrases) == 1 or not all(phrase.startswith(_MUST_BE) for phrase in phrases):
        return " or ".join(phrases)
    expected: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for phrase in phrases:
        expectation, separator, kind = phrase.removeprefix(_MUST_BE).rpartition(", not ")
        if separator and kind in _KIND_NAMES:
            kinds[kind] = None
        else:
            expectation = phrase.removeprefix(_MUST_BE)
        expected[expectation] = None
    text = _MUST_BE + " or ".join(expected)
    if len(kinds) == 1:
        return f"{text}, not {next(iter(kinds))}"
    return text


def validation_errors(
    error: ValidationError, arguments: Any, schema: Callable[[], Mapping[str, Any]] | None = None
) -> list[tuple[str, str]]:
    """Return the path and phrase of each of pydantic's errors in arguments.

    Args:
        error: The error.
        arguments: The value that was validated.
        schema: Returns the JSON schema of the value, which describes missing members.
    """
    count = error.error_count()
    if count > _MAX_ERRORS:
        return [("", f"The arguments have {count} errors. Compare them with the tool's input schema.")]
    details = [detail for detail in error.errors(include_url=False) if detail["type"] != _NOISE]
    lines = _located(details, [], arguments)
    if schema is not None and any(phrase == _MISSING for _, phrase in lines):
        lines = _with_descriptions(lines, schema())
    return [(path_text(path), phrase) for path, phrase in lines]


def keyword_errors(error: Any, schema: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return the path and phrase of an error of a hand-written schema, or those of each member that it is about.

    Args:
        error: The library's error.
        schema: The whole schema, from which missing members are described.
    """
    keyword, kind, path = error.kind.name, error.kind.as_dict(), list(error.instance_path)
    if keyword == "falseSchema" and error.schema_path[-1] == "additionalProperties":
        return [(path_text(path), "must have no members")]  # the library does not list the members
    phrase_of = _KEYWORDS.get(keyword)
    phrase = f"does not fit the schema ({keyword})" if phrase_of is None else _singular(phrase_of(kind))
    if keyword == "type":
        phrase += f", not {_kind_beside(phrase.removeprefix(_MUST_BE), error.instance)}"
    if keyword == "required":
        missing = [*path, kind["property"]]
        return [(path_text(missing), phrase + _description(missing, schema or {}))]
    names = kind.get("unexpected", [])
    if not names:
        return [(path_text(path), phrase)]
    return [(path_text([*path, name]), phrase) for name in names]


def _with_descriptions(lines: Lines, schema: Mapping[str, Any]) -> Lines:
    """Return lines in which those about missing members have the members' types and descriptions."""
    return [(path, phrase + _description(path, schema) if phrase == _MISSING else phrase) for path, phrase in lines]


def _description(path: Path, schema: Mapping[str, Any]) -> str:
    """Return the type and the description of a member, as the end of a line about it."""
    member: Any = schema
    for part in path:
        member = _member(member, part, schema)
    if not isinstance(member, dict):
        return ""
    kind = _kind_in(member)
    description = " ".join(str(member.get("description", "")).split())
    if len(description) > _MAX_DESCRIPTION_LENGTH:
        description = f"{description[:_MAX_DESCRIPTION_LENGTH]}..."
    return (f" ({kind})" if kind else "") + (f": {description}" if description else "")


def _member(schema: Any, part: str | int, root: Mapping[str, Any]) -> Any:
    """Return the schema of a member or an item, or None if it can't be told."""
    if not isinstance(schema, dict):
        return None
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name:
        return _member(root.get("$defs", {}).get(name), part, root)
    if "anyOf" in schema:
        members = [_member(alternative, part, root) for alternative in schema["anyOf"]]
        distinct = [member for member in members if member is not None]
        if len(distinct) > 1:
            return {"anyOf": distinct}
        return distinct[0] if distinct else None
    if isinstance(part, int):
        items = schema.get("prefixItems", [])
        if part < len(items):
            return items[part]
        return schema.get("items")
    return schema.get("properties", {}).get(part, schema.get("additionalProperties"))


def _kind_in(schema: Mapping[str, Any]) -> str | None:
    """Return the kind of value that a schema describes, such as "an integer", or None if it can't be told."""
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if choices:
        return expected_json(choices)
    if "anyOf" in schema:
        kinds = [_kind_in(alternative) for alternative in schema["anyOf"]]
        if None in kinds:
            return None
        return " or ".join(dict.fromkeys(map(str, kinds)))
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]][0]
    kind = schema.get("type")
    if isinstance(kind, str):
        return _JSON_TYPES.get(kind)
    return None


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
            the value, or that has a label, is the name of a union's member.
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
        if not remaining or (details["type"] in _ABSENT and len(remaining) == 1):
            lines.append(_line(details, path))
        elif not _is_label(remaining) and _is_inside(remaining[0], value):
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
    tag_lines = _tag_lines(groups, path, depth)
    if tag_lines:
        return tag_lines
    smallest = min(_distance(errors, depth) for errors, _ in groups)
    best = [lines for errors, lines in groups if _distance(errors, depth) == smallest]
    first_path = best[0][0][0]
    if len(best) == 1 or all(len(lines) == 1 and lines[0][0] == first_path for lines in best):
        return [line for lines in best for line in lines]
    alternatives: list[str] = []
    for lines in best:
        phrases = [f"{path_text(line_path[len(path) :])} {phrase}".strip() for line_path, phrase in lines]
        alternatives.append(", ".join(phrases))
    distinct = dict.fromkeys(alternatives)
    if len(distinct) == 1:
        return best[0]
    return [(path, f"fits none of its alternatives: {'; or '.join(distinct)}")]


def _tag_lines(groups: Sequence[tuple[Sequence[ErrorDetails], Lines]], path: Path, depth: int) -> Lines:
    """Return the lines about a field whose choices distinguish the members of a union, if no member has the value."""
    tags: set[tuple[str | int, ...]] | None = None
    for errors, _ in groups:
        wrong = {details["loc"][depth:] for details in errors if details["type"] in _WRONG_CHOICES}
        tags = wrong if tags is None else tags & wrong
    places = [[*path, *tag] for tag in tags or () if tag]
    return [line for _, lines in groups for line in lines if line[0] in places[:1]]


def _distance(errors: Sequence[ErrorDetails], depth: int) -> tuple[bool, int, int]:
    """Return how far a value is from a type: whether it is of another kind, has other tags, and the count of errors."""
    wrong_tags = sum(details["type"] in _WRONG_CHOICES for details in errors)
    return any(len(details["loc"]) == depth for details in errors), wrong_tags, len(errors)


def _is_label(location: Sequence[str | int]) -> bool:
    """Return whether the first part of a location is the label of a union's member, or a tag."""
    first, *following = location
    return str(first).startswith(MEMBER_LABEL) or following[:1] == [MEMBER_LABEL]


def _is_inside(part: str | int, value: Any) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and part in range(len(value))


def _line(details: ErrorDetails, path: Path) -> tuple[Path, str]:
    kind, context, value = details["type"], details.get("ctx", {}), details.get("input")
    if kind in _ABSENT:
        return [*path, *details["loc"][-1:]], _MISSING
    if kind == TAG_ERROR:
        return _tag_line(context, value, path)
    phrase = _phrase(kind, context, value) or _other_phrase(details)
    if details["loc"].count("[key]") > path.count("[key]"):
        phrase = f"the name {phrase.partition(', not ')[0]}"
    return path, phrase


def _tag_line(context: Mapping[str, Any], value: Any, path: Path) -> tuple[Path, str]:
    """Return the path and phrase of an error about the tag of a union. A discriminator may be an author's function."""
    if not context:
        return path, "fits none of its alternatives"
    names = context["discriminators"]
    for name in names:
        if isinstance(value, dict) and name in value:
            return [*path, name], f"must be {context['expected']}"
    return [*path, names[-1]], f"{_MISSING} ({context['expected']})"


def _phrase(kind: str, context: Mapping[str, Any], value: Any) -> str | None:
    """Return the phrase for an error of a certain kind, or None if the kind has no phrase of its own.

    Args:
        kind: pydantic's ``type`` of the error.
        context: pydantic's ``ctx`` of the error.
        value: The wrong value.
    """
    limit = _LIMITS.get(kind)
    if limit is not None:
        phrase = limit.format_map({name: _shown(member) for name, member in context.items()})
        if kind == "url_scheme":
            return phrase.replace("'", '"')
        return _singular(phrase.replace("items", "different items") if context.get("field_type") in _SETS else phrase)
    if kind == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return "must be a number that is not that large"
    if _is_authors_error(context.get("error")):
        return str(context["error"])
    if kind == "value_error":
        return _standard_phrase(context.get("error"))
    for ending in _ENDINGS:
        expected = _TYPES.get(kind.removesuffix(ending))
        if expected is not None:
            if ending == "_type":
                return f"must be {expected}, not {_kind_beside(expected, value)}"
            return f"must be {expected}"
    return None


def _standard_phrase(error: object) -> str | None:
    """Return the phrase for an error of the standard library; None if it has none.

    Args:
        error: The exception. None stands for pydantic's own error for an email address.
    """
    if error is None:
        return "must be an email address"
    if type(error).__module__ == "ipaddress":
        return "must be an IP address"
    if "has host bits set" in str(error):
        return "must be an IP network whose bits after the prefix are 0, such as 10.0.0.0/8"
    return None


def _kind_beside(expected: str, value: Any) -> str:
    """Return the kind of a value in a phrase that says what is expected. 5.5 is a number, as an integer is."""
    if expected == _TYPES["int"] and isinstance(value, float):
        return _FRACTION
    return kind_of(value)


def _singular(phrase: str) -> str:
    """Return a phrase in which one thing is not in the plural."""
    return _ONE.sub(r"\1", phrase)


def _shown(value: Any) -> str:
    """Return a limit as JSON, and strings without quotes."""
    try:
        return choice_text(value)
    except ValueError:
        return str(value)


def _is_authors_error(error: object) -> bool:
    """Return whether an exception was raised by a statement of the author's, and not by the standard library.

    The texts of the standard library repeat the value, as those of `int` and `datetime.strptime` do.
    """
    traceback = getattr(error, "__traceback__", None)
    if traceback is None or not str(error):
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code.co_code
    package = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    is_raised_here = opname[code[traceback.tb_lasti]] == "RAISE_VARARGS"  # and not in a function written in C
    return is_raised_here and (package == "__main__" or package not in sys.stdlib_module_names)


def _other_phrase(details: ErrorDetails) -> str:
    """Return the message of an error that an author or an extension defined, unless it contains the input."""
    from pydantic_core.core_schema import ErrorType  # noqa: PLC0415 - rarely needed

    message = details["msg"]
    is_pydantics = details["type"] in get_args(ErrorType) or message.startswith("Input ")
    if is_pydantics or str(details["input"]) in message:
        return "is not valid"
    return message

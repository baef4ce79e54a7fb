"""A tool's arguments as a person types them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp.cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def read_json(text: str) -> dict[str, Any]:
    """Return the arguments of a JSON object; raise Failure if the text is none."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise Failure(f"--json is not JSON: {error}. Write it like --json '{{\"a\": 1}}'.") from error
    if not isinstance(value, dict):
        raise Failure("--json must be an object, like --json '{\"a\": 1}'.")
    if not _is_unicode(json.dumps(value, ensure_ascii=False)):
        raise Failure("--json has text that is no Unicode, such as a lone surrogate.")
    return value


def read_pairs(pairs: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments given as ``key=value``.

    A value is read as JSON where the tool's input schema wants a number, an integer, a boolean, an array or an
    object, and is a string else. Raises Failure if one can't be read.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise Failure(f"{pair!r} is no argument: write it like key=value.")
        if not _is_unicode(pair):
            raise Failure(f"The value of {key!r} is no UTF-8 text. Give bytes as base64.")
        if key in arguments:
            raise Failure(f"{key} is given twice. Give a list as JSON: {key}='[1, 2]'.")
        arguments[key] = read_value(key, text, schema.get("properties", {}).get(key, {}))
    return arguments


def warnings_of(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return a line about each argument that the tool's schema does not have: most tools ignore those."""
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") or "patternProperties" in schema:
        return []
    known = f"it has {', '.join(properties)}" if properties else "it has none"
    return [f"The tool's schema has no argument {name!r}: {known}." for name in arguments if name not in properties]


def _is_unicode(text: str) -> bool:
    """Tell whether a text of the command line is one: what was no UTF-8 there are lone surrogates here."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of one text, as its schema wants it; raise Failure if it can't be read."""
    wanted = _types(schema)
    if wanted == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        if not wanted or "string" in wanted:
            return text
        kinds = " or ".join(sorted(wanted))
        raise Failure(f"{name}={text}: the tool wants {kinds}; write it as JSON does.") from None
    return text if "string" in wanted and not _KINDS.get(type(value), set()) & wanted else value


_KINDS: dict[type, set[str]] = {
    bool: {"boolean"},
    int: {"integer", "number"},
    float: {"number"},
    list: {"array"},
    dict: {"object"},
    type(None): {"null"},
}


def _types(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema names, in itself or in its alternatives."""
    kinds = schema.get("type", [])
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    for word in ("anyOf", "oneOf"):
        for alternative in schema.get(word, []):
            found |= _types(alternative)
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")

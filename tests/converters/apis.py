"""Rules by which the APIs of models refuse declarations of tools, re-expressed from their sources.

The APIs themselves are not asked. A rule is here if a public report quotes the API's refusal, or if the API's
documentation says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OPENAI = ("openai", "openai strict")
_STRICT_GUIDE = "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"
_STRICT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_COMBINATIONS = frozenset({"anyOf", "oneOf", "allOf", "enum", "not"})
_TYPED = frozenset({"type", "anyOf", "$ref", "enum", "const"})
_GEMINI_SCHEMA = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "enum", "anyOf", "default", "example", "pattern"),
        *(
            "properties",
            "required",
            "propertyOrdering",
            "minProperties",
            "maxProperties",
            "items",
            "minItems",
            "maxItems",
        ),
        *("minLength", "maxLength", "minimum", "maximum"),
    }
)
"""The members of the message Schema of the API."""
_SCHEMA_MAPS = ("properties", "$defs")
_SCHEMAS = ("items", "additionalProperties")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


@dataclass(frozen=True)
class Rule:
    """A rule of an API about each part of a declaration's schema.

    Attributes:
        apis: The APIs that have it.
        text: What the API refuses.
        source: The report that quotes the refusal, or the page that describes it.
        refuses: Whether the API refuses a part.
    """

    apis: tuple[str, ...]
    text: str
    source: str
    refuses: Callable[[dict[str, Any]], bool]


def _is_object(part: dict[str, Any]) -> bool:
    return part.get("type") in ("object", "OBJECT")


def _is_array(part: dict[str, Any]) -> bool:
    return part.get("type") in ("array", "ARRAY")


def _lacks_required(part: dict[str, Any]) -> bool:
    return _is_object(part) and set(part.get("properties", {})) != set(part.get("required", []))


def _has_other_enum(part: dict[str, Any]) -> bool:
    return any(not isinstance(value, str) or value == "" for value in part.get("enum", []))


def _has_unknown_format(part: dict[str, Any]) -> bool:
    return part.get("type") in ("string", "STRING") and part.get("format") not in (None, "enum", "date-time")


PART_RULES = (
    Rule(
        _OPENAI,
        "an array without `items`",
        "apify/apify-mcp-server#36",
        lambda part: _is_array(part) and "items" not in part,
    ),
    Rule(_OPENAI, "`oneOf`", "can1357/oh-my-pi#920", lambda part: "oneOf" in part),
    Rule(
        ("openai strict",),
        "an object whose properties are not all required",
        _STRICT_GUIDE,
        _lacks_required,
    ),
    Rule(
        ("openai strict",),
        "an object without `additionalProperties: false`",
        _STRICT_GUIDE,
        lambda part: _is_object(part) and part.get("additionalProperties") is not False,
    ),
    Rule(("openai strict",), "a part without a type", _STRICT_GUIDE, lambda part: not _TYPED & part.keys()),
    Rule(
        ("openai strict",),
        "a format outside of its list",
        "coder/xum#3821",
        lambda part: part.get("format", "uuid") not in _STRICT_FORMATS,
    ),
    Rule(
        ("gemini",),
        "an array without `items`",
        "DEEIX-AI/DEEIX-Chat#546",
        lambda part: _is_array(part) and "items" not in part,
    ),
    Rule(("gemini",), "an enum of other values than texts", "nanbingxyz/5ire#218", _has_other_enum),
    Rule(("gemini",), "a format other than `date-time`", "google-gemini/gemini-cli#2237", _has_unknown_format),
    Rule(
        ("gemini",),
        "a part without a type",
        "google-gemini/gemini-cli#4400",
        lambda part: not {"type", "anyOf"} & part.keys(),
    ),
    Rule(
        ("gemini",),
        "a keyword that its schemas do not have",
        "promptfoo/promptfoo#6902",
        lambda part: bool(part.keys() - _GEMINI_SCHEMA),
    ),
    Rule(
        ("anthropic",),
        "a key of an object outside of [a-zA-Z0-9_.-]{1,64}",
        "anthropics/claude-code#92648",
        lambda part: any(not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in part.get("properties", {})),
    ),
)


def refusals(api: str, declaration: dict[str, Any]) -> Iterator[str]:
    """Yield why an API refuses a declaration: the rule and its source."""
    parameters = declaration.get("parameters")
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", declaration["name"]):
        yield f"{api} refuses the name: openai/codex#8174"
    if parameters is None:
        return
    if api in _OPENAI and (parameters.get("type") != "object" or "properties" not in parameters):
        yield f"{api} refuses parameters without `properties`: kagent-dev/kagent#1888"
    if api in (*_OPENAI, "anthropic") and _COMBINATIONS & parameters.keys():
        yield f"{api} refuses combinations at the top: makenotion/notion-mcp-server#341"
    parts = list(_parts(parameters))
    for rule in PART_RULES:
        if api in rule.apis and any(rule.refuses(part) for part in parts):
            yield f"{api} refuses {rule.text}: {rule.source}"
    if any(not _resolves(part["$ref"], parameters) for part in parts if "$ref" in part):
        yield f"{api} refuses a reference to nothing"


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(schema, dict):
        return
    yield schema
    for key in _SCHEMA_MAPS:
        for part in schema.get(key, {}).values():
            yield from _parts(part)
    for key in _SCHEMAS:
        yield from _parts(schema.get(key))
    for key in _SCHEMA_LISTS:
        for part in schema.get(key, []):
            yield from _parts(part)


def _resolves(reference: str, root: dict[str, Any]) -> bool:
    target: Any = root
    for key in reference.removeprefix("#").split("/")[1:]:
        if not isinstance(target, dict) or key not in target:
            return False
        target = target[key]
    return True

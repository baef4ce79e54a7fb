from __future__ import annotations

from typing import Any

import pytest

from tests.converters.apis import refusals


def declaration(**parts: Any) -> dict[str, Any]:
    return {"name": "tool", "parameters": {"type": "object", "properties": parts, "required": sorted(parts)}}


STRICT = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("api", "declared", "refused"),
    [
        ("openai", declaration(a={"type": "string"}), ""),
        ("openai", {"name": "to.ol"}, "name"),
        ("openai", {"name": "tool", "parameters": {"type": "object"}}, "without `properties`"),
        ("openai", declaration(a={"type": "array"}), "array without `items`"),
        ("openai", declaration(a={"oneOf": []}), "`oneOf`"),
        ("openai", declaration(a={"$ref": "#/$defs/A"}), "reference to nothing"),
        ("openai strict", {"name": "tool", "parameters": STRICT}, ""),
        ("openai strict", declaration(), "`additionalProperties: false`"),
        ("gemini", declaration(a={"type": "INTEGER", "enum": [1]}), "other values than texts"),
        ("gemini", declaration(a={"type": "STRING", "format": "uuid"}), "format"),
        ("gemini", declaration(a={}), "without a type"),
        ("gemini", declaration(a={"type": "string", "const": "x"}), "keyword"),
        ("gemini json", declaration(a={"type": "string", "const": "x"}), ""),
        ("anthropic", declaration(**{"a b": {"type": "string"}}), "a key of an object"),
        ("anthropic", {"name": "tool", "parameters": {**STRICT, "allOf": []}}, "combinations at the top"),
    ],
)
def test_an_api_refuses_what_its_rules_say(api: str, declared: dict[str, Any], refused: str) -> None:
    reasons = list(refusals(api, declared))
    assert len(reasons) == bool(refused)
    assert refused in "".join(reasons)

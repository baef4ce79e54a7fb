from __future__ import annotations

from typing import Any

import pytest

from tests.converters.losses import losses


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}


@pytest.mark.parametrize(
    ("listed", "declared", "expected"),
    [
        (an_object(a=TEXT), an_object(a=TEXT), []),
        (an_object(a=TEXT), {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}, []),
        (an_object(a=TEXT), an_object(), ["a: absent"]),
        (an_object(a=TEXT), an_object(a={}), ["a: no type"]),
        (an_object(a={}), an_object(a=TEXT), ["a: any type becomes string"]),
        (an_object(a=NUMBER), an_object(a=TEXT), ["a: integer is missing"]),
        (an_object(a=NUMBER), an_object(a={"type": "number"}), []),
        (an_object(a={"anyOf": [TEXT, NUMBER]}), an_object(a=TEXT), ["a: integer is missing"]),
        (an_object(a={"anyOf": [TEXT, {"type": "null"}]}), an_object(a={**TEXT, "nullable": True}), []),
        (an_object(a={"enum": ["x"]}), an_object(a=TEXT), ["a: no values"]),
        (an_object(a={**TEXT, "const": "x"}), an_object(a={**TEXT, "enum": ["x"]}), []),
        (an_object(a=TEXT), {**an_object(a=TEXT), "required": ["a"]}, ["a: becomes required"]),
        (an_object(a=TEXT), {**an_object(a={"type": ["string", "null"]}), "required": ["a"]}, []),
        (an_object(a={"type": "array", "items": TEXT}), an_object(a={"type": "array"}), ["a[]: no type"]),
        (an_object(a=an_object(b=TEXT)), an_object(a={"type": "object"}), ["a.b: absent"]),
        (
            an_object(a={"anyOf": [an_object(b=TEXT), an_object(c=TEXT)]}),
            an_object(a=an_object(b=TEXT, c=TEXT)),
            ["a: alternatives are merged"],
        ),
        (
            {**an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": an_object(a={"$ref": "#/$defs/A"})}},
            an_object(a=an_object(a={})),
            ["a.a: no type"],
        ),
    ],
)
def test_a_declaration_loses_arguments_types_and_values(
    listed: dict[str, Any], declared: dict[str, Any], expected: list[str]
) -> None:
    assert losses(listed, declared) == expected

from __future__ import annotations

import random
from typing import Any

import jsonschema_rs
import pytest

from funcmcp._authoring.schemas.json_schema import arranged
from funcmcp._authoring.schemas.schema_forms import combined, without_type_list

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        (STRING, STRING),
        ({"type": ["string"]}, STRING),
        ({"type": ["string", "null"], "title": "A"}, {"title": "A", "anyOf": [STRING, NULL]}),
        (
            {"type": ["string", "integer"], "minLength": 1, "minimum": 2, "not": {"const": 3}},
            {
                "anyOf": [
                    {"type": "string", "minLength": 1, "not": {"const": 3}},
                    {"type": "integer", "minimum": 2, "not": {"const": 3}},
                ]
            },
        ),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"anyOf": [{**STRING, "enum": ["a"]}, NULL]}),
        ({"type": ["string", "null"], "enum": ["a"]}, {**STRING, "enum": ["a"]}),
        ({"type": ["integer", "boolean"], "const": 1.0}, {**INTEGER, "const": 1.0}),
        ({"type": ["string", "null"], "enum": [1]}, {"type": ["string", "null"], "enum": [1]}),
        ({"type": ["string", "null"], "anyOf": [STRING]}, {"type": ["string", "null"], "anyOf": [STRING]}),
        ({"type": []}, {"type": []}),
    ],
)
def test_a_list_of_types_becomes_alternatives(schema: dict[str, Any], form: dict[str, Any]) -> None:
    assert without_type_list(schema) == form


@pytest.mark.parametrize(
    ("schemas", "form"),
    [
        ([STRING, {"description": "A."}], {**STRING, "description": "A."}),
        ([{"title": "A"}, {"title": "B"}], {"title": "B"}),
        ([STRING, {"maxLength": 3}, STRING], {**STRING, "maxLength": 3}),
        ([{"$ref": "#/$defs/A"}, {"description": "A."}], {"$ref": "#/$defs/A", "description": "A."}),
        (
            [
                {"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False},
                {"properties": {"a": STRING, "b": INTEGER}, "required": ["b", "a"]},
            ],
            {
                "type": "object",
                "properties": {"a": STRING, "b": INTEGER},
                "required": ["a", "b"],
                "additionalProperties": False,
            },
        ),
        ([{"type": "array", "items": STRING}, {"title": "A"}], {"type": "array", "items": STRING, "title": "A"}),
        ([{"$ref": "#/$defs/A"}, {"minLength": 1}], None),
        ([{"minLength": 1}, {"minLength": 2}], None),
        ([{"const": 1}, {"const": True}], None),
        ([{"properties": {"a": STRING}}, {"properties": {"a": INTEGER}}], None),
        ([{"properties": {"a": STRING}}, {"additionalProperties": INTEGER}], None),
        ([{"items": STRING}, {"prefixItems": [INTEGER]}], None),
        ([STRING, True], None),
    ],
)
def test_schemas_that_do_not_meet_become_one(schemas: list[Any], form: dict[str, Any] | None) -> None:
    assert combined(schemas) == form


def test_references_in_all_of_are_replaced_first() -> None:
    schema = {
        "properties": {
            "pet": {"allOf": [{"$ref": "#/$defs/Pet"}, {"properties": {"age": INTEGER}}], "description": "A pet."},
            "tree": {"allOf": [{"$ref": "#/$defs/Tree"}], "description": "A tree."},
            "both": {"allOf": [{"$ref": "#/$defs/Tree"}, {"minProperties": 1}]},
        },
        "$defs": {
            "Pet": {"allOf": [{"$ref": "#/$defs/Named"}], "title": "Pet"},
            "Named": {"type": "object", "properties": {"name": STRING}},
            "Tree": {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/Tree"}}},
        },
    }
    assert arranged(schema) == {
        "properties": {
            "pet": {
                "type": "object",
                "title": "Pet",
                "description": "A pet.",
                "properties": {"name": STRING, "age": INTEGER},
            },
            "tree": {"$ref": "#/$defs/Tree", "description": "A tree."},
            "both": {"allOf": [{"$ref": "#/$defs/Tree"}, {"minProperties": 1}]},
        },
        "$defs": {"Tree": {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/Tree"}}}},
    }


@pytest.mark.slow("Many values or schemas take half a second or longer.")
def test_a_schema_with_too_many_references_keeps_all_of() -> None:
    definitions = {f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}]} for n in range(1100)}
    result = arranged({"$ref": "#/$defs/D0", "$defs": {**definitions, "D1100": STRING}})
    assert result["$ref"] == "#/$defs/D1"


VALUES = [None, True, False, 0, 1, 1.5, 2.0, "", "a", "ab", [], ["a"], [1, "a"], {}, {"a": 1}, {"a": "a", "b": 2}]
PIECES: list[dict[str, Any]] = [
    *({"type": name} for name in ("string", "integer", "number", "boolean", "null", "array", "object")),
    *({"type": names} for names in (["string", "null"], ["integer", "string"], ["object", "array", "number"])),
    *({"enum": values} for values in (["a", None], [1, "a"], [True, 2.0], [{"a": 1}])),
    *({"const": value} for value in (1, True, "a")),
    *({"minLength": 1}, {"maxLength": 1}, {"minimum": 1}, {"minItems": 1}, {"required": ["a"]}, {"required": ["b"]}),
    *(
        {"properties": {"a": STRING}},
        {"properties": {"a": INTEGER}},
        {"properties": {"b": {"type": ["integer", "null"]}}},
    ),
    *(
        {"items": STRING},
        {"prefixItems": [INTEGER]},
        {"additionalProperties": INTEGER},
        {"title": "A"},
        {"not": STRING},
    ),
]


def test_the_forms_accept_the_same_values() -> None:
    chosen = random.Random(32)

    def schema() -> dict[str, Any]:
        parts: dict[str, Any] = {}
        for piece in chosen.sample(PIECES, 3):
            parts |= piece
        return parts

    for _ in range(1500):
        original = {**schema(), "allOf": [schema() for _ in range(chosen.randint(1, 2))]}
        form = arranged(original)
        before, after = jsonschema_rs.validator_for(original), jsonschema_rs.validator_for(form)
        for value in VALUES:
            assert before.is_valid(value) == after.is_valid(value), (original, form, value)

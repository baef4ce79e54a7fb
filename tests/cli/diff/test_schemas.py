"""Which changes of a schema break clients: arguments are sent by clients, results are read by them."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp_cli.diff.schemas import argument_differences, result_differences

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NULLABLE = {"anyOf": [STRING, {"type": "null"}]}


def levels_and_texts(old: Any, new: Any, *, wrap: bool = True) -> list[tuple[str, str]]:
    """Return levels and texts for the argument ``a``, which has both schemas."""
    if wrap:
        old, new = ({"type": "object", "properties": {"a": schema}} for schema in (old, new))
    return [(difference.level, difference.text) for difference in argument_differences("tool t", old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (STRING, INTEGER, "type changed from string to integer"),
        (NUMBER, INTEGER, "type changed from number to integer"),
        (NULLABLE, STRING, "type changed from null | string to string"),
        ({}, STRING, "type changed from any to string"),
        ({"enum": ["x", "y"]}, {"enum": ["x"]}, 'values removed: "y"'),
        (STRING, {**STRING, "enum": ["x"]}, 'the list of values is new: ["x"]'),
        (STRING, {**STRING, "const": "x"}, 'the list of values is new: ["x"]'),
        (INTEGER, {**INTEGER, "minimum": 1}, "minimum is new: 1"),
        ({**INTEGER, "minimum": 1}, {**INTEGER, "minimum": 2}, "minimum changed from 1 to 2"),
        ({**INTEGER, "maximum": 2}, {**INTEGER, "maximum": 1}, "maximum changed from 2 to 1"),
        (STRING, {**STRING, "pattern": "x"}, 'pattern is new: "x"'),
        ({**STRING, "pattern": "x"}, {**STRING, "pattern": "y"}, 'pattern changed from "x" to "y"'),
        (STRING, {**STRING, "format": "date"}, 'format is new: "date"'),
        ({"anyOf": [STRING, INTEGER]}, {"anyOf": [STRING]}, 'alternatives removed: {"type": "integer"}'),
        ({"allOf": [STRING]}, {"allOf": [INTEGER]}, 'allOf changed from [{"type": "string"}] to [{"type": "integer"}]'),
    ],
)
def test_a_narrower_argument_breaks_clients_and_a_wider_one_does_not(old: Any, new: Any, expected: str) -> None:
    assert ("breaking", f"argument a: {expected}") in levels_and_texts(old, new)
    if (
        "pattern changed" not in expected
        and "allOf" not in expected
        and expected != "type changed from string to integer"
    ):
        assert {level for level, _ in levels_and_texts(new, old)} == {"compatible"}


def test_members_of_an_object() -> None:
    old = {"type": "object", "properties": {"a": STRING, "b": STRING, "c": STRING}, "required": ["a"]}
    new = {"type": "object", "properties": {"a": STRING, "b": STRING, "d": STRING, "e": STRING}, "required": ["b", "d"]}
    assert levels_and_texts(old, new, wrap=False) == [
        ("compatible", "argument a: no longer required"),
        ("breaking", "argument b: required now"),
        ("breaking", "argument c: removed"),
        ("breaking", "argument d: new and required"),
        ("compatible", "argument e: new"),
    ]


def test_nested_objects_lists_and_definitions_are_compared_at_their_place() -> None:
    old = {"$defs": {"Item": {"type": "object", "properties": {"n": INTEGER}}},
           "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}}}  # fmt: skip
    inlined = {"properties": {"items": {"type": "array", "items": {"type": "object", "properties": {"n": INTEGER}}}}}
    narrowed = {"properties": {"items": {"type": "array", "items": {"type": "object", "properties": {"n": STRING}}}}}
    assert levels_and_texts(old, inlined, wrap=False) == []
    assert levels_and_texts(old, narrowed, wrap=False) == [
        ("breaking", "argument items[].n: type changed from integer to string")
    ]


def test_a_recursive_model_ends() -> None:
    def tree(value: dict[str, str]) -> dict[str, Any]:
        node = {"type": "object", "properties": {"value": value, "next": {"$ref": "#/$defs/Node"}}}
        return {"$defs": {"Node": node}, "$ref": "#/$defs/Node"}

    assert levels_and_texts(tree(STRING), tree(STRING), wrap=False) == []
    assert levels_and_texts(tree(STRING), tree(INTEGER), wrap=False)[0][0] == "breaking"
    loop = {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}
    assert levels_and_texts(loop, {"type": "object"}, wrap=False)[0][0] == "breaking"


def test_other_members_of_an_object() -> None:
    closed = {"type": "object", "additionalProperties": False}
    assert levels_and_texts({"type": "object"}, closed) == [
        ("breaking", "argument a: additionalProperties changed from true to false")
    ]
    assert levels_and_texts(closed, {"type": "object"})[0][0] == "compatible"
    assert levels_and_texts({"type": "object"}, {"type": "object", "additionalProperties": True}) == []
    typed = [{"type": "object", "additionalProperties": schema} for schema in (INTEGER, STRING)]
    assert levels_and_texts(*typed) == [("breaking", "argument a.*: type changed from integer to string")]


def test_texts_and_defaults_do_not_break_clients() -> None:
    old = {**STRING, "description": "x", "default": "a"}
    new = {**STRING, "description": "y", "title": "A"}
    assert levels_and_texts(old, new) == [
        ("wording", 'argument a: title is new: "A"'),
        ("wording", 'argument a: description changed from "x" to "y"'),
        ("compatible", 'argument a: default is missing; it was "a"'),
    ]


def test_a_keyword_of_a_vendor_does_not_break_clients() -> None:
    old = {**STRING, "x-vendor": True}
    assert levels_and_texts(old, STRING) == [("compatible", "argument a: x-vendor is missing; it was true")]


def test_nullable_has_several_spellings() -> None:
    for other in ({"type": ["string", "null"]}, {**STRING, "nullable": True}, {"oneOf": [{"type": "null"}, STRING]}):
        assert [level for level, _ in levels_and_texts(NULLABLE, other) if level == "breaking"] == []


def results(old: Any, new: Any) -> list[tuple[str, str]]:
    return [(difference.level, difference.text) for difference in result_differences("tool t", old, new)]


def test_results_are_compared_the_other_way_round() -> None:
    old = {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a"]}
    assert results(old, {**old, "properties": {"a": INTEGER, "b": STRING}})[0][0] == "breaking"
    assert results(old, {**old, "required": []}) == [("breaking", "result a: no longer required")]
    assert results(old, {**old, "required": ["a", "b"]}) == [("compatible", "result b: required now")]
    assert results(old, {**old, "properties": {"a": STRING}}) == [("compatible", "result b: removed")]
    assert results(old, {**old, "properties": {"b": STRING}, "required": []}) == [("breaking", "result a: removed")]
    assert results(old, {**old, "properties": {**old["properties"], "c": STRING}}) == [("compatible", "result c: new")]  # type: ignore[dict-item]
    assert results({"enum": [1, 2]}, {"enum": [1]}) == [("compatible", "results: values removed: 2")]
    assert results({"enum": [1]}, {"enum": [1, 2]}) == [("breaking", "results: values added: 2")]


def test_a_schema_of_results_comes_and_goes() -> None:
    assert results(None, None) == []
    assert results(None, {"type": "object"})[0][0] == "compatible"
    assert results({"type": "object"}, None)[0][0] == "breaking"


def test_wrong_schemas_of_a_server_are_no_error() -> None:
    schemas: list[Any] = [None, 1, [], "x", {"type": 1, "properties": [], "anyOf": 3}, {"$ref": "#/no/where"}]
    for wrong in schemas:
        argument_differences("tool t", wrong, {"type": "object"})
        argument_differences("tool t", {"type": "object"}, wrong)


def test_a_reference_to_the_whole_schema_is_followed() -> None:
    old = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": STRING}}
    new = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": INTEGER}}
    assert ("breaking", "argument a.b: type changed from string to integer") in levels_and_texts(old, new, wrap=False)


def test_long_values_are_shortened() -> None:
    text = levels_and_texts(STRING, {**STRING, "pattern": "x" * 80})[0][1]
    assert text == f'argument a: pattern is new: "{"x" * 56}...'

"""How often parts of a schema apply to a value."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._authoring.schemas.handwritten_schema_applications import Applications

ROOT: dict[str, Any] = {"$ref": "#"}
MEMBER: dict[str, Any] = {"properties": {"x": ROOT}}
DEPTH = 30
LINEAR = 20 * DEPTH


def nested(depth: int = DEPTH, leaf: Any = "s") -> Any:
    for _ in range(depth):
        leaf = {"x": leaf}
    return leaf


def in_lists(depth: int = DEPTH) -> Any:
    value: Any = "s"
    for _ in range(depth):
        value = [value]
    return value


def of_draft_2019(schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2019-09/schema", **schema}


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [MEMBER, MEMBER]},
        {"oneOf": [{"type": "string"}, MEMBER, {"allOf": [MEMBER]}]},
        {"allOf": [MEMBER], **MEMBER},
        {"if": MEMBER, "then": MEMBER},
        {"if": {"type": "object"}, "then": MEMBER, "else": MEMBER},
        {"not": MEMBER, **MEMBER},
        {"dependentSchemas": {"x": MEMBER}, **MEMBER},
        {"dependencies": {"x": MEMBER, "y": ["x"]}, **MEMBER},
        {"patternProperties": {"x": ROOT, "^x": ROOT}},
        {"patternProperties": {"x": ROOT}, **MEMBER},
        {"additionalProperties": ROOT, **MEMBER},
        {"unevaluatedProperties": ROOT, "anyOf": [MEMBER]},
        {"unevaluatedProperties": False, "anyOf": [MEMBER]},
        {"$anchor": "node", "anyOf": [{"properties": {"x": {"$ref": "#node"}}}] * 2},
        {"$dynamicAnchor": "node", "anyOf": [{"properties": {"x": {"$dynamicRef": "#node"}}}] * 2},
        of_draft_2019({"$recursiveAnchor": True, "anyOf": [{"properties": {"x": {"$recursiveRef": "#"}}}] * 2}),
        {"$id": "https://a.example/s", "anyOf": [{"properties": {"x": {"$ref": "https://a.example/s"}}}] * 2},
        {"$id": "https://a.example/s", "anyOf": [{"properties": {"x": {"$ref": "s#/anyOf/0"}}, "allOf": [MEMBER]}]},
        {
            "$ref": "#/$defs/a~1b%20c",
            "$defs": {"a/b c": {"properties": {"x": {"anyOf": [{"$ref": "#/$defs/a~1b%20c"}] * 2}}}},
        },
        {"properties": {"x": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
    ],
)
def test_a_schema_that_leads_back_to_itself_in_several_ways_applies_exponentially_often(schema: dict[str, Any]) -> None:
    assert Applications(schema).exceeds(nested(), 1_000_000)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"anyOf": [ROOT, ROOT]}},
        {"items": ROOT, "contains": ROOT},
        {"prefixItems": [ROOT], "unevaluatedItems": ROOT},
        {"items": [ROOT], "additionalItems": ROOT, "anyOf": [{"items": [ROOT, True]}]},
    ],
)
def test_items_count_as_members_do(schema: dict[str, Any]) -> None:
    assert Applications(schema).exceeds(in_lists(), 1_000_000)
    assert not Applications(schema).exceeds(nested(), LINEAR)


@pytest.mark.parametrize(
    "schema",
    [
        MEMBER,
        {"anyOf": [{"type": "string"}, MEMBER]},
        {"anyOf": [{"properties": {"y": ROOT}}, MEMBER, True]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}}, "unused": {"$ref": "#"}}},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"x": ROOT}}}},
        {"prefixItems": [ROOT, ROOT]},
    ],
)
def test_a_schema_with_one_way_back_applies_as_often_as_the_value_is_deep(schema: dict[str, Any]) -> None:
    assert not Applications(schema).exceeds(nested(), LINEAR)


def test_each_value_of_an_enum_counts() -> None:
    applications = Applications({"items": {"enum": list(range(100))}})
    assert applications.exceeds([0] * 10, 1000)
    assert not applications.exceeds([0] * 10, 1100)


def test_names_of_members_count_with_the_members() -> None:
    value = {str(number): 1 for number in range(100)}
    assert Applications({"propertyNames": {"maxLength": 1}}).exceeds(value, 100)
    assert not Applications({"required": ["a"]}).exceeds(value, 100)


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [ROOT, MEMBER]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"not": {"$ref": "#/$defs/a"}}]}}},
        {"properties": {"x": {"dependentSchemas": {"y": {"$ref": "#/properties/x"}}}}},
    ],
)
def test_a_schema_that_applies_itself_to_the_same_value_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="leads back to itself"):
        Applications(schema)


def doubling(steps: int, keyword: str, *, in_items: bool = False) -> dict[str, Any]:
    """Return a schema in which each definition refers to the next one twice."""

    def step(number: int) -> dict[str, Any]:
        reference: dict[str, Any] = {"$ref": f"#/$defs/{number + 1}"}
        return {keyword: [{"items": reference} if in_items else reference] * 2}

    definitions = {str(number): step(number) for number in range(steps)}
    return {"$ref": "#/$defs/0", "$defs": {**definitions, str(steps): {"type": "string"}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_at_each_step_are_refused(keyword: str) -> None:
    with pytest.raises(ValueError, match=r"apply more than 20,000 times to one value\. Remove some references"):
        Applications(doubling(30, keyword))


def test_a_chain_of_references_that_is_too_long_is_refused() -> None:
    chain = {str(number): {"$ref": f"#/$defs/{number + 1}"} for number in range(5_000)}
    with pytest.raises(ValueError, match="nested too deeply"):
        Applications({"$ref": "#/$defs/0", "$defs": {**chain, "5000": {}}})


def test_applications_to_one_part_are_bounded_for_every_value() -> None:
    assert Applications({"properties": {"a": {}, "b": {"items": {}}}}).per_part == 1
    assert Applications({"anyOf": [{"items": {}}, {"items": {"allOf": [{}, {}]}}]}).per_part == 4
    assert Applications(doubling(10, "anyOf", in_items=True)).per_part == 2 * 2**10
    assert Applications({"anyOf": [MEMBER, MEMBER]}).per_part < 20  # what leads back is remembered
    assert Applications({"enum": [1.5, {}]}).per_part > Applications({"enum": ["a", 1]}).per_part == 1


def test_members_that_wait_are_not_all_listed() -> None:
    items = [0] * 100_000

    class Counted(list[int]):
        read = 0

        def __iter__(self) -> Any:
            for item in super().__iter__():
                Counted.read += 1
                yield item

    assert Applications({"items": {}}).exceeds(Counted(items), 1_000)
    assert Counted.read < 1_100

"""Each rule has a feature that breaks it, and a neighbour that does not."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import pytest

from funcmcp._server.catalog.features import LeftOut
from funcmcp_cli.client_rules import checks
from funcmcp_cli.client_rules.problems import problems_of
from funcmcp_cli.client_rules.rules import LOSSES, RULES
from funcmcp_cli.client_rules.subjects import Kind, Subject

if TYPE_CHECKING:
    from funcmcp_cli.client_rules.problems import Problem
    from funcmcp_cli.client_rules.rules import Rule

LEFT_OUT = LeftOut(("inputSchema", "properties", "a", "pattern"), "(?x)a", "ECMA-262 does not have the flags (?x)")


def tool(name: str = "order", **members: Any) -> dict[str, Any]:
    """Return a definition of a tool that every client accepts, with other members."""
    return {"name": name, "description": "Order.", "inputSchema": {"type": "object", "properties": {}}, **members}


def taking(schema: Any, name: str = "a", **members: Any) -> dict[str, Any]:
    """Return a tool with one argument."""
    return tool(inputSchema={"type": "object", "properties": {name: schema}, "required": [name], **members})


def defining(definitions: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return a tool with one argument and definitions."""
    members: dict[str, Any] = {"$defs": definitions}
    return taking(schema, **members)


def returning(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool with one member in its result."""
    return tool(outputSchema={"type": "object", "properties": {"a": schema}})


def prompt(name: str, *arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": [{"name": argument} for argument in arguments]}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def problems(kind: str, definitions: list[dict[str, Any]]) -> list[Problem]:
    facts: dict[str, Any] = {"server": {"name": "Kitchen"}, "tools": [], "resources": [], "prompts": []}
    member = {"server": "tools", "tool": "tools", "resource": "resources", "prompt": "prompts"}[kind]
    facts[member] = definitions
    facts |= {"calls": CALLS, "withoutStructure": ["never"]}
    return problems_of(facts, {"left_out": [LEFT_OUT]})


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
NULL, ARRAY = {"type": "null"}, {"type": "array", "items": STRING}
NODE = {"type": "object", "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
LEAF = {"type": "object", "properties": {"name": STRING}}

TEXT = [{"type": "text", "text": "x"}]
CALLS = [
    {"tool": "never", "result": {"content": TEXT}},
    {"tool": "text", "result": {"content": TEXT}},
    {"tool": "wrong", "result": {"content": TEXT, "structuredContent": {"name": 5}}},
    {"tool": "right", "result": {"content": TEXT, "structuredContent": {"name": "x"}}},
    {"tool": "failed", "result": {"content": TEXT, "isError": True}},
    {"tool": "failed", "error": {"code": -32603, "message": "x"}},
    {"tool": "unchecked", "result": {"content": TEXT, "structuredContent": {"name": 5}}},
    {"prompt": "text", "result": {"messages": []}},
]

CASES: dict[str, tuple[Any, Any, list[str]]] = {
    "many-tools": ([tool(f"t{n}") for n in range(129)], [tool(f"t{n}") for n in range(128)], ["129 tools"]),
    "name-characters": (tool("orders.list/ü."), tool("Orders-list_2"), ["the characters ./ü"]),
    "name-start": (tool("3d_print"), tool("_3d"), ["the first character 3"]),
    "long-name": (tool("a" * 65), tool("a" * 64), ["65 characters"]),
    "long-full-name": (tool("a" * 53), tool("a" * 52), ["61 characters with the server's name kitchen"]),
    "no-description": (tool(description=" "), tool(description="x"), ["no description"]),
    "long-description": (tool(description="x" * 1025), tool(description="x" * 1024), ["1025 characters"]),
    "no-properties": (tool(inputSchema={"type": "object"}), tool(), ["inputSchema"]),
    "combined-top": (
        taking(STRING, anyOf=[{"required": ["a"]}], enum=[{}]),
        taking({"anyOf": [STRING, INTEGER]}),
        ["inputSchema/anyOf", "inputSchema/enum"],
    ),
    "boolean-schema": (
        taking({"type": "object", "properties": {"b": True}}, additionalProperties=False),
        taking({"type": "object", "additionalProperties": INTEGER, "unevaluatedProperties": False, "not": False}),
        ["inputSchema/properties/a/properties/b: true", "inputSchema/additionalProperties: false"],
    ),
    "reference": (
        taking({"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/A"}]}, definitions={"A": STRING}),
        defining({"A": STRING}, {"$ref": "#/$defs/A"}),
        ["inputSchema/properties/a/anyOf/0: #", "inputSchema/properties/a/anyOf/1: #/definitions/A"],
    ),
    "any-reference": (
        defining({"A": STRING}, {"$ref": "#/$defs/A"}),
        taking(STRING),
        ["inputSchema/properties/a: #/$defs/A"],
    ),
    "unknown-required": (
        taking(STRING, required=["a", "b"]),
        taking({"type": "object", "properties": {"b": STRING}, "required": ["b"]}),
        ["inputSchema: b"],
    ),
    "recursion": (
        defining({"Node": NODE}, {"$ref": "#/$defs/Node"}),
        defining({"Leaf": LEAF}, {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"$ref": "#/$defs/Leaf"}]}),
        ["#/$defs/Node refers to #/$defs/Node"],
    ),
    "one-of": (taking({"oneOf": [STRING]}), taking({"anyOf": [STRING]}), ["inputSchema/properties/a"]),
    "all-of": (taking({"allOf": [INTEGER]}), taking({"anyOf": [INTEGER]}), ["inputSchema/properties/a"]),
    "no-items": (
        taking({"type": "array", "prefixItems": [STRING]}),
        taking({"type": "array", "prefixItems": [STRING], "items": STRING}),
        ["inputSchema/properties/a"],
    ),
    "number-enum": (
        taking({"type": "integer", "enum": [1, 2]}),
        taking({"type": "string", "enum": ["1", "2"]}),
        ["inputSchema/properties/a: [1, 2]"],
    ),
    "mixed-enum": (
        taking({"enum": ["a", None]}),
        taking({"enum": ["a", "b"]}),
        ['inputSchema/properties/a: ["a", null]'],
    ),
    "empty-enum-value": (
        taking({"type": "string", "enum": ["a", ""]}),
        taking({"type": "string", "enum": ["a", " "]}),
        ["inputSchema/properties/a"],
    ),
    "const": (
        taking({"type": "string", "const": "a"}),
        taking({"type": "string", "enum": ["a"]}),
        ["inputSchema/properties/a: a"],
    ),
    "many-enum-values": (
        taking({"enum": [str(n) for n in range(201)]}),
        taking({"enum": [str(n) for n in range(200)]}),
        ["201 values"],
    ),
    "property-key": (taking(STRING, name="filter[id]"), taking(STRING, name="filter.id"), ["inputSchema: filter[id]"]),
    "property-start": (taking(STRING, name="x-id"), taking(STRING, name="x_id"), ["inputSchema: x-id"]),
    "input-pattern": (
        taking({"type": "object", "properties": {}, "patternProperties": {r"^\-": {**STRING, "pattern": "(?i)a"}}}),
        taking({**STRING, "pattern": r"^\d{3}-\d{4}$"}),
        [
            r"inputSchema/properties/a: ^\- has the escape \-",
            r"inputSchema/properties/a/patternProperties/^\-: (?i)a has the group (?i)",
        ],
    ),
    "output-pattern": (
        returning({**STRING, "pattern": r"\Aa"}),
        returning({**STRING, "pattern": "^a"}),
        [r"outputSchema/properties/a: \Aa has the escape \A"],
    ),
    "unknown-format": (
        returning({**STRING, "format": "ipvanyaddress"}),
        returning({**STRING, "format": "ipv6"}),
        ["outputSchema/properties/a: ipvanyaddress"],
    ),
    "openai-format": (
        taking({**STRING, "format": "uri"}),
        taking({**STRING, "format": "uuid"}),
        ["inputSchema/properties/a: uri"],
    ),
    "gemini-format": (
        taking({**STRING, "format": "uuid"}),
        taking({**STRING, "format": "date-time"}),
        ["inputSchema/properties/a: uuid"],
    ),
    "no-type": (
        taking({"description": "Anything."}),
        taking({"anyOf": [STRING, {"oneOf": []}, {"allOf": []}]}),
        ["inputSchema/properties/a"],
    ),
    "several-types": (
        taking({"type": ["string", "null"]}),
        taking({"anyOf": [STRING, {"type": "null"}]}),
        ['inputSchema/properties/a: ["string", "null"]'],
    ),
    "unstructured-result": (
        [tool("never", outputSchema=LEAF), tool("text", outputSchema=LEAF), tool("wrong", outputSchema=LEAF)],
        [
            tool("right", outputSchema=LEAF),
            tool("failed", outputSchema=LEAF),
            tool("unchecked", outputSchema={"type": "no type"}),
            tool("text"),
            tool("never", outputSchema="no schema"),
            tool("not_called", outputSchema=LEAF),
        ],
        [
            "outputSchema, and useResultSchema is not set",
            "a result has no structuredContent",
            "structuredContent name must be a string, not a number",
        ],
    ),
    "bare-object": (
        taking({"type": "object"}),
        taking({"type": "object", "additionalProperties": INTEGER}),
        ["inputSchema/properties/a"],
    ),
    "open-object": (
        taking({"type": "object", "additionalProperties": INTEGER}),
        taking({"type": "object", "properties": {"b": INTEGER}}),
        ["inputSchema/properties/a"],
    ),
    "optional-null": (
        taking({"anyOf": [STRING, {"type": "null"}]}, required=[]),
        taking({"anyOf": [STRING, {"type": "null"}]}),
        ["inputSchema/properties/a"],
    ),
    "strict-size": (
        tool(inputSchema={"type": "object", "properties": {"a": nested(6), **{f"p{n}": STRING for n in range(95)}}}),
        tool(inputSchema={"type": "object", "properties": {"a": nested(5), **{f"p{n}": STRING for n in range(95)}}}),
        ["101 properties", "6 levels of properties"],
    ),
    "object-union": (
        defining({"Cat": LEAF, "Dog": LEAF}, {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}),
        defining({"Cat": LEAF}, {"$ref": "#/$defs/Cat"}),
        ["inputSchema/properties/a"],
    ),
    "value-union": (
        taking({"type": "object", "properties": {"b": {"anyOf": [STRING, INTEGER]}, "c": {"anyOf": [ARRAY, NULL]}}}),
        taking({"type": "array", "items": {"anyOf": [STRING, NULL]}}),
        ["inputSchema/properties/a/properties/b", "inputSchema/properties/a/properties/c"],
    ),
    "nested-object": (
        taking({"type": "array", "items": {"type": "object", "properties": {"b": STRING}}}),
        taking({"type": "object", "additionalProperties": STRING}),
        ["inputSchema/properties/a/items"],
    ),
    "enum": (
        taking({"type": "string", "enum": ["a", "b"]}),
        taking(STRING),
        ['inputSchema/properties/a: ["a", "b"]'],
    ),
    "time-offset": (
        taking({"anyOf": [{**STRING, "format": "date-time"}, {**STRING, "format": "time"}]}),
        taking({**STRING, "format": "date"}),
        ["inputSchema/properties/a/anyOf/0: date-time", "inputSchema/properties/a/anyOf/1: time"],
    ),
    "large-integer": (
        [
            taking({"anyOf": [INTEGER, NULL]}, name="orderId"),
            taking({"type": ["integer", "null"]}, name="id"),
            taking({"type": "array", "items": INTEGER}, name="order_ids"),
            taking({**INTEGER, "maximum": 2**63 - 1}),
        ],
        [
            taking({**INTEGER, "maximum": 2**53 - 1}, name="id"),
            taking({**INTEGER, "minimum": -(2**53)}, name="paid"),
            taking({**INTEGER, "enum": [1, 2]}, name="id"),
            taking(STRING, name="id"),
        ],
        [
            "inputSchema/properties/orderId/anyOf/0",
            "inputSchema/properties/id",
            "inputSchema/properties/order_ids/items",
            "inputSchema/properties/a",
        ],
    ),
    "left-out": (
        tool("left_out"),
        tool(),
        ["inputSchema/properties/a/pattern: (?x)a (ECMA-262 does not have the flags (?x))"],
    ),
    "prompt-arguments": (prompt("review", "code", "language"), prompt("review", "code"), ["2 arguments"]),
    "optional-prompt-arguments": (
        prompt("review", "code"),
        {"name": "review", "arguments": [{"name": "code", "required": True}]},
        ["the argument code"],
    ),
    "prompt-words": (prompt("review code"), prompt("review-code"), ["the name review code"]),
    "resource-words": (
        {"uri": "menu://today", "name": "menu of today"},
        {"uri": "menu://today", "name": "menu-of-today"},
        ["the name menu of today"],
    ),
    "resource-uri": (
        {"uri": "my_orders://open"},
        {"uri": "my-orders://open"},
        ["the URI: Input should be a valid URL, relative URL without a base"],
    ),
}


def test_each_rule_has_a_case() -> None:
    assert list(CASES) == [rule.word for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.word)
def test_a_rule_finds_what_breaks_it_and_not_its_neighbour(rule: Rule) -> None:
    broken, accepted, places = CASES[rule.word]
    found = [problem for problem in problems(rule.kind, as_list(broken)) if problem.rule is rule]
    assert {problem.kind for problem in found} == {rule.kind}
    assert [place for problem in found for place in problem.places] == places
    assert not [found for found in problems(rule.kind, as_list(accepted)) if found.rule is rule]


def as_list(definitions: Any) -> list[dict[str, Any]]:
    return definitions if isinstance(definitions, list) else [definitions]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.word)
def test_a_row_is_complete(rule: Rule) -> None:
    assert re.fullmatch("[a-z]+(-[a-z]+)*", rule.word)
    assert rule.loss in LOSSES
    assert rule.kind in get_args(Kind)
    assert rule.clients
    assert rule.seen
    assert not re.search(r"\{[a-z]+\}", rule.accepts)  # an option that the row does not have
    for sentences in (rule.accepts, rule.effect, rule.advice):
        assert sentences.endswith(".")
        assert "|" not in sentences
    assert rule.sources
    assert all(source.startswith("https://") for source in rule.sources)


def test_each_check_belongs_to_a_rule() -> None:
    functions = {
        function
        for name, function in vars(checks).items()
        if inspect.isfunction(function) and function.__module__ == checks.__name__ and not name.startswith("_")
    }
    assert functions == {rule.check.func for rule in RULES if isinstance(rule.check, partial)}


def test_a_number_stands_in_the_options_of_a_row_only() -> None:
    (rule,) = [rule for rule in RULES if rule.word == "many-tools"]
    assert "up to 128 tools" in rule.accepts
    assert list(rule.check(Subject("server", "Kitchen", {"tools": [{}] * 128}, "Kitchen"))) == []

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from funcmcp import MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.client_rules.problems import left_out_of, problems_in, problems_of
from funcmcp_cli.faults import Fault
from tests.cli.client_rules.test_rules import tool

FLAGGED = Annotated[str, Field(pattern=r"\b{start}a")]
DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {
        "/dishes": {
            "get": {
                "operationId": "dishes",
                "description": "List dishes.",
                "parameters": [{"name": "code", "in": "query", "schema": {"type": "string", "format": "code"}}],
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {"a": {"pattern": "(?x)a", "type": "string"}},
                                }
                            }
                        }
                    }
                },
            },
            "post": {
                "operationId": "count",
                "responses": {"200": {"content": {"application/json": {"schema": {"type": "string", "format": "x"}}}}},
            },
        }
    },
}


class Dish(BaseModel):
    code: FLAGGED


def paths_of(server: MCPServer) -> dict[str, list[str]]:
    left_out = left_out_of(runtime_of(server).server.catalog.tools, [])
    return {name: ["/".join(map(str, item.path)) for item in items] for name, items in left_out.items()}


def test_what_generated_schemas_leave_out_is_known_for_tools_of_all_kinds() -> None:
    mcp, other = MCPServer("Kitchen"), MCPServer("Bar")

    class Tools:
        @mcp.tool
        @staticmethod
        def plain(code: FLAGGED) -> Dish:
            raise NotImplementedError

    @other.tool
    def drink(code: FLAGGED) -> str:
        raise NotImplementedError

    @mcp.tool(input_schema={"type": "object", "properties": {"a": {"type": "string", "pattern": "(?i)a"}}})
    def by_hand(a: FLAGGED) -> str:
        raise NotImplementedError

    async def application(*_: object) -> None:
        raise NotImplementedError

    mcp.tools_from_asgi(application, DOCUMENT)
    mcp.mount(other, prefix="bar")
    assert paths_of(mcp) == {
        "plain": ["inputSchema/properties/code/pattern", "outputSchema/properties/code/pattern"],
        "by_hand": [],
        "dishes": ["inputSchema/properties/code/format", "outputSchema/properties/a/pattern"],
        "count": [],
        "bar_drink": ["inputSchema/properties/code/pattern"],
    }


def test_tools_that_cannot_be_described_are_left_out() -> None:
    mcp = MCPServer("Kitchen")

    @mcp.tool
    def order(table: complex) -> str:
        """Order."""
        raise NotImplementedError

    tools = runtime_of(mcp).server.catalog.tools
    assert left_out_of(tools, [Fault("tool", "order", "no schema")]) == {}
    assert problems_in(runtime_of(mcp).server, mcp.name) == []


def test_the_features_of_a_server_in_this_process_need_no_request() -> None:
    mcp = MCPServer("Kitchen")

    @mcp.tool("order.all")
    def order(code: FLAGGED) -> str:
        """Order."""
        raise NotImplementedError

    @mcp.prompt
    def suggest(taste: str, guests: str) -> str:
        raise NotImplementedError

    @mcp.resource("menu://today")
    def today() -> str:
        raise NotImplementedError

    problems = problems_in(runtime_of(mcp).server, mcp.name)
    assert [(problem.kind, problem.key, problem.rule.word) for problem in problems] == [
        ("tool", "order.all", "name-characters"),
        ("tool", "order.all", "left-out"),
        ("prompt", "suggest", "prompt-arguments"),
    ]


def circle() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    schema["anyOf"] = [schema, schema]
    return schema


HOSTILE = {
    "circle": circle(),
    "references": {"$defs": {str(n): {"$ref": f"#/$defs/{(n + 1) % 9000}"} for n in range(9000)}},
    "pointer": {"$ref": "#/%ZZ/~2"},
    "enum": {"properties": {"a": {"enum": list(range(200_000))}}},
    "wrong types": {
        "properties": {"a": {"enum": {}, "type": {}, "format": [], "pattern": 5, "$ref": [], "required": 5}, "b": 7},
        "required": {"a": 1},
        "patternProperties": {"(": 1, "x": {"pattern": None}},
        "anyOf": {"oneOf": []},
        "$defs": [],
    },
    "no text": {"properties": {5: {"description": b"bytes"}, b"key": {"enum": [b"a", {1}, float("nan")]}}},
    "number": 5,
    "pattern": {"properties": {"a": {"pattern": "(" * 50_000}, "b": {"pattern": "a{" + "9" * 50_000 + ",1}"}}},
    "long name": {"properties": {"x" * 1_000_000: {}}},
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_hostile_schemas_have_problems_and_no_more(schema: Any) -> None:
    facts = {"server": {"name": "x"}, "tools": [tool(inputSchema=schema, outputSchema=schema)], "prompts": []}
    problems = problems_of(facts, {})
    assert problems
    assert len(json.dumps([problem.as_json() for problem in problems])) < 300_000


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"server": 5, "tools": 5, "resources": None, "prompts": {}},
        {
            "server": {"name": None},
            "tools": [5, {}, {"name": 7, "description": []}],
            "prompts": [{"arguments": 5}, None],
        },
        {"server": {}, "resources": [{"uri": 5}, {"uri": "\ud800"}, {"uri": "http://[::"}]},
    ],
)
def test_hostile_lists_do_not_fail(facts: Any) -> None:
    problems_of(facts, {})

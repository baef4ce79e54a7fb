"""Texts of definitions, results of a limited size, and hints; tests/app/test_tool_search.py has the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.tool_search import (
    MAX_DESCRIPTION,
    NO_HINTS,
    Hints,
    SearchedTools,
    SearchOptions,
    ToolSearch,
    shortened,
    texts_of,
    within_characters,
)
from tests.server.parts import answer, context, server, tool

pytestmark = pytest.mark.branches("Definitions of any form.")

OPTIONS = SearchOptions("search_tools", "call_tool", frozenset(), frozenset(), 5, 12_000, frozenset())
SAFE = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
SCHEMA = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "object", "description": "Long text.", "properties": {"b": {"type": "string", "title": "B"}}},
        "description": {"enum": ["description"], "const": {"title": "kept"}},
        "any": True,
    },
    "allOf": [{"title": "T", "minProperties": 1}],
}


def definition(name: str = "add", **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": SCHEMA, "outputSchema": {}, **members}


def test_all_texts_of_a_definition_are_read() -> None:
    schema = {
        "properties": {
            "a": {"description": "text of a", "enum": ["x", 1, None]},
            "b": {"items": {"properties": {"c": {"anyOf": [{"enum": ["y"]}, {"$ref": "#/$defs/D"}]}}}},
            "odd": 1,
            "e": {"enum": "not a list", "description": 5, "properties": [], "oneOf": {}},
        },
        "additionalProperties": {"properties": {"f": {}}},
        "$defs": {"D": {"properties": {"g": {"enum": ["z"]}}}},
    }
    texts = [text for text, _ in texts_of(definition(title="T", description="D", inputSchema=schema), ["tag"])]
    assert texts[:4] == ["add", "T", "D", "tag"]
    assert sorted(texts[4:]) == sorted(["a", "text of a", "b", "odd", "e", "x", "c", "y", "g", "z", "f"])


@pytest.mark.parametrize("schema", [None, [], True, {"properties": {"a": {"properties": []}}}])
def test_a_schema_of_another_form_has_no_texts(schema: Any) -> None:
    texts = [text for text, _ in texts_of({"name": "add", "title": 5, "inputSchema": schema}, [])]
    assert texts in (["add"], ["add", "a"])


def test_a_schema_that_is_nested_without_end_is_read_to_a_depth() -> None:
    schema: dict[str, Any] = {}
    schema["properties"] = {"again": schema}
    assert len(list(texts_of(definition(inputSchema=schema), []))) == 7


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("one two", 7, "one two"),
        ("one two three", 11, "one two..."),
        ("one two three", 10, "one two..."),
        ("abcdefghijklm", 10, "abcdefg..."),
        ("a bcdefghijklm", 10, "a bcdef..."),
    ],
)
def test_a_long_text_ends_after_a_word(text: str, limit: int, expected: str) -> None:
    assert shortened(text, limit) == expected


def test_a_definition_that_fits_is_complete() -> None:
    result = within_characters([definition(title="T", description="D", annotations={"readOnlyHint": True})], 5_000)
    assert result == {
        "tools": [
            {
                "name": "add",
                "inputSchema": SCHEMA,
                "title": "T",
                "description": "D",
                "annotations": {"readOnlyHint": True},
            }
        ]
    }


def test_texts_of_a_schema_are_left_out_first() -> None:
    complete = len(json.dumps(within_characters([definition()], 5_000), separators=(",", ":")))
    schema = within_characters([definition()], complete + 50)["tools"][0]["inputSchema"]
    assert schema["properties"]["a"] == {"type": "object", "properties": {"b": {"type": "string"}}}
    assert schema["properties"]["description"] == {"enum": ["description"], "const": {"title": "kept"}}
    assert schema["allOf"] == [{"minProperties": 1}]


def test_then_what_is_below_the_first_level_is_left_out() -> None:
    schema = within_characters([definition()], 330)["tools"][0]["inputSchema"]
    assert schema == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "object"}, "description": {"enum": ["description"]}, "any": True},
    }


def test_then_the_description_is_shortened_and_the_schema_left_out() -> None:
    result = within_characters([definition(description="word " * 1000)], 500)
    assert len(result["tools"][0]["description"]) <= MAX_DESCRIPTION // 5
    result = within_characters([definition(description="word " * 1000)], 400)
    assert "inputSchema" not in result["tools"][0]
    assert result["hint"]


def test_at_last_tools_at_the_end_are_left_out() -> None:
    result = within_characters([definition(f"tool_{number}") for number in range(50)], 1_000)
    assert 10 < len(result["tools"]) < 50
    assert len(json.dumps(result, separators=(",", ":"))) <= 1_000


def test_a_schema_that_is_no_object_is_left_as_it_is() -> None:
    assert within_characters([{"name": "a", "inputSchema": True}], 200)["tools"][0]["inputSchema"] is True


def test_hints_without_annotations_are_the_defaults_of_the_specification() -> None:
    assert Hints.of({}) == NO_HINTS
    assert Hints.of({"readOnlyHint": True}) == SAFE._replace(open_world=True)
    assert Hints.of({"readOnlyHint": 1, "destructiveHint": 0}) == NO_HINTS


async def test_annotations_that_only_the_definition_has_count() -> None:
    served = server(tool("plain"))
    search = ToolSearch(served.catalog, None, OPTIONS)
    search.start()
    assert search.hints() == NO_HINTS
    served.catalog.remove(tool("plain"))
    safe = {"name": "safe", "inputSchema": {}, "annotations": {"readOnlyHint": True, "openWorldHint": False}}
    served.catalog.add(tool("safe").__class__("safe", lambda: safe, tool("safe").handler))
    assert search.hints() == SAFE


def broken() -> dict[str, Any]:
    raise LookupError("no schema")


def refused() -> dict[str, Any]:
    raise RegistrationError("It has no schema.")


@pytest.mark.parametrize("describe", [broken, refused])
async def test_a_tool_without_a_definition_is_not_found(describe: Any, caplog: pytest.LogCaptureFixture) -> None:
    served = server(tool("plain"))
    search = ToolSearch(served.catalog, None, OPTIONS)
    search.start()
    served.catalog.add(tool("plain").__class__("broken_1", describe, tool("plain").handler))
    assert search.hints() == NO_HINTS
    assert [found.name for found in await search.search(context("tools/call"), "broken_1 plain")] == ["plain"]
    assert "left out of search_tools" in caplog.text
    served.catalog.remove(tool("broken_1"))
    assert [found.name for found in await search.search(context("tools/call"), "broken_1 plain")] == ["plain"]


async def test_many_tools_are_read_in_turns() -> None:
    served = server(*(tool(f"get_{number}") for number in range(40)))
    search = ToolSearch(served.catalog, None, OPTIONS)
    search.start()
    assert len(await search.search(context("tools/call"), "get")) == 5


async def test_a_list_without_the_two_tools_has_the_pinned_ones() -> None:
    served = server(tool("a"), tool("b"))
    options = OPTIONS._replace(always_visible=frozenset({"a"}))
    search = ToolSearch(served.catalog, None, options)
    search.start()
    served.routes.add_tool_search(search)
    assert isinstance(served.routes.lists["tools/list"], SearchedTools)
    listed = await answer(served, context("tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["a"]
    assert [tool.name for tool in served.routes.lists["tools/list"].shown()] == ["a"]

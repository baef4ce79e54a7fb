"""Differences between the descriptions of two servers."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp_cli.diff.compare import differences

SERVER: dict[str, Any] = {
    "server": {"name": "Shop", "version": "1"},
    "revision": "2025-11-25",
    "capabilities": {"tools": {}, "resources": {"subscribe": True}, "logging": {}},
    "instructions": "Be kind.",
    "tools": [{"name": "add", "description": "Add.", "inputSchema": {"type": "object"},
               "annotations": {"readOnlyHint": True}}],
    "resources": [{"uri": "a://b", "name": "b", "mimeType": "text/plain"}],
    "resourceTemplates": [{"uriTemplate": "a://{x}", "name": "x"}],
    "prompts": [{"name": "ask", "arguments": [{"name": "topic", "description": "What?", "required": True}]}],
}  # fmt: skip


def items(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(item.level, item.subject, item.text) for item in differences(old, new)]


def test_equal_servers_have_no_differences() -> None:
    assert items(SERVER, {**SERVER}) == []


def test_an_empty_description_is_none() -> None:
    [tool] = SERVER["tools"]
    empty = {**SERVER, "tools": [{**tool, "description": ""}]}
    absent = {**SERVER, "tools": [{name: value for name, value in tool.items() if name != "description"}]}
    assert items(empty, absent) == items(absent, empty) == []


def test_features_come_and_go() -> None:
    empty = {**SERVER, "tools": [], "resources": [], "resourceTemplates": [], "prompts": []}
    subjects = ["tool add", "resource a://b", "template a://{x}", "prompt ask"]
    assert items(SERVER, empty) == [("breaking", subject, "removed") for subject in subjects]
    assert items(empty, SERVER) == [("compatible", subject, "new") for subject in subjects]


def test_the_server_itself() -> None:
    other = {
        **SERVER,
        "server": {"name": "Shop", "version": "2"},
        "instructions": None,
        "capabilities": {"tools": {}, "resources": {}, "completions": {}},
    }
    assert items(SERVER, other) == [
        ("wording", "server", 'version changed from "1" to "2"'),
        ("wording", "server", 'instructions is missing; it was "Be kind."'),
        ("compatible", "server", "the capability completions is new"),
        ("breaking", "server", "the capability logging is missing"),
        ("breaking", "server", "the capability resources.subscribe is missing"),
    ]
    newer = {**other, "revision": "2026-07-28"}
    assert [item for item in items(SERVER, newer) if item[0] == "breaking"] == []


def test_members_of_a_tool() -> None:
    tool = {
        "name": "add",
        "description": "Add!",
        "inputSchema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        "annotations": {"readOnlyHint": False, "title": "Add"},
        "execution": {"taskSupport": "required"},
        "icons": [],
    }
    assert items(SERVER, {**SERVER, "tools": [tool]}) == [
        ("wording", "tool add", 'description changed from "Add." to "Add!"'),
        ("breaking", "tool add", "argument a: new and required"),
        ("compatible", "tool add", "annotation readOnlyHint changed from true to false"),
        ("wording", "tool add", 'annotation title is new: "Add"'),
        ("breaking", "tool add", 'taskSupport changed from "forbidden" to "required"'),
        ("compatible", "tool add", "icons is new: []"),
    ]


def test_resources_and_prompts() -> None:
    other = {
        **SERVER,
        "resources": [{"uri": "a://b", "name": "b", "mimeType": "text/html"}],
        "prompts": [{"name": "ask", "arguments": [{"name": "topic"}, {"name": "tone", "required": True}]}],
    }
    assert items(SERVER, other) == [
        ("breaking", "resource a://b", 'mimeType changed from "text/plain" to "text/html"'),
        ("compatible", "prompt ask", "argument topic: no longer required"),
        ("wording", "prompt ask", 'argument topic: description is missing; it was "What?"'),
        ("breaking", "prompt ask", "argument tone: new and required"),
    ]


def outcome(result: dict[str, Any] | None = None, error: dict[str, Any] | None = None) -> dict[str, Any]:
    outcome = {"result": result} if error is None else {"error": error}
    return {**SERVER, "calls": [{"tool": "add", "arguments": {"a": 1}, **outcome}]}


TEXT = {"content": [{"type": "text", "text": '{"a": 1}'}]}


@pytest.mark.parametrize(
    ("old", "new", "levels"),
    [
        (outcome(TEXT), outcome({**TEXT, "resultType": "complete", "isError": False, "_meta": {"x": 1}}), []),
        (outcome(TEXT), outcome({"content": [{"type": "text", "text": '{"a":1}'}]}), []),
        (outcome(TEXT), outcome({"content": [{"type": "text", "text": "other"}]}), ["breaking"]),
        (outcome(TEXT), outcome({**TEXT, "structuredContent": {"a": 1}}), ["compatible"]),
        (outcome({**TEXT, "structuredContent": {"a": 1}}), outcome(TEXT), ["breaking"]),
        (outcome(TEXT), outcome({**TEXT, "isError": True}), ["breaking"]),
        (outcome({**TEXT, "isError": True}), outcome({"content": [], "isError": True}), ["wording"]),
        (outcome(TEXT), outcome(error={"code": -32602, "message": "no"}), ["breaking"]),
        (outcome(error={"code": 1, "message": "a"}), outcome(error={"code": 1, "message": "a"}), []),
        (outcome(error={"code": 1, "message": "a"}), outcome(error={"code": 1, "message": "b"}), ["wording"]),
        (outcome(error={"code": 1, "message": "a"}), outcome(error={"code": 2, "message": "a"}), ["breaking"]),
    ],
)
def test_results_of_calls(old: dict[str, Any], new: dict[str, Any], levels: list[str]) -> None:
    result = items(old, new)
    assert [level for level, _, _ in result] == levels
    assert {subject for _, subject, _ in result} <= {'call add {"a": 1}'}


def test_a_saved_file_with_values_of_other_types_is_no_error() -> None:
    differences({"tools": [1, {"name": "add"}]}, {"tools": None, "server": 3, "capabilities": [], "calls": [{}]})

"""The shapes of results that authors write as dicts."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.methods import METHODS
from funcmcp._protocol.result_shapes import RESULT_SHAPES, shape_error

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

TEXT = {"type": "text", "text": "a"}
TOOL = {"name": "add", "inputSchema": {"type": "object"}}
CONTENTS = {"uri": "a://b", "text": "a"}

RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"content": []}),
    ("tools/call", {"content": [TEXT], "isError": True, "_meta": {}}),
    ("tools/call", {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": {}}]}),
    ("tools/call", {"content": [{"type": "resource", "resource": CONTENTS}]}),
    ("tools/call", {"content": [{"type": "resource_link", "uri": "a://b", "name": "b"}]}),
    ("tools/list", {"tools": [TOOL], "nextCursor": "a"}),
    ("resources/read", {"contents": [CONTENTS, {"uri": "a://c", "blob": "aGk="}]}),
    ("prompts/get", {"messages": [{"role": "user", "content": TEXT}]}),
    ("completion/complete", {"completion": {"values": ["a"] * 100}}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}),
    ("made/up", {"anything": 1}),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {}, "content is missing"),
    ("tools/call", {"content": "text"}, "content must be a list, not a string"),
    ("tools/call", {"content": ["plain"]}, "content[0] must be a content block as an object, not a string"),
    (
        "tools/call",
        {"content": [TEXT, {"text": "a"}]},
        "content[1].type must be one of text, image, audio, resource_link, resource, not None",
    ),
    ("tools/call", {"content": [{"type": "text"}]}, "content[0].text is missing"),
    ("tools/call", {"content": [{"type": "text", "text": 5}]}, "content[0].text must be a string, not a number"),
    (
        "tools/call",
        {"content": [{**TEXT, "annotations": []}]},
        "content[0].annotations must be an object, not a list",
    ),
    (
        "tools/call",
        {"content": [{"type": "resource", "resource": {"uri": "a://b"}}]},
        "content[0].resource must have either text or blob",
    ),
    (
        "tools/call",
        {"content": [{"type": "resource", "resource": None}]},
        "content[0].resource must be the contents of a resource as an object, not null",
    ),
    ("tools/call", {"content": [], "isError": 1}, "isError must be a boolean, not a number"),
    ("tools/call", {"content": [], "_meta": set()}, "_meta must be an object, not an object of the class set"),
    ("tools/list", {"tools": {}}, "tools must be a list, not an object"),
    ("tools/list", {"tools": ["add"]}, "tools[0] must be an object, not a string"),
    ("tools/list", {"tools": [{"name": "add"}]}, "tools[0].inputSchema is missing"),
    ("tools/list", {"tools": [], "nextCursor": 5}, "nextCursor must be a string, not a number"),
    ("resources/read", {"contents": [{"text": "a"}]}, "contents[0].uri is missing"),
    (
        "resources/read",
        {"contents": [{**CONTENTS, "text": b""}]},
        "contents[0].text must be a string, not an object of the class bytes",
    ),
    (
        "prompts/get",
        {"messages": [{"role": "system", "content": TEXT}]},
        "messages[0].role must be user or assistant, not 'system'",
    ),
    (
        "completion/complete",
        {"completion": {"values": ["a"] * 101}},
        "completion.values must have at most 100 items, not 101",
    ),
    ("completion/complete", {"completion": {"values": [True]}}, "completion.values[0] must be a string, not a boolean"),
    ("made/up", {"_meta": []}, "_meta must be an object, not a list"),
]


@pytest.mark.parametrize(("method", "result"), RIGHT)
def test_a_result_with_the_required_members_is_right(method: str, result: dict[str, Any]) -> None:
    assert shape_error(method, result) is None


@pytest.mark.parametrize(("method", "result", "error"), WRONG)
def test_the_error_names_the_member_and_what_it_must_be(method: str, result: dict[str, Any], error: str) -> None:
    assert shape_error(method, result) == error


def test_each_shape_is_that_of_a_method() -> None:
    assert RESULT_SHAPES.keys() <= METHODS.keys()

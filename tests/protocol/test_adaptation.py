"""Definitions and results cut to what a revision allows."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol import adaptation
from funcmcp._protocol.revisions import REVISIONS
from tests import schemas
from tests.protocol import official

INFO = {
    "name": "orders",
    "version": "1.0.0",
    "title": "Orders",
    "description": "Takes orders",
    "icons": [{"src": "https://example.com/icon.png"}],
    "websiteUrl": "https://example.com",
}
TOOL: dict[str, Any] = {
    "name": "add",
    "title": "Add",
    "description": "Add two numbers",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "https://example.com/icon.png"}],
    "execution": {"taskSupport": "optional"},
    "_meta": {"example.com/a": 1},
}
TEXT = {"type": "text", "text": "hello"}
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "menu://pizza", "name": "pizza"}
BLOCKS: list[dict[str, Any]] = [
    TEXT,
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    AUDIO,
    LINK,
    {"type": "resource", "resource": {"uri": "menu://pizza", "text": "Pizza"}},
]


def answer(result: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return a whole answer, with what dispatch adds in the newest revision."""
    if revision == schemas.PER_REQUEST_REVISION:
        result = {"resultType": "complete", **result}
    return {"jsonrpc": "2.0", "id": 1, "result": result}


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_server_info_is_valid_in_every_revision(date: str) -> None:
    info = adaptation.implementation(INFO, REVISIONS[date])
    schemas.validate_as(info, date, "Implementation")
    assert set(info) == REVISIONS[date].info_fields


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_a_tools_description_is_valid_in_every_revision(date: str) -> None:
    shaped = adaptation.tool_definition(TOOL, REVISIONS[date])
    schemas.validate_as(shaped, date, "Tool")
    assert set(shaped) == REVISIONS[date].tool_fields


@pytest.mark.parametrize("schema", [{"type": "array", "items": {}}, {"anyOf": [{"type": "object"}]}])
def test_an_output_schema_that_is_no_object_is_kept_from_revisions_that_take_only_objects(schema: Any) -> None:
    definition = {**TOOL, "outputSchema": schema}
    assert "outputSchema" not in adaptation.tool_definition(definition, REVISIONS["2025-11-25"])
    assert "outputSchema" not in adaptation.tool_definition(definition, REVISIONS["2025-06-18"])
    assert adaptation.tool_definition(definition, REVISIONS["2026-07-28"])["outputSchema"] == schema


def test_shaping_leaves_the_definition_as_it_was() -> None:
    before = dict(TOOL)
    adaptation.tool_definition(TOOL, REVISIONS["2024-11-05"])
    assert before == TOOL


@pytest.mark.parametrize("structured", [{"sum": 3}, [1, 2], "three", None])
@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_a_result_is_valid_in_every_revision(date: str, structured: Any) -> None:
    result = {"content": BLOCKS, "structuredContent": structured, "isError": False}
    shaped = adaptation.tool_result(result, REVISIONS[date])
    schemas.validate(answer(shaped, date), date, "tools/call")
    assert len(shaped["content"]) == len(BLOCKS)


@pytest.mark.parametrize(
    ("date", "structured", "sent"),
    [
        ("2024-11-05", {"a": 1}, False),
        ("2025-03-26", {"a": 1}, False),
        ("2025-06-18", {"a": 1}, True),
        ("2025-11-25", {"a": 1}, True),
        ("2025-11-25", [1], False),
        ("2026-07-28", [1], True),
    ],
)
def test_structured_content_goes_only_where_the_revision_takes_it(date: str, structured: Any, sent: bool) -> None:
    result = {"content": [TEXT], "structuredContent": structured}
    assert ("structuredContent" in adaptation.tool_result(result, REVISIONS[date])) == sent


def test_content_that_a_revision_does_not_know_is_told_in_words() -> None:
    result = adaptation.tool_result(
        {"content": [TEXT, AUDIO, LINK, {**LINK, "title": "Pizza"}]}, REVISIONS["2024-11-05"]
    )
    texts = [block["text"] for block in result["content"]]
    assert texts == [
        "hello",
        "[audio content, which this protocol revision does not support]",
        "pizza: menu://pizza",
        "Pizza: menu://pizza",
    ]


def test_a_result_that_fits_is_passed_on_as_it_is() -> None:
    result = {"content": [TEXT]}
    assert adaptation.tool_result(result, REVISIONS["2024-11-05"]) is result


RESOURCE: dict[str, Any] = {
    "uri": "menu://today",
    "name": "today",
    "title": "Today",
    "description": "What there is today",
    "mimeType": "text/plain",
    "size": 4,
    "annotations": {"audience": ["user"], "priority": 1},
    "icons": [{"src": "https://example.com/icon.png"}],
    "_meta": {"example.com/a": 1},
}
TEMPLATE: dict[str, Any] = {
    **{name: value for name, value in RESOURCE.items() if name not in {"uri", "size"}},
    "uriTemplate": "menu://{day}",
}
PROMPT: dict[str, Any] = {
    "name": "greet",
    "title": "Greet",
    "description": "Greets",
    "arguments": [{"name": "who", "title": "Who", "description": "Whom to greet", "required": True}],
    "icons": [{"src": "https://example.com/icon.png"}],
    "_meta": {"example.com/a": 1},
}


@pytest.mark.parametrize("date", schemas.REVISIONS)
@pytest.mark.parametrize(
    ("kind", "definition"), [("Resource", RESOURCE), ("ResourceTemplate", TEMPLATE), ("Prompt", PROMPT)]
)
def test_a_definition_has_exactly_the_members_that_its_revision_defines(
    date: str, kind: str, definition: dict[str, Any]
) -> None:
    shaped = adaptation.definition(definition, REVISIONS[date])
    schemas.validate_as(shaped, date, kind)
    defined = official.definitions(date)
    assert shaped.keys() == definition.keys() & defined[kind]["properties"].keys()
    for argument in shaped.get("arguments", ()):
        assert argument.keys() == PROMPT["arguments"][0].keys() & defined["PromptArgument"]["properties"].keys()


def test_shaping_a_definition_leaves_it_as_it_was() -> None:
    before = repr(PROMPT)
    adaptation.definition(PROMPT, REVISIONS["2024-11-05"])
    assert repr(PROMPT) == before


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_a_prompts_messages_have_only_content_that_the_revision_knows(date: str) -> None:
    result: dict[str, Any] = {
        "description": "All",
        "messages": [{"role": "user", "content": block} for block in BLOCKS],
    }
    shaped = adaptation.prompt_result(result, REVISIONS[date])
    complete = {"resultType": "complete"} if REVISIONS[date].per_request else {}
    schemas.validate_as({**shaped, **complete}, date, "GetPromptResult")
    kinds = [message["content"]["type"] for message in shaped["messages"]]
    assert set(kinds) <= REVISIONS[date].content_types
    for block, message in zip(BLOCKS, shaped["messages"], strict=True):
        assert (message["content"] == block) == (block["type"] in REVISIONS[date].content_types)


def test_boolean_schemas_of_properties_are_objects_in_the_handshake_era() -> None:
    schema = {"type": "object", "properties": {"any": True, "none": False, "text": {"type": "string"}}}
    tool = {"name": "it", "inputSchema": schema}
    properties = adaptation.tool_definition(tool, REVISIONS["2025-11-25"])["inputSchema"]["properties"]
    assert properties == {"any": {}, "none": {"not": {}}, "text": {"type": "string"}}
    assert adaptation.tool_definition(tool, REVISIONS["2026-07-28"])["inputSchema"] == schema

"""The schema checks themselves: official examples pass, known faults are caught."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import schemas

RESULT_TYPED: dict[str, Any] = {"resultType": "complete"}


_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OWN_EXAMPLES: list[tuple[str, Any]] = [
    ("TextContent", {"type": "text", "text": "x"}),
    ("ResourceLink", {"type": "resource_link", "uri": "menu://today", "name": "menu"}),
    ("Tool", {"name": "add", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}),
    ("ListToolsResult", {**RESULT_TYPED, "tools": [], "ttlMs": 0, "cacheScope": "public"}),
    ("CallToolResult", {**RESULT_TYPED, "content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}),
    (
        "CallToolRequest",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {}, "_meta": _META}},
    ),
    ("MethodNotFoundError", {"code": -32601, "message": "m"}),
]
"""Definitions of 2026-07-28, each with a value; beside the official examples, which no package has."""


def _examples() -> list[Any]:
    files = sorted((schemas.PLACE / "2026-07-28" / "examples").rglob("*.json"))
    official = [(path.parent.name, json.loads(path.read_text(encoding="utf-8")), path.stem) for path in files]
    examples = [(name, value, "our own") for name, value in OWN_EXAMPLES]
    return [pytest.param(name, value, id=f"{name}/{title}") for name, value, title in (*official, *examples)]


def _result(result: object, request_id: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _error(code: int, **members: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", **members}}


@pytest.mark.parametrize(("name", "value"), _examples())
def test_an_example_is_valid(name: str, value: Any) -> None:
    schemas.validate_as(value, "2026-07-28", name)
    if isinstance(value, dict) and "jsonrpc" in value:
        schemas.validate(value, "2026-07-28")


@pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
def test_an_initialize_result_is_valid_in_every_handshake_revision(revision: str) -> None:
    result = {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    schemas.validate(_result(result), revision, "initialize")


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_request_is_checked_by_its_method(revision: str) -> None:
    with pytest.raises(AssertionError, match="CallToolRequest"):
        schemas.validate({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}, revision)


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_notification_is_checked_by_its_method(revision: str) -> None:
    with pytest.raises(AssertionError, match="ProgressNotification"):
        schemas.validate({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}, revision)


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_result_is_checked_by_the_method_it_answers(revision: str) -> None:
    answer = _result({**RESULT_TYPED, "content": [{"type": "text"}]})
    schemas.validate(answer, revision)
    with pytest.raises(AssertionError, match="CallToolResult"):
        schemas.validate(answer, revision, "tools/call")


def test_a_result_without_result_type_is_refused_at_2026_07_28() -> None:
    with pytest.raises(AssertionError, match="resultType"):
        schemas.validate(_result({"content": []}), "2026-07-28", "tools/call")


@pytest.mark.parametrize("missing", ["ttlMs", "cacheScope"])
def test_a_list_without_cache_hints_is_refused_at_2026_07_28(missing: str) -> None:
    complete = {**RESULT_TYPED, "tools": [], "ttlMs": 0, "cacheScope": "public"}
    schemas.validate(_result(complete), "2026-07-28", "tools/list")
    del complete[missing]
    with pytest.raises(AssertionError, match=missing):
        schemas.validate(_result(complete), "2026-07-28", "tools/list")


@pytest.mark.parametrize("revision", schemas.REVISIONS)
@pytest.mark.parametrize("request_id", [None, 1.5, True])
def test_an_error_whose_id_is_no_string_or_integer_is_refused(revision: str, request_id: object) -> None:
    with pytest.raises(AssertionError):
        schemas.validate({**_error(-32700), "id": request_id}, revision)


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_an_error_that_omits_its_id_is_valid(revision: str) -> None:
    schemas.validate({"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}}, revision)


def test_an_unsupported_version_error_needs_its_data() -> None:
    schemas.validate(_error(-32022, data={"supported": ["2026-07-28"], "requested": "x"}), "2026-07-28")
    with pytest.raises(AssertionError, match="UnsupportedProtocolVersionError"):
        schemas.validate(_error(-32022), "2026-07-28")


@pytest.mark.parametrize("code", [-32002, -32042, -32023, -32001])
def test_error_codes_that_2026_07_28_does_not_define_are_refused(code: int) -> None:
    with pytest.raises(AssertionError, match="does not define"):
        schemas.validate(_error(code), "2026-07-28")


def test_structured_content_that_is_a_list_is_refused_at_2025_11_25_and_right_at_2026_07_28() -> None:
    answer = _result({**RESULT_TYPED, "content": [], "structuredContent": [1]})
    schemas.validate(answer, "2026-07-28", "tools/call")
    with pytest.raises(AssertionError, match="structuredContent"):
        schemas.validate(answer, "2025-11-25", "tools/call")


def test_audio_is_refused_at_2024_11_05_and_right_from_2025_03_26() -> None:
    answer = _result({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]})
    schemas.validate(answer, "2025-03-26", "tools/call")
    with pytest.raises(AssertionError):
        schemas.validate(answer, "2024-11-05", "tools/call")


@pytest.mark.parametrize("revision", [r for r in schemas.REVISIONS if r != "2025-03-26"])
def test_a_batch_is_refused_in_every_revision_but_2025_03_26(revision: str) -> None:
    schemas.validate([_result({}), _error(-32601)], "2025-03-26")
    with pytest.raises(AssertionError, match="no batches"):
        schemas.validate([_result({})], revision)


def test_a_batch_with_one_wrong_answer_is_refused() -> None:
    with pytest.raises(AssertionError, match="ListToolsResult"):
        schemas.validate([_result({"tools": []}), _result({})], "2025-03-26", "tools/list")


def test_input_required_answers_only_the_methods_that_may_ask() -> None:
    answer = _result({"resultType": "input_required", "requestState": "s"})
    schemas.validate(answer, "2026-07-28", "tools/call")
    with pytest.raises(AssertionError, match="can't be answered"):
        schemas.validate(answer, "2026-07-28", "tools/list")


def test_input_required_needs_requests_or_a_state() -> None:
    with pytest.raises(AssertionError, match="neither"):
        schemas.validate(_result({"resultType": "input_required"}), "2026-07-28", "tools/call")


def test_a_task_is_checked_by_the_schema_of_the_extension() -> None:
    task = {"resultType": "task", "taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": ""}
    schemas.validate(_result({**task, "ttlMs": None}), "2026-07-28", "tools/call")
    with pytest.raises(AssertionError, match="ttlMs"):
        schemas.validate(_result(task), "2026-07-28", "tools/call")


def test_an_unknown_result_type_is_refused() -> None:
    with pytest.raises(AssertionError, match="resultType"):
        schemas.validate(_result({"resultType": "done"}), "2026-07-28")


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_tool_schema_that_is_no_json_schema_is_refused(revision: str) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"minimum": "low"}}}}
    answer = _result({**RESULT_TYPED, "tools": [tool], "ttlMs": 0, "cacheScope": "public"})
    with pytest.raises(AssertionError, match="no JSON Schema"):
        schemas.validate(answer, revision, "tools/list")


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(AssertionError, match="empty"):
        schemas.validate([], "2025-03-26")


@pytest.mark.parametrize("message", ["text", None, 5, [1]])
def test_a_message_that_is_no_object_is_refused(message: object) -> None:
    with pytest.raises(AssertionError, match="must be an object"):
        schemas.validate(message, "2025-03-26")

"""Results that middleware returns in place of a reply."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.completion import Completion
from funcmcp._server.middleware import place_of
from tests import schemas
from tests.server.parts import NEWEST, PER_REQUEST, answer, context, prompt, resource, server, template, tool

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.dispatch import Server
    from funcmcp._server.middleware import CallNext, Middleware

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
CACHED = {"ttlMs", "cacheScope"}
REQUESTS: list[tuple[str, dict[str, Any], Any, set[str]]] = [
    ("tools/call", {"name": "greet"}, {}, set()),
    ("tools/call", {"name": "greet"}, {"structuredContent": {"a": 1}}, set()),
    ("tools/call", {"name": "greet"}, {"isError": True, "structuredContent": None}, set()),
    ("tools/call", {"name": "no tool"}, {"content": [{"type": "text", "text": "a"}]}, set()),
    ("tools/list", {}, {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}, CACHED),
    ("resources/list", {}, {"resources": []}, CACHED),
    ("resources/templates/list", {}, {"resourceTemplates": [{"uriTemplate": "a://{b}", "name": "a"}]}, CACHED),
    ("resources/read", {"uri": "menu://today"}, {"contents": [{"uri": "menu://today", "text": "soup"}]}, CACHED),
    ("prompts/list", {}, {"prompts": [{"name": "hello"}]}, CACHED),
    ("prompts/get", {"name": "hello"}, {"messages": [], "description": None}, set()),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "a", "value": ""}},
        {"completion": {"values": ["b"]}},
        set(),
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "a", "value": ""}},
        Completion(["b"]),
        set(),
    ),
]


def returning(result: Any) -> Middleware:
    async def stand_in(_context: RequestContext, _call_next: CallNext) -> Any:
        return result

    return stand_in


def restaurant(result: Any) -> Server:
    features = (tool("greet"), resource("menu://today"), template("menu://{day}"), prompt("hello", completers=["a"]))
    return server(*features, middleware=[returning(result)])


@EVERY_REVISION
@pytest.mark.parametrize(("method", "params", "result", "added"), REQUESTS)
async def test_the_members_that_the_revision_requires_are_added(
    method: str, params: dict[str, Any], result: Any, added: set[str], revision: str
) -> None:
    sent = (await answer(restaurant(result), context(method, params, revision=revision)))[
        "result"
    ]  # valid by the schema
    expected = {"resultType", *added} if revision == PER_REQUEST else set()
    assert {*CACHED, "resultType"} & sent.keys() == expected
    if added and expected:
        assert sent["cacheScope"] == "private"


async def test_structured_content_alone_has_a_text_of_the_same_json() -> None:
    sent = (await answer(restaurant({"structuredContent": {"a": 1}}), context("tools/call", {"name": "greet"})))[
        "result"
    ]
    assert sent == {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}}


async def test_members_that_a_middleware_has_set_are_kept() -> None:
    result = {"tools": [], "ttlMs": 5, "cacheScope": "public", "_meta": {"a": 1}}
    sent = (await answer(restaurant(result), context("tools/list", revision=PER_REQUEST)))["result"]
    assert (sent["ttlMs"], sent["cacheScope"], sent["_meta"]["a"]) == (5, "public", 1)


async def test_content_that_an_older_revision_lacks_is_text() -> None:
    result = {"content": [{"type": "resource_link", "uri": "a://b", "name": "b"}], "structuredContent": {"a": 1}}
    asked = context("tools/call", {"name": "greet"}, revision="2024-11-05")
    assert (await answer(restaurant(result), asked))["result"] == {"content": [{"type": "text", "text": "b: a://b"}]}


@pytest.mark.parametrize(
    ("method", "result", "revision"),
    [
        ("tools/call", {"resultType": "input_required", "requestState": "a"}, PER_REQUEST),
        ("made/up", {"anything": [1]}, NEWEST),
    ],
)
async def test_questions_and_results_of_custom_methods_pass(method: str, result: Any, revision: str) -> None:
    sent = (await answer(restaurant(result), context(method, {"name": "greet"}, revision=revision)))["result"]
    assert result.items() <= sent.items()


@EVERY_REVISION
@pytest.mark.parametrize(
    ("method", "result", "error"),
    [
        ("tools/call", {"content": "text"}, "content must be a list, not a string."),
        ("tools/call", {"content": [{"type": "text", "text": {1, 2}}]}, "content[0].text must be a string"),
        ("tools/call", {"structuredContent": {"a": object()}}, "object"),
        ("tools/list", {}, "tools is missing."),
        ("tools/call", {"structured_content": {"a": 1}}, "structured_content. Did you mean structuredContent?"),
        ("tools/call", {"content": [], "is_error": True}, "no member is_error. Did you mean isError?"),
        ("tools/call", None, "NoneType is not a result. Return the Reply of call_next, a ToolResult, a content"),
        ("tools/list", None, "NoneType is not a result. Return the Reply of call_next, or a result as a dict."),
        ("prompts/get", Completion([]), "Completion is not a result. Return the Reply of call_next, a PromptResult"),
    ],
)
async def test_a_wrong_result_is_an_error_that_names_the_function(
    method: str, result: Any, error: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "funcmcp"):
        failed = (await answer(restaurant(result), context(method, {"name": "greet"}, revision=revision)))["error"]
    assert (failed["code"], failed["message"]) == (-32603, "Internal error")
    assert f"{place_of(returning(result))} returned a wrong {method} result: " in caplog.text
    assert error in caplog.text


def test_the_place_of_a_function_is_its_file_and_line() -> None:
    class Around:
        async def __call__(self, _context: RequestContext, _call_next: CallNext) -> None:
            return None

    line = Around.__call__.__code__.co_firstlineno
    file = "tests/server/test_middleware_results.py"
    name = "test_the_place_of_a_function_is_its_file_and_line.<locals>.Around"
    assert place_of(Around()) == f"{name} ({file}, line {line})"
    assert place_of(Around.__call__) == f"{name}.__call__ ({file}, line {line})"
    assert place_of(5) == "int"

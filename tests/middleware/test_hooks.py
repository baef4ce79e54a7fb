"""Middleware for calls of tools and for lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.middleware import on_list, on_tool_call
from tests import schemas
from tests.server.parts import PER_REQUEST, answer, context, prompt, resource, server, template, tool

if TYPE_CHECKING:
    from funcmcp.middleware import CallNext, Reply, RequestContext

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
LISTS = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}


async def test_a_hook_for_tool_calls_runs_around_nothing_else() -> None:
    calls: list[tuple[str, Any]] = []

    @on_tool_call
    async def note(context: RequestContext, call_next: CallNext) -> Reply:
        calls.append((context.request.method, context.request.params.get("arguments")))
        return await call_next(context)

    served = server(tool("greet"), middleware=[note])
    await answer(served, context("tools/call", {"name": "greet", "arguments": {"a": 1}}))
    await answer(served, context("tools/call", {"name": "unknown"}))
    await answer(served, context("tools/list"))
    assert calls == [("tools/call", {"a": 1}), ("tools/call", None)]


@EVERY_REVISION
@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_list_is_edited(revision: str, method: str, is_async: bool) -> None:
    member, key = LISTS[method]

    def hide(context: RequestContext, definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert context.request.method == method
        return [definition for definition in definitions if "secret" not in definition[key]]

    async def hide_later(context: RequestContext, definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return hide(context, definitions)

    served = server(
        *(tool(name) for name in ("open", "secret")),
        *(prompt(name) for name in ("open", "secret")),
        *(resource(f"menu://{name}") for name in ("open", "secret")),
        *(template(f"menu://{name}/{{a}}") for name in ("open", "secret")),
        middleware=[on_list(hide_later if is_async else hide)],
    )
    result = (await answer(served, context(method, revision=revision)))["result"]
    [definition] = result[member]
    assert "open" in definition[key]
    assert result.get("cacheScope") == ("private" if revision == PER_REQUEST else None)


async def test_a_list_that_fails_and_other_requests_are_not_edited() -> None:
    def fail(_context: RequestContext, _definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise AssertionError("It was called.")

    served = server(tool("greet"), middleware=[on_list(fail)])
    assert (await answer(served, context("tools/list", {"cursor": 5})))["error"]["code"] == -32602
    assert "result" in await answer(served, context("tools/call", {"name": "greet"}))


@pytest.mark.parametrize("wrong", [None, "abc", [1, None], {"a": 1}])
async def test_a_list_that_is_none_is_an_internal_error(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    served = server(tool("greet"), middleware=[on_list(lambda _context, _definitions: wrong)])
    assert (await answer(served, context("tools/list")))["error"]["code"] == -32603
    assert "must return the list of definitions" in caplog.text

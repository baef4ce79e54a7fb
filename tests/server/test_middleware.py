"""Functions around every request."""

from __future__ import annotations

import logging
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import InvalidParams, ResourceNotFound, ToolError
from funcmcp._server.limits import LimitReachedError
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.middleware import log_requests
from tests import schemas
from tests.server.parts import NEWEST, PER_REQUEST, answer, context, reply_to, resource, server, tool

if TYPE_CHECKING:
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
CALL = ("tools/call", {"name": "greet"})


def noting(name: str, calls: list[str]) -> Middleware:
    async def note(context: RequestContext, call_next: CallNext) -> Reply:
        calls.append(f"{name} before {context.request.method}")
        reply = await call_next(context)
        calls.append(f"{name} after {reply.error}")
        return reply

    return note


def raising(error: BaseException) -> Middleware:
    async def fail(_context: RequestContext, _call_next: CallNext) -> Reply:
        raise error

    return fail


async def test_the_middleware_that_was_added_first_is_the_outermost() -> None:
    calls: list[str] = []
    served = server(tool("greet"), middleware=[noting("a", calls)])
    served.add_middleware(noting("b", calls))
    assert "result" in await answer(served, context(*CALL))
    assert calls == ["a before tools/call", "b before tools/call", "b after None", "a after None"]


async def test_without_middleware_a_request_passes_nothing() -> None:
    served = server(tool("greet"))
    work = served.answer(context(*CALL))
    assert isinstance(work, CoroutineType)
    assert work.__qualname__ == "Server._respond"
    work.close()


@EVERY_REVISION
async def test_every_method_passes_the_middleware(revision: str) -> None:
    calls: list[str] = []
    served = server(tool("greet"), middleware=[noting("a", calls)])
    methods = ["tools/list", "tools/call", "made/up"]
    for method in methods:
        await answer(served, context(method, {"name": "greet"}, revision=revision))
    assert calls[::2] == [f"a before {method}" for method in methods]
    assert calls[1::2] == ["a after None", "a after None", "a after -32601"]


async def test_a_middleware_has_the_feature_and_the_client_at_hand() -> None:
    seen: list[Any] = []

    async def look(context: RequestContext, call_next: CallNext) -> Reply:
        seen.append((context.feature, context.routed.route, context.client.revision.date, context.principal))
        return await call_next(context)

    greet = tool("greet")
    served = server(greet, middleware=[look])
    await answer(served, context(*CALL))
    await answer(served, context("tools/list"))
    await answer(served, context("made/up"))
    assert seen[0][0] is greet
    assert seen[0][1].method == "tools/call"
    assert seen[0][2:] == (NEWEST, None)
    assert seen[1][0] is None
    assert seen[1][1].method == "tools/list"
    assert seen[2][:2] == (None, None)


@EVERY_REVISION
async def test_a_result_in_place_of_the_answer_is_completed_as_the_revision_has_it(revision: str) -> None:
    async def stand_in(_context: RequestContext, _call_next: CallNext) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "closed"}]}

    result = (await answer(server(tool("greet"), middleware=[stand_in]), context(*CALL, revision=revision)))["result"]
    assert result["content"][0]["text"] == "closed"
    assert ("resultType" in result) is (revision == PER_REQUEST)


@EVERY_REVISION
async def test_a_protocol_error_of_a_middleware_is_the_answer(revision: str) -> None:
    served = server(tool("greet"), middleware=[raising(InvalidParams("Not on Sundays."))])
    error = (await answer(served, context(*CALL, revision=revision)))["error"]
    assert error == {"code": -32602, "message": "Not on Sundays."}


@EVERY_REVISION
async def test_a_missing_resource_has_the_code_of_the_revision(revision: str) -> None:
    served = server(resource("menu://today"), middleware=[raising(ResourceNotFound("menu://today"))])
    asked = context("resources/read", {"uri": "menu://today"}, revision=revision)
    assert (await answer(served, asked))["error"]["code"] == (-32602 if revision == PER_REQUEST else -32002)


async def test_a_tool_error_is_a_result_of_a_call_and_an_internal_error_elsewhere() -> None:
    served = server(tool("greet"), middleware=[raising(ToolError("Closed \ud800."))])
    result = (await answer(served, context(*CALL)))["result"]
    assert result == {"content": [{"type": "text", "text": "Closed \ufffd."}], "isError": True}
    assert (await answer(served, context("tools/list")))["error"]["code"] == -32603


@pytest.mark.parametrize("error", [ValueError("password=hunter2"), KeyboardInterrupt("password=hunter2")])
async def test_any_other_exception_is_an_internal_error_that_leaks_nothing(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "funcmcp"):
        failed = (await answer(server(tool("greet"), middleware=[raising(error)]), context(*CALL)))["error"]
    assert (failed["code"], failed["message"]) == (-32603, "Internal error")
    assert "hunter2" not in str(failed)
    assert failed["data"]["errorId"] in caplog.text


@pytest.mark.parametrize("error", [LimitReachedError("Full.", 1), StoreUnavailableError()])
async def test_limits_and_unreachable_stores_pass_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        await reply_to(server(tool("greet"), middleware=[raising(error)]), context(*CALL))


@pytest.mark.parametrize("wrong", [None, b"{}", 5])
async def test_a_middleware_that_returns_nothing_usable_is_an_internal_error(
    wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def forget(_context: RequestContext, call_next: CallNext) -> Any:
        await call_next(_context)
        return wrong

    failed = (await answer(server(tool("greet"), middleware=[forget]), context(*CALL)))["error"]
    assert failed["code"] == -32603
    assert f"{type(wrong).__name__} is not a result. Return the Reply of call_next" in caplog.text


class AsClass:
    """A class in the place of one of its objects."""

    async def __call__(self, context: RequestContext, call_next: CallNext) -> Reply:
        return await call_next(context)


def plain(_context: RequestContext, _call_next: CallNext) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("wrong", [None, 5, "audit", AsClass, plain, log_requests])
def test_what_is_not_an_async_function_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"\(context, call_next\) -> Reply"):
        server().add_middleware(wrong)


async def test_an_object_can_be_middleware() -> None:
    assert "result" in await answer(server(tool("greet"), middleware=[AsClass()]), context(*CALL))

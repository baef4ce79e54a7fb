"""`tools/list` and `tools/call`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import MCPError, ToolError
from funcmcp._server.calls.feature import TimeLimit
from funcmcp._server.catalog.features import JSONResult, Tool
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.handlers.lists import encode_cursor
from tests import schemas
from tests.patience import PATIENCE
from tests.server.parts import (
    ASK_NAME,
    NEWEST,
    PER_REQUEST,
    Recorder,
    answer,
    context,
    reply_to,
    server,
    text_result,
    tool,
)

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.dispatch import Server

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
ADA = {"action": "accept", "content": {"name": "Ada"}}


async def page(served: Server, revision: str = NEWEST, **params: Any) -> dict[str, Any]:
    message = await answer(served, context("tools/list", params, revision=revision))
    result: dict[str, Any] = message["result"]
    return result


def names(result: dict[str, Any]) -> list[str]:
    return [one["name"] for one in result["tools"]]


async def call(served: Server, name: str, revision: str = NEWEST, **more: Any) -> dict[str, Any]:
    """Call a tool and return its result."""
    params = {"name": name, **more.pop("params", {})}
    message = await answer(served, context("tools/call", params, revision=revision, **more))
    result: dict[str, Any] = message["result"]
    return result


@EVERY_REVISION
async def test_tools_are_listed_in_the_order_of_their_registration(revision: str) -> None:
    served = server(tool("zebra"), tool("add"), tool("middle"))
    result = await page(served, revision)
    assert names(result) == ["zebra", "add", "middle"]
    assert "nextCursor" not in result


@EVERY_REVISION
async def test_a_server_without_tools_lists_none(revision: str) -> None:
    assert names(await page(server(), revision)) == []


@pytest.mark.parametrize("ttl", [0, 0.25, 60.0])
async def test_a_list_of_the_per_request_era_says_how_long_it_may_be_kept(ttl: float) -> None:
    result = await page(server(tool("add"), list_ttl=ttl), PER_REQUEST)
    assert (result["ttlMs"], result["cacheScope"]) == (int(ttl * 1000), "public")


@EVERY_REVISION
@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
async def test_pages_together_are_the_whole_list(revision: str, size: int) -> None:
    every = [f"t{number}" for number in range(7)]
    served = server(*map(tool, every), page_size=size)
    seen: list[str] = []
    result = await page(served, revision)
    for _ in every:
        assert len(result["tools"]) <= size
        seen += names(result)
        if "nextCursor" not in result:
            break
        result = await page(served, revision, cursor=result["nextCursor"])
    assert seen == every


@EVERY_REVISION
@pytest.mark.parametrize("cursor", [5, True, [], {}, "t0", "bm90aGluZw==", "not base64!"])
async def test_a_cursor_that_was_never_given_out_is_invalid_params(revision: str, cursor: object) -> None:
    asked = context("tools/list", {"cursor": cursor}, revision=revision)
    assert (await answer(server(tool("t0"), tool("t1"), page_size=1), asked))["error"]["code"] == -32602


async def test_a_cursor_whose_tool_has_gone_leads_to_what_came_after_it() -> None:
    served = server(tool("t0"), tool("t1"), page_size=1)
    cursor = (await page(served))["nextCursor"]
    served.catalog.tools.remove("t0")
    message = await answer(served, context("tools/list", {"cursor": cursor}))
    assert names(message["result"]) == ["t1"]


async def test_a_changed_registry_changes_the_list() -> None:
    served = server(tool("t0"))
    assert names(await page(served)) == ["t0"]
    served.catalog.tools.add(tool("t1"))
    assert names(await page(served)) == ["t0", "t1"]
    served.catalog.tools.remove("t0")
    assert names(await page(served)) == ["t1"]


async def test_a_list_is_made_once_for_each_revision() -> None:
    described = []

    def describe() -> dict[str, Any]:
        described.append(1)
        return {"name": "add", "description": "Add", "inputSchema": {"type": "object"}}

    served = server(Tool("add", describe, tool("add").handler))
    for _ in range(3):
        await page(served, "2025-11-25")
        await page(served, "2026-07-28")
    assert len(described) == 2


@EVERY_REVISION
@pytest.mark.parametrize(
    ("error", "reason"),
    [(RegistrationError("no JSON"), "no JSON"), (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero")],
)
async def test_a_tool_that_can_not_be_described_is_left_out_of_the_list(
    revision: str, error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    def describe() -> dict[str, Any]:
        raise error

    served = server(tool("t0"), Tool("bad", describe, tool("bad").handler), tool("t1"))
    assert names(await page(served, revision)) == ["t0", "t1"]
    assert [record.getMessage() for record in caplog.records] == [
        f"The tool bad is left out of tools/list. Correct it: {reason}"
    ]


async def test_a_tool_whose_description_is_no_json_is_named_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"a": {"default": float("inf")}}}
    served = server(Tool("limit", lambda: {"name": "limit", "inputSchema": schema}, tool("limit").handler))
    for revision in schemas.REVISIONS:
        assert names(await page(served, revision)) == []
    [record] = caplog.records
    assert "The tool limit is left out" in record.getMessage()
    assert "JSON has no Infinity" in record.getMessage()


async def test_cursors_that_clients_make_up_take_no_room() -> None:
    served = server(*(tool(f"t{number}") for number in range(20)), page_size=5)
    for place in range(1, 30):
        for name in ("t3", "t19", "nobody"):
            cursor = encode_cursor("tools", place, name)
            assert "result" in await answer(served, context("tools/list", {"cursor": cursor}))
    assert len(served.routes.lists["tools/list"]._pages) <= 4


async def test_other_requests_have_their_turn_while_a_long_list_is_made() -> None:
    served = server(*(tool(f"t{number}") for number in range(100)))
    turns: list[int] = []
    making = asyncio.create_task(page(served))
    while not making.done() and len(turns) < 1000:
        await asyncio.sleep(0)
        turns.append(1)
    assert len(names(await making)) == 100
    assert len(turns) > 3


async def test_a_list_that_changes_while_it_is_made_is_not_taken_for_the_new_one() -> None:
    served = server(*(tool(f"t{number}") for number in range(40)))
    making = asyncio.create_task(page(served))
    await asyncio.sleep(0)
    served.catalog.tools.add(tool("late"))
    assert "late" not in names(await making)
    assert "late" in names(await page(served))


@EVERY_REVISION
async def test_a_call_runs_the_tool_with_its_arguments(revision: str) -> None:
    async def add(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        return text_result(str(arguments["a"] + arguments["b"]))

    result = await call(server(tool("add", add)), "add", revision, params={"arguments": {"a": 1, "b": 2}})
    assert result["content"] == [{"type": "text", "text": "3"}]
    assert not result.get("isError", False)


async def test_a_call_without_arguments_gives_the_tool_none() -> None:
    seen = []

    async def look(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append(arguments)
        return text_result("seen")

    await call(server(tool("look", look)), "look")
    assert seen == [{}]


@EVERY_REVISION
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": None},
        {"name": ["add"]},
        {"name": "Add"},
        {"name": "unknown"},
        {"name": ""},
        {"name": "add", "arguments": None},
        {"name": "add", "arguments": []},
        {"name": "add", "arguments": "a=1"},
    ],
)
async def test_a_call_of_no_tool_or_of_the_wrong_shape_is_invalid_params(revision: str, params: dict[str, Any]) -> None:
    error = (await answer(server(tool("add")), context("tools/call", params, revision=revision)))["error"]
    assert error["code"] == -32602


async def test_an_unknown_tool_is_named_and_a_long_name_cut() -> None:
    error = (await answer(server(), context("tools/call", {"name": "x" * 1000})))["error"]
    assert error["message"] == "Unknown tool: " + "x" * 128


@EVERY_REVISION
async def test_a_tool_error_is_told_to_the_model(revision: str) -> None:
    async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        raise ToolError("Choose a date in the future.")

    result = await call(server(tool("fail", fail)), "fail", revision)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "Choose a date in the future."}]


@EVERY_REVISION
async def test_any_other_failure_is_told_by_an_id_that_is_in_the_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("password=hunter2")

    result = await call(server(tool("fail", fail)), "fail", revision)
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert "hunter2" not in text
    [record] = caplog.records
    error_id = text.rstrip(".").rpartition(" ")[2]
    assert "RuntimeError" in record.getMessage()
    assert record.getMessage().endswith(f"(error_id={error_id} feature=fail)")


class RustPanic(BaseException):
    """What a library may raise that is no Exception."""


class MuteError(ToolError):
    def __str__(self) -> str:
        raise ValueError("no words")


@EVERY_REVISION
@pytest.mark.parametrize("wait_first", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        RustPanic("panicked"),
        BaseExceptionGroup("two", [RustPanic("panicked")]),
        MuteError(),
        SystemExit(3),
        KeyboardInterrupt(),
    ],
)
async def test_a_failure_that_is_no_exception_is_the_tools_all_the_same(
    revision: str, wait_first: bool, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        if wait_first:
            await asyncio.sleep(0)
        raise error

    result = await call(server(tool("fail", fail)), "fail", revision)
    assert result["isError"] is True
    assert "error id" in result["content"][0]["text"]
    assert "feature=fail" in caplog.text


async def test_a_tool_error_that_is_no_unicode_is_told_to_the_model_without_what_can_not_be_sent() -> None:
    async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        raise ToolError("a\ud800b")

    result = await call(server(tool("fail", fail)), "fail")
    assert (result["isError"], result["content"][0]["text"]) == (True, "a\ufffdb")


@EVERY_REVISION
async def test_a_tool_that_goes_on_when_its_time_is_up_has_not_finished_in_time(revision: str) -> None:
    async def stay(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return text_result("finished after all")

    result = await call(server(tool("stay", stay, time_limit=TimeLimit(0.01))), "stay", revision)
    assert result["isError"] is True
    assert result["content"][0]["text"] == "It did not finish within 0.01 seconds (timeout=)."


@pytest.mark.parametrize("interactive", [False, True])
@EVERY_REVISION
async def test_a_tool_that_takes_too_long_is_stopped_and_the_model_told(revision: str, interactive: bool) -> None:
    stopped = []

    async def hang(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)
        return text_result("never")

    served = server(tool("hang", hang, time_limit=TimeLimit(0.01), interactive=interactive))
    result = await call(served, "hang", revision)
    assert result["isError"] is True
    assert result["content"][0]["text"] == "It did not finish within 0.01 seconds (timeout=)."
    assert stopped


async def test_a_timeout_of_the_tools_own_is_not_taken_for_the_limit() -> None:
    async def give_up(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        raise TimeoutError("the database")

    result = await call(server(tool("give_up", give_up)), "give_up")
    assert result["isError"] is True
    assert "error id" in result["content"][0]["text"]


async def test_a_tool_without_a_limit_may_take_its_time() -> None:
    done = asyncio.Event()

    async def wait(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await done.wait()
        return text_result("done")

    running = asyncio.create_task(call(server(tool("wait", wait, time_limit=None)), "wait"))
    await asyncio.sleep(0)
    done.set()
    assert (await running)["content"][0]["text"] == "done"


async def test_a_cancelled_call_is_cancelled_and_no_result() -> None:
    async def hang(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.Event().wait()
        return text_result("never")

    running = asyncio.create_task(reply_to(server(tool("hang", hang)), context("tools/call", {"name": "hang"})))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, PATIENCE)


@EVERY_REVISION
@pytest.mark.parametrize("wait_first", [False, True])
async def test_a_tool_that_cancels_itself_has_failed(
    revision: str, wait_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def give_up(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        if wait_first:
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    result = await call(server(tool("give_up", give_up)), "give_up", revision)
    assert result["isError"] is True
    assert "CancelledError" in caplog.text


async def ask_name(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    answers = await context.ask({"name": ASK_NAME})
    return text_result(f"Hello, {answers['name']['content']['name']}!")


async def test_a_question_to_a_per_request_client_takes_two_rounds() -> None:
    served = server(tool("greet", ask_name, interactive=True))
    able: dict[str, Any] = {"elicitation": {}}
    first = await call(served, "greet", PER_REQUEST, capabilities=able)
    assert first["resultType"] == "input_required"
    assert first["inputRequests"] == {"name": ASK_NAME}
    assert not {"ttlMs", "cacheScope"} & set(first)
    again = {"inputResponses": {"name": ADA}, "requestState": first["requestState"]}
    last = await call(served, "greet", PER_REQUEST, capabilities=able, params=again)
    assert last["resultType"] == "complete"
    assert last["content"][0]["text"] == "Hello, Ada!"


async def test_a_question_after_a_wait_and_in_a_task_group_takes_two_rounds_too() -> None:
    async def greet(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask_name(context, arguments))
        return asking.result()

    served = server(tool("greet", greet, interactive=True))
    first = await call(served, "greet", PER_REQUEST, capabilities={"elicitation": {}})
    assert first["resultType"] == "input_required"


async def test_a_question_that_the_client_cannot_answer_is_a_missing_capability() -> None:
    served = server(tool("greet", ask_name, interactive=True))
    asked = context("tools/call", {"name": "greet"}, revision=PER_REQUEST)
    error = (await answer(served, asked))["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_question_to_a_handshake_client_goes_over_its_channel(revision: str) -> None:
    served = server(tool("greet", ask_name, interactive=True))
    channel = Recorder({"name": ADA})
    result = await call(served, "greet", revision, capabilities={"elicitation": {}}, channel=channel)
    assert result["content"][0]["text"] == "Hello, Ada!"


@pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
async def test_a_question_that_a_handshake_client_cannot_answer_is_told_to_the_model(revision: str) -> None:
    result = await call(server(tool("greet", ask_name, interactive=True)), "greet", revision)
    assert result["isError"] is True
    assert "elicitation" in result["content"][0]["text"]


async def test_a_question_of_a_tool_that_is_not_interactive_is_refused() -> None:
    result = await call(server(tool("greet", ask_name)), "greet", PER_REQUEST, capabilities={"elicitation": {}})
    assert result["isError"] is True


@pytest.mark.parametrize(
    "more",
    [{"inputResponses": None}, {"requestState": "forged"}, {"inputResponses": {"name": ADA}, "requestState": ""}],
)
async def test_a_retry_that_was_tampered_with_is_invalid_params(more: dict[str, Any]) -> None:
    served = server(tool("greet", ask_name, interactive=True))
    asked = context("tools/call", {"name": "greet", **more}, revision=PER_REQUEST, capabilities={"elicitation": {}})
    assert (await answer(served, asked))["error"]["code"] == -32602


async def test_a_protocol_error_after_a_wait_is_a_protocol_error() -> None:
    async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        raise MCPError(7, "No.")

    message = await answer(server(tool("fail", fail)), context("tools/call", {"name": "fail"}))
    assert message["error"] == {"code": 7, "message": "No."}


@EVERY_REVISION
async def test_a_result_is_cut_to_the_revision(revision: str) -> None:
    async def sing(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
        return {"content": [audio], "structuredContent": {"a": 1}, "isError": False}

    result = await call(server(tool("sing", sing)), "sing", revision)
    assert result["content"][0]["type"] == ("text" if revision == "2024-11-05" else "audio")
    assert ("structuredContent" in result) == (revision >= "2025-06-18")


@EVERY_REVISION
@pytest.mark.parametrize("structured", [None, b'{"a":1}'])
async def test_a_result_that_is_encoded_already_is_sent_as_the_revision_has_it(
    revision: str, structured: bytes | None
) -> None:
    async def give(_context: RequestContext, _arguments: dict[str, Any]) -> JSONResult:
        return JSONResult(b'"100 %"', structured)

    result = await call(server(tool("give", give)), "give", revision)
    assert result["content"] == [{"type": "text", "text": "100 %"}]
    knows = structured is not None and revision >= "2025-06-18"
    assert result.get("structuredContent") == ({"a": 1} if knows else None)

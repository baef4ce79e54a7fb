"""Tools, resources, prompts, completions and tasks that raise exception groups, in both eras, and middleware."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, InvalidParams, MCPError, MCPServer, ToolError
from funcmcp.compat import FastMCP, Middleware
from funcmcp.testing import Client, accept
from tests.server.parts import NEWEST, PER_REQUEST

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from funcmcp.middleware import CallNext, Reply, RequestContext

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")

EVERY_ERA = pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
SECRET = "hunter2"


async def fail(error: BaseException) -> None:
    """Raise an exception after a wait, as a request to another service does."""
    await asyncio.sleep(0)
    raise error


async def in_task_group(*errors: BaseException) -> str:
    """Raise exceptions in the tasks of a group."""
    async with asyncio.TaskGroup() as group:
        for error in errors:
            group.create_task(fail(error))
    return "never"


async def one() -> str:
    return await in_task_group(ToolError("closed"))


async def two() -> str:
    return await in_task_group(ToolError("closed"), ToolError("sold out"))


async def protocol() -> str:
    return await in_task_group(InvalidParams("No such dish."))


async def mixed() -> str:
    return await in_task_group(InvalidParams(SECRET), ToolError(SECRET))


async def hidden() -> str:
    return await in_task_group(ToolError("closed"), ConnectionError(SECRET))


async def nested() -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(two())
    return "never"


async def handled() -> str:
    try:
        return await in_task_group(ConnectionError(SECRET))
    except* ConnectionError:
        raise ToolError("not reachable")  # noqa: B904 - Python adds the context


async def interrupted() -> str:
    raise BaseExceptionGroup(SECRET, [KeyboardInterrupt(), SystemExit(SECRET)])


async def cancelled() -> str:
    raise BaseExceptionGroup(SECRET, [asyncio.CancelledError(), ValueError(SECRET)])


def plain() -> str:
    raise ExceptionGroup("g", [ToolError("closed"), ToolError("sold out")])


FUNCTIONS: list[Callable[..., Any]] = [
    one, two, protocol, mixed, hidden, nested, handled, interrupted, cancelled, plain,
]  # fmt: skip
TEXTS = {
    "one": "closed",
    "two": "closed\nsold out",
    "nested": "closed\nsold out",
    "handled": "not reachable",
    "plain": "closed\nsold out",
}
HIDDEN = {
    "mixed": ("InvalidParams", "ToolError"),
    "hidden": ("ToolError", "ConnectionError"),
    "interrupted": ("KeyboardInterrupt", "SystemExit"),
    "cancelled": ("CancelledError", "ValueError"),
}


def shop() -> MCPServer:
    """Return a server whose features fail in each way."""
    mcp = MCPServer("shop")
    for function in FUNCTIONS:
        name = function.__name__
        mcp.tool(name)(function)
        mcp.prompt(name)(function)
        mcp.resource(f"menu://{name}")(function)

    async def dishes(value: str) -> list[str]:
        return [await in_task_group(ToolError("closed"), ToolError(value))]

    @mcp.prompt(completions={"dish": dishes})
    def order(dish: str) -> str:
        return dish

    return mcp


def record_of(caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    """Return the only record of a failure."""
    [record] = [record for record in caplog.records if record.name == "funcmcp"]
    return record


@EVERY_ERA
@pytest.mark.parametrize("name", TEXTS)
async def test_a_group_of_tool_errors_gives_their_texts(
    name: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(shop(), revision=revision) as client:
        result = await client.call_tool(name, {})
        assert (result["isError"], result["content"][0]["text"]) == (True, TEXTS[name])
        for request in (client.read_resource(f"menu://{name}"), client.get_prompt(name)):
            with pytest.raises(MCPError) as caught:
                await request
            assert (caught.value.code, caught.value.message) == (-32603, TEXTS[name])
    assert not [record for record in caplog.records if record.name == "funcmcp"]


@EVERY_ERA
async def test_a_group_with_one_error_of_the_protocol_is_this_error(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(shop(), revision=revision) as client:
        requests = (
            client.call_tool("protocol", {}),
            client.read_resource("menu://protocol"),
            client.get_prompt("protocol"),
        )
        for request in requests:
            with pytest.raises(MCPError) as caught:
                await request
            assert (caught.value.code, caught.value.message) == (-32602, "No such dish.")
    assert not [record for record in caplog.records if record.name == "funcmcp"]


@EVERY_ERA
@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("kind", ["tool", "resource", "prompt"])
async def test_a_group_with_another_member_is_an_error_id_and_the_log_has_all_members(
    name: str, kind: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(shop(), revision=revision) as client:
        if kind == "tool":
            result = await client.call_tool(name, {})
            assert result["isError"] is True
            text = result["content"][0]["text"]
        else:
            with pytest.raises(MCPError) as caught:
                await (client.get_prompt(name) if kind == "prompt" else client.read_resource(f"menu://{name}"))
            assert caught.value.code == -32603
            text = caught.value.message
    assert SECRET not in text
    record = record_of(caplog)
    assert record.__dict__["error_id"] in text
    methods = {"tool": "tools/call", "resource": "resources/read", "prompt": "prompts/get"}
    assert record.__dict__["method"] == methods[kind]
    assert record.__dict__["feature"] == (f"menu://{name}" if kind == "resource" else name)
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], BaseExceptionGroup)
    assert record.exc_text is not None
    for member in HIDDEN[name]:
        assert member in record.exc_text
        assert f"{member}: " in record.getMessage()
    assert __file__ in record.exc_text


@EVERY_ERA
async def test_a_completer_that_fails_in_a_group_gives_the_texts(revision: str) -> None:
    async with Client(shop(), revision=revision) as client:
        with pytest.raises(MCPError, match=r"^closed\nfi$"):
            await client.complete({"type": "ref/prompt", "name": "order"}, "dish", "fi")


@EVERY_ERA
async def test_members_of_shown_types_are_shown(revision: str) -> None:
    mcp = MCPServer("shop", show_errors=[ConnectionError])
    mcp.tool(hidden)
    mcp.tool(mixed)
    mcp.tool("all", show_errors=True)(cancelled)
    async with Client(mcp, revision=revision) as client:
        assert (await client.call_tool("hidden", {}))["content"][0]["text"] == f"closed\n{SECRET}"
        for name in ("mixed", "all"):
            assert SECRET not in (await client.call_tool(name, {}))["content"][0]["text"]


@EVERY_ERA
async def test_a_question_in_a_task_group_is_asked(revision: str) -> None:
    mcp = MCPServer("shop")

    @mcp.tool
    async def order(context: Context) -> str:
        async with asyncio.TaskGroup() as group:
            question = group.create_task(context.elicit("How many?", {"type": "object", "properties": {}}))
        return question.result().action

    async with Client(mcp, revision=revision, elicit=accept({})) as client:
        assert (await client.call_tool("order", {}))["content"][0]["text"] == "accept"


@EVERY_ERA
async def test_cancellations_in_a_group_after_the_time_limit_are_the_time_limit(revision: str) -> None:
    mcp = MCPServer("shop")

    @mcp.tool(timeout=0.01)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise BaseExceptionGroup("cancelled", [error, asyncio.CancelledError()]) from None
        return "never"

    @mcp.tool(timeout=0.01)
    async def slow_and_broken() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise BaseExceptionGroup("cancelled", [error, ValueError(SECRET)]) from None
        return "never"

    async with Client(mcp, revision=revision) as client:
        text = (await client.call_tool("slow", {}))["content"][0]["text"]
        assert text == "It did not finish within 0.01 seconds (timeout=)."
        assert "error id" in (await client.call_tool("slow_and_broken", {}))["content"][0]["text"]


@EVERY_ERA
async def test_middleware_sees_the_exception_itself(revision: str) -> None:
    seen: list[BaseException | None] = []

    async def watch(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        if context.feature is not None:
            seen.append(context.error)
        return reply

    mcp = MCPServer("shop", middleware=[watch])
    mcp.tool(hidden)
    mcp.tool(one)
    mcp.prompt(hidden)
    mcp.resource("menu://protocol")(protocol)
    mcp.tool("fine")(lambda: "fine")
    async with Client(mcp, revision=revision) as client:
        await client.call_tool("hidden", {})
        await client.call_tool("one", {})
        await client.call_tool("fine", {})
        with pytest.raises(MCPError):
            await client.get_prompt("hidden")
        with pytest.raises(MCPError):
            await client.read_resource("menu://protocol")
    kinds = [None if error is None else [type(member) for member in error.exceptions] for error in seen]  # type: ignore[attr-defined]
    assert kinds == [[ToolError, ConnectionError], [ToolError], None, [ToolError, ConnectionError], [InvalidParams]]


async def test_middleware_sees_the_exception_of_another_middleware_and_none_after_a_recovery() -> None:
    seen: list[Any] = []

    async def watch(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        seen.append(context.error)
        return reply

    async def recover(context: RequestContext, call_next: CallNext) -> Reply | dict[str, Any]:
        reply = await call_next(context)
        if context.error is None:
            return reply
        await call_next(context)
        seen.append(context.error)
        if context.request.params["name"] == "raise":
            raise LookupError("inner")
        return {"content": [{"type": "text", "text": "recovered"}]}

    calls = 0

    async def second_time() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("first")
        return "second"

    mcp = MCPServer("shop")
    mcp.tool("raise")(second_time)
    mcp.tool("recover")(hidden)
    mcp.add_middleware(watch)
    mcp.add_middleware(recover)
    assert (await mcp.call_tool("recover")).text == "recovered"
    with pytest.raises(MCPError):
        await mcp.call_tool("raise")
    assert [type(error).__name__ for error in seen] == ["ExceptionGroup", "NoneType", "NoneType", "LookupError"]


@pytest.mark.parametrize(
    ("error", "is_error", "text"),
    [
        (ExceptionGroup("g", [ToolError("closed"), ToolError("sold out")]), True, "closed\nsold out"),
        (ExceptionGroup("g", [MCPError(4711, "Out of stock.")]), False, "Out of stock."),
        (BaseExceptionGroup("g", [ToolError(SECRET), OSError(SECRET)]), False, "Internal error"),
    ],
)
async def test_middleware_that_raises_a_group_is_answered_as_a_feature(
    error: BaseException,
    is_error: bool,
    text: str,
) -> None:
    async def refuse(context: RequestContext, call_next: CallNext) -> Reply:
        raise error

    mcp = MCPServer("shop", middleware=[refuse])
    mcp.tool(one)
    if is_error:
        assert (await mcp.call_tool("one")).text == text
    else:
        with pytest.raises(MCPError, match=text):
            await mcp.call_tool("one")


async def test_middleware_of_both_servers_sees_the_exception_of_a_mounted_tool() -> None:
    seen: list[Any] = []

    async def watch(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        seen.append(type(context.error))
        return reply

    below, above = MCPServer("below", middleware=[watch]), MCPServer("above", middleware=[watch])
    below.tool(hidden)
    below.prompt(hidden)
    above.mount(below, prefix="b")
    await above.call_tool("b_hidden")
    with pytest.raises(MCPError):
        await above.get_prompt("b_hidden")
    assert seen == [ExceptionGroup] * 4


async def test_middleware_of_fastmcp_sees_the_exception_as_the_cause() -> None:
    seen: list[Any] = []

    class Watch(Middleware):
        async def on_message(self, context: Any, call_next: Any) -> Any:
            try:
                return await call_next(context)
            except Exception as error:
                seen.append(error.__cause__)
                raise

    mcp = FastMCP("shop", middleware=[Watch()])

    @mcp.tool
    def divide() -> float:
        return 1 / 0

    @mcp.resource("menu://today")
    def today() -> str:
        raise ConnectionError

    async with Client(mcp) as client:
        await client.call_tool("divide", {})
        with pytest.raises(MCPError):
            await client.read_resource("menu://today")
    assert [type(error) for error in seen] == [ZeroDivisionError, ConnectionError]


async def test_a_task_that_fails_in_a_group_says_why(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")
    mcp.tool("two", task="required")(two)
    mcp.tool("hidden", task="required")(hidden)
    mcp.tool("protocol", task="required")(protocol)
    async with Client(mcp, revision=PER_REQUEST) as client:
        assert (await client.call_tool("two", {}))["content"][0]["text"] == "closed\nsold out"
        text = (await client.call_tool("hidden", {}))["content"][0]["text"]
        with pytest.raises(MCPError, match=r"^No such dish\.$"):
            await client.call_tool("protocol", {})
    record = record_of(caplog)
    assert record.__dict__["error_id"] in text
    assert record.exc_text is not None
    assert f"ConnectionError: {SECRET}" in record.exc_text

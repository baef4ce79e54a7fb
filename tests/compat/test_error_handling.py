"""FastMCP's middleware that transforms errors, and that repeats requests which failed."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import (
    ErrorHandlingMiddleware,
    FastMCP,
    McpError,
    Middleware,
    MiddlewareContext,
    ResourceError,
    RetryMiddleware,
    ToolError,
)
from funcmcp.testing import Client


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("bad"), -32602, "Invalid params: Error calling tool 'fail': bad"),
        (LookupError("bad"), -32603, "Internal error: Error calling tool 'fail': bad"),
        (FileNotFoundError("bad"), -32001, "Not found: Error calling tool 'fail': bad"),
        (PermissionError("bad"), -32000, "Permission denied: Error calling tool 'fail': bad"),
        (TimeoutError("bad"), -32000, "Request timeout: Error calling tool 'fail': bad"),
        (ToolError("bad"), -32603, "Internal error: bad"),
    ],
)
async def test_errors_have_the_code_of_their_kind(error: Exception, code: int, text: str) -> None:
    reported: list[str] = []

    def report(failure: Exception, context: MiddlewareContext) -> None:
        reported.append(f"{context.method}: {failure}")
        raise RuntimeError("of the callback")

    errors = ErrorHandlingMiddleware(error_callback=report, include_traceback=True)
    mcp = FastMCP("errors", middleware=[errors])

    @mcp.tool
    def fail() -> str:
        raise error

    async with Client(mcp) as client:
        with pytest.raises(MCPError) as failure:
            await client.call_tool("fail")
    assert (failure.value.code, failure.value.message) == (code, text)
    assert len(reported) == 1
    assert errors.get_error_stats() == {"ToolError:tools/call": 1}


@pytest.mark.parametrize(
    ("error", "of_resource", "of_prompt"),
    [
        (FileNotFoundError("bad"), (-32002, "Resource not found: "), (-32001, "Not found: ")),
        (ValueError("bad"), (-32602, "Invalid params: "), (-32602, "Invalid params: ")),
        (McpError(-32099, "mine"), (-32099, ""), (-32099, "")),
    ],
)
async def test_errors_of_resources_and_prompts_have_the_code_of_their_kind(
    error: Exception, of_resource: tuple[int, str], of_prompt: tuple[int, str]
) -> None:
    mcp = FastMCP("errors", middleware=[ErrorHandlingMiddleware()])

    def fail() -> str:
        raise error

    mcp.resource("text://fail/it")(fail)
    mcp.prompt(fail)
    async with Client(mcp) as client:
        with pytest.raises(MCPError) as of_read:
            await client.read_resource("text://fail/it")
        with pytest.raises(MCPError) as of_get:
            await client.get_prompt("fail")
    for failure, (code, start) in ((of_read, of_resource), (of_get, of_prompt)):
        assert failure.value.code == code
        assert failure.value.message.startswith(start)


async def test_an_error_of_resources_in_the_middleware_of_a_call_is_the_result_of_the_tool() -> None:
    class Refusing(Middleware):
        async def on_call_tool(self, context: MiddlewareContext, call_next: Any) -> Any:
            raise ResourceError("no file")

    mcp = FastMCP("errors", middleware=[Refusing()])
    mcp.tool(_double)
    async with Client(mcp) as client:
        result = await client.call_tool("_double", {"number": 1})
    assert (result.is_error, result.text) == (True, "no file")


async def test_errors_stay_as_they_are_if_they_are_not_transformed() -> None:
    mcp = FastMCP("errors", middleware=[ErrorHandlingMiddleware(transform_errors=False)])

    @mcp.tool
    def fail() -> str:
        raise ValueError("bad")

    async with Client(mcp) as client:
        result = await client.call_tool("fail")
    assert (result.is_error, result.text) == (True, "Error calling tool 'fail': bad")


@pytest.mark.parametrize(("failures", "calls", "is_error"), [(2, 3, False), (3, 3, True)])
async def test_requests_are_repeated(failures: int, calls: int, is_error: bool) -> None:
    mcp = FastMCP("retries", middleware=[RetryMiddleware(max_retries=2, base_delay=0)])
    attempts: list[int] = []

    @mcp.tool
    def unsure() -> str:
        attempts.append(1)
        if len(attempts) <= failures:
            raise ConnectionError("away")
        return "done"

    @mcp.tool
    def wrong() -> str:
        attempts.append(1)
        raise ValueError("never")

    async with Client(mcp) as client:
        assert (await client.call_tool("unsure")).is_error is is_error
        assert len(attempts) == calls
        await client.call_tool("wrong")
    assert len(attempts) == calls + 1


def test_delays_grow_up_to_a_bound() -> None:
    middleware: Any = RetryMiddleware(base_delay=1, max_delay=5, backoff_multiplier=2)
    assert [middleware._calculate_delay(attempt) for attempt in range(4)] == [1, 2, 4, 5]


async def test_arguments_that_do_not_fit_are_invalid_parameters() -> None:
    mcp = FastMCP("errors", middleware=[ErrorHandlingMiddleware()])
    mcp.tool(_double)
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="Invalid params: ") as failure:
            await client.call_tool("_double", {"wrong": 1})
    assert failure.value.code == -32602


def _double(number: int) -> int:
    return 2 * number

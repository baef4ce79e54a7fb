"""Middleware that makes calls again, and that reports errors."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer, ToolError
from funcmcp._middleware import failures
from funcmcp.middleware import handle_errors, retry_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.middleware import RequestContext


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that a retry has waited; no time passes."""
    seconds: list[float] = []

    async def sleep(delay: float) -> None:
        seconds.append(delay)

    monkeypatch.setattr(failures, "asyncio", SimpleNamespace(sleep=sleep))  # other threads wait with the real one
    return seconds


class Failing:
    """A function that fails some times, and then returns the number of its calls."""

    def __init__(self, times: int, error: Callable[[], BaseException] = ConnectionError) -> None:
        self.times = times
        self.error = error
        self.calls = 0

    def run(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error()
        return str(self.calls)


def shop(middleware: Any, function: Failing, **options: Any) -> MCPServer:
    mcp = MCPServer("shop", middleware=[middleware])
    mcp.tool("call", **options)(function.run)
    mcp.resource("data://info", name="info")(function.run)
    mcp.prompt("greet")(function.run)
    return mcp


@pytest.mark.parametrize("options", [{"read_only": True}, {"idempotent": True}])
async def test_a_call_that_may_be_repeated_is_made_again(options: dict[str, Any], pauses: list[float]) -> None:
    mcp = shop(retry_calls(4, delay=1, max_delay=3), Failing(3), **options)
    assert (await mcp.call_tool("call")).text == "4"
    bounds = zip(pauses, (1, 2, 3), strict=True)
    assert all(longest / 2 <= pause <= longest for pause, longest in bounds)


async def test_resources_and_prompts_are_read_again(pauses: list[float]) -> None:
    assert (await shop(retry_calls(), Failing(1)).read_resource("data://info")).text == "2"
    assert (await shop(retry_calls(), Failing(2)).get_prompt("greet")).messages[0].content.text == "3"
    assert len(pauses) == 3


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ConnectionError, {}),
        (ConnectionError, {"read_only": False}),
        (ValueError, {"read_only": True}),
        (lambda: ToolError("no"), {"read_only": True}),
    ],
)
async def test_other_calls_are_made_once(
    error: Callable[[], BaseException], options: dict[str, Any], pauses: list[float]
) -> None:
    function = Failing(1, error)
    assert (await shop(retry_calls(), function, **options).call_tool("call")).is_error
    assert (function.calls, pauses) == (1, [])


def caused() -> ToolError:
    error = ToolError("The database is away.")
    error.__cause__ = TimeoutError()
    return error


@pytest.mark.parametrize("error", [caused, lambda: ExceptionGroup("several", [ConnectionError()])])
async def test_causes_and_groups_count(error: Callable[[], BaseException], pauses: list[float]) -> None:
    assert (await shop(retry_calls(), Failing(1, error), read_only=True).call_tool("call")).text == "2"
    assert len(pauses) == 1


async def test_the_last_failure_is_the_answer(pauses: list[float], caplog: pytest.LogCaptureFixture) -> None:
    function = Failing(5)
    assert (await shop(retry_calls(2), function, read_only=True).call_tool("call")).is_error
    assert (function.calls, len(pauses)) == (2, 1)
    assert "call failed and is called again: ConnectionError" in caplog.text


async def test_a_call_whose_time_is_up_is_not_made_again() -> None:
    mcp = MCPServer("shop", middleware=[retry_calls(delay=0)])
    calls = 0

    @mcp.tool(read_only=True, timeout=0.01)
    async def wait() -> None:
        nonlocal calls
        calls += 1
        await asyncio.Event().wait()

    assert (await mcp.call_tool("wait")).is_error
    assert calls == 1


@pytest.mark.parametrize("options", [{"attempts": 0}, {"delay": -1}, {"max_delay": -1}])
def test_wrong_options_of_a_retry_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="retry_calls needs attempts"):
        retry_calls(**options)
    with pytest.raises(TypeError, match="must be a list of exception types"):
        retry_calls(exceptions=[int])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"a list of exception types, such as \[OSError\]"):
        retry_calls(exceptions=OSError)  # type: ignore[arg-type]


async def test_errors_are_reported_with_their_context(caplog: pytest.LogCaptureFixture) -> None:
    reports: list[Any] = []

    async def report(error: BaseException, context: RequestContext) -> None:
        reports.append((type(error), context.request.method))
        if context.request.method == "prompts/get":
            raise RuntimeError("no report")

    mcp = shop(handle_errors(report), Failing(9, LookupError))
    assert "error id" in (await mcp.call_tool("call")).text
    with pytest.raises(MCPError):
        await mcp.get_prompt("greet")
    with pytest.raises(MCPError):
        await mcp.call_tool("none")
    await mcp.list_tools()
    assert [kind for kind, _ in reports[:2]] == [LookupError, LookupError]
    assert [method for _, method in reports] == ["tools/call", "prompts/get", "tools/call"]
    assert "no report" in caplog.text


async def test_some_errors_get_other_texts() -> None:
    reports: list[Any] = []
    texts: dict[type[Exception], str] = {LookupError: "There is none.", KeyError: "Unknown key."}
    for error, text in ((KeyError, "Unknown key."), (IndexError, "There is none.")):
        mcp = shop(handle_errors(lambda error, _: reports.append(error), texts=texts), Failing(9, error))
        result = await mcp.call_tool("call")
        assert (result.is_error, result.text) == (True, text)
        with pytest.raises(MCPError, match=text):
            await mcp.read_resource("data://info")
    assert (await shop(handle_errors(texts=texts), Failing(9, ValueError)).call_tool("call")).text != "There is none."
    assert len(reports) == 4


def test_wrong_options_of_handle_errors_are_refused() -> None:
    with pytest.raises(TypeError, match="on_error of handle_errors must be a function"):
        handle_errors(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be texts by exception type"):
        handle_errors(texts={int: "no"})  # type: ignore[dict-item]

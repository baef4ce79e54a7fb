# ruff: noqa: TC001, TC003 - tools are made of these hints at run time

from __future__ import annotations

import asyncio
import functools
import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from funcmcp._authoring.calling.feature_context import CancellationToken, Context
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.signatures.signature import JSONRPCRequest
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.features import JSONResult
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.run import begin
from tests.authoring.tool_calls import call, context, run, tool_of
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_on_the_loop() -> None:
    def plain() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def on_loop() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await call(plain))["structuredContent"] == {"result": False}
    assert (await call(on_loop))["structuredContent"] == {"result": True}


def test_an_async_tool_that_waits_for_nothing_is_done_at_once() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    assert isinstance(begin(tool_of(add).handler(context(), {"a": 1, "b": 2})), JSONResult)


async def test_partials_and_callable_objects_are_called() -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    class Adder:
        def __call__(self, a: int) -> int:
            return a + 1

    assert (await call(functools.partial(add, 1), {"b": 2}))["structuredContent"] == {"result": 3}
    assert (await call(Adder(), {"a": 2}))["structuredContent"] == {"result": 3}


async def test_special_parameters_are_filled_whatever_they_are_called() -> None:
    def look(a: int, req: JSONRPCRequest, stop: CancellationToken | None, *, ctx: Context, too: Context) -> str:
        assert ctx is too
        assert stop is not None
        return f"{a} {req.id} {stop.cancelled} {ctx.name}"

    made = tool_of(look)
    assert list(made.describe()["inputSchema"]["properties"]) == ["a"]
    assert (await call(look, {"a": 1}))["content"][0]["text"] == "1 7 False look"


@pytest.mark.parametrize("error", [ToolError("no"), LookupError("no"), asyncio.CancelledError()])
async def test_exceptions_pass_through(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    async def fail_with_company(context: Context) -> None:
        raise error

    for function in (fail, fail_with_company):
        with pytest.raises(type(error)):
            await tool_of(function).handler(context(), {})


async def test_a_tool_can_not_end_the_process() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def leave_with_company(context: Context) -> None:
        raise SystemExit(3)

    def leave_plainly() -> None:
        raise SystemExit(3)

    for function in (leave, leave_with_company, leave_plainly):
        with pytest.raises(RuntimeError):
            await call(function)


async def test_cancelling_a_call_reaches_an_async_tool_and_its_token() -> None:
    started, tokens = asyncio.Event(), []

    async def hang(token: CancellationToken) -> None:
        tokens.append(token)
        started.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(tool_of(hang).handler(context(), {}))
    await asyncio.wait_for(started.wait(), PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tokens[0].cancelled


async def test_a_token_is_not_set_by_a_call_that_ends_by_itself() -> None:
    tokens = []

    async def work(token: CancellationToken) -> None:
        tokens.append(token)

    await call(work)
    assert not tokens[0].cancelled


async def test_a_service_is_found_under_marks_and_none() -> None:
    services = Services()
    services.register_value(str, "service")

    async def look(it: str | None, a: int) -> str:
        return f"{it} {a}"

    assert (await call(look, {"a": 1}, services))["content"][0]["text"] == "service 1"


async def test_a_hint_that_can_not_be_resolved_is_told_at_the_first_call() -> None:
    def later(it: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point of the test

    made = tool_of(later)
    with pytest.raises(RegistrationError, match="Unknown"):
        await made.handler(context(), {})
    with pytest.raises(RegistrationError, match="Unknown"):
        made.describe()


async def test_a_call_prepares_once() -> None:
    async def add(a: int) -> int:
        return a

    made = tool_of(add)
    assert await run(made, {"a": 1}) == await run(made, {"a": 1})
    made.describe()


async def test_a_generator_that_a_plain_function_returns_runs_in_a_thread() -> None:
    """It may block, as the function may."""
    threads: list[int] = []

    def numbers() -> Iterable[int]:
        def generate() -> Iterator[int]:
            threads.append(threading.get_ident())
            yield 1
            yield 2

        return generate()

    result = await call(numbers)
    assert result["structuredContent"] == {"result": [1, 2]}
    assert threads != [threading.get_ident()]


async def test_an_iterator_is_read_in_the_thread_of_the_function() -> None:
    """A connection of sqlite3 can be used in its thread only."""
    connection_threads: list[int] = []

    def rows() -> list[int]:
        connection_threads.append(threading.get_ident())
        return (threading.get_ident() for _ in range(3))  # type: ignore[return-value]

    result = await call(rows)
    assert result["structuredContent"] == {"result": 3 * connection_threads}
    assert connection_threads != [threading.get_ident()]


async def test_the_reading_of_an_iterator_ends_with_its_call() -> None:
    begun, ended = threading.Event(), threading.Event()

    def numbers() -> Iterable[int]:
        def generate() -> Iterator[int]:
            try:
                while True:
                    begun.set()
                    time.sleep(0.001)
                    yield 1
            finally:
                ended.set()

        return generate()

    task = asyncio.ensure_future(call(numbers))
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, PATIENCE)


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_iterator_that_never_ends_is_an_error(*, is_async: bool) -> None:
    def numbers() -> Iterable[int]:
        return itertools.count()

    async def numbers_later() -> Iterable[int]:
        return itertools.count()

    with pytest.raises(RuntimeError, match="more than 1,000,000 members"):
        await call(numbers_later if is_async else numbers)


@pytest.mark.parametrize("name", ["context", "ctx"])
def test_an_untyped_context_is_reported(name: str, caplog: pytest.LogCaptureFixture) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def tool(q=None, {name}=None): ...", namespace)
    tool_of(namespace["tool"]).describe()
    assert caplog.messages == [
        f"tool: the parameter {name!r} has no type, so clients see it as an argument. Did you mean {name}: Context?"
    ]


def test_a_hand_written_schema_needs_one_parameter_for_all_arguments() -> None:
    def tool(**kwargs: object) -> None: ...

    with pytest.raises(RegistrationError, match=r"In a tool with input_schema=, one .*: arguments: dict\."):
        tool_of(tool, input_schema={"type": "object"}).describe()

"""Lifespans: what the author's code opens when the server starts, and closes when it stops."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from funcmcp import Context, MCPServer
from funcmcp._authoring.calling.lifespans import CannotStartError, LifespanError
from funcmcp._serving.composition import runtime_of
from funcmcp.client import Client
from tests.cli.processes import PYTHON, environment, running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Tasks, threads and timeouts are those of asyncio."),
    pytest.mark.branches("Results of tools are read as text."),
]


class Shop:
    """A server whose lifespans note when they run."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.mcp = MCPServer("shop")

        @self.mcp.tool
        def state(context: Context) -> dict[str, Any]:
            value = context.lifespan_context
            return value if isinstance(value, dict) else {"value": value}

    def add(self, name: str, value: Any = None) -> None:
        @self.mcp.add_lifespan
        async def lifespan() -> AsyncIterator[Any]:
            self.notes.append(f"+{name}")
            await asyncio.sleep(0)
            try:
                yield value
            finally:
                self.notes.append(f"-{name}")

    async def state(self) -> Any:
        return (await self.mcp.call_tool("state", raise_on_error=True)).structured_content


async def run_asgi(app: Any, *messages: str) -> list[dict[str, Any]]:
    """Run the lifespan of an ASGI application, and return what it has sent."""
    sent: list[dict[str, Any]] = []
    incoming = iter([{"type": f"lifespan.{message}"} for message in messages])

    async def receive() -> dict[str, Any]:
        return next(incoming)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    return sent


async def post(app: Any) -> int:
    """Send a ping to an ASGI application without a lifespan, and return the status."""
    sent: list[dict[str, Any]] = []
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    headers = {"host": "127.0.0.1", "content-type": "application/json", "accept": "application/json, text/event-stream"}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": fields, "server": ("127.0.0.1", 80)}
    await app(scope, receive, send)
    status: int = sent[0]["status"]
    return status


async def test_a_host_application_starts_and_stops_it() -> None:
    shop = Shop()
    shop.add("database", "connection")
    async with shop.mcp.lifespan():
        assert shop.notes == ["+database"]
        assert await shop.state() == {"value": "connection"}
    assert shop.notes == ["+database", "-database"]


async def test_a_client_in_memory_starts_and_stops_it() -> None:
    shop = Shop()
    shop.add("database", {"connection": 1})
    async with Client(shop.mcp) as first, Client(shop.mcp) as second:
        assert (await first.call_tool("state")).structured_content == {"connection": 1}
        assert (await second.call_tool("state")).structured_content == {"connection": 1}
        assert shop.notes == ["+database"]
    assert shop.notes == ["+database", "-database"]
    async with Client(shop.mcp):
        assert shop.notes == ["+database", "-database", "+database"]


async def test_a_client_in_memory_leaves_a_server_running_that_another_one_has_started() -> None:
    shop = Shop()
    shop.add("database")
    async with shop.mcp.lifespan():
        async with Client(shop.mcp):
            pass
        assert shop.notes == ["+database"]


async def test_an_asgi_server_starts_and_stops_it() -> None:
    shop = Shop()
    shop.add("database")
    sent = await run_asgi(shop.mcp, "startup", "shutdown")
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert shop.notes == ["+database", "-database"]


async def test_a_starlette_application_that_mounts_the_server_starts_and_stops_it() -> None:
    shop = Shop()
    shop.add("database")
    app = Starlette(routes=[Mount("/shop", shop.mcp)], lifespan=shop.mcp.lifespan)
    await run_asgi(app, "startup", "shutdown")
    assert shop.notes == ["+database", "-database"]


async def test_several_are_nested_in_their_order_and_their_dicts_are_joined() -> None:
    shop = Shop()
    shop.add("first", {"a": 1, "b": 1})
    shop.add("second")
    shop.add("third", {"b": 3})
    async with shop.mcp.lifespan():
        assert await shop.state() == {"a": 1, "b": 3}
    assert shop.notes == ["+first", "+second", "+third", "-third", "-second", "-first"]


async def test_several_values_that_are_not_dicts_are_refused() -> None:
    shop = Shop()
    shop.add("first", {"a": 1})
    shop.add("second", "connection")
    with pytest.raises(LifespanError, match=r"several lifespans with values, so .*lifespan must yield a dict"):
        async with shop.mcp.lifespan():
            pass
    assert shop.notes == ["+first", "+second", "-second", "-first"]


async def test_without_a_lifespan_the_context_is_an_empty_dict() -> None:
    assert await Shop().state() == {}
    shop = Shop()
    shop.add("quiet")
    async with shop.mcp.lifespan():
        assert await shop.state() == {}


async def test_a_direct_call_does_not_start_it_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    shop.add("database", "connection")
    assert (await shop.mcp.call_tool("state")).is_error
    assert "async with mcp.lifespan():" in caplog.text
    assert shop.notes == []


async def test_a_function_may_take_the_server_and_be_a_context_manager() -> None:
    mcp = MCPServer("shop")
    servers = []

    @mcp.add_lifespan
    @asynccontextmanager
    async def lifespan(server: MCPServer) -> AsyncIterator[None]:
        servers.append(server)
        yield

    async with mcp.lifespan():
        assert servers == [mcp]


async def test_it_is_left_in_the_task_that_has_entered_it() -> None:
    mcp = MCPServer("shop")

    @mcp.add_lifespan
    async def lifespan() -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield
            tasks.cancel_scope.cancel()

    assert await asyncio.create_task(post(mcp)) == 400  # a ping before `initialize`
    await asyncio.create_task(runtime_of(mcp).aclose())


async def test_the_first_request_starts_it_under_a_server_without_lifespan(caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    shop.add("database")
    await asyncio.gather(post(shop.mcp), post(shop.mcp), post(shop.mcp))
    assert shop.notes == ["+database"]
    assert "served without its lifespan" in caplog.text
    await runtime_of(shop.mcp).aclose()
    assert shop.notes == ["+database", "-database"]


async def test_a_request_is_refused_while_it_fails_to_start(caplog: pytest.LogCaptureFixture) -> None:
    mcp, failures = MCPServer("shop"), [ConnectionError("refused")]

    @mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        for failure in failures:
            raise failure
        yield

    with caplog.at_level(logging.ERROR):
        assert [await post(mcp), await post(mcp)] == [503, 503]
    assert "database failed with ConnectionError: refused" in caplog.text
    failures.clear()
    assert await post(mcp) == 400
    await runtime_of(mcp).aclose()


async def test_an_asgi_server_gets_the_reason_of_a_failed_start() -> None:
    shop = Shop()
    shop.add("first")

    @shop.mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        for failure in [ConnectionError("refused")]:
            raise failure
        yield

    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(LifespanError, match=r"^The server can't start: its lifespan .*database failed with"):
        await shop.mcp({"type": "lifespan"}, receive, send)
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert "ConnectionError: refused" in sent[0]["message"]
    assert shop.notes == ["+first", "-first"]


async def test_a_reason_outside_of_the_code_is_one_line_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")

    @mcp.add_lifespan
    async def connect() -> AsyncIterator[None]:
        if not caplog.records:
            raise CannotStartError("The other server is away.")
        yield

    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(CannotStartError, match=r"^The other server is away\.$"):
        await mcp({"type": "lifespan"}, receive, send)
    assert sent == [{"type": "lifespan.startup.failed", "message": "The other server is away."}]
    assert caplog.records == []
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(mcp), base_url="http://localhost") as client:
        response = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert (response.status_code, response.json()["error"]["message"]) == (
        503,
        "The server can't start; its log has the reason.",
    )
    assert [(record.getMessage(), record.exc_text) for record in caplog.records] == [
        ("The other server is away.", None)
    ]


class Panic(BaseException):
    """What a library may raise that is no Exception."""


@pytest.mark.parametrize("error", [ExceptionGroup("g", [ConnectionError("refused"), OSError("full")]), Panic("stuck")])
async def test_a_start_that_fails_in_a_group_names_its_members_and_is_logged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    mcp, sent = MCPServer("shop"), []

    @mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        for failure in [error]:
            raise failure
        yield

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message["message"])

    with pytest.raises(LifespanError):
        await mcp({"type": "lifespan"}, receive, send)
    expected = "Panic: stuck" if isinstance(error, Panic) else "ConnectionError: refused; OSError: full"
    assert expected in sent[0]
    assert "Traceback" not in sent[0]
    [record] = [record for record in caplog.records if record.name == "funcmcp"]
    assert record.__dict__["feature"] == "lifespan startup"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LifespanError)
    assert record.exc_info[1].__cause__ is error
    assert record.exc_text is not None
    assert expected.rpartition("; ")[2] in record.exc_text


async def test_an_end_that_fails_in_a_group_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")

    @mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        yield
        raise ExceptionGroup("g", [ConnectionError("lost")])

    with pytest.raises(ExceptionGroup):
        await run_asgi(mcp, "startup", "shutdown")
    [record] = [record for record in caplog.records if record.name == "funcmcp"]
    assert record.getMessage() == "ExceptionGroup: g (ConnectionError: lost) (feature=lifespan shutdown)"


async def test_an_asgi_server_gets_the_reason_of_a_failed_end() -> None:
    mcp = MCPServer("shop")

    @mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        yield
        raise ConnectionError("lost")

    with pytest.raises(ConnectionError, match="lost"):
        await run_asgi(mcp, "startup", "shutdown")


async def test_a_start_that_is_cancelled_ends_what_has_been_opened() -> None:
    shop = Shop()
    shop.add("first")
    waiting = asyncio.Event()

    @shop.mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        waiting.set()
        await asyncio.Event().wait()
        yield

    first = asyncio.create_task(runtime_of(shop.mcp).start())
    await waiting.wait()
    lifespans = runtime_of(shop.mcp).services.lifespans
    task = lifespans._by_loop[asyncio.get_running_loop()]._task  # the end of an event loop cancels it
    assert task is not None
    task.cancel()
    with pytest.raises(LifespanError, match="its start was cancelled"):
        await first
    await asyncio.wait([task])
    assert shop.notes == ["+first", "-first"]


async def test_a_request_that_is_cancelled_does_not_cancel_the_start() -> None:
    shop, opened = Shop(), asyncio.Event()

    @shop.mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        await opened.wait()
        yield

    lifespans = runtime_of(shop.mcp).services.lifespans
    cancelled, waiting = asyncio.create_task(lifespans.enter()), asyncio.create_task(lifespans.enter())
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    opened.set()
    await waiting
    assert lifespans.is_running
    await lifespans.leave()
    assert not lifespans.is_running


def test_the_end_of_an_event_loop_stops_it_and_the_next_one_starts_it_again() -> None:
    shop = Shop()
    shop.add("database")
    asyncio.run(post(shop.mcp))
    assert shop.notes == ["+database", "-database"]
    asyncio.run(post(shop.mcp))
    assert shop.notes == ["+database", "-database"] * 2


def test_the_end_of_an_event_loop_stops_a_server_that_nobody_refers_to() -> None:
    notes: list[str] = []

    async def use() -> None:
        shop = Shop()
        shop.notes = notes
        shop.add("database")
        await post(shop.mcp)
        del shop
        gc.collect()
        assert notes == ["+database"]

    asyncio.run(use())
    assert notes == ["+database", "-database"]


async def plain() -> None: ...


@pytest.mark.parametrize("function", [plain, "database", None, lambda: (yield)])
def test_what_can_not_be_a_lifespan_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="A lifespan is an async function with one yield"):
        MCPServer("shop").add_lifespan(function)


async def test_a_function_that_returns_something_else_is_refused_at_the_start() -> None:
    mcp = MCPServer("shop")
    mcp.add_lifespan(lambda: 5)
    with pytest.raises(LifespanError, match="must return an async context manager, not int"):
        async with mcp.lifespan():
            pass


async def test_none_can_be_added_to_a_server_that_has_started() -> None:
    shop = Shop()
    shop.add("first")
    async with shop.mcp.lifespan():
        with pytest.raises(RuntimeError, match=r"The server has started\. Call mcp\.add_lifespan before that\."):
            shop.add("second")


SERVER = """
import sys
from funcmcp import MCPServer

mcp = MCPServer("shop")

@mcp.add_lifespan
async def database():
    if "fail" in sys.argv:
        raise ConnectionError("refused")
    print("opened", file=sys.stderr, flush=True)
    yield
    print("closed", file=sys.stderr, flush=True)

if __name__ == "__main__":
    mcp.run("http" if "http" in sys.argv else "stdio", port=0 if "http" in sys.argv else None)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lifespans") / "server.py"
    path.write_text(SERVER)
    return path


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, str(script), *arguments],
        input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_stdio_starts_and_stops_it(script: Path) -> None:
    ended = run(script)
    assert (ended.returncode, ended.stderr) == (0, "opened\nclosed\n")
    assert ended.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n'


def test_stdio_does_not_start_without_it(script: Path) -> None:
    ended = run(script, "fail")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "The server can't start: its lifespan database failed with ConnectionError: refused" in ended.stderr


def test_http_starts_and_stops_it(script: Path) -> None:
    with running([PYTHON, str(script), "http"]) as process:
        process.endpoint()
        process.process.send_signal(signal.SIGTERM)
        assert process.ended() == 0
    assert process.output.splitlines()[0] == "opened"
    assert process.output.splitlines()[-1] == "closed"


def test_http_does_not_start_without_it(script: Path) -> None:
    ended = run(script, "http", "fail")
    assert ended.returncode == 1
    assert "its lifespan database failed with ConnectionError: refused" in ended.stderr
    assert ended.stderr.endswith("The server could not start. The reason is above.\n")


def test_each_event_loop_has_its_own_lifespan() -> None:
    shop = Shop()
    shop.add("database", "connection")
    loops = []

    @shop.mcp.add_lifespan
    async def loop() -> AsyncIterator[None]:
        loops.append(asyncio.get_running_loop())
        yield

    async def use() -> asyncio.AbstractEventLoop:
        async with Client(shop.mcp) as client:
            assert (await client.call_tool("state")).structured_content == {"value": "connection"}
        return asyncio.get_running_loop()

    async def outer() -> None:
        async with Client(shop.mcp) as client:
            with ThreadPoolExecutor() as threads:
                futures = [threads.submit(asyncio.run, use()) for _ in range(4)]
                used = [await asyncio.wrap_future(future) for future in futures]
            assert (await client.call_tool("state")).structured_content == {"value": "connection"}
        assert sorted(map(id, used)) == sorted(map(id, loops[1:]))

    asyncio.run(outer())
    assert shop.notes.count("+database") == shop.notes.count("-database") == 5


def test_a_loop_that_ends_without_its_last_user_leaves_the_lifespan() -> None:
    shop = Shop()
    shop.add("database")
    asyncio.run(post(shop.mcp))
    assert shop.notes == ["+database", "-database"]
    asyncio.run(post(shop.mcp))
    assert shop.notes == ["+database", "-database"] * 2


async def test_a_user_that_comes_while_the_lifespan_ends_starts_it_again() -> None:
    shop, ending, may_end = Shop(), asyncio.Event(), asyncio.Event()

    @shop.mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        shop.notes.append("+")
        yield
        ending.set()
        await may_end.wait()
        shop.notes.append("-")

    lifespans = runtime_of(shop.mcp).services.lifespans
    await lifespans.enter()
    leaving = asyncio.create_task(lifespans.leave())
    await ending.wait()
    entering = asyncio.create_task(lifespans.enter())
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(leaving, entering)
    assert shop.notes == ["+", "-", "+"]
    await lifespans.leave()
    assert shop.notes == ["+", "-", "+", "-"]


async def test_a_lifespan_is_left_in_the_loop_that_entered_it() -> None:
    lifespans = runtime_of(Shop().mcp).services.lifespans
    with pytest.raises(RuntimeError, match="started in another event loop"):
        await lifespans.leave()


async def test_a_start_that_its_only_user_does_not_wait_for_ends_at_once() -> None:
    shop, started, may_start, ended = Shop(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    @shop.mcp.add_lifespan
    async def database() -> AsyncIterator[None]:
        started.set()
        await may_start.wait()
        shop.notes.append("+")
        yield
        shop.notes.append("-")
        ended.set()

    lifespans = runtime_of(shop.mcp).services.lifespans
    entering = asyncio.create_task(lifespans.enter())
    await started.wait()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    may_start.set()
    await ended.wait()
    assert shop.notes == ["+", "-"]


async def test_the_value_outside_of_event_loops_is_that_of_the_only_one() -> None:
    shop = Shop()
    shop.add("database", "connection")
    lifespans = runtime_of(shop.mcp).services.lifespans
    with pytest.raises(RuntimeError, match="has not started"):
        await asyncio.to_thread(lambda: lifespans.value)
    async with shop.mcp.lifespan():
        assert await asyncio.to_thread(lambda: lifespans.value) == lifespans.value == "connection"

        async def second() -> None:
            async with shop.mcp.lifespan():
                with pytest.raises(RuntimeError, match="runs in several event loops"):
                    await asyncio.to_thread(lambda: lifespans.value)

        await asyncio.to_thread(asyncio.run, second())

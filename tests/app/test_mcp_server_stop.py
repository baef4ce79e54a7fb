"""`MCPServer.stop`, and a task of `run_async` that is cancelled: all is closed, and the server can start again."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator  # noqa: TC003 - an annotation of a factory
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp.testing import Client
from tests.cli.processes import PYTHON, environment
from tests.patience import PATIENCE
from tests.sockets import free_port

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Watched:
    """A server whose lifespan and service note when they begin and end."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.mcp = MCPServer("Watched")
        self.started = asyncio.Event()

        @self.mcp.add_lifespan
        async def lifespan() -> AsyncIterator[None]:
            self.notes.append("+lifespan")
            self.started.set()
            yield
            self.notes.append("-lifespan")

        async def open_pool() -> AsyncIterator[Watched]:
            self.notes.append("+pool")
            yield self
            self.notes.append("-pool")

        self.mcp.services.register_factory(Watched, open_pool, scope="app")

        @self.mcp.tool
        async def use(pool: Watched) -> str:
            return "used"

        @self.mcp.tool
        async def wait(pool: Watched) -> str:
            self.started.set()
            await asyncio.Event().wait()
            return "never"


async def listening(port: int) -> None:
    """Wait until a server accepts connections."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.close()
        return


async def cancel(serving: asyncio.Task[None], _mcp: MCPServer) -> None:
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def stop(serving: asyncio.Task[None], mcp: MCPServer) -> None:
    mcp.stop()
    await serving


async def stop_in_a_thread(serving: asyncio.Task[None], mcp: MCPServer) -> None:
    await asyncio.to_thread(mcp.stop)
    await serving


@pytest.mark.parametrize("end", [cancel, stop, stop_in_a_thread])
async def test_a_server_that_is_stopped_closes_everything_and_can_start_again(end: Any) -> None:
    watched, port = Watched(), free_port()
    before = asyncio.all_tasks()
    for _ in range(2):
        watched.notes.clear()
        serving = asyncio.create_task(watched.mcp.run_async("http", port=port))
        await listening(port)
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert (await client.call_tool("use")).text == "used"
        await end(serving, watched.mcp)
        assert watched.notes == ["+lifespan", "+pool", "-pool", "-lifespan"]
        assert asyncio.all_tasks() == before
        with pytest.raises(OSError, match=r"refused|Connect"):
            await asyncio.open_connection("127.0.0.1", port)
    watched.mcp.stop()  # nothing runs


@pytest.mark.parametrize("end", [cancel, stop])
async def test_a_server_that_is_stopped_while_it_starts_ends_its_lifespan(end: Any) -> None:
    watched = Watched()
    serving = asyncio.create_task(watched.mcp.run_async("http", port=0))
    await watched.started.wait()
    await end(serving, watched.mcp)
    assert watched.notes == ["+lifespan", "-lifespan"]


async def test_a_task_that_is_cancelled_twice_does_not_wait_for_calls() -> None:
    watched, port = Watched(), free_port()
    serving = asyncio.create_task(watched.mcp.run_async("http", port=port))
    await listening(port)
    watched.started.clear()
    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await watched.started.wait()
        serving.cancel()
        await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(Exception, match="ended before the request was answered"):
            await call
    assert watched.notes == ["+lifespan", "+pool", "-pool", "-lifespan"]


async def test_a_time_limit_around_run_async_ends_the_server() -> None:
    watched = Watched()

    async def let_time_pass(limit: asyncio.Timeout) -> None:
        await watched.started.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    async def run() -> None:
        async with asyncio.timeout(PATIENCE) as limit, asyncio.TaskGroup() as group:
            group.create_task(let_time_pass(limit))
            await watched.mcp.run_async("http", port=0)

    with pytest.raises(TimeoutError):
        await run()
    assert watched.notes == ["+lifespan", "-lifespan"]


STDIO = """
import asyncio, os, sys, threading
from funcmcp import MCPServer

mcp = MCPServer("Greeter")
print = lambda text: sys.stderr.write(text + chr(10))

@mcp.add_lifespan
async def lifespan():
    print("opened")
    yield
    print("closed")

@mcp.tool
async def end() -> str:
    END
    return "ended"

async def main():
    global serving
    for _ in range(2):
        serving = asyncio.create_task(mcp.run_async("stdio"))
        try:
            await serving
        except asyncio.CancelledError:
            print("cancelled")
        assert asyncio.all_tasks() == {asyncio.current_task()}
    print("continues")

asyncio.run(main())
"""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("end", "word"), [("threading.Thread(target=mcp.stop).start()", []), ("serving.cancel()", ["cancelled"])]
)
def test_a_server_on_stdio_can_be_stopped_and_started_again(tmp_path: Path, end: str, word: list[str]) -> None:
    script = tmp_path / "server.py"
    script.write_text(STDIO.replace("END", end))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "end", "arguments": {}}}
    line = json.dumps(call).replace('"arguments": {}', '"arguments": {}, "_meta": ' + json.dumps(META)) + "\n"
    with subprocess.Popen(
        [PYTHON, str(script)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(line)
        process.stdin.flush()
        lines: list[str] = []
        while (text := process.stderr.readline().rstrip()) != "opened" or lines.count("opened") < 1:
            lines.append(text)
        process.stdin.write(line)
        process.stdin.flush()
        lines += ["opened", *process.stderr.read().splitlines()]
        assert process.wait(PATIENCE) == 0
    assert lines == ["opened", "closed", *word, "opened", "closed", *word, "continues"]

"""Upstreams on stdio: their processes end with their sessions, with this process, and are started again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from funcmcp import MCPServer
from funcmcp._upstreams.sessions import StoredSessions
from funcmcp.client import Client, StdioCommand
from funcmcp.state import SQLiteState, StoreUnavailableError
from funcmcp.upstreams import Upstream, UpstreamError, UpstreamLimits, UpstreamTimeouts
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SLOW = pytest.mark.slow("Processes start, and some of them hang or are killed.")

SERVER = Path(__file__).with_name("stdio_server.py")
COMMAND = (sys.executable, "-I", "-S", str(SERVER))
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups and no SIGKILL.")


def counting(**options: Any) -> tuple[MCPServer, Upstream]:
    mcp = MCPServer("Desk", sessions="memory")
    upstream = Upstream(StdioCommand(*COMMAND), name="counting", **options)
    mcp.mount(upstream, prefix="up")
    return mcp, upstream


@asynccontextmanager
async def client_of(mcp: MCPServer, revision: str = "2025-11-25") -> AsyncIterator[Client]:
    async with asyncio.timeout(PATIENCE), Client(mcp, revision=revision) as client:
        yield client


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(f"up_{tool}", arguments)
    return str(result.content[0]["text"])


def children() -> set[int]:
    """Return the processes of the upstream that this process has, also those below others."""
    return {child.pid for child in psutil.Process().children(recursive=True) if _is_upstream(child)}


def _is_upstream(process: psutil.Process) -> bool:
    try:
        return str(SERVER) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(pid: int) -> None:
    """Wait until a process has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        async with asyncio.timeout(PATIENCE):
            while process.status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110 - a process has no event
                await asyncio.sleep(0.01)


async def test_a_process_begins_while_the_store_of_sessions_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> None:
        raise StoreUnavailableError(1)

    monkeypatch.setattr(StoredSessions, "find", unavailable)
    monkeypatch.setattr(StoredSessions, "replace", unavailable)
    mcp = MCPServer("Desk", sessions="memory", state=SQLiteState(tmp_path / "state.db"))
    mcp.mount(Upstream(StdioCommand(*COMMAND), name="counting"), prefix="up")
    async with client_of(mcp) as client:
        assert [await text_of(client, "count"), await text_of(client, "count")] == ["1", "2"]


async def test_each_session_of_a_client_has_a_process_that_ends_with_it() -> None:
    mcp, upstream = counting()
    async with client_of(mcp) as first:
        assert [await text_of(first, "count"), await text_of(first, "count")] == ["1", "2"]
        sessions = upstream.status.sessions
        async with client_of(mcp) as second:
            assert await text_of(second, "count") == "1"
            pid = int(await text_of(second, "pid"))
            assert upstream.status.sessions <= sessions + 1  # that of a list may have ended meanwhile
        await gone(pid)
        assert await text_of(first, "count") == "3"
    assert children() == set()
    assert upstream.status.sessions == 0


async def test_one_session_for_all_callers_and_one_for_each_call() -> None:
    mcp, _ = counting(sessions="shared")
    async with client_of(mcp) as first, client_of(mcp) as second:
        assert [await text_of(first, "count"), await text_of(second, "count")] == ["1", "2"]
        assert len(children()) == 1
    mcp, upstream = counting(sessions="call")
    async with client_of(mcp) as first:
        assert [await text_of(first, "count"), await text_of(first, "count")] == ["1", "1"]
    assert children() == set()
    assert upstream.status.sessions == 0


@posix_only
async def test_a_killed_process_fails_its_calls_at_once_and_the_next_call_starts_another_one(tmp_path: Path) -> None:
    mcp, upstream = counting()
    calls = tmp_path / "calls"
    async with client_of(mcp) as client:
        pid = int(await text_of(client, "pid"))
        waiting = [asyncio.create_task(client.call_tool("up_silent", {"file": str(calls)})) for _ in range(3)]
        while not calls.exists() or len(calls.read_text().splitlines()) < len(waiting):  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        for result in await asyncio.gather(*waiting):
            assert result.is_error
            assert "The connection to the server 'counting' ended before its answer" in result.content[0]["text"]
        status = upstream.status
        assert status.state == "reconnecting"
        assert "ended with exit code -9." in str(status.last_error)
        assert await text_of(client, "count") == "1"
        status = upstream.status
        assert (status.state, status.reconnects) == ("connected", 1)
        assert len(calls.read_text().splitlines()) == len(waiting)  # none was sent twice
    assert children() == set()


@_SLOW
@posix_only
async def test_a_process_that_a_killed_wrapper_has_left_ends_before_the_next_start() -> None:
    mcp, upstream = counting()
    async with client_of(mcp) as client:
        pid, child = int(await text_of(client, "pid")), int(await text_of(client, "child"))
        os.kill(pid, signal.SIGKILL)
        while upstream.status.state != "reconnecting":  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.001)
        assert await text_of(client, "count") == "1"
        await gone(child)
    assert children() == set()


@_SLOW
@posix_only
async def test_each_call_has_one_answer_while_the_process_is_killed() -> None:
    kills = 1000
    mcp, _ = counting()
    answers: list[str] = []
    async with Client(mcp, revision="2025-11-25") as client:
        await text_of(client, "count")
        for number in range(kills):
            async with asyncio.timeout(PATIENCE):
                call = asyncio.create_task(text_of(client, "count"))
                for _ in range(number % 7):  # at another point of the call each time
                    await asyncio.sleep(0)
                for pid in children():
                    with contextlib.suppress(ProcessLookupError):  # it has ended with its parent
                        os.kill(pid, signal.SIGKILL)
                # The first call may have had its answer before the process ended. Then the next one meets its end.
                texts = [await call, await text_of(client, "count")]
                assert sum("'counting'" in text for text in texts) <= 1
                assert (await text_of(client, "count")).isdigit()
                answers += texts
    assert len(answers) == 2 * kills
    assert all(text.isdigit() or "'counting'" in text for text in answers)
    assert children() == set()


_PARENT = """
import asyncio, sys
from funcmcp.client import StdioCommand
from funcmcp import MCPServer
from funcmcp.client import Client
from funcmcp.upstreams import Upstream

async def main():
    mcp = MCPServer("Desk")
    mcp.mount(Upstream(StdioCommand(*sys.argv[1:])), prefix="up")
    async with Client(mcp) as client:
        for tool in ("pid", "child"):
            print((await client.call_tool(f"up_{tool}")).content[0]["text"], flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@_SLOW
@posix_only
async def test_no_process_is_left_when_this_process_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT, *COMMAND], stdout=subprocess.PIPE, text=True) as parent:  # noqa: ASYNC220 - it only starts it
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        everything = [child.pid for child in psutil.Process(parent.pid).children(recursive=True)]
        assert set(pids) <= set(everything)
        parent.kill()
        for pid in everything:
            await gone(pid)


@_SLOW
@posix_only
async def test_a_process_that_ignores_the_end_of_stdin_is_killed_with_its_children() -> None:
    mcp = MCPServer("Desk")
    ignoring = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    program = f"{ignoring}; exec(open({str(SERVER)!r}).read()); signal.pause()"
    command = StdioCommand(sys.executable, "-c", program, stop_seconds=0.1)
    mcp.mount(Upstream(command, name="stubborn"), prefix="up")
    async with client_of(mcp) as client:
        pid, child = int(await text_of(client, "pid")), int(await text_of(client, "child"))
    await gone(pid)
    await gone(child)


async def test_a_child_gets_only_its_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "canary")
    mcp = MCPServer("Desk")
    mcp.mount(Upstream(StdioCommand(*COMMAND, env={"OWN": "value"})), prefix="up")
    async with client_of(mcp) as client:
        assert await text_of(client, "variable", name="SECRET_OF_THE_SERVER") == "missing"
        assert await text_of(client, "variable", name="OWN") == "value"


async def test_stderr_goes_to_the_log_with_the_name_and_bounded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    mcp, _ = counting()
    async with client_of(mcp) as client:
        assert await text_of(client, "noise", lines=0) == "written"
        assert await text_of(client, "noise", lines=20_000) == "written"  # more than a pipe holds
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("counting: ")]
    assert "counting: \\x1b[31mred" in lines
    assert lines.count("counting: " + "x" * 100) <= 200
    assert any("further lines" in line for line in lines)


async def test_parallel_calls_over_one_pipe_do_not_wait_for_each_other() -> None:
    mcp, _ = counting(sessions="shared")
    async with client_of(mcp) as client:
        waiting = [asyncio.create_task(client.call_tool("up_silent", {"text": "x" * 50_000})) for _ in range(20)]
        while int(await text_of(client, "count")) < len(waiting):  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0)
        assert await text_of(client, "slow_answer") == "done"
        results = await asyncio.gather(*waiting)
    assert [result.content[0]["text"] for result in results] == ["late"] * len(waiting)


async def test_the_limit_of_processes_is_an_error_that_names_the_option() -> None:
    mcp, _ = counting(limits=UpstreamLimits(processes=1))
    async with client_of(mcp) as first, client_of(mcp) as second:
        assert await text_of(first, "count") == "1"
        assert "(UpstreamLimits.processes)" in await text_of(second, "count")
        assert await text_of(first, "count") == "2"


@_SLOW
async def test_an_idle_process_makes_room_and_an_unused_one_ends() -> None:
    mcp, upstream = counting(limits=UpstreamLimits(processes=1, min_idle_seconds=0.001))
    async with client_of(mcp) as first, client_of(mcp) as second:
        pid = int(await text_of(first, "pid"))
        await asyncio.sleep(0.002)
        assert await text_of(second, "count") == "1"
        await gone(pid)
    mcp, upstream = counting(limits=UpstreamLimits(idle_seconds=0.05))
    async with client_of(mcp) as first:
        pid = int(await text_of(first, "pid"))
        await gone(pid)
        assert upstream.status.sessions == 1  # that of this server itself
        assert await text_of(first, "count") == "1"


async def test_a_command_that_does_not_exist_is_away_and_is_tried_again_later(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("Desk")
    upstream = Upstream(StdioCommand("/nothing/here"), name="nothing")
    mcp.mount(upstream, prefix="up")

    @mcp.tool
    def local() -> str:
        return "here"

    async with client_of(mcp) as client:
        with pytest.raises(UpstreamError, match="'nothing' is away"):
            await upstream.connect()
        assert upstream.status.state == "reconnecting"
        assert "cannot be started" in str(upstream.status.last_error)
        assert (await client.call_tool("local")).content[0]["text"] == "here"
    lines = [record.getMessage() for record in caplog.records]
    assert sum(line.startswith("The server 'nothing' is away: ") for line in lines) == 1


@_SLOW
async def test_a_program_that_ends_when_it_starts_is_started_once_for_each_attempt(tmp_path: Path) -> None:
    starts, usable = tmp_path / "starts", tmp_path / "usable"
    usable.touch()
    script = f"echo >> {starts}; test -e {usable} && exec {sys.executable} {SERVER}"
    mcp = MCPServer("Desk")
    upstream = Upstream(StdioCommand("sh", "-c", script), name="counting")
    mcp.mount(upstream, prefix="up")
    async with client_of(mcp) as client:
        assert await text_of(client, "count") == "1"
        usable.unlink()
        await text_of(client, "crash")
        before = len(starts.read_text())
        for _ in range(2):
            assert "'counting' is away, so nothing was sent to it" in await text_of(client, "count")
        assert len(starts.read_text()) == before + 2
        usable.touch()
        assert await text_of(client, "count") == "1"
        assert upstream.status.state == "connected"


@_SLOW
async def test_a_request_that_is_silent_for_too_long_is_cancelled_and_names_the_option() -> None:
    mcp, _ = counting(timeouts=UpstreamTimeouts(request=0.05))
    async with client_of(mcp) as client:
        assert "(UpstreamTimeouts.request)" in await text_of(client, "silent")
        assert await text_of(client, "count") == "2"
    mcp, _ = counting(timeouts=UpstreamTimeouts(first_answer=0.05))
    async with client_of(mcp) as client:
        assert "(UpstreamTimeouts.first_answer)" in await text_of(client, "silent")
    mcp, _ = counting(timeouts=UpstreamTimeouts(total=0.05))
    async with client_of(mcp) as client:
        assert "(UpstreamTimeouts.total)" in await text_of(client, "silent")

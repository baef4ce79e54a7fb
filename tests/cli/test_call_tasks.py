"""``funcmcp call`` follows a call that becomes a task."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.processes import FUNCMCP, START_SECONDS, funcmcp, running
from tests.cli.test_call import Terminal
from tests.client.servers import answering

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVER = '''
import asyncio

from pydantic import BaseModel

from funcmcp import MCPError, MCPServer, ToolContext
from funcmcp.tasks import TaskOptions

mcp = MCPServer("Long work")
BRIEF = TaskOptions(poll=0.05)
ended = []


class Form(BaseModel):
    name: str


@mcp.tool(task=BRIEF)
async def read(context: ToolContext) -> str:
    """Read for half a second."""
    await context.progress(1, 2, "reading")
    await asyncio.sleep(0.5)
    return "done"


@mcp.tool(task=BRIEF)
async def hang(context: ToolContext) -> str:
    """Work until the task is cancelled."""
    await context.progress(1, 2, "hanging")
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(1)


@mcp.tool
def count_ended() -> int:
    """Return how many runs of hang have ended."""
    return len(ended)


@mcp.tool(task=BRIEF)
async def ask(context: ToolContext) -> str:
    """Ask for a name."""
    answer = await context.elicit("Who are you?", Form)
    return f"Hello, {answer.content.name}" if answer.content else answer.action


@mcp.tool(task=BRIEF)
async def broken() -> str:
    """Fail with an error."""
    raise MCPError(-32603, "Internal error", {"errorId": "0123456789abcdef"})
'''


@pytest.fixture(scope="module")
def task_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    (path / "server.py").write_text(SERVER)
    return path


@pytest.fixture(scope="module")
def url(task_folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=task_folder) as process:
        yield process.endpoint()


@pytest.mark.parametrize("where", ["target", "url"])
def test_the_result_of_a_task_is_printed(task_folder: Path, url: str, where: str) -> None:
    shown = funcmcp("call", "server.py" if where == "target" else url, "read", folder=task_folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "done\n", "")


def test_verbose_shows_each_new_state_of_the_task_as_a_line(task_folder: Path, url: str) -> None:
    shown = funcmcp("call", url, "read", "--verbose", folder=task_folder)
    assert (shown.returncode, shown.stdout) == (0, "done\n")
    assert shown.stderr.splitlines() == [
        "task: working",
        "task: working reading (1 of 2)",
        "task: completed reading (1 of 2)",
    ]


def test_an_error_of_a_task_is_shown_with_its_id(task_folder: Path, url: str) -> None:
    shown = funcmcp("call", url, "broken", folder=task_folder)
    line = "The server answered with error -32603: Internal error (error id 0123456789abcdef)\n"
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", line)


def test_a_terminal_shows_the_status_and_the_questions_of_a_task(task_folder: Path, url: str) -> None:
    terminal = Terminal(task_folder, "call", url, "read")
    try:
        terminal.read_until("reading (1 of 2)")
        assert terminal.process.communicate(timeout=START_SECONDS)[0] == "done\n"
    finally:
        terminal.close()
    terminal = Terminal(task_folder, "call", url, "ask")
    try:
        for question, text in (("Answer? [y/n] (y): ", "y"), ("name: ", "Ada")):
            terminal.read_until(question)
            terminal.type(text)
        assert terminal.process.communicate(timeout=START_SECONDS)[0] == "Hello, Ada\n"
    finally:
        terminal.close()


def test_ctrl_c_cancels_the_task(task_folder: Path, url: str) -> None:
    terminal = Terminal(task_folder, "call", url, "hang")
    try:
        terminal.read_until("hanging (1 of 2)")
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_until("Cancelling the task. Ctrl+C again ends the command at once.")
        assert terminal.process.communicate(timeout=START_SECONDS)[0] == ""
        assert terminal.process.returncode == 130
    finally:
        terminal.close()
    assert "Traceback" not in terminal.shown
    assert funcmcp("call", url, "count_ended", folder=task_folder).stdout == "1\n"


def test_a_second_ctrl_c_ends_the_command_at_once(task_folder: Path) -> None:
    """The server does not answer the cancellation, which the command would wait for."""
    task: dict[str, Any] = {"taskId": "t1", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttlMs": None}
    task["statusMessage"] = "working hard"
    results = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "hang", "inputSchema": {"type": "object"}}]},
        "tools/call": {"resultType": "task", **task},
        "tasks/get": task,
    }
    over = threading.Event()

    def respond(message: dict[str, Any]) -> tuple[int, str, bytes]:
        if message["method"] == "tasks/cancel":
            over.wait(START_SECONDS)
        body = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}
        return 200, "application/json", json.dumps(body).encode()

    with answering(respond) as url:
        terminal = Terminal(task_folder, "call", url, "hang")
        try:
            terminal.read_until("working hard")
            terminal.process.send_signal(signal.SIGINT)
            terminal.read_until("Cancelling the task")
            started = time.monotonic()
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.process.wait(START_SECONDS) == 130
            assert time.monotonic() - started < 1.5  # the cancellation may take 2 seconds, and closing 5 more
        finally:
            over.set()
            terminal.close()

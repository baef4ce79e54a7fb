"""``funcmcp call`` follows a call that becomes a task."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.cli.test_call import Terminal
from tests.client.servers import answering
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = '''
import asyncio

from pydantic import BaseModel

from funcmcp import MCPError, MCPServer, Context
from funcmcp.tasks import TaskOptions

mcp = MCPServer("Long work")
BRIEF = TaskOptions(poll=0.05)
ended = []


class Form(BaseModel):
    name: str


@mcp.tool(task=BRIEF)
async def read(context: Context) -> str:
    """Read for half a second."""
    await context.report_progress(1, 2, "reading")
    await asyncio.sleep(0.5)
    return "done"


@mcp.tool(task=BRIEF)
async def hang(context: Context) -> str:
    """Work until the task is cancelled."""
    await context.report_progress(1, 2, "hanging")
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(1)


@mcp.tool
def count_ended() -> int:
    """Return how many runs of hang have ended."""
    return len(ended)


@mcp.tool(task=BRIEF)
async def ask(context: Context) -> str:
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


@_SLOW
@pytest.mark.parametrize("where", ["target", "url"])
def test_the_result_of_a_task_is_printed(task_folder: Path, url: str, where: str) -> None:
    shown = funcmcp("call", "server.py" if where == "target" else url, "read", folder=task_folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "done\n", "")


@_SLOW
def test_verbose_shows_each_new_state_of_the_task_as_a_line(task_folder: Path, url: str) -> None:
    shown = funcmcp("call", url, "read", "--verbose", folder=task_folder)
    assert (shown.returncode, shown.stdout) == (0, "done\n")
    assert shown.stderr.splitlines() == [
        "task: working",
        "task: working reading (1 of 2)",
        "task: completed",
    ]


@_SLOW
def test_an_error_of_a_task_is_shown_with_its_id(task_folder: Path, url: str) -> None:
    shown = funcmcp("call", url, "broken", folder=task_folder)
    line = "The server answered with error -32603: Internal error (error id 0123456789abcdef)\n"
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", line)


@_SLOW
def test_a_terminal_shows_the_status_and_the_questions_of_a_task(task_folder: Path, url: str) -> None:
    terminal = Terminal(task_folder, "call", url, "read")
    try:
        terminal.read_until("reading (1 of 2)")
        assert terminal.process.communicate(timeout=PATIENCE)[0] == "done\n"
    finally:
        terminal.close()
    terminal = Terminal(task_folder, "call", url, "ask")
    try:
        for question, text in (("Answer? [y/n] (y): ", "y"), ("name: ", "Ada")):
            terminal.read_until(question)
            terminal.type(text)
        assert terminal.process.communicate(timeout=PATIENCE)[0] == "Hello, Ada\n"
    finally:
        terminal.close()


@_SLOW
def test_ctrl_c_cancels_the_task(task_folder: Path, url: str) -> None:
    terminal = Terminal(task_folder, "call", url, "hang")
    try:
        terminal.read_until("hanging (1 of 2)")
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_until("Cancelling the task. Ctrl+C again ends the command at once.")
        assert terminal.process.communicate(timeout=PATIENCE)[0] == ""
        assert terminal.process.returncode == 130
    finally:
        terminal.close()
    assert "Traceback" not in terminal.shown
    assert funcmcp("call", url, "count_ended", folder=task_folder).stdout == "1\n"


@_SLOW
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
            over.wait(2 * PATIENCE)
        body = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}
        return 200, "application/json", json.dumps(body).encode()

    with answering(respond) as url:
        terminal = Terminal(task_folder, "call", url, "hang")
        try:
            terminal.read_until("working hard")
            terminal.process.send_signal(signal.SIGINT)
            terminal.read_until("Cancelling the task")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.process.wait(PATIENCE) == 130  # the cancellation is not answered
        finally:
            over.set()
            terminal.close()


DURABLE = """
import asyncio
from pathlib import Path

from funcmcp import MCPServer
from funcmcp.tasks import SQLiteTasks, TaskOptions

mcp = MCPServer("Durable work", tasks=SQLiteTasks("tasks.db", lease=0.3))


@mcp.tool(task=TaskOptions(poll=0.05), idempotent=True)
async def work() -> str:
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return "done"


@mcp.tool
async def wait() -> str:
    Path("waits").touch()
    await asyncio.sleep(30)
    return "never"
"""


@_SLOW
def test_a_durable_task_is_followed_across_a_restart_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(DURABLE)
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path) as first:
        url = first.endpoint()
        port = url.split(":")[2].partition("/")[0]
        call = running([*FUNCMCP, "call", url, "work", "--verbose"], folder=tmp_path)
        with call as caller:
            caller.line_with("task: working")
            first.process.kill()
            line = caller.line_with("is lost")
            assert line.startswith(f"The connection to {url} is lost. Asking for the task ")
            assert line.endswith(" for 60 seconds.\n")
            (tmp_path / "go").touch()
            with running([*FUNCMCP, "run", "server.py", "--port", port], folder=tmp_path):
                assert caller.ended() == 0
            assert caller.lines[-1] == "done"


@_SLOW
def test_a_lost_connection_is_not_a_missing_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(DURABLE)
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path) as server:
        url = server.endpoint()
        with running([*FUNCMCP, "call", url, "wait"], folder=tmp_path) as caller:
            while not (tmp_path / "waits").exists():
                time.sleep(0.02)
            server.process.kill()
            assert caller.ended() == 1
            assert caller.output.startswith(f"The connection to {url} ")
            assert len(caller.lines) == 1


@_SLOW
def test_a_store_that_can_never_work_asks_for_no_patience(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(DURABLE.replace('"tasks.db"', '"missing/tasks.db"'))
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path) as server:
        shown = funcmcp("call", server.endpoint(), "work", folder=tmp_path)
    assert shown.returncode == 1
    assert "The task store of the server can't be used. The server's log has the reason." in shown.stderr
    assert "Try again later" not in shown.stderr


@_SLOW
def test_an_error_is_shown_once_with_verbose(tmp_path: Path) -> None:
    code = "from funcmcp import MCPServer\nmcp = MCPServer('a', show_errors=True)\n"
    (tmp_path / "server.py").write_text(
        f"{code}@mcp.tool(task='optional')\nasync def fail() -> str:\n    raise ValueError('no')\n"
    )
    shown = funcmcp("call", "server.py", "fail", "--verbose", folder=tmp_path)
    lines = [line for line in shown.stderr.splitlines() if line.startswith(("task:", "no"))]
    assert lines == ["task: working", "task: completed", "no"]

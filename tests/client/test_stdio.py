"""The client over stdio: with a server of ours in a process, and with bad servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._client.stdio import StdioTransport, default_environment
from funcmcp.client import (
    Client,
    ConnectionFailedError,
    InvalidResponseError,
    LogMessage,
    ProgressUpdate,
    RequestTimeoutError,
    StdioCommand,
)
from tests import schemas
from tests.client.next_revision import added
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = '''
import asyncio
import os
import signal
import subprocess

from pydantic import BaseModel

from funcmcp import MCPServer, Context

mcp = MCPServer("Local")
begun, cancelled = [], []


class Guest(BaseModel):
    name: str


@mcp.tool
async def greet(context: Context) -> str:
    """Ask for a name."""
    answer = await context.elicit("Who?", Guest)
    return f"Hello, {answer.content.name}!" if answer.content else answer.action


@mcp.tool
async def count(context: Context) -> str:
    """Report progress."""
    for number in (1, 2, 3):
        await context.report_progress(number, total=3)
    await context.log("warning", "counted")
    return "done"


@mcp.tool
async def wait() -> None:
    """Wait until the call is cancelled."""
    begun.append(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append(1)
        raise


@mcp.tool
def count_waits() -> dict[str, int]:
    """Return how many calls have begun to wait, and how many of them were cancelled."""
    return {"begun": len(begun), "cancelled": len(cancelled)}


@mcp.tool
def environment() -> dict[str, str]:
    """Return the variables of the process."""
    return dict(os.environ)


@mcp.tool
def folder() -> str:
    """Return the folder of the process."""
    return os.getcwd()


@mcp.tool
def die() -> None:
    """End the process."""
    os._exit(3)


mcp.run("stdio")
'''
ONE_OF_EACH_ERA = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


async def connect(target: Any, **options: Any) -> None:
    """Connect and leave again."""
    async with Client(target, **options):
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("local") / "server.py"
    path.write_text(SERVER)
    return path


def script(*lines: str) -> StdioCommand:
    """Return a command that runs lines of Python."""
    return StdioCommand(sys.executable, "-c", "\n".join(lines), stop_seconds=1.0)


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_every_revision_works_over_stdio(server: Path, revision: str) -> None:
    async with Client(StdioCommand(sys.executable, str(server)), revision=revision) as client:
        assert (client.revision, client.server_info["name"], client.session_id) == (revision, "Local", None)
        assert "greet" in [tool.name for tool in await client.list_tools()]


@_SLOW
async def test_the_newest_revision_is_the_default_on_stdio(server: Path) -> None:
    async with Client(StdioCommand(sys.executable, str(server))) as client:
        assert client.revision == "2026-07-28"


@_SLOW
@ONE_OF_EACH_ERA
async def test_questions_progress_and_log_messages_work_over_stdio(server: Path, revision: str) -> None:
    async def ada(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "Ada"}}

    progress: list[ProgressUpdate] = []
    logged: list[LogMessage] = []
    command = StdioCommand(sys.executable, str(server))
    async with Client(
        command, revision=revision, elicit=ada, on_progress=progress.append, on_log=logged.append
    ) as client:
        assert (await client.call_tool("greet")).text == "Hello, Ada!"
        assert (await client.call_tool("count")).text == "done"
    assert progress == [ProgressUpdate(number, 3) for number in (1, 2, 3)]
    assert [(message.level, message.data) for message in logged] == [("warning", "counted")]


async def until_count(client: Client, name: str, count: int) -> None:
    """Wait until the server has so many calls."""
    async with asyncio.timeout(PATIENCE):
        while (await client.call_tool("count_waits")).structured_content[name] < count:  # noqa: ASYNC110 - the server is another process
            await asyncio.sleep(0.02)


@ONE_OF_EACH_ERA
async def test_a_call_that_takes_too_long_is_cancelled_over_stdio(server: Path, revision: str) -> None:
    async with Client(StdioCommand(sys.executable, str(server)), revision=revision) as client:
        with pytest.raises(TimeoutError, match=r"tools/call got no response within 0\.2 seconds"):
            await client.call_tool("wait", timeout=0.2)
        waiting = asyncio.create_task(client.call_tool("wait"))
        await until_count(client, "begun", 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until_count(client, "cancelled", 2)


@_SLOW
async def test_an_exception_of_a_callback_reaches_the_caller(server: Path) -> None:
    async def refuse(_params: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no name today")

    for revision in ("2025-11-25", "2026-07-28"):
        command = StdioCommand(sys.executable, str(server))
        async with Client(command, revision=revision, elicit=refuse) as client:
            with pytest.raises(LookupError, match="no name today"):
                await client.call_tool("greet")


async def test_the_server_gets_an_error_if_a_callback_raises() -> None:
    hello = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
    command = script(
        "import sys, json",
        f"sys.stdin.readline(); print('''{hello}''', flush=True); sys.stdin.readline()",
        "sys.stdin.readline()",
        "print(json.dumps({'jsonrpc': '2.0', 'id': 's', 'method': 'elicitation/create'}), flush=True)",
        "answer = json.loads(sys.stdin.readline())",
        "request = json.loads(sys.stdin.readline())",
        "print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': answer}), flush=True)",
        "sys.stdin.readline()",
    )

    async def refuse(_params: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("secret of the client")

    async with Client(command, revision="2025-11-25", elicit=refuse) as client:
        with pytest.raises(LookupError):
            await client.request("first")
        answer = await client.request("second")
    error = {"code": -32603, "message": "The client failed to answer"}
    assert answer == {"jsonrpc": "2.0", "id": "s", "error": error}


@_SLOW
async def test_a_process_gets_only_the_variables_that_it_needs(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CLIENT", "1")
    command = StdioCommand(sys.executable, str(server), env={"MODE": "test"}, cwd=tmp_path)
    async with Client(command) as client:
        variables = (await client.call_tool("environment")).structured_content
        folder = (await client.call_tool("folder")).text
    assert variables["MODE"] == "test"
    assert variables["PATH"] == os.environ["PATH"]
    assert "SECRET_OF_THE_CLIENT" not in variables
    assert folder == str(tmp_path)
    assert "SECRET_OF_THE_CLIENT" not in default_environment()


@_SLOW
async def test_a_process_that_dies_fails_the_calls_in_flight_and_all_later_ones(server: Path) -> None:
    async with Client(StdioCommand(sys.executable, str(server))) as client:
        waiting = asyncio.create_task(client.call_tool("wait"))
        await asyncio.sleep(0.1)
        with pytest.raises(ConnectionFailedError, match=r"server\.py ended with exit code 3\."):
            await client.call_tool("die")
        with pytest.raises(ConnectionFailedError, match="ended with exit code 3"):
            await waiting
        with pytest.raises(ConnectionFailedError, match="ended with exit code 3"):
            await client.list_tools()


async def test_a_program_that_does_not_exist_is_a_clear_error() -> None:
    with pytest.raises(ConnectionFailedError, match="no-such-program cannot be started: No such file or directory"):
        await connect(StdioCommand("no-such-program"))


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (StdioCommand("no-such-program"), "Install it, or pass its whole path if it is not on the PATH."),
        (StdioCommand("no-such-program --port 1"), "Pass each argument as a string of its own."),
        (StdioCommand(sys.executable, cwd="/no/such/folder"), "its folder /no/such/folder does not exist."),
    ],
    ids=["program", "one string", "folder"],
)
async def test_the_error_of_a_command_that_cannot_be_started_says_what_to_do(
    command: StdioCommand, advice: str
) -> None:
    with pytest.raises(ConnectionFailedError, match=rf"cannot be started: .*{re.escape(advice)}$"):
        await connect(command)


async def test_a_program_that_is_not_a_server_is_a_clear_error() -> None:
    with pytest.raises(ConnectionFailedError, match="ended with exit code 0"):
        await connect(script("pass"))


async def test_a_broken_message_is_a_clear_error() -> None:
    command = script("import sys", """for line in sys.stdin: print('{"jsonrpc": "2.0", "id": 1, ', flush=True)""")
    with pytest.raises(InvalidResponseError, match="a line on stdout that is not an MCP message: "):
        await connect(command)


@_SLOW
async def test_a_program_that_only_prints_is_a_clear_error() -> None:
    lines = ("import sys", "for line in sys.stdin: print('hello', flush=True)")
    command = StdioCommand(sys.executable, "-c", "\n".join(lines), start_seconds=0.5)
    with pytest.raises(ConnectionFailedError, match="It wrote a line on stdout that is not an MCP message: hello"):
        await connect(command, revision="2025-11-25")


async def test_lines_that_are_not_messages_disturb_no_request(caplog: pytest.LogCaptureFixture) -> None:
    answer = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
    command = script(
        "import sys",
        "print('[db] Connected to shop', flush=True)",
        "sys.stdin.readline()",
        """print('{"level": "info"}')""",
        f"print('Ready'); print({answer!r}, flush=True)",
        "for line in sys.stdin: pass",
    )
    async with Client(command, revision="2025-11-25") as client:
        assert client.revision == "2025-11-25"
    texts = [record.getMessage() for record in caplog.records if record.name == "funcmcp"]
    assert len(texts) == 1  # one in a minute
    assert texts[0].endswith("wrote a line on stdout that is not an MCP message: [db] Connected to shop")


async def test_responses_with_ids_of_any_type_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
    command = script(
        "import sys, json",
        "sys.stdin.readline()",
        "for id in ([1], {}, True, '1', 1.5, 99):",
        "    print(json.dumps({'jsonrpc': '2.0', 'id': id, 'result': {}}), flush=True)",
        f"print('''{answer}''', flush=True)",
        "for line in sys.stdin: pass",
    )
    async with Client(command, revision="2025-11-25") as client:
        assert client.revision == "2025-11-25"


async def test_a_server_that_closes_its_stdout_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.stdio.KILL_SECONDS", 0.2)
    command = script("import os, sys", "sys.stdin.readline()", "os.close(1)", "for line in sys.stdin: pass")
    with pytest.raises(ConnectionFailedError, match=r"has closed its stdout\."):
        await connect(command, revision="2025-11-25")


@_SLOW
async def test_a_server_that_prints_a_banner_is_used_all_the_same() -> None:
    answer = '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
    command = script(
        "import sys",
        "print('Welcome!', flush=True)",
        "for line in sys.stdin:",
        f"    if 'initialize' in line and '\"id\"' in line: print('''{answer}''', flush=True)",
    )
    async with Client(command) as client:
        assert client.revision == "2025-11-25"


async def test_a_server_that_ends_at_an_unknown_method_is_started_again_for_the_handshake() -> None:
    answer = '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}'
    command = script(
        "import sys",
        "for line in sys.stdin:",
        "    if 'server/discover' in line: sys.exit(1)",
        f"    if '\"id\"' in line: print('''{answer}''', flush=True)",
    )
    async with Client(command) as client:
        assert client.revision == "2025-03-26"


async def test_a_server_that_leaves_an_unknown_method_unanswered_is_asked_for_the_handshake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("funcmcp._client.requests._PROBE_SECONDS", 0.3)
    answer = '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
    command = script(
        "import sys",
        "for line in sys.stdin:",
        f"    if '\"initialize\"' in line: print('''{answer}''', flush=True)",
    )
    async with Client(command) as client:
        assert client.revision == "2025-06-18"


@pytest.mark.parametrize("age", [contextlib.nullcontext, added])
async def test_a_slow_start_does_not_choose_an_old_revision(
    age: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The official SDK refuses the handshake after it has answered ``server/discover``, however late."""
    monkeypatch.setattr("funcmcp._client.requests._PROBE_SECONDS", 0.1)
    command = script(
        "import json, sys, time",
        "time.sleep(0.3)",
        "for line in sys.stdin:",
        "    message = json.loads(line)",
        "    answer = {'error': {'code': -32022, 'message': 'the initialize handshake is not accepted'}}",
        "    if message['method'] == 'server/discover':",
        "        answer = {'result': {'supportedVersions': ['2026-07-28'], 'capabilities': {}}}",
        "    if 'id' in message: print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer}), flush=True)",
    )
    with age():
        async with Client(command) as client:
            assert client.revision == "2026-07-28"


@_SLOW
async def test_a_program_that_never_answers_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.requests._PROBE_SECONDS", 0.2)
    lines = "import sys\nfor line in sys.stdin: pass"
    command = StdioCommand(sys.executable, "-c", lines, start_seconds=0.3)
    with pytest.raises(ConnectionFailedError, match=r"did not answer within 0\.3 seconds\."):
        await connect(command)


async def test_the_timeout_of_a_client_also_limits_the_first_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.requests._PROBE_SECONDS", 3600)
    lines = "import sys\nfor line in sys.stdin: pass"
    with pytest.raises(RequestTimeoutError, match=r"initialize got no response within 0\.2 seconds"):
        await connect(StdioCommand(sys.executable, "-c", lines), timeout=0.2)


@_SLOW
async def test_a_process_that_ignores_the_end_of_stdin_and_sigterm_is_killed() -> None:
    command = script(
        "import signal, time",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "print('ready', flush=True)",
        "time.sleep(60)",
    )
    transport = StdioTransport(command)

    async def receive(_message: dict[str, Any]) -> None:
        """Handle nothing."""

    await transport.connect(receive)
    await asyncio.sleep(0.5)
    async with asyncio.timeout(PATIENCE):
        await transport.aclose()
    with pytest.raises(ConnectionFailedError):
        await transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})


async def test_a_question_that_the_client_did_not_declare_is_answered_with_an_error() -> None:
    hello = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
    command = script(
        "import sys, json",
        f"sys.stdin.readline(); print('''{hello}''', flush=True); sys.stdin.readline()",
        "sys.stdin.readline()",
        "for method in ('ping', 'sampling/createMessage'):",
        "    print(json.dumps({'jsonrpc': '2.0', 'id': 's', 'method': method}), flush=True)",
        "answers = [json.loads(sys.stdin.readline()) for _ in range(2)]",
        "print(json.dumps({'jsonrpc': '2.0', 'id': 2, 'result': {'answers': answers}}), flush=True)",
        "sys.stdin.readline()",
    )
    async with Client(command, revision="2025-11-25") as client:
        result = await client.request("any/thing")
    errors = {"code": -32601, "message": "The client does not have this method"}
    assert result["answers"] == [
        {"jsonrpc": "2.0", "id": "s", "result": {}},
        {"jsonrpc": "2.0", "id": "s", "error": errors},
    ]


ANSWERING = (
    "import json, os, signal, subprocess, sys",
    "def answer(line, **result):",
    "    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'result': result}), flush=True)",
    "answer(sys.stdin.readline(), protocolVersion='2025-11-25', capabilities={})",
    "sys.stdin.readline()",
)
"""Lines of a server that has answered ``initialize``."""

START_CHILD = "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
"""A line that starts a process with the same stdout."""

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups")


async def wait_for_end(pid: int) -> None:
    """Wait until a process has ended. The process that adopts it may take a while to wait for it."""
    async with asyncio.timeout(PATIENCE):
        while is_running(pid):  # noqa: ASYNC110 - it is not a child of this process
            await asyncio.sleep(0.01)


def open_descriptors() -> int:
    """Return the number of open files and pipes of this process."""
    return len(list(Path("/dev/fd").iterdir()))


def is_running(pid: int) -> bool:
    """Return whether a process runs. One that has ended, but is not waited for, does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False).stdout
    return state[:1] not in (b"", b"Z")


@_SLOW
@posix
async def test_the_children_of_a_process_that_does_not_end_are_terminated() -> None:
    command = script(*ANSWERING, START_CHILD, "answer(sys.stdin.readline(), child=child.pid)", "child.wait()")
    command.stop_seconds = 0.1
    async with Client(command, revision="2025-11-25") as client:
        child = (await client.request("start"))["child"]
        assert os.getpgid(child) != os.getpgid(0)
    await wait_for_end(child)


@posix
async def test_a_child_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.process_group.KILL_SECONDS", 0.2)
    lines = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    command = script(
        *ANSWERING,
        f"child = subprocess.Popen([sys.executable, '-c', {lines!r}], stdout=subprocess.PIPE)",
        "child.stdout.readline()",
        "answer(sys.stdin.readline(), child=child.pid)",
        "child.wait()",
    )
    command.stop_seconds = 0.1
    async with Client(command, revision="2025-11-25") as client:
        child = (await client.request("start"))["child"]
    await wait_for_end(child)


@_SLOW
@posix
async def test_a_crash_fails_the_call_although_another_process_holds_stdout() -> None:
    command = script(
        *ANSWERING,
        START_CHILD,
        "answer(sys.stdin.readline(), child=child.pid)",
        "sys.stdin.readline()",
        "os._exit(3)",
    )
    async with Client(command, revision="2025-11-25", timeout=PATIENCE) as client:
        child = (await client.request("start"))["child"]
        try:
            with pytest.raises(ConnectionFailedError, match="ended with exit code 3"):
                await client.request("crash")
        finally:
            os.kill(child, signal.SIGKILL)


@_SLOW
@posix
async def test_what_a_server_leaves_in_its_group_ends_with_the_connection() -> None:
    command = script(*ANSWERING, START_CHILD, "answer(sys.stdin.readline(), child=child.pid)", "sys.stdin.readline()")
    async with Client(command, revision="2025-11-25") as client:
        child = (await client.request("start"))["child"]
    await wait_for_end(child)


@posix
async def test_closing_a_server_whose_child_goes_on_closes_the_pipes_at_once() -> None:
    daemon = START_CHILD.replace("])", "], start_new_session=True)")
    command = script(*ANSWERING, daemon, "answer(sys.stdin.readline(), child=child.pid)", "sys.stdin.readline()")
    command.stop_seconds = 600.0
    async with asyncio.timeout(PATIENCE), Client(command, revision="2025-11-25") as client:
        child = (await client.request("start"))["child"]
        descriptors = open_descriptors()  # now, because the first process of a test run starts the guard
    try:
        await asyncio.sleep(0)  # the loop closes the descriptors in its next round
        assert open_descriptors() <= descriptors - len(("stdin", "stdout"))
        assert is_running(child)
    finally:
        os.kill(child, signal.SIGKILL)

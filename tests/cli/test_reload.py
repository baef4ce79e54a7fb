"""``funcmcp run`` and SIGHUP: new code serves before the earlier processes end, and no request fails."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.cli.processes import FUNCMCP, Running, environment, running
from tests.patience import PATIENCE
from tests.shutdown import KINDS
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("Servers start, and reload under constant calls.")

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
RELOADED = "Reloaded: the new code serves."
FAILED = "The reload failed. The old code keeps running. The reason is above."
SERVER = """
import asyncio
import os
from pathlib import Path

from funcmcp import Context, HTTPOptions, MCPServer

VERSION = 1
mcp = MCPServer("Shop", http=HTTPOptions(sse="/sse"))


@mcp.tool
def version() -> str:
    return f"{VERSION} {os.getpid()}"


@mcp.tool(timeout=None)
async def wait() -> str:
    Path(f"begun-{VERSION}").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.05)
    return f"finished {VERSION}"


@mcp.resource("data://state")
def state() -> str:
    return "state"
"""


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Deployment:
    """A server that runs, whose code changes.

    Args:
        process: Its process.
        url: Its endpoint.
        folder: The folder of its file.
    """

    def __init__(self, process: Running, url: str, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.host = str(urlsplit(url).netloc)

    def write(self, version: int | str) -> None:
        """Write the code of a version, or other code."""
        code = version if isinstance(version, str) else SERVER.replace("VERSION = 1", f"VERSION = {version}")
        (self.folder / "server.py").write_text(code)

    def hang_up(self) -> None:
        """Send SIGHUP to the command."""
        self.process.process.send_signal(signal.SIGHUP)

    def reload(self, version: int | str, line: str = RELOADED) -> None:
        """Reload the code, and wait for a line about it."""
        self.write(version)
        self.hang_up()
        self.process.line_with(line)

    def wait_for_file(self, name: str) -> None:
        """Wait until a tool has written a file."""
        until((self.folder / name).exists)

    def end(self) -> int:
        """End the command, and return its exit code."""
        self.process.process.terminate()
        return self.process.ended()


@contextlib.contextmanager
def deployed(
    folder: Path, *options: str, env: dict[str, str] | None = None, code: str = SERVER
) -> Iterator[Deployment]:
    (folder / "server.py").write_text(code)
    with running([*FUNCMCP, "run", "server.py", "--port", "0", *options], folder=folder, env=env) as process:
        yield Deployment(process, process.endpoint(), folder)


class Line:
    """A connection of a client, opened again where the server has said that it ends.

    Args:
        host: Host and port.
        keeps: Whether the client keeps the connection after a response.
    """

    def __init__(self, host: str, *, keeps: bool = False) -> None:
        self._connection = http.client.HTTPConnection(host, timeout=PATIENCE)
        self._keeps = keeps

    def post(self, method: str, params: dict[str, Any], session: str = "") -> tuple[str, dict[str, Any]]:
        """Send a request; return the session that was begun, and the response."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"content-type": "application/json", "mcp-session-id": session}
        try:
            self._connection.request("POST", "/mcp", body, headers)
            response = self._connection.getresponse()
            return response.getheader("mcp-session-id", ""), json.loads(response.read())
        finally:
            if not self._keeps:
                self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def call(self, tool: str, session: str) -> str:
        """Call a tool; return its text."""
        _, answer = self.post("tools/call", {"name": tool, "arguments": {}}, session)
        return str(answer["result"]["content"][0]["text"])


class Caller(threading.Thread):
    """Calls all the time in a session, until it is stopped."""

    def __init__(self, host: str, session: str, *, keeps: bool, pause: float) -> None:
        super().__init__(daemon=True)
        self._line = Line(host, keeps=keeps)
        self._session = session
        self._pause = pause
        self._stopped = threading.Event()
        self.versions: list[str] = []
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                self.versions.append(self._line.call("version", self._session).split()[0])
                time.sleep(self._pause)
        except (OSError, http.client.HTTPException, KeyError) as error:
            self.failure = error
        finally:
            self._line.close()

    def wait_for(self, version: str) -> None:
        """Wait until a version has answered, or a call has failed."""
        until(lambda: version in self.versions or self.failure is not None)

    def stop(self) -> None:
        self._stopped.set()
        self.join(PATIENCE)


@contextlib.contextmanager
def calling(host: str, session: str) -> Iterator[list[Caller]]:
    """Call while the block runs: on connections that are kept or not, without and with a pause."""
    kinds = ((True, 0), (True, 0.03), (True, 0.3), (False, 0), (False, 0.03))
    callers = [Caller(host, session, keeps=keeps, pause=pause) for keeps, pause in kinds]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.stop()


class Waiting(threading.Thread):
    """A call of the tool that waits for a file."""

    def __init__(self, host: str, session: str) -> None:
        super().__init__(daemon=True)
        self._line = Line(host)
        self._session = session
        self.text: str | None = None
        self.start()

    def run(self) -> None:
        self.text = self._line.call("wait", self._session)


def begin_session(host: str) -> str:
    session, _ = Line(host).post("initialize", INITIALIZE)
    assert session
    return session


def version_at(server: Deployment, session: str) -> str:
    """Return the version that serves new connections."""
    return Line(server.host).call("version", session).split()[0]


@pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
def test_no_call_fails_while_the_code_is_reloaded_and_sessions_go_on(tmp_path: Path, options: list[str]) -> None:
    """Clients keep their connections or not, with pauses in which the server could close an idle connection."""
    with deployed(tmp_path, "--drain", "120", *options) as server:
        session = begin_session(server.host)
        with calling(server.host, session) as callers:
            early = Waiting(server.host, session)
            server.wait_for_file("begun-1")
            for version in (2, 3):
                server.reload(version)
                assert version_at(server, session) == str(version)
            (tmp_path / "go").touch()
            early.join(PATIENCE)
            for caller in callers:  # an open connection may get one more response of the earlier code
                caller.wait_for("3")
        code = server.end()
    assert early.text == "finished 1"
    assert [caller.failure for caller in callers] == [None] * len(callers)
    for caller in callers:
        assert caller.versions[-1] == "3"
    assert code == 0
    assert "Traceback" not in server.process.output
    assert "died" not in server.process.output


def probe(connection: http.client.HTTPConnection) -> tuple[int, str | None]:
    """Ask whether the server is ready; return the status, and whether the connection ends."""
    connection.request("GET", "/readyz")
    response = connection.getresponse()
    response.read()
    return response.status, response.getheader("connection")


METRICS = """
mcp.serve_metrics({port})
"""


@pytest.mark.parametrize(
    ("options", "has_metrics"),
    [([], True), (["--workers", "2", "--log-format", "json"], False)],
    ids=["plain", "workers"],
)
def test_a_reload_that_works_leaves_the_server_ready_and_logs_no_error(
    tmp_path: Path, options: list[str], has_metrics: bool
) -> None:
    """One connection asks again after the reload, and the client closes another one that is idle."""
    code = SERVER
    if has_metrics:  # workers would need a port each
        code += METRICS.format(port=free_port())
    with deployed(tmp_path, "--drain", "120", "--log-level", "info", *options, code=code) as server:
        asking, idle = (http.client.HTTPConnection(server.host, timeout=PATIENCE) for _ in range(2))
        assert [probe(asking), probe(idle)] == [(200, None)] * 2
        server.reload(code)
        assert probe(asking) == (200, "close")
        idle.close()
        if has_metrics:
            server.process.line_with("The metrics are served on")
        assert server.end() == 0
    assert "ERROR" not in server.process.output


def test_an_idle_connection_ends_when_the_time_of_the_drain_is_over(tmp_path: Path) -> None:
    with deployed(tmp_path, "--drain", "1", "--log-level", "info") as server:
        idle = http.client.HTTPConnection(server.host, timeout=PATIENCE)
        assert probe(idle) == (200, None)
        server.reload(2)
        assert idle.sock.recv(1) == b""
        idle.close()
        assert server.end() == 0
    assert "ERROR" not in server.process.output


@pytest.mark.parametrize(
    ("options", "reloads"), [([], False), ([], True), (["--workers", "2"], False)], ids=["plain", "reloaded", "workers"]
)
def test_a_server_that_waits_for_its_last_call_accepts_no_connection(
    tmp_path: Path, options: list[str], reloads: bool
) -> None:
    with deployed(tmp_path, "--drain", "120", *options) as server:
        if reloads:
            server.reload(2)
        last = Waiting(server.host, begin_session(server.host))
        server.wait_for_file(f"begun-{1 + reloads}")
        server.process.process.terminate()
        until(lambda: refuses_connections(server.host))
        assert last.is_alive()
        (tmp_path / "go").touch()
        last.join(PATIENCE)
        assert server.process.ended() == 0
    assert last.text == f"finished {1 + reloads}"


def refuses_connections(host: str) -> bool:
    name, _, port = host.rpartition(":")
    try:
        socket.create_connection((name, int(port))).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_call_in_flight_finishes_in_the_earlier_code(tmp_path: Path) -> None:
    with deployed(tmp_path, "--drain", "120") as server:
        session = begin_session(server.host)
        threads = []
        for version in (1, 2):
            threads.append(Waiting(server.host, session))
            server.wait_for_file(f"begun-{version}")
            server.reload(version + 1)
        (tmp_path / "go").touch()
        for thread in threads:
            thread.join(PATIENCE)
        assert server.end() == 0
    assert [thread.text for thread in threads] == ["finished 1", "finished 2"]


@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
def test_code_that_does_not_load_leaves_the_earlier_code_running(tmp_path: Path, options: list[str]) -> None:
    lifespan = "\n\n@mcp.add_lifespan\nasync def fail():\n    raise OSError('no database')\n    yield\n"
    faults = {
        "mcp = MCPServer(": "server.py, line 1: SyntaxError",
        SERVER + lifespan: "no database",
        "x = 1\n": "server.py has no server",
    }
    with deployed(tmp_path, *options) as server:
        session = begin_session(server.host)
        for code, reason in faults.items():
            server.write(code)
            server.hang_up()
            server.process.line_with(reason)
            server.process.line_with(FAILED)
            assert version_at(server, session) == "1"
        (tmp_path / "server.py").unlink()
        server.hang_up()
        server.process.line_with("server.py does not exist")
        server.process.line_with(FAILED)
        assert version_at(server, session) == "1"
        server.reload(2)
        assert version_at(server, session) == "2"
        server.reload("def", FAILED)
        assert version_at(server, session) == "2"
        assert server.end() == 0
    assert "Traceback" not in server.process.output


def test_ten_signals_in_a_second_and_some_while_the_earlier_code_ends_give_one_server(tmp_path: Path) -> None:
    with deployed(tmp_path, "--drain", "120") as server:
        session = begin_session(server.host)
        waiting = Waiting(server.host, session)
        server.wait_for_file("begun-1")
        server.write(2)
        for _ in range(10):
            server.hang_up()
            time.sleep(0.1)
        server.process.line_with(RELOADED)
        server.write(3)
        server.hang_up()  # perhaps during the reload that the last of the ten signals asked for
        until(lambda: version_at(server, session) == "3")
        (tmp_path / "go").touch()
        waiting.join(PATIENCE)
        assert waiting.text == "finished 1"
        assert server.end() == 0
    assert "Traceback" not in server.process.output


def test_code_that_never_loads_keeps_nothing_from_ending(tmp_path: Path) -> None:
    hanging = "from pathlib import Path\nPath('hangs').touch()\nimport threading\nthreading.Event().wait()\n"
    with deployed(tmp_path) as server:
        session = begin_session(server.host)
        server.write(hanging)
        server.hang_up()
        server.wait_for_file("hangs")
        server.hang_up()
        assert version_at(server, session) == "1"
        assert server.end() == 0


@pytest.mark.parametrize("kind", ["GET", "subscriptions/listen", "HTTP+SSE"])
def test_streams_come_to_their_proper_end(tmp_path: Path, kind: str) -> None:
    with deployed(tmp_path) as server:
        server.write(SERVER.replace('sse="/sse")', 'sse="/sse"), sessions="memory"'))
        for _ in range(2):  # of the first process, and of a worker
            server.hang_up()
            server.process.line_with(RELOADED)
        stream = KINDS[kind].open(int(server.host.rpartition(":")[2]))
        server.reload(2)
        stream.wait_for(KINDS[kind].last)
        stream.close()
        assert server.end() == 0


def test_a_worker_that_dies_after_a_reload_is_replaced(tmp_path: Path) -> None:
    with deployed(tmp_path) as server:
        session = begin_session(server.host)
        server.reload(2)
        pid = int(Line(server.host).call("version", session).split()[1])
        assert pid != server.process.process.pid
        os.kill(pid, signal.SIGKILL)
        server.process.line_with(f"Worker process {pid} died. A new one replaces it.")
        assert version_at(server, session) == "2"
        assert server.end() == 0


def test_a_link_to_another_release_leads_to_its_modules_only(tmp_path: Path) -> None:
    for release, tools in (("one", "VALUE = 1"), ("two", None)):
        folder = tmp_path / release
        folder.mkdir()
        code = SERVER if tools else SERVER.replace("VERSION = 1", "VERSION = 2") + "import options\n"
        (folder / "server.py").write_text(code)
        if tools:
            (folder / "options.py").write_text(tools)
    (tmp_path / "current").symlink_to(tmp_path / "one")
    target = str(tmp_path / "current" / "server.py")
    with running([*FUNCMCP, "run", target, "--port", "0"], folder=tmp_path) as process:
        server = Deployment(process, process.endpoint(), tmp_path)
        session = begin_session(server.host)
        (tmp_path / "current").unlink()
        (tmp_path / "current").symlink_to(tmp_path / "two")
        server.hang_up()
        process.line_with("No module named 'options'")  # it is a module of the first release
        process.line_with(FAILED)
        (tmp_path / "two" / "options.py").touch()
        server.hang_up()
        process.line_with(RELOADED)
        assert version_at(server, session) == "2"
        assert server.end() == 0


def test_systemd_learns_of_the_start_of_reloads_and_of_the_end(tmp_path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(PATIENCE)
        with deployed(tmp_path, env={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as server:
            assert receiver.recv(1000) == b"READY=1"
            server.reload(2)
            assert receiver.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert receiver.recv(1000) == b"READY=1\nSTATUS="
            server.reload("def", FAILED)
            assert receiver.recv(1000).startswith(b"RELOADING=1")
            assert receiver.recv(1000) == b"READY=1\nSTATUS=The last reload failed. The old code keeps running."
            assert server.end() == 0
            assert receiver.recv(1000) == b"STOPPING=1"


WITH_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes stdin the controlling terminal of a new session, and runs a command in it."""


def test_a_terminal_that_closes_ends_the_server_and_a_signal_before_reloads_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    ours, theirs = pty.openpty()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_TERMINAL, *FUNCMCP, "run", "server.py", "--port", "0"],
            cwd=tmp_path,
            env=environment(),
            stdin=theirs,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(theirs)
    try:
        wait_for_text(tmp_path / "log", "is served at")
        process.send_signal(signal.SIGHUP)
        wait_for_text(tmp_path / "log", RELOADED)
        os.close(ours)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()


def wait_for_text(file: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in file.read_text():
        assert time.monotonic() < deadline, file.read_text()
        time.sleep(0.02)


def test_nohup_ignores_the_signal_and_on_stdio_it_ends_the_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = ["nohup", *FUNCMCP, "run", "server.py", "--port", "0"]
    with running(command, folder=tmp_path) as process:
        server = Deployment(process, process.endpoint(), tmp_path)
        server.hang_up()
        session = begin_session(server.host)
        assert Line(server.host).call("version", session) == f"1 {process.process.pid}"
        assert server.end() == 0
    assert "Reload" not in process.output
    stdio = subprocess.Popen(
        [*FUNCMCP, "run", "server.py", "--stdio"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert stdio.stdin is not None
    assert stdio.stdout is not None
    with stdio:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        stdio.stdin.write(json.dumps(message).encode() + b"\n")
        stdio.stdin.flush()
        assert stdio.stdout.readline()
        stdio.send_signal(signal.SIGHUP)
        assert stdio.wait(PATIENCE) == -signal.SIGHUP

"""The lines that ``funcmcp run`` writes for requests, and ``--log-level``."""

from __future__ import annotations

import http.client
import json
import logging
import os
import pty
import re
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp._cli.request_log import configure
from funcmcp._client.streamable_http import MemoryRequest
from funcmcp._server.limits import LimitReachedError
from funcmcp._serving import serving_of
from funcmcp.compat import FastMCP
from funcmcp.compat import MCPServer as SDKServer
from tests.cli.processes import FUNCMCP, environment, funcmcp, running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from funcmcp.middleware import CallNext, Reply, RequestContext

SERVER = """
import logging

from funcmcp import MCPServer, Context

mcp = MCPServer("Sums")
log = logging.getLogger("sums")


@mcp.tool
def add(a: int, b: int) -> int:
    log.info("adding %s and %s", a, b)
    return a + b


@mcp.tool
async def count(context: Context) -> str:
    await context.report_progress(1)
    return "counted"


@mcp.tool
def fail() -> None:
    raise KeyError("nope")
"""
MILLISECONDS = r"\d+\.\d ms"


@pytest.fixture(autouse=True)
def root_logger_unchanged() -> Iterator[None]:
    """Let `configure` change the level and the handlers of the root logger during a test only."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers.copy()
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "sums.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


class Terminal:
    """A server whose stderr is a terminal, and what it has written there so far."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        assert process.stdout is not None
        match = re.search(rb"http://(\S+)/mcp", process.stdout.readline())
        assert match is not None
        self.address = match[1].decode()
        self._terminal = terminal
        self._text = b""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._terminal, 4096)
            except OSError:  # the process has ended
                return
            with self._changed:
                self._text += part
                self._changed.notify_all()

    def line(self, pattern: str) -> str:
        """Wait for a whole line that matches a pattern."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._matching(pattern), PATIENCE), self._text
            return self._matching(pattern)[0]

    def _matching(self, pattern: str) -> list[str]:
        lines = self._text.decode().split("\r\n")[:-1]
        return [line for line in lines if re.fullmatch(pattern, line)]

    def send(self, method: str, params: dict[str, Any], *, verb: str = "POST", path: str = "/mcp") -> int:
        """Send a request in its own connection; return the status."""
        return send(self.address, method, params, verb=verb, path=path)


def send(address: str, method: str, params: dict[str, Any], *, verb: str = "POST", path: str = "/mcp") -> int:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection.request(verb, path, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


@contextmanager
def at_a_terminal(server: Path, *options: str) -> Iterator[Terminal]:
    server.write_text(server.read_text().replace('"Sums"', '"Sums", sessions=None'))
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*FUNCMCP, "run", str(server), "--port", "0", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment({"PYTHONUNBUFFERED": "1"}),
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.terminate()
            process.wait(PATIENCE)
            os.close(ours)


@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
def test_on_a_terminal_each_request_is_a_line_with_method_name_outcome_and_time(
    server: Path, options: list[str]
) -> None:
    with at_a_terminal(server, *options) as terminal:
        assert terminal.send("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}) == 200
        terminal.line(rf"tools/call add ok {MILLISECONDS}")
        assert terminal.send("tools/call", {"name": "count", "_meta": {"progressToken": 1}}) == 200
        terminal.line(rf"tools/call count ok {MILLISECONDS}")
        assert terminal.send("tools/call", {"name": "missing"}) == 200
        terminal.line(rf"\x1b\[31mtools/call missing error -32602 {MILLISECONDS}\x1b\[0m")
        assert terminal.send("tools/call", {"name": "fail"}) == 200
        terminal.line(rf"\x1b\[31mtools/call fail tool error {MILLISECONDS}\x1b\[0m")
        assert terminal.send("tools/list", {}) == 200
        terminal.line(rf"tools/list ok {MILLISECONDS}")
        assert terminal.send("", {}, verb="GET", path="/elsewhere") == 404
        terminal.line(rf"\x1b\[31mGET /elsewhere 404 {MILLISECONDS}\x1b\[0m")


def test_nothing_that_a_client_sends_steers_the_terminal_or_makes_a_line_of_its_own(server: Path) -> None:
    with at_a_terminal(server) as terminal:
        terminal.send("tools/call", {"name": "\x1b[2J\r\nforged 200 0.1 ms\t\u202e\x9b" + "x" * 1000})
        line = terminal.line(rf".*tools/call .* {MILLISECONDS}\x1b\[0m").removeprefix("\x1b[31m")
        terminal.send("\x1b]0;title\x07", {})
        other = terminal.line(rf".*title.* {MILLISECONDS}\x1b\[0m").removeprefix("\x1b[31m")
    assert line.startswith(r"tools/call \x1b[2J\nforged 200 0.1 ms\t\u202e\x9bxxx")
    assert "x..." in line
    assert len(line) < 300
    assert other.startswith(r"\x1b]0;title\x07 ")


def test_a_program_that_reads_stderr_gets_no_lines_of_requests_unless_it_asks(server: Path) -> None:
    for options, logged in (([], False), (["--log-level", "info"], True), (["--log-level", "warning"], False)):
        command = [*FUNCMCP, "run", str(server), "--port", "0", *options]
        with running(command, env={"PYTHONUNBUFFERED": "1"}) as process:
            address = process.endpoint().split("/")[2]
            parameters = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
            assert send(address, "initialize", parameters) == 200
            process.process.terminate()
            assert process.ended() == 0
        lines = [line for line in process.lines if line.endswith(" ms")]
        assert bool(lines) is logged


def test_a_terminal_is_spared_where_the_level_is_above_info(server: Path) -> None:
    with at_a_terminal(server, "--log-level", "error") as terminal:
        assert terminal.send("tools/list", {}) == 200
        assert terminal._matching(".*") == []


def test_the_level_holds_for_the_authors_own_loggers(server: Path) -> None:
    with at_a_terminal(server, "--log-level", "info") as terminal:
        assert terminal.send("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}) == 200
        terminal.line(r"[-\d]+ [:,\d]+ INFO sums adding 1 and 2")


def test_a_level_that_is_none_is_refused_with_the_valid_ones(server: Path) -> None:
    ended = funcmcp("run", str(server), "--log-level", "loud")
    assert ended.returncode == 2
    assert "--log-level" in ended.stderr


def test_stdio_has_no_options_of_http(server: Path) -> None:
    for option in (["--log-level", "info"], ["--tls-cert", "c.pem"], ["--tls-key", "k.pem"]):
        ended = funcmcp("run", str(server), "--stdio", *option)
        assert ended.returncode == 2
        assert option[0] in ended.stderr


async def test_requests_of_routes_that_are_added_later_have_lines(capsys: pytest.CaptureFixture[str]) -> None:
    mcp = configure(MCPServer("Sums"), "info")

    @mcp.custom_route("/health", methods=["GET"])
    async def health() -> str:
        return "ok"

    await serving_of(mcp).exchange(MemoryRequest("GET", "/health", [(b"host", b"127.0.0.1")], b""))
    assert re.search(rf"^GET /health 200 {MILLISECONDS}$", capsys.readouterr().err, re.MULTILINE)


async def test_a_request_that_is_refused_before_it_runs_has_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    mcp = configure(MCPServer("Sums"), "info")
    await serving_of(mcp).exchange(MemoryRequest("POST", "/mcp", [(b"host", b"evil.example")], b"{}"))
    assert re.search(rf"^POST /mcp 421 {MILLISECONDS}$", capsys.readouterr().err, re.MULTILINE)


async def test_a_request_that_a_limit_refuses_has_its_method_and_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    mcp = configure(MCPServer("Sums", sessions=None), "info")
    mcp.add_middleware(refuse_all)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
    await serving_of(mcp).exchange(MemoryRequest("POST", "/mcp", headers, json.dumps(message).encode()))
    assert re.search(rf"^tools/list 503 {MILLISECONDS}$", capsys.readouterr().err, re.MULTILINE)


@pytest.mark.parametrize("kind", [FastMCP, SDKServer])
async def test_requests_to_servers_with_the_names_of_other_frameworks_have_lines(
    kind: type[MCPServer], capsys: pytest.CaptureFixture[str]
) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
    mcp = configure(kind("Sums"), "info")
    response = await serving_of(mcp).exchange(MemoryRequest("POST", "/mcp", headers, json.dumps(message).encode()))
    assert response.status == 200
    assert re.search(rf"^initialize ok {MILLISECONDS}$", capsys.readouterr().err, re.MULTILINE)


async def refuse_all(_context: RequestContext, _call_next: CallNext) -> Reply:
    raise LimitReachedError("There is no room.", 1)

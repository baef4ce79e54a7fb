"""The log of ``funcmcp run``: ``--log-level``, ``--log-format``, ``--verbose`` and the lines for requests."""

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
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._server.limits import LimitReachedError
from funcmcp._serving.composition import runtime_of
from funcmcp.compat import FastMCP
from funcmcp.compat import MCPServer as SDKServer
from funcmcp_cli.log_options import LogOptions, configure
from tests.cli.processes import FUNCMCP, environment, funcmcp, running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from funcmcp.middleware import CallNext, Reply, RequestContext

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

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
WARNING = """

@mcp.tool
def warn(text: str) -> None:
    log.warning("no such dish: %s", text)
    logging.getLogger("uvicorn.error").warning("no such dish: %s", text)
"""
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
MILLISECONDS = r"\d+\.\d ms"


DETAILS = r"caller=127\.0\.0\.1 request_id=[0-9a-f]{16}"


@pytest.fixture(autouse=True)
def loggers_unchanged() -> Iterator[None]:
    """Let `configure` change the levels and the handlers of loggers during a test only."""
    logs = [logging.getLogger(name) for name in ("", "funcmcp")]
    before = [(log, log.level, log.handlers.copy()) for log in logs]
    yield
    for log, level, handlers in before:
        log.setLevel(level)
        log.handlers[:] = handlers


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


def send(
    address: str,
    method: str,
    params: dict[str, Any],
    *,
    verb: str = "POST",
    path: str = "/mcp",
    headers: dict[str, str] | None = None,
) -> int:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **(headers or {}),
    }
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


@_SLOW
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


@_SLOW
def test_nothing_that_a_client_sends_steers_the_terminal_or_makes_a_line_of_its_own(server: Path) -> None:
    with at_a_terminal(server) as terminal:
        terminal.send("tools/call", {"name": "\x1b[2J\r\nforged 200 0.1 ms\t\u202e\x9b" + "x" * 1000})
        line = terminal.line(rf".*tools/call .* {MILLISECONDS}\x1b\[0m").removeprefix("\x1b[31m")
        terminal.send("\x1b]0;title\x07", {})
        other = terminal.line(rf".*title.* {MILLISECONDS}\x1b\[0m").removeprefix("\x1b[31m")
    assert line.startswith(r"tools/call \x1b[2J\r\nforged 200 0.1 ms\t\u202e\x9bxxx")
    assert "x..." in line
    assert len(line) < 300
    assert other.startswith(r"\x1b]0;title\x07 ")


@_SLOW
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
def test_on_a_terminal_a_failure_begins_with_the_authors_line_and_has_no_frames_of_libraries(
    server: Path, options: list[str]
) -> None:
    line = SERVER.splitlines().index('    raise KeyError("nope")') + 1
    with at_a_terminal(server, *options) as terminal:
        terminal.send("tools/call", {"name": "fail"})
        terminal.line(rf"\x1b\[31m\S*sums\.py, line {line}: KeyError: 'nope' \(error id [0-9a-f]{{16}}\)\x1b\[0m")
        terminal.line("Traceback .*")
        terminal.line(r'    raise KeyError\("nope"\)')
        terminal.line("KeyError: 'nope'")
        terminal.line(r"\x1b\[31mtools/call fail tool error .*")
        assert [line for line in terminal._matching(' *File ".*') if "sums.py" not in line] == []


@_SLOW
def test_verbose_shows_the_frames_of_libraries(server: Path) -> None:
    with at_a_terminal(server, "--verbose") as terminal:
        terminal.send("tools/call", {"name": "fail"})
        terminal.line(r"\x1b\[31mtools/call fail tool error .*")
        assert [line for line in terminal._matching(' *File ".*') if "sums.py" not in line] != []


@_SLOW
def test_a_reload_names_the_file(server: Path) -> None:
    with at_a_terminal(server, "--reload") as terminal:
        server.write_text(f"{server.read_text()}\n# changed\n")
        terminal.line(r"Reloading because \S*sums\.py changed\.")


@_SLOW
@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (["--log-format", "json"], {}),
        (["--log-format", "json", "--workers", "2"], {}),
        (["--log-level", "info"], {"FUNCMCP_LOG_FORMAT": "json"}),
    ],
    ids=["option", "workers", "variable"],
)
def test_each_line_on_stderr_can_be_json(server: Path, options: list[str], variables: dict[str, str]) -> None:
    server.write_text(server.read_text().replace('"Sums"', '"Sums", sessions=None'))
    command = [*FUNCMCP, "run", str(server), "--port", "0", *options]
    with running(command, env={"PYTHONUNBUFFERED": "1", **variables}) as process:
        address = process.endpoint().split("/")[2]
        send(address, "tools/call", {"name": "fail"}, headers={"x-request-id": "abc-1"})
        send(address, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, headers={"x-request-id": "a b"})
        process.process.terminate()
        assert process.ended() == 0
    records = [json.loads(line) for line in process.lines]
    failure = next(record for record in records if record["level"] == "ERROR")
    assert failure["message"].endswith(f"KeyError: 'nope' (error_id={failure['error_id']} feature=fail)")
    assert failure["exception"].endswith("KeyError: 'nope'")
    one, two = (record for record in records if record["logger"] == "funcmcp.requests")
    assert isinstance(one.pop("duration_ms"), float)
    assert one.pop("time") < two["time"]
    assert one.pop("message").startswith("tools/call fail tool error ")
    assert one == {
        "level": "INFO",
        "logger": "funcmcp.requests",
        "request_id": "abc-1",
        "error_id": failure["error_id"],
        "method": "tools/call",
        "name": "fail",
        "caller": "127.0.0.1",
        "outcome": "tool error",
        "status": 200,
    }
    assert re.fullmatch("[0-9a-f]{16}", two["request_id"])
    assert failure["request_id"] == "abc-1"


@_SLOW
def test_an_unknown_format_of_the_log_is_one_line(server: Path) -> None:
    ended = funcmcp("run", str(server), env={"FUNCMCP_LOG_FORMAT": "xml"})
    assert (ended.returncode, ended.stderr) == (1, "FUNCMCP_LOG_FORMAT must be 'text' or 'json'; got 'xml'.\n")


@_SLOW
def test_why_a_server_cant_start_is_json_too(tmp_path: Path, server: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    for command in (["broken.py"], ["broken.py", "--workers", "2"], [str(server), "--uds", "no/x"]):
        ended = funcmcp("run", *command, "--log-format", "json", folder=tmp_path)
        records = [json.loads(line) for line in ended.stderr.splitlines()]
        assert (ended.returncode, ended.stdout) == (1, "")
        assert {record["level"] for record in records} == {"ERROR"}
        assert "no_such_module" in records[0]["message"] or "Can't listen on" in records[0]["message"]
    ended = funcmcp("read", "broken.py", "data://x", folder=tmp_path, env={"FUNCMCP_LOG_FORMAT": "json"})
    assert ended.stderr.startswith("broken.py, line 1: ModuleNotFoundError")


@_SLOW
def test_a_server_on_stdio_writes_json_to_stderr(server: Path) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}
    ended = subprocess.run(
        [*FUNCMCP, "run", str(server), "--stdio", "--log-format", "json"],
        input=f"{json.dumps(message)}\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
        check=True,
    )
    [record] = map(json.loads, ended.stderr.splitlines())
    assert (record["method"], record["outcome"]) == ("initialize", "ok")
    assert {"status", "caller"}.isdisjoint(record)


@_SLOW
def test_a_program_that_reads_stderr_gets_no_lines_of_requests_unless_it_asks(server: Path) -> None:
    for options, logged in (([], False), (["--log-level", "info"], True), (["--log-level", "warning"], False)):
        command = [*FUNCMCP, "run", str(server), "--port", "0", *options]
        with running(command, env={"PYTHONUNBUFFERED": "1"}) as process:
            address = process.endpoint().split("/")[2]
            parameters = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
            assert send(address, "initialize", parameters) == 200
            process.process.terminate()
            assert process.ended() == 0
        pattern = rf"[-\d]+ [:,\d]+ INFO funcmcp\.requests initialize ok {MILLISECONDS} {DETAILS}"
        lines = [line for line in process.lines if re.fullmatch(pattern, line)]
        assert bool(lines) is logged


@_SLOW
@pytest.mark.parametrize("options", [[], ["--log-level", "warning"]], ids=["default", "with a level"])
def test_a_text_of_a_client_in_a_record_of_another_logger_is_no_record_of_its_own(
    server: Path, options: list[str]
) -> None:
    server.write_text(server.read_text().replace('"Sums"', '"Sums", sessions=None') + WARNING)
    with running([*FUNCMCP, "run", str(server), "--port", "0", *options]) as process:
        arguments = {"name": "warn", "arguments": {"text": "a\nERROR forged \x1b[31m"}}
        assert send(process.endpoint().split("/")[2], "tools/call", arguments) == 200
        process.process.terminate()
        assert process.ended() == 0
    for name in ("sums", "uvicorn.error"):
        [first] = [index for index, line in enumerate(process.lines) if f"WARNING {name} no such dish: a" in line]
        assert re.match(r"[-\d]+ [:,\d]+ WARNING", process.lines[first])
        assert process.lines[first + 1] == r"    ERROR forged \x1b[31m"


@_SLOW
def test_a_terminal_is_spared_where_the_level_is_above_info(server: Path) -> None:
    with at_a_terminal(server, "--log-level", "error") as terminal:
        assert terminal.send("tools/list", {}) == 200
        assert terminal._matching(".*") == []


@_SLOW
def test_the_level_holds_for_the_authors_own_loggers(server: Path) -> None:
    with at_a_terminal(server, "--log-level", "info") as terminal:
        assert terminal.send("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}) == 200
        terminal.line(r"[-\d]+ [:,\d]+ INFO sums adding 1 and 2")


@_SLOW
def test_a_level_that_is_none_is_refused_with_the_valid_ones(server: Path) -> None:
    ended = funcmcp("run", str(server), "--log-level", "loud")
    assert ended.returncode == 2
    assert "--log-level" in ended.stderr


@_SLOW
def test_stdio_has_no_options_of_http(server: Path) -> None:
    for option in (["--log-level", "info"], ["--tls-cert", "c.pem"], ["--tls-key", "k.pem"]):
        ended = funcmcp("run", str(server), "--stdio", *option)
        assert ended.returncode == 2
        assert option[0] in ended.stderr


def requests_in(caplog: pytest.LogCaptureFixture) -> str:
    """Return the messages about requests."""
    return "\n".join(record.getMessage() for record in caplog.records if record.name == "funcmcp.requests")


async def test_requests_of_routes_that_are_added_later_have_lines(caplog: pytest.LogCaptureFixture) -> None:
    mcp = configure(MCPServer("Sums"), LogOptions("info"))

    @mcp.custom_route("/health", methods=["GET"])
    async def health() -> str:
        return "ok"

    await runtime_of(mcp).exchange(MemoryRequest("GET", "/health", [(b"host", b"127.0.0.1")], b""))
    assert re.fullmatch(rf"GET /health 200 {MILLISECONDS} request_id=[0-9a-f]{{16}}", requests_in(caplog))


async def test_a_request_that_is_refused_before_it_runs_has_the_status(caplog: pytest.LogCaptureFixture) -> None:
    mcp = configure(MCPServer("Sums"), LogOptions("info"))
    await runtime_of(mcp).exchange(MemoryRequest("POST", "/mcp", [(b"host", b"evil.example")], b"{}"))
    assert re.fullmatch(rf"POST /mcp 421 {MILLISECONDS} request_id=[0-9a-f]{{16}}", requests_in(caplog))


async def test_a_request_that_a_limit_refuses_has_its_method_and_the_status(caplog: pytest.LogCaptureFixture) -> None:
    mcp = configure(MCPServer("Sums", sessions=None), LogOptions("info"))
    mcp.add_middleware(refuse_all)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
    await runtime_of(mcp).exchange(MemoryRequest("POST", "/mcp", headers, json.dumps(message).encode()))
    assert re.fullmatch(rf"tools/list 503 {MILLISECONDS} request_id=[0-9a-f]{{16}}", requests_in(caplog))


@pytest.mark.parametrize("kind", [FastMCP, SDKServer])
async def test_requests_to_servers_with_the_names_of_other_frameworks_have_lines(
    kind: type[MCPServer], caplog: pytest.LogCaptureFixture
) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
    mcp = configure(kind("Sums"), LogOptions("info"))
    response = await runtime_of(mcp).exchange(MemoryRequest("POST", "/mcp", headers, json.dumps(message).encode()))
    assert response.status == 200
    assert re.fullmatch(rf"initialize ok {MILLISECONDS} request_id=[0-9a-f]{{16}}", requests_in(caplog))


async def refuse_all(_context: RequestContext, _call_next: CallNext) -> Reply:
    raise LimitReachedError("There is no room.", 1)

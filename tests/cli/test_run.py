"""``funcmcp run``: what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest

from funcmcp.client import Client, ConnectionFailedError
from tests.cli import processes
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, Running, environment
from tests.patience import PATIENCE
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}


@contextlib.contextmanager
def served(folder: Path, target: str, *options: str) -> Iterator[tuple[Running, str]]:
    """Run a server on a free port; yield the process and its endpoint."""
    with running([*FUNCMCP, "run", target, "--port", "0", *options], folder=folder) as process:
        yield process, process.endpoint()


async def call(url: str, tool: str, **options: Any) -> dict[str, Any]:
    async with Client(url) as client:
        return await client.call_tool(tool, {}, **options)


class Hanging:
    """A server with a call in flight that never ends, and that has been told to stop."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path, file: str, tool: str, *options: str) -> None:
        self.process, url = stack.enter_context(served(folder, file, *options))
        command = [*FUNCMCP, "call", url, tool]
        self.caller = stack.enter_context(running(command, folder=folder))
        self.process.line_with("begun")
        self.process.process.terminate()


def test_the_endpoint_is_printed_when_it_accepts_connections(folder: Path) -> None:
    with served(folder, "server.py") as (process, url):
        assert process.lines[-1] == f"Greeter is served at {url} (Ctrl+C stops it)"
        shown = funcmcp("call", url, "greet", "name=Ada", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "Hello, Ada!\n", "")


@_SLOW
@pytest.mark.parametrize(
    ("options", "environment_keys", "lines", "warned"),
    [
        ([], None, 1, False),
        (["--workers", "2"], None, 1, False),
        (["--reload"], None, 1, False),
        (["--host", "0.0.0.0"], None, 3, True),
        (["--host", "0.0.0.0", "--workers", "2"], None, 2, False),
        (["--host", "0.0.0.0"], "k" * 43, 2, False),
    ],
    ids=["loopback", "workers", "reload", "other machines", "workers and other machines", "configured"],
)
def test_a_random_key_is_only_spoken_of_where_other_machines_reach_the_server(
    folder: Path, options: list[str], environment_keys: str | None, lines: int, *, warned: bool
) -> None:
    env = {"FUNCMCP_KEYS": environment_keys} if environment_keys else {}
    with running([*FUNCMCP, "run", "server.py", "--port", "0", *options], folder=folder, env=env) as process:
        process.endpoint()
        if "0.0.0.0" in options:
            process.line_with("other addresses")
    assert len([line for line in process.lines if "random key" in line]) == int(warned)
    assert len(process.lines) == lines


def test_a_key_that_is_none_is_told_without_showing_it(folder: Path) -> None:
    ended = funcmcp("run", "server.py", env={"FUNCMCP_KEYS": "hunter2"}, folder=folder)
    assert ended.returncode == 1
    assert "FUNCMCP_KEYS must contain secrets of at least 32 bytes" in ended.stderr
    assert "hunter2" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("mcp = MCPServer('Shop', http=HTTPOptions(uploads=Uploads()))", "a temporary folder of each process"),
        ("mcp = MCPServer('Shop')\n@mcp.tool(task='optional')\nasync def run(): ...", "the memory of each process"),
    ],
)
def test_what_workers_would_not_share_is_one_clear_line(folder: Path, code: str, place: str) -> None:
    imports = "from funcmcp import HTTPOptions, MCPServer\nfrom funcmcp.http import Uploads\n"
    (folder / "alone.py").write_text(imports + code)
    ended = funcmcp("run", "alone.py", "--workers", "2", folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert place in ended.stderr
    assert ended.stderr.count("\n") == 1


@_SLOW
def test_workers_know_the_sessions_of_each_other(folder: Path) -> None:
    with served(folder, "server.py", "--workers", "2") as (_, url):
        for _ in range(16):  # each request opens a connection of its own, which either worker may get
            session, _ = post(url, "initialize", INITIALIZE)
            _, answer = post(url, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}}, session)
            assert answer["result"]["content"][0]["text"] == "Hello, Ada!"


WORKER = """
import os

from funcmcp import MCPServer

mcp = MCPServer("Workers")


@mcp.tool
def pid() -> int:
    return os.getpid()
"""


class Worker:
    """A connection, which stays at the worker process that accepted it."""

    def __init__(self, stack: contextlib.ExitStack, url: str) -> None:
        connection = http.client.HTTPConnection(url.split("/")[2], timeout=PATIENCE)
        self._connection = stack.enter_context(contextlib.closing(connection))

    def close(self) -> None:
        self._connection.close()

    def begin(self) -> str:
        """Begin a session and return its id."""
        status, session, _ = self.send("POST", "", "initialize", INITIALIZE)
        assert status == 200
        return session

    def pid(self, session: str) -> int:
        """Return the id of the process."""
        _, _, body = self.send("POST", session, "tools/call", {"name": "pid", "arguments": {}})
        return int(json.loads(body)["result"]["content"][0]["text"])

    def send(
        self, method: str, session: str, name: str = "ping", params: dict[str, Any] | None = None
    ) -> tuple[int, str, bytes]:
        """Send a request; return the status, the session that was begun, and the body."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params or {}})
        headers = {"content-type": "application/json", "mcp-session-id": session}
        self._connection.request(method, "/mcp", body if method == "POST" else None, headers)
        response = self._connection.getresponse()
        return response.status, response.getheader("mcp-session-id", ""), response.read()


def worker_of_each(stack: contextlib.ExitStack, url: str, count: int, living: str = "") -> dict[int, Worker]:
    """Return a connection to each of so many worker processes."""
    workers: dict[int, Worker] = {}
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        worker = Worker(stack, url)
        with contextlib.suppress(OSError, http.client.HTTPException):  # a worker that has just been killed
            living = living or worker.begin()
            if workers.setdefault(worker.pid(living), worker) is not worker:
                worker.close()
        if len(workers) == count:
            return workers
    raise AssertionError(f"only {len(workers)} of {count} workers answered")


@_SLOW
def test_a_session_that_one_worker_ended_is_over_at_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(WORKER)
    with contextlib.ExitStack() as stack:
        _, url = stack.enter_context(served(tmp_path, "server.py", "--workers", "3"))
        workers = worker_of_each(stack, url, 3)
        living = next(iter(workers.values())).begin()
        ended = []
        for ending in workers.values():
            session = ending.begin()
            assert [worker.send("POST", session)[0] for worker in workers.values()] == [200] * 3
            assert ending.send("DELETE", session)[0] == 204
            assert [worker.send("POST", session)[0] for worker in workers.values()] == [404] * 3
            assert [worker.send("DELETE", session)[0] for worker in workers.values()] == [404] * 3
            assert [worker.send("POST", living)[0] for worker in workers.values()] == [200] * 3
            ended.append(session)
        os.kill(next(iter(workers)), signal.SIGKILL)
        replaced = worker_of_each(stack, url, 3, living)
        assert replaced.keys() != workers.keys()
        for worker in replaced.values():
            assert [worker.send("POST", session)[0] for session in ended] == [404] * 3


def post(url: str, method: str, params: dict[str, Any], session: str = "") -> tuple[str, dict[str, Any]]:
    """Send a request; return the session that was begun, and the answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {"content-type": "application/json", "mcp-session-id": session}
    with contextlib.closing(http.client.HTTPConnection(url.split("/")[2], timeout=PATIENCE)) as connection:
        connection.request("POST", "/mcp", body, headers)
        response = connection.getresponse()
        return response.getheader("mcp-session-id", ""), json.loads(response.read())


@_SLOW
@pytest.mark.parametrize("options", [[], ["--workers", "2"], ["--reload"]], ids=["plain", "workers", "reload"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_a_call_in_flight_finish_and_ends_with_code_0(
    folder: Path, options: list[str], number: signal.Signals
) -> None:
    with served(folder, "hanging.py", *options) as (process, url):
        calling = asyncio.create_task(call(url, "work"))
        await asyncio.to_thread(process.line_with, "begun")
        process.process.send_signal(number)
        result = await asyncio.wait_for(calling, PATIENCE)
        code = await asyncio.to_thread(process.ended)
    assert (code, result["content"][0]["text"]) == (0, "finished")
    assert "Traceback" not in process.output


@_SLOW
@pytest.mark.parametrize("options", [[], ["--workers", "2"], ["--reload"]], ids=["plain", "workers", "reload"])
def test_a_tool_that_can_not_be_listed_is_named_once_and_the_others_are_served(
    folder: Path, options: list[str]
) -> None:
    with served(folder, "faulty.py", *options) as (process, url):
        assert process.line_with("Foo").startswith("The tool bad is left out of the list. Correct it: ")
        shown = funcmcp("call", url, "fine", "a=1", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "1\n", "")


@_SLOW
def test_sigterm_ends_it_in_time_whatever_hangs(folder: Path) -> None:
    """All at once, because each takes its nine seconds. Worker processes are there where the lock is never free."""
    tools = ["thread", "executor", "block", "spin", "stream"]
    with contextlib.ExitStack() as stack:
        file = "hanging_without_alarm.py"
        hanging = {tool: Hanging(stack, folder, file, tool) for tool in tools}
        hanging["workers"] = Hanging(stack, folder, file, "backtrack_in_a_thread", "--workers", "2")
        codes = {name: server.process.ended() for name, server in hanging.items()}
        callers = {name: server.caller.ended() for name, server in hanging.items()}
    assert codes == dict.fromkeys(hanging, 0)
    assert callers == dict.fromkeys(hanging, 1)
    for server in hanging.values():
        assert "Traceback" not in server.process.output
        assert "Traceback" not in server.caller.output


@_SLOW
def test_sigterm_ends_it_in_time_even_in_a_c_function_on_the_event_loop(folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        assert Hanging(stack, folder, "hanging.py", "backtrack").process.ended() == -signal.SIGALRM


def test_a_port_in_use_is_one_clear_line(folder: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        for options in ([], ["--workers", "2"], ["--reload"]):
            ended = funcmcp("run", "server.py", "--port", str(port), *options, folder=folder)
            assert (ended.returncode, ended.stdout) == (1, "")
            assert ended.stderr == (
                f"Can't listen on 127.0.0.1:{port}: it is in use by another program. "
                "Choose another address with --host and --port.\n"
            )


def test_several_workers_with_tasks_in_memory_are_refused_with_what_to_write(tmp_path: Path) -> None:
    text = 'from funcmcp import MCPServer\nmcp = MCPServer("orders")\nmcp.tool("job", task="optional")(lambda: 1)\n'
    (tmp_path / "server.py").write_text(text, encoding="utf-8")
    ended = funcmcp("run", "server.py", "--workers", "2", "--port", "0", folder=tmp_path)
    assert ended.returncode == 1
    assert "Write MCPServer(..., tasks=SQLiteTasks(" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_host_that_is_none_is_one_clear_line(folder: Path) -> None:
    ended = funcmcp("run", "server.py", "--host", "127.0.0.1." + "x" * 70, folder=folder)
    assert ended.returncode == 1
    assert ended.stderr.startswith("'127.0.0.1.xxx")
    assert ended.stderr.endswith("Choose another address with --host and --port.\n")
    assert ended.stderr.count("\n") == 1


def status_for(url: str, host: str) -> int:
    """Return the status of a ping with a Host header of one's own."""
    answer = httpx2.post(
        url, headers={"host": host}, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, timeout=PATIENCE
    )
    return answer.status_code


@_SLOW
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_server_on_all_addresses_is_announced_at_one_that_it_answers(
    folder: Path, address: str, options: list[str]
) -> None:
    if address == "::" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    named = ["--allowed-host", "orders.example.com", "--allowed-host", "shop.example.com:8443"]
    with served(folder, "server.py", "--host", address, *named, *options) as (process, url):
        assert "--allowed-host NAME" in process.line_with("other addresses")
        statuses = {
            host: status_for(url, host)
            for host in ("orders.example.com", "shop.example.com:8443", "shop.example.com", "evil.example")
        }
        shown = funcmcp("call", url, "greet", "name=Ada", folder=folder)
        other = funcmcp("call", f"http://127.0.0.1:{url.split(':')[-1]}", "greet", "name=Ada", folder=folder)
    assert [status == 421 for status in statuses.values()] == [False, False, True, True]
    assert (shown.returncode, shown.stdout) == (0, "Hello, Ada!\n")
    assert (other.returncode, other.stdout) == (0, "Hello, Ada!\n")


def test_the_name_that_is_listened_on_is_allowed(folder: Path) -> None:
    name = "localhost.localdomain"
    try:
        socket.getaddrinfo(name, 0)
    except OSError:
        pytest.skip("this machine has no second name for itself")
    with served(folder, "server.py", "--host", name.upper()) as (_, url):
        assert url.startswith(f"http://{name}:")
        shown = funcmcp("call", url, "greet", "name=Ada", folder=folder)
    assert (shown.returncode, shown.stdout) == (0, "Hello, Ada!\n")


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_it_serves_on_an_ipv6_address_also_in_the_brackets_of_urls(folder: Path) -> None:
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with served(folder, "server.py", "--host", "[::1]") as (_, url):
        assert url.startswith("http://[::1]:")
        shown = funcmcp("call", url, "greet", "name=Ada", folder=folder)
    assert (shown.returncode, shown.stdout) == (0, "Hello, Ada!\n")


@pytest.mark.parametrize("host", ["", "Host: 127.0.0.1\r\n"])
def test_a_health_check_in_http_1_0_is_answered_with_and_without_host(tmp_path: Path, host: str) -> None:
    (tmp_path / "server.py").write_text(
        "from funcmcp import MCPServer\n\nmcp = MCPServer('Health')\n\n\n"
        "@mcp.custom_route('/health', allow_anonymous=True)\ndef health() -> str:\n    return 'ok'\n"
    )
    with served(tmp_path, "server.py") as (_, url), connected(url) as line:
        line.sendall(f"GET /health HTTP/1.0\r\n{host}\r\n".encode())
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"ok")


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
@pytest.mark.parametrize(
    "head",
    ["HTTP/1.0\r\n", "HTTP/1.1\r\nHost: 10.1.2.3:8000\r\nConnection: close\r\n"],
    ids=["no host as haproxy", "the address of a pod as Kubernetes"],
)
def test_probes_are_answered_whatever_their_host(folder: Path, path: str, head: str) -> None:
    with served(folder, "server.py") as (_, url), connected(url) as line:
        line.sendall(f"GET {path} {head}\r\n".encode())
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"ok\n")


def test_the_health_endpoints_can_be_switched_off(folder: Path) -> None:
    with served(folder, "server.py", "--no-health") as (_, url), connected(url) as line:
        line.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert line.makefile("rb").read().startswith(b"HTTP/1.1 404 ")


@contextlib.contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), PATIENCE) as line:
        yield line


def test_an_idle_connection_remains_open_for_the_time_of_the_option(folder: Path) -> None:
    """With 0 seconds it closes behind the response, although the client would have sent another request on it."""
    with served(folder, "server.py", "--keep-alive", "0") as (_, url), connected(url) as line:
        line.sendall(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"connection: close" not in answer


def test_an_invalid_time_for_idle_connections_is_one_clear_line(folder: Path) -> None:
    variables = {**environment(), "FUNCMCP_KEEP_ALIVE_SECONDS": "long"}
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder, env=variables) as process:
        process.line_with("FUNCMCP_KEEP_ALIVE_SECONDS must be a number of whole seconds; got 'long'.")
        assert process.ended() == 1


def test_the_root_path_is_that_at_which_a_proxy_serves_the_server(tmp_path: Path) -> None:
    """The proxy removes it from the paths of requests, and the server adds it to the path for the client's messages."""
    code = 'from funcmcp import HTTPOptions, MCPServer\nmcp = MCPServer("s", http=HTTPOptions(sse="/sse"))\n'
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    with served(tmp_path, "server.py", "--root-path", "/shop/") as (_, url), connected(url) as line:
        line.sendall(b"GET /sse HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        text = b""
        while b"session_id=" not in text:
            text += line.recv(65536)
    assert b"data: /shop/sse?session_id=" in text


def test_an_invalid_root_path_is_one_clear_line(folder: Path) -> None:
    with running([*FUNCMCP, "run", "server.py", "--port", "0", "--root-path", "shop"], folder=folder) as process:
        process.line_with("FUNCMCP_ROOT_PATH must be a path such as /shop; got 'shop'.")
        assert process.ended() == 1


def test_the_page_can_be_switched_off(folder: Path) -> None:
    with served(folder, "server.py", "--no-page") as (_, url):
        response = httpx2.get(url, headers={"accept": "text/html"}, timeout=PATIENCE)
    assert (response.status_code, response.headers["content-type"]) == (405, "application/json")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--stdio", "--no-page"], "--no-page"),
        (["--allowed-host", "http://orders.example.com/"], "--allowed-host"),
        (["--host", ""], "--host"),
        (["--port", "65536"], "--port"),
        (["--port", "x"], "--port"),
        (["--workers", "0"], "--workers"),
        (["8001"], "server.py -- 8001"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(folder: Path, options: list[str], named: str) -> None:
    ended = funcmcp("run", "server.py", *options, folder=folder)
    assert ended.returncode == 2
    assert named in ended.stderr.splitlines()[-1]


@_SLOW
async def test_a_worker_that_is_killed_is_replaced(folder: Path) -> None:
    with served(folder, "kinds.py", "--workers", "2") as (process, url):
        killed = (await call(url, "pid"))["structuredContent"]["result"]
        os.kill(killed, signal.SIGKILL)
        await asyncio.to_thread(process.line_with, "A new one replaces it")
        assert (await call(url, "pid"))["structuredContent"]["result"] != killed
        process.process.terminate()
        assert await asyncio.to_thread(process.ended) == 0


@_SLOW
async def test_reload_serves_a_file_as_it_is_now(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    greeting = tmp_path / "greeting.py"
    text = greeting.read_text()
    with served(tmp_path, "server.py", "--reload") as (process, url):
        greeting.write_text(text.replace("def greet", "def welcome"))  # the server still imports the old name
        await asyncio.to_thread(process.line_with, "ImportError: cannot import name 'greet'")
        greeting.write_text(text.replace("Hello", "Good morning"))
        assert await asyncio.to_thread(process.endpoint) == url
        async with Client(url) as client:
            result = await client.call_tool("greet", {"name": "Ada"})
        process.process.terminate()
        assert await asyncio.to_thread(process.ended) == 0
    assert result["content"][0]["text"] == "Good morning, Ada!"
    assert "Traceback" not in process.output


@_SLOW
def test_ctrl_c_in_a_terminal_reaches_all_processes_and_prints_no_traceback(folder: Path) -> None:
    command = [*FUNCMCP, "run", "server.py", "--port", "0", "--workers", "2"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            assert b"http://" in process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(PATIENCE) == 0
            assert process.stdout.read() == b""
        finally:
            process.kill()


def test_the_port_is_the_one_on_which_azure_looks_for_the_program_it_started(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running(
        [*FUNCMCP, "run", "server.py"], folder=folder, env={"FUNCTIONS_CUSTOMHANDLER_PORT": str(port)}
    ) as process:
        assert process.endpoint() == f"http://127.0.0.1:{port}/mcp"


def test_the_line_at_the_start_names_the_variables_of_the_address(folder: Path) -> None:
    port = free_port()
    env = {"FUNCMCP_HOST": "LOCALHOST", "FUNCMCP_PORT": str(port), "PORT": "1"}
    with running([*FUNCMCP, "run", "server.py"], folder=folder, env=env) as process:
        line = process.line_with("is served at")
        assert f"http://localhost:{port}/mcp (host from FUNCMCP_HOST and port from FUNCMCP_PORT; Ctrl+C" in line
        assert status_for(f"http://127.0.0.1:{port}/mcp", f"localhost:{port}") != 421


def test_the_port_of_a_platform_alone_leaves_the_server_on_this_machine(folder: Path) -> None:
    with running([*FUNCMCP, "run", "server.py"], folder=folder, env={"PORT": str(free_port())}) as process:
        assert "(port from PORT; Ctrl+C stops it)" in process.line_with("http://127.0.0.1:")
        process.line_with("On a platform that sets PORT, set FUNCMCP_HOST=0.0.0.0 as well.")


def test_an_invalid_port_in_the_environment_is_one_clear_line(folder: Path) -> None:
    ended = funcmcp("run", "server.py", folder=folder, env={"PORT": "abc"})
    assert ended.returncode == 2
    assert ended.stderr == "PORT must be a port, a number from 0 to 65535; got 'abc'.\n"


EARLY = """
import os, signal, sys
from funcmcp import MCPServer
from funcmcp._processes import server as uvicorn_server

mcp = MCPServer("shop")
origin_of = uvicorn_server.origin_of


@mcp.add_lifespan
async def shop(_server):
    print("opened", flush=True)
    yield
    print("closed", flush=True)


def stopped_early(*arguments):
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    return origin_of(*arguments)


uvicorn_server.origin_of = stopped_early
mcp.run("http", port=0)
"""


@_SLOW
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_before_the_server_has_started_ends_it_after_its_start(tmp_path: Path, name: str) -> None:
    (tmp_path / "early.py").write_text(EARLY)
    ended = subprocess.run(
        [sys.executable, "early.py", name],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "opened\nclosed\n")
    assert "Traceback" not in ended.stderr


async def answered(url: str) -> None:
    """Call the server three times, as soon as it accepts connections."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(ConnectionFailedError):
                for _ in range(3):
                    async with Client(url) as client:
                        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada!"
                return
            await asyncio.sleep(0.05)


@_SLOW
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_for_its_output_stops_no_server(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [*FUNCMCP, "run", "server.py", "--port", str(port), "--log-level", "info"]
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=full, stderr=full)
    try:
        asyncio.run(answered(f"http://127.0.0.1:{port}/mcp"))
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(PATIENCE)


@_SLOW
async def test_a_server_has_its_own_arguments_in_every_process_and_needs_no_stderr(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("""
import argparse, sys
from funcmcp import MCPServer

parser = argparse.ArgumentParser()
parser.add_argument("--name", default="Shop")
mcp = MCPServer(parser.parse_args().name)


@mcp.tool
def fail() -> None:
    raise ValueError(sys.argv)
""")
    command = [*FUNCMCP, "run", "shop.py", "--port", "0", "--workers", "2", "--", "--name", "Book Shop"]
    with processes.running(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], folder=tmp_path) as process:
        line = process.line_with("http://")
        assert line.startswith("Book Shop is served at")
        assert (await call(line.split("served at ")[1].split()[0], "fail"))["isError"]
        process.process.terminate()
        assert process.ended() == 0

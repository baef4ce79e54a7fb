"""The application under other ASGI servers, and mounted in other applications."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, parse_headers
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests import schemas
from tests.cluster.proxy import proxied
from tests.patience import PATIENCE
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SERVER = """
import asyncio

from funcmcp import MCPServer, Context
from funcmcp._transports.http.streams import sse

mcp = MCPServer("mounted", version="1.0.0")
over = asyncio.Event()

@mcp.tool
async def wait() -> str:
    sse.KEEP_ALIVE_SECONDS = 0.05
    await over.wait()
    return "done"

@mcp.tool
async def end() -> None:
    over.set()

@mcp.tool
async def add(a: int, b: int, context: Context) -> int:
    await context.report_progress(1)
    assert context.client_address == "127.0.0.1"
    return a + b
"""
STARLETTE = (
    SERVER
    + """
from starlette.applications import Starlette
from starlette.routing import Mount

app = Starlette(routes=[Mount("/api", app=mcp)])
"""
)
FASTAPI = (
    SERVER
    + """
from fastapi import FastAPI

app = FastAPI()
app.mount("/api", mcp)
"""
)
COMMANDS = {
    "uvicorn": ["uvicorn", "--port", "{port}", "--log-level", "error", "{target}"],
    "uvicorn-h11": ["uvicorn", "--http", "h11", "--port", "{port}", "--log-level", "error", "{target}"],
    "run": ["funcmcp_cli.main", "run", "--port", "{port}", "{target}"],
    "granian": ["granian", "--interface", "asgi", "--port", "{port}", "{target}"],
    "hypercorn": ["hypercorn", "--bind", "127.0.0.1:{port}", "{target}"],
}
_OTHERS = {"granian", "hypercorn"}
_SLOW = pytest.mark.slow("Servers of others start, and each answer is followed by a time of silence.")


def a_case(server: str, *values: str) -> Any:
    """Return the parameters of a case, which is slow if the server is not the one that funcmcp brings."""
    return pytest.param(server, *values, marks=[_SLOW] if server in _OTHERS else [])


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something listens on a port; fail if the process that should do so has ended."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process is None or process.poll() is None, process.communicate()[0].decode()
            assert time.monotonic() < deadline, "nothing listens"
            time.sleep(0.02)
        else:
            return


@contextmanager
def serving(server: str, folder: Path, code: str, target: str) -> Iterator[int]:
    (folder / "served.py").write_text(code)
    with listening(["-m", *(word.replace("{target}", target) for word in COMMANDS[server])], folder) as port:
        yield port


@contextmanager
def listening(arguments: Sequence[str], folder: Path) -> Iterator[int]:
    """Run Python with arguments, of which "{port}" is a free port; yield it once something listens there."""
    port = free_port()
    command = [sys.executable, *(word.replace("{port}", str(port)) for word in arguments)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def post(port: int, path: str, message: dict[str, Any], **headers: str) -> tuple[int, dict[str, str], bytes]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", path, json.dumps(message), {**usual, **headers})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


def check_both_eras(port: int, path: str) -> None:
    """Call a tool in the handshake era, plainly, and in the per-request era, with progress on a stream."""
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    status, headers, body = post(port, path, hello)
    assert status == 200, body
    schemas.validate(json.loads(body), "2025-11-25", "initialize")
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    status, _, body = post(port, path, call, **{"Mcp-Session-Id": headers["mcp-session-id"]})
    assert (status, json.loads(body)["result"]["structuredContent"]) == (200, {"result": 3})
    schemas.validate(json.loads(body), "2025-11-25", "tools/call")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    }
    call["params"]["_meta"] = meta  # type: ignore[index]
    routing = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "add"}
    status, headers, body = post(port, path, call, **routing)
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    messages = [json.loads(line[5:]) for line in body.splitlines() if line.startswith(b"data:")]
    assert messages[0]["method"] == "notifications/progress"
    assert messages[-1]["result"]["structuredContent"] == {"result": 3}
    for message in messages:
        schemas.validate(message, "2026-07-28", "tools/call")


def check_silent_call(port: int, path: str) -> None:
    """Call a tool that is silent until a comment has come."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    routing = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "_meta": meta}}
    end = {**call, "params": {"name": "end", "_meta": meta}}
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("POST", path, json.dumps(call), {**usual, **routing, "Mcp-Name": "wait"})
        response = connection.getresponse()
        assert (response.status, response.getheader("content-type")) == (200, "text/event-stream")
        assert response.readline() == b": keep-alive\n"
        assert post(port, path, end, **routing, **{"Mcp-Name": "end"})[0] == 200
        (data,) = [line for line in response.read().splitlines() if line.startswith(b"data: ")]
    assert json.loads(data.removeprefix(b"data: "))["result"]["content"][0]["text"] == "done"


@_SLOW
@pytest.mark.parametrize("server", [a_case(server) for server in COMMANDS])
def test_it_runs_under(server: str, tmp_path: Path) -> None:
    with serving(server, tmp_path, SERVER, "served:mcp") as port:
        check_both_eras(port, "/mcp")
        check_silent_call(port, "/mcp")


@_SLOW
@pytest.mark.parametrize("code", [STARLETTE, FASTAPI], ids=["starlette", "fastapi"])
def test_it_runs_mounted_under_a_path_in(code: str, tmp_path: Path) -> None:
    with serving("uvicorn", tmp_path, code, "served:app") as port:
        check_both_eras(port, "/api/mcp")
        assert post(port, "/mcp", {})[0] == 404


GUARDED = """
import sys

if "{parser}" == "h11":
    sys.modules["httptools"] = None

from funcmcp import MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.authenticator import first_of
from funcmcp._auth.policy import Auth
from funcmcp._auth.principal import Principal

async def by_certificate(headers):
    name = headers.get("x-client-certificate")
    return None if name is None else Principal(subject=name, issuer="certificates")

mcp = MCPServer("guarded", auth=Auth(first_of(by_certificate, APIKeys({{"bob": "a-key-of-32-characters-at-least"}}))))

@mcp.tool
async def add(a: int, b: int) -> int:
    return a + b
"""
"""A server that believes a header which only the proxy in front may set."""

SERVERS = [("run", "httptools"), ("run", "h11"), *((name, "any") for name in COMMANDS if name != "run")]
CERTIFICATE = b"x-client-certificate: CN=alice\r\n"
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "add",
        "arguments": {"a": 1, "b": 2},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\n"
    b"mcp-method: tools/call\r\nmcp-name: add\r\n"
)


def statuses(port: int, parts: Sequence[bytes]) -> list[int]:
    """Send parts, with pauses between them; return the status of each answer until the server is silent."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, part in enumerate(parts):
            time.sleep(0.1 if number else 0)
            line.sendall(part)
        text = line.recv(65536)
        line.settimeout(0.3)
        with suppress(TimeoutError):
            while part := line.recv(65536):
                text += part
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", text)]


def chunked(trailers: bytes, fields: bytes = b"") -> tuple[bytes, bytes]:
    """Return the head and the rest of a call with a chunked body and trailers."""
    body = json.dumps(CALL).encode()
    remainder = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailers)
    return HEAD + fields + b"transfer-encoding: chunked\r\n\r\n", remainder


def plain(fields: bytes = b"") -> bytes:
    """Return a call with a body of a known length."""
    body = json.dumps(CALL).encode()
    return HEAD + fields + b"content-length: %d\r\n\r\n" % len(body) + body


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, marks=[_SLOW] if case[0] in _OTHERS else [], id="-".join(case)) for case in SERVERS],
)
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The name of a server and the port where it serves `GUARDED`."""
    server, parser = request.param
    with serving(server, tmp_path_factory.mktemp("guarded"), GUARDED.format(parser=parser), "served:mcp") as port:
        yield server, port


@_SLOW
@pytest.mark.parametrize("in_one", [True, False])
@pytest.mark.parametrize("trailers", [CERTIFICATE, b"x-api-key: a-key-of-32-characters-at-least\r\n"])
def test_credentials_in_trailers_let_nobody_in(guarded: tuple[str, int], trailers: bytes, in_one: bool) -> None:
    server, port = guarded
    head, remainder = chunked(trailers)
    assert statuses(port, [plain(trailers)]) == [200]  # as headers they do
    expected = 411 if server == "uvicorn" else 401
    assert statuses(port, [head + remainder] if in_one else [head, remainder]) == [expected]


@_SLOW
def test_a_chunked_body_is_taken_where_trailers_are_told_apart(guarded: tuple[str, int]) -> None:
    server, port = guarded
    head, remainder = chunked(b"x-checksum: 1\r\n", CERTIFICATE)
    assert statuses(port, [head + remainder]) == [411 if server == "uvicorn" else 200]


@_SLOW
def test_a_body_behind_an_upgrade_is_never_a_request(guarded: tuple[str, int]) -> None:
    _, port = guarded
    hidden = plain(CERTIFICATE)
    head = HEAD + b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: %d\r\n\r\n" % len(hidden)
    answers = statuses(port, [head, hidden])
    assert len(answers) == 1
    assert answers[0] in {400, 401}


RATED = """
import sys

if "{parser}" == "h11":
    sys.modules["httptools"] = None

from funcmcp import HTTPOptions, MCPServer
from funcmcp._state.rates import MemoryRates

mcp = MCPServer("rated", http=HTTPOptions(proxies=1, rates=MemoryRates(per_second=0.001, burst=1)))

@mcp.tool
async def add(a: int, b: int) -> int:
    return a + b
"""
"""A server that takes one request from each address, and the address from the proxy in front."""


@_SLOW
@pytest.mark.parametrize(("server", "parser"), [a_case(*case) for case in SERVERS])
def test_an_address_in_a_trailer_does_not_change_whose_rate_a_request_counts_for(
    server: str, parser: str, tmp_path: Path
) -> None:
    first, second, unused = (b"x-forwarded-for: 198.51.100.%d\r\n" % number for number in (1, 2, 3))
    head, remainder = chunked(unused, first)
    refusal = 411 if server == "uvicorn" else 429
    with serving(server, tmp_path, RATED.format(parser=parser), "served:mcp") as port:
        assert statuses(port, [plain(first)]) == [200]
        assert statuses(port, [plain(first)]) == [429]
        assert statuses(port, [plain(second)]) == [200]  # the field counts as a header
        for parts in ([head + remainder], [head, remainder]):
            assert statuses(port, parts) == [refusal]
        assert statuses(port, [plain(unused)]) == [200]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_proxy_that_deletes_a_header_deletes_it_for_good(
    guarded: tuple[str, int], tmp_path: Path, parts: int
) -> None:
    """HAProxy passes trailers on, and Upgrade with the body behind it; it deletes the field from headers only."""
    server, port = guarded
    rules = ["http-request del-header x-client-certificate"]
    head, remainder = chunked(CERTIFICATE)
    hidden = plain(CERTIFICATE)
    upgrade = HEAD + b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: %d\r\n\r\n" % len(hidden)
    with proxied([f"http://127.0.0.1:{port}/mcp"], tmp_path, rules=rules) as url:
        front = urlsplit(url).port or 0
        wait_for(front)
        assert statuses(front, [plain(CERTIFICATE)]) == [401]
        assert statuses(front, [head + remainder] if parts == 1 else [head, remainder])[:1] == [
            411 if server == "uvicorn" else 401
        ]
        assert 200 not in statuses(front, [upgrade + hidden] if parts == 1 else [upgrade, hidden])


AZURE = """
import asyncio
import json
import sys

from funcmcp._adapters.azure.http_streams import WebApp, WebServer

if sys.argv[2] == "h11":
    sys.modules["httptools"] = None

async def invoke(request):
    return json.dumps(sorted(request.headers))

app = WebApp()
app.route(invoke)
asyncio.run(WebServer("127.0.0.1", int(sys.argv[1]), app).serve())
"""


@_SLOW
@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_the_server_of_an_azure_worker_drops_trailers(tmp_path: Path, parser: str) -> None:
    (tmp_path / "served.py").write_text(AZURE)
    with listening([str(tmp_path / "served.py"), "{port}", parser], tmp_path) as port:
        head, remainder = chunked(CERTIFICATE)
        for parts in ([head + remainder], [head, remainder]):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as line, line.makefile("rb") as answer:
                for part in parts:
                    line.sendall(part)
                assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
                length = int(parse_headers(answer)["content-length"])
                names = json.loads(answer.read(length))
            assert "transfer-encoding" in names
            assert "x-client-certificate" not in names

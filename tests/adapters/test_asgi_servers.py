"""The application under other ASGI servers, and mounted in other applications."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from tests import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30
SERVER = """
from funcmcp import MCPServer, ToolContext

mcp = MCPServer("mounted", version="1.0.0")

@mcp.tool
async def add(a: int, b: int, context: ToolContext) -> int:
    await context.progress(1)
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
    "granian": ["granian", "--interface", "asgi", "--port", "{port}", "{target}"],
    "hypercorn": ["hypercorn", "--bind", "127.0.0.1:{port}", "{target}"],
}


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(server: str, folder: Path, code: str, target: str) -> Iterator[int]:
    (folder / "served.py").write_text(code)
    port = free_port()
    words = [word.format(port=port, target=target) for word in COMMANDS[server]]
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, process.communicate()[0].decode()
                assert time.monotonic() < deadline, f"{server} does not listen"
                time.sleep(0.02)
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


@pytest.mark.parametrize("server", COMMANDS)
def test_it_runs_under(server: str, tmp_path: Path) -> None:
    with serving(server, tmp_path, SERVER, "served:mcp") as port:
        check_both_eras(port, "/mcp")


@pytest.mark.parametrize("code", [STARLETTE, FASTAPI], ids=["starlette", "fastapi"])
def test_it_runs_mounted_under_a_path_in(code: str, tmp_path: Path) -> None:
    with serving("uvicorn", tmp_path, code, "served:app") as port:
        check_both_eras(port, "/api/mcp")
        assert post(port, "/mcp", {})[0] == 404

"""HTTP+SSE and WebSocket under the ASGI servers that people use."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapters.asgi.test_application_servers import COMMANDS, serving
from tests.patience import PATIENCE
from tests.transports.websocket_client import Client
from tests.wire.peer import HANDSHAKE, initialize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVER = """
from funcmcp import Context, HTTPOptions, MCPServer

mcp = MCPServer("every way", http=HTTPOptions(sse="/sse", websocket="/ws"))


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b


@mcp.tool
def address(context: Context) -> str | None:
    return context.client_address
"""
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
ADDRESS = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "address"}}


@pytest.fixture(scope="module", params=COMMANDS)
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    with serving(request.param, folder, SERVER, "served:mcp") as found:
        yield found


def event(stream: http.client.HTTPResponse) -> tuple[str, str]:
    """Return the next event's name and data."""
    lines = [stream.readline().decode().rstrip("\n") for _ in range(3)]
    assert lines[2] == ""
    return lines[0].removeprefix("event: "), lines[1].removeprefix("data: ")


def post(port: int, path: str, message: dict[str, Any]) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("POST", path, json.dumps(message), {"content-type": "application/json"})
        return connection.getresponse().status


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_http_sse_works(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/sse", headers={"accept": "text/event-stream"})
        stream = connection.getresponse()
        name, endpoint = event(stream)
        assert name == "endpoint"
        assert [post(port, endpoint, message) for message in (initialize("2024-11-05"), CALL, ADDRESS)] == [202] * 3
        answers = [json.loads(event(stream)[1]) for _ in range(3)]
    results = {answer["id"]: answer["result"] for answer in answers}  # plain functions end in any order
    assert results[1]["protocolVersion"] == "2024-11-05"
    assert results[2]["content"][0]["text"] == "3"
    assert results[3]["content"][0]["text"] == "127.0.0.1"


def test_websocket_works(port: int) -> None:
    with closing(Client(port)) as socket:
        socket.say(initialize(HANDSHAKE))
        socket.hear()
        socket.say(CALL)
        assert socket.hear()["result"]["content"][0]["text"] == "3"
        socket.say(ADDRESS)
        assert socket.hear()["result"]["content"][0]["text"] == "127.0.0.1"


def test_a_websocket_from_elsewhere_is_refused(port: int) -> None:
    with closing(Client(port, headers={"origin": "https://evil.example"})) as socket:
        assert socket.rejected == 403


def test_a_message_that_is_no_text_closes_a_websocket(port: int) -> None:
    with closing(Client(port)) as socket:
        socket.say_bytes(b"{}")
        assert socket.closed_with() == 1003

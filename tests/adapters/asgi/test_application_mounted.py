"""A server inside a Starlette or FastAPI application, and what it logs where nobody runs its lifespan."""

from __future__ import annotations

import http.client
import json
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.forking import UVICORN, running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.processes import Running

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")
_SLOW = pytest.mark.slow("Servers with several processes start.")

SERVICE = """
import sys
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from funcmcp import MCPServer

mcp = MCPServer("Shop")


class Database:
    pass


async def connect():
    yield Database()
    print("the database is closed", flush=True)


mcp.services.register_factory(Database, connect, scope="app")


@mcp.tool
def order(database: Database) -> str:
    return "ordered"


@asynccontextmanager
async def own_lifespan(app):
    async with mcp.lifespan():
        yield


without = Starlette(routes=[Mount("/shop", mcp)])
starlette = Starlette(routes=[Mount("/shop", mcp)], lifespan=mcp.lifespan)
fastapi = FastAPI(lifespan=own_lifespan)
fastapi.mount("/shop", mcp)
"""


def connected(address: str) -> http.client.HTTPConnection:
    """Return a connection: worker processes may accept it only some time after uvicorn has named the address."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    for _ in range(PATIENCE * 10):
        try:
            connection.connect()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return connection
    raise AssertionError(f"nothing listens on {address}")


def call(process: Running) -> None:
    """Call the tool once, and end the process by SIGTERM."""
    line = process.line_with("Uvicorn running on")
    address = line.split("http://")[1].split()[0]
    connection = connected(address)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "order", "_meta": meta}}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "order",
    }
    connection.request("POST", "/shop/mcp", json.dumps(message), headers)
    response = connection.getresponse()
    assert json.loads(response.read())["result"]["content"][0]["text"] == "ordered"
    connection.close()


def served(folder: Path, application: str, *options: str) -> list[str]:
    """Serve an application with uvicorn, call the tool, and return what was printed until the process ended."""
    (folder / "shop.py").write_text(SERVICE, encoding="utf-8")
    command = [*UVICORN, f"shop:{application}", "--port", "0", "--no-use-colors", *options]
    with running(command, folder=folder) as process:
        call(process)
        process.process.send_signal(signal.SIGTERM)
        process.ended()
        return process.lines


@_SLOW
@pytest.mark.parametrize("application", ["starlette", "fastapi"])
def test_services_are_closed_with_the_application_that_enters_the_lifespan(tmp_path: Path, application: str) -> None:
    lines = served(tmp_path, application)
    assert "the database is closed" in lines
    assert not [line for line in lines if "lifespan" in line and "Shop" in line]


@_SLOW
def test_without_the_lifespan_the_first_request_brings_a_line_that_says_how_to_close_services(tmp_path: Path) -> None:
    lines = served(tmp_path, "without")
    [line] = [line for line in lines if line.startswith("Shop ")]
    assert line == (
        "Shop is served without its lifespan, so its services with scope='app' and its connections are not closed at "
        "the end. Enter `async with mcp.lifespan():` in the lifespan of the application around it; "
        "see docs/guides/transports.md."
    )
    assert "the database is closed" not in lines


@_SLOW
@pytest.mark.parametrize("application", ["without", "starlette"])
def test_several_workers_without_keys_are_warned_of(tmp_path: Path, application: str) -> None:
    lines = served(tmp_path, application, "--workers", "2")
    assert any(line.startswith("Shop has a random key, and this is one of several processes: its ") for line in lines)


@_SLOW
def test_a_reloader_starts_only_one_process(tmp_path: Path) -> None:
    lines = served(tmp_path, "starlette", "--reload")
    assert not any("random key" in line for line in lines)


@_SLOW
def test_a_wrong_path_below_a_mount_is_told_the_whole_path_of_the_endpoint(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SERVICE, encoding="utf-8")
    command = [*UVICORN, "shop:starlette", "--port", "0", "--no-use-colors"]
    with running(command, folder=tmp_path) as process:
        address = process.line_with("Uvicorn running on").split("http://")[1].split()[0]
        connection = connected(address)
        connection.request("POST", "/shop/wrong", b"{}", {"content-type": "application/json"})
        response = connection.getresponse()
        assert response.status == 404
        assert json.loads(response.read())["error"]["message"] == "Nothing is here; the MCP endpoint is /shop/mcp."
        connection.close()
        process.process.send_signal(signal.SIGTERM)
        process.ended()

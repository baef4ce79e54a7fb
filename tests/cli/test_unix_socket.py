"""``funcmcp run --uds``: what the socket lets through."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, Running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")

SERVER = """
from funcmcp import MCPServer

mcp = MCPServer("Shop")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""
CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[Running]:
    (folder / "server.py").write_text(SERVER)
    with running([*FUNCMCP, "run", "server.py", "--uds", "mcp.sock", *options], folder=folder) as process:
        process.line_with(f"Shop is served at http://unix:{folder}/mcp.sock:/mcp")
        yield process


def client(folder: Path, name: str = "localhost") -> httpx2.Client:
    transport = httpx2.HTTPTransport(uds=str(folder / "mcp.sock"))
    return httpx2.Client(transport=transport, base_url=f"http://{name}", timeout=PATIENCE)


def status_for(folder: Path, name: str) -> int:
    with client(folder, name) as connected:
        return connected.post("/mcp", json=CALL, headers={"accept": "application/json, text/event-stream"}).status_code


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
def test_names_are_checked_and_there_is_no_page(tmp_path: Path, options: list[str]) -> None:
    with served(tmp_path, "--allowed-host", "shop.example.com", *options) as process:
        names = ("localhost", "127.0.0.1", "shop.example.com", "evil.example")
        refused = {name: status_for(tmp_path, name) == 421 for name in names}
        with client(tmp_path) as connected:
            page = connected.get("/mcp", headers={"accept": "text/html"})
            probe = connected.get("/readyz")
        assert (tmp_path / "mcp.sock").stat().st_mode & 0o777 == 0o660
        process.process.terminate()
        assert process.ended() == 0
    assert refused == {"localhost": False, "127.0.0.1": False, "shop.example.com": False, "evil.example": True}
    assert "<html" not in page.text
    assert probe.status_code == 200
    assert not (tmp_path / "mcp.sock").exists()
    assert "Traceback" not in process.output


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_second_server_is_refused_and_after_a_kill_the_next_one_serves(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        second = funcmcp("run", "server.py", "--uds", "mcp.sock", folder=tmp_path)
        assert (second.returncode, second.stderr) == (
            1,
            f"Can't listen on {tmp_path}/mcp.sock: it is in use by another program. Choose another path with --uds.\n",
        )
        assert status_for(tmp_path, "localhost") != 421
        first.process.kill()
        first.ended()
    assert (tmp_path / "mcp.sock").exists()
    with served(tmp_path):
        assert status_for(tmp_path, "localhost") != 421


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--uds", "a.sock", "--port", "0", "--host", "localhost"], "leave out --host and --port"),
        (["--uds", "a.sock", "--tls-cert", "a", "--tls-key", "b"], "leave out --tls-cert and --tls-key"),
        (["--uds", ""], "--uds is empty"),
        (["--uds", "a.sock", "--stdio"], "leave out --uds"),
    ],
    ids=["address", "certificate", "empty", "stdio"],
)
def test_options_that_exclude_each_other_are_named(tmp_path: Path, options: list[str], reason: str) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    ended = funcmcp("run", "server.py", *options, folder=tmp_path)
    assert ended.returncode == 2
    assert reason in " ".join(ended.stderr.replace("│", " ").split())

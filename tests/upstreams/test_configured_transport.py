"""`Client` with the configuration of a client: one server, or several under prefixes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.client import Client, ConnectionFailedError
from tests.upstreams.scripted import Exchange, scripted_server

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
import sys

from pydantic import BaseModel

from funcmcp import Context, MCPServer

mcp = MCPServer(sys.argv[1])


class Answer(BaseModel):
    word: str


@mcp.tool
def who() -> str:
    return sys.argv[1]


@mcp.tool
async def ask(context: Context) -> str:
    await context.report_progress(1)
    answer = await context.elicit("Which word?", Answer)
    return answer.content.word


@mcp.resource("note://it")
def note() -> str:
    return f"note of {sys.argv[1]}"


mcp.run()
"""
AWAY = {"url": "http://127.0.0.1:9/mcp"}


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, Any]:
    """Two entries for servers on stdio."""
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    return {name: {"command": sys.executable, "args": [str(file), name]} for name in ("one", "two")}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_several_servers_are_one_with_prefixes(entries: dict[str, Any], revision: str) -> None:
    progress: list[Any] = []

    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"word": params["message"]}}

    configuration = {"mcpServers": entries}
    async with Client(configuration, revision=revision, elicit=elicit, on_progress=progress.append) as client:
        names = sorted(tool.name for tool in await client.list_tools())
        assert names == ["one_ask", "one_who", "two_ask", "two_who"]
        assert [(await client.call_tool(f"{name}_who")).text for name in ("one", "two")] == ["one", "two"]
        assert (await client.call_tool("two_ask")).text == "Which word?"
        assert progress
        assert (await client.read_resource("note://two/it")).text == "note of two"


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_single_server_has_no_prefix_and_is_the_server_itself(entries: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": entries["one"]}}))
    for target in (file, str(file), json.loads(file.read_text())):
        async with Client(target) as client:
            assert client.server_info["name"] == "one"
            assert client.servers == {}
            assert (await client.call_tool("who")).text == "one"


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_server_that_is_away_or_broken_takes_nothing_away_from_the_others(
    entries: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "funcmcp"):
        async with Client({"mcpServers": {"one": entries["one"], "away": AWAY, "broken": 5}}) as client:
            assert sorted(tool.name for tool in await client.list_tools()) == ["one_ask", "one_who"]
            assert {name: server.state for name, server in client.servers.items()} == {
                "away": "reconnecting",
                "one": "connected",
            }
            assert str(client.servers["away"].last_error).startswith("No server answers at http://127.0.0.1:9/mcp.")
    assert "The server 'broken' is left out: it is not an object." in caplog.messages


async def test_no_answer_of_any_server_is_an_error_that_has_the_reasons() -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        async with Client({"mcpServers": {"away": AWAY, "none": {"command": "no-such-program"}}}):
            pass
    assert "No server answers at http://127.0.0.1:9/mcp." in str(caught.value)
    assert "no-such-program cannot be started: No such file or directory." in str(caught.value)


async def test_the_reasons_have_what_a_server_answers_that_refuses_the_connection() -> None:
    async def refuse(exchange: Exchange, method: str) -> None:
        del method
        exchange.write("401 Unauthorized")

    async with scripted_server() as scripted:
        scripted._answer = refuse  # type: ignore[method-assign]
        with pytest.raises(ConnectionFailedError, match=r"docs: The server requires valid credentials"):
            async with Client({"mcpServers": {"docs": {"url": scripted.url}, "away": AWAY}}):
                pass


def test_a_configuration_without_usable_servers_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match=r"No server of the configuration can be used\. The server 'a' is left out"):
        Client({"mcpServers": {"a": 5}})
    with pytest.raises(ValueError, match=r"none\.json can't be read"):
        Client("none.json")


def test_headers_are_for_one_server() -> None:
    with pytest.raises(ValueError, match=r"^headers are for one server\."):
        Client({"mcpServers": {"a": AWAY, "b": AWAY}}, headers={"x-key": "1"})
    Client({"mcpServers": {"a": AWAY}}, headers={"x-key": "1"})

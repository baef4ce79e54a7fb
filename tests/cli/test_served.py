"""``funcmcp run`` in front of a server elsewhere: at a URL, behind a command on stdio, in a client's file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.client import Client, HTTPEndpoint, StdioCommand
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, PYTHON, Running, environment
from tests.clients.plan import Target, tool
from tests.clients.players import PLAYERS, Player
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SHOP = '''
from typing import Any

from funcmcp import Context, MCPServer, ServerInfo
from pydantic import BaseModel

mcp = MCPServer("Shop", version="3.2.1", instructions="Ask first.", info=ServerInfo(title="The shop"))


class Address(BaseModel):
    city: str


@mcp.tool
async def price(item: str, context: Context) -> int:
    """Return the price of an item."""
    await context.report_progress(1, total=2)
    return len(item)


@mcp.tool
async def deliver(context: Context) -> str:
    """Deliver an order."""
    answer = await context.elicit("Where?", Address)
    return answer.content.city


@mcp.tool
def seen(context: Context) -> dict[str, Any]:
    """Return the credentials of the request."""
    headers = context.http_request.headers
    return {name: headers.get(name) for name in ("authorization", "x-key", "cookie")}


@mcp.resource("shop://hours")
def hours() -> str:
    return "9 to 5"


@mcp.prompt
def greet(name: str) -> str:
    return f"Greet {name}."
'''
ON_STDIO = (PYTHON, "-m", "funcmcp_cli.main", "run", "shop.py", "--stdio")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@contextlib.contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[Running, str]]:
    """Run ``funcmcp run`` on a free port; yield the process and its endpoint."""
    with running([*FUNCMCP, "run", "--port", "0", *arguments], folder=folder) as process:
        yield process, process.line_with(" is served at ").split(" is served at ")[1].split()[0]


def bridge_on_stdio(folder: Path, *arguments: str) -> StdioCommand:
    return StdioCommand(*FUNCMCP, "run", "--stdio", *arguments, env=environment(), cwd=folder)


async def check_everything(target: str | StdioCommand, revision: str) -> None:
    """Use each kind of feature, and be asked a question in the middle of a call."""
    progress: list[Any] = []

    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        assert params["message"] == "Where?"
        return {"action": "accept", "content": {"city": "Ghent"}}

    async with Client(target, revision=revision, elicit=elicit, on_progress=progress.append) as client:
        assert (client.server_info["name"], client.server_info["version"]) == ("Shop", "3.2.1")
        assert client.server_info.get("title") == "The shop"
        assert client.instructions == "Ask first."
        assert sorted(tool.name for tool in await client.list_tools()) == ["deliver", "price", "seen"]
        assert (await client.call_tool("price", {"item": "tea"})).structured_content == {"result": 3}
        assert [update.progress for update in progress] == [1]
        assert (await client.call_tool("deliver")).text == "Ghent"
        assert (await client.read_resource("shop://hours")).text == "9 to 5"
        assert (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content["text"] == "Greet Ada."


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_command_on_stdio_is_served_over_http(shop: Path, revision: str) -> None:
    with served(shop, "--", *ON_STDIO) as (process, url):
        await check_everything(url, revision)
        assert process.lines[-1].startswith(f"{PYTHON} -m is served at {url} ")


@_SLOW
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_url_is_served_on_stdio_and_over_http(shop: Path, revision: str) -> None:
    with served(shop, "shop.py") as (_, url):
        await check_everything(bridge_on_stdio(shop, url), revision)
        with served(shop, url) as (_, second):
            await check_everything(second, revision)


@_SLOW
async def test_a_command_in_quotes_is_a_command_as_for_call(shop: Path) -> None:
    command = bridge_on_stdio(shop, " ".join(ON_STDIO))
    async with Client(command) as client:
        assert (await client.call_tool("price", {"item": "tea"})).text == "3"


@_SLOW
async def test_two_workers_serve_a_url(shop: Path) -> None:
    with served(shop, "shop.py") as (_, url), served(shop, url, "--workers", "2") as (_, second):
        for _ in range(8):
            async with Client(second, revision="2025-11-25") as client:
                assert (await client.call_tool("price", {"item": "tea"})).text == "3"


@pytest.mark.slow("Client libraries of others start, each twice.")
@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_official_clients_call_a_tool_through_a_bridge_in_both_directions(shop: Path, player: Player) -> None:
    plan = [
        tool("price", {"item": "tea"}),
        tool("deliver", elicited={"action": "accept", "content": {"city": "Ghent"}}),
    ]
    with served(shop, "--", *ON_STDIO) as (_, url):
        over_http = player.play(Target("http", url=url), plan)
        command = (PYTHON, "-m", "funcmcp_cli.main", "run", "--stdio", url)
        on_stdio = player.play(Target("stdio", command=command, env=environment()), plan)
    for played in (over_http, on_stdio):
        assert played.revision == player.revision
        texts = [call.result and call.result["content"][0]["text"] for call in played.calls]
        assert texts == ["3", "Ghent"]


@_SLOW
async def test_credentials_of_the_command_are_sent_and_those_of_the_client_are_not(shop: Path) -> None:
    options = ("--header", "X-Key: of the bridge", "--bearer", "of-the-bridge")
    with served(shop, "shop.py") as (_, url), served(shop, url, *options) as (_, second):
        canary = {"authorization": "Bearer canary", "x-key": "canary", "cookie": "canary=1"}
        async with Client(HTTPEndpoint(second, headers=canary)) as client:
            result = await client.call_tool("seen")
    assert result.structured_content == {
        "authorization": "Bearer of-the-bridge",
        "x-key": "of the bridge",
        "cookie": None,
    }


HELD = """
import os

held = os.open(os.environ["HELD"], os.O_WRONLY)  # a reader sees the end of this process

from funcmcp import MCPServer

mcp = MCPServer("Held")


@mcp.tool
def ping() -> str:
    return "pong"
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """A server, and the future that is done when each of its processes has ended."""
    (tmp_path / "held.py").write_text(HELD)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as threads:
        yield tmp_path, threads.submit(fifo.read_bytes)


ON_STDIO_HELD = (PYTHON, "-m", "funcmcp_cli.main", "run", "held.py", "--stdio")


@_SLOW
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_when_a_bridge_ends(held: tuple[Path, Any], number: signal.Signals) -> None:
    folder, ended = held
    with running(
        [*FUNCMCP, "run", "--port", "0", "--", *ON_STDIO_HELD],
        folder=folder,
        env={"HELD": str(folder / "fifo")},
    ) as process:
        url = process.line_with(" is served at ").split(" is served at ")[1].split()[0]
        assert funcmcp("call", url, "ping").stdout == "pong\n"
        process.process.send_signal(number)
        code = process.ended()
        assert ended.result(PATIENCE) == b""
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    assert "Traceback" not in process.output


@_SLOW
def test_a_bridge_on_stdio_ends_with_its_input_and_leaves_no_process(held: tuple[Path, Any]) -> None:
    folder, ended = held
    env = environment({"HELD": str(folder / "fifo")})
    command = [*FUNCMCP, "run", "--stdio", "--", *ON_STDIO_HELD]
    with subprocess.Popen(
        command, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping", "_meta": META}}
        output, errors = process.communicate(json.dumps(request) + "\n", timeout=PATIENCE)
        assert json.loads(output)["result"]["content"][0]["text"] == "pong"
        assert process.returncode == 0
        assert "Traceback" not in errors
        assert ended.result(PATIENCE) == b""


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--", "no-such-program", "x"], "no-such-program cannot be started: No such file or directory."),
        (["--", PYTHON, "-c", "pass"], "ended with exit code 0."),
        (["http://127.0.0.1:9/mcp"], "No server answers at http://127.0.0.1:9/mcp."),
    ],
    ids=["no program", "no server", "no answer"],
)
@pytest.mark.parametrize("options", [["--stdio"], ["--port", "0"]], ids=["stdio", "http"])
def test_a_server_that_does_not_answer_is_one_clear_line(
    arguments: list[str], sentence: str, options: list[str], tmp_path: Path
) -> None:
    ended = funcmcp("run", *options, *arguments, folder=tmp_path)
    assert ended.returncode == 1
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--reload", "http://127.0.0.1:9/mcp"], "http://127.0.0.1:9/mcp is not a Python file: leave out --reload."),
        (["--no-tasks", "--", "uvx", "x"], "uvx x is not a Python file: leave out --no-tasks."),
        (["--queue", "a", "http://127.0.0.1:9/mcp"], "is not a Python file: leave out --queue."),
        (["--workers", "2", "--", "uvx", "x"], "each process would start the command for itself: leave out --workers."),
        (["--header", "A: b", "server.py"], "the server is not at a URL: leave out --header."),
        (["--sign-in", "--", "uvx", "x"], "the server is not at a URL: leave out --sign-in."),
        (["http://127.0.0.1:9/mcp", "--", "x"], "A URL has no arguments: leave out x."),
        (["http://127.0.0.1:9/mcp", "--bearer", "a", "--sign-in"], "--sign-in and a token can't be combined"),
        (["--config", "mcp.json", "server.py"], "--config names the servers: leave out server.py."),
        (["--config", "mcp.json", "--header", "A: b"], "--header is for one URL. Write headers into the file."),
        (["--config", "none.json"], "none.json can't be read: No such file or directory."),
        (["--config", "mcp.json", "--workers", "2"], "each process would start a for itself: leave out --workers."),
        (["--config", "mcp.json", "--reload"], "mcp.json is not a Python file: leave out --reload."),
        (["bad.json"], "No server of bad.json can be used. The server 'a' is left out: it is not an object."),
    ],
)
def test_options_that_do_not_go_together_are_refused_with_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "uvx"}}}')
    (tmp_path / "bad.json").write_text('{"mcpServers": {"a": 5}}')
    ended = funcmcp("run", *arguments, folder=tmp_path)
    assert ended.returncode in (1, 2)
    assert sentence in " ".join(ended.stderr.split())


@_SLOW
async def test_the_servers_of_a_file_are_one_server_and_broken_entries_are_named(shop: Path) -> None:
    entry = {"command": PYTHON, "args": list(ON_STDIO[1:]), "cwd": ".", "colour": "red"}
    away = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    servers = {"My Shop": entry, "off": {"url": "x", "disabled": True}, "bad": {"command": 5}, "away": away}
    (shop / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with served(shop, "--config", "mcp.json") as (process, url):
        async with Client(url) as client:
            assert client.server_info["name"] == "mcp"
            names = sorted(tool.name for tool in await client.list_tools())
            assert names == ["My_Shop_deliver", "My_Shop_price", "My_Shop_seen"]
            assert (await client.call_tool("My_Shop_price", {"item": "tea"})).text == "3"
            assert (await client.read_resource("shop://My_Shop/hours")).text == "9 to 5"
        process.process.send_signal(signal.SIGINT)
        assert process.ended() == 0
    assert "The server 'bad' is left out: its command must be a string that is not empty." in process.lines
    assert "The server 'My Shop' has members without a meaning here: colour." in process.lines
    assert "The server 'off' is disabled." in process.lines


@_SLOW
async def test_the_only_server_of_a_file_is_passed_on_as_it_is(shop: Path) -> None:
    entry = {"command": PYTHON, "args": list(ON_STDIO[1:]), "cwd": "${workspaceFolder}"}
    (shop / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    await check_everything(bridge_on_stdio(shop, "mcp.json"), "2026-07-28")

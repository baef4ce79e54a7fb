"""The samples about single topics: databases, FastAPI, tenants, a gateway and an agent."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import re
import shlex
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp.client import Client
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.postgres_server import postgres_server
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from funcmcp import MCPServer

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SAMPLES = REPOSITORY / "samples"


def sample(name: str) -> ModuleType:
    return importlib.import_module(f"samples.{name}")


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "SQLite":
        yield f"sqlite+aiosqlite:///{tmp_path}/shop.db"
        return
    with postgres_server() as server:
        yield server.url.replace("postgresql://", "postgresql+psycopg://")


@_SLOW
async def test_orders_of_a_shop_never_exceed_the_stock(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    async with Client(sample("database.server").mcp) as client:
        results = await asyncio.gather(
            *[client.call_tool("place_order", {"product": "tea", "pieces": 3}) for _ in range(5)]
        )
        assert sorted(result.is_error for result in results) == [False, False, False, True, True]
        numbers = [result.structured_content["number"] for result in results if not result.is_error]
        assert sorted(numbers) == [1, 2, 3]
        products = await client.call_tool("list_products", {})
        assert products.structured_content == {"result": [{"name": "coffee", "stock": 3}, {"name": "tea", "stock": 1}]}
        unknown = await client.call_tool("place_order", {"product": "cocoa", "pieces": 1})
        assert unknown.text == "There are not 1 pieces of 'cocoa'. Look at the products."
        for arguments in ({"product": "t\0a", "pieces": 1}, {"product": "tea", "pieces": 10**20}):
            refused = await client.call_tool("place_order", arguments)
            assert refused.is_error
            assert "error id" not in refused.text


@_SLOW
async def test_several_processes_may_create_the_shop_at_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    server = sample("database.server")
    async with contextlib.AsyncExitStack() as stack:
        opened = (stack.enter_async_context(contextlib.asynccontextmanager(server.open_engine)()) for _ in range(5))
        await asyncio.gather(*opened)
        async with Client(server.mcp) as client:
            products = await client.call_tool("list_products", {})
    assert products.structured_content == {"result": [{"name": "coffee", "stock": 3}, {"name": "tea", "stock": 10}]}


@_SLOW
async def test_one_application_serves_an_api_and_its_operations_as_tools() -> None:
    with serve(SAMPLES / "fastapi_tools" / "app.py", attribute="app", folder=REPOSITORY) as served:
        async with Client(served.url) as client:
            names = [tool.name for tool in await client.list_tools()]
            assert names == ["get_order", "place_order", "busiest_dish"]
            await client.call_tool("place_order", {"dish": "soup", "pieces": 2}, raise_on_error=True)
            order = httpx2.get(f"{served.origin}/orders/1").json()
            assert order == {"dish": "soup", "pieces": 2, "number": 1}
            assert (await client.call_tool("busiest_dish", {})).text == "soup"
            missing = await client.call_tool("get_order", {"number": 7})
            assert missing.is_error
            assert "There is no such order." in missing.text
            assert (await client.call_tool("place_order", {"dish": "", "pieces": 1})).is_error


async def test_a_tenant_sees_its_own_notes_and_its_own_tools() -> None:
    module = sample("tenants.server")
    module.store.clear()

    def of(name: str) -> Client:
        return Client(module.mcp, headers={"x-api-key": module.KEYS[name]})

    async with of("ada") as ada, of("ben") as ben, of("eve") as eve:
        await ada.call_tool("add_note", {"text": "secret of contoso"}, raise_on_error=True)
        assert (await ben.call_tool("list_notes", {})).structured_content == {"result": ["secret of contoso"]}
        assert (await eve.call_tool("list_notes", {})).structured_content == {"result": []}
        assert (await ben.call_tool("export", {})).text == "- secret of contoso"
        assert [tool.name for tool in await ben.list_tools()] == ["add_note", "list_notes", "export"]
        assert [tool.name for tool in await eve.list_tools()] == ["add_note", "list_notes"]


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], MCPServer]:
    """Return a function that makes the gateway in front of servers."""

    def make(servers: str) -> MCPServer:
        monkeypatch.setenv("GATEWAY_SERVERS", servers)
        monkeypatch.delitem(sys.modules, "samples.gateway.server", raising=False)
        server: MCPServer = sample("gateway.server").mcp
        return server

    return make


@_SLOW
async def test_a_gateway_serves_a_server_of_its_own_and_one_elsewhere(
    tmp_path: Path, gateway: Callable[[str], MCPServer]
) -> None:
    shop = f"sqlite+aiosqlite:///{tmp_path}/shop.db"
    with serve(SAMPLES / "database" / "server.py", folder=tmp_path, env={"DATABASE_URL": shop}) as behind:
        async with Client(gateway(f"shop={behind.url}")) as client:
            names = sorted(tool.name for tool in await client.list_tools())
            assert names == ["math_add", "shop_list_products", "shop_place_order"]
            assert (await client.call_tool("math_add", {"a": 1, "b": 2})).text == "3"
            order = await client.call_tool("shop_place_order", {"product": "tea", "pieces": 2}, raise_on_error=True)
            assert order.structured_content == {"number": 1, "product": "tea", "pieces": 2}
            refused = await client.call_tool("shop_place_order", {"product": "tea", "pieces": 99})
            assert (refused.is_error, refused.text) == (
                True,
                "There are not 99 pieces of 'tea'. Look at the products.",
            )


async def test_a_server_that_is_away_takes_nothing_away_from_the_gateway(
    gateway: Callable[[str], MCPServer],
) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as reserved:
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/mcp"
    async with Client(gateway(f"shop={url}")) as client:
        assert [tool.name for tool in await client.list_tools()] == ["math_add"]
        assert (await client.call_tool("math_add", {"a": 1, "b": 2})).text == "3"


def call_of(name: str, **arguments: Any) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class Script(BaseHTTPRequestHandler):
    """Answers as a model does, with the messages of a script."""

    messages: list[dict[str, Any]]
    bodies: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = json.dumps({"choices": [{"message": self.messages.pop(0)}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@_SLOW
async def test_an_agent_calls_tools_until_its_model_has_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is a script, as the sample says: no model can be reached from tests."""
    monkeypatch.setenv("DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path}/shop.db")
    agent = sample("agent.agent")
    Script.bodies = []
    Script.messages = [
        call_of("list_products"),
        call_of("place_order", product="tea", pieces=99),
        call_of("place_order", product="tea", pieces=2),
        call_of("no_such_tool"),
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "list_products", "arguments": "[1]"}}]},
        call_of("place_order", product="coffee", pieces=1),
        {"role": "assistant", "content": "I have ordered two pieces of tea."},
    ]
    asked: list[tuple[str, str]] = []

    async def approve(name: str, arguments: dict[str, Any]) -> bool:
        asked.append((name, arguments["product"]))
        return bool(arguments["product"] == "tea")

    with ThreadingHTTPServer(("127.0.0.1", 0), Script) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        model = agent.ChatCompletions(f"http://127.0.0.1:{server.server_port}/v1", "scripted", "key")
        async with Client(sample("database.server").mcp) as client:
            answer = await agent.run("Order tea.", client, model, approve)
            Script.messages = [None]  # type: ignore[list-item]
            with pytest.raises(agent.ModelError, match="The model has not answered"):
                await agent.run("Order tea.", client, model, approve)
        await model.aclose()
        server.shutdown()
    assert answer == "I have ordered two pieces of tea."
    assert asked == [("place_order", "tea"), ("place_order", "tea"), ("place_order", "coffee")]
    results = [message["content"] for message in Script.bodies[-2]["messages"] if message["role"] == "tool"]
    assert json.loads(results[0])[0] == {"name": "coffee", "stock": 3}
    assert results[1] == "Error: There are not 99 pieces of 'tea'. Look at the products."
    assert json.loads(results[2])["number"] == 1
    assert results[3] == "Error: there is no tool 'no_such_tool'. Tools: list_products, place_order."
    assert results[4] == "Error: the arguments are not a JSON object."
    assert results[5] == "The user did not agree to this call."


READMES = {path.parent.name: path for path in SAMPLES.glob("*/README.md")}


@_SLOW
@pytest.mark.parametrize("name", ["database", "gateway", "tenants"])
def test_the_command_in_a_readme_serves_the_sample(name: str, tmp_path: Path) -> None:
    command = re.search(r"^funcmcp (run \S+)", READMES[name].read_text(), re.MULTILINE)
    assert command is not None
    arguments = shlex.split(command[1])
    with running(
        [*FUNCMCP, *arguments, "--port", "0"],
        folder=REPOSITORY,
        env={"DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/shop.db", "GATEWAY_SERVERS": ""},
    ) as process:
        assert process.endpoint().endswith("/mcp")
        process.process.terminate()
        assert process.ended() == 0
    assert "Traceback" not in process.output

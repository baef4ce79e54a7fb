"""An app of funcmcp.azure.trigger_app, served: its lists and answers are those of the server itself."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest_asyncio

from funcmcp.testing import Client
from funcmcp_host.served import PATH, FunctionsHost
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.functions_host.apps import write_app
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

import pytest

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

SERVER = '''
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from funcmcp import MCPServer, ToolError

mcp = MCPServer("Shop", instructions="Sells.")


class Order(BaseModel):
    item: str
    count: Annotated[int, Field(ge=1, description="How many")] = 1


class Receipt(BaseModel):
    total: float
    items: list[str]


@mcp.tool(meta={"team": "sales"})
def order(order: Order, size: Literal["small", "large"] = "small") -> Receipt:
    """Order something."""
    return Receipt(total=order.count * 1.5, items=[order.item] * order.count)


@mcp.tool
def fail() -> str:
    """Fail."""
    raise ToolError("Out of stock.")


@mcp.resource("menu://today", mime_type="text/markdown")
def today() -> str:
    """The menu."""
    return "# Soup"


@mcp.resource("menu://{day}")
def menu(day: str) -> dict[str, str]:
    """The menu of a day."""
    return {"day": day}


@mcp.prompt
def praise(dish: str, tone: str = "warm") -> str:
    """Praise a dish."""
    return f"Praise {dish}, {tone}."
'''
LISTS = (
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_menu", {}),
    ("search_menu", {"category": "pizza", "max_price": "10"}),
    ("search_menu", {"max_price": "cheap"}),
    ("get_order", {"order_id": "missing"}),
)
NOT_CARRIED = {"title", "annotations", "execution"}
"""Members of definitions that the binding contract does not have."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Client, Client]]:
    """Return a client of the served function app, and one of the server itself."""
    folder = write_app(
        tmp_path_factory.mktemp("shop"),
        "import funcmcp.azure\nfrom shop_server import mcp\n\napp = funcmcp.azure.trigger_app(mcp)\n",
    )
    (folder / "shop_server.py").write_text(SERVER)
    sys.path.insert(0, str(folder))
    try:
        import shop_server  # type: ignore[import-not-found] # written above
    finally:
        sys.path.pop(0)
    host = FunctionsHost(folder, dict(os.environ))

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    await host.start()
    try:
        async with Client(exchange) as served, Client(shop_server.mcp) as itself:
            yield served, itself
    finally:
        await host.aclose()


def carried(definition: Any) -> dict[str, Any]:
    return {name: value for name, value in dict(definition).items() if name not in NOT_CARRIED}


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_lists_are_the_same(clients: tuple[Client, Client]) -> None:
    served, itself = clients
    for method, member in (
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ):
        expected = [carried(item) for item in await itself.list_items(method, member)]
        assert [carried(item) for item in await served.list_items(method, member)] == expected, method
    (expected_prompt,) = await itself.list_items("prompts/list", "prompts")
    (prompt,) = await served.list_items("prompts/list", "prompts")
    assert prompt["name"] == expected_prompt["name"]
    assert [argument["name"] for argument in prompt["arguments"]] == ["dish", "tone"]
    assert [argument.get("required", False) for argument in prompt["arguments"]] == [True, False]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_answers_are_the_same(clients: tuple[Client, Client]) -> None:
    for arguments in ({"order": {"item": "tea", "count": 2}}, {"order": {"item": "tea"}, "size": "large"}):
        served, expected = [await client.call_tool("order", arguments) for client in clients]
        assert served["structuredContent"] == expected["structuredContent"]
        assert served["content"] == expected["content"]
    for name, arguments in (("fail", {}), ("order", {"order": {"item": "tea", "count": 0}})):
        served, expected = [await client.call_tool(name, arguments) for client in clients]
        assert (served["isError"], served["content"]) == (True, expected["content"])
    for uri in ("menu://today", "menu://monday"):
        served, expected = [(await client.read_resource(uri))["contents"] for client in clients]
        assert served == expected
    served, expected = [(await client.get_prompt("praise", {"dish": "soup"}))["messages"] for client in clients]
    assert served == expected


async def test_the_sample_has_the_same_lists_and_answers(tmp_path: Path) -> None:
    folder = write_app(
        tmp_path, "import funcmcp.azure\nfrom served.server import mcp\n\napp = funcmcp.azure.trigger_app(mcp)\n"
    )
    shutil.copytree(REPOSITORY / "samples" / "orders", folder / "served")
    host = FunctionsHost(folder, dict(os.environ))

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    mcp = importlib.import_module("samples.orders.server").mcp
    await host.start()
    try:
        assert host.left_out == []
        async with Client(exchange) as served, Client(mcp) as itself:
            for method, member in LISTS:
                items = {item["name"]: carried(item) for item in await served.list_items(method, member)}
                expected = {item["name"]: carried(item) for item in await itself.list_items(method, member)}
                assert items, method
                if method == "resources/list":
                    # Triggers have no lists that a function makes.
                    expected = {name: item for name, item in expected.items() if name in items}
                assert items == expected, method
            for tool, arguments in CALLS:
                results = [await client.call_tool(tool, arguments) for client in (served, itself)]
                assert results[0]["content"] == results[1]["content"], tool
                assert results[0].get("structuredContent") == results[1].get("structuredContent"), tool
                assert results[0].get("isError", False) == results[1].get("isError", False), tool
    finally:
        await host.aclose()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_new_project_with_triggers_is_served(tmp_path: Path) -> None:
    created = funcmcp("new", "desk", "--hosting", "triggers", folder=tmp_path)
    assert created.returncode == 0, created.stderr
    with running([*FUNCMCP, "host", "desk", "--port", "0"], folder=tmp_path) as process:
        assert process.endpoint().endswith("/runtime/webhooks/mcp")
        assert "tool" in process.output

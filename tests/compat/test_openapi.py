"""`FastMCP.from_openapi` and `from_fastapi` with FastMCP's arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from fastapi import FastAPI

from funcmcp.compat import FastMCP, MCPType, RouteMap
from funcmcp.testing import Client

if TYPE_CHECKING:
    from funcmcp import MCPServer

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "paths": {
        "/orders": {
            "get": {"operationId": "list_orders_orders__get", "tags": ["orders"]},
            "post": {"summary": "Place an order!"},
        },
        "/admin/orders": {"delete": {"operationId": "delete-all.orders", "tags": ["admin"]}},
    },
}


def api(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json={"url": str(request.url)})


def client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url="https://api.example/v1", transport=httpx2.MockTransport(api))


async def names(mcp: MCPServer) -> list[str]:
    async with Client(mcp) as session:
        return [tool["name"] for tool in await session.list_tools()]


async def test_tools_have_the_names_that_fastmcp_gives_them() -> None:
    mcp = FastMCP.from_openapi(DOCUMENT, client(), mcp_names={"delete-all.orders": "clear"})
    assert mcp.name == "OpenAPI Server"
    assert await names(mcp) == ["list_orders_orders", "Place_an_order", "clear"]
    async with Client(mcp) as session:
        result = await session.call_tool("list_orders_orders", {})
    assert result["structuredContent"] == {"url": "https://api.example/v1/orders"}


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ([RouteMap(tags={"admin"}, mcp_type=MCPType.EXCLUDE)], ["list_orders_orders", "Place_an_order"]),
        (
            [RouteMap(methods=["GET"], mcp_type=MCPType.TOOL), RouteMap(mcp_type=MCPType.EXCLUDE)],
            ["list_orders_orders"],
        ),
        ([RouteMap(pattern=re.compile("^/admin"), mcp_type=MCPType.EXCLUDE)], ["list_orders_orders", "Place_an_order"]),
    ],
)
async def test_the_first_route_map_that_matches_counts(maps: list[RouteMap], expected: list[str]) -> None:
    assert await names(FastMCP.from_openapi(DOCUMENT, client(), route_maps=maps)) == expected


async def test_a_function_decides_after_the_route_maps() -> None:
    def decide(route: Any, kind: MCPType) -> MCPType | None:
        assert kind is MCPType.TOOL
        return MCPType.EXCLUDE if route.method == "POST" or route.tags == ["admin"] else None

    assert await names(FastMCP.from_openapi(DOCUMENT, client(), route_map_fn=decide)) == ["list_orders_orders"]


def test_what_is_not_supported_is_explained() -> None:
    resources = [RouteMap(methods=["GET"], mcp_type=MCPType.RESOURCE)]
    with pytest.raises(TypeError, match="makes tools of operations only"):
        FastMCP.from_openapi(DOCUMENT, client(), route_maps=resources)
    with pytest.raises(TypeError, match="mcp_component_fn is not supported"):
        FastMCP.from_openapi(DOCUMENT, client(), mcp_component_fn=print)
    with pytest.raises(TypeError, match="'headers', but calls in the process have no client"):
        FastMCP.from_fastapi(FastAPI(), httpx_client_kwargs={"headers": {}})


async def test_a_fastapi_application_is_called_in_the_process() -> None:
    app = FastAPI(title="Shop")

    @app.get("/orders/{number}")
    async def get_order(number: int) -> dict[str, int]:
        return {"number": number}

    mcp = FastMCP.from_fastapi(app, tags={"api"})
    assert mcp.name == "Shop"
    assert await names(mcp) == ["get_order_orders"]
    async with Client(mcp) as session:
        assert (await session.call_tool("get_order_orders", {"number": 1}))["structuredContent"] == {"number": 1}
    mcp.disable(tags={"api"})
    assert await names(mcp) == []

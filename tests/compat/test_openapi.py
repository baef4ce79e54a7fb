"""`FastMCP.from_openapi` and `from_fastapi` with FastMCP's arguments."""

from __future__ import annotations

import json
import re
from email import policy
from email.parser import BytesParser
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from fastapi import FastAPI

from funcmcp.compat import FastMCP, HTTPRoute, MCPType, OpenAPIProvider, RouteMap
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


async def test_parameters_of_the_client_leave_the_arguments_in_the_query() -> None:
    operation = {"operationId": "find", "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}
    http = client()
    http.params = {"key": "k"}
    async with Client(FastMCP.from_openapi({**DOCUMENT, "paths": {"/find": {"get": operation}}}, http)) as session:
        result = await session.call_tool("find", {"q": "tea"})
    assert result["structuredContent"] == {"url": "https://api.example/v1/find?q=tea&key=k"}


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


async def test_operations_become_resources_and_templates() -> None:
    app = FastAPI(title="Shop")

    @app.get("/orders/{number}", operation_id="order")
    async def get_order(number: int) -> dict[str, int]:
        return {"number": number}

    @app.get("/orders", operation_id="orders")
    async def list_orders() -> list[int]:
        return [1]

    maps = [
        RouteMap(methods=["GET"], pattern=r"\{", mcp_type=MCPType.RESOURCE_TEMPLATE, mcp_tags={"one"}),
        RouteMap(methods=["GET"], mcp_type=MCPType.RESOURCE),
    ]
    mcp = FastMCP.from_fastapi(app, route_maps=maps)
    async with Client(mcp) as session:
        assert [resource.uri for resource in await session.list_resources()] == ["resource://orders"]
        templates = [template.uri_template for template in await session.list_resource_templates()]
        assert templates == ["resource://order/{number}"]
        whole = await session.read_resource("resource://orders")
        assert (whole.contents[0].text, whole.contents[0].mime_type) == ("[1]", "application/json")
        assert (await session.read_resource("resource://order/7")).contents[0].text == '{"number": 7}'
        mcp.disable(tags={"one"})
        assert await session.list_resource_templates() == []


def by_body(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json={"path": request.url.path, "body": json.loads(request.content or b"null")})


def posting(schema: dict[str, Any]) -> FastMCP:
    """Return a server with one operation that has a number in its path and a body of a schema."""
    operation = {
        "operationId": "put",
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
    }
    document = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/{id}": {"put": operation}}}
    http = httpx2.AsyncClient(base_url="https://api.example", transport=httpx2.MockTransport(by_body))
    return FastMCP.from_openapi(document, http)


@pytest.mark.parametrize(
    ("schema", "arguments", "body"),
    [
        ({"type": "object", "properties": {"name": {}}}, {"id": 1, "name": "a"}, {"name": "a"}),
        ({"type": "object", "properties": {"id": {}}}, {"id__path": 1, "id": 2}, {"id": 2}),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, {"id": 1, "a": 2}, {"a": 2}),
        ({"type": "object", "additionalProperties": {}}, {"id": 1, "body": {"x": 1}}, {"x": 1}),
        ({"type": "array", "title": "New Labels"}, {"id": 1, "new_labels": ["x"]}, ["x"]),
        ({"type": "object", "properties": {"name": {}}}, {"id": 1, "name": "a", "unknown": 1}, {"name": "a"}),
    ],
)
async def test_arguments_have_the_names_that_fastmcp_gives_them(
    schema: dict[str, Any], arguments: dict[str, Any], body: Any
) -> None:
    async with Client(posting(schema)) as session:
        result = await session.call_tool("put", arguments)
    assert result["structuredContent"] == {"path": "/1", "body": body}


@pytest.mark.parametrize(
    ("encoding", "tags", "parts"),
    [
        (None, ["a", "b"], ["a", "b"]),
        ({"style": "form", "explode": True, "headers": {}}, ["a"], ["a"]),
        (None, [], ["[]"]),
        (None, ["a", 1], ["['a', 1]"]),
        ({"explode": False}, ["a", "b"], ["['a', 'b']"]),
        ({"contentType": "application/json"}, ["a"], ["['a']"]),
    ],
)
async def test_lists_in_a_form_with_files_are_sent_as_fastmcp_does(
    encoding: dict[str, Any] | None, tags: list[Any], parts: list[str]
) -> None:
    media: dict[str, Any] = {"schema": {"type": "object", "properties": {"tags": {"type": "array", "items": {}}}}}
    if encoding is not None:
        media["encoding"] = {"tags": encoding}
    operation = {"operationId": "put", "requestBody": {"content": {"multipart/form-data": media}}}
    document = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/": {"put": operation}}}

    def answer(request: httpx2.Request) -> httpx2.Response:
        text = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode() + request.content
        message = BytesParser(policy=policy.default).parsebytes(text)
        return httpx2.Response(200, json=[part.get_content() for part in message.iter_parts()])

    http = httpx2.AsyncClient(base_url="https://api.example", transport=httpx2.MockTransport(answer))
    async with Client(FastMCP.from_openapi(document, http)) as session:
        result = await session.call_tool("put", {"tags": tags})
    assert result["structuredContent"] == {"result": parts}


async def test_a_function_changes_components() -> None:
    def change(route: HTTPRoute, component: Any) -> None:
        component.description = f"{route.method} of the API"
        component.tags.add("api")

    mcp = FastMCP.from_openapi(DOCUMENT, client(), mcp_component_fn=change)
    async with Client(mcp) as session:
        tools = await session.list_tools()
        assert {tool["description"] for tool in tools} == {"GET of the API", "POST of the API", "DELETE of the API"}
        mcp.disable(tags={"api"})
        assert await session.list_tools() == []


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (httpx2.Response(404, json={"detail": "no"}), 'HTTP error 404: Not Found - {"detail": "no"}'),
        (httpx2.Response(500, text="<html>"), "HTTP error 500: Internal Server Error"),
        (httpx2.Response(302, headers={"location": "/x"}), "HTTP error 302: Found - Location: /x"),
        (httpx2.Response(429), "Rate limited by upstream API, please retry later"),
    ],
)
async def test_errors_of_the_api_reach_the_client(response: httpx2.Response, text: str) -> None:
    http = httpx2.AsyncClient(base_url="https://api.example", transport=httpx2.MockTransport(lambda _: response))
    async with Client(FastMCP.from_openapi(DOCUMENT, http)) as session:
        result = await session.call_tool("list_orders_orders", {})
    assert result.is_error
    assert text in result["content"][0]["text"]


async def test_details_of_errors_are_masked() -> None:
    http = httpx2.AsyncClient(
        base_url="https://api.example", transport=httpx2.MockTransport(lambda _: httpx2.Response(500, text="secret"))
    )
    async with Client(FastMCP.from_openapi(DOCUMENT, http, mask_error_details=True)) as session:
        result = await session.call_tool("list_orders_orders", {})
    assert "secret" not in result["content"][0]["text"]


async def test_headers_of_the_request_are_sent_without_credentials() -> None:
    seen: list[httpx2.Headers] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(200, json={})

    http = httpx2.AsyncClient(
        base_url="https://api.example", headers={"x-key": "own"}, transport=httpx2.MockTransport(answer)
    )
    mcp = FastMCP.from_openapi(DOCUMENT, http)
    headers = {"authorization": "Bearer secret", "cookie": "a=b", "x-trace": "1", "x-key": "client"}
    async with Client(mcp, headers=headers) as session:
        await session.call_tool("list_orders_orders", {})
    assert (seen[0].get("x-trace"), seen[0]["x-key"]) == ("1", "own")
    assert "secret" not in str(seen[0].raw)
    assert "cookie" not in seen[0]


@pytest.mark.parametrize("document", [{}, {"openapi": "3.1.0", "info": {}, "paths": {}}])
def test_a_document_without_servers_needs_a_client(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="OpenAPI spec"):
        OpenAPIProvider(document)


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

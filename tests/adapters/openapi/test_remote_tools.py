"""Tools from the OpenAPI document of a remote API: who gets requests, with which credentials, and what comes back."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import Context, MCPServer, RegistrationError
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ORIGIN = "https://api.example"
ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "description": "The number."},
        "dish": {"$ref": "#/components/schemas/Dish"},
    },
}


def document(**members: Any) -> dict[str, Any]:
    paths: dict[str, Any] = {
        "/orders": {
            "get": {
                "operationId": "listOrders",
                "tags": ["orders"],
                "parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}],
                "responses": {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}},
            },
            "post": {
                "operationId": "placeOrder",
                "tags": ["orders"],
                "requestBody": {"required": True, "content": {"application/json": {"schema": ORDER}}},
                "responses": {"201": {"content": {"application/json": {"schema": ORDER}}}},
            },
        },
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {
                "operationId": "getOrder",
                "responses": {"200": {"content": {"application/json": {"schema": ORDER}}}},
            },
            "delete": {"operationId": "deleteOrder", "deprecated": True, "responses": {"204": {}}},
        },
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "Orders", "version": "1"},
        "servers": [{"url": ORIGIN + "/v1"}],
        "paths": paths,
        "components": {"schemas": {"Dish": {"type": "string", "description": "What is eaten."}}},
        **members,
    }


class API:
    """A mock of an API, which records what it gets."""

    def __init__(self, answer: Callable[[httpx2.Request], httpx2.Response] | None = None) -> None:
        self.requests: list[httpx2.Request] = []
        self._answer = answer or (lambda _: httpx2.Response(200, json={"id": 1}))

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self._answer(request)

    @property
    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))


async def called(mcp: MCPServer, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    async with Client(mcp) as client:
        return await client.call_tool(name, arguments or {})


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


async def test_a_document_becomes_a_server() -> None:
    mcp = MCPServer.from_openapi(document(), client=API().client)
    async with Client(mcp) as client:
        assert client.server_info["name"] == "Orders"
        tools = {tool["name"]: tool for tool in await client.list_tools()}
    assert list(tools) == ["listOrders", "placeOrder", "getOrder", "deleteOrder"]
    assert tools["getOrder"]["annotations"] == {"title": "Get Order", "readOnlyHint": True}
    assert tools["deleteOrder"]["description"] == "Deprecated. DELETE /orders/{id}"
    assert tools["deleteOrder"]["annotations"]["destructiveHint"] is True
    assert tools["placeOrder"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "The number."},
            "dish": {"type": "string", "description": "What is eaten."},
        },
        "required": ["id"],
    }


async def test_a_request_goes_to_the_server_in_the_document() -> None:
    api = API()
    mcp = MCPServer.from_openapi(document(), client=api.client)
    await called(mcp, "placeOrder", {"id": 1, "dish": "soup"})
    (request,) = api.requests
    assert (request.method, str(request.url)) == ("POST", "https://api.example/v1/orders")
    assert json.loads(request.content) == {"id": 1, "dish": "soup"}
    assert request.headers["content-type"] == "application/json"


async def test_a_document_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(document()), encoding="utf-8")
    api = API()
    mcp = MCPServer("Shop")
    mcp.tools_from_openapi(path, client=api.client, select=["GET /orders"], names={"listOrders": "orders"})
    await called(mcp, "orders", {"page": 2})
    assert str(api.requests[0].url) == "https://api.example/v1/orders?page=2"


async def test_responses_are_described_and_need_not_match_the_document() -> None:
    answers = [httpx2.Response(200, json=body) for body in ({"id": "x"}, [1], 5)]
    answers += [httpx2.Response(200, text="hello"), httpx2.Response(204)]
    mcp = MCPServer.from_openapi(document(), client=API(lambda _: answers.pop(0)).client)
    async with Client(mcp) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        results = [await client.call_tool("getOrder", {"id": 1}) for _ in range(5)]
    assert tools["getOrder"]["outputSchema"] == {
        "type": "object",
        "properties": {"id": {"description": "The number."}, "dish": {"description": "What is eaten."}},
    }
    assert "outputSchema" not in tools["listOrders"]
    structured = [result["structuredContent"] for result in results]
    assert structured == [{"id": "x"}, {"result": [1]}, {"result": "5"}, {"result": "hello"}, {}]
    assert not any(result.get("isError") for result in results)


async def test_an_author_can_require_responses_as_in_the_document() -> None:
    mcp = MCPServer.from_openapi(
        document(), client=API(lambda _: httpx2.Response(200, json={"id": "x"})).client, validate_output=True
    )
    async with Client(mcp) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        assert tools["getOrder"]["outputSchema"]["properties"]["id"]["type"] == "integer"
        assert (await client.call_tool("getOrder", {"id": 1}))["isError"]


async def test_an_error_of_the_api_is_an_error_with_its_text() -> None:
    api = API(lambda _: httpx2.Response(404, text="No such order." + "x" * 9000))
    result = await called(MCPServer.from_openapi(document(), client=api.client), "getOrder", {"id": 1})
    assert result["isError"]
    assert text_of(result).startswith("HTTP 404 Not Found: No such order.")
    assert len(text_of(result)) < 4100


async def test_an_api_that_does_not_answer_is_an_error_without_details() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("secret-host refused")

    result = await called(MCPServer.from_openapi(document(), client=API(refuse).client), "getOrder", {"id": 1})
    assert result["isError"]
    assert text_of(result) == "The API did not answer (ConnectError)."


@pytest.mark.parametrize(
    ("select", "names"),
    [
        (["orders"], ["listOrders", "placeOrder"]),
        (["DELETE"], ["deleteOrder"]),
        (["/orders/*"], ["getOrder", "deleteOrder"]),
        (["GET /orders", "delete /orders/{id}"], ["listOrders", "deleteOrder"]),
        (lambda operation: not operation.deprecated, ["listOrders", "placeOrder", "getOrder"]),
    ],
)
async def test_words_or_a_function_select_operations(select: Any, names: list[str]) -> None:
    mcp = MCPServer.from_openapi(document(), client=API().client, select=select)
    async with Client(mcp) as client:
        assert [tool["name"] for tool in await client.list_tools()] == names


async def test_names_are_short_and_differ() -> None:
    item = {"get": {"operationId": "same"}, "put": {"operationId": "SAME"}, "post": {"operationId": "x" * 99}}
    paths = {"/a": item, "/b": {"get": {"operationId": "x" * 99}, "put": {}}}
    mcp = MCPServer.from_openapi(document(paths=paths), client=API().client)
    async with Client(mcp) as client:
        names = [tool["name"] for tool in await client.list_tools()]
    assert names == ["same", "SAME_2", "x" * 64, "x" * 62 + "_2", "put_b"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"select": "orders"}, r"select=\['orders'\]"),
        ({"select": ["nothing"]}, r"no operation that is to be a tool: select= matches none of \d+\. Words .* 'GET /"),
        ({"names": {"nothing": "a"}}, "no such operation"),
        ({"names": {"getOrder": "a.b"}}, "not valid"),
        ({"names": lambda _: 5}, "not valid"),
        ({"base_url": "ftp://a.example"}, "base_url="),
        ({"base_url": "https://user:secret@a.example"}, r"user:\*\*\*@a.example"),
        ({"client": object()}, "httpx2.AsyncClient"),
        ({"client": httpx2.Client()}, "httpx2.AsyncClient"),
        ({"forward_headers": ["Authorization"]}, "a token for this server is not for the API"),
        ({"auth": 5}, "auth= is a token"),
        ({"prefix": "a"}, "Unknown option 'prefix'"),
    ],
)
def test_an_option_that_is_not_valid_is_explained(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        MCPServer.from_openapi(document(), **options)


def test_a_document_without_a_server_needs_a_url() -> None:
    with pytest.raises(RegistrationError, match="Pass base_url="):
        MCPServer.from_openapi(document(servers=[{"url": "/v1"}]))
    MCPServer.from_openapi(document(servers=[]), base_url="http://127.0.0.1:9/v1/")


async def test_the_url_of_the_author_comes_before_that_of_the_document() -> None:
    api = API()
    mcp = MCPServer.from_openapi(document(), client=api.client, base_url="https://b.example/x/")
    await called(mcp, "getOrder", {"id": 1})
    assert str(api.requests[0].url) == "https://b.example/x/orders/1"


async def test_the_url_of_a_client_comes_before_that_of_the_document() -> None:
    api = API()
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(api), base_url="https://c.example/y/")
    await called(MCPServer.from_openapi(document(), client=client), "getOrder", {"id": 1})
    assert str(api.requests[0].url) == "https://c.example/y/orders/1"


def fetched(monkeypatch: pytest.MonkeyPatch, members: dict[str, Any]) -> None:
    """Let every URL contain a document."""
    from funcmcp._adapters.openapi import document_source

    monkeypatch.setattr(document_source, "_fetched", lambda _: json.dumps(members).encode())


def test_a_fetched_document_that_names_another_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(monkeypatch, document(servers=[{"url": "http://169.254.169.254"}]))
    with pytest.raises(RegistrationError, match="is on another server than the document"):
        MCPServer.from_openapi("https://api.example/openapi.json", auth="token")


async def test_a_fetched_document_may_name_its_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(monkeypatch, document(servers=[{"url": "/v2"}]))
    api = API()
    mcp = MCPServer.from_openapi("https://api.example/openapi.json", client=api.client)
    await called(mcp, "getOrder", {"id": 1})
    assert str(api.requests[0].url) == "https://api.example/v2/orders/1"


async def test_an_operation_with_a_server_elsewhere_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    members = document()
    members["paths"]["/orders"]["post"]["servers"] = [{"url": "https://evil.example"}]
    mcp = MCPServer.from_openapi(members, client=API().client, base_url=ORIGIN)
    async with Client(mcp) as client:
        assert "placeOrder" not in [tool["name"] for tool in await client.list_tools()]
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "1 of 4 operations can't be tools: POST /orders is on another server" in record.getMessage()


async def test_a_part_of_a_document_that_is_not_valid_costs_one_operation(caplog: pytest.LogCaptureFixture) -> None:
    members = document()
    members["paths"]["/orders"]["get"]["parameters"] = [{"$ref": "https://evil.example/parameters.json"}]
    members["paths"]["/broken"] = 5
    mcp = MCPServer.from_openapi(members, client=API().client)
    async with Client(mcp) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["placeOrder", "getOrder", "deleteOrder"]
    assert "2 of 5 operations can't be tools" in caplog.text


async def test_a_schema_that_is_not_valid_costs_one_argument(caplog: pytest.LogCaptureFixture) -> None:
    members = document()
    members["components"]["schemas"]["Dish"] = {"allOf": [{"$ref": "#/components/schemas/Dish"}]}
    mcp = MCPServer.from_openapi(members, client=API().client)
    async with Client(mcp) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        properties = tools["placeOrder"]["inputSchema"]["properties"]
        assert properties == {"id": {"type": "integer", "description": "The number."}, "dish": {}}
        assert not (await client.call_tool("placeOrder", {"id": 1, "dish": "soup"})).get("isError")
    assert "Parts of the schemas of the tool placeOrder are not valid" in caplog.text


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, "x" * 1000 + " ..."),
        ("x" * 900 + ". " + "y" * 900, "x" * 900 + ". ..."),
        ("x" * 900 + "\n\n" + "y" * 900, "x" * 900 + " ..."),
    ],
)
async def test_a_long_description_is_shortened(description: str, shown: str) -> None:
    members = document(paths={"/a": {"get": {"description": description}}})
    async with Client(MCPServer.from_openapi(members, client=API().client)) as client:
        assert [tool["description"] for tool in await client.list_tools()] == [shown]


async def test_an_argument_can_not_add_a_key() -> None:
    parameters = [
        {"name": "filter", "in": "query", "schema": {"type": "object"}},
        {"name": "api_key", "in": "query", "required": True, "schema": {"type": "string"}},
    ]
    scheme = {"type": "apiKey", "in": "query", "name": "api_key"}
    members = document(
        paths={"/orders": {"get": {"operationId": "search", "parameters": parameters}}},
        components={"securitySchemes": {"key": scheme}},
    )
    api = API()
    mcp = MCPServer.from_openapi(members, client=api.client, auth="secret")
    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        assert list(tool["inputSchema"]["properties"]) == ["filter"]
        assert (await client.call_tool("search", {"filter": {"api_key": "mine"}}))["isError"]
        assert (await client.call_tool("search", {"api_key": "mine"}))["isError"]
        assert not api.requests
        await client.call_tool("search", {"filter": {"a": 1}})
    assert api.requests[0].url.query == b"a=1&api_key=secret"


async def test_a_document_that_multiplies_is_read_in_part() -> None:
    reference = {"$ref": "#/components/schemas/Bomb"}
    bomb = {
        "type": "object",
        "properties": {f"p{number}": reference for number in range(400)},
        "allOf": [reference] * 400,
        "items": reference,
        "additionalProperties": False,
        "enum": [f"a{number}" for number in range(400)],
    }
    body = {"required": True, "content": {"application/json": {"schema": reference}}}
    answer = {"200": {"content": {"application/json": {"schema": reference}}}}
    paths = {"/bombs": {"post": {"requestBody": body, "responses": answer}}}
    mcp = MCPServer.from_openapi(document(paths=paths, components={"schemas": {"Bomb": bomb}}), client=API().client)
    async with Client(mcp) as client:
        tools = await client.list_tools()
    assert len(json.dumps(tools)) < 500_000


async def test_nothing_of_the_caller_goes_along() -> None:
    api = API()
    mcp = MCPServer.from_openapi(document(), client=api.client, forward_headers=["X-Request-Id"])
    async with Client(mcp, headers={"x-request-id": "7", "authorization": "Bearer caller", "cookie": "a=b"}) as client:
        await client.call_tool("getOrder", {"id": 1})
    assert api.requests[0].headers["x-request-id"] == "7"
    assert "authorization" not in api.requests[0].headers
    assert "cookie" not in api.requests[0].headers


async def test_a_function_makes_a_token_for_the_caller() -> None:
    async def token(context: Context) -> str:
        return f"for-{context.arguments['id']}"

    api = API()
    mcp = MCPServer.from_openapi(document(), client=api.client, auth=token)
    await called(mcp, "getOrder", {"id": 1})
    assert api.requests[0].headers["authorization"] == "Bearer for-1"


async def test_cookies_of_the_api_do_not_reach_the_next_call() -> None:
    from funcmcp._adapters.openapi.api_client import new_client

    async with new_client() as client:
        request = httpx2.Request("GET", ORIGIN)
        client.cookies.extract_cookies(httpx2.Response(200, headers={"set-cookie": "session=a"}, request=request))
        assert not client.cookies


async def test_a_page_says_how_to_call_for_the_next_one() -> None:
    link = f'<{ORIGIN}/v1/orders?page=3>; rel="next", <{ORIGIN}/v1/orders?page=9>; rel="last"'
    api = API(lambda _: httpx2.Response(200, json=[1], headers={"link": link}))
    result = await called(MCPServer.from_openapi(document(), client=api.client), "listOrders", {"page": 2})
    assert [block["text"] for block in result["content"]] == [
        "[1]",
        "There are more results. Call listOrders again with page=3 and the other arguments unchanged.",
    ]
    assert len(api.requests) == 1


def test_a_client_is_made_for_each_event_loop_and_closed_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    from funcmcp._adapters.openapi import remote_tools

    made: list[httpx2.AsyncClient] = []

    def new_client(auth: Any = None) -> httpx2.AsyncClient:
        made.append(API().client)
        return made[-1]

    monkeypatch.setattr(remote_tools, "new_client", new_client)
    mcp = MCPServer.from_openapi(document())

    async def twice() -> None:
        async with mcp.lifespan(), Client(mcp) as client:
            await client.call_tool("getOrder", {"id": 1})
            await client.call_tool("getOrder", {"id": 2})

    asyncio.run(twice())
    asyncio.run(twice())
    assert len(made) == 2
    assert all(client.is_closed for client in made)


async def test_an_auth_flow_of_the_client_library_is_used() -> None:
    with pytest.raises(RegistrationError, match="can't both be given"):
        MCPServer.from_openapi(document(), client=API().client, auth=httpx2.BasicAuth("a", "b"))
    MCPServer.from_openapi(document(), auth=httpx2.BasicAuth("a", "b"))

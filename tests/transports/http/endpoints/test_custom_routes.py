"""Custom HTTP routes: what is answered, and who is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse

import funcmcp.azure
from funcmcp import HTTPOptions, Limits, MCPServer, RegistrationError
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import APIKeys
from funcmcp.http import Request, Response
from funcmcp.testing import Client, MemoryRequest

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse

pytestmark = pytest.mark.branches("Custom routes have rules of access.")

KEY = "a-key-of-16-characters"


async def send(mcp: MCPServer, method: str, path: str, body: bytes = b"", **headers: str) -> HttpResponse:
    fields = {"host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [(name.encode(), value.encode()) for name, value in fields.items()]
    return await runtime_of(mcp).exchange(MemoryRequest(method, path, lines, body))


def shop(**options: Any) -> MCPServer:
    mcp = MCPServer("shop", **options)

    @mcp.custom_route("/health", methods=["GET"], allow_anonymous=True)
    async def health() -> str:
        return "ok"

    @mcp.custom_route("/orders/{order_id}", methods=["GET", "DELETE"])
    def order(request: Request) -> dict[str, Any]:
        caller = None if request.principal is None else request.principal.subject
        return {"id": request.path_params["order_id"], "method": request.method, "caller": caller}

    @mcp.custom_route("/orders", methods=["POST"])
    async def add(request: Request) -> Response:
        return Response({"added": request.json()}, 201, {"Location": "/orders/1"})

    return mcp


async def test_texts_json_bytes_and_responses_are_sent() -> None:
    mcp = shop()
    response = await send(mcp, "GET", "/health")
    assert (response.status, response.headers, response.body) == (
        200,
        (("content-type", "text/plain; charset=utf-8"),),
        b"ok",
    )
    response = await send(mcp, "GET", "/orders/7")
    assert response.headers == (("content-type", "application/json"),)
    assert json.loads(response.body) == {"id": "7", "method": "GET", "caller": None}  # type: ignore[arg-type]
    response = await send(mcp, "POST", "/orders", b'{"item": "bread"}')
    assert (response.status, response.body) == (201, b'{"added":{"item":"bread"}}')
    assert ("location", "/orders/1") in response.headers


async def test_bytes_and_none_are_sent() -> None:
    mcp = MCPServer("shop")
    mcp.custom_route("/bytes")(lambda: b"\x00")
    mcp.custom_route("/none", ["POST"])(lambda _request: None)
    response = await send(mcp, "GET", "/bytes")
    assert (response.headers, response.body) == ((("content-type", "application/octet-stream"),), b"\x00")
    response = await send(mcp, "POST", "/none")
    assert (response.status, response.headers, response.body) == (204, (), b"")


async def test_a_function_reads_the_request() -> None:
    mcp = MCPServer("shop")
    requests: list[Request] = []

    @mcp.custom_route("/echo", ["PUT"])
    async def echo(request: Request) -> str:
        requests.append(request)
        return request.text()

    response = await send(mcp, "PUT", "/echo", "grüße".encode(), cookie="a=1", x_y="z")
    assert response.body == "grüße".encode()
    [request] = requests
    assert (request.path, request.url, request.headers["X-Y"]) == ("/echo", "http://127.0.0.1/echo", "z")
    assert (request.query_params, request.cookies, request.client) == ({}, {"a": "1"}, None)


async def test_the_endpoint_and_unknown_paths_are_served_as_before() -> None:
    mcp = shop()

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    async with Client(mcp) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    assert (await send(mcp, "GET", "/nothing")).status == 404
    assert (await send(mcp, "GET", "/orders/1/2")).status == 404


class Sent(MemoryRequest):
    """A request whose platform passes on the path as the client has sent it."""

    def __init__(self, raw_path: str) -> None:
        super().__init__("GET", unquote(raw_path), [(b"host", b"127.0.0.1")], b"")
        self.sent = raw_path

    @property
    def raw_path(self) -> str:
        return self.sent


def files() -> MCPServer:
    mcp = MCPServer("files")

    @mcp.custom_route("/files/{name}")
    def one(request: Request) -> list[str]:
        return ["one", request.path_params["name"]]

    @mcp.custom_route("/files/{folder}/{name}")
    def two(request: Request) -> list[str]:
        return ["two", request.path_params["folder"], request.path_params["name"]]

    return mcp


@pytest.mark.parametrize(
    ("raw_path", "values"),
    [
        ("/files/a", ["one", "a"]),
        ("/%66iles/a%20b", ["one", "a b"]),
        ("/files/a%2Fb", ["one", "a/b"]),
        ("/files/a%2fb", ["one", "a/b"]),
        ("/files/a%252Fb", ["one", "a%2Fb"]),
        ("/files/a/b%2Fc", ["two", "a", "b/c"]),
        ("/files/..a", ["one", "..a"]),
        ("/files/gr%C3%BC%C3%9Fe", ["one", "grüße"]),
    ],
)
async def test_a_path_is_split_before_its_segments_are_decoded(raw_path: str, values: list[str]) -> None:
    response = await runtime_of(files()).exchange(Sent(raw_path))
    assert (response.status, json.loads(response.body)) == (200, values)  # type: ignore[arg-type]


@pytest.mark.parametrize("raw_path", ["/files%2Fa", "/files%2Fa%2Fb", "/files/a%2Fb/c/d"])
async def test_an_encoded_slash_separates_no_segments(raw_path: str) -> None:
    assert (await runtime_of(files()).exchange(Sent(raw_path))).status == 404


UNSAFE = [
    *(".", "..", "%2E", "%2e%2e", "a%2F..", "..%2Fa", "a%2F.%2Fb", "%2Fetc%2Fpasswd"),
    *("..%5Ca", "a%5Cb", "C:%2Fa", "a%00b", "a%0Ab", "a%7Fb", "a%C2%85b", "a%E2%80%A8b"),
]


@pytest.mark.parametrize("segment", UNSAFE)
@pytest.mark.parametrize("begin", ["/files/", "/files/a/"])
async def test_a_segment_that_may_leave_a_folder_or_a_line_is_refused(begin: str, segment: str) -> None:
    response = await runtime_of(files()).exchange(Sent(begin + segment))
    assert response.status == 400
    assert json.loads(response.body)["error"]["message"].startswith("The path has a segment")  # type: ignore[arg-type]


async def test_another_method_is_405_with_the_valid_ones() -> None:
    response = await send(shop(), "PUT", "/orders/7")
    assert (response.status, dict(response.headers)["allow"]) == (405, "GET, HEAD, DELETE")
    assert (await send(shop(), "HEAD", "/health")).status == 200


async def test_the_host_the_origin_and_the_size_are_checked_as_for_the_endpoint() -> None:
    mcp = shop(limits=Limits(message_bytes=1024))
    assert (await send(mcp, "GET", "/health", host="evil.example.com")).status == 421
    assert (await send(mcp, "GET", "/health", origin="https://evil.example.com")).status == 403
    assert (await send(mcp, "POST", "/orders", b"[" + b"1," * 1024)).status == 413


async def test_a_page_of_an_allowed_origin_may_call_a_route() -> None:
    mcp = shop(http=HTTPOptions(allowed_origins=["https://app.example.com"]))
    response = await send(mcp, "GET", "/health", origin="https://app.example.com")
    assert dict(response.headers)["access-control-allow-origin"] == "https://app.example.com"


async def test_with_auth_a_route_needs_credentials_unless_it_is_open() -> None:
    mcp = shop(auth=APIKeys({"ada": KEY}))
    assert (await send(mcp, "GET", "/health")).status == 200
    refused = await send(mcp, "GET", "/orders/7")
    assert refused.status == 401
    assert "www-authenticate" in dict(refused.headers)
    assert (await send(mcp, "GET", "/orders/7", x_api_key="another-key-of-16-chars")).status == 401
    assert (await send(mcp, "PUT", "/orders/7")).status == 405
    response = await send(mcp, "GET", "/orders/7", x_api_key=KEY)
    assert json.loads(response.body)["caller"] == "ada"  # type: ignore[arg-type]
    assert dict(response.headers)["cache-control"] == "no-store"


async def test_an_open_tool_does_not_open_a_route() -> None:
    mcp = shop(auth=APIKeys({"ada": KEY}))
    mcp.tool(allow_anonymous=True)(add)
    assert (await send(mcp, "GET", "/orders/7")).status == 401


def add(a: int, b: int) -> int:
    return a + b


async def test_scopes_of_a_route_are_checked() -> None:
    mcp = MCPServer("shop", auth=APIKeys({"ada": KEY, "eve": f"{KEY}-2"}, scopes={"ada": ["admin"]}))
    mcp.custom_route("/clear", ["POST"], scopes=["admin"])(lambda: "cleared")
    assert (await send(mcp, "POST", "/clear", x_api_key=f"{KEY}-2")).status == 403
    assert (await send(mcp, "POST", "/clear", x_api_key=KEY)).body == b"cleared"


async def test_an_author_sets_the_caching_of_a_route() -> None:
    mcp = MCPServer("shop", auth=APIKeys({"ada": KEY}))
    mcp.custom_route("/logo")(lambda: Response(b"png", headers=[("Cache-Control", "max-age=60")]))
    response = await send(mcp, "GET", "/logo", x_api_key=KEY)
    assert ("cache-control", "max-age=60") in response.headers


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Response("x", 99),
        Response("x", True),
        Response("x", headers={"a": "b\r\nset-cookie: c"}),
        Response("x", headers={"a b": "c"}),
        Response("x", headers={"a": "\u0142"}),
        Response("x", status=100),
        Response("x", status=99999),
        Response("x", status=True),
    ],
)
async def test_a_failure_is_500_with_an_error_id(value: object, caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")
    mcp.custom_route("/broken")(lambda: value)
    response = await send(mcp, "GET", "/broken")
    assert response.status == 500
    assert "feature=GET /broken" in caplog.text
    assert b"set-cookie" not in response.body  # type: ignore[operator]


@pytest.mark.parametrize("status", [204, 205, 304])
async def test_a_body_is_left_out_where_the_status_allows_none(status: int) -> None:
    mcp = MCPServer("shop")
    mcp.custom_route("/none")(lambda: Response("a body", status=status))
    assert (await send(mcp, "GET", "/none")).body == b""


async def test_a_group_that_a_route_raises_is_logged_with_its_members(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")

    @mcp.custom_route("/broken")
    async def broken() -> None:
        raise BaseExceptionGroup("g", [ConnectionError("refused"), KeyboardInterrupt()])

    response = await send(mcp, "GET", "/broken")
    assert response.status == 500
    assert b"refused" not in response.body  # type: ignore[operator]
    [record] = caplog.records
    assert (record.__dict__["feature"], record.__dict__["method"]) == ("GET /broken", "GET")
    assert record.__dict__["error_id"].encode() in response.body  # type: ignore[operator]
    assert record.exc_text is not None
    assert "    | ConnectionError: refused" in record.exc_text


async def test_a_function_that_takes_too_long_is_cancelled() -> None:
    import asyncio

    mcp = MCPServer("shop")

    @mcp.custom_route("/slow", timeout=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    assert (await send(mcp, "GET", "/slow")).status == 500


async def test_more_requests_than_the_server_may_have_are_refused() -> None:
    mcp = shop(limits=Limits(requests=1))

    @mcp.custom_route("/nested")
    async def nested() -> int:
        return (await send(mcp, "GET", "/health")).status

    assert (await send(mcp, "GET", "/nested")).body == b"503"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/events", "/ws"])
def test_the_paths_of_endpoints_are_taken(path: str) -> None:
    mcp = MCPServer("shop", http=HTTPOptions(sse="/events", websocket="/ws"))
    with pytest.raises(ValueError, match=f"The server has an endpoint at '{path}'"):
        mcp.custom_route(path)(lambda: "")


@pytest.mark.parametrize(("path", "taken"), [("/health", "GET, HEAD"), ("/orders/{id}", "DELETE")])
def test_a_path_has_one_route_for_a_method(path: str, taken: str) -> None:
    methods = ["DELETE"] if taken == "DELETE" else ["GET"]
    with pytest.raises(ValueError, match=f"has a route for {taken} already"):
        shop().custom_route(path, methods)(lambda: "")


@pytest.mark.parametrize("path", ["health", "", None, "/{a", "/a}", "/{a}/{a}", "/{1}", "/a{b}"])
def test_a_malformed_path_is_refused(path: Any) -> None:
    with pytest.raises(ValueError, match="The path"):
        MCPServer("shop").custom_route(path)


@pytest.mark.parametrize("methods", ["GET", [], ["TRACE"], ["OPTIONS"], 5])
def test_invalid_methods_are_refused(methods: Any) -> None:
    with pytest.raises(ValueError, match=r"methods must be a list|Custom routes have no method"):
        MCPServer("shop").custom_route("/health", methods)


def test_the_error_for_options_says_who_answers_preflight_requests() -> None:
    with pytest.raises(ValueError, match=r"Leave it out: the server answers the preflight requests"):
        MCPServer("shop").custom_route("/health", ["GET", "OPTIONS"])


@pytest.mark.parametrize("kind", [StarletteRequest, PlainTextResponse, "StarletteRequest", "PlainTextResponse"])
@pytest.mark.parametrize("name", ["request", "return"])
def test_a_function_that_is_written_for_starlette_is_refused_with_what_to_write(kind: Any, name: str) -> None:
    def answer(request: object) -> object:
        return request

    answer.__annotations__ = {name: kind}
    with pytest.raises(
        TypeError,
        match=r"can't use starlette\.re\w+\.(Request|PlainTextResponse)\. It gets a funcmcp\.http\.Request and returns "
        r"a funcmcp\.http\.Response, text, bytes, a JSON value or None\. Routes of funcmcp\.compat\.FastMCP have",
    ):
        MCPServer("shop").custom_route("/health")(answer)


async def test_the_log_says_what_a_route_may_return(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")
    mcp.custom_route("/health")(lambda: PlainTextResponse("ok"))
    assert (await send(mcp, "GET", "/health")).status == 500
    assert "A custom route can't return starlette.responses.PlainTextResponse: " in caplog.text
    assert "Return a funcmcp.http.Response, text, bytes, a JSON value or None." in caplog.text


def test_invalid_functions_and_access_are_refused() -> None:
    mcp = MCPServer("shop")
    with pytest.raises(TypeError, match="takes one argument, the request, not 2"):
        mcp.custom_route("/health")(lambda a, b: "")
    with pytest.raises(TypeError, match="needs a function, not str"):
        mcp.custom_route("/health")("ok")  # type: ignore[type-var]
    with pytest.raises(RegistrationError, match="allow_anonymous of /health must be True or False"):
        mcp.custom_route("/health", allow_anonymous=1)  # type: ignore[arg-type]


def test_http_sse_can_not_be_opened_at_the_path_of_a_route() -> None:
    mcp = MCPServer("shop")
    mcp.custom_route("/sse")(lambda: "")
    with pytest.raises(ValueError, match="A custom route has the path '/sse'"):
        runtime_of(mcp).open_sse()


async def test_a_function_app_serves_the_routes() -> None:
    func = pytest.importorskip("azure.functions")
    mcp = shop()
    app: Any = funcmcp.azure.http_app(mcp)
    functions = {function.get_function_name(): function for function in app.get_functions()}
    triggers = {name: function.get_trigger() for name, function in functions.items()}
    assert {
        name: (trigger.route, trigger.auth_level.value) for name, trigger in triggers.items() if "_route" in name
    } == {
        "mcp_route_1": ("health", "anonymous"),
        "mcp_route_2": ("orders/{order_id}", "function"),
        "mcp_route_3": ("orders", "function"),
    }
    for segment, value in (("7", "7"), ("7%2F8", "7/8")):
        url = f"http://localhost:7071/api/orders/{segment}"
        request = func.HttpRequest("GET", url, headers={"host": "localhost:7071"}, params={}, body=b"")
        response = await functions["mcp_route_2"].get_user_function()(request)
        assert (response.status_code, json.loads(response.get_body())["id"]) == (200, value)
    with pytest.raises(RuntimeError, match=r"funcmcp\.azure\.http_app has registered the server's routes already"):
        mcp.custom_route("/late")(lambda: "")


@pytest.mark.parametrize("path", ["/other", "/admin/clear"])
def test_a_function_app_refuses_a_route_that_it_can_not_serve(path: str) -> None:
    func = pytest.importorskip("azure.functions")
    app: Any = func.FunctionApp()
    mcp = MCPServer("shop")
    mcp.custom_route(path)(lambda: "")

    @app.route(route="other")  # type: ignore[untyped-decorator] # as Any
    def other(req: Any) -> Any:
        return func.HttpResponse("")

    with pytest.raises(ValueError, match=r"already|routes of its own"):
        funcmcp.azure.http_app(mcp, app=app)


def test_mcp_triggers_refuse_custom_routes() -> None:
    pytest.importorskip("azure.functions")
    mcp = shop()
    mcp.tool(add)
    with pytest.raises(RegistrationError, match="can't serve the custom route /health"):
        funcmcp.azure.trigger_app(mcp)

"""HTTP functions of an Azure function app as tools, with the real azure-functions."""

from __future__ import annotations

import functools
import json
import threading
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import azure.functions as func
import pytest
from pydantic import BaseModel, Field

import funcmcp.azure
from funcmcp import MCPServer, RegistrationError, ToolError
from funcmcp._adapters.azure.http_function_tools import path_of
from funcmcp._adapters.azure.route_templates import segments_of
from funcmcp.testing import Client
from tests.schemas import validate_as

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]

JSON = "application/json"


class NewOrder(BaseModel):
    dish: str
    count: Annotated[int, Field(ge=1)] = 1


@dataclass
class Change:
    id: int
    dish: str


def seen(req: func.HttpRequest) -> func.HttpResponse:
    """Answer with all that a request says."""
    told = {
        "method": req.method,
        "url": req.url,
        "headers": dict(req.headers),
        "params": dict(req.params),
        "route": dict(req.route_params),
        "body": req.get_body().decode(),
    }
    return func.HttpResponse(json.dumps(told), mimetype=JSON)


def orders() -> func.FunctionApp:
    app = func.FunctionApp()

    @app.route("orders/{id:int:min(1)}", methods=["GET"])
    def get_order(req: func.HttpRequest) -> func.HttpResponse:
        """Return an order.

        With all of its lines.
        """
        if req.route_params["id"] == "404":
            return func.HttpResponse("There is no order 404.", status_code=404)
        return seen(req)

    @app.route("orders", methods=["GET", "POST"])
    async def order(req: func.HttpRequest) -> func.HttpResponse:
        return seen(req)

    @app.function_name("ChangeOrder")
    @app.route("orders/{id:int}/change", methods=[func.HttpMethod.PUT], trigger_arg_name="request")
    def change(request: func.HttpRequest) -> func.HttpResponse:
        return seen(request)

    @app.route()
    def plain(req: func.HttpRequest) -> str:
        return threading.current_thread().name

    @app.route("files/{*path}")
    def files(req: func.HttpRequest) -> func.HttpResponse:
        return seen(req)

    @app.route("other")
    def other(req: func.HttpRequest) -> int:
        return 17

    @app.timer_trigger("timer", schedule="0 0 * * * *")
    def nightly(timer: func.TimerRequest) -> None:
        return None

    @app.route("bound")
    @app.blob_input("blob", path="a/b", connection="c")
    def bound(req: func.HttpRequest, blob: str, context: func.Context) -> str:
        return blob

    return app


async def tool(function: str, app: func.FunctionApp | None = None, **options: Any) -> dict[str, Any]:
    """Return the definition of the tool that is made of a function."""
    mcp = MCPServer("Tools")
    funcmcp.azure.tool_from_http_function(mcp, app or orders(), function, **options)
    async with Client(mcp) as client:
        (listed,) = await client.list_tools()
    validate_as(listed, "2026-07-28", "Tool")
    return listed


async def result(
    function: str,
    arguments: dict[str, Any],
    *,
    app: func.FunctionApp | None = None,
    headers: dict[str, str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    mcp = MCPServer("Tools")
    funcmcp.azure.tool_from_http_function(mcp, app or orders(), function, **options)
    async with Client(mcp, headers=headers) as client:
        (listed,) = await client.list_tools()
        return await client.call_tool(listed["name"], arguments)


def text(found: dict[str, Any]) -> str:
    return "".join(block["text"] for block in found["content"])


async def test_a_tool_has_the_functions_name_its_docstring_and_the_variables_of_its_route() -> None:
    assert await tool("get_order") == {
        "name": "get_order",
        "title": "Get Order",
        "description": "Return an order.\n\nWith all of its lines.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}, "required": ["id"]},
        "annotations": {"readOnlyHint": True},
    }


async def test_options_say_what_any_tool_s_do() -> None:
    output = {"type": "object", "properties": {"method": {"type": "string"}}}
    options: dict[str, Any] = {"name": "order", "title": "Orders", "description": "All of it.", "read_only": False}
    listed = await tool("get_order", output_schema=output, **options)
    assert (listed["name"], listed["title"], listed["description"]) == ("order", "Orders", "All of it.")
    assert (listed["outputSchema"], listed["annotations"]["readOnlyHint"]) == (output, False)


async def test_a_name_is_in_snake_case_and_no_method_but_get_promises_anything() -> None:
    listed = await tool("ChangeOrder")
    assert (listed["name"], "annotations" in listed) == ("change_order", False)


async def test_the_function_gets_the_request_that_the_host_would_make() -> None:
    found = await result("get_order", {"id": 5.0, "tags": ["a", "b c"], "since": "2026-07-28"}, query=QUERY)
    assert found["structuredContent"] == {
        "method": "GET",
        "url": "http://localhost:7071/api/orders/5?tags=a%2Cb%20c&since=2026-07-28",
        "headers": {"host": "localhost:7071"},
        "params": {"tags": "a,b c", "since": "2026-07-28"},
        "route": {"id": "5"},
        "body": "",
    }


QUERY = {"tags": list[str], "since": date | None, "limit": Annotated[int, Field(default=10, le=100)]}


async def test_query_parameters_are_listed_and_checked_by_their_types() -> None:
    schema = (await tool("get_order", query=QUERY))["inputSchema"]
    assert schema["required"] == ["id", "tags"]
    assert schema["properties"]["limit"] == {"type": "integer", "maximum": 100, "default": 10}
    found = await result("get_order", {"id": 0, "tags": [1], "limit": 101}, query=QUERY)
    assert text(found).splitlines() == [
        "id: must be at least 1",
        "tags[0]: must be a string, not a number",
        "limit: must be at most 100",
    ]


async def test_the_fields_of_a_body_are_arguments_and_arrive_as_they_came() -> None:
    listed = await tool("order", body=NewOrder)
    assert list(listed["inputSchema"]["properties"]) == ["dish", "count"]
    told = (await result("order", {"dish": "soup"}, body=NewOrder))["structuredContent"]
    assert (told["method"], told["body"]) == ("POST", '{"dish":"soup"}')
    assert told["headers"]["content-type"] == JSON
    assert told["headers"]["content-length"] == str(len(told["body"]))
    assert text(await result("order", {"dish": "soup", "count": 0}, body=NewOrder)) == "count: must be at least 1"
    refused = await result("order", {"dish": "soup", "unknown": 1}, body=NewOrder)
    assert (refused["isError"], text(refused)) == (True, "unknown: is not an argument")


async def test_a_body_with_a_field_that_is_named_like_a_variable_is_an_argument_of_its_own() -> None:
    listed = await tool("ChangeOrder", body=Change)
    assert list(listed["inputSchema"]["properties"]) == ["id", "body"]
    told = (await result("ChangeOrder", {"id": 1, "body": {"id": 2, "dish": "soup"}}, body=Change))["structuredContent"]
    assert (told["url"], told["body"]) == ("http://localhost:7071/api/orders/1/change", '{"id":2,"dish":"soup"}')


async def test_a_body_that_is_no_model_is_an_argument_of_its_own() -> None:
    told = (await result("order", {"body": [1, 2]}, body=list[int]))["structuredContent"]
    assert (told["method"], told["body"]) == ("POST", "[1,2]")


async def test_a_method_is_chosen_by_the_author_or_by_the_body() -> None:
    assert (await result("order", {}))["structuredContent"]["method"] == "GET"
    assert (await result("order", {}, method="post"))["structuredContent"]["method"] == "POST"


async def test_the_app_s_own_name_and_prefix_stand_in_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBSITE_HOSTNAME", "orders.azurewebsites.net")
    monkeypatch.setenv("AzureFunctionsJobHost__extensions__http__routePrefix", "")
    told = (await result("get_order", {"id": 1}))["structuredContent"]
    assert told["url"] == "https://orders.azurewebsites.net/orders/1"


async def test_an_error_of_the_function_is_an_error_with_its_text() -> None:
    found = await result("get_order", {"id": 404})
    assert (found["isError"], text(found)) == (True, "HTTP 404 Not Found: There is no order 404.")


async def test_a_plain_function_runs_in_a_thread_and_may_return_a_text() -> None:
    assert text(await result("plain", {})) == "funcmcp-tool"


async def test_what_is_no_response_is_an_error() -> None:
    found = await result("other", {})
    assert found["isError"]
    assert "error id" in text(found)


async def test_headers_of_the_caller_go_along_only_if_the_author_names_them() -> None:
    headers = {"x-ms-client-principal": "me", "authorization": "Bearer secret"}
    told = await result("get_order", {"id": 1}, headers=headers, forward_headers=["X-MS-Client-Principal"])
    assert told["structuredContent"]["headers"] == {"host": "localhost:7071", "x-ms-client-principal": "me"}
    told = await result("get_order", {"id": 1}, headers=headers)
    assert told["structuredContent"]["headers"] == {"host": "localhost:7071"}


async def test_no_argument_becomes_a_header() -> None:
    for others in ({"x-ms-client-principal": "admin"}, {"x_ms_client_principal": "admin"}, {"headers": {"a": "b"}}):
        assert (await result("get_order", {"id": 1, **others}))["isError"]
    call_result = await result("get_order", {"id": 1})
    assert call_result["structuredContent"]["headers"] == {"host": "localhost:7071"}


@pytest.mark.parametrize(
    ("path", "url"), [("a/b c.txt", "files/a/b%20c.txt"), ("50%25", "files/50%2525"), ("a?b#c", "files/a%3Fb%23c")]
)
async def test_the_rest_of_a_path_may_have_segments(path: str, url: str) -> None:
    told = (await result("files", {"path": path}))["structuredContent"]
    assert (told["url"], told["route"]) == (f"http://localhost:7071/api/{url}", {"path": path})


@pytest.mark.parametrize("path", ["../keys", "a/../../keys", "a//b", "/a", "a\\b", ".", "%2e%2e"])
async def test_a_value_that_would_leave_the_route_is_refused(path: str) -> None:
    found = await result("files", {"path": path})
    assert (found["isError"], text(found)[:5]) == (True, "path:")


async def test_the_app_can_be_indexed_afterwards_by_the_worker() -> None:
    app = orders()
    await tool("get_order", app)
    await tool("order", app)
    assert len(app.get_functions()) == 8


def typed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a typed function with what a request has, as decorators of some projects do."""

    @functools.wraps(function)
    def call(req: func.HttpRequest) -> func.HttpResponse:
        values = {**req.route_params, **req.params}
        return func.HttpResponse(json.dumps(function(order=req.get_json(), **values)), mimetype=JSON)

    return call


async def test_a_typed_function_inside_of_a_decorator_says_query_and_body_itself() -> None:
    app = func.FunctionApp()

    @app.route("tables/{table:int}", methods=["POST"])
    @typed
    def serve(table: int, order: NewOrder, *, waiter: str, tip: int = 0) -> Any:
        """Serve."""
        return {"table": table, "order": order, "waiter": waiter, "tip": tip}

    schema = (await tool("serve", app))["inputSchema"]
    assert list(schema["properties"]) == ["table", "waiter", "tip", "dish", "count"]
    assert schema["required"] == ["table", "waiter", "dish"]
    found = await result("serve", {"table": 1, "waiter": "Ada", "dish": "soup"}, app=app)
    assert found["structuredContent"] == {"table": "1", "order": {"dish": "soup"}, "waiter": "Ada", "tip": 0}


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("nothing", {}, "no function 'nothing'; it has get_order, order"),
        ("nightly", {}, "nightly has no HTTP trigger"),
        ("bound", {}, "bound takes blob, context, which only the Functions host can give"),
        ("get_order", {"query": {"id": int}}, "get_order has id in its route and in query="),
        ("get_order", {"method": "POST"}, "get_order has no method POST; it has GET"),
        ("get_order", {"input_schema": {"type": "object"}}, "takes query= and body="),
        ("get_order", {"querry": {}}, "Unknown option .querry."),
        ("order", {"query": {"body": str}, "body": list[int]}, "an argument named 'body' beside its body"),
    ],
)
def test_what_can_not_be_a_tool_is_refused_in_words(function: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        funcmcp.azure.tool_from_http_function(MCPServer("Tools"), orders(), function, **options)


def test_a_function_with_several_methods_of_which_none_fits_needs_a_choice() -> None:
    app = func.FunctionApp()
    app.route("x", methods=["PUT", "PATCH"])(lambda req: "x")
    with pytest.raises(RegistrationError, match="choose one with method="):
        funcmcp.azure.tool_from_http_function(MCPServer("Tools"), app, "<lambda>", name="x")


def test_a_blueprint_is_refused_in_words() -> None:
    with pytest.raises(RegistrationError, match="Give the FunctionApp that x is in, not Blueprint"):
        funcmcp.azure.tool_from_http_function(MCPServer("Tools"), func.Blueprint(), "x")  # type: ignore[arg-type, no-untyped-call]


@pytest.mark.parametrize(
    ("route", "schema"),
    [
        ("{a}", {"type": "string"}),
        ("{a:alpha}", {"type": "string", "pattern": "^[A-Za-z]*$"}),
        ("{a:bool}", {"type": "boolean"}),
        ("{a:datetime}", {"type": "string", "format": "date-time"}),
        ("{a:decimal}", {"type": "number"}),
        ("{a:guid}", {"type": "string", "format": "uuid"}),
        ("{a:long:range(1,9)}", {"type": "integer", "minimum": 1, "maximum": 9}),
        ("{a:int:max(9)}", {"type": "integer", "maximum": 9}),
        ("{a:length(3)}", {"type": "string", "minLength": 3, "maxLength": 3}),
        ("{a:length(3,5)}", {"type": "string", "minLength": 3, "maxLength": 5}),
        ("{a:minlength(3):maxlength(5)}", {"type": "string", "minLength": 3, "maxLength": 5}),
        (r"{a:regex(^\d{{3}}(-\d)$)}", {"type": "string", "pattern": r"^\d{3}(-\d)$"}),
        ("{a:regex(^a=b$)}", {"type": "string", "pattern": "^a=b$"}),
        ("{a:required}", {"type": "string"}),
    ],
)
async def test_constraints_of_a_route_are_in_the_schema(route: str, schema: dict[str, Any]) -> None:
    app = func.FunctionApp()
    app.route(route, methods=["GET"])(seen)
    listed = (await tool("seen", app))["inputSchema"]
    assert listed["required"] == ["a"]
    assert listed["properties"]["a"].items() >= schema.items()


@pytest.mark.parametrize(
    ("route", "values", "path", "found"),
    [
        ("a/{b?}", {}, "a", {}),
        ("a/{b?}", {"b": None}, "a", {}),
        ("a/{b:int?}", {"b": 1}, "a/1", {"b": "1"}),
        ("a/{b=x y}", {}, "a/x%20y", {"b": "x y"}),
        ("a/{b:int=3}/c", {}, "a/3/c", {"b": "3"}),
        ("a/{*rest}", {}, "a", {}),
        ("a/{**rest}", {"rest": "b/c"}, "a/b/c", {"rest": "b/c"}),
        ("grüße/{b}", {"b": "ü"}, "gr%C3%BC%C3%9Fe/%C3%BC", {"b": "ü"}),
        ("{a}.{b}", {"a": "x", "b": "{a}"}, "x.%7Ba%7D", {"a": "x", "b": "{a}"}),
        ("files/{name}.{ext?}", {"name": "a"}, "files/a", {"name": "a"}),
        ("a/{{b}}", {}, "a/%7Bb%7D", {}),
    ],
)
def test_values_make_the_path_of_a_route(route: str, values: dict[str, Any], path: str, found: dict[str, str]) -> None:
    assert path_of(segments_of(route), values) == (path, found)


@pytest.mark.parametrize("value", ["a/b", "..", ".", "", "\n"])
def test_a_variable_is_one_segment(value: str) -> None:
    with pytest.raises(ToolError):
        path_of(segments_of("a/{b}"), {"b": value})


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ("{a:min(}", "has a constraint that can't be read"),
        ("{a:min(x)}", "constraint min\\(x\\) can't be read"),
        ("{a}{b}", "^seen: The route has no text between 'b' and the variable before it"),
        ("a/{b", "^seen: .* has a brace without its counterpart"),
        ("{order-id}", "'order-id' can't be the name of an argument"),
        ("{class}", "'class' can't be the name of an argument"),
    ],
)
async def test_a_route_that_can_not_be_called_is_refused(route: str, reason: str) -> None:
    app = func.FunctionApp()
    app.route(route, methods=["GET"])(seen)
    with pytest.raises(RegistrationError, match=reason):
        await tool("seen", app)


async def test_a_function_runs_as_a_task_without_the_headers_of_the_call() -> None:
    mcp = MCPServer("Tools")
    funcmcp.azure.tool_from_http_function(mcp, orders(), "get_order", task="optional")
    states: list[str] = []
    async with Client(
        mcp, headers={"x-ms-client-principal": "me"}, on_task=lambda task: states.append(task["status"])
    ) as client:
        told = await client.call_tool("get_order", {"id": 5})
    assert states[-1] == "completed"
    assert told["structuredContent"]["headers"] == {"host": "localhost:7071"}


def test_a_task_can_not_repeat_headers() -> None:
    mcp = MCPServer("Tools")
    with pytest.raises(RegistrationError, match="get_order can't have both task= and forward_headers="):
        funcmcp.azure.tool_from_http_function(
            mcp, orders(), "get_order", task="optional", forward_headers=["x-ms-client-principal"]
        )


async def test_bound_arguments_are_neither_bindings_nor_arguments() -> None:
    def order(req: func.HttpRequest, api_key: str) -> func.HttpResponse:
        """Return an order."""
        return func.HttpResponse(f"{req.route_params['id']} {api_key}")

    def typed(id: int, table: str, api_key: str) -> str:
        return f"{id} {table} {api_key}"

    bound = functools.partial(typed, api_key="sk-1")

    @functools.wraps(bound)
    def decorated(req: func.HttpRequest) -> str:
        return bound(int(req.route_params["id"]), req.params["table"])

    app = func.FunctionApp()
    partials: dict[str, Any] = {"order": functools.partial(order, api_key="sk-1")}
    partials["updated"] = functools.update_wrapper(functools.partial(order, api_key="sk-1"), order)
    partials["order"].__name__ = "order"  # azure-functions reads it
    for name, code in partials.items():
        app.function_name(name)(app.route(name + "/{id:int}")(code))
    app.function_name("decorated")(app.route("decorated/{id:int}")(decorated))

    for name in partials:
        listed = await tool(name, app)
        assert listed["description"] == "Return an order."
        assert list(listed["inputSchema"]["properties"]) == ["id"]
        assert text(await result(name, {"id": 1, "api_key": "stolen"}, app=app)) == "api_key: is not an argument"
        assert text(await result(name, {"id": 1}, app=app)) == "1 sk-1"
    listed = await tool("decorated", app)
    assert sorted(listed["inputSchema"]["properties"]) == ["id", "table"]
    assert "sk-1" not in json.dumps(listed)
    assert text(await result("decorated", {"id": 1, "table": "T"}, app=app)) == "1 T sk-1"

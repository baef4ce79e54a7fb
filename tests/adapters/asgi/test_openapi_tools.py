"""Routes of FastAPI and Starlette applications as tools, called in this process."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from fastapi import BackgroundTasks, Cookie, FastAPI, Form, Header, HTTPException, Query, Request, UploadFile
from fastapi.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from funcmcp import MCPServer, RegistrationError
from funcmcp._adapters.asgi import in_process_calls as asgi_calls
from funcmcp._serving.composition import runtime_of
from funcmcp.testing import Client
from tests.schemas import validate_as

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp._authoring.openapi.operations import Operation


class Line(BaseModel):
    dish: str
    count: Annotated[int, Field(ge=1)] = 1


class Order(BaseModel):
    table: int
    lines: list[Line]
    note: str | None = None


class Category(BaseModel):
    name: str
    children: list[Category] = []


def restaurant() -> FastAPI:
    """Return an application with an operation of each kind."""
    app = FastAPI(generate_unique_id_function=lambda route: route.name)

    @app.get("/orders/{table}", tags=["orders"])
    def get_order(
        table: int,
        only: Annotated[list[str], Query()] = [],  # noqa: B006 - as FastAPI wants it
        limit: Annotated[int, Query(description="How many lines")] = 10,
        x_trace: Annotated[str | None, Header()] = None,
    ) -> dict[str, Any]:
        """Return what a table has ordered."""
        if table == 13:
            raise HTTPException(404, "There is no table 13.")
        return {"table": table, "only": only, "limit": limit, "trace": x_trace}

    @app.post("/orders", tags=["orders"], summary="Order", status_code=201)
    async def place_order(order: Order) -> Order:
        return order

    @app.put("/orders/{table}", tags=["orders"])
    async def change_order(table: int, order: Order) -> list[int]:
        return [table, order.table]

    @app.delete("/orders/{table}", tags=["orders"], status_code=204)
    async def cancel_order(table: int) -> None:
        return None

    @app.get("/dishes/{dish}", tags=["menu"])
    async def get_dish(dish: str) -> str:
        return dish

    @app.post("/dishes/{dish}/remove", tags=["menu"])
    async def remove_dish(dish: str) -> str:
        return f"removed {dish}"

    @app.post("/categories", tags=["menu"])
    async def add_category(category: Category) -> Category:
        return category

    @app.get("/old", deprecated=True)
    async def old() -> str:
        return "old"

    return app


async def results(
    app: Any, calls: list[tuple[str, dict[str, Any]]], *, headers: dict[str, str] | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Make tools of an application, call them, and return what they answered."""
    mcp = MCPServer("Tools")
    mcp.tools_from_asgi(app, **options)
    async with Client(mcp, headers=headers) as client:
        found: list[dict[str, Any]] = [await client.call_tool(name, arguments) for name, arguments in calls]
    await runtime_of(mcp).aclose()
    return found


async def result(app: Any, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    (found,) = await results(app, [(name, arguments or {})], **options)
    return found


async def definitions(app: Any, **options: Any) -> dict[str, dict[str, Any]]:
    mcp = MCPServer("Tools")
    mcp.tools_from_asgi(app, **options)
    async with Client(mcp) as client:
        listed = await client.list_tools()
    for tool in listed:
        validate_as(tool, "2026-07-28", "Tool")
    return {tool["name"]: tool for tool in listed}


def text(found: dict[str, Any]) -> str:
    return "".join(block["text"] for block in found["content"])


async def test_operations_that_are_not_deprecated_become_tools_by_their_ids() -> None:
    assert list(await definitions(restaurant())) == [
        *("get_order", "change_order", "cancel_order", "place_order", "get_dish", "remove_dish", "add_category")
    ]


async def test_a_tool_says_what_its_operation_says() -> None:
    tool = (await definitions(restaurant()))["get_order"]
    assert (tool["title"], tool["description"]) == ("Get Order", "Return what a table has ordered.")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "table": {"type": "integer"},
            "only": {"type": "array", "items": {"type": "string"}, "default": []},
            "limit": {"type": "integer", "description": "How many lines", "default": 10},
            "x-trace": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["table"],
    }
    assert tool["outputSchema"]["type"] == "object"


async def test_the_members_of_a_body_are_arguments_with_the_models_inside_of_it_in_place() -> None:
    tool = (await definitions(restaurant()))["place_order"]
    line = {
        "type": "object",
        "properties": {"dish": {"type": "string"}, "count": {"type": "integer", "minimum": 1, "default": 1}},
        "required": ["dish"],
    }
    assert tool["inputSchema"]["properties"] == {
        "table": {"type": "integer"},
        "lines": {"type": "array", "items": {**line, "title": "Line"}} | {"items": line},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert tool["inputSchema"]["required"] == ["table", "lines"]


async def test_a_body_with_a_member_that_is_named_like_a_parameter_is_an_argument_of_its_own() -> None:
    tool = (await definitions(restaurant()))["change_order"]
    assert list(tool["inputSchema"]["properties"]) == ["table", "body"]
    assert tool["inputSchema"]["required"] == ["table", "body"]
    changed = await result(restaurant(), "change_order", {"table": 1, "body": {"table": 2, "lines": []}})
    assert changed["structuredContent"] == [1, 2]


async def test_a_model_that_contains_itself_stays_a_reference() -> None:
    tool = (await definitions(restaurant()))["add_category"]
    (name,) = tool["inputSchema"]["$defs"]
    assert tool["inputSchema"]["properties"]["children"]["items"] == {"$ref": f"#/$defs/{name}"}
    nested = {"name": "Soups", "children": [{"name": "Hot", "children": []}]}
    assert (await result(restaurant(), "add_category", nested))["structuredContent"] == nested


async def test_only_responses_that_are_always_an_object_have_an_output_schema() -> None:
    tools = await definitions(restaurant())
    with_schema = {name for name, tool in tools.items() if "outputSchema" in tool}
    assert with_schema == {"get_order", "place_order", "add_category"}


async def test_hints_say_what_the_method_promises() -> None:
    tools = await definitions(restaurant())
    hints = {name: {**tool["annotations"], "title": None} for name, tool in tools.items()}
    assert hints["get_order"] == {"title": None, "readOnlyHint": True}
    assert hints["place_order"] == {"title": None}
    assert hints["change_order"] == {"title": None, "readOnlyHint": False, "idempotentHint": True}
    assert hints["cancel_order"] == {
        "title": None,
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
    }


async def test_arguments_arrive_where_the_document_says() -> None:
    arguments = {"table": 5.0, "only": ["a b", "c&limit=1"], "limit": 3, "x-trace": "t"}
    found = await result(restaurant(), "get_order", arguments)
    assert found["structuredContent"] == {"table": 5, "only": ["a b", "c&limit=1"], "limit": 3, "trace": "t"}
    assert json.loads(text(found)) == found["structuredContent"]


async def test_a_refusal_of_the_application_is_an_error_with_its_text() -> None:
    found = await result(restaurant(), "get_order", {"table": 13})
    assert found["isError"]
    assert text(found) == 'HTTP 404 Not Found: {"detail":"There is no table 13."}'


async def test_a_response_without_a_body_is_an_empty_result() -> None:
    found = await result(restaurant(), "cancel_order", {"table": 1})
    assert (found["content"], "isError" in found) == ([], False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"table": "5"}, "table: must be an integer, not a string"),
        ({}, "table: is required (an integer)"),
        ({"table": 1, "tabel": 2}, "tabel: is not an argument"),
        ({"tabel": 2}, "table: is required (an integer)"),
    ],
)
async def test_wrong_arguments_are_told_before_the_application_is_called(arguments: dict[str, Any], words: str) -> None:
    found = await result(restaurant(), "get_order", arguments)
    assert (found["isError"], text(found)) == (True, words)


@pytest.mark.parametrize("dish", ["soup/remove", "../dishes", "..", ".", "", "a\\b", "a\nb", "a\x00", "%2e%2e"])
async def test_a_value_that_would_leave_its_segment_is_refused(dish: str) -> None:
    found = await result(restaurant(), "get_dish", {"dish": dish})
    assert (found["isError"], text(found)[:5]) == (True, "dish:")


@pytest.mark.parametrize("dish", ["soup?limit=1", "soup#x", "50% off", "%2Fremove", "grüße", "a;b", "a b"])
async def test_any_other_text_arrives_in_its_segment_as_it_is(dish: str) -> None:
    found = await result(restaurant(), "get_dish", {"dish": dish})
    assert text(found) == dish


@pytest.mark.parametrize("value", ["a\r\nx-admin: 1", "a\x00", "grüße"])
async def test_a_value_that_no_header_can_have_is_refused(value: str) -> None:
    found = await result(restaurant(), "get_order", {"table": 1, "x-trace": value})
    assert (found["isError"], text(found)[:8]) == (True, "x-trace:")


def document_with_header(name: str) -> dict[str, Any]:
    parameter = {"name": name, "in": "header", "schema": {"type": "string"}}
    operation = {"operationId": "orders", "parameters": [parameter], "responses": {"200": {"description": "Orders"}}}
    return {"openapi": "3.1.0", "info": {"title": "Orders", "version": "1"}, "paths": {"/orders": {"get": operation}}}


@pytest.mark.parametrize(
    "name",
    [
        *("X-Forwarded-For.", "x.forwarded.for", "x--real-ip", "_Authorization_", "Authorization.", "x-auth"),
        *("X-Hasura-Role", "Impersonate-User", "x_user_roles", "X-MS-CLIENT-PRINCIPAL~ID"),
        *("X\u2011Forwarded\u2011For", "X-Authentication", "\ufeffx-real-ip"),
    ],
)
async def test_headers_that_name_the_caller_are_no_arguments_in_any_spelling(name: str) -> None:
    tools = await definitions(restaurant(), openapi=document_with_header(name))
    assert tools["orders"]["inputSchema"]["properties"] == {}


@pytest.mark.parametrize("name", ["", "x trace", "x:trace", "x-trace\r\nx-admin", "x-tr\xe4ce"])
def test_a_parameter_that_is_not_named_like_a_header_is_refused(name: str) -> None:
    mcp = MCPServer("Tools")
    with pytest.raises(RegistrationError, match="which is not a valid name of a header"):
        mcp.tools_from_asgi(restaurant(), openapi=document_with_header(name))


def echoing() -> FastAPI:
    app = FastAPI(generate_unique_id_function=lambda route: route.name)

    @app.get("/headers")
    async def headers(
        request: Request,
        authorization: Annotated[str | None, Header()] = None,
        host: Annotated[str | None, Header()] = None,
        session: Annotated[str | None, Cookie()] = None,
    ) -> dict[str, Any]:
        return {"headers": dict(request.headers), "client": request.client, "scheme": request.url.scheme}

    return app


async def test_headers_of_the_caller_stay_behind_and_no_model_chooses_credentials() -> None:
    assert (await definitions(echoing()))["headers"]["inputSchema"]["properties"] == {}
    caller = {"authorization": "Bearer secret", "cookie": "session=1"}
    found = await result(echoing(), "headers", headers=caller)
    assert found["structuredContent"] == {
        "headers": {"host": "localhost", "accept": "*/*"},
        "client": None,
        "scheme": "http",
    }


async def test_headers_go_along_that_the_author_names() -> None:
    caller = {"authorization": "Bearer secret"}
    options: dict[str, Any] = {"forward_headers": ["Authorization"], "base_url": "https://orders.example"}
    found = await result(echoing(), "headers", headers=caller, **options)
    assert found["structuredContent"]["headers"]["authorization"] == "Bearer secret"
    assert found["structuredContent"]["headers"]["host"] == "orders.example"
    assert found["structuredContent"]["scheme"] == "https"


def kinds() -> FastAPI:
    app = FastAPI(generate_unique_id_function=lambda route: route.name)

    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        await asyncio.sleep(0)
        yield b"two"

    answers: dict[str, Callable[[], Response]] = {
        "plain": lambda: PlainTextResponse("Grüße".encode("latin-1"), media_type="text/plain; charset=latin-1"),
        "unknown": lambda: PlainTextResponse("Grüße".encode(), media_type="text/plain; charset=idna"),
        "png": lambda: Response(b"\x89PNG", media_type="image/png"),
        "wav": lambda: Response(b"RIFF", media_type="audio/wav"),
        "pdf": lambda: Response(b"%PDF", media_type="application/pdf"),
        "svg": lambda: Response("<svg/>", media_type="image/svg+xml"),
        "problem": lambda: Response('{"a": 1}', media_type="application/problem+json"),
        "broken": lambda: Response("{", media_type="application/json"),
        "number": lambda: Response("17", media_type="application/json"),
        "parts": lambda: StreamingResponse(parts(), media_type="text/plain"),
        "elsewhere": lambda: RedirectResponse("/other"),
        "teapot": lambda: Response(b"\x89PNG", status_code=418, media_type="image/png"),
    }
    for name, answer in answers.items():
        app.get(f"/{name}", operation_id=name, response_model=None)(answer)
    return app


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain", {"type": "text", "text": "Grüße"}),
        ("unknown", {"type": "text", "text": "Grüße"}),
        ("png", {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}),
        ("wav", {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}),
        (
            "pdf",
            {
                "type": "resource",
                "resource": {"uri": "tool://pdf/result", "mimeType": "application/pdf", "blob": "JVBERg=="},
            },
        ),
        ("svg", {"type": "text", "text": "<svg/>"}),
        ("problem", {"type": "text", "text": '{"a":1}'}),
        ("broken", {"type": "text", "text": "{"}),
        ("number", {"type": "text", "text": "17"}),
        ("parts", {"type": "text", "text": "one two"}),
    ],
)
async def test_a_response_becomes_content_of_its_kind(name: str, content: dict[str, Any]) -> None:
    assert (await result(kinds(), name))["content"] == [content]


@pytest.mark.parametrize(("name", "words"), [("elsewhere", "HTTP 307 Temporary Redirect"), ("teapot", "HTTP 418")])
async def test_a_response_that_is_no_success_is_an_error(name: str, words: str) -> None:
    found = await result(kinds(), name)
    assert found["isError"]
    assert text(found).startswith(words)


async def test_an_exception_of_the_application_is_told_in_the_log_only() -> None:
    app = FastAPI()

    @app.get("/fail", operation_id="fail")
    async def fail() -> None:
        raise ValueError("secret")

    found = await result(app, "fail")
    assert found["isError"]
    assert "secret" not in text(found)
    assert "error id" in text(found)


async def test_a_response_that_is_not_what_the_document_says_is_an_error() -> None:
    app = Starlette(routes=[Route("/x", lambda _: JSONResponse({"count": "many"}))])
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    responses = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    found = await result(app, "x", openapi=document({"/x": {"get": {"operationId": "x", "responses": responses}}}))
    assert found["isError"]


async def test_a_response_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_calls, "_MAX_BYTES", 3)
    assert (await result(kinds(), "plain", openapi=kinds().openapi()))["isError"]


async def test_an_application_starts_with_the_first_call_and_stops_with_the_last_client() -> None:
    told: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        told.append("start")
        yield {"menu": "soup"}
        told.append("stop")

    app = FastAPI(lifespan=lifespan)

    @app.get("/menu", operation_id="menu")
    async def menu(request: Request, background: BackgroundTasks) -> str:
        background.add_task(told.append, "after")
        return str(request.state.menu)

    mcp = MCPServer("Tools")
    mcp.tools_from_asgi(app)
    assert told == []
    async with Client(mcp) as client:
        both = await asyncio.gather(client.call_tool("menu"), client.call_tool("menu"))
        assert [text(found) for found in both] == ["soup", "soup"]
        assert told == ["start", "after", "after"]
    assert told == ["start", "after", "after", "stop"]


async def test_an_application_that_is_served_otherwise_is_not_started_again() -> None:
    told: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        told.append("start")
        yield

    app = FastAPI(lifespan=lifespan)
    app.get("/menu", operation_id="menu")(lambda: "soup")
    assert text(await result(app, "menu", lifespan=False)) == "soup"
    assert told == []


async def test_an_application_that_can_not_start_is_an_error_of_each_call() -> None:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if app.title:
            raise RuntimeError("no database")
        yield

    app = FastAPI(lifespan=lifespan)
    app.get("/menu", operation_id="menu")(lambda: "soup")
    assert [found["isError"] for found in await results(app, [("menu", {}), ("menu", {})])] == [True, True]


async def test_an_application_without_a_lifespan_is_called_all_the_same() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http", "no lifespan"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", b"text/plain")]})
        await send({"type": "http.response.body", "body": scope["raw_path"]})

    assert text(await result(app, "get_x", openapi=document({"/x": {"get": {}}}))) == "/x"


async def test_an_application_that_does_not_answer_is_an_error() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    assert (await result(app, "get_x", openapi=document({"/x": {"get": {}}})))["isError"]


async def test_a_call_that_takes_too_long_is_cancelled_in_the_application() -> None:
    told: list[str] = []
    app = FastAPI()

    @app.get("/wait", operation_id="wait")
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append("cancelled")

    assert (await result(app, "wait", timeout=0.05))["isError"]
    assert told == ["cancelled"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"include": ["menu"]}, ["get_dish", "remove_dish", "add_category"]),
        ({"exclude": ["menu"]}, ["get_order", "change_order", "cancel_order", "place_order"]),
        ({"include": ["menu"], "exclude": lambda operation: operation.method != "GET"}, ["get_dish"]),
    ],
)
async def test_tags_or_a_function_choose_operations(options: dict[str, Any], names: list[str]) -> None:
    assert list(await definitions(restaurant(), **options)) == names


async def test_a_function_that_chooses_gets_operations() -> None:
    seen: list[Operation] = []

    def choose(operation: Operation) -> bool:
        seen.append(operation)
        return operation.name == "get_dish"

    assert list(await definitions(restaurant(), include=choose)) == ["get_dish"]
    assert ("PUT", "/orders/{table}", ("orders",)) in [(each.method, each.path, each.tags) for each in seen]


def document(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths, **more}


async def test_a_document_may_be_asked_for_while_an_event_loop_runs_and_elsewhere() -> None:
    app = FastAPI(openapi_url="/api/schema.json")
    app.get("/menu", operation_id="menu")(lambda: "soup")
    assert list(await definitions(app, openapi="/api/schema.json")) == ["menu"]


def test_an_application_without_a_document_is_refused_in_words() -> None:
    with pytest.raises(RegistrationError, match=r"no OpenAPI document at /openapi.json \(HTTP 404\)"):
        MCPServer("Tools").tools_from_asgi(Starlette())


def test_an_application_that_does_not_answer_for_its_document_is_refused() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        return None

    with pytest.raises(RegistrationError, match="did not answer"):
        MCPServer("Tools").tools_from_asgi(app)


@pytest.mark.parametrize("openapi", [{"swagger": "1.2"}, {"openapi": 3}, {}])
def test_another_document_is_refused(openapi: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=r"OpenAPI 3 or Swagger 2\.0"):
        MCPServer("Tools").tools_from_asgi(Starlette(), openapi=openapi)


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(RegistrationError, match="no operation that is to be a tool"):
        MCPServer("Tools").tools_from_asgi(restaurant(), include=["nothing"])


def test_all_operations_that_can_not_be_tools_are_told_together_and_nothing_is_added() -> None:
    app = FastAPI()

    @app.get("/account")
    async def account(user: Annotated[str, Cookie()]) -> None:
        return None

    @app.get("/session")
    async def session(session: Annotated[str, Cookie()]) -> None:
        return None

    @app.get("/fine")
    async def fine() -> None:
        return None

    mcp = MCPServer("Tools")
    with pytest.raises(RegistrationError) as refused:
        mcp.tools_from_asgi(app)
    assert "GET /account needs the cookie 'user', but calls of tools have no cookies." in str(refused.value)
    assert "GET /session needs the cookie 'session', but calls of tools have no cookies." in str(refused.value)
    assert list(runtime_of(mcp).server.catalog.tools) == []


async def test_a_file_arrives_with_its_name_and_type() -> None:
    app = FastAPI()

    @app.post("/upload")
    async def upload(file: UploadFile, note: Annotated[str, Form()]) -> str:
        return f"{note} {file.filename} {file.content_type} {(await file.read()).hex()}"

    mcp = MCPServer("Tools")
    mcp.tools_from_asgi(app, names={"POST /upload": "upload"})
    async with Client(mcp) as client:
        got = await client.call_tool("upload", {"file": "data:image/png;name=a.png;base64,/wA=", "note": "A"})
        assert got["content"][0]["text"] == "A a.png image/png ff00"
        got = await client.call_tool("upload", {"file": "b", "note": "B"})
        assert got["content"][0]["text"] == "B file text/plain; charset=utf-8 62"


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(RegistrationError, match="Unknown option 'prefix'"):
        MCPServer("Tools").tools_from_asgi(restaurant(), prefix="x")  # type: ignore[call-arg]


async def test_access_is_that_of_any_tool() -> None:
    mcp = MCPServer("Tools")
    mcp.tools_from_asgi(restaurant(), scopes=["orders.read"])
    assert {tuple(tool.access.required_scopes) for tool in runtime_of(mcp).server.catalog.tools} == {("orders.read",)}


def test_operations_do_not_become_tasks() -> None:
    options: Any = {"task": "optional"}
    with pytest.raises(RegistrationError, match="Unknown option 'task'"):
        MCPServer("m").tools_from_asgi(FastAPI(), **options)

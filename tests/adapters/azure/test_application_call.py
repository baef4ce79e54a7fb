"""Routes of Starlette behind HTTP triggers of a function app, with the real azure-functions."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import azure.functions as func
import pytest

import funcmcp.azure
from funcmcp._adapters.azure.app_functions import functions_of
from funcmcp._adapters.azure.http_trigger import Site, StreamedRequest, StreamedResponse
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpRequest
from funcmcp.compat import FastMCP
from tests.compat.starlette_routes import Events, add_routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]

ORIGIN = "http://localhost:7071"


@pytest.fixture
def events() -> Any:
    """What the routes wait for."""
    events = Events()
    yield events
    events.release.set()


@pytest.fixture
def app(events: Events) -> func.FunctionApp:
    """A function app with the routes."""
    mcp = FastMCP("Routes")
    add_routes(mcp, events)
    return funcmcp.azure.http_app(mcp)


async def answer(
    app: func.FunctionApp, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> func.HttpResponse:
    """Invoke the function of a route as the worker does."""
    headers = {"host": "localhost:7071", **(headers or {})}
    request = func.HttpRequest(method, f"{ORIGIN}/api{path}", headers=headers, params={}, route_params={}, body=body)
    route = path.partition("?")[0].strip("/")
    for function in functions_of(app).values():
        trigger: Any = function.get_trigger()
        methods = {str(getattr(name, "value", name)) for name in trigger.methods}
        if trigger.route == route.replace("a%20b", "{name}") and method in methods:
            response: func.HttpResponse = await function.get_user_function()(request)
            return response
    raise AssertionError(f"There is no function for {method} {path}.")


async def applications_end() -> None:
    """Wait until the applications have ended, which run on after their responses."""
    running = [task for task in asyncio.all_tasks() if "ApplicationResponse.run" in repr(task.get_coro())]
    if running:
        await asyncio.wait(running)


async def test_responses_and_requests_are_those_of_starlette(app: func.FunctionApp) -> None:
    streamed = await answer(app, "GET", "/stream")
    assert (streamed.status_code, streamed.get_body()) == (200, b"first second")
    assert streamed.headers["content-type"] == "text/plain; charset=utf-8"
    assert (await answer(app, "GET", "/file", headers={"range": "bytes=0-2"})).get_body() == b'"""'
    await applications_end()  # the application closes the file after its last part
    assert (await answer(app, "POST", "/upload", b"x" * 1000)).get_body() == b"1000"
    form = await answer(app, "PUT", "/form/a%20b", b"hi")
    assert form.get_body() == b'{"body":"hi","name":"a b"}'
    assert (await answer(app, "GET", "/class")).get_body() == b"got"
    teapot = await answer(app, "GET", "/teapot")
    assert (teapot.status_code, teapot.get_body(), teapot.headers["x-pot"]) == (418, b"short and stout", "tea")
    cookies = await answer(app, "GET", "/cookies")
    assert cookies.headers.get_all("set-cookie") == ["a=1; Path=/; SameSite=lax", "b=2; Path=/; SameSite=lax"]


async def test_a_failure_is_logged_and_not_shown(app: func.FunctionApp, caplog: pytest.LogCaptureFixture) -> None:
    failed = await answer(app, "GET", "/fails")
    assert failed.status_code == 500
    assert b"secret" not in failed.get_body()
    assert "the secret reason" in caplog.text
    with pytest.raises(RuntimeError, match="the secret reason"):
        await answer(app, "GET", "/breaks")


async def test_background_tasks_run_on_after_the_response(app: func.FunctionApp, events: Events) -> None:
    assert (await answer(app, "GET", "/background")).get_body() == b"at once"
    assert not events.background_ended.is_set()
    events.release.set()
    assert await asyncio.to_thread(events.background_ended.wait, 20)


async def test_a_plain_function_does_not_block_the_event_loop(app: func.FunctionApp) -> None:
    waiting = asyncio.ensure_future(answer(app, "GET", "/plain"))
    assert (await answer(app, "GET", "/release")).get_body() == b"released"
    assert b'"in_thread":true' in (await waiting).get_body()


@pytest.mark.parametrize("ends", ["the host stops reading", "the client disconnects"])
async def test_a_stream_goes_out_as_it_comes_and_ends_with_its_reader(events: Events, ends: str) -> None:
    mcp = FastMCP("Routes")
    add_routes(mcp, events)
    gone = asyncio.Event()

    async def wait_until_gone() -> None:
        await gone.wait()

    wire = HttpRequest("GET", "/api/endless", [(b"host", b"localhost:7071")], "127.0.0.1")
    request = StreamedRequest(wire, f"{ORIGIN}/api/endless", b"", wait_until_gone)
    response = await Site(runtime_of(mcp)).answer(request, "/endless")
    assert isinstance(response, StreamedResponse)
    body: AsyncIterator[bytes] = response.wire.body  # type: ignore[assignment]  # a stream
    assert await anext(body) == b"tick\n"
    if ends == "the host stops reading":
        await body.aclose()  # type: ignore[attr-defined]  # it is a generator
    else:
        gone.set()
        async for _ in body:
            pass
    assert await asyncio.to_thread(events.stream_ended.wait, 20)


async def test_an_application_without_a_response_is_a_failure(events: Events) -> None:
    mcp = FastMCP("Routes")

    @mcp.custom_route("/nothing", methods=["GET"])
    class Nothing:
        def __init__(self, scope: Any, receive: Any, send: Any) -> None:
            self.thread = threading.current_thread()

        def __await__(self) -> Any:
            yield from ()

    with pytest.raises(RuntimeError, match="without a response"):
        await answer(funcmcp.azure.http_app(mcp), "GET", "/nothing")

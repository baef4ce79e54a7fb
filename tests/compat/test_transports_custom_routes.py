"""Custom routes with Starlette's classes answer as under FastMCP: with the connection's own receive and send."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request  # noqa: TC002 - an annotation of a route
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from funcmcp import HTTPOptions, Limits
from funcmcp._adapters.asgi.application import SEPARATES_TRAILERS
from funcmcp.compat import FastMCP
from tests.compat import starlette_routes
from tests.compat.listening import listening, under_uvicorn
from tests.compat.starlette_routes import Events, add_routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SOURCE = Path(starlette_routes.__file__).read_bytes()
SERVED: dict[str, Callable[[FastMCP], Any]] = {
    "run_async": lambda mcp: mcp.run_async("http", port=0, show_banner=False),
    "the server under uvicorn": under_uvicorn,
    "http_app under uvicorn": lambda mcp: under_uvicorn(mcp.http_app()),
}


@pytest.fixture(params=SERVED)
async def served(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[httpx2.AsyncClient, Events]]:
    """Yield a client of a server with the routes, and what they wait for."""
    mcp, events = FastMCP("Routes"), Events()
    add_routes(mcp, events)
    async with (
        listening(SERVED[request.param], mcp, monkeypatch) as origin,
        httpx2.AsyncClient(base_url=origin) as http,
    ):
        yield http, events
        events.release.set()


Served = tuple[httpx2.AsyncClient, Events]


async def test_responses_are_those_of_starlette(served: Served) -> None:
    http, _ = served
    streamed = await http.get("/stream")
    assert (streamed.status_code, streamed.text) == (200, "first second")
    assert streamed.headers["transfer-encoding"] == "chunked"
    assert (await http.get("/file")).content == SOURCE
    part = await http.get("/file", headers={"Range": "bytes=0-9"})
    assert (part.status_code, part.content) == (206, SOURCE[:10])
    head = await http.head("/file")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(SOURCE)))
    assert (await http.get("/cookies")).headers.get_list("set-cookie") == [
        "a=1; Path=/; SameSite=lax",
        "b=2; Path=/; SameSite=lax",
    ]


async def test_requests_are_those_of_starlette(served: Served) -> None:
    http, _ = served
    assert (await http.post("/upload", content=b"x" * 300_000)).json() == 300_000
    assert (await http.put("/form/a%20b", content=b"hi")).json() == {"body": "hi", "name": "a b"}
    assert (await http.put("/form/a%5Cb", content=b"hi")).status_code == 400
    assert (await http.get("/url?a=1")).json() == {
        "urls": ["/url", "/form/a"],
        "has_state": True,
        "query": {"a": "1"},
    }


async def test_classes_answer_and_exceptions_of_http_become_responses(served: Served) -> None:
    http, _ = served
    assert (await http.get("/class")).text == "got"
    not_allowed = await http.post("/class")
    assert (not_allowed.status_code, not_allowed.headers["allow"]) == (405, "GET, HEAD")
    teapot = await http.get("/teapot")
    assert (teapot.status_code, teapot.text, teapot.headers["x-pot"]) == (418, "short and stout", "tea")
    assert (await http.post("/stream")).status_code == 405


async def test_a_failure_is_logged_and_not_shown(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    http, _ = served
    failed = await http.get("/fails")
    assert failed.status_code == 500
    assert "the secret reason" not in failed.text
    assert "the secret reason" in caplog.text
    with pytest.raises(httpx2.RemoteProtocolError):
        await http.get("/breaks")


@pytest.mark.parametrize(
    ("path", "status", "content"),
    [
        *((f"/status/{value}", 500, None) for value in (0, 100, 101, 199, 600, 99999)),
        ("/header", 500, None),
        *((f"/status/{value}", value, b"") for value in (204, 205, 304)),
        ("/status/599", 599, b"a body"),
    ],
)
async def test_a_response_that_can_not_be_sent_is_a_failure(
    served: Served, path: str, status: int, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    http, _ = served
    caplog.set_level("ERROR")
    response = await http.get(path)
    assert response.status_code == status
    assert "x-evil" not in response.headers
    if content is None:
        assert b"error id" in response.content
    else:
        assert response.content == content
        assert not caplog.records
    assert (await http.get("/url")).status_code == 200  # on the same connection


async def test_a_plain_function_does_not_block_the_event_loop(served: Served) -> None:
    http, _ = served
    waiting = asyncio.ensure_future(http.get("/plain"))
    assert (await http.get("/release")).text == "released"
    assert (await waiting).json() == {"in_thread": True, "released": True}


async def test_a_background_task_does_not_delay_its_response(served: Served) -> None:
    http, events = served
    assert (await http.get("/background")).text == "at once"
    assert not events.background_ended.is_set()
    events.release.set()
    assert await asyncio.to_thread(events.background_ended.wait, 20)


async def test_a_stream_ends_when_its_client_disconnects(served: Served) -> None:
    http, events = served
    async with http.stream("GET", "/endless") as response:
        assert await anext(response.aiter_lines()) == "tick"
        assert (await http.get("/url")).status_code == 200  # the event loop is free
    assert await asyncio.to_thread(events.stream_ended.wait, 20)


def test_the_test_client_of_starlette_gets_the_same() -> None:
    mcp, events = FastMCP("Routes"), Events()
    add_routes(mcp, events)
    events.release.set()
    for app in (mcp, mcp.http_app()):
        with TestClient(app, base_url="http://127.0.0.1") as client:
            assert client.get("/stream").text == "first second"
            assert client.get("/background").text == "at once"
            assert client.get("/plain").json()["in_thread"]
            assert client.get("/teapot").status_code == 418
            assert client.post("/upload", content=b"abc").json() == 3


async def post(app: Any, path: str, **options: Any) -> httpx2.Response:
    """Return the response of an application whose server keeps trailers and headers apart, as ours do."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "extensions": SEPARATES_TRAILERS}, receive, send)

    transport = httpx2.ASGITransport(app=served, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.post(path, **options)


async def test_the_limits_of_bodies_hold() -> None:
    mcp = FastMCP("Routes", limits=Limits(message_bytes=1000, message_seconds=0.05))
    add_routes(mcp, Events())

    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * 500

    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    assert (await post(mcp, "/upload", content=b"x" * 1000)).json() == 1000
    assert (await post(mcp, "/upload", content=chunks(2))).json() == 1000
    assert (await post(mcp, "/upload", content=b"x" * 1001)).status_code == 413
    assert (await post(mcp, "/upload", content=chunks(3))).status_code == 413
    assert (await post(mcp, "/upload", content=slow())).status_code == 408


async def test_running_routes_count_as_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    mcp, events = FastMCP("Routes", limits=Limits(requests=1)), Events()
    add_routes(mcp, events)
    async with listening(SERVED["run_async"], mcp, monkeypatch) as origin, httpx2.AsyncClient(base_url=origin) as http:
        async with http.stream("GET", "/endless") as response:
            await anext(response.aiter_lines())
            assert (await http.get("/url")).status_code == 503
        assert await asyncio.to_thread(events.stream_ended.wait, 20)
        for _ in range(100):  # the place is free as soon as the application has ended
            answer = await http.get("/url")
            if answer.status_code == 200:
                break
            await asyncio.sleep(0.05)
        assert answer.status_code == 200


async def test_cross_origin_headers_are_added() -> None:
    mcp = FastMCP("Routes", http=HTTPOptions(allowed_origins=["https://app.example"]))
    add_routes(mcp, Events())
    answer = await post(mcp, "/form/a", content=b"", headers={"Origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    refused = await post(mcp, "/form/a", content=b"", headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403


async def test_an_application_around_the_server_keeps_its_state_handlers_and_later_routes() -> None:
    mcp = FastMCP("Routes")

    class OutOfTea(Exception):
        pass

    @mcp.custom_route("/state", methods=["POST"])
    async def state(request: Request) -> JSONResponse:
        return JSONResponse(request.app.state.tea)

    @mcp.custom_route("/fails", methods=["POST"])
    async def fails(_: Request) -> JSONResponse:
        raise OutOfTea

    @mcp.custom_route("/missing", methods=["POST"])
    async def missing(_: Request) -> JSONResponse:
        raise HTTPException(404)

    async def later(_: Request) -> PlainTextResponse:
        return PlainTextResponse("later")

    app = mcp.http_app()
    app.state.tea = "green"
    app.add_exception_handler(OutOfTea, lambda *_: PlainTextResponse("no tea", 409))
    app.add_exception_handler(404, lambda *_: PlainTextResponse("nothing", 404))
    app.router.routes.append(Route("/later", later, methods=["POST"]))
    assert (await post(app, "/state")).json() == "green"
    assert (await post(app, "/fails")).status_code == 409
    assert (await post(app, "/missing")).text == "nothing"
    assert (await post(app, "/later")).text == "later"
    assert (await post(Starlette(routes=[Mount("/sub", app=app)]), "/sub/missing")).text == "nothing"
    assert (await post(app, "/elsewhere")).status_code == 404


@pytest.mark.parametrize("path", ["/item/{number:int}", "/plain"])
def test_routes_of_each_form_pass_the_checks_of_the_server(path: str) -> None:
    mcp = FastMCP("Routes")

    @mcp.custom_route(path, methods=["GET", "POST", "OPTIONS"])
    async def answer(request: Request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse(str(request.path_params.get("number", "none")))

    url = path.replace("{number:int}", "5")
    with TestClient(mcp.http_app(), base_url="http://127.0.0.1") as client:
        assert client.get(url).text == ("5" if "5" in url else "none")
        assert client.options(url).status_code == 200
        assert client.get("/item/x").status_code == 404
        assert client.get(url, headers={"host": "evil.example"}).status_code == 421
        assert client.get(url, headers={"origin": "https://evil.example"}).status_code == 403
        assert client.post(url, content=b"a" * 5_000_000).status_code == 413

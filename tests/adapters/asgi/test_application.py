"""ASGI to HttpRequest and HttpResponse."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.asgi.application import ASGIApplication, ASGIRequest, ClientDisconnectedError, HTTPRuntime
from funcmcp._server.limits import Limits
from funcmcp._transports.http.messages import BodyTooLargeError, HttpRequest, HttpResponse
from tests import schemas
from tests.patience import PATIENCE
from tests.server.parts import PER_REQUEST, text_result, tool
from tests.transports.http.endpoint import Endpoint, mirrored, per_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp._server.calls.context import RequestContext

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

DISCONNECT = {"type": "http.disconnect"}


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def scope(**members: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")],
        "server": ("127.0.0.1", 8000),
        **members,
    }


class Platform:
    """An ASGI server's half: what it hands in, and what it is told to send. Without more to hand in it waits."""

    def __init__(self, *incoming: dict[str, Any]) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.sent_something = asyncio.Event()
        for message in incoming:
            self.incoming.put_nowait(message)

    async def receive(self) -> dict[str, Any]:
        return await self.incoming.get()

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if message.get("body"):
            self.sent_something.set()

    async def run(self, exchange: Callable[[HttpRequest], Any], **members: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            await ASGIApplication(HTTPRuntime(exchange))(scope(**members), self.receive, self.send)

    @property
    def start(self) -> dict[str, Any]:
        return self.sent[0]

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


async def read(limit: int, *incoming: dict[str, Any]) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await ASGIRequest(scope(), Platform(*incoming).receive, Platform().send).read(limit)


async def take_or_read(limit: int, receive: Any) -> tuple[bytes | None, bytes]:
    """Return the body if it has arrived, and the body."""
    request = ASGIRequest(scope(), receive, Platform().send)
    taken = request.take_body()
    async with asyncio.timeout(PATIENCE):
        return taken, await request.read(limit)


async def test_a_scope_becomes_a_request() -> None:
    pairs = [(b"host", b"example.com"), (b"x-name", b"caf\xe9"), (b"x-name", b"2")]
    made = ASGIRequest(
        scope(scheme="https", headers=pairs, query_string=b"a=1", path="/api/mcp", root_path="/api"),
        Platform().receive,
        Platform().send,
    )
    assert (made.method, made.path, made.server) == ("POST", "/mcp", "127.0.0.1")
    assert made.pairs == pairs
    assert made.url == "https://example.com/api/mcp?a=1"


@pytest.mark.parametrize(
    ("path", "root_path", "below"),
    [
        ("/mcp", "", "/mcp"),
        ("/api/mcp", "/api", "/mcp"),
        ("/mcp", "/api", "/mcp"),
        ("/api", "/api", ""),
        ("/apis/mcp", "/api", "/apis/mcp"),
        ("/api/mcp", "/api/", "/mcp"),
    ],
)
async def test_the_mount_is_taken_off_the_path(path: str, root_path: str, below: str) -> None:
    assert ASGIRequest(scope(path=path, root_path=root_path), Platform().receive, Platform().send).path == below


async def test_what_a_scope_may_leave_out_has_a_default() -> None:
    bare = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"example.com")]}
    made = ASGIRequest(bare, Platform().receive, Platform().send)
    assert (made.server, made.url) == (None, "http://example.com/mcp")
    assert ASGIRequest({**bare, "server": None}, Platform().receive, Platform().send).server is None


@pytest.mark.parametrize(
    "incoming",
    [
        [part(b"hello")],
        [{"type": "http.request", "body": b"hello"}],
        [part(b"he", more=True), part(b"llo")],
        [part(b"", more=True), part(b"hello", more=True), {"type": "http.request"}],
        [part(b"h", more=True), part(b"e", more=True), part(b"llo")],
    ],
)
async def test_a_body_is_read_in_however_many_parts(incoming: list[dict[str, Any]]) -> None:
    assert await read(5, *incoming) == b"hello"


@pytest.mark.parametrize(
    ("incoming", "taken"),
    [
        ([part(b"hello")], b"hello"),
        ([{"type": "http.request", "body": b"hello"}], b"hello"),
        ([part(b"he", more=True), part(b"llo")], None),
    ],
)
async def test_a_body_that_has_arrived_can_be_taken_at_once(
    incoming: list[dict[str, Any]], taken: bytes | None
) -> None:
    assert await take_or_read(5, Platform(*incoming).receive) == (taken, b"hello")


async def test_a_body_that_arrives_later_is_read_where_taking_it_ended() -> None:
    event = asyncio.get_running_loop().create_future()

    async def receive() -> dict[str, Any]:
        message: dict[str, Any] = await event
        return message

    asyncio.get_running_loop().call_soon(event.set_result, part(b"hello"))
    assert await take_or_read(5, receive) == (None, b"hello")


async def test_what_a_server_returns_for_an_event_may_be_any_awaitable() -> None:
    arrived, later = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
    arrived.set_result(part(b"hello"))
    asyncio.get_running_loop().call_soon(later.set_result, part(b"hello"))
    assert await take_or_read(5, lambda: arrived) == (b"hello", b"hello")
    assert await take_or_read(5, lambda: later) == (None, b"hello")


@pytest.mark.parametrize("incoming", [[DISCONNECT], [part(b"he", more=True), DISCONNECT]])
async def test_a_body_that_never_comes_can_not_be_taken(incoming: list[dict[str, Any]]) -> None:
    with pytest.raises(ClientDisconnectedError):
        await take_or_read(5, Platform(*incoming).receive)


async def test_a_body_may_be_empty() -> None:
    assert await read(5, {"type": "http.request"}) == b""


@pytest.mark.parametrize(
    "incoming",
    [
        [part(b"hello!")],
        [part(b"hello!", more=True)],
        [part(b"hel", more=True), part(b"lo!")],
        [part(b"hel", more=True), part(b"lo!", more=True)],
    ],
)
async def test_a_body_over_the_limit_is_not_read_to_its_end(incoming: list[dict[str, Any]]) -> None:
    with pytest.raises(BodyTooLargeError):
        await read(5, *incoming)


@pytest.mark.parametrize("incoming", [[DISCONNECT], [part(b"he", more=True), DISCONNECT]])
async def test_a_client_that_leaves_before_its_request_is_complete_gets_nothing(incoming: list[dict[str, Any]]) -> None:
    platform = Platform(*incoming)

    async def echo(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, (), await request.read(100))

    await platform.run(echo)
    assert platform.sent == []


async def test_a_request_tells_when_its_client_has_left() -> None:
    platform = Platform(part(b""))
    disconnected = ASGIRequest(scope(), platform.receive, Platform().send).disconnected
    assert disconnected is not None
    waiting = asyncio.ensure_future(disconnected())
    await asyncio.sleep(0)
    assert not waiting.done()
    platform.incoming.put_nowait(DISCONNECT)
    await asyncio.wait_for(waiting, PATIENCE)


@pytest.mark.parametrize(
    ("response", "headers"),
    [
        (
            HttpResponse(200, (("content-type", "application/json"),), b"{}"),
            {b"content-type": b"application/json", b"content-length": b"2"},
        ),
        (HttpResponse(202, ()), {b"content-length": b"0"}),
        (HttpResponse(204, ()), {}),
        (HttpResponse(304, (("etag", '"1"'),)), {b"etag": b'"1"'}),
        (
            HttpResponse(405, (("allow", "POST"), ("x-name", "caf\xe9")), b"no"),
            {b"allow": b"POST", b"x-name": b"caf\xe9", b"content-length": b"2"},
        ),
    ],
    ids=lambda value: value.status if isinstance(value, HttpResponse) else "",
)
async def test_a_response_is_sent_whole_with_its_length(response: HttpResponse, headers: dict[bytes, bytes]) -> None:
    platform = Platform()

    async def exchange(_request: HttpRequest) -> HttpResponse:
        return response

    await platform.run(exchange)
    assert platform.start["type"] == "http.response.start"
    assert platform.start["status"] == response.status
    assert dict(platform.start["headers"]) == headers
    assert platform.sent[1:] == [{"type": "http.response.body", "body": response.body}]


class Streamed:
    """An exchange that streams parts, and knows how its stream ended."""

    def __init__(self, *parts: bytes, hang: bool = False, fail: bool = False) -> None:
        self._parts, self._hang, self._fail = parts, hang, fail
        self._ended = False

    def closed(self) -> bool:
        return self._ended

    async def __call__(self, _request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, (("content-type", "text/event-stream"),), self._body())

    async def _body(self) -> AsyncIterator[bytes]:
        try:
            for one in self._parts:
                yield one
            if self._fail:
                raise ValueError("broken")
            if self._hang:
                await asyncio.Event().wait()
        finally:
            self._ended = True


async def test_a_stream_is_sent_part_by_part_and_ended() -> None:
    platform, streamed = Platform(), Streamed(b"one", b"two")
    await platform.run(streamed)
    assert platform.start["headers"] == [(b"content-type", b"text/event-stream")]
    assert [(message["body"], message["more_body"]) for message in platform.sent[1:]] == [
        (b"one", True),
        (b"two", True),
        (b"", False),
    ]
    assert streamed.closed()


async def test_a_client_that_leaves_its_stream_ends_it() -> None:
    platform, streamed = Platform(part(b"")), Streamed(b"one", hang=True)
    serving = asyncio.create_task(platform.run(streamed))
    await asyncio.wait_for(platform.sent_something.wait(), PATIENCE)
    assert not streamed.closed()
    platform.incoming.put_nowait(DISCONNECT)
    await asyncio.wait_for(serving, PATIENCE)
    assert streamed.closed()
    assert platform.body == b"one"


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_nothing_is_sent_to_a_client_that_left_in_the_middle_of_a_busy_stream(turns: int) -> None:
    platform = Platform(part(b""))

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        platform.incoming.put_nowait(DISCONNECT)
        for _ in range(turns):
            await asyncio.sleep(0)
        yield b"two"

    async def exchange(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, (), body())

    await platform.run(exchange)
    assert platform.body == b"one"


async def test_a_stream_whose_server_stops_is_closed() -> None:
    platform, streamed = Platform(), Streamed(b"one", hang=True)
    serving = asyncio.create_task(platform.run(streamed))
    await asyncio.wait_for(platform.sent_something.wait(), PATIENCE)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert streamed.closed()


async def test_a_stream_that_breaks_is_an_error_of_the_server_and_not_a_whole_answer() -> None:
    platform, streamed = Platform(), Streamed(b"one", fail=True)
    with pytest.raises(ValueError, match="broken"):
        await platform.run(streamed)
    assert platform.sent[-1] == {"type": "http.response.body", "body": b"one", "more_body": True}


async def test_a_body_that_is_an_iterator_without_a_close_is_sent_too() -> None:
    class Parts:
        def __init__(self) -> None:
            self.left = [b"two", b"one"]

        def __aiter__(self) -> Parts:
            return self

        async def __anext__(self) -> bytes:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    async def exchange(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, (), Parts())

    platform = Platform()
    await platform.run(exchange)
    assert platform.body == b"onetwo"


class Closing(HTTPRuntime):
    """An exchange that counts how often it is closed."""

    def __init__(self) -> None:
        async def exchange(_request: HttpRequest) -> HttpResponse:
            return HttpResponse(200, ())

        super().__init__(exchange)
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1


async def test_lifespan_is_answered_and_shutdown_runs_once() -> None:
    platform, served = Platform({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}), Closing()
    async with asyncio.timeout(PATIENCE):
        await ASGIApplication(served)({"type": "lifespan"}, platform.receive, platform.send)
    assert (served.has_begun, served.closed) == (True, 1)
    assert platform.sent == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


async def test_a_lifespan_message_that_nobody_knows_is_ignored() -> None:
    platform = Platform({"type": "lifespan.unheard_of"}, {"type": "lifespan.shutdown"})
    async with asyncio.timeout(PATIENCE):
        await ASGIApplication(Closing())({"type": "lifespan"}, platform.receive, platform.send)
    assert platform.sent == [{"type": "lifespan.shutdown.complete"}]


def pairs(headers: dict[str, str | None]) -> list[tuple[bytes, bytes]]:
    usual = {
        "host": "127.0.0.1:8000",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    return [(name.encode(), value.encode()) for name, value in {**usual, **headers}.items() if value is not None]


async def test_the_real_endpoint_answers_behind_it() -> None:
    body = per_request("tools/call", {"name": "add"})
    platform = Platform(part(json.dumps(body).encode()))
    await platform.run(Endpoint(tool("add")).exchange, headers=pairs(mirrored(body)))
    assert platform.start["status"] == 200
    message = json.loads(platform.body)
    schemas.validate(message, PER_REQUEST, "tools/call")


async def test_the_real_endpoint_streams_behind_it_and_a_leaving_client_cancels_its_call() -> None:
    stopped = asyncio.Event()

    async def work(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await context.notify("notifications/progress", {"progressToken": "t", "progress": 1})
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return text_result("never")

    body = per_request("tools/call", {"name": "work"})
    platform = Platform(part(json.dumps(body).encode()))
    endpoint = Endpoint(tool("work", work, interactive=True))
    serving = asyncio.create_task(platform.run(endpoint.exchange, headers=pairs(mirrored(body))))
    await asyncio.wait_for(platform.sent_something.wait(), PATIENCE)
    platform.incoming.put_nowait(DISCONNECT)
    await asyncio.wait_for(stopped.wait(), PATIENCE)
    await asyncio.wait_for(serving, PATIENCE)


class NotReading(Platform):
    """A server whose client reads so many messages and then no more."""

    def __init__(self, messages: int) -> None:
        super().__init__(part(b""))
        self._messages = messages

    async def send(self, message: Any) -> None:
        await super().send(message)
        if len(self.sent) > self._messages:
            await asyncio.Event().wait()


@pytest.mark.parametrize("messages", [0, 1, 3])
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_does_not_read_ends_its_response(messages: int, streamed: bool) -> None:
    closed = []

    async def parts() -> AsyncIterator[bytes]:
        try:
            for _ in range(5):
                yield b"part"
        finally:
            closed.append(True)

    async def exchange(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, (), parts() if streamed else b"whole")

    platform = NotReading(messages)
    application = ASGIApplication(HTTPRuntime(exchange, Limits(write_seconds=0.01)))
    await asyncio.wait_for(application(scope(), platform.receive, platform.send), PATIENCE)
    expected = messages + 1 if streamed else min(messages + 1, 2)
    assert len(platform.sent) == expected
    assert closed == ([True] if streamed else [])


@pytest.mark.parametrize(
    ("path", "mount", "sent", "raw_path"),
    [
        ("/a/b", "", b"/a%2Fb?c", "/a%2Fb"),
        ("/a/b", "", None, "/a/b"),
        ("/shop/a/b", "/shop", b"/shop/a%2Fb", "/a%2Fb"),
        ("/shop/a/b", "/shop/", b"/shop%2Fa%2Fb", "%2Fa%2Fb"),
        ("/gr\u00fcn/a/b", "/gr\u00fcn", b"/%67r%C3%BCn/a%2Fb", "/a%2Fb"),
        ("/a/b", "/shop", b"/a%2Fb", "/a%2Fb"),
        ("/shop/a b", "/shop", None, "/a%20b"),
        ("/shop/a", "/shop", b"/elsewhere/b", "/a"),
    ],
)
def test_the_raw_path_below_a_mount_is_the_one_that_was_sent(
    path: str, mount: str, sent: bytes | None, raw_path: str
) -> None:
    made = ASGIRequest(scope(path=path, root_path=mount, raw_path=sent), Platform().receive, Platform().send)
    assert made.raw_path == raw_path


async def test_a_body_in_parts_of_a_byte_is_read_whole() -> None:
    parts = [part(b"%d" % (number % 10), more=number < 999) for number in range(1000)]
    request = ASGIRequest(scope(), Platform(*parts).receive, Platform().send)
    assert await request.read(1000) == b"0123456789" * 100

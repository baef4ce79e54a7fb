"""HTTP+SSE, the transport of 2024-11-05: a stream of events, and POSTs that belong to it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._server.limits import Limits
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.connection import AT_ONCE
from tests import rules
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.patience import PATIENCE
from tests.schemas import validate
from tests.wire.offering import Offering, offer
from tests.wire.peer import Answer, Exchange, initialize, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OLD = "2024-11-05"
HOST = {"host": "127.0.0.1:8000"}
JSON = {**HOST, "content-type": "application/json"}

SERVER = '''
import asyncio

from funcmcp import HTTPOptions, MCPServer

mcp = MCPServer("Streams", http=HTTPOptions(sse="/sse"))


@mcp.tool
async def work() -> str:
    """Take a moment."""
    print("begun", flush=True)
    await asyncio.sleep(1.5)
    return "finished"
'''


class Paced(Exchange):
    """An exchange whose client reads only while `reading` is set."""

    def __post_init__(self) -> None:
        self.reading = asyncio.Event()
        self.reading.set()
        super().__post_init__()

    async def _send(self, message: Any) -> None:
        await self.reading.wait()
        await super()._send(message)


def exchange(
    app: MCPServer, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", *, mount: str = ""
) -> Paced:
    """Begin an exchange; the target is the path below the mount, with the query."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": mount + path,
        "root_path": mount,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8000),
    }
    return Paced(app, scope, [body])


class Stream:
    """An open stream of events, and the POSTs that belong to it.

    Attributes:
        endpoint: the URI that the first event named.
    """

    def __init__(self, app: MCPServer, *, mount: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.app = app
        self.mount = mount
        self.endpoint = ""
        self.opened = exchange(app, "GET", "/sse", {**HOST, **(headers or {})}, mount=mount)

    async def part(self) -> str:
        """Return the next part of the stream."""
        while True:
            message = await asyncio.wait_for(self.opened._news.get(), PATIENCE)
            if message.get("body"):
                return str(message["body"].decode())

    async def begin(self) -> None:
        """Read the event that names the endpoint."""
        name, data, *rest = (await self.part()).split("\n")
        assert (name, rest) == ("event: endpoint", ["", ""])
        self.endpoint = data.removeprefix("data: ")

    async def post(self, message: object, headers: Mapping[str, str] | None = None) -> Answer:
        """Post a message to the endpoint."""
        target = self.endpoint.removeprefix(quote(self.mount))
        return await exchange(
            self.app, "POST", target, {**JSON, **(headers or {})}, to_bytes(message), mount=self.mount
        ).answer()

    async def hear(self) -> Any:
        """Return the next message on the stream."""
        name, data, *rest = (await self.part()).split("\n")
        assert (name, rest) == ("event: message", ["", ""])
        message = json.loads(data.removeprefix("data: "))
        validate(message, OLD)
        return message

    async def works(self) -> None:
        """Fail unless the next call is answered on the stream."""
        answer = await self.post(call("add", {"a": 20, "b": 22}))
        assert (answer.status, answer.body) == (202, b"")
        assert (await self.hear())["result"]["content"][0]["text"] == "42"

    async def leave(self) -> None:
        """Close the stream, as the client."""
        self.opened.leave()
        await self.opened.ended()


def call(name: str, arguments: Mapping[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def served(**options: Any) -> Offering:
    """Return the wire tests' server with this transport."""
    return offer(sse="/sse", **options)


async def until(reached: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - nothing in the server tells of it
            await asyncio.sleep(0)


async def opened(app: MCPServer, *, mount: str = "") -> Stream:
    """Return a stream whose client has shaken hands."""
    stream = Stream(app, mount=mount)
    await stream.begin()
    assert (await stream.post(initialize(OLD))).status == 202
    assert (await stream.hear())["result"]["protocolVersion"] == OLD
    assert (await stream.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status == 202
    return stream


async def test_a_client_opens_a_stream_and_calls() -> None:
    stream = await opened(served().app)
    await stream.works()
    await stream.leave()


async def test_the_stream_says_that_it_is_one() -> None:
    stream = await opened(served().app)
    start = stream.opened._sent[0]
    headers = dict(start["headers"])
    assert (start["status"], headers[b"content-type"]) == (200, b"text/event-stream")
    assert headers[b"cache-control"] == b"no-cache"
    await stream.leave()


@pytest.mark.parametrize(
    ("proxies", "prefix", "path"),
    [
        (1, "/shop", "/shop/sse"),
        (1, "/shop/a/", "/shop/a/sse"),
        (0, "/shop", "/sse"),
        (1, "", "/sse"),
        (1, "//evil.example", "/sse"),
        (1, "https://evil.example", "/sse"),
        (1, "/shop?a=", "/sse"),
    ],
)
async def test_the_endpoint_has_the_prefix_that_a_declared_proxy_has_removed(
    proxies: int, prefix: str, path: str
) -> None:
    app = MCPServer("x", http=HTTPOptions(sse="/sse", proxies=proxies))
    stream = Stream(app, headers={"x-forwarded-prefix": prefix})
    await stream.begin()
    assert stream.endpoint.partition("?session_id=")[0] == path
    await stream.leave()


async def test_the_endpoint_is_a_path_with_the_mount_and_a_secret_that_nobody_can_guess() -> None:
    app = served().app
    streams = [await opened(app, mount="/api/v 1") for _ in range(2)]
    paths, secrets = zip(*(stream.endpoint.split("?session_id=") for stream in streams), strict=True)
    assert set(paths) == {"/api/v%201/sse"}
    assert len(set(secrets)) == 2
    assert min(map(len, secrets)) >= 43
    for stream in streams:
        await stream.works()
        await stream.leave()


async def test_streams_do_not_hear_each_other() -> None:
    offering = served()
    first, second = await opened(offering.app), await opened(offering.app)
    await first.post(call("wait", {"key": "it"}, id="first"))
    await offering.gates.seen("arrived", "it")
    await second.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "first"}})
    await second.works()
    offering.gates.open("it")
    assert (await first.hear())["id"] == "first"
    for stream in (first, second):
        await stream.leave()


async def test_a_slow_call_does_not_hold_up_its_post_or_other_calls() -> None:
    offering = served()
    stream = await opened(offering.app)
    assert (await stream.post(call("wait", {"key": "it"}, id="slow"))).status == 202
    await offering.gates.seen("arrived", "it")
    await stream.works()
    offering.gates.open("it")
    assert (await stream.hear())["id"] == "slow"
    await stream.leave()


async def test_a_client_is_asked_on_the_stream() -> None:
    stream = Stream(served().app)
    await stream.begin()
    await stream.post(initialize(OLD, {"sampling": {}}))
    await stream.hear()
    await stream.post(call("sample"))
    question = await stream.hear()
    assert question["method"] == "sampling/createMessage"
    said = {"role": "assistant", "content": {"type": "text", "text": "Ahoy"}, "model": "m"}
    await stream.post({"jsonrpc": "2.0", "id": question["id"], "result": said})
    assert (await stream.hear())["result"]["content"][0]["text"] == "Ahoy"
    await stream.leave()


async def test_closing_the_stream_ends_the_connection_and_what_is_under_way() -> None:
    offering = served()
    stream = await opened(offering.app)
    await stream.post(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    await stream.leave()
    await offering.gates.seen("cancelled", "it")
    assert (await stream.post(call("nothing"))).status == 404


@pytest.mark.parametrize("query", ["", "?", "?session_id=", "?session_id=unknown", "?session=x"])
async def test_a_post_to_no_stream_is_not_found(query: str) -> None:
    answer = await exchange(served().app, "POST", f"/sse{query}", JSON, to_bytes(call("nothing"))).answer()
    assert answer.outcome == (404, -32600)


@pytest.mark.parametrize("body", [b"", b"x", b"{}", b"[]", b"7", b"\xff"])
async def test_what_is_no_message_is_told_on_the_stream(body: bytes) -> None:
    stream = await opened(served().app)
    assert (await stream.post(body)).status == 202
    assert (await stream.hear())["error"]["code"] in {-32700, -32600}
    await stream.works()
    await stream.leave()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"content-length": "20001"}, 413),
        ({"origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 421),
    ],
)
async def test_a_post_is_checked_as_one_of_streamable_http(headers: dict[str, str], status: int) -> None:
    stream = await opened(served(limits=Limits(message_bytes=20_000)).app)
    assert (await stream.post(call("nothing"), headers)).status == status
    await stream.works()
    await stream.leave()


async def test_a_body_that_is_too_large_is_refused_even_if_it_does_not_say_so() -> None:
    stream = await opened(served(limits=Limits(message_bytes=20_000)).app)
    assert (await stream.post(b" " * 20_001)).status == 413
    await stream.works()
    await stream.leave()


@pytest.mark.parametrize(
    ("headers", "status"), [({"origin": "https://evil.example"}, 403), ({"host": "evil.example"}, 421), ({}, 200)]
)
async def test_a_stream_is_opened_only_for_those_who_may(headers: dict[str, str], status: int) -> None:
    opening = exchange(served().app, "GET", "/sse", {**HOST, **headers})
    first = await asyncio.wait_for(opening._news.get(), PATIENCE)
    assert first["status"] == status
    opening.leave()
    await opening.ended()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    answer = await exchange(served().app, method, "/sse", HOST).answer()
    assert (answer.status, answer.header("allow")) == (405, "GET, POST")


async def test_the_number_of_open_streams_is_bounded() -> None:
    app = served(limits=Limits(streams=2, streams_per_principal=2)).app
    streams = [await opened(app) for _ in range(2)]
    refused = await exchange(app, "GET", "/sse", HOST).answer()
    assert (refused.status, refused.header("retry-after")) == (503, "60")
    await streams[0].leave()
    another = await opened(app)
    await another.works()
    for stream in (streams[1], another):
        await stream.leave()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@rules.verifies(rules.THREAT_27)
@pytest.mark.parametrize("stubborn", [False, True])
async def test_calls_that_wait_for_their_turn_are_dropped_with_their_stream(*, stubborn: bool) -> None:
    """No call starts for a disconnected client, even if earlier calls never end."""
    offering = served()
    ran: list[str] = []
    going_on = asyncio.Event()

    @offering.app.tool
    async def held() -> None:
        ran.append("held")
        while not going_on.is_set():
            try:
                await going_on.wait()
            except asyncio.CancelledError:
                if not stubborn:
                    raise

    stream = await opened(offering.app)
    for _ in range(AT_ONCE):
        await stream.post(call("held"))
    posts = [asyncio.create_task(stream.post(call("held"))) for _ in range(100)]
    load = runtime_of(offering.app).server.load
    await until(lambda: load.requests.used == len(posts))
    await stream.leave()
    answers = await asyncio.wait_for(asyncio.gather(*posts), PATIENCE)
    assert {answer.status for answer in answers} == {404}
    assert len(ran) == AT_ONCE
    going_on.set()
    await until(lambda: load.runs.used == 0)
    assert load.requests.used == 0
    assert len(ran) == AT_ONCE


async def test_a_client_that_does_not_read_loses_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._transports.http.endpoints.http_sse._MAX_QUEUED", 1)
    offering = served(limits=Limits(write_seconds=0.01))
    stream = await opened(offering.app)
    await stream.post(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    stream.opened.reading.clear()
    for _ in range(3):
        await stream.post(call("nothing"))
    await offering.gates.seen("cancelled", "it")
    stream.opened.reading.set()
    await stream.opened.ended()
    assert (await stream.post(call("nothing"))).status == 404


async def test_a_comment_keeps_a_silent_stream_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._transports.http.streams.sse.KEEP_ALIVE_SECONDS", 0.01)
    stream = Stream(served().app)
    await stream.begin()
    assert await stream.part() == ": keep-alive\n\n"
    await stream.leave()


async def test_calls_in_flight_are_answered_before_the_stream_ends_with_the_server() -> None:
    offering = served()
    stream = await opened(offering.app)
    await stream.post(call("wait", {"key": "it"}, id=7))
    await offering.gates.seen("arrived", "it")
    runtime_of(offering.app).drain()
    offering.gates.open("it")
    answer = await stream.hear()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "it")
    await stream.opened.ended()


async def test_a_call_that_does_not_finish_with_the_server_is_cancelled() -> None:
    offering = served()
    runtime_of(offering.app).server.drain.seconds = 0.01
    stream = await opened(offering.app)
    await stream.post(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    runtime_of(offering.app).drain()
    await stream.opened.ended()
    assert offering.gates.was("cancelled", "it")


async def test_a_question_that_nobody_can_answer_any_more_does_not_hold_up_the_end() -> None:
    offering = served()
    stream = Stream(offering.app)
    await stream.begin()
    await stream.post(initialize("2025-11-25", {"elicitation": {}}))
    await stream.part()
    await stream.post(call("ask"))
    assert '"elicitation/create"' in await stream.part()
    runtime_of(offering.app).drain()
    assert '"isError":true' in await stream.part()
    await stream.opened.ended()


async def test_without_the_option_there_is_no_such_endpoint() -> None:
    assert (await exchange(offer().app, "GET", "/sse", HOST).answer()).status == 404


async def test_streamable_http_is_served_beside_it() -> None:
    answer = await exchange(served().app, "POST", "/mcp", JSON, to_bytes(initialize("2025-11-25"))).answer()
    assert answer.result["protocolVersion"] == "2025-11-25"


def test_the_path_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="sse must begin with a slash"):
        HTTPOptions(sse="sse")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_signal_lets_calls_in_flight_be_answered_on_the_stream(tmp_path: Path) -> None:
    file = tmp_path / "streams.py"
    file.write_text(SERVER, encoding="utf-8")
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(running([*FUNCMCP, "run", str(file), "--port", "0"]))
        address = urlsplit(process.endpoint()).netloc
        stream = stack.enter_context(contextlib.closing(http.client.HTTPConnection(address, timeout=PATIENCE)))
        stream.request("GET", "/sse")
        events = stream.getresponse()
        endpoint = _data(events)
        for message in (initialize(OLD), call("work")):
            posts = stack.enter_context(contextlib.closing(http.client.HTTPConnection(address, timeout=PATIENCE)))
            posts.request("POST", endpoint, json.dumps(message), {"content-type": "application/json"})
            assert posts.getresponse().status == 202
        _data(events)
        process.line_with("begun")
        process.process.terminate()
        answer = json.loads(_data(events))
        assert process.ended() == 0
    assert answer["result"]["content"][0]["text"] == "finished"


def _data(events: http.client.HTTPResponse) -> str:
    """Return the data of the next event."""
    line = events.readline()
    while not line.startswith(b"data: "):
        assert line, "the stream ended"
        line = events.readline()
    return line.removeprefix(b"data: ").decode().strip()

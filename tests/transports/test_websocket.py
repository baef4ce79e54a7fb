"""WebSockets: by hand over ASGI, and with ``funcmcp run`` on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._server.limits import Limits
from funcmcp._serving.composition import runtime_of
from tests import rules
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP, Running
from tests.patience import PATIENCE
from tests.schemas import validate
from tests.transports.websocket_client import Client
from tests.wire.offering import Offering, offer
from tests.wire.peer import ERAS, HANDSHAKE, META, PER_REQUEST, initialize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.lowest("wsproto reads and writes the frames."),
]

HOST = {"host": "127.0.0.1:8000"}
SERVER = '''
import asyncio

from funcmcp import HTTPOptions, Limits, MCPServer, Context

mcp = MCPServer("Sockets", http=HTTPOptions(websocket="/ws"), limits=Limits(message_bytes=20_000))


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
async def work() -> str:
    """Take a moment."""
    print("begun", flush=True)
    await asyncio.sleep(1.5)
    return "finished"


@mcp.tool
async def ask(context: Context) -> str:
    """Ask for a name."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return (await context.elicit("Your name?", form, key="name")).action
'''


class Opened:
    """A WebSocket, driven by hand."""

    def __init__(
        self,
        app: MCPServer,
        headers: Mapping[str, str] | None = None,
        *,
        path: str = "/ws",
        mount: str = "",
        subprotocols: Sequence[str] = ("mcp",),
        denial: bool = True,
    ) -> None:
        scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": mount + path,
            "root_path": mount,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in {**HOST, **(headers or {})}.items()],
            "subprotocols": list(subprotocols),
            "server": ("127.0.0.1", 8000),
            "extensions": {"websocket.http.response": {}} if denial else {},
        }
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.outgoing: asyncio.Queue[Any] = asyncio.Queue()
        self.incoming.put_nowait({"type": "websocket.connect"})
        self.gone = False
        self.reads = asyncio.Event()
        self.reads.set()
        self._task = asyncio.ensure_future(app(scope, self.incoming.get, self._send))

    async def _send(self, message: Any) -> None:
        await self.reads.wait()
        if self.gone:
            raise OSError("gone")
        self.outgoing.put_nowait(message)

    async def next(self) -> Any:
        """Return what the application sends next."""
        return await asyncio.wait_for(self.outgoing.get(), PATIENCE)

    def say(self, message: object) -> None:
        """Send a message."""
        text = message if isinstance(message, str) else json.dumps(message)
        self.incoming.put_nowait({"type": "websocket.receive", "text": text})

    async def hear(self) -> Any:
        """Return the next message."""
        sent = await self.next()
        assert sent["type"] == "websocket.send"
        return json.loads(sent["text"])

    async def leave(self) -> None:
        """Disconnect."""
        self.gone = True
        self.incoming.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await self.ended()

    async def ended(self) -> None:
        """Wait until the application is done."""
        await asyncio.wait_for(asyncio.shield(self._task), PATIENCE)


def call(name: str, arguments: Mapping[str, Any] | None = None, *, revision: str = HANDSHAKE, id: object = 1) -> Any:
    meta = {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": {}}
    params = {"name": name, "arguments": arguments or {}, **({"_meta": meta} if revision == PER_REQUEST else {})}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


async def opened(offering: Offering, **options: Any) -> Opened:
    """Return an open WebSocket whose client has shaken hands."""
    socket = Opened(offering.app, **options)
    assert await socket.next() == {"type": "websocket.accept", "subprotocol": "mcp"}
    socket.say(initialize(HANDSHAKE, {"elicitation": {}}))
    assert (await socket.hear())["result"]["protocolVersion"] == HANDSHAKE
    return socket


@pytest.mark.parametrize("mount", ["", "/api"])
async def test_a_client_opens_it_and_calls(mount: str) -> None:
    socket = await opened(offer(websocket="/ws"), mount=mount)
    socket.say(call("add", {"a": 20, "b": 22}))
    assert (await socket.hear())["result"]["content"][0]["text"] == "42"
    await socket.leave()


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"headers": {"host": "evil.example"}}, 421),
        ({"headers": {"origin": "https://evil.example"}}, 403),
        ({"path": "/mcp"}, 404),
        ({"subprotocols": []}, 400),
        ({"subprotocols": ["graphql-ws"]}, 400),
    ],
)
async def test_it_is_refused_before_it_is_open(options: dict[str, Any], status: int) -> None:
    socket = Opened(offer(websocket="/ws").app, **options)
    start, body = await socket.next(), await socket.next()
    await socket.ended()
    assert (start["type"], start["status"]) == ("websocket.http.response.start", status)
    assert dict(start["headers"])[b"content-length"] == b"%d" % len(body["body"])


async def test_where_the_server_can_not_send_a_refusal_it_is_closed() -> None:
    socket = Opened(offer(websocket="/ws").app, {"origin": "https://evil.example"}, denial=False)
    assert await socket.next() == {"type": "websocket.close"}
    await socket.ended()


async def test_an_origin_that_is_allowed_for_http_is_allowed_here() -> None:
    offering = offer(websocket="/ws", http=HTTPOptions(allowed_origins=["https://app.example"]))
    socket = await opened(offering, headers={"origin": "https://app.example"})
    await socket.leave()


async def test_without_the_option_there_is_no_websocket() -> None:
    socket = Opened(offer().app)
    assert (await socket.next())["status"] == 404
    await socket.ended()


async def test_a_binary_message_closes_it() -> None:
    socket = await opened(offer(websocket="/ws"))
    socket.incoming.put_nowait({"type": "websocket.receive", "bytes": b"{}", "text": None})
    closed = await socket.next()
    await socket.ended()
    assert (closed["type"], closed["code"]) == ("websocket.close", 1003)


@pytest.mark.parametrize(("character", "count"), [("x", 20_001), ("€", 6_667)])
async def test_a_message_that_is_too_long_closes_it(character: str, count: int) -> None:
    socket = await opened(offer(websocket="/ws", limits=Limits(message_bytes=20_000)))
    socket.say(character * count)
    closed = await socket.next()
    await socket.ended()
    assert (closed["type"], closed["code"]) == ("websocket.close", 1009)


@pytest.mark.parametrize("text", ["", "x", "[]", '{"a":1}', "\ud800"])
async def test_what_is_no_message_is_answered_with_an_error(text: str) -> None:
    socket = await opened(offer(websocket="/ws"))
    socket.say(text)
    assert (await socket.hear())["error"]["code"] in {-32700, -32600}
    socket.say(call("nothing"))
    assert (await socket.hear())["result"]["content"][0]["text"] == "nothing"
    await socket.leave()


async def test_a_client_that_leaves_cancels_what_is_under_way() -> None:
    offering = offer(websocket="/ws")
    socket = await opened(offering)
    socket.say(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    await socket.leave()
    assert offering.gates.was("cancelled", "it")


async def test_what_is_sent_to_a_client_that_has_just_left_is_dropped() -> None:
    offering = offer(websocket="/ws")
    socket = await opened(offering)
    socket.say(call("wait", {"key": "it"}))
    await offering.gates.seen("arrived", "it")
    socket.gone = True  # sending fails, and the message that says so has not come yet
    offering.gates.open("it")
    await offering.gates.seen("left", "it")
    await socket.leave()


async def test_calls_in_flight_are_answered_before_it_is_closed_with_the_server() -> None:
    offering = offer(websocket="/ws")
    socket = await opened(offering)
    socket.say(call("wait", {"key": "it"}, id=7))
    await offering.gates.seen("arrived", "it")
    socket.say(call("ask", id=8))
    question = await socket.hear()
    runtime_of(offering.app).drain()
    socket.say({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert (await socket.hear())["id"] == 8
    offering.gates.open("it")
    answer = await socket.hear()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "it")
    assert await socket.next() == {"type": "websocket.close", "code": 1001, "reason": "The server ends."}
    await socket.ended()


async def test_a_client_that_does_not_read_is_given_up_though_it_stays_connected() -> None:
    socket = await opened(offer(websocket="/ws", limits=Limits(write_seconds=0.01)))
    socket.reads.clear()
    socket.say(call("add", {"a": 1, "b": 2}))
    await socket.ended()
    assert socket.outgoing.empty()


async def test_a_client_that_does_not_read_why_it_is_closed_is_given_up() -> None:
    socket = await opened(offer(websocket="/ws", limits=Limits(write_seconds=0.01)))
    socket.reads.clear()
    socket.incoming.put_nowait({"type": "websocket.receive", "bytes": b"binary"})
    await socket.ended()
    assert socket.outgoing.empty()


def test_the_path_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="websocket must begin with a slash"):
        HTTPOptions(websocket="ws")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, int]]:
    """A server process, and its port."""
    path: Path = tmp_path_factory.mktemp("sockets") / "sockets.py"
    path.write_text(SERVER.lstrip("\n"), encoding="utf-8")
    with running([*FUNCMCP, "run", str(path), "--port", "0"]) as process:
        yield process, urlsplit(process.endpoint()).port or 0


@pytest.fixture
def port(served: tuple[Running, int]) -> int:
    return served[1]


@contextlib.contextmanager
def client(port: int, **options: Any) -> Iterator[Client]:
    made = Client(port, **options)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("revision", ERAS)
def test_a_real_client_calls_in_both_eras(port: int, revision: str) -> None:
    with client(port, subprotocols=["other", "mcp"]) as socket:
        assert socket.accepted is not None
        assert socket.accepted.subprotocol == "mcp"
        if revision == HANDSHAKE:
            socket.say(initialize(HANDSHAKE))
            socket.hear()
        socket.say(call("add", {"a": 1, "b": 2}, revision=revision))
        answer = socket.hear()
    validate(answer, revision, "tools/call")
    assert answer["result"]["content"][0]["text"] == "3"


def test_a_real_client_is_asked(port: int) -> None:
    with client(port) as socket:
        socket.say(initialize(HANDSHAKE, {"elicitation": {}}))
        socket.hear()
        socket.say(call("ask"))
        question = socket.hear()
        socket.say({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert socket.hear()["result"]["content"][0]["text"] == "decline"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"headers": {"origin": "https://evil.example"}}, 403),
        ({"headers": {"host": "evil.example"}}, 421),
        ({"path": "/none"}, 404),
        ({"subprotocols": ["other"]}, 400),
    ],
)
def test_a_real_client_is_refused_with_a_status(port: int, options: dict[str, Any], status: int) -> None:
    with client(port, **options) as socket:
        assert socket.rejected == status


def test_a_real_binary_frame_closes_it(port: int) -> None:
    with client(port) as socket:
        socket.say_bytes(b"{}")
        assert socket.closed_with() == 1003


@rules.verifies(rules.THREAT_47)
def test_a_real_client_that_offers_compression_is_not_taken_up_on_it(port: int) -> None:
    """A compressed message could become very large."""
    with client(port, headers={"sec-websocket-extensions": "permessage-deflate"}) as socket:
        assert socket.accepted is not None
        assert socket.accepted.extensions == []
        assert not [name for name, _ in socket.accepted.extra_headers if name.lower() == b"sec-websocket-extensions"]


def test_a_real_message_that_is_too_long_closes_it(port: int) -> None:
    with client(port) as socket:
        socket.say("x" * 20_001)
        assert socket.closed_with() == 1009


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_the_end_of_the_server_answers_calls_in_flight_and_closes_it(served: tuple[Running, int]) -> None:
    process, port = served
    with client(port) as socket, client(port) as idle:
        for opened in (socket, idle):
            opened.say(initialize(HANDSHAKE))
            opened.hear()
        socket.say(call("work"))
        process.line_with("begun")
        process.process.terminate()
        assert idle.closed_with() == 1001
        assert socket.hear()["result"]["content"][0]["text"] == "finished"
        assert socket.closed_with() == 1001
        assert process.ended() == 0
    assert "Traceback" not in process.output

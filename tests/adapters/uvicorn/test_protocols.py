"""What a connection takes in: sizes, trailers, upgrades and requests behind each other, with both HTTP parsers."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from funcmcp import MCPServer
from funcmcp._adapters.http1.connection import HTTPConnection
from funcmcp._adapters.http1.h11_parser import H11Parser
from funcmcp._adapters.http1.httptools_parser import HttptoolsParser
from funcmcp._adapters.uvicorn.protocols import http_protocol, websocket_protocol
from funcmcp._processes import uvicorn_server
from funcmcp._server.limits import Limits
from tests.patience import PATIENCE
from tests.wire.conftest import running_server

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from typing import Literal, TypeAlias

    Parser: TypeAlias = Literal["httptools", "h11"]

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP."),
]

MOST = 4000
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
GOOD = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
CHUNKED = b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\nx-sent: yes\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large"


class Echo:
    """Answers with what it got of each request, as JSON; the list of all requests is kept."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        incomplete = True
        while incomplete:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            incomplete = message.get("more_body", False)
        names = [name.decode() for name, _ in scope["headers"]]
        self.requests.append({"path": scope["path"], "names": names, "body": body.decode()})
        answer = json.dumps(self.requests[-1]).encode()
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})


@pytest.fixture(params=["httptools", "h11"])
def parser(request: pytest.FixtureRequest) -> Parser:
    chosen: Parser = request.param
    return chosen


@contextmanager
def serving(app: Any, parser: Parser, limits: Limits) -> Iterator[int]:
    """Serve an application in a thread; give the port."""
    protocol = http_protocol(limits, parser)
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None)
    with running_server(uvicorn.Server(config)) as port:
        yield port


@pytest.fixture
def port(parser: Parser) -> Iterator[int]:
    limits = Limits(header_bytes=MOST)
    with serving(MCPServer("Bounded", limits=limits), parser, limits) as port:
        yield port


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def echo_port(parser: Parser, echo: Echo) -> Iterator[int]:
    with serving(echo, parser, Limits(header_bytes=MOST)) as port:
        yield port


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    """Read until the server ends the connection."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:  # it had more to read when it ended
        pass
    return received


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Read one answer and nothing behind it."""
    with connection.makefile("rb", buffering=0) as stream:
        status = int(stream.readline().split()[1])
        length = 0
        while (line := stream.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = b""
        while len(body) < length:
            body += stream.read(length - len(body))
        return status, body


def good(fields: bytes = b"") -> bytes:
    return GOOD % (len(PING), fields, PING)


def refused(text: bytes) -> tuple[bytes, Any]:
    head, _, body = text.partition(b"\r\n\r\n")
    return head.splitlines()[0], json.loads(body)["error"]["code"]


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nhost: ", b"GET / HTTP/1.1\r\n", b"GET /"])
def test_a_header_that_never_ends_is_431_once_it_is_too_large(port: int, begin: bytes) -> None:
    with connect(port) as connection:
        connection.sendall(begin)
        line = b"x: y\r\n" if begin.endswith(b"\n") else b"xxxxxx"
        connection.sendall(line * (MOST // len(line) + 1))
        assert refused(everything(connection)) == (TOO_LARGE, -32600)
    with connect(port) as connection:
        connection.sendall(good())
        assert answer(connection)[0] == 400  # there is no session, but it was read


def test_a_header_within_the_bound_may_come_in_pieces_and_again(port: int) -> None:
    with connect(port) as connection:
        for _ in range(3):
            for byte in good(b"x-long: %b\r\n" % (b"y" * 3000)).splitlines(keepends=True):
                connection.sendall(byte)
            assert answer(connection)[0] == 400


def test_what_is_whole_but_too_large_is_refused_by_the_endpoint(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(good(b"x-long: %b\r\n" % (b"y" * MOST)))
        assert answer(connection)[0] == 431


def test_a_header_that_begins_behind_a_request_is_bounded_too(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(good())
        assert answer(connection)[0] == 400
        connection.sendall(b"GET / HTTP/1.1\r\nx-long: " + b"x" * MOST)
        assert refused(everything(connection))[0] == TOO_LARGE


def test_a_body_is_no_header(port: int) -> None:
    body = b" " * MOST * 3 + PING
    with connect(port) as connection:
        connection.sendall(GOOD % (len(body), b"", b""))
        for start in range(0, len(body), 1000):
            connection.sendall(body[start : start + 1000])
        assert answer(connection)[0] == 400


@pytest.mark.parametrize("in_one", [True, False])
def test_trailers_never_reach_the_headers(echo_port: int, echo: Echo, in_one: bool) -> None:
    head, remainder = CHUNKED, b"2\r\nhi\r\n0\r\nX-Client-Certificate: CN=alice\r\nx-sent: twice\r\n\r\n"
    with connect(echo_port) as connection:
        for part in [head + remainder] if in_one else [head, *remainder.splitlines(keepends=True)]:
            connection.sendall(part)
        status, body = answer(connection)
        connection.sendall(CHUNKED + b"0\r\n\r\n")  # the connection stays good
        assert answer(connection)[0] == 200
    expected = ["host", "transfer-encoding", "x-sent"]
    assert (status, json.loads(body)) == (200, {"path": "/echo", "names": expected, "body": "hi"})
    assert [request["names"] for request in echo.requests] == [expected, expected]


@pytest.mark.parametrize(
    "endless",
    [b"0\r\n" + b"x: y\r\n" * MOST, b"0\r\nx: " + b"y" * 3 * MOST, b"1;" + b"e" * 3 * MOST, b"0" * 3 * MOST],
    ids=["trailers", "trailer", "extension", "size"],
)
def test_what_never_ends_behind_a_header_is_bounded_like_the_header(echo_port: int, echo: Echo, endless: bytes) -> None:
    with connect(echo_port) as connection:
        try:
            connection.sendall(CHUNKED)
            connection.sendall(endless)
        except ConnectionError:  # it was refused before its end
            pass
        text = everything(connection)
    assert text[:12] in {b"HTTP/1.1 431", b"HTTP/1.1 400"}
    assert echo.requests == []


def test_chunks_of_one_byte_are_not_counted_as_a_header(echo_port: int, echo: Echo) -> None:
    with connect(echo_port) as connection:
        connection.sendall(CHUNKED + b"1\r\nx\r\n" * 2 * MOST + b"0\r\n\r\n")
        assert answer(connection)[0] == 200
    assert echo.requests[0]["body"] == "x" * 2 * MOST


def test_a_header_of_many_small_fields_is_431_before_its_end(parser: Parser) -> None:
    """Each field takes far more room than its text, and with h11 far more time."""
    limits = Limits()
    with serving(Echo(), parser, limits) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 2000)
        assert refused(everything(connection))[0] == TOO_LARGE


@pytest.mark.parametrize("in_one", [True, False])
@pytest.mark.parametrize("upgrade", [b"h2c", b"h2c, websocket", b"x"])
def test_the_body_behind_an_upgrade_is_not_the_next_request(
    echo_port: int, echo: Echo, upgrade: bytes, in_one: bool
) -> None:
    """A proxy in front takes it for a body and checks none of its header fields."""
    hidden = b"GET /hidden HTTP/1.1\r\nhost: 127.0.0.1\r\nx-client-certificate: CN=alice\r\n\r\n"
    head = b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: %b\r\n"
    head = head % upgrade + b"content-length: %d\r\n\r\n" % len(hidden)
    next_one = b"GET /next HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with connect(echo_port) as connection:
        if in_one:
            connection.sendall(head + hidden + next_one)
            assert json.loads(answer(connection)[1])["body"] == hidden.decode()
        else:
            connection.sendall(head)
            connection.sendall(hidden)
            assert json.loads(answer(connection)[1])["body"] == hidden.decode()
            connection.sendall(next_one)
        assert json.loads(answer(connection)[1])["path"] == "/next"
    assert [request["path"] for request in echo.requests] == ["/echo", "/next"]


def test_connect_is_refused(echo_port: int, echo: Echo) -> None:
    with connect(echo_port) as connection:
        connection.sendall(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert everything(connection).startswith(b"HTTP/1.1 ") or echo.requests
    assert all(request["path"] != "/hidden" for request in echo.requests)


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("path", [b"/mcp", b"/other"])
def test_a_request_without_host_is_400(port: int, version: bytes, path: bytes) -> None:
    with connect(port) as connection:
        connection.sendall(
            b"POST %b HTTP/%b\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}" % (path, version)
        )
        assert answer(connection)[0] == 400


def test_a_request_with_two_lengths_is_400_and_what_follows_is_not_parsed(port: int) -> None:
    """RFC 9112 section 6.1: a proxy in front may have used the other length."""
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(PING), PING)
    with connect(port) as connection:
        connection.sendall(GOOD % (len(chunks), b"transfer-encoding: chunked\r\n", chunks) + good())
        text = everything(connection)
    assert text.startswith(b"HTTP/1.1 400 ")
    assert text.count(b"HTTP/1.1 ") == 1


def test_the_server_takes_the_parser_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(message_seconds=7)
    assert http_protocol(limits).parser_class is HttptoolsParser
    monkeypatch.setitem(sys.modules, "httptools", None)
    chosen = http_protocol(limits)
    assert chosen.parser_class is H11Parser
    assert chosen.limits is limits


def test_there_are_no_websockets_without_a_library_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert websocket_protocol(Limits()) == "none"


def test_the_servers_own_limits_are_half_a_minute_and_a_minute() -> None:
    server = uvicorn_server.UvicornServer(Echo(), lambda: None)
    server.config.load()
    http: Any = server.config.http_protocol_class
    websocket: Any = server.config.ws_protocol_class
    assert (http.limits.message_seconds, http.limits.write_seconds) == (30.0, 60.0)
    assert issubclass(http, HTTPConnection)
    assert issubclass(websocket, WSProtocol)
    assert http.unsent is websocket.unsent
    assert websocket.limits.write_seconds == 60.0
    assert server.config.ws_per_message_deflate is False


def test_a_websocket_whose_client_does_not_read_is_cut_off() -> None:
    """Even where all that is unsent is little, and the application has ended."""

    async def talkative(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "websocket.accept"})
        for _ in range(30):
            await send({"type": "websocket.send", "text": "x" * 1_000_000})

    limits = Limits(write_seconds=0.1)
    config = uvicorn.Config(
        talkative, http=http_protocol(limits), ws=websocket_protocol(limits), lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    with running_server(server) as port, connect(port) as connection:
        connection.sendall(
            b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert connection.recv(12) == b"HTTP/1.1 101"
        end = time.monotonic() + PATIENCE
        while server.server_state.connections and time.monotonic() < end:
            time.sleep(0.01)
        assert not server.server_state.connections


async def large_response_or_websocket(scope: Any, receive: Any, send: Any) -> None:
    """Answer HTTP with ten million bytes, and take a WebSocket."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10000000")]})
        await send({"type": "http.response.body", "body": b"x" * 10_000_000})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


UPGRADE = (
    b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PING_FRAME = b"\x89\xfd\0\0\0\0" + b"x" * 125


@contextmanager
def unread_before_websocket(parser: Parser, limits: Limits) -> Iterator[tuple[socket.socket, asyncio.Transport]]:
    """Open a WebSocket on a connection whose large response the client has not read."""
    config = uvicorn.Config(
        large_response_or_websocket,
        http=http_protocol(limits, parser),
        ws=websocket_protocol(limits),
        lifespan="off",
        log_config=None,
    )
    server = uvicorn.Server(config)
    with running_server(server) as port, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        connection.sendall(UPGRADE)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found: list[Any] = [item for item in server.server_state.connections if isinstance(item, WSProtocol)]
            if found:
                break
            time.sleep(0.01)
        yield connection, found[0].transport


@pytest.mark.slow("Much is sent in small parts.")
def test_pongs_do_not_pile_up_behind_a_response_that_is_not_read(parser: Parser) -> None:
    with unread_before_websocket(parser, Limits()) as (connection, transport):
        waiting = transport.get_write_buffer_size()
        assert waiting
        connection.sendall(PING_FRAME * 2000)
        time.sleep(0.5)
        assert transport.get_write_buffer_size() <= waiting + 1000


@pytest.mark.slow("Much data is sent.")
def test_a_websocket_stays_open_once_the_response_before_it_is_read(parser: Parser) -> None:
    seconds = 1.0
    with unread_before_websocket(parser, Limits(write_seconds=seconds)) as (connection, transport):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        read = 12
        while read < 10_000_000:
            read += len(connection.recv(1_000_000))
        time.sleep(2 * seconds)
        assert not transport.is_closing()

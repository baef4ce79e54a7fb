"""Headers that are too large, on real sockets."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp.adapters import uvicorn as adapter
from funcmcp.server.limits import Limits
from tests.wire.conftest import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 10.0
MOST = 4000
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
GOOD = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"


@contextmanager
def serving() -> Iterator[int]:
    """Serve an application as `mcp.run()` does, in a thread; give the port."""
    app = MCPServer("Bounded", limits=Limits(header_bytes=MOST))
    with running_server(adapter._Server(app, lambda: None)) as port:
        yield port


@pytest.fixture
def port() -> Iterator[int]:
    with serving() as port:
        yield port


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    """Read until the server ends the connection."""
    found = b""
    try:
        while part := connection.recv(65_536):
            found += part
    except ConnectionResetError:  # it had more to read when it ended
        pass
    return found


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Read one answer."""
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        length = 0
        while (line := stream.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, stream.read(length)


def good(more: bytes = b"") -> bytes:
    return GOOD % (len(PING), more, PING)


def refused(text: bytes) -> tuple[bytes, Any]:
    head, _, body = text.partition(b"\r\n\r\n")
    return head.splitlines()[0], json.loads(body)["error"]["code"]


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nhost: ", b"GET / HTTP/1.1\r\n", b"GET /"])
def test_a_header_that_never_ends_is_431_once_it_is_too_large(port: int, begin: bytes) -> None:
    with connect(port) as connection:
        connection.sendall(begin)
        line = b"x: y\r\n" if begin.endswith(b"\n") else b"xxxxxx"
        connection.sendall(line * (MOST // len(line) + 1))
        assert refused(everything(connection)) == (b"HTTP/1.1 431 Request Header Fields Too Large", -32600)
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
        assert refused(everything(connection))[0] == b"HTTP/1.1 431 Request Header Fields Too Large"


def test_a_body_is_no_header(port: int) -> None:
    body = b" " * MOST * 3 + PING
    with connect(port) as connection:
        connection.sendall(GOOD % (len(body), b"", b""))
        for start in range(0, len(body), 1000):
            connection.sendall(body[start : start + 1000])
        assert answer(connection)[0] == 400

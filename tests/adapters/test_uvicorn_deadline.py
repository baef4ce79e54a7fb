"""The time limit for sending a request, on real connections to both of uvicorn's HTTP protocols."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from funcmcp.adapters.uvicorn_deadline import SECONDS, with_deadline

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

PATIENCE = 10.0
SHORT = 0.05
"""Seconds after which the servers of these tests lose patience, if they do."""

HEAD = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
LATE = b"HTTP/1.1 408 Request Timeout\r\n"


class Application:
    """Reads the body, unless told to answer before; waits, where it is told to, until it is let go."""

    def __init__(self) -> None:
        self.gone = threading.Event()
        self.held = threading.Event()
        self.go_on = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        more = scope["path"] != "/refused"
        while more:
            message = await receive()
            more = message.get("more_body", False)
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
        if scope["path"] == "/held":
            await self.hold()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def hold(self) -> None:
        import asyncio

        self.held.set()
        assert await asyncio.to_thread(self.go_on.wait, PATIENCE)


@pytest.fixture(params=[HttpToolsProtocol, H11Protocol])
def protocol(request: pytest.FixtureRequest) -> type[asyncio.Protocol]:
    found: type[asyncio.Protocol] = request.param
    return found


@contextlib.contextmanager
def serving(app: Application, protocol: type[asyncio.Protocol], seconds: float) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app, http=with_deadline(protocol, seconds), loop="asyncio", ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as line:
        yield line


def until_the_end(line: socket.socket) -> bytes:
    """Return all that comes until the other side closes the connection."""
    found = b""
    while part := line.recv(65536):
        found += part
    return found


@pytest.mark.parametrize("begun", [b"", b"P", HEAD[:-2], b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9])
def test_a_head_that_does_not_come_to_its_end_is_408_and_the_end(
    protocol: type[asyncio.Protocol], begun: bytes
) -> None:
    with serving(Application(), protocol, SHORT) as port, connected(port) as line:
        line.sendall(begun)
        answer = until_the_end(line)
    assert answer.startswith(LATE)
    assert b"connection: close\r\n" in answer


@pytest.mark.parametrize("begun", [HEAD, HEAD + b"123"])
def test_a_body_that_does_not_come_to_its_end_is_408_and_the_application_is_told(
    protocol: type[asyncio.Protocol], begun: bytes
) -> None:
    app = Application()
    with serving(app, protocol, SHORT) as port, connected(port) as line:
        line.sendall(begun)
        assert until_the_end(line).startswith(LATE)
        assert app.gone.wait(PATIENCE)


def test_each_byte_does_not_buy_more_time(protocol: type[asyncio.Protocol]) -> None:
    with serving(Application(), protocol, SHORT) as port, connected(port) as line:
        line.settimeout(SHORT / 10)
        line.sendall(HEAD[:-2])
        answer = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(10_000):
                line.sendall(b"a: b\r\n")
                with contextlib.suppress(TimeoutError):
                    answer = line.recv(65536)
                    break
    assert answer.startswith(LATE)


def test_the_next_request_of_a_connection_has_the_same_time(protocol: type[asyncio.Protocol]) -> None:
    with serving(Application(), protocol, SHORT) as port, connected(port) as line:
        line.sendall(HEAD + b"1234")
        assert line.recv(65536).startswith(OK)
        line.sendall(HEAD[:-2])
        assert until_the_end(line).removeprefix(b"ok").startswith(LATE)


def test_a_request_that_was_answered_before_its_body_came_gets_no_second_answer(
    protocol: type[asyncio.Protocol],
) -> None:
    with serving(Application(), protocol, SHORT) as port, connected(port) as line:
        line.sendall(HEAD.replace(b"/ ", b"/refused ", 1))
        answer = until_the_end(line)
    assert answer.startswith(OK)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_call_may_take_longer_than_its_request(protocol: type[asyncio.Protocol]) -> None:
    """The beginning of a next request comes behind it, so that there is something to wait for meanwhile."""
    app = Application()
    with serving(app, protocol, SHORT) as port, connected(port) as line, connected(port) as other:
        line.sendall(HEAD.replace(b"/ ", b"/held ", 1) + b"1234")
        assert app.held.wait(PATIENCE)
        line.sendall(HEAD[:9])
        other.sendall(HEAD[:9])
        assert until_the_end(other).startswith(LATE)  # by now, time would be over for the first one, too
        app.go_on.set()
        assert line.recv(65536).startswith(OK)


def test_a_request_in_parts_that_comes_in_time_is_answered(protocol: type[asyncio.Protocol]) -> None:
    with serving(Application(), protocol, PATIENCE) as port, connected(port) as line:
        for part in re.findall(b".{1,7}", HEAD + b"1234", re.DOTALL):
            line.sendall(part)
        assert line.recv(65536).startswith(OK)


def test_the_servers_own_limit_is_half_a_minute() -> None:
    from funcmcp.adapters.uvicorn import _Server

    server = _Server(Application(), lambda: None)
    server.config.load()
    chosen: Any = server.config.http_protocol_class
    assert (chosen._seconds, SECONDS) == (30.0, 30.0)
    assert issubclass(chosen, HttpToolsProtocol | H11Protocol)
    assert server.config.ws_per_message_deflate is False

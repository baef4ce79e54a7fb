"""Bytes of a connection through both of the HTTP protocols that `funcmcp run` serves with, on a transport in memory.

An input is one byte that chooses how the rest comes in (the size of the segments, whether the client reads), and the
bytes that a client sends. Whatever they are: nothing fails, what waits is bounded, a connection that waits for its
client has a timer after each event, responses are whole and in the order of their requests, the two parsers agree about
what a request holds, and nothing is left when the client has gone.

Inputs with a POST to `/direct` are also played to an exchange, without and through ASGI. Both must send the same bytes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from random import Random
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.server import ServerState

from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
from funcmcp._adapters.http1.connection import HIGH_WATER_BYTES, LAST_REQUEST_SECONDS, LINGER_SECONDS
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.http1.h11_parser import H11Parser
from funcmcp._adapters.http1.parser import MAX_FIELDS, SLICE_BYTES
from funcmcp._adapters.http1.states import TIMED, State
from funcmcp._adapters.uvicorn.protocols import http_protocol
from funcmcp._server.limits import Limits
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from funcmcp._adapters.http1.connection import HTTPConnection
    from funcmcp._transports.http.messages import HttpRequest

_LIMITS = Limits(header_bytes=1000)
_SEGMENTS = (1, 7, 64, 1000, SLICE_BYTES, 100_000)
_MARK = 1000  # bytes of the transport's buffer above which it asks to pause
_MOST_TURNS = 2000
_STATUSES = {b"100", b"200", b"400", b"408", b"431", b"500"}
_SMALLEST_FIELD, _SMALLEST_REQUEST = 3, 16
_RESPONSE = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n", re.DOTALL)
_TOKENS = (
    b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
    b"POST /early HTTP/1.1\r\nhost: a\r\n",
    b"POST /stream HTTP/1.0\r\nhost: a\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\n",
    b"Connection: close\r\n",
    b"Connection: upgrade\r\n",
    b"Upgrade: h2c\r\n",
    b"Upgrade: websocket\r\n",
    b"Expect: 100-continue\r\n",
    b"Host: a\r\n",
    b"x-trailer: 1\r\n",
    b"5\r\nhello\r\n",
    b"1;extension=value\r\nx\r\n",
    b"0\r\n",
    b"0\r\n\r\n",
    b"\r\n",
    b"\r\n ",
    b"\n",
    b"\x00",
    b"a:\r\n" * 100,
    b"x" * 1500,
    b"1\r\ny\r\n" * 50,
    b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n" * 20,
    b"POST /direct HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /direct HTTP/1.1\r\nhost: a\r\n",
    b"Content-Length: 6\r\n\r\nstream",
    b"Content-Length: 4\r\n\r\nwait",
    b"Content-Length: 5\r\n\r\nfault",
    b"GET /listen HTTP/1.1\r\nhost: a\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


class Recorder:
    """An application that records its requests and answers with their numbers.

    Attributes:
        requests: (method, sorted names of the header fields, body or None where it was not read whole).
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[bytes], bytes | None]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        assert scope["type"] == "http"
        number = len(self.requests)
        names = sorted(name for name, _ in scope["headers"] if name != b"upgrade")  # httptools is not shown it
        self.requests.append((scope["method"], names, None))
        if not scope["path"].endswith("/early"):
            body, ended = await _body(receive)
            if not ended:
                return
            self.requests[number] = (scope["method"], names, body)
        if scope["path"].endswith("/wait"):
            for _ in range(3):
                await asyncio.sleep(0)
        if scope["path"].endswith("/listen"):
            assert (await receive())["type"] == "http.disconnect"
            return
        parts = [b"part", b"", b"%d" % number] if scope["path"].endswith("/stream") else [b"%d" % number]
        headers = [(b"x-number", b"%d" % number)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class RecordingExchange(HTTPRuntime):
    """An exchange that records its requests like `Recorder`. The body chooses the response."""

    def __init__(self) -> None:
        super().__init__(self._answer, _LIMITS)
        self.requests: list[tuple[str, list[bytes], bytes | None]] = []

    @property
    def endpoint(self) -> str:
        """The path of the requests that need no ASGI."""
        return "/direct"

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        number = len(self.requests)
        names = sorted(name for name, _ in request.pairs)
        self.requests.append((request.method, names, None))
        try:
            body = await request.read(_LIMITS.message_bytes)
        except BodyTooLargeError:
            body = b""
        self.requests[number] = (request.method, names, body)
        headers = (("x-number", str(number)),)
        if body == b"fault":
            return HttpResponse(200, (*headers, ("x-fault", "\n")), b"the header is invalid")
        if body == b"wait":
            for _ in range(3):
                await asyncio.sleep(0)
        if body == b"stream":
            return HttpResponse(200, headers, _parts(b"part", b"%d" % number))
        return HttpResponse(200, headers, b"%d" % number)


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _body(receive: Any) -> tuple[bytes, bool]:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return body, False
        body += message["body"]
        if not message["more_body"]:
            return body, True


class Transport(asyncio.Transport):
    """The server's end of a connection in memory.

    Args:
        reads: Whether the client reads what it is sent.
        half_closes: Whether one direction can end alone, as without TLS.
        address: The address of the client; "" if it is unknown.
    """

    def __init__(self, *, reads: bool, half_closes: bool = False, address: str = "") -> None:
        super().__init__({"peername": (address, 50_000)} if address else None)
        self.half_closes = half_closes
        self.protocol: Any = None
        self.written = bytearray()
        self.unread = 0
        self.reads = reads
        self.reading = True
        self.closing = False
        self.lost = False

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        protocol: asyncio.BaseProtocol = self.protocol
        return protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self.protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; nothing is sent on a connection that is closed."""
        if self.closing:
            return
        self.written += data
        if not self.reads:
            before, self.unread = self.unread, self.unread + len(data)
            if before <= _MARK < self.unread:
                self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the client has not read."""
        return self.unread

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing."""

    def pause_reading(self) -> None:
        """Pause reading."""
        self.reading = False

    def resume_reading(self) -> None:
        """Resume reading."""
        self.reading = True

    def is_reading(self) -> bool:
        """Tell whether it reads."""
        return self.reading

    def can_write_eof(self) -> bool:
        """Tell whether one direction can end alone."""
        return self.half_closes

    def write_eof(self) -> None:
        """End the direction to the client."""
        self.half_closes = False

    def is_closing(self) -> bool:
        """Tell whether it was closed."""
        return self.closing

    def close(self) -> None:
        """Close the connection when all is sent."""
        self.closing = True
        if not self.unread:
            asyncio.get_running_loop().call_soon(self.lose)

    def abort(self) -> None:
        """Close the connection at once."""
        self.closing = True
        self.lose()

    def lose(self) -> None:
        """Tell the protocol that the connection is gone."""
        if not self.lost:
            self.closing = self.lost = True
            self.unread = 0
            self.protocol.connection_lost(None)


def check_timer(protocol: Any) -> None:
    """Fail unless a connection that waits for its client has one timer, which ends the time of its state."""
    state, transport = protocol.state, protocol.transport
    if transport.is_closing() or state is State.ENDED:
        assert not transport.get_write_buffer_size() or protocol.timers, f"{state}: unsent bytes have no timer"
        return
    if state not in TIMED:
        assert protocol.cycle.is_complete, "an incomplete request has no timer"
        assert not protocol.cycle.has_ended, "a connection without a request has no timer"
        return
    if state is State.IDLE and protocol.writable is not None:
        assert protocol._write_timer is not None, "a client that does not read has no timer"  # noqa: SLF001 - as below
        return
    seconds = {
        State.RECEIVING: max(protocol.limits.message_seconds, LAST_REQUEST_SECONDS),
        State.IDLE: protocol.config.timeout_keep_alive,
        State.LINGERING: LINGER_SECONDS,
    }[state]
    timer = protocol._timer  # noqa: SLF001 - what is checked
    assert timer is not None, f"{state}: no timer"
    assert timer.when() <= protocol._deadline, f"{state}: the timer fires too late"  # noqa: SLF001 - as above
    assert protocol._deadline <= protocol.loop.time() + seconds, f"{state}: the time is too long"  # noqa: SLF001
    if state is State.IDLE:
        assert protocol.parser.is_between_requests, "an incomplete request counts as idle"
        assert not protocol.unparsed, "unparsed bytes count as idle"


class Player:
    """Plays inputs in one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._faults: list[dict[str, Any]] = []
        self._loop.set_exception_handler(lambda _, context: self._faults.append(context))
        for name in ("uvicorn.error", "uvicorn.access", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def check(self, data: bytes) -> None:
        """Play an input with both parsers; fail if something is wrong."""
        choice, data = (data[0], data[1:]) if data else (0, b"")
        recorded = []
        for parser in ("httptools", "h11"):
            recorder = Recorder()
            self._play(http_protocol(_LIMITS, parser), recorder, recorder, choice, data)
            recorded.append(recorder.requests)
        _compare(recorded[0], recorded[1], data)
        if b"/direct" in data:
            self._check_direct(choice, data)

    def close(self) -> None:
        """End the loop."""
        self._loop.close()

    def _check_direct(self, choice: int, data: bytes) -> None:
        """Play an input to an exchange without and through ASGI; fail if the outcomes differ."""
        outcomes: list[tuple[bytes, list[Any]]] = []
        for direct in (True, False):
            served = RecordingExchange()
            app = ASGIApplication(served)
            protocol = http_protocol(_LIMITS, "httptools", direct=direct_path(app) if direct else None)
            written = self._play(protocol, app, served, choice, data)
            outcomes.append((written, served.requests))
        (written, requests), (written_through_asgi, requests_through_asgi) = outcomes
        if choice & 8:  # the client does not read; through ASGI a header may be sent and its body wait
            assert written.startswith(written_through_asgi), outcomes
            assert requests[: len(requests_through_asgi)] == requests_through_asgi, outcomes
        else:
            assert written == written_through_asgi, outcomes
            assert requests == requests_through_asgi, outcomes

    def _play(
        self,
        protocol: type[HTTPConnection],
        app: Any,
        recorder: Recorder | RecordingExchange,
        choice: int,
        data: bytes,
    ) -> bytes:
        written = self._loop.run_until_complete(self._connect(protocol, app, recorder, choice, data))
        assert not self._faults, self._faults
        return written

    async def _connect(
        self, protocol_class: Any, app: Any, recorder: Recorder | RecordingExchange, choice: int, data: bytes
    ) -> bytes:
        """Play an input on one connection; return what the server has sent."""
        config = uvicorn.Config(
            app, http=protocol_class, ws="none", lifespan="off", log_config=None, proxy_headers=False
        )
        config.load()
        state = ServerState()
        transport = Transport(reads=choice & 8 == 0, half_closes=choice & 16 == 0)
        protocol: Any = protocol_class(config, state, {}, self._loop)
        transport.protocol = protocol
        protocol.connection_made(transport)
        size = _SEGMENTS[choice % len(_SEGMENTS)]
        for start in range(0, len(data), size):
            if not await _readable(protocol):
                break
            protocol.data_received(data[start : start + size])
            check_timer(protocol)
            _check_bounds(protocol, size)
        await _turns(state, protocol)
        written = bytes(transport.written)
        _check_responses(written, recorder, closed=protocol.has_ended)
        transport.abort()
        await _turns(state, protocol)
        assert not state.tasks, "a task is left"
        assert not state.connections, "a connection is left"
        assert not protocol.timers, "a timer is left"
        return written


async def _readable(protocol: Any) -> bool:
    """Wait until the server reads; return False if it closes the connection, or does not read any more."""
    transport: Transport = protocol.transport
    for _ in range(_MOST_TURNS):
        check_timer(protocol)
        if transport.closing:
            return False
        if transport.reading:
            return True
        await asyncio.sleep(0)
    assert not transport.reads, "the server does not read on"
    return False


async def _turns(state: ServerState, protocol: Any) -> None:
    """Run tasks until nothing changes any more."""
    await asyncio.sleep(0)  # a timer may start a task
    for _ in range(_MOST_TURNS):
        await asyncio.sleep(0)
        check_timer(protocol)
        if not state.tasks:
            return
        if all(_waits(task) for task in state.tasks):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if all(_waits(task) for task in state.tasks):
                return


def _waits(task: asyncio.Task[None]) -> bool:
    """Tell whether a task waits for something that has not happened yet."""
    future = getattr(task, "_fut_waiter", None)
    return future is not None and not future.done()


def _check_bounds(protocol: Any, size: int) -> None:
    assert len(protocol.unparsed) <= HIGH_WATER_BYTES + size
    waiting = protocol.waiting
    assert len(waiting) <= SLICE_BYTES // _SMALLEST_REQUEST
    assert sum(len(cycle.body) for cycle in waiting) <= SLICE_BYTES
    if protocol.cycle is not None:
        assert len(protocol.cycle.body) <= HIGH_WATER_BYTES + max(size, SLICE_BYTES)
    if protocol.has_ended:
        return
    if isinstance(protocol.parser, H11Parser):
        assert protocol.parser.unfinished_bytes <= _LIMITS.header_bytes + SLICE_BYTES
    else:
        assert len(protocol.parser.pairs) <= MAX_FIELDS + SLICE_BYTES // _SMALLEST_FIELD


def _check_responses(written: bytes, recorder: Recorder | RecordingExchange, *, closed: bool) -> None:
    """Fail unless all that was sent is responses, one to each request in order, the last of them perhaps cut off."""
    numbers = []
    methods = [method for method, _, _ in recorder.requests]
    for status, headers, body in _responses(written, methods, closed=closed):
        assert status in _STATUSES, status
        if status == b"200":
            number = re.search(rb"x-number: (\d+)\r\n", headers)
            assert number is not None
            numbers.append(int(number[1]))
            assert body is None or body.endswith(number[1])
        elif status != b"100":
            assert closed, "a refusal leaves the connection open"
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= len(recorder.requests)


def _responses(text: bytes, methods: list[str], *, closed: bool) -> Iterator[tuple[bytes, bytes, bytes | None]]:
    """Yield the status, the header and the body of each response; the body is None where it is not complete.

    A response to HEAD has the Content-Length of the body that it does not have.
    """
    at = 0
    while at < len(text):
        head = _RESPONSE.match(text, at)
        assert head is not None, text[at : at + 200]
        at, headers = head.end(), head[2].lower()
        number = re.search(rb"x-number: (\d+)\r\n", headers)
        length = re.search(rb"content-length: (\d+)\r\n", headers)
        if number is not None and methods[int(number[1])] == "HEAD":
            yield head[1], headers, None
        elif b"transfer-encoding: chunked\r\n" in headers:
            body, at = _chunks(text, at)
            yield head[1], headers, body
        elif length is not None:
            end = at + int(length[1])
            yield head[1], headers, text[at:end] if end <= len(text) else None
            at = end
        elif head[1] == b"100" or b"connection: close\r\n" not in headers:
            yield head[1], headers, None
        else:
            # HTTP/1.0: the end of the connection ends the body, and a client that does not read delays both.
            body, at = text[at:] if closed else None, len(text)
            yield head[1], headers, body or None


def _chunks(text: bytes, at: int) -> tuple[bytes | None, int]:
    body = b""
    while (line := re.compile(rb"([0-9a-f]+)\r\n").match(text, at)) is not None:
        size = int(line[1], 16)
        body += text[line.end() : line.end() + size]
        at = line.end() + size + 2
        if not size:
            return body, at
    next_response = text.find(b"HTTP/1.1 ", at)
    return None, len(text) if next_response < 0 else next_response


def _compare(ours: list[Any], theirs: list[Any], data: bytes) -> None:
    """Fail if the parsers disagree about a request that both took whole."""
    if re.search(rb"\n[ \t]|CONNECT", data):
        return  # folded lines and CONNECT are a matter of taste
    for our_request, their_request in zip(ours, theirs, strict=False):
        if our_request[2] is None or their_request[2] is None:
            return
        assert our_request == their_request, (our_request, their_request)


def mutate(data: bytes, seed: int) -> bytes:
    """Return another input; the same one for the same input and number."""
    random = Random(seed)
    for _ in range(random.choice((1, 1, 2, 3, 5))):
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice((0, 1, 2, 8, 64)))
        way = random.randrange(6)
        if way == 0:
            data = data[:start] + data[end:]
        elif way == 1:
            data = data[:start] + random.randbytes(random.choice((1, 1, 2, 4))) + data[end:]
        elif way == 2:
            lines = data.splitlines(keepends=True) or [b""]
            place = random.randrange(len(lines))
            lines.insert(random.randrange(len(lines) + 1), lines[place] * random.choice((1, 1, 2, 30)))
            data = b"".join(lines)
        elif way == 3:
            data = bytes([random.randrange(16)]) + data[1:]
        else:
            at = data.find(b"\n", start) + 1
            data = data[:at] + random.choice(_TOKENS) + data[at:]
    return data


_player: Player | None = None


def check(data: bytes) -> None:
    """Play one input; the loop is made with the first one."""
    global _player  # noqa: PLW0603 - it lives as long as the process
    if _player is None:
        _player = Player()
    _player.check(data)


def close() -> None:
    """End the loop."""
    global _player  # noqa: PLW0603 - as above
    if _player is not None:
        _player.close()
    _player = None

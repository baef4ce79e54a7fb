"""Connections of HTTP/1.1 to one origin, on httptools.

httpx2 needs about ten times the CPU time for a request, which would be most of what a proxy adds to a call; see
benchmarks/README.md. It sends the requests where httptools is missing, or where a forward proxy is configured.

How it works: `HTTPConnections.send` takes an idle connection or opens one, and writes the request at once. A connection
has at most one request, whose `_Response` collects what httptools reads:

- *waiting*: `head` is pending, and the caller waits for it. An event stream sets it at the end of its header, any other
  response at its end, so that the caller is woken once.
- *streaming*: the caller iterates over the parts of an event stream. The connection is not read while the caller is
  behind by more than `_MAX_UNREAD` bytes.
- *ended*: the response is complete. Its connection is idle again if the server keeps it open and nothing follows.
- *failed*: the connection broke, or the response is too large or not HTTP. The connection is closed.

A caller that is cancelled, or that leaves an event stream, closes the connection. In the per-request era this cancels
the request at the server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import httptools

from funcmcp._client.errors import ConnectionFailedError
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import ClientError
from funcmcp._protocol.http_rules import WITHOUT_LENGTH
from funcmcp._text.visible import visible_url
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import EVENT_STREAM

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    import httpx2

_MAX_OUTSIDE = 256 * 1024
"""Bytes between two parts of a body, before the first and after the last: the header of a response with the
informational responses before it, sizes and extensions of chunks, and the trailer."""

_MAX_UNREAD = 256 * 1024
_FIRST_FINAL = 200
"""The lowest status of a response that is not informational."""

_PORTS = {"http": 80, "https": 443}
_PART_BYTES = 256
"""Bytes that each part of a body counts in addition to its length: a server may send every byte as its own chunk."""


def goes_directly(url: httpx2.URL) -> bool:
    """Return whether requests to a URL need no forward proxy of this machine's configuration."""
    proxies = getproxies()
    is_configured = url.scheme in proxies or "all" in proxies
    return not is_configured or bool(proxy_bypass(url.host))


def encoded_request(method: str, url: httpx2.URL, pairs: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """Return a request as bytes; raise ValueError if a header field has a line break.

    Args:
        method: The HTTP method.
        url: The URL.
        pairs: The header fields. That of the host is replaced.
        body: The body, whose length is in a field.
    """
    lines = [
        method.encode() + b" " + url.raw_path + b" HTTP/1.1\r\nhost: " + url.netloc + b"\r\n",
        *[name + b": " + value + b"\r\n" for name, value in pairs if name != b"host"],
    ]
    head = b"".join(lines)
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1 or b"\0" in head:
        raise ValueError("A header field has a line break or a null character.")
    return head + b"\r\n" + body


class ResponseLimits(NamedTuple):
    """What a response may take.

    Attributes:
        silence_seconds: Seconds until the response has to begin, and until it has to end.
        part_seconds: Seconds until each next part of an event stream has to arrive. None: no limit.
        on_part: Receives the size of each part and that of the response so far, and raises ClientError for too much.
    """

    silence_seconds: float
    part_seconds: float | None
    on_part: Callable[[int, int], None]


class HTTPConnections:
    """Connections to one origin.

    Args:
        url: A URL of the origin, whose host is ASCII.
        ssl_context: For https.
        connect_seconds: Seconds that a connection may take.
        keep_alive_seconds: Seconds for which an idle connection is kept.
    """

    def __init__(
        self, url: httpx2.URL, ssl_context: ssl.SSLContext | None, *, connect_seconds: float, keep_alive_seconds: float
    ) -> None:
        self._host = url.raw_host.decode()
        self._port = url.port or _PORTS[url.scheme]
        self._ssl_context = ssl_context if url.scheme == "https" else None
        self._connect_seconds = connect_seconds
        self._keep_alive_seconds = keep_alive_seconds
        self._visible_url = visible_url(str(url))
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []

    async def send(self, request: bytes, limits: ResponseLimits) -> HttpResponse:
        """Send a request and return its response. The body of an event stream is an iterator.

        Args:
            request: The request as bytes.
            limits: The limits for the response.

        Raises:
            OSError: No connection can be opened.
            ClientError: The connection broke, the response is not HTTP, or it exceeds a limit.
        """
        connection = self._idle_connection() or await self._connect()
        response = _Response(connection, limits, self._visible_url)
        connection.begin(response, request)
        try:
            await response.wait()
        except BaseException:
            connection.close()
            raise
        body = response if response.is_stream else bytes(response.body)
        return HttpResponse(response.status, tuple(response.fields), body)

    def aclose(self) -> None:
        """Close all connections."""
        for connection in tuple(self._open):
            connection.close()

    @property
    def is_plain(self) -> bool:
        """Whether the connections have no TLS."""
        return self._ssl_context is None

    def put_back(self, connection: _Connection) -> None:
        """Keep a connection for the next request."""
        self._idle.append(connection)

    def forget(self, connection: _Connection) -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _idle_connection(self) -> _Connection | None:
        """Return the connection that was used last, and close those that have been idle for too long."""
        if not self._idle:
            return None
        oldest = asyncio.get_running_loop().time() - self._keep_alive_seconds
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.pop(0).close()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closing:
                return connection
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._connect_seconds):
            _, connection = await loop.create_connection(
                lambda: _Connection(self),
                self._host,
                self._port,
                ssl=self._ssl_context,
            )
        self._open.add(connection)
        return connection


class _Connection(asyncio.Protocol):
    """One connection.

    Args:
        connections: Keeps it while it is idle.

    Attributes:
        idle_since: When its last response ended, in the time of the event loop.
    """

    def __init__(self, connections: HTTPConnections) -> None:
        self.idle_since = 0.0
        self._connections = connections
        self._transport: Any = None
        self._response: _Response | None = None
        self._parser: Any = None
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = transport

    @property
    def is_closing(self) -> bool:
        """Whether the connection is ending, and takes no further request."""
        is_closing: bool = self._transport.is_closing()
        return is_closing

    def begin(self, response: _Response, request: bytes) -> None:
        """Send a request, and read its response."""
        self._response = response
        self._parser = httptools.HttpResponseParser(response)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Read a part of a response. Bytes that belong to none end the connection."""
        response = self._response
        if response is None:
            self.close()
            return
        try:
            response.received(len(data))
            self._parser.feed_data(data)
            response.check_outside()
        except ClientError as error:
            self._fail(error)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if response.is_complete:  # what follows belongs to no request
                response.keeps_alive = False
                self._end(response)
                return
            cause = error.__context__ if isinstance(error.__context__, ClientError) else None
            self._fail(cause or ConnectionFailedError("The server's response is not valid HTTP."))
        else:
            if response.is_complete:
                self._end(response)

    def eof_received(self) -> None:
        """Close the connection, after a response that ends with it."""

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the response, unless the end of the connection is its end."""
        self._connections.forget(self)
        response = self._response
        if response is None:
            return
        self._response = None
        if error is None and response.ends_with_connection:
            response.end()
        else:
            reason = "the server closed it before its response was complete"
            if not self.idle_since and not response.has_received and self._connections.is_plain:
                reason += ". Write https:// if it serves HTTPS"
            response.break_off(reason)

    @property
    def status(self) -> int:
        """The status of the response whose header has just been read."""
        status: int = self._parser.get_status_code()
        return status

    @property
    def keeps_alive(self) -> bool:
        """Whether the server keeps the connection open after the response that has just ended."""
        keeps_alive: bool = self._parser.should_keep_alive()
        return keeps_alive

    def pause_reading(self) -> None:
        """Read no more until the caller has read what has arrived."""
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        """End the connection at once."""
        self._connections.forget(self)
        self._response = None
        self._transport.abort()

    def _end(self, response: _Response) -> None:
        self._response = None
        if response.keeps_alive and not self.is_closing:
            self.idle_since = asyncio.get_running_loop().time()
            self._connections.put_back(self)
        else:
            self.close()
        response.end()

    def _fail(self, error: ClientError) -> None:
        response = self._response
        self.close()
        if response is not None:
            response.fail(error)


class _Response:
    """A response that arrives. httptools calls the methods that begin with ``on_``.

    Args:
        connection: Brings it.
        limits: Its limits.
        url: The URL for errors.

    Attributes:
        status: The status.
        fields: The header fields, with names in lower case.
        body: The body so far, if it is not an event stream.
        is_stream: Whether the body is an event stream.
        is_complete: Whether the response has ended.
        keeps_alive: Whether the connection can be used again afterwards.
        ends_with_connection: Whether the body has no other end than that of the connection.
    """

    def __init__(self, connection: _Connection, limits: ResponseLimits, url: str) -> None:
        self.status = 0
        self.fields: list[tuple[str, str]] = []
        self.body = bytearray()
        self.is_stream = False
        self.is_complete = False
        self.keeps_alive = False
        self.ends_with_connection = False
        self._connection = connection
        self._limits = limits
        self._url = url
        self._size = 0
        self._outside = 0
        self._has_head = False
        self._is_over = False
        self._scope: asyncio.Timeout | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parts: deque[bytes] = deque()
        self._unread = 0
        self._news: asyncio.Future[None] | None = None
        self._error: ClientError | None = None

    async def wait(self) -> None:
        """Wait for the end of the response, or of its header if it is an event stream."""
        try:
            async with asyncio.timeout(self._limits.silence_seconds) as self._scope:
                await self._ready
        except TimeoutError:
            raise self._silence(self._limits.silence_seconds) from None

    def __aiter__(self) -> _Response:
        return self

    async def __anext__(self) -> bytes:
        """Return the next part of an event stream."""
        if not self._parts and not self.is_complete and self._error is None:
            self._news = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(self._limits.part_seconds):
                    await self._news
            except TimeoutError:
                await self.aclose()
                raise self._silence(self._limits.part_seconds or 0) from None
            except BaseException:
                await self.aclose()
                raise
        if self._parts:
            return self._next_part()
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection of an event stream that the caller leaves early."""
        self._parts.clear()
        if not self.is_complete:
            self.is_complete = True
            self._connection.close()

    @property
    def has_received(self) -> bool:
        """Whether a part of the response has arrived."""
        return self._has_head or self._outside > 0

    def received(self, size: int) -> None:
        """Count bytes, before they are read."""
        self._outside += size

    def check_outside(self) -> None:
        """Raise ClientError if too many bytes have arrived since the last part of the body."""
        if self._outside > _MAX_OUTSIDE:
            kibibytes = _MAX_OUTSIDE // 1024
            part = "trailer" if self._has_head else "header"
            raise ConnectionFailedError(f"The {part} of the server's response has more than {kibibytes} KiB.")

    def _silence(self, seconds: float) -> ConnectionFailedError:
        return ConnectionFailedError(f"{self._url} takes more than {seconds_text(seconds)} to answer.")

    def end(self) -> None:
        """Return the response to the caller, or end the event stream."""
        self.is_complete = True
        self._wake()

    def break_off(self, reason: str) -> None:
        """Fail the response because its connection has."""
        self.fail(ConnectionFailedError(f"The connection to {self._url} failed: {reason}."))

    def fail(self, error: ClientError) -> None:
        """Raise an error at the caller."""
        self._error = error
        if not self._ready.done():
            self._ready.set_exception(error)
        self._wake()

    def on_message_begin(self) -> None:
        """Ignore a response that follows this one, and use the connection no more."""
        if self.is_complete:
            self.keeps_alive = False
            self._is_over = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header field, or one of the trailer, which is ignored."""
        if not self._has_head:
            self.fields.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Decide how the body ends, and return an event stream to the caller."""
        if self._is_over:
            return
        self.status = self._connection.status
        if self.status < _FIRST_FINAL:
            self.fields.clear()
            return
        self._has_head = True
        fields = dict(self.fields)
        if "content-length" not in fields and "transfer-encoding" not in fields:
            self.ends_with_connection = self.status not in WITHOUT_LENGTH
        if fields.get("content-type", "").lower().startswith(EVENT_STREAM):
            self.is_stream = True
            self._wake()
        elif self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time() + self._limits.silence_seconds)

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""
        if self._is_over:
            return
        size = len(part) + _PART_BYTES
        self._outside = 0
        self._size += size
        self._limits.on_part(size, self._size)
        if not self.is_stream:
            self.body += part
            return
        self._parts.append(part)
        self._unread += len(part)
        if self._unread > _MAX_UNREAD:
            self._connection.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        """Note the end of the response. An informational response is followed by another one."""
        if self._is_over:
            return
        self.is_complete = self._has_head
        self.keeps_alive = self._connection.keeps_alive

    def _next_part(self) -> bytes:
        part = self._parts.popleft()
        self._unread -= len(part)
        if not self._parts:
            self._connection.resume_reading()
        return part

    def _wake(self) -> None:
        """Wake the caller that waits for the response or for its next part."""
        if not self._ready.done():
            self._ready.set_result(None)
        elif self._news is not None and not self._news.done():
            self._news.set_result(None)

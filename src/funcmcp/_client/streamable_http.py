"""Streamable HTTP as a client speaks it, over an exchange: a function from HttpRequest to HttpResponse.

The exchange is the server itself for a client in memory, and httpx2 for a URL (`http_exchange.py`), so both take the
same way.

Source: "basic/transports, Streamable HTTP" of every revision; the HTML standard, "Server-sent events, Interpreting an
event stream".
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import AuthenticationError, SessionEndedError, one_line
from funcmcp._client.messages import encode_message, is_response, is_response_to, parse_message
from funcmcp._mappings import lower_names
from funcmcp._protocol import headers as header_names
from funcmcp._protocol.errors import ClientError, InvalidResponseError
from funcmcp._public_names import public
from funcmcp._transports.http.messages import HttpRequest
from funcmcp._transports.http.status import EVENT_STREAM, JSON

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from funcmcp._client.transport import Message, Receive
    from funcmcp._serving import Serving
    from funcmcp._transports.http.messages import Exchange, HttpResponse

_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404
_FIRST_FAILURE = 400
"""The lowest HTTP status of a request that failed."""

_VISIBLE_ASCII = re.compile(r"[!-~]+")
_CLOSE_SECONDS = 5.0
"""Seconds that the server may take to end the session."""


class StreamableHTTP:
    """A transport over an exchange.

    Args:
        exchange: Sends a request and returns its response.
        path: The path of the endpoint.
        headers: Header fields of every request.
    """

    is_http = True

    def __init__(self, exchange: Exchange, path: str, headers: Mapping[str, str]) -> None:
        self.session_id: str | None = None
        self._revision: str | None = None
        self._exchange = exchange
        self._path = path
        self._headers = lower_names(headers)
        self._receive: Receive = _ignore

    async def connect(self, receive: Receive) -> None:
        """Remember who handles messages. The first request opens the connection."""
        self._receive = receive
        self.session_id = None

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request and return its response; see `Transport.request`."""
        http_response = await self._post(message, headers)
        async with aclosing(read_messages(http_response)) as messages:
            async for received in messages:
                if not is_response(received):
                    await self._receive(received)
                elif is_response_to(received, message["id"]):
                    if message["method"] == "initialize":
                        self.session_id = _session_id(http_response)
                    return received
                else:
                    raise InvalidResponseError(f"The response to {message['method']} has another id.")
        if _media_type(http_response) == EVENT_STREAM:
            raise InvalidResponseError(f"The event stream ended without an answer to {message['method']}.")
        raise InvalidResponseError(f"{message['method']} got no answer (HTTP status {http_response.status}).")

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response; see `Transport.send`."""
        http_response = await self._post(message, headers)
        await _discard(http_response)
        if http_response.status >= _FIRST_FAILURE:
            kind = message.get("method", "a response")
            raise InvalidResponseError(f"The server does not accept {kind} (HTTP status {http_response.status}).")

    async def aclose(self) -> None:
        """End the session. A server that cannot be reached any more has none to end."""
        if self.session_id is None:
            return
        fields = {**self._headers, header_names.SESSION_ID: self.session_id}
        if self._revision is not None:
            fields[header_names.VERSION] = self._revision
        self.session_id = None
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await _discard(await post(self._exchange, self._path, b"", fields, method="DELETE"))

    async def _post(self, message: Message, headers: Mapping[str, str]) -> HttpResponse:
        session_id = self.session_id
        self._revision = headers.get(header_names.VERSION)
        fields = {**self._headers, **headers}
        if session_id is not None:
            fields[header_names.SESSION_ID] = session_id
        http_response = await post(self._exchange, self._path, encode_message(message), fields)
        error = self._error_of(http_response, session_id)
        if error is not None:
            await _discard(http_response)
            raise error
        return http_response

    def _error_of(self, http_response: HttpResponse, session_id: str | None) -> ClientError | None:
        """Return the error that a response's status stands for. Return None if its body decides.

        Args:
            http_response: The response.
            session_id: The session id of the request.
        """
        status = http_response.status
        challenge = _field(http_response, "www-authenticate")
        if status == _UNAUTHORIZED or (status == _FORBIDDEN and challenge is not None):
            return AuthenticationError(status, challenge)
        if status == _NOT_FOUND and session_id is not None:
            if self.session_id == session_id:  # else a new session has begun in the meantime
                self.session_id = None
            return SessionEndedError()
        return None


class MemoryTransport(StreamableHTTP):
    """A transport to a server in this process. The author's lifespans are entered while it is connected.

    Args:
        serving: Serves the server.
        headers: Header fields of every request.
        by_user: Whether the user of this process uses the server, without signing in; see `Serving.exchange_for_user`.
    """

    def __init__(self, serving: Serving, headers: Mapping[str, str], *, by_user: bool = False) -> None:
        super().__init__(serving.exchange, serving.path, headers)
        self._serving = serving
        self._by_user = by_user
        self._is_connected = False

    async def connect(self, receive: Receive) -> None:
        """Enter the lifespans; raise LifespanError if one of them fails."""
        if not self._is_connected:
            await self._serving.services.lifespans.enter()
            self._is_connected = True
        self._exchange = self._serving.exchange_for_user() if self._by_user else self._serving.exchange
        await super().connect(receive)

    async def aclose(self) -> None:
        """End the session, and leave the lifespans."""
        try:
            await super().aclose()
        finally:
            if self._is_connected:
                self._is_connected = False
                await self._serving.services.lifespans.leave()


@public("funcmcp.testing")
class MemoryRequest(HttpRequest):
    """An HTTP request whose body is in memory, as from a client on this machine.

    Args:
        method: The HTTP method, in upper case.
        path: The path of the endpoint.
        pairs: Header lines, with names in lower case.
        body: The body.
    """

    __slots__ = ()
    network_transport: str | None = None

    def __init__(self, method: str, path: str, pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(method, path, pairs, "127.0.0.1")
        self.body: bytes = body


@public("funcmcp.testing")
async def post(
    exchange: Exchange, path: str, body: bytes, headers: Mapping[str, str], *, method: str = "POST"
) -> HttpResponse:
    """Send one HTTP request through an exchange and return the response.

    Args:
        exchange: A function from HttpRequest to HttpResponse.
        path: The path of the endpoint.
        body: The body.
        headers: Header fields, beside those that every request of a client has.
        method: The HTTP method.
    """
    fields = {
        "host": "127.0.0.1",
        "content-type": JSON,
        "accept": f"{JSON}, {EVENT_STREAM}",
        "content-length": str(len(body)),
        **headers,
    }
    lines = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    return await exchange(MemoryRequest(method, path, lines, body))


@public("funcmcp.testing")
async def read_messages(response: HttpResponse) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON-RPC messages of a response: one of a JSON body, or those of an event stream.

    Raises:
        InvalidResponseError: The body is not a JSON-RPC message, or an event is not one.
    """
    is_stream = _media_type(response) == EVENT_STREAM
    if isinstance(response.body, bytes):
        if not is_stream:
            if response.body:
                yield _message_in(response.body, response)
            return
        for data in EventReader().feed(response.body):
            if data.strip():
                yield _message_in(data, response)
        return
    reader = EventReader()
    try:
        async for part in response.body:
            for data in reader.feed(part):
                if data.strip():
                    yield _message_in(data, response)
    finally:
        await _close(response.body)


def _message_in(data: bytes, response: HttpResponse) -> dict[str, Any]:
    message = parse_message(data)
    if message is None:
        kind = _media_type(response) or "no content type"
        raise InvalidResponseError(
            f"The answer is not an MCP message (HTTP status {response.status}, {one_line(kind)})."
        )
    return message


async def _ignore(_message: Message) -> None:
    """Handle no message."""


async def _discard(response: HttpResponse) -> None:
    if not isinstance(response.body, bytes):
        await _close(response.body)


async def _close(body: Any) -> None:
    """Close a body's iterator, which closes the connection. A plain iterator has nothing to close."""
    if hasattr(body, "aclose"):
        await body.aclose()


def _field(response: HttpResponse, name: str) -> str | None:
    for field, value in response.headers:
        if field == name:
            return value
    return None


def _session_id(response: HttpResponse) -> str | None:
    """Return the id of the session that a response begins. Return None if it begins none."""
    value = _field(response, header_names.SESSION_ID)
    if value is not None and not _VISIBLE_ASCII.fullmatch(value):
        raise InvalidResponseError("The server sent a session id that is not visible ASCII.")
    return value


def _media_type(response: HttpResponse) -> str:
    """Return the media type of a response in lower case, without parameters. Empty if it has none."""
    return (_field(response, "content-type") or "").partition(";")[0].strip().lower()


class EventReader:
    """Collects the data of the events in a stream that arrives in parts of any size."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._ends_with_cr = False

    def feed(self, part: bytes) -> list[bytes]:
        """Return the data of each event that is complete with this part. Comments and events without data are left out.

        A line ends with CR LF, LF or CR.
        """
        if self._ends_with_cr and part.startswith(b"\n"):
            part = part[1:]  # the second half of a CR LF whose CR ended a line already
        if part:
            self._ends_with_cr = part.endswith(b"\r")
        *lines, incomplete = part.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for line in lines:
            self._line += line
            event = self._end_of_line(bytes(self._line))
            self._line.clear()
            if event is not None:
                events.append(event)
        self._line += incomplete
        return events

    def _end_of_line(self, line: bytes) -> bytes | None:
        """Take a complete line; return the event's data if the line ends an event that has data."""
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            return None
        data = b"\n".join(self._data)
        self._data.clear()
        return data or None

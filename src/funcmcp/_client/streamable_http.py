"""Streamable HTTP as a client speaks it, over an exchange: a function from HttpRequest to HttpResponse.

The exchange is the server itself for a client in memory, and httpx2 for a URL (`http_exchange.py`), so both take the
same way.

How it works: a request is a POST, whose response holds the answer, or is an event stream that ends with it. In the
handshake era the server may end or lose such a stream before the answer. If its events had ids, the client waits for
the time that the server sent as `retry`, and requests the remaining events with a GET and the last id. A stream without
ids cannot be resumed, and the request fails at once. `StandingStream` is the GET stream for what the server sends
outside of requests. If the endpoint is that of HTTP+SSE, the transport of 2024-11-05, the client uses that instead; see
`http_sse.py`.

Source: "basic/transports, Streamable HTTP" of every revision, with "Resumability and Redelivery" and "Backwards
Compatibility".
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing, suppress
from contextvars import Context
from typing import TYPE_CHECKING

from funcmcp._client.errors import ConnectionFailedError, HTTPStatusError, SessionEndedError
from funcmcp._client.event_stream import EventReader
from funcmcp._client.http_messages import (
    FIRST_FAILURE,
    discard,
    field_of,
    is_event_stream,
    post,
    read_messages,
    refusal_of,
    wanted_pause,
)
from funcmcp._client.messages import encode_message, is_response, is_response_to
from funcmcp._client.standing_stream import LAST_EVENT_ID, TEMPORARY, StandingStream, delay_seconds
from funcmcp._objects.mappings import lower_names
from funcmcp._protocol import headers as header_names
from funcmcp._protocol.errors import ClientError, InvalidResponseError
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._transports.http.status import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from funcmcp._client.http_sse import HTTPWithSSE
    from funcmcp._client.session_cookies import SessionCookies
    from funcmcp._client.transport import Message, Receive
    from funcmcp._serving.composition import ServerRuntime
    from funcmcp._transports.http.messages import Exchange, HttpResponse

_NOT_FOUND = 404

_VISIBLE_ASCII = re.compile(r"[!-~]+")
_MAX_ATTEMPTS = 5
"""How often the client requests a stream that continues another one, while the server cannot be reached."""

_CLOSE_SECONDS = 5.0
"""Seconds that the server may take to end the session."""


class StreamableHTTP:
    """A transport over an exchange.

    Args:
        exchange: Sends a request and returns its response.
        path: The path of the endpoint.
        headers: Header fields of every request.

    Attributes:
        on_end: Is called when the one stream of HTTP+SSE ends before the transport is closed; None for nothing.
    """

    is_http = True
    on_end: Callable[[], None] | None = None

    def __init__(self, exchange: Exchange, path: str, headers: Mapping[str, str]) -> None:
        self.session_id: str | None = None
        self._revision: str | None = None
        self._exchange = exchange
        self._path = path
        self._headers = lower_names(headers)
        self._receive: Receive = _ignore
        self._standing: asyncio.Task[None] | None = None
        self._stream: StandingStream | None = None
        self._stream_session: str | None = None  # the session that has it
        self._http_sse: HTTPWithSSE | None = None
        self._cookies: SessionCookies | None = None

    @property
    def credentials(self) -> str | None:
        """The credentials of the next request."""
        return self._headers.get("authorization")

    @property
    def has_ended(self) -> bool:
        """Whether the one stream of HTTP+SSE has ended, so that nothing can be sent any more."""
        return self._http_sse is not None and self._http_sse.has_ended

    def wrap_exchange(self, wrap: Callable[[Exchange], Exchange]) -> None:
        """Send requests through what a function returns for the present exchange."""
        self._exchange = wrap(self._exchange)

    async def connect(self, receive: Receive) -> None:
        """Remember who handles messages. The first request opens the connection."""
        self._receive = receive
        self.session_id = None
        self._cookies = None

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request and return its response; see `Transport.request`."""
        if self._http_sse is not None:
            return await self._http_sse.request(message, headers)
        http_response = await self._post(message, headers)
        if message["method"] == "initialize":
            self._http_sse = await self._open_http_sse(http_response)
            if self._http_sse is not None:
                return await self._http_sse.request(message, headers)
        async with aclosing(self._messages_of(http_response, message["method"], headers)) as messages:
            async for received in messages:
                if not is_response(received):
                    await self._received_during(message["id"], received)
                elif is_response_to(received, message["id"]):
                    if message["method"] == "initialize":
                        self.session_id = _session_id(http_response)
                    return received
                else:
                    raise InvalidResponseError(f"The response to {message['method']} has another id.")
        if is_event_stream(http_response):
            raise InvalidResponseError(f"The event stream ended without an answer to {message['method']}.")
        text = f"{message['method']} got no answer (HTTP status {http_response.status})."
        if http_response.status >= FIRST_FAILURE:
            raise HTTPStatusError(text, http_response.status, wanted_pause(http_response))
        raise InvalidResponseError(text)

    async def _received_during(self, request_id: int, received: Message) -> None:
        """Handle what the server sends before it answers a request."""
        del request_id
        await self._receive(received)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response; see `Transport.send`."""
        if self._http_sse is not None:
            await self._http_sse.send(message, headers)
            return
        http_response = await self._post(message, headers)
        await discard(http_response)
        if http_response.status >= FIRST_FAILURE:
            kind = message.get("method", "a response")
            raise InvalidResponseError(f"The server does not accept {kind} (HTTP status {http_response.status}).")

    def open_stream(
        self,
        headers: Mapping[str, str],
        on_gap: Callable[[], None] | None,
        on_end: Callable[[bool], None] | None = None,
    ) -> asyncio.Event:
        """Open the stream for what the server sends outside of requests, in the background; see `StandingStreams`."""
        if self._stream is not None and self._stream_session == self.session_id:
            self._stream.on_gap = on_gap or self._stream.on_gap
            self._stream.on_end = on_end or self._stream.on_end
            return self._stream.answered
        self._close_stream()
        if self._http_sse is not None:
            is_open = asyncio.Event()
            is_open.set()
            return is_open

        def get(fields: Mapping[str, str]) -> Awaitable[HttpResponse]:
            # A server may have nothing but POST at the path: before the first stream, 404 ends no session.
            return self._get({**headers, **fields}, may_end_session=stream.was_open)

        stream = self._stream = StandingStream(get, self._receive, on_gap, on_end)
        self._stream_session = self.session_id
        # It belongs to no request, and so has no context variables of the one that begins it.
        self._standing = asyncio.create_task(stream.run(), context=Context())
        return stream.answered

    def _close_stream(self) -> None:
        if self._standing is not None:
            self._standing.cancel()
            self._standing = self._stream = None

    async def aclose(self) -> None:
        """End the session. A server that cannot be reached any more has none to end."""
        standing = self._standing
        self._close_stream()
        if standing is not None:
            await asyncio.wait({standing})
        if self._http_sse is not None:
            await self._http_sse.aclose()
            self._http_sse = None
        if self.session_id is None:
            return
        fields = {**self._headers, header_names.SESSION_ID: self.session_id}
        if self._revision is not None:
            fields[header_names.VERSION] = self._revision
        self.session_id = None
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await discard(await self._exchanged("DELETE", b"", fields))

    async def _open_http_sse(self, refusal: HttpResponse) -> HTTPWithSSE | None:
        """Return the transport of 2024-11-05 if the endpoint has it, after the response to ``initialize``."""
        del refusal
        return None

    def _messages_of(
        self, http_response: HttpResponse, method: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[Message, None]:
        """Return the messages of a request: those of its response, and of the streams that continue it."""
        if header_names.VERSION not in headers or _is_stateless(headers):
            return read_messages(http_response)
        return self._resumable_messages(http_response, method, headers)

    async def _resumable_messages(
        self, http_response: HttpResponse, method: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[Message, None]:
        """Yield the messages of a response, and continue the stream when it ends early and its events have ids."""
        reader = EventReader()
        ends = 0
        while True:
            last_id, broken = reader.last_id, None
            try:
                async with aclosing(read_messages(http_response, reader)) as messages:
                    async for message in messages:
                        yield message
            except ConnectionFailedError as error:
                broken = error
            if reader.last_id is None:
                if broken is not None:
                    raise broken
                return
            ends = 0 if reader.last_id != last_id else ends + 1
            http_response = await self._continuation(reader, method, headers, ends)

    async def _continuation(
        self, reader: EventReader, method: str, headers: Mapping[str, str], ends: int
    ) -> HttpResponse:
        """Return the stream that continues another one after its last event.

        Args:
            reader: Knows the last event.
            method: The method of the request.
            headers: Header fields of the request.
            ends: How many streams since that event have brought no other one.

        Raises:
            ConnectionFailedError: The server cannot be reached any more, or does not continue the stream.
        """
        reason = ""
        for attempt in range(_MAX_ATTEMPTS):
            await asyncio.sleep(delay_seconds(reader.retry_seconds, attempt, ends))
            try:
                http_response = await self._get({**headers, LAST_EVENT_ID: reader.last_id or ""})
            except ConnectionFailedError as error:
                reason = str(error)
                continue
            except SessionEndedError:
                reason = "the server has ended the session"
                break
            if is_event_stream(http_response):
                reader.begin()
                return http_response
            await discard(http_response)
            reason = f"HTTP status {http_response.status}"
            if http_response.status not in TEMPORARY:
                break
        raise ConnectionFailedError(
            f"The event stream ended without an answer to {method}, and is not resumed: {reason}"
        )

    async def _post(self, message: Message, headers: Mapping[str, str], path: str | None = None) -> HttpResponse:
        """Send a message, to another path if there is one. Raise ClientError if the status is an error."""
        session_id = self.session_id
        self._revision = headers.get(header_names.VERSION)
        fields = {**self._headers, **headers}
        if session_id is not None:
            fields[header_names.SESSION_ID] = session_id
        http_response = await self._exchanged("POST", encode_message(message), fields, path)
        error = self._error_of(http_response, session_id)
        if error is not None:
            await discard(http_response)
            raise error
        return http_response

    async def _get(
        self, headers: Mapping[str, str], path: str | None = None, *, may_end_session: bool = True
    ) -> HttpResponse:
        """Request an event stream. Raise ClientError as for a message."""
        session_id = self.session_id
        fields = {**self._headers, **headers, "accept": EVENT_STREAM}
        if session_id is not None:
            fields[header_names.SESSION_ID] = session_id
        http_response = await self._exchanged("GET", b"", fields, path)
        error = self._error_of(http_response, session_id if may_end_session else None)
        if error is not None:
            await discard(http_response)
            raise error
        return http_response

    async def _exchanged(
        self, method: str, body: bytes, fields: dict[str, str], path: str | None = None
    ) -> HttpResponse:
        """Send an HTTP request with the cookies of the session, and keep those of its response."""
        path = path or self._path
        if _is_stateless(fields):
            return await post(self._exchange, path, body, fields, method=method)
        cookies = None if self._cookies is None else self._cookies.header_for(self._url_of(path))
        if cookies is not None:
            fields["cookie"] = f"{fields['cookie']}; {cookies}" if "cookie" in fields else cookies
        http_response = await post(self._exchange, path, body, fields, method=method)
        self._keep_cookies(path, http_response)
        return http_response

    def _url_of(self, path: str) -> str:
        """Return the URL that cookies of a path are for."""
        return f"http://127.0.0.1{path}"

    def _keep_cookies(self, path: str, http_response: HttpResponse) -> None:
        """Keep the cookies of a response for the next requests of the session."""
        lines = [value for name, value in http_response.headers if name == "set-cookie"]
        if not lines:
            return
        if self._cookies is None:
            from funcmcp._client.session_cookies import SessionCookies  # noqa: PLC0415 - few servers set cookies

            self._cookies = SessionCookies()
        self._cookies.add(self._url_of(path), lines)

    def _error_of(self, http_response: HttpResponse, session_id: str | None) -> ClientError | None:
        """Return the error that a response's status stands for. Return None if its body decides.

        Args:
            http_response: The response.
            session_id: The session id of the request.
        """
        status = http_response.status
        refusal = refusal_of(http_response)
        if refusal is not None:
            return refusal
        if status == _NOT_FOUND and session_id is not None:
            if self.session_id == session_id:  # else a new session has begun in the meantime
                self.session_id = None
            return SessionEndedError()
        return None


class MemoryTransport(StreamableHTTP):
    """A transport to a server in this process. The author's lifespans are entered while it is connected.

    Args:
        runtime: Serves the server.
        headers: Header fields of every request.
        by_user: Whether the user of this process uses the server, without signing in; see
            `ServerRuntime.exchange_for_user`.
    """

    is_local = True
    """The server is in this process, so its lists are not cached."""

    def __init__(self, runtime: ServerRuntime, headers: Mapping[str, str], *, by_user: bool = False) -> None:
        super().__init__(runtime.exchange, runtime.path, headers)
        self._runtime = runtime
        self._by_user = by_user
        self._is_connected = False

    async def connect(self, receive: Receive) -> None:
        """Enter the lifespans; raise LifespanError if one of them fails."""
        if not self._is_connected:
            await self._runtime.services.lifespans.enter()
            self._is_connected = True
        self._exchange = self._runtime.exchange_for_user() if self._by_user else self._runtime.exchange
        await super().connect(receive)

    async def aclose(self) -> None:
        """End the session, and leave the lifespans."""
        try:
            await super().aclose()
        finally:
            if self._is_connected:
                self._is_connected = False
                await self._runtime.services.lifespans.leave()


def _is_stateless(headers: Mapping[str, str]) -> bool:
    """Return whether a request is of a revision without sessions."""
    revision = REVISIONS.get(headers.get(header_names.VERSION, ""))
    return revision is not None and revision.per_request


async def _ignore(_message: Message) -> None:
    """Handle no message."""


def _session_id(response: HttpResponse) -> str | None:
    """Return the id of the session that a response begins. Return None if it begins none."""
    value = field_of(response, header_names.SESSION_ID)
    if value is not None and not _VISIBLE_ASCII.fullmatch(value):
        raise InvalidResponseError("The server sent a session id that is not visible ASCII.")
    return value

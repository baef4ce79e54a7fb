"""HTTP+SSE, the transport of 2024-11-05: one event stream for all that the server sends, and a POST for each message.

How it works: the first event of the stream, ``endpoint``, names the URL for messages, which has to be on the same
origin. Responses arrive on the stream, and `SharedStream` takes them. The session lasts as long as the stream: when it
ends, all requests that wait fail, and so does each further one.

Source: 2024-11-05 "basic/transports, HTTP with SSE"; 2025-11-25 "basic/transports, Backwards Compatibility".
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._client.errors import ConnectionFailedError, one_line
from funcmcp._client.event_stream import EventReader
from funcmcp._client.http_messages import FIRST_FAILURE, discard, is_event_stream, read_events
from funcmcp._client.messages import parse_message
from funcmcp._client.shared_stream import SharedStream
from funcmcp._protocol.errors import InvalidResponseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._client.event_stream import Event
    from funcmcp._client.transport import Message, Receive
    from funcmcp._transports.http.messages import HttpResponse

    Get: TypeAlias = Callable[[], Awaitable[HttpResponse]]
    Post: TypeAlias = Callable[[Message, Mapping[str, str]], Awaitable[HttpResponse]]

_OK = 200


class HTTPWithSSE:
    """A transport over HTTP+SSE.

    Args:
        get: Requests the event stream.
        post_to: Returns the function that sends a message, for the reference in the event ``endpoint``. It raises
            ConnectionFailedError for a URL on another origin.
        receive: Handles the notifications and requests of the server.
        on_end: Is called when the stream ends before the transport is closed; None for nothing.
    """

    def __init__(
        self, get: Get, post_to: Callable[[str], Post], receive: Receive, on_end: Callable[[], None] | None = None
    ) -> None:
        self._get = get
        self._post_to = post_to
        self._on_end = on_end
        self._post: Post | None = None
        self._stream = SharedStream(receive)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None
        self._ended: ConnectionFailedError | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the stream has ended."""
        return self._ended is not None

    async def open(self, seconds: float) -> bool:
        """Open the event stream. Return False if it does not name an endpoint within these seconds.

        Raises:
            ConnectionFailedError: The server cannot be reached, or the endpoint is on another origin.
        """
        http_response = await self._get()
        if http_response.status != _OK or not is_event_stream(http_response):
            await discard(http_response)
            return False
        self._reading = asyncio.create_task(self._read(http_response), context=Context())
        ends: set[asyncio.Future[Any]] = {self._reading, self._endpoint}
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        try:
            if self._endpoint.done():
                self._post = self._post_to(self._endpoint.result())
        finally:
            if self._post is None:
                await self.aclose()
        return self._post is not None

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request, and return its response; see `Transport.request`."""
        return await self._stream.response_to(message, self.send(message, headers))

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a message; see `Transport.send`."""
        if self._ended is not None:
            raise self._ended
        if self._post is None:
            raise ConnectionFailedError("The event stream is not open.")
        http_response = await self._post(message, headers)
        await discard(http_response)
        if http_response.status >= FIRST_FAILURE:
            kind = message.get("method", "a response")
            raise InvalidResponseError(f"The server does not accept {kind} (HTTP status {http_response.status}).")

    async def aclose(self) -> None:
        """Close the event stream, which ends the session."""
        self._stream.cancel_answers()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _read(self, http_response: HttpResponse) -> None:
        """Read the stream to its end, then fail the requests that wait."""
        ended = ConnectionFailedError("The server has closed its event stream. Connect again.")
        try:
            async with aclosing(read_events(http_response, EventReader())) as events:
                async for event in events:
                    await self._take(event)
        except ConnectionFailedError as error:
            ended = error
        self._ended = ended
        if self._on_end is not None:
            self._on_end()
        self._stream.fail(ended)

    async def _take(self, event: Event) -> None:
        if event.name == "endpoint" and not self._endpoint.done():
            self._endpoint.set_result(event.data.decode("utf-8", "replace"))
        elif event.name == "message":
            message = parse_message(event.data)
            if message is None:
                text = one_line(event.data.decode("utf-8", "replace"))
                self._stream.fail(InvalidResponseError(f"An event of the server is not an MCP message: {text}"))
            else:
                await self._stream.take(message)

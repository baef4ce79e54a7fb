"""Early responses: a request without an answer for some time begins its response as an event stream of comments.

How it works: many clients and proxies close a request that gets no byte for 30 to 300 seconds. `commenting` sets
an alarm for a request that waits. When it is due, the response begins as an event stream with a comment, and the alarm
is set again. The run continues in the task of the request, and its answer becomes the end of the stream
(`sse.rest_of_stream`). The answer to a request that is answered sooner is plain JSON, and no comment is sent.

- The client must accept event streams, and the platform must be able to send a part of a response before the exchange
  returns it (`HttpRequest.send_early`). Otherwise nothing is sent.
- Until its answer, the request counts as a request and not as a stream, and a disconnect has the same effect as before.
- The status of the stream is 200, whatever the answer is. A JSON-RPC error is an event as well; header fields of its
  response, such as Retry-After, are lost.
- If the server ends before the answer, the task of the request is cancelled. The stream then ends with an error, and
  not without an answer. Streams of requests that can send messages end in the same way.
- Requests that can send messages have streams of their own (`request_stream`, `resumable`), which begin in the same way
  after the same time.

Source: 2026-07-28 "basic/transports" (comments keep a stream open); RFC 9110 section 15 (a status can't be taken back).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from funcmcp._transports.http.streams import sse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._server.calls.alarms import Alarms
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.status import Accepts

T = TypeVar("T")


def commenting(
    work: Awaitable[T],
    http: HttpRequest,
    accept: Accepts,
    alarms: Alarms,
    *,
    ending: Callable[[], bytes],
    opening: Callable[[], bytes] | None = None,
) -> Awaitable[T]:
    """Return an awaitable for the result of *work*. While it waits, the client gets comments, if it can read them.

    Args:
        work: The answer to the request, which is not known yet.
        http: The request.
        accept: What the client accepts.
        alarms: Begin the comments.
        ending: Returns what the stream ends with if the server ends before the work.
        opening: Returns what the stream begins with. None: it begins with the comment.
    """
    if not accept.events or not http.begins_early:
        return work
    return _EarlyResponse(http, alarms, opening).during(work, ending)


class _EarlyResponse:
    """Sends comments to a client that waits.

    Args:
        http: The request.
        alarms: Begin the comments.
        opening: Returns what the stream begins with.
    """

    __slots__ = ("_alarms", "_http", "_opening", "_sending")

    def __init__(self, http: HttpRequest, alarms: Alarms, opening: Callable[[], bytes] | None) -> None:
        self._http = http
        self._alarms = alarms
        self._opening = opening
        self._sending: asyncio.Task[None] | None = None

    async def during(self, work: Awaitable[T], ending: Callable[[], bytes]) -> T:
        """Await the work, and send comments until it ends, or *ending* if this task is cancelled before."""
        self._alarms.set(self._on_silence, sse.KEEP_ALIVE_SECONDS)
        try:
            try:
                return await work
            finally:
                if self._sending is not None:
                    await self._end_sending(self._sending)
                self._alarms.cancel(self._on_silence)
        except asyncio.CancelledError:
            if self._http.has_early_response:
                await self._http.send_early((), ending())
            raise

    def _on_silence(self) -> None:
        self._sending = asyncio.create_task(self._send_comment())

    async def _send_comment(self) -> None:
        """Send a comment, and wait for the next silence. If the connection fails, nothing more is sent."""
        comment = sse.KEEP_ALIVE
        if self._opening is not None and not self._http.has_early_response:
            comment = self._opening() + comment
        await self._http.send_early(sse.HEADERS + self._http.added_headers, comment)
        self._sending = None
        self._alarms.set(self._on_silence, sse.KEEP_ALIVE_SECONDS)

    async def _end_sending(self, sending: asyncio.Task[None]) -> None:
        """Wait until a comment that is being sent has been sent as a whole, because a part may follow it."""
        try:
            await asyncio.wait({sending})
        finally:
            sending.cancel()
        if not sending.cancelled():
            sending.exception()

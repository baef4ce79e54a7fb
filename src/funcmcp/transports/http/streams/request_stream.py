"""One request's answer as a stream of server-sent events, begun only when there is something to send before it.

Source: "basic/transports, Streamable HTTP" (the final response ends the stream); HTML living standard, "Server-sent
events" for the framing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import ToolError
from funcmcp.server.run import RunCancelledError
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import EVENT_STREAM, JSON_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from funcmcp.protocol.replies import Reply
    from funcmcp.server.connections.conversation import Conversation
    from funcmcp.server.run import Run

STREAM_HEADERS = (
    ("content-type", EVENT_STREAM),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)
KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment goes out, so that no proxy takes the stream for dead."""

_OK = 200
_MAX_WAITING = 1000
"""Messages that may wait for a slow reader; then the run waits too."""

_MAX_BYTES = 1024 * 1024
"""Bytes after which the run waits, too."""


def event(data: bytes) -> bytes:
    """Return one event with a JSON text, which is a single line, as its data."""
    return b"event: message\ndata: %b\n\n" % data


def as_stream(response: HttpResponse) -> HttpResponse:
    """Return an answer as a stream of one event, for a client that takes nothing but event streams."""
    if response.status != _OK or not isinstance(response.body, bytes) or response.headers[:1] != JSON_HEADERS:
        return response
    return HttpResponse(_OK, STREAM_HEADERS + response.headers[1:], event(response.body))


class _Waiting(asyncio.Queue[bytes]):
    """Messages that wait for a reader: so many, and hardly more than so many bytes."""

    def __init__(self) -> None:
        super().__init__(_MAX_WAITING)
        self._bytes = 0

    def full(self) -> bool:
        return super().full() or self._bytes >= _MAX_BYTES

    def _put(self, item: bytes) -> None:
        self._bytes += len(item)
        super()._put(item)

    def _get(self) -> bytes:
        item = super()._get()
        self._bytes -= len(item)
        return item


class StreamChannel:
    """A channel onto the event stream of one request.

    Args:
        conversation: where the client's answers to questions come in; None where the era has no such questions.
    """

    pushes = True

    def __init__(self, conversation: Conversation | None) -> None:
        self.messages: asyncio.Queue[bytes] = _Waiting()
        self._conversation = conversation
        self._closed = False

    def close(self) -> None:
        """Send nothing more: the client has gone, and a run that waits for room must not wait for ever."""
        self._closed = True
        while not self.messages.empty():
            self.messages.get_nowait()

    def close_stream(self) -> None:
        """Do nothing: the client could not take the stream up again."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the stream is closed."""
        if not self._closed:
            await self.messages.put(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's responses."""
        if self._conversation is None or self._closed:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self.messages.put)


class BufferedChannel(StreamChannel):
    """A channel onto a stream that reaches the client as a whole, with the answer: too late for any question."""

    pushes = False

    def __init__(self) -> None:
        super().__init__(None)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse, whatever the questions are."""
        del questions
        raise ToolError("The client can't be asked here: this platform sends an event stream only when it is complete.")


class Leaving:
    """A client's leaving means that its request is cancelled.

    Args:
        run: what to cancel.
        disconnected: returns when the client has gone.
    """

    __slots__ = ("_disconnected", "run")

    def __init__(self, run: Run, disconnected: Callable[[], Awaitable[None]]) -> None:
        self.run = run
        self._disconnected = disconnected

    async def watch(self) -> None:
        """Wait for the client to leave, and cancel the run then."""
        await self._disconnected()
        self.run.cancel()


async def stream_response(
    work: Coroutine[object, object, Reply],
    channel: StreamChannel,
    *,
    respond: Callable[[Reply], HttpResponse],
    leaving: Leaving | None = None,
) -> HttpResponse:
    """Run a request; return plain JSON if it sends nothing before its answer, and a stream if it does.

    Args:
        work: the run; its messages go to `channel`.
        channel: the channel of the run.
        respond: makes the plain response.
        leaving: what to do when the client leaves; None to let the run go on.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(see_outcome)
    first = asyncio.ensure_future(channel.messages.get())
    watch = asyncio.ensure_future(leaving.watch()) if leaving is not None else None
    try:
        await asyncio.wait({task, first}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        for waiting in (first, watch):
            if waiting is not None and not waiting.done():
                waiting.cancel()
    if first.done() and not first.cancelled():
        return HttpResponse(200, STREAM_HEADERS, _events(first.result(), task, channel, leaving))
    return respond(await task)


def see_outcome(task: asyncio.Task[Reply]) -> None:
    """Look at the outcome of a run whose client may have left, so that asyncio does not report it as unseen."""
    if not task.cancelled():
        task.exception()


async def _events(
    first: bytes, task: asyncio.Task[Reply], channel: StreamChannel, leaving: Leaving | None
) -> AsyncIterator[bytes]:
    try:
        yield event(first)
        del first  # the stream may wait for long
        while (message := await _next(task, channel)) is not None:
            yield message
            del message
        try:
            yield event((await task).body)
        except RunCancelledError:
            return  # the client cancelled: nothing more may be sent for its request
    finally:
        channel.close()
        if leaving is not None and not task.done():
            leaving.run.cancel()


async def _next(task: asyncio.Task[Reply], channel: StreamChannel) -> bytes | None:
    """Return the next message as an event, a comment after long silence, or None when only the answer is left."""
    if channel.messages.empty():
        if task.done():
            return None
        getter = asyncio.ensure_future(channel.messages.get())
        try:
            await asyncio.wait({task, getter}, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
            if getter.done():
                return event(getter.result())
        finally:
            getter.cancel()
        return b": keep-alive\n\n" if not task.done() else await _next(task, channel)
    return event(channel.messages.get_nowait())

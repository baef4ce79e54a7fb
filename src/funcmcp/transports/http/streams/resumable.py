"""Streams of a session that a client can take up again where they broke off (handshake era).

Every event has an id. A client whose connection broke asks for the rest with GET and `Last-Event-ID`. What was sent
is kept for that, bounded in number and size; of a stream nothing is replayed on another one.

Source: 2025-11-25 "basic/transports, Resumability and Redelivery" and "Sending Messages to the Server".
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import ToolError
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.streams.request_stream import KEEP_ALIVE, STREAM_HEADERS, see_outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping

    from funcmcp.protocol.replies import Reply
    from funcmcp.server.connections.conversation import Conversation

RETRY = 500
"""Milliseconds that a client is asked to wait before it takes a stream up again."""

_MAX_EVENTS = 1000
_MAX_BYTES = 1024 * 1024
"""Of one stream; beyond, the oldest events are forgotten."""

_MAX_STREAMS = 16
"""Of one session; beyond, the oldest finished ones are forgotten."""

_MAX_CHANGES = 100
"""Events of the stream that belongs to no request."""

_MAX_CHANGES_BYTES = 64 * 1024
"""Bytes of that stream."""

_MAX_KEPT = 64 * 1024 * 1024
"""Bytes of finished streams in this process; beyond, the oldest are forgotten, whoever's they are."""

_STREAM_OVERHEAD = 2560
"""Bytes of memory that a stream takes up without its events."""

_EVENT_OVERHEAD = 160
"""Bytes of memory that an event takes up beside its data."""


class EventStream:
    """What was sent on one stream, and what is still to come.

    Args:
        name: unique in the session; event ids begin with it.
        priming: whether the client understands an event without data, which gives it an id to come back with.
        limit: how many events are kept.
        max_bytes: Bytes of events that are kept; the last event is kept however large it is.

    Attributes:
        finished: whether nothing more will come.
        told: the number of the last event that was sent.
    """

    __slots__ = (
        "_broken",
        "_bytes",
        "_events",
        "_last",
        "_limit",
        "_max_bytes",
        "_news",
        "_priming",
        "_reader",
        "finished",
        "name",
        "told",
    )

    def __init__(self, name: str, *, priming: bool, limit: int = _MAX_EVENTS, max_bytes: int = _MAX_BYTES) -> None:
        self.name = name
        self._limit = limit
        self._max_bytes = max_bytes
        self.finished = False
        self.told = 0
        self._priming = priming
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._news = asyncio.Event()
        self._reader: object = None
        self._broken = False

    @property
    def is_read(self) -> bool:
        """Whether somebody reads it now."""
        return self._reader is not None

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._last

    @property
    def size(self) -> int:
        """Bytes of memory that it takes up."""
        return self._bytes + _STREAM_OVERHEAD

    def append(self, data: bytes) -> None:
        """Add a message."""
        self._last += 1
        self._events.append((self._last, data))
        self._bytes += len(data) + _EVENT_OVERHEAD
        while len(self._events) > self._limit or (self._bytes > self._max_bytes and len(self._events) > 1):
            self._bytes -= len(self._events.popleft()[1]) + _EVENT_OVERHEAD
        self._news.set()

    def finish(self) -> None:
        """Say that nothing more will come."""
        self.finished = True
        self._news.set()

    def interrupt(self) -> None:
        """End the connection that reads, or the first one that will, if the client can take the stream up again."""
        if self._priming or self._last:
            self._broken = self._reader is None
            self._reader = None
            self._news.set()

    async def follow(self, after: int) -> AsyncGenerator[bytes]:
        """Yield what came after an event, and what is to come, as events; comments after long silence.

        Another reader takes the place of this one, which ends then.
        """
        reader = self._reader = object()
        self._news.set()  # for the reader before
        try:
            if self._priming:
                yield b"id: %b-%d\nretry: %d\ndata: \n\n" % (self.name.encode(), after, RETRY)
            broken, self._broken = self._broken, False
            if broken and self._priming:
                return  # the client has an id to come back with
            while self._reader is reader:
                for number, data in [event for event in self._events if event[0] > after]:
                    yield b"id: %b-%d\nevent: message\ndata: %b\n\n" % (self.name.encode(), number, data)
                    after = number
                    self.told = max(self.told, number)
                if broken or (self.finished and after >= self._last):
                    return
                if self._reader is reader and self._last <= after and not await self._changed():
                    yield b": keep-alive\n\n"
        finally:
            if self._reader is reader:
                self._reader = None

    async def _changed(self) -> bool:
        self._news.clear()
        try:
            async with asyncio.timeout(KEEP_ALIVE):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class Streams:
    """The streams of one session.

    Args:
        priming: see `EventStream`.
        prefix: begins the names of all streams.
        kept_streams: The finished streams of all sessions.

    Attributes:
        general: carries what belongs to no request.
    """

    def __init__(self, *, priming: bool, prefix: str = "", kept_streams: KeptStreams | None = None) -> None:
        self._priming = priming
        self._prefix = prefix
        self._kept_streams = kept_streams or KeptStreams()
        self.general = EventStream(f"{prefix}0", priming=priming, limit=_MAX_CHANGES, max_bytes=_MAX_CHANGES_BYTES)
        self._streams: dict[str, EventStream] = {}
        self._count = 0
        self._closed = False

    @property
    def are_read(self) -> bool:
        """Whether the client reads one of them now."""
        return self.general.is_read or any(stream.is_read for stream in self._streams.values())

    def open(self) -> EventStream:
        """Begin a stream."""
        self._count += 1
        name = f"{self._prefix}{self._count}"
        stream = self._streams[name] = EventStream(name, priming=self._priming)
        if len(self._streams) > _MAX_STREAMS:
            finished = next((old for old in self._streams.values() if old.finished), None)
            if finished is not None:
                self.forget(finished)
        return stream

    def find(self, event_id: str) -> tuple[EventStream, int] | None:
        """Return the stream of an event id and the event's number, or None if it is not kept or never was."""
        name, _, number = event_id.partition("-")
        stream = self.general if name == self.general.name else self._streams.get(name)
        if stream is None or not (number.isascii() and number.isdigit()) or int(number[:18]) > stream.last:
            return None
        return stream, int(number[:18])

    def keep(self, stream: EventStream) -> None:
        """Keep a stream that is finished, so that the client can take it up again."""
        if not self._closed:
            self._kept_streams.add(self, stream)

    def forget(self, stream: EventStream) -> None:
        """Keep nothing more of a stream."""
        self._streams.pop(stream.name, None)
        self._kept_streams.remove(stream)

    def close(self) -> None:
        """Keep nothing more: the session has ended. Runs that are under way may still end their streams."""
        self._closed = True
        self.general.finish()
        for stream in list(self._streams.values()):
            self.forget(stream)


class KeptStreams:
    """What finished streams of all sessions take up together.

    Args:
        limit: Bytes of memory; beyond, the oldest streams are forgotten.
    """

    def __init__(self, limit: int = _MAX_KEPT) -> None:
        self._limit = limit
        self._streams: dict[EventStream, tuple[Streams, int]] = {}
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes of memory that they take up."""
        return self._bytes

    def add(self, streams: Streams, stream: EventStream) -> None:
        """Take note of a stream that is finished."""
        self._streams[stream] = streams, stream.size
        self._bytes += stream.size
        while self._bytes > self._limit:
            oldest = next(iter(self._streams))
            self._streams[oldest][0].forget(oldest)

    def remove(self, stream: EventStream) -> None:
        """Take note that a stream is kept no more, if it was."""
        _, size = self._streams.pop(stream, (None, 0))
        self._bytes -= size


class ResumableChannel:
    """A channel onto a stream that can be taken up again.

    Args:
        conversation: where the client's answers to questions come in.
        stream: takes the messages.
    """

    pushes = True

    def __init__(self, conversation: Conversation, stream: EventStream) -> None:
        self._conversation = conversation
        self._stream = stream
        self.used = asyncio.Event()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the run is over."""
        await self._send(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's responses."""
        if self._stream.finished:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self._send)

    def close_stream(self) -> None:
        """End the connection; the client takes the stream up again."""
        self.used.set()
        self._stream.interrupt()

    async def _send(self, data: bytes) -> None:
        if not self._stream.finished:
            self._stream.append(data)
            self.used.set()


async def resumable_response(
    work: Coroutine[object, object, Reply],
    channel: ResumableChannel,
    stream: EventStream,
    *,
    respond: Callable[[Reply], HttpResponse],
    unused: Callable[[], None],
    finished: Callable[[], None],
) -> HttpResponse:
    """Run a request; return plain JSON if it sends nothing before its answer, and a stream if it does.

    The run goes on when the client leaves; its answer waits on the stream.

    Args:
        work: the run; its messages go to `channel`.
        channel: the channel of the run.
        stream: what the channel leads to.
        respond: makes the plain response.
        unused: Called when the run has ended and sent nothing on the stream.
        finished: called when all is on the stream.

    Raises:
        RunCancelledError: the client cancelled the request before anything was sent.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(see_outcome)
    used = asyncio.ensure_future(channel.used.wait())
    try:
        await asyncio.wait({task, used}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        stream.finish()
        unused()
        raise
    finally:
        used.cancel()
    if not channel.used.is_set():
        stream.finish()
        unused()
        return respond(await task)
    task.add_done_callback(lambda _: _conclude(task, stream))
    task.add_done_callback(lambda _: finished())
    return HttpResponse(200, STREAM_HEADERS, stream.follow(0))


def _conclude(task: asyncio.Task[Reply], stream: EventStream) -> None:
    """Put the answer at the end of a stream; nothing for a request that was cancelled."""
    if not task.cancelled() and task.exception() is None:
        stream.append(task.result().body)
    stream.finish()

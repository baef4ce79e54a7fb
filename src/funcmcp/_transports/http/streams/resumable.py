"""Event streams that a client can resume after a broken connection (handshake era).

How it works: a session has one general stream, for messages that do not belong to a request, and one stream for each
request during which the server sends a message before the response. Each event has an id, `NAME-NUMBER`. The latest
events of each stream are stored, up to a maximum number and size. A client resumes a stream with GET and
`Last-Event-ID`, and gets only the later events of that stream.

- A run writes to its `ResumableStream`; the session writes to the general stream. A stream has at most one reader,
  which is an HTTP response. A new reader replaces the earlier one. Events are also stored without a reader, because the
  run continues when the client disconnects.
- A stream is *finished* when its run has ended. Its last event is the response. A finished stream stays in the
  session's `SessionStreams`, where the client can still resume it, until one of the limits below drops it.
- `FinishedStreams` bounds the memory of the finished streams of all sessions together. All events count for the memory
  of their caller (`Load.memory`). When it is used up, the oldest finished streams of the caller are dropped, and then
  the older events of the stream that grows.
- `close_stream` of a channel ends the HTTP response but not the stream, which the client then resumes (SEP-1699). The
  client needs an event id for that. Each response to a client of 2025-11-25 therefore begins with an event that has an
  id and no data (*priming*).

The module `remote_streams` resumes streams that another instance stores.

Source: 2025-11-25 "basic/transports, Resumability and Redelivery" and "Sending Messages to the Server".
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ToolError
from funcmcp._server.wakeup import Wakeup
from funcmcp._transports.http.status import handshake_response
from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.early_response import commenting
from funcmcp._transports.http.streams.request_stream import retrieve_outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from funcmcp._protocol.jsonrpc import RequestId
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.alarms import Alarms
    from funcmcp._server.connections.conversation import Conversation
    from funcmcp._server.load import Budget
    from funcmcp._transports.http.messages import HttpRequest, HttpResponse
    from funcmcp._transports.http.status import Accepts

RETRY = 500
"""Milliseconds that a client waits before it resumes a stream."""

_MAX_EVENTS = 1000
"""Stored events of one stream. Beyond that, the oldest ones are dropped."""

_MAX_BYTES = 1024 * 1024
"""Bytes of the stored events of one stream. Beyond that, the oldest ones are dropped."""

_MAX_STREAMS = 16
"""Streams of one session. Beyond that, the oldest finished ones are dropped."""

_MAX_GENERAL_EVENTS = 100
"""Stored events of a general stream."""

_MAX_GENERAL_BYTES = 64 * 1024
"""Bytes of the stored events of a general stream."""

_MAX_FINISHED_BYTES = 64 * 1024 * 1024
"""Bytes of the finished streams of all sessions in this process. Beyond that, the oldest ones are dropped."""

_STREAM_OVERHEAD = 2560
"""Bytes of memory that a stream takes up without its events."""

_EVENT_OVERHEAD = 160
"""Bytes of memory that an event takes up in addition to its data."""

_MAX_DIGITS = 18
"""Digits of an event's number that are parsed. Further digits are ignored."""


class Position(NamedTuple):
    """A position in a stream: after the event with this number."""

    stream: ResumableStream
    number: int

    def follow(self) -> AsyncGenerator[bytes]:
        """Yield the events after this position."""
        return self.stream.follow(self.number)


class ResumableStream:
    """The stored events of one stream, and at most one reader, which waits for further events.

    Args:
        name: The name of the stream, unique in the session. Event ids begin with it.
        priming: Whether the client accepts an event without data, whose id it can use to resume the stream.
        max_events: The maximum number of stored events.
        max_bytes: The maximum size of the stored events. The last event is always stored.
        account: Counts the memory; None if it does not count.

    Attributes:
        finished: Whether the stream is complete.
        last_sent: The number of the last event that was sent.
    """

    __slots__ = (
        "_account",
        "_bytes",
        "_events",
        "_interrupted",
        "_last",
        "_max_bytes",
        "_max_events",
        "_priming",
        "_reader",
        "_updated",
        "finished",
        "last_sent",
        "name",
    )

    def __init__(
        self,
        name: str,
        *,
        priming: bool,
        max_events: int = _MAX_EVENTS,
        max_bytes: int = _MAX_BYTES,
        account: _Account | None = None,
    ) -> None:
        self.name = name
        self._account = account
        self.finished = False
        self.last_sent = 0
        self._priming = priming
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._updated = Wakeup()
        self._reader: object = None
        self._interrupted = False  # whether the next reader ends after the stored events
        if account is not None:
            account.count(_STREAM_OVERHEAD)

    @property
    def is_read(self) -> bool:
        """Whether the stream has a reader."""
        return self._reader is not None

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._last

    @property
    def size(self) -> int:
        """The bytes of memory that the stream takes up."""
        return self._bytes + _STREAM_OVERHEAD

    def append(self, message: bytes) -> None:
        """Add an event with a message."""
        self._last += 1
        size = len(message) + _EVENT_OVERHEAD
        while not self._has_room(size) and self._events:
            self._count(-len(self._events.popleft()[1]) - _EVENT_OVERHEAD)
        self._events.append((self._last, message))
        self._count(size)
        self._updated.set()

    def _has_room(self, size: int) -> bool:
        """Return whether there is room for one more event."""
        if len(self._events) >= self._max_events or self._bytes + size > self._max_bytes:
            return False
        return self._account is None or self._account.make_room(size)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._account is not None:
            self._account.count(size)

    def release(self) -> None:
        """Count no memory any more, because the stream is dropped."""
        if self._account is not None:
            self._account.count(-self.size)
            self._account = None

    def finish(self) -> None:
        """Mark the stream as finished: no further event follows."""
        self.finished = True
        self._updated.set()

    def interrupt(self) -> None:
        """End the response of the current reader, or of the next one if there is none.

        This has no effect if the client does not have an event id with which it could resume the stream.
        """
        if self._priming or self._last:
            self._interrupted = self._reader is None
            self._reader = None
            self._updated.set()

    async def follow(self, after: int) -> AsyncGenerator[bytes]:
        """Yield the stored events after the number *after*, then each new event, with keep-alive comments between them.

        The generator becomes the reader of the stream. An earlier reader ends.
        """
        reader = self._reader = object()
        self._updated.set()  # wakes the earlier reader, which ends
        try:
            if self._priming:
                yield self.priming_event(after)
            elif self._last <= after:
                yield sse.KEEP_ALIVE  # some servers and proxies hold the header back until there is a body
            interrupted, self._interrupted = self._interrupted, False
            if interrupted and self._priming:
                return  # the client can resume with the id of the priming event
            while self._reader is reader:
                for number, data in self._events_after(after):
                    yield sse.event(data, event_id=self._event_id(number))
                    after = number
                    self.last_sent = max(self.last_sent, number)
                if interrupted or (self.finished and after >= self._last):
                    return
                if self._reader is reader and self._last <= after and not await self._wait_for_update():
                    yield sse.KEEP_ALIVE
        finally:
            if self._reader is reader:
                self._reader = None

    def _events_after(self, number: int) -> list[tuple[int, bytes]]:
        """Return the stored events after a number. The list does not change while its reader waits."""
        return [event for event in self._events if event[0] > number]

    def priming_event(self, number: int) -> bytes:
        """Return the event without data with which a client can resume the stream after an event."""
        return sse.priming_event(self._event_id(number), RETRY)

    def last_event(self) -> bytes:
        """Return the last event."""
        number, message = self._events[-1]
        return sse.event(message, event_id=self._event_id(number))

    def _event_id(self, number: int) -> bytes:
        return b"%b-%d" % (self.name.encode(), number)

    async def _wait_for_update(self) -> bool:
        """Wait for an update of the stream; return False if none comes within the keep-alive interval."""
        self._updated.clear()
        return await self._updated.wait(sse.KEEP_ALIVE_SECONDS)


class SessionStreams:
    """The streams of one session.

    Args:
        priming: See `ResumableStream`.
        prefix: The prefix of the names of all streams.
        finished_streams: The finished streams of all sessions.
        caller: The caller whose memory they take up.

    Attributes:
        caller: The caller whose memory they take up.
        general: The stream of messages that do not belong to a request.
    """

    def __init__(
        self,
        *,
        priming: bool,
        prefix: str = "",
        finished_streams: FinishedStreams | None = None,
        caller: str | None = None,
    ) -> None:
        self.caller = caller
        self._priming = priming
        self._prefix = prefix
        self._finished_streams = finished_streams or FinishedStreams()
        self._account = _Account(self._finished_streams, caller)
        self.general = ResumableStream(
            f"{prefix}0",
            priming=priming,
            max_events=_MAX_GENERAL_EVENTS,
            max_bytes=_MAX_GENERAL_BYTES,
            account=self._account,
        )
        self._streams: dict[str, ResumableStream] = {}
        self._count = 0
        self._closed = False

    @property
    def are_read(self) -> bool:
        """Whether at least one of the streams has a reader."""
        return self.general.is_read or any(stream.is_read for stream in self._streams.values())

    def open(self) -> ResumableStream:
        """Create the stream of a request. After `close`, it is not stored, and its memory does not count."""
        self._count += 1
        name = f"{self._prefix}{self._count}"
        if self._closed:
            return ResumableStream(name, priming=self._priming)
        stream = self._streams[name] = ResumableStream(name, priming=self._priming, account=self._account)
        if len(self._streams) > _MAX_STREAMS:
            finished = next((older for older in self._streams.values() if older.finished), None)
            if finished is not None:
                self.drop(finished)
        return stream

    def find(self, event_id: str) -> Position | None:
        """Return the position after an event; None if its stream is not stored or has never had the event."""
        name, _, digits = event_id.partition("-")
        stream = self._streams.get(name)
        if name == self.general.name:
            stream = self.general
        if stream is None or not (digits.isascii() and digits.isdigit()):
            return None
        number = int(digits[:_MAX_DIGITS])
        if number > stream.last:
            return None
        return Position(stream, number)

    def keep(self, stream: ResumableStream) -> None:
        """Store a finished stream, so that the client can resume it."""
        if not self._closed:
            self._finished_streams.add(self, stream)

    def drop(self, stream: ResumableStream) -> None:
        """Remove a stream. The client can't resume it any more."""
        self._streams.pop(stream.name, None)
        self._finished_streams.remove(stream)
        stream.release()

    def close(self) -> None:
        """Drop all streams, because the session has ended. Runs under way may still write to their streams."""
        self._closed = True
        self.general.finish()
        self.general.release()
        for stream in list(self._streams.values()):
            self.drop(stream)


class FinishedStreams:
    """The finished streams of all sessions, bounded in memory.

    Args:
        max_bytes: The bytes of memory that the streams may take up. Beyond that, the oldest streams are dropped.
        memory: The memory that callers make the process hold; None if it is not counted.
    """

    def __init__(self, max_bytes: int = _MAX_FINISHED_BYTES, memory: Budget | None = None) -> None:
        self.memory = memory
        self._max_bytes = max_bytes
        self._streams: dict[ResumableStream, tuple[SessionStreams, int]] = {}
        self._bytes = 0

    @property
    def size(self) -> int:
        """The bytes of memory that the streams take up."""
        return self._bytes

    def add(self, owner: SessionStreams, stream: ResumableStream) -> None:
        """Add a stream of a session."""
        self._streams[stream] = owner, stream.size
        self._bytes += stream.size
        while self._bytes > self._max_bytes:
            oldest = next(iter(self._streams))
            owner, _ = self._streams[oldest]
            owner.drop(oldest)

    def make_room(self, caller: str | None, size: int) -> bool:
        """Drop the oldest streams of a caller until there is room for so many bytes; return whether there is."""
        if self.memory is None:
            return True
        while not self.memory.has_room(caller, size):
            oldest = next((stream for stream, (owner, _) in self._streams.items() if owner.caller == caller), None)
            if oldest is None:
                return False
            self._streams[oldest][0].drop(oldest)
        return True

    def remove(self, stream: ResumableStream) -> None:
        """Remove a stream if it is stored."""
        _, size = self._streams.pop(stream, (None, 0))
        self._bytes -= size


class _Account:
    """Counts the memory of the streams of one session for its caller.

    Args:
        streams: The finished streams of all sessions.
        caller: The caller.
    """

    __slots__ = ("_caller", "_streams")

    def __init__(self, streams: FinishedStreams, caller: str | None) -> None:
        self._streams = streams
        self._caller = caller

    def make_room(self, size: int) -> bool:
        """Do what `FinishedStreams.make_room` says."""
        return self._streams.make_room(self._caller, size)

    def count(self, size: int) -> None:
        """Count bytes that a stream takes up, or releases."""
        memory = self._streams.memory
        if memory is not None and size > 0:
            memory.count(self._caller, size)
        elif memory is not None:
            memory.give_back(self._caller, -size)


class ResumableChannel:
    """A channel that sends messages on a stream which the client can resume.

    Args:
        conversation: Receives the client's answers to questions.
        stream: Receives the messages.

    Attributes:
        used: Whether the response must be a stream, because a message was sent, `close_stream` was called, or the
            client has waited for long.
        decided: Is set when the channel is used, or when the run has ended.
    """

    pushes = True

    def __init__(self, conversation: Conversation, stream: ResumableStream) -> None:
        self._conversation = conversation
        self._stream = stream
        self.used = False
        self.decided = Wakeup()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the run has ended."""
        await self._send(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's answers."""
        if self._stream.finished:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self._send)

    def close_stream(self) -> None:
        """End the HTTP response. The client then resumes the stream."""
        self._use()
        self._stream.interrupt()

    async def _send(self, message: bytes) -> None:
        if not self._stream.finished:
            self._stream.append(message)
            self._use()

    def _use(self) -> None:
        self.used = True
        self.decided.set()


async def resumable_response(
    work: Coroutine[object, object, Reply],
    channel: ResumableChannel,
    stream: ResumableStream,
    streams: SessionStreams,
    *,
    request_id: RequestId,
    respond: Callable[[Reply], HttpResponse],
) -> HttpResponse:
    """Run a request; return plain JSON if it is answered soon and sends nothing before, otherwise an event stream.

    The run continues when the client disconnects. Its response is then stored on the stream.

    Args:
        work: The run. It sends its messages to *channel*.
        channel: The channel of the run.
        stream: The stream of the channel, one of *streams*. It is dropped if it was not used.
        streams: The streams of the session.
        request_id: The id of the request.
        respond: Returns the HTTP response with a reply as plain JSON.

    Raises:
        RunCancelledError: The client cancelled the request before anything was sent.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve_outcome)
    task.add_done_callback(lambda _: channel.decided.set())
    try:
        if not await channel.decided.wait(sse.KEEP_ALIVE_SECONDS):
            channel.used = True
    except asyncio.CancelledError:
        task.cancel()
        stream.finish()
        streams.drop(stream)
        raise
    if not channel.used:
        stream.finish()
        streams.drop(stream)
        return respond(await task)

    def finish(task: asyncio.Task[Reply]) -> None:
        """End the stream with the response. A cancelled request does not have one."""
        if not task.cancelled() and task.exception() is None:
            stream.append(task.result().body)
        stream.finish()
        streams.keep(stream)

    task.add_done_callback(finish)
    return sse.response(_events(stream, request_id))


async def _events(stream: ResumableStream, request_id: RequestId) -> AsyncIterator[bytes]:
    """Yield the events of a stream from its beginning, and an error if the server ends before the last one."""
    async with aclosing(stream.follow(0)) as events:
        try:
            async for part in events:
                yield part
        except asyncio.CancelledError:
            yield sse.unanswered(request_id)
            raise


async def resumable_if_silent(
    work: Awaitable[Reply],
    http: HttpRequest,
    accept: Accepts,
    alarms: Alarms,
    *,
    request_id: RequestId,
    streams_of: Callable[[], SessionStreams],
) -> HttpResponse:
    """Await the answer to a request that sends no messages; return plain JSON if it is answered soon.

    Otherwise the response has begun as an event stream that the client can resume, and its last event is returned.

    Args:
        work: The run. It continues when the client disconnects.
        http: The request.
        accept: What the client accepts.
        alarms: Begin the response if there is no answer for some time.
        request_id: The id of the request.
        streams_of: Returns the streams of the session, whose client accepts priming events.
    """
    streams = stream = None

    def open_stream() -> bytes:
        nonlocal streams, stream
        streams = streams_of()
        stream = streams.open()
        return stream.priming_event(0)

    def ending() -> bytes:
        return b"" if stream is not None and stream.is_read else sse.unanswered(request_id)

    try:
        reply = await commenting(work, http, accept, alarms, ending=ending, opening=open_stream)
        if stream is not None:
            stream.append(reply.body)
    finally:
        if stream is not None and streams is not None:
            stream.finish()
            streams.keep(stream)
    if stream is None:
        return handshake_response(reply)
    return sse.response(b"" if stream.is_read else stream.last_event())

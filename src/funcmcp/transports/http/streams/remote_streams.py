"""Streams of a session that are at another instance of the server.

How it works: an event id begins with the name of the instance whose stream it is. A client that resumes a stream may
come to an instance that does not have it. If the bus does not know the instance of the event id, the stream is gone,
and nothing is waited for. Otherwise this instance (the reader) asks it over the bus with "follow", and it answers with
the parts of the stream: "begun", the events, and an empty part at the end; or with an empty part at once if it has no
such stream. An instance that died a moment ago does not answer; then the reader waits for `ANSWER_SECONDS`.

Whether another instance serves the general stream of a session is asked of all of them with "is read". Each answers
"yes" or "no"; the first "yes" or the last "no" decides, or `READ_SECONDS` if an instance does not answer.

A reader says "still" from time to time and "stop" when it leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from contextlib import aclosing
from typing import TYPE_CHECKING

from funcmcp.state.sessions.store import StoreAwayError
from funcmcp.transports.http.streams.request_stream import KEEP_ALIVE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from funcmcp.server.connections.hub import Hub
    from funcmcp.state.bus import Bus, Message
    from funcmcp.transports.http.streams.resumable import Streams

_TOPIC = "streams"

ANSWER_SECONDS = 1.0
"""For the instance that has a stream, to begin to read it out."""

READ_SECONDS = 0.1
"""For the other instances to say whether a stream is read there."""

RENEW_SECONDS = 5.0
"""A reader that hears nothing says so often that it is still there; three times that, and it is given up."""

_ATTEMPTS = 6
_ATTEMPT_INTERVAL = 0.3
"""Seconds between attempts to send a part of a stream."""

_END = ""
_YES = "yes"
_NO = "no"


class Elsewhere:
    """Asks the other instances for streams, and reads out to them.

    Args:
        bus: leads to the other instances.
        hub: tells when this instance is about to stop.
        find: returns the streams that this instance has of a session, or None.
    """

    def __init__(self, bus: Bus, hub: Hub, find: Callable[[str], Streams | None]) -> None:
        self._bus = bus
        self._hub = hub
        self._find = find
        self._readers: dict[str, asyncio.Queue[str]] = {}
        self._numbers: dict[str, int] = {}
        """By reader, the number of the last part that came."""
        self._reading_out: dict[str, _ReadingOut] = {}
        bus.subscribe(_TOPIC, self._hear)

    async def is_read(self, session_id: str) -> bool:
        """Return whether the general stream of a session is read at another instance; raise StoreAwayError."""
        instances = await self._bus.other_instances()
        if not instances:
            return False
        with self._asking() as (reader, parts):
            await self._bus.send(_TOPIC, {"kind": "is read", "reader": reader, "session": session_id})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(READ_SECONDS):
                    for _ in instances:
                        if await parts.get() == _YES:
                            return True
            return False

    async def follow(self, session_id: str, event_id: str) -> AsyncGenerator[bytes] | None:
        """Return what comes after an event on a stream of another instance, as it is sent; None if none has it.

        Raises:
            StoreAwayError: the others can't be reached.
        """
        instance = _instance_of(event_id)
        if instance == self._bus.instance or instance not in await self._bus.other_instances():
            return None
        events = self._follow(session_id, event_id)
        if await anext(events):
            return events
        await events.aclose()
        return None

    async def _follow(self, session_id: str, event_id: str) -> AsyncGenerator[bytes]:
        """Yield something or nothing, as an instance has the stream or none has, and then its events."""
        with self._asking() as (reader, parts), self._until_stopping(parts):
            asked = {"kind": "follow", "reader": reader, "session": session_id, "event": event_id}
            await self._bus.send(_TOPIC, asked)
            yield (await _next(parts, ANSWER_SECONDS) or "").encode()
            silent = 0.0
            while silent <= 2 * KEEP_ALIVE:
                part = await _next(parts, RENEW_SECONDS)
                if part == _END:
                    return
                if part is None:
                    silent += RENEW_SECONDS
                    self._bus.tell(_TOPIC, {"kind": "still", "reader": reader})
                else:
                    silent = 0.0
                    yield part.encode()

    @contextlib.contextmanager
    def _asking(self) -> Iterator[tuple[str, asyncio.Queue[str]]]:
        """Name a reader, whom what other instances say reaches as long as the block runs."""
        reader = os.urandom(12).hex()
        parts = self._readers[reader] = asyncio.Queue()
        self._numbers[reader] = 0
        try:
            yield reader, parts
        finally:
            del self._readers[reader], self._numbers[reader]
            self._bus.tell(_TOPIC, {"kind": "stop", "reader": reader})

    @contextlib.contextmanager
    def _until_stopping(self, parts: asyncio.Queue[str]) -> Iterator[None]:
        """End what is read when this instance is about to stop; the client takes it up again at another one."""
        with self._hub.listening(lambda _: False) as nothing:
            stopping = asyncio.ensure_future(anext(nothing, None))
            stopping.add_done_callback(lambda _: parts.put_nowait(_END))
            try:
                yield
            finally:
                stopping.cancel()

    def _hear(self, message: Message) -> None:
        reader = message["reader"]
        match message["kind"]:
            case "part":
                self._take(reader, message["part"], message.get("number"))
            case "is read":
                streams = self._find(message["session"])
                is_read = streams is not None and streams.general.is_read
                self._bus.tell(_TOPIC, {"kind": "part", "reader": reader, "part": _YES if is_read else _NO})
            case "follow" if _instance_of(message["event"]) == self._bus.instance:
                self._read_out(reader, message["session"], message["event"])
            case _ if reader in self._reading_out:
                self._reading_out[reader].note(message["kind"])

    def _take(self, reader: str, part: str, number: int | None) -> None:
        """Take a part for a reader; one of a stream has a number, because it may be sent again."""
        if reader not in self._readers or (number is not None and number <= self._numbers[reader]):
            return
        if number is not None:
            self._numbers[reader] = number
        self._readers[reader].put_nowait(part)

    def _read_out(self, reader: str, session_id: str, event_id: str) -> None:
        streams = self._find(session_id)
        found = None if streams is None else streams.find(event_id)
        if found is None:
            self._bus.tell(_TOPIC, {"kind": "part", "reader": reader, "part": _END})
            return
        stream, after = found
        reading = self._reading_out[reader] = _ReadingOut(self._bus, reader, stream.follow(after))
        reading.task.add_done_callback(lambda _: self._reading_out.pop(reader))


class _ReadingOut:
    """Events that are read out to a reader at another instance, as long as it is there."""

    def __init__(self, bus: Bus, reader: str, events: AsyncGenerator[bytes]) -> None:
        self._bus = bus
        self._reader = reader
        self._events = events
        self._number = 0
        self.task = asyncio.ensure_future(self._run())
        self._give_up = self._later()

    def note(self, kind: str) -> None:
        """Take note that the reader is still there, or that it has gone."""
        self._give_up.cancel()
        if kind == "stop":
            self.task.cancel()
        else:
            self._give_up = self._later()

    def _later(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(3 * RENEW_SECONDS, self.task.cancel)

    async def _run(self) -> None:
        try:
            async with aclosing(self._events):
                await self._send("begun")
                async for event in self._events:
                    await self._send(event.decode())
                await self._send(_END)
        except StoreAwayError:
            return  # the reader can't be reached; the client will ask again
        finally:
            self._give_up.cancel()

    async def _send(self, part: str) -> None:
        """Send a part, again while the bus is away for a moment; raise StoreAwayError."""
        self._number += 1
        message = {"kind": "part", "reader": self._reader, "part": part, "number": self._number}
        for _ in range(_ATTEMPTS - 1):
            try:
                await self._bus.send(_TOPIC, message)
            except StoreAwayError:
                await asyncio.sleep(_ATTEMPT_INTERVAL)
            else:
                return
        await self._bus.send(_TOPIC, message)


def _instance_of(event_id: str) -> str:
    """Return the name of the instance that gave a stream the id of an event; see `Streams.prefix`."""
    instance, dot, _ = event_id.partition(".")
    return instance + dot if dot else ""


async def _next(parts: asyncio.Queue[str], seconds: float) -> str | None:
    """Return the next part, or None if there is none in so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await parts.get()
    except TimeoutError:
        return None

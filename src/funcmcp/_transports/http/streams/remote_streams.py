"""Event streams of a session that another instance of the server has.

How it works: an event id begins with the name of the instance that has the stream (`Bus.instance`). A client may resume
the stream at any instance. An instance without the stream is a *reader*: it has the stream sent to it over the bus, and
passes the events on to the client. The instance with the stream is the *sender*.

Resuming:
1. If the bus does not list the instance of the event id, the stream no longer exists. Nothing waits.
2. The reader sends "follow" with a random name for itself. The sender answers with numbered parts of the stream:
   "begun", the events, and an empty part at the end. If it does not have the stream, it answers with the empty part.
3. If nothing comes within `ANSWER_SECONDS`, the instance has just died, and the stream no longer exists.
4. The sender repeats a part while the bus is away; the reader drops a part that it has, by its number.
5. A reader that waits for a part sends "still" every `RENEW_SECONDS`, and "stop" when its client disconnects. A sender
   that receives neither for three times as long stops. A reader stops when parts, keep-alive comments included, are
   missing for too long, and when its own instance shuts down: the client then resumes at another one.

A second general stream of a session is an error, also at another instance. An instance that opens one first sends "is
read" to all instances. Each answers "yes" or "no"; the first "yes" or the last "no" decides, or `READ_SECONDS` if an
instance does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from contextlib import aclosing
from typing import TYPE_CHECKING

from funcmcp._state.sessions.store import SessionKey, StoreUnavailableError
from funcmcp._transports.http.streams import sse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from funcmcp._server.connections.hub import Hub
    from funcmcp._state.bus import Bus, Message
    from funcmcp._transports.http.streams.resumable import SessionStreams

_TOPIC = "streams"

ANSWER_SECONDS = 1.0
"""Seconds within which a sender has to answer a reader."""

READ_SECONDS = 0.1
"""Seconds within which instances have to answer whether a stream is read."""

RENEW_SECONDS = 5.0
"""Seconds without a part after which a reader sends "still". A sender stops after three times as long without it."""

MAX_SILENCE_SECONDS = 2 * sse.KEEP_ALIVE_SECONDS
"""Seconds without a part, keep-alive comments included, after which a reader stops."""

_ATTEMPTS = 6
"""Attempts to send a part."""

_ATTEMPT_INTERVAL = 0.3
"""Seconds between attempts to send a part."""

_END = ""
_YES = "yes"
_NO = "no"


class RemoteStreams:
    """Reads streams of other instances, and sends the streams of this instance to others.

    Args:
        bus: Connects the instances.
        hub: Ends its listeners when this instance shuts down.
        find: Returns the streams that this instance has of a session, or None.
    """

    def __init__(self, bus: Bus, hub: Hub, find: Callable[[SessionKey], SessionStreams | None]) -> None:
        self._bus = bus
        self._hub = hub
        self._find = find
        self._parts: dict[str, asyncio.Queue[str]] = {}
        """The parts that have come, by reader."""
        self._numbers: dict[str, int] = {}
        """The number of the last part that has come, by reader."""
        self._senders: dict[str, _Sender] = {}
        """What this instance sends, by reader."""
        bus.subscribe(_TOPIC, self._receive)

    async def is_read(self, key: SessionKey) -> bool:
        """Return whether the general stream of a session is read at another instance; raise StoreUnavailableError."""
        instances = await self._bus.other_instances()
        if not instances:
            return False
        with self._reader() as (reader, parts):
            await self._bus.send(_TOPIC, {"kind": "is read", "reader": reader, "session": key.to_text()})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(READ_SECONDS):
                    for _ in instances:
                        if await parts.get() == _YES:
                            return True
            return False

    async def follow(self, key: SessionKey, event_id: str) -> AsyncGenerator[bytes] | None:
        """Return the events after an event on a stream of another instance; None if no instance has the stream.

        Raises:
            StoreUnavailableError: The other instances can't be reached.
        """
        instance = _instance_of(event_id)
        if instance == self._bus.instance or instance not in await self._bus.other_instances():
            return None
        events = self._follow(key, event_id)
        if await anext(events):
            return events
        await events.aclose()
        return None

    async def _follow(self, key: SessionKey, event_id: str) -> AsyncGenerator[bytes]:
        """Yield one part that is empty if no instance has the stream, and then its events."""
        with self._reader() as (reader, parts), self._until_shutdown(parts):
            message = {"kind": "follow", "reader": reader, "session": key.to_text(), "event": event_id}
            await self._bus.send(_TOPIC, message)
            yield (await _next_part(parts, ANSWER_SECONDS) or "").encode()
            silence = 0.0
            while silence <= MAX_SILENCE_SECONDS:
                part = await _next_part(parts, RENEW_SECONDS)
                if part == _END:
                    return
                if part is None:
                    silence += RENEW_SECONDS
                    self._bus.publish(_TOPIC, {"kind": "still", "reader": reader})
                else:
                    silence = 0.0
                    yield part.encode()

    @contextlib.contextmanager
    def _reader(self) -> Iterator[tuple[str, asyncio.Queue[str]]]:
        """Be a reader while the block runs; yield its name and the queue of its parts."""
        reader = os.urandom(12).hex()
        parts = self._parts[reader] = asyncio.Queue()
        self._numbers[reader] = 0
        try:
            yield reader, parts
        finally:
            del self._parts[reader], self._numbers[reader]
            self._bus.publish(_TOPIC, {"kind": "stop", "reader": reader})

    @contextlib.contextmanager
    def _until_shutdown(self, parts: asyncio.Queue[str]) -> Iterator[None]:
        """Add the end to *parts* when this instance shuts down while the block runs."""
        with self._hub.listening(lambda _: False) as nothing:
            shutdown = asyncio.ensure_future(anext(nothing, None))
            shutdown.add_done_callback(lambda _: parts.put_nowait(_END))
            try:
                yield
            finally:
                shutdown.cancel()

    def _receive(self, message: Message) -> None:
        reader = message["reader"]
        match message["kind"]:
            case "part":
                self._take(reader, message["part"], message.get("number"))
            case "is read":
                streams = self._find(SessionKey.from_text(message["session"]))
                answer = _NO
                if streams is not None and streams.general.is_read:
                    answer = _YES
                self._bus.publish(_TOPIC, {"kind": "part", "reader": reader, "part": answer})
            case "follow" if _instance_of(message["event"]) == self._bus.instance:
                self._start_sending(reader, SessionKey.from_text(message["session"]), message["event"])
            case "still" if reader in self._senders:
                self._senders[reader].renew()
            case "stop" if reader in self._senders:
                self._senders[reader].stop()

    def _take(self, reader: str, part: str, number: int | None) -> None:
        """Add a part for a reader. A part of a stream has a number, because it may come twice."""
        if reader not in self._parts or (number is not None and number <= self._numbers[reader]):
            return
        if number is not None:
            self._numbers[reader] = number
        self._parts[reader].put_nowait(part)

    def _start_sending(self, reader: str, key: SessionKey, event_id: str) -> None:
        streams = self._find(key)
        position = None if streams is None else streams.find(event_id)
        if position is None:
            self._bus.publish(_TOPIC, {"kind": "part", "reader": reader, "part": _END})
            return
        sender = self._senders[reader] = _Sender(self._bus, reader, position.follow())
        sender.task.add_done_callback(lambda _: self._senders.pop(reader))


class _Sender:
    """Sends the events of a stream to a reader at another instance."""

    def __init__(self, bus: Bus, reader: str, events: AsyncGenerator[bytes]) -> None:
        self._bus = bus
        self._reader = reader
        self._events = events
        self._number = 0
        self.task = asyncio.ensure_future(self._run())
        self._timer = self._start_timer()

    def renew(self) -> None:
        """Note that the reader still exists."""
        self._timer.cancel()
        self._timer = self._start_timer()

    def stop(self) -> None:
        """Stop sending: the reader no longer exists."""
        self._timer.cancel()
        self.task.cancel()

    def _start_timer(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(3 * RENEW_SECONDS, self.task.cancel)

    async def _run(self) -> None:
        try:
            async with aclosing(self._events):
                await self._send("begun")
                async for event in self._events:
                    await self._send(event.decode())
                await self._send(_END)
        except StoreUnavailableError:
            return  # the reader can't be reached; the client will resume the stream again
        finally:
            self._timer.cancel()

    async def _send(self, part: str) -> None:
        """Send a part, several times if the bus is away; raise StoreUnavailableError."""
        self._number += 1
        message = {"kind": "part", "reader": self._reader, "part": part, "number": self._number}
        for _ in range(_ATTEMPTS - 1):
            try:
                await self._bus.send(_TOPIC, message)
            except StoreUnavailableError:
                await asyncio.sleep(_ATTEMPT_INTERVAL)
            else:
                return
        await self._bus.send(_TOPIC, message)


def _instance_of(event_id: str) -> str:
    """Return the name of the instance that has the stream of an event id, which ends with a dot; or ""."""
    instance, dot, _ = event_id.partition(".")
    return instance + dot if dot else ""


async def _next_part(parts: asyncio.Queue[str], seconds: float) -> str | None:
    """Return the next part, or None if none comes within a number of seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await parts.get()
    except TimeoutError:
        return None

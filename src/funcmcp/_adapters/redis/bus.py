"""A bus between the instances of a server that uses a Redis stream.

How it works: `send` and `publish` add messages to one stream, and each instance reads the stream in a task (`_listen`).
The bus does not use Redis Pub/Sub, because an instance that was disconnected for a moment would lose messages. On a
stream, it continues at its position.

- *Position.* An instance begins with the messages that come after its start (`_find_position`). After a failure it
  continues at its position, and delivers `RESUMED`, because messages may be missing: the stream keeps about
  `_MAX_STREAM` messages for `_STREAM_SECONDS`. If Redis has lost the stream, the instance reads the new one from its
  beginning.
- *Duplicates.* A command may be sent again when its connection breaks. Each message therefore has a sender and a
  number, and an instance drops a message that it has received before (`_is_new`).
- *Presence.* Each instance renews its entry in a sorted set with each read. `other_instances` lists the entries that
  are younger than `_PRESENCE_SECONDS`.
- *Background messages.* `publish` does not wait. It sends a message in the background, and repeats it until Redis
  accepts it. While `_MAX_PENDING` messages are pending, it drops further ones and sends `RESUMED` once, so that the
  other instances know that messages are missing.
- *Event loops.* A server may be created before its process is forked or its event loop starts. `start` gives the
  instance a new name for each event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from time import monotonic
from typing import TYPE_CHECKING, Any

try:
    from redis.exceptions import ResponseError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None

from funcmcp._adapters.redis.link import link_to
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp._server.log import logger, quote
from funcmcp._state.bus import RESUMED
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from funcmcp._adapters.redis.link import RedisLink
    from funcmcp._state.bus import Message, Subscriber

_BLOCK = 1.0
"""Seconds for which one read waits for messages. The next read checks that Redis is still reachable."""

_PAUSE = 0.2
"""Seconds between attempts to connect."""

_MAX_STREAM = 10_000
"""Approximate maximum of messages in the stream. A disconnected instance reads them when it is back."""

_STREAM_SECONDS = 60
"""Seconds for which a message stays in the stream."""

_TRIM = """
local time = redis.call('TIME')
return redis.call('XTRIM', KEYS[1], 'MINID', (time[1] - ARGV[1]) * 1000)
"""
"""Removes old messages. The stream itself does not expire, because ``volatile-*`` policies evict expiring keys."""

_PRESENCE_SECONDS = 5
"""Seconds after which an instance that has not renewed its entry counts as ended. Each read renews it."""

_PRESENT = """
local now = redis.call('TIME')[1]
redis.call('ZADD', KEYS[1], now, ARGV[1])
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
"""

_OTHER_INSTANCES = """
return redis.call('ZRANGEBYSCORE', KEYS[1], redis.call('TIME')[1] - ARGV[1], '+inf')
"""

_MAX_RECENT = 5000
"""Maximum number of message ids that are stored to recognize duplicates."""

_WARNING_INTERVAL = 60.0
"""Seconds between two warnings about messages that can't be read."""

_MAX_READ = 100
_MAX_PENDING = 1000
"""Maximum number of pending messages of `publish`. Further ones are dropped."""

_FIELD = b"m"
_BEGINNING = "0-0"


@public("funcmcp.redis")
class RedisBus:
    """Connects the instances of one server.

    Args:
        redis: The URL of Redis, or a `RedisLink`.

    Attributes:
        instance: The name of this instance.
        connected: Whether this instance receives messages now.
    """

    def __init__(self, redis: str | RedisLink) -> None:
        self.instance: str = _new_name()
        self._link = link_to(redis)
        self._stream = f"{self._link.prefix}:bus"
        self._position = ""
        self._listeners: dict[str, list[Subscriber]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Task[None] | None = None
        self._publishing: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._next_warning = 0.0
        self._trim_at = 0.0
        self._instances = f"{self._link.prefix}:instances"
        self._present_until = 0.0
        self._sent = 0
        self._has_gap = False
        self._recent: dict[tuple[str, int | None], None] = {}
        self.connected: bool = False

    def subscribe(self, topic: str, subscriber: Subscriber) -> None:
        """Call *subscriber* on the event loop with each message of a topic."""
        self._listeners.setdefault(topic, []).append(subscriber)

    def publish(self, topic: str, message: Message) -> None:
        """Send a message in the background, from any thread. Without a running event loop the message is dropped."""
        with contextlib.suppress(RuntimeError):  # no event loop is running: the server has not started or has stopped
            if self._loop is None:
                self.start()  # the platform has no startup event that calls this
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._start_publishing, topic, message)

    async def send(self, topic: str, message: Message) -> None:
        """Send a message; raise StoreUnavailableError if Redis can't be reached."""
        await self._send(self._numbered(topic, message))

    def _numbered(self, topic: str, message: Message) -> bytes:
        """Return a message with its sender and number, encoded. A retry sends the same bytes."""
        self._sent += 1
        return encode({"from": self.instance, "number": self._sent, "topic": topic, "message": message})

    async def _send(self, encoded: bytes) -> None:
        async def add(redis: Redis) -> None:
            pipeline = redis.pipeline(transaction=False)
            pipeline.xadd(self._stream, {_FIELD: encoded}, maxlen=_MAX_STREAM, approximate=True)
            pipeline.persist(self._stream)  # version 0.1 sets an expiry on the stream
            await pipeline.execute()

        await self._link.do(add)

    async def other_instances(self) -> frozenset[str]:
        """Return the names of the other instances that have renewed their entries within five seconds.

        Raises:
            StoreUnavailableError: Redis can't be reached, or the entry of this instance is missing because Redis is
                full, read-only or was emptied. In the second case, entries of other instances may be missing, too.
        """
        await self.ready()
        names: frozenset[str] = await self._link.do(self._present_instances)
        if self.instance not in names:
            raise StoreUnavailableError
        return names - {self.instance}

    async def _present_instances(self, redis: Redis) -> frozenset[str]:
        names: list[bytes] = await redis.eval(_OTHER_INSTANCES, 1, self._instances, _PRESENCE_SECONDS)
        return frozenset(name.decode(errors="replace") for name in names)

    def start(self) -> None:
        """Start to receive messages on the running event loop, unless the bus has started."""
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._listening is not None and not self._listening.done():
            return
        self._loop = loop
        self.instance = _new_name()  # processes forked from the same parent need different names
        self._settled = asyncio.Event()
        self._position = ""
        self._present_until = 0.0
        self._listening = loop.create_task(self._listen())

    async def ready(self) -> None:
        """Start, and wait until messages are received or the first attempt to connect has failed."""
        self.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._link.timeout):
                await self._settled.wait()

    async def aclose(self) -> None:
        """Stop receiving messages, and close the connections."""
        tasks = {*self._publishing, *([self._listening] if self._listening is not None else [])}
        self._loop = self._listening = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._link.aclose()

    def _start_publishing(self, topic: str, message: Message) -> None:
        if len(self._publishing) >= _MAX_PENDING:
            if self._has_gap:
                return
            self._has_gap = True
            topic, message = RESUMED, {}
        task = asyncio.ensure_future(self._publish(topic, message))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self, topic: str, message: Message) -> None:
        """Send a message; retry until Redis accepts it, because it may be unreachable for this instance alone."""
        encoded = self._numbered(topic, message)
        while True:
            try:
                await self._send(encoded)
            except StoreUnavailableError:
                await asyncio.sleep(_PAUSE)
            else:
                break
        if topic == RESUMED:
            self._has_gap = False

    async def _listen(self) -> None:
        while True:
            try:
                await self._link.reach(self._find_position, self._link.timeout)
                while True:
                    await self._link.reach(self._read_on, _BLOCK + self._link.timeout)
            except Exception as error:  # noqa: BLE001 - as in RedisLink.do; this task must survive every failure
                self._link.note_failure(error)
            self.connected = False
            self._settled.set()
            await asyncio.sleep(_PAUSE)

    async def _find_position(self, redis: Redis) -> None:
        """Start at the end of the stream, or continue at the position of this instance."""
        await self._maintain(redis)
        last: Any = await redis.xrevrange(self._stream, count=1)
        newest = _position(last[0][0]) if last else _BEGINNING
        self._link.note_success()
        self.connected = True
        self._settled.set()
        if not self._position:
            self._position = newest
            return
        if _order(newest) < _order(self._position):
            self._position = _BEGINNING  # Redis has lost the stream, and this is a new one
        self._deliver(RESUMED, {})

    async def _read_on(self, redis: Redis) -> None:
        await self._maintain(redis)
        news: Any = await redis.xread({self._stream: self._position}, count=_MAX_READ, block=int(_BLOCK * 1000))
        for _, entries in news or ():
            for position, fields in entries:
                self._position = _position(position)
                self._take(fields.get(_FIELD, b""))

    async def _maintain(self, redis: Redis) -> None:
        """Renew the entry of this instance and remove old messages, whichever is due."""
        now = monotonic()
        with contextlib.suppress(ResponseError):  # a full or read-only Redis rejects writes, but not reads
            if now >= self._present_until:
                self._present_until = now + _BLOCK
                await redis.eval(_PRESENT, 1, self._instances, self.instance, _PRESENCE_SECONDS)
            if now >= self._trim_at:
                self._trim_at = now + _STREAM_SECONDS / 4
                await redis.eval(_TRIM, 1, self._stream, _STREAM_SECONDS)

    def _take(self, encoded: bytes) -> None:
        try:
            message: Any = decode(encoded)
            if message["from"] != self.instance and self._is_new((message["from"], message.get("number"))):
                self._deliver(message["topic"], message["message"])
        except (InvalidJSONError, RepeatedNameError, KeyError, TypeError):
            self._warn(f"A message on the Redis stream {self._stream} is of another version.")

    def _is_new(self, message_id: tuple[str, int | None]) -> bool:
        """Return whether a message is new. Messages of version 0.1 have no number and count as new."""
        if message_id[1] is None:
            return True
        if message_id in self._recent:
            return False
        if len(self._recent) >= _MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[message_id] = None
        return True

    def _deliver(self, topic: str, message: Message) -> None:
        for subscriber in self._listeners.get(topic, ()):
            try:
                subscriber(message)
            except Exception as error:  # noqa: BLE001 - an instance of another version may have written it
                self._warn(f"A message about {quote(topic)} can't be handled ({type(error).__name__}).")

    def _warn(self, text: str) -> None:
        """Log a warning, at most one a minute, because instances of another version may send any number of messages."""
        now = monotonic()
        if now >= self._next_warning:
            self._next_warning = now + _WARNING_INTERVAL
            logger.warning("%s It is ignored.", text)


def _new_name() -> str:
    return f"{os.urandom(6).hex()}."


def _position(name: bytes) -> str:
    """Return a stream position as text; raise ValueError if it is malformed, so that it is never stored."""
    position = name.decode()
    _order(position)
    return position


def _order(position: str) -> tuple[int, int]:
    """Return the sort key of a position in the stream."""
    milliseconds, number = position.split("-")
    return int(milliseconds), int(number)

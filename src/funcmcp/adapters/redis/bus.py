"""A bus between the instances of a server, on a stream of Redis.

A stream and not a channel: an instance that was cut off for a moment reads on where it was, so that an answer that
another one took for it is not lost.
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

from funcmcp.adapters.redis.link import link_to
from funcmcp.protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp.server.log import logger, quote
from funcmcp.state.bus import RESUMED
from funcmcp.state.sessions.store import StoreAwayError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from funcmcp.adapters.redis.link import RedisLink
    from funcmcp.state.bus import Hear, Message

_BLOCK = 1.0
"""Seconds for which one reading waits for news. Not longer, because the next one shows that Redis is still there."""

_PAUSE = 0.2
"""Seconds between attempts to connect."""

_MAX_KEPT = 10_000
"""Messages that the stream has, about: what may come while an instance is cut off."""

_KEPT_SECONDS = 60
"""For how long the stream keeps a message."""

_TRIM = """
local time = redis.call('TIME')
return redis.call('XTRIM', KEYS[1], 'MINID', (time[1] - ARGV[1]) * 1000)
"""
"""Remove old messages. The stream itself has no expiry, so that eviction among volatile keys does not remove it."""

_PRESENCE_SECONDS = 5
"""Seconds after which an instance that has not renewed its entry counts as ended. Each reading renews it."""

_PRESENT = """
local now = redis.call('TIME')[1]
redis.call('ZADD', KEYS[1], now, ARGV[1])
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
"""

_OTHER_INSTANCES = """
return redis.call('ZRANGEBYSCORE', KEYS[1], redis.call('TIME')[1] - ARGV[1], '+inf')
"""

_MAX_RECENT = 5000
"""Messages whose ids are remembered: a command that is sent again when its connection breaks may come twice."""

_WARNING_INTERVAL = 60.0
"""Seconds between two lines about messages that are not understood."""

_MAX_READ = 100
_MAX_TELLING = 1000
"""Messages being sent; further ones are dropped, and the other instances get a message that some were missed."""

_FIELD = b"m"
_BEGINNING = "0-0"


class RedisBus:
    """Tells other instances of the same server, and hears them.

    While Redis is away nothing is heard. Afterwards `RESUMED` is, too, because messages may have been lost.

    Args:
        redis: a URL, or a link that others use too.

    Attributes:
        connected: whether the others are heard now.
    """

    def __init__(self, redis: str | RedisLink) -> None:
        self.instance = _new_name()
        self._link = link_to(redis)
        self._stream = f"{self._link.prefix}:bus"
        self._read = ""
        self._hearers: dict[str, list[Hear]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._next_warning = 0.0
        self._trim_at = 0.0
        self._instances = f"{self._link.prefix}:instances"
        self._present_until = 0.0
        self._sent = 0
        self._has_gap = False
        self._recent: dict[tuple[str, int | None], None] = {}
        self.connected = False

    def subscribe(self, topic: str, hear: Hear) -> None:
        """Call `hear`, on the event loop, with each message about a topic."""
        self._hearers.setdefault(topic, []).append(hear)

    def tell(self, topic: str, message: Message) -> None:
        """Tell the other instances, if Redis can be reached; from any thread, once this instance serves."""
        with contextlib.suppress(RuntimeError):  # no loop runs: this instance does not serve yet, or no more
            if self._loop is None:
                self.start()  # the platform has no start of its own to tell of
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._begin_to_tell, topic, message)

    async def send(self, topic: str, message: Message) -> None:
        """Tell the other instances; raise StoreAwayError if Redis can't be reached."""
        await self._send(self._numbered(topic, message))

    def _numbered(self, topic: str, message: Message) -> bytes:
        """Return the bytes of a message for the stream; the same bytes may be sent again."""
        self._sent += 1
        return encode({"from": self.instance, "number": self._sent, "topic": topic, "message": message})

    async def _send(self, data: bytes) -> None:
        async def add(redis: Redis) -> None:
            pipeline = redis.pipeline(transaction=False)
            pipeline.xadd(self._stream, {_FIELD: data}, maxlen=_MAX_KEPT, approximate=True)
            pipeline.persist(self._stream)  # version 0.1 lets it expire
            await pipeline.execute()

        await self._link.do(add)

    async def other_instances(self) -> frozenset[str]:
        """Return the names of the other instances that have renewed their entries within five seconds.

        Raises:
            StoreAwayError: Redis can't be reached; or this instance's own entry is missing, because Redis is full,
                read-only or was emptied. Entries of other instances may be missing, too.
        """
        await self.ready()
        names: frozenset[str] = await self._link.do(self._present_instances)
        if self.instance not in names:
            raise StoreAwayError
        return names - {self.instance}

    async def _present_instances(self, redis: Redis) -> frozenset[str]:
        names: list[bytes] = await redis.eval(_OTHER_INSTANCES, 1, self._instances, _PRESENCE_SECONDS)
        return frozenset(name.decode(errors="replace") for name in names)

    def start(self) -> None:
        """Begin to hear the others, on the running event loop, unless that has begun."""
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._listening is not None and not self._listening.done():
            return
        self._loop = loop
        self.instance = _new_name()  # a server may have been made before its processes were forked
        self._settled = asyncio.Event()
        self._read = ""
        self._present_until = 0.0
        self._listening = loop.create_task(self._listen())

    async def ready(self) -> None:
        """Begin to hear the others, and wait until that is so, or until it is clear that Redis is away."""
        self.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._link.timeout):
                await self._settled.wait()

    async def aclose(self) -> None:
        """Hear no more, and close the connections."""
        tasks = {*self._telling, *([self._listening] if self._listening is not None else [])}
        self._loop = self._listening = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._link.aclose()

    def _begin_to_tell(self, topic: str, message: Message) -> None:
        if len(self._telling) >= _MAX_TELLING:
            if self._has_gap:
                return
            self._has_gap = True
            topic, message = RESUMED, {}
        task = asyncio.ensure_future(self._tell(topic, message))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, topic: str, message: Message) -> None:
        """Send a message, again until Redis takes it: it may be away for this instance alone."""
        data = self._numbered(topic, message)
        while True:
            try:
                await self._send(data)
            except StoreAwayError:
                await asyncio.sleep(_PAUSE)
            else:
                break
        if topic == RESUMED:
            self._has_gap = False

    async def _listen(self) -> None:
        while True:
            try:
                await self._link.reach(self._find_place, self._link.timeout)
                while True:
                    await self._link.reach(self._read_on, _BLOCK + self._link.timeout)
            except Exception as error:  # noqa: BLE001 - as in RedisLink.do; this task must outlive every failure
                self._link.note_failure(error)
            self.connected = False
            self._settled.set()
            await asyncio.sleep(_PAUSE)

    async def _find_place(self, redis: Redis) -> None:
        """Begin with what comes from now on, or go on where this instance was."""
        await self._keep_house(redis)
        last: Any = await redis.xrevrange(self._stream, count=1)
        newest = _position(last[0][0]) if last else _BEGINNING
        self._link.note_success()
        self.connected = True
        self._settled.set()
        if not self._read:
            self._read = newest
            return
        if _order(newest) < _order(self._read):
            self._read = _BEGINNING  # Redis has lost the stream, and this is another one
        self._deliver(RESUMED, {})

    async def _read_on(self, redis: Redis) -> None:
        await self._keep_house(redis)
        news: Any = await redis.xread({self._stream: self._read}, count=_MAX_READ, block=int(_BLOCK * 1000))
        for _, entries in news or ():
            for position, fields in entries:
                self._read = _position(position)
                self._take(fields.get(_FIELD, b""))

    async def _keep_house(self, redis: Redis) -> None:
        """Renew the entry of this instance, and remove old messages; each from time to time."""
        now = monotonic()
        with contextlib.suppress(ResponseError):  # a full or read-only Redis refuses, and is read on all the same
            if now >= self._present_until:
                self._present_until = now + _BLOCK
                await redis.eval(_PRESENT, 1, self._instances, self.instance, _PRESENCE_SECONDS)
            if now >= self._trim_at:
                self._trim_at = now + _KEPT_SECONDS / 4
                await redis.eval(_TRIM, 1, self._stream, _KEPT_SECONDS)

    def _take(self, data: bytes) -> None:
        try:
            told: Any = decode(data)
            if told["from"] != self.instance and self._is_new((told["from"], told.get("number"))):
                self._deliver(told["topic"], told["message"])
        except (InvalidJSONError, RepeatedNameError, KeyError, TypeError):
            self._warn(f"A message on the Redis stream {self._stream} is not of this version.")

    def _is_new(self, message_id: tuple[str, int | None]) -> bool:
        """Return whether a message has not come before; version 0.1 gives its messages no number."""
        if message_id[1] is None:
            return True
        if message_id in self._recent:
            return False
        if len(self._recent) >= _MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[message_id] = None
        return True

    def _deliver(self, topic: str, message: Message) -> None:
        for hear in self._hearers.get(topic, ()):
            try:
                hear(message)
            except Exception as error:  # noqa: BLE001 - an instance of another version wrote it; the next may be fine
                self._warn(f"A message about {quote(topic)} is not understood ({type(error).__name__}).")

    def _warn(self, text: str) -> None:
        """Log a warning, at most one a minute: instances of another version may send any number of messages."""
        now = monotonic()
        if now >= self._next_warning:
            self._next_warning = now + _WARNING_INTERVAL
            logger.warning("%s It is ignored.", text)


def _new_name() -> str:
    return f"{os.urandom(6).hex()}."


def _position(name: bytes) -> str:
    """Return a position in a stream; raise ValueError if it is not one, which must never be asked for again."""
    position = name.decode()
    _order(position)
    return position


def _order(position: str) -> tuple[int, int]:
    """Return what positions in a stream are ordered by."""
    milliseconds, number = position.split("-")
    return int(milliseconds), int(number)

"""A bus between the instances of a server, on a channel of Redis."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from funcmcp.adapters.redis_link import FAILURES, link_to
from funcmcp.protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp.server.log import logger
from funcmcp.sessions.bus import RESUMED
from funcmcp.sessions.store import StoreAwayError

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

    from funcmcp.adapters.redis_link import RedisLink
    from funcmcp.sessions.bus import Hear, Message

_SILENCE = 1.0
"""Seconds without a message after which Redis is asked whether it is there; it has as long to answer."""

_PAUSE = 0.2
"""Seconds between attempts to connect."""

_MAX_TELLING = 1000
"""Messages on their way; beyond, further ones are dropped, as if Redis were away."""


class RedisBus:
    """Tells other instances of the same server, and hears them.

    While Redis is away nothing is heard; afterwards `RESUMED` is, because messages may have been missed.

    Args:
        redis: a URL, or a link that others use too.

    Attributes:
        connected: whether the others are heard now.
    """

    def __init__(self, redis: str | RedisLink) -> None:
        self.instance = f"{os.urandom(6).hex()}."
        self._link = link_to(redis)
        self._channel = f"{self._link.prefix}:bus"
        self._hearers: dict[str, list[Hear]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._heard_before = False
        self.connected = False

    def subscribe(self, topic: str, hear: Hear) -> None:
        """Call `hear`, on the event loop, with each message about a topic."""
        self._hearers.setdefault(topic, []).append(hear)

    def tell(self, topic: str, message: Message) -> None:
        """Tell the other instances, if Redis can be reached; from any thread. Before `start` nobody is told."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: this instance has ended
                self._loop.call_soon_threadsafe(self._begin_to_tell, topic, message)

    async def send(self, topic: str, message: Message) -> None:
        """Tell the other instances; raise StoreAwayError if Redis can't be reached."""
        data = encode({"from": self.instance, "topic": topic, "message": message})
        await self._link.do(lambda redis: redis.publish(self._channel, data))

    def start(self) -> None:
        """Begin to hear the others, on the running event loop, unless that has begun."""
        loop = asyncio.get_running_loop()
        if self._loop is loop and self._listening is not None and not self._listening.done():
            return
        self._loop = loop
        self._settled = asyncio.Event()
        self._heard_before = False
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
        if len(self._telling) < _MAX_TELLING:
            task = asyncio.ensure_future(self._tell(topic, message))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, topic: str, message: Message) -> None:
        with contextlib.suppress(StoreAwayError):  # is in the log; when Redis is back, the others hear RESUMED
            await self.send(topic, message)

    async def _listen(self) -> None:
        while True:
            pubsub = self._link.pubsub()
            try:
                async with asyncio.timeout(self._link.timeout):
                    await pubsub.subscribe(self._channel)
                await self._hear(pubsub)
            except FAILURES as error:
                self._link.note_failure(error)
            finally:
                self.connected = False
                with contextlib.suppress(*FAILURES):
                    await pubsub.aclose()  # type: ignore[no-untyped-call]
            self._settled.set()
            await asyncio.sleep(_PAUSE)

    async def _hear(self, pubsub: PubSub) -> None:
        """Hear messages until Redis does not answer any more."""
        asked = False
        while True:
            message = await pubsub.get_message(timeout=_SILENCE)
            if message is None and asked:
                raise TimeoutError
            asked = message is None
            if message is None:
                await pubsub.ping()
            elif message["type"] == "subscribe":  # anew, too, where the client library has connected again by itself
                self._subscribed()
            elif message["type"] == "message":
                self._take(message["data"])

    def _subscribed(self) -> None:
        self.connected = True
        self._link.note_success()
        self._settled.set()
        if self._heard_before:
            self._deliver(RESUMED, {})
        self._heard_before = True

    def _take(self, data: bytes) -> None:
        try:
            told: Any = decode(data)
            if told["from"] != self.instance:
                self._deliver(told["topic"], told["message"])
        except (InvalidJSONError, RepeatedNameError, KeyError, TypeError):
            logger.warning("A message on the Redis channel %s is none of this version; it is ignored.", self._channel)

    def _deliver(self, topic: str, message: Message) -> None:
        for hear in self._hearers.get(topic, ()):
            hear(message)

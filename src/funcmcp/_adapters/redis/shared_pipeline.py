"""Commands of several requests in one pipeline.

How it works: requests queue their calls. At the end of the iteration of the event loop, all of them go to Redis in one
pipeline: one by one they take several times the CPU time, most of it in the client library.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from redis.exceptions import ResponseError

from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redis.asyncio import Redis

    from funcmcp._adapters.redis.link import RedisLink

Call = TypeVar("Call")


class SharedPipeline(Generic[Call]):
    """Sends the calls of one iteration of the event loop together.

    Args:
        link: The connections to Redis.
        send: Sends calls in a pipeline. It returns a reply for each, which may be an exception, or None if a reply is
            of another type than it has to be.
        store: The name of the store in the error that the client gets.
    """

    def __init__(
        self,
        link: RedisLink,
        send: Callable[[Redis, Sequence[Call]], Awaitable[list[Any] | None]],
        *,
        store: str = "store",
    ) -> None:
        self._link = link
        self._send = send
        self._store = store
        self._queued: WeakKeyDictionary[asyncio.AbstractEventLoop, list[tuple[Call, asyncio.Future[Any]]]]
        self._queued = WeakKeyDictionary()  # by event loop: several may run at once, each in a thread
        self._sending: set[asyncio.Task[None]] = set()

    async def do(self, call: Call) -> Any:
        """Return the reply to a call; raise StoreUnavailableError if Redis can't be reached or refuses it."""
        loop = asyncio.get_running_loop()
        queued = self._queued.get(loop)
        if queued is None:
            queued = self._queued[loop] = []
            loop.call_soon(self._begin, loop)
        reply: asyncio.Future[Any] = loop.create_future()
        queued.append((call, reply))
        return await reply

    async def aclose(self) -> None:
        """Wait for the calls of this event loop that are under way."""
        sending = [task for task in list(self._sending) if task.get_loop() is asyncio.get_running_loop()]
        if sending:
            await asyncio.wait(sending)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        sending = loop.create_task(self._send_all(self._queued.pop(loop)))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def _send_all(self, queued: Sequence[tuple[Call, asyncio.Future[Any]]]) -> None:
        """Send calls, and give each its reply or StoreUnavailableError."""
        calls = [call for call, _ in queued]
        replies: Sequence[Any] = ()
        try:
            replies = await self._link.do(lambda redis: self._send(redis, calls), list)
        except StoreUnavailableError as error:
            replies = [error] * len(queued)
        finally:
            if not replies:  # this task was cancelled
                for _, future in queued:
                    future.cancel()
        for (_, future), reply in zip(queued, replies, strict=True):
            if future.done():  # the caller was cancelled
                continue
            if isinstance(reply, Exception):
                future.set_exception(self._unavailable(reply))
            else:
                future.set_result(reply)

    def _unavailable(self, cause: Exception) -> StoreUnavailableError:
        nothing_written = isinstance(cause, ResponseError)
        if isinstance(cause, StoreUnavailableError):
            nothing_written = cause.nothing_written
        else:
            self._link.note_failure(cause)
        error = StoreUnavailableError(store=self._store, nothing_written=nothing_written)
        error.__cause__ = cause
        return error

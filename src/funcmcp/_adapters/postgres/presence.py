"""The connection by which other processes see that this one lives, and which brings their notifications.

How it works: the connection holds a shared advisory lock with the random number of this process. PostgreSQL ends it
with the connection, also if the process is killed. A process that has lost its connection opens another one at once
and gets the same lock, also while the server has not noticed the end of the first one.
"""

from __future__ import annotations

import asyncio
import os
from secrets import randbits
from time import monotonic
from typing import TYPE_CHECKING

from psycopg import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._adapters.postgres.link import Connection, PostgresLink

LOCKS = 0x66756E63
"""The first key of the locks of processes."""

_RECONNECT_PAUSE = 0.2
"""Seconds between two attempts to connect."""


class Presence:
    """The presence of this process.

    Args:
        link: Opens connections.
        notified: Is called with the channel of each notification.

    Attributes:
        holder: The number of the lock. A process that was forked gets one of its own when it begins to hold it.
        lost_at: When the last connection was lost, by `monotonic`.
    """

    def __init__(self, link: PostgresLink, notified: Callable[[str], None]) -> None:
        self.holder = 0
        self.lost_at = float("-inf")
        self._link = link
        self._notified = notified
        self._channels: set[str] = set()
        self._process = 0
        self._task: asyncio.Task[None] | None = None
        self._attempted = asyncio.Event()
        self._present = False

    async def start(self, channel: str) -> bool:
        """Begin to hold the lock, and to listen to a channel; return whether the lock is held."""
        if self._task is None or self._task.done() or channel not in self._channels:
            await self.aclose()
            if self._process != os.getpid():
                self._process, self.holder = os.getpid(), randbits(31)
            self._channels.add(channel)
            self._attempted = asyncio.Event()
            self._task = asyncio.ensure_future(self._hold())
        await self._attempted.wait()
        return self._present

    async def aclose(self) -> None:
        """End the lock."""
        task, self._task = self._task, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])

    async def _hold(self) -> None:
        while True:
            try:
                connection = await self._link.connect()
                try:
                    await self._listen(connection)
                finally:
                    await connection.close()
            except (Error, OSError) as error:
                if self._present:
                    self._present, self.lost_at = False, monotonic()
                else:
                    self._link.note_failure(error)
                self._attempted.set()
                await asyncio.sleep(_RECONNECT_PAUSE)

    async def _listen(self, connection: Connection) -> None:
        async with asyncio.timeout(self._link.timeout):
            await connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", (LOCKS, self.holder))
            for channel in self._channels:
                await connection.execute(f'LISTEN "{channel}"')
        self._present = True
        self._attempted.set()
        async for notification in connection.notifies():
            self._notified(notification.channel)

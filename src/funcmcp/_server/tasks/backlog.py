"""Looks from time to time how many tasks wait in a store.

How it works: an asyncio task of the server's event loop asks the store every ten seconds, and keeps its answer. Those
who export metrics read the last answer, from any thread and at once. While the store can't be reached there is none.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from typing import TYPE_CHECKING

from funcmcp._server.log import log_failure
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from funcmcp._state.tasks.store import Backlog, TaskStore

_INTERVAL = 10.0
"""Seconds between two looks."""


class BacklogWatch:
    """The tasks that wait in a store, as they were seen last.

    Args:
        store: The tasks.

    Attributes:
        latest: What the store has answered last; None if it can't be reached or can't tell, or before it was asked.
    """

    def __init__(self, store: TaskStore) -> None:
        self.latest: Backlog | None = None
        self._store = store
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look on the running event loop, unless that has begun, or a platform brings the tasks.

        Such a platform may stop the process between two tasks.
        """
        if not self._store.pulls:
            return
        watching = self._watching
        if watching is not None and not watching.done() and watching.get_loop() is asyncio.get_running_loop():
            return
        # Without the context variables of the request during which this begins.
        self._watching = asyncio.get_running_loop().create_task(self._watch(), context=contextvars.Context())

    async def stop(self) -> None:
        """Look no more."""
        watching, self._watching = self._watching, None
        self.latest = None
        if watching is not None and watching.get_loop() is asyncio.get_running_loop():
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch(self) -> None:
        while True:
            try:
                self.latest = await self._store.backlog()
            except StoreUnavailableError:
                self.latest = None  # the store has logged it
            except Exception as error:  # noqa: BLE001 - a fault of a store must not end the looks, or be silent
                self.latest = None
                log_failure(error, os.urandom(8).hex(), "backlog of tasks")
            await asyncio.sleep(_INTERVAL)

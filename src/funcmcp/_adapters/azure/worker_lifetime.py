"""The lifetime of a server in a worker of Azure Functions.

How it works: the server begins with its first request (`WorkerLifetime.begin`). Azure's worker does not announce its
end, but it cancels all tasks before it closes the event loop, so a task waits for its cancellation and closes the
server then. (An asynchronous generator would be too late: all of them are closed at once, including those that created
services.) SIGTERM would end the process at once. If the worker runs in the main thread, a handler for SIGTERM closes
the server first, within `GRACE_SECONDS`, and then calls the previous handler.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any, Protocol

GRACE_SECONDS = 5.0
"""Seconds within which services have to close after SIGTERM."""


class HasLifetime(Protocol):
    """A server that begins and ends."""

    def begin(self) -> None:
        """Prepare for requests."""

    def drain(self) -> None:
        """End the open streams."""

    async def aclose(self) -> None:
        """Close the services of the server."""


class WorkerLifetime:
    """Begins a server with its first request, and ends it with the worker.

    Args:
        server: The server.
    """

    def __init__(self, server: HasLifetime) -> None:
        self._server = server
        self._life: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Begin, unless that has happened."""
        if self._life is None:
            self._server.begin()
            self._life = asyncio.create_task(_close_at_the_end(self._server))
            if threading.current_thread() is threading.main_thread():
                self._catch_sigterm(asyncio.get_running_loop())

    def _catch_sigterm(self, loop: asyncio.AbstractEventLoop) -> None:
        before = signal.getsignal(signal.SIGTERM)
        if before is None or before == signal.SIG_IGN:
            return  # the signal is ignored, or handled by C code

        def begin_to_end() -> None:
            self._ending = loop.create_task(self._end(before))

        def end(*_: object) -> None:
            if loop.is_closed():
                _pass_on(before)
            else:
                loop.call_soon_threadsafe(begin_to_end)

        signal.signal(signal.SIGTERM, end)

    async def _end(self, before: Any) -> None:
        try:
            if self._life is not None:
                self._life.cancel()
                await asyncio.wait({self._life}, timeout=GRACE_SECONDS)
        finally:
            _pass_on(before)


async def _close_at_the_end(server: HasLifetime) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        server.drain()
        await server.aclose()


def _pass_on(handler: Any) -> None:
    """Restore the previous handler of SIGTERM and raise the signal again."""
    signal.signal(signal.SIGTERM, handler)
    os.kill(os.getpid(), signal.SIGTERM)

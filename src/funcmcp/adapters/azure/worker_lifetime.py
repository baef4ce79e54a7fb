"""The life of a server in a worker of Azure Functions."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any, Protocol

GRACE_SECONDS = 5.0
"""How long services may take to close when the worker is told to end."""


class Lived(Protocol):
    """What begins and ends."""

    def begin(self) -> None:
        """Take note that requests will come."""

    def drain(self) -> None:
        """End the streams that would stay open."""

    async def aclose(self) -> None:
        """Let go of what lives as long as the server."""


class Life:
    """Begins a server with its first request, and ends it with the worker.

    The worker tells nobody that it ends. Before its event loop is closed tasks are cancelled, so one of them closes the
    server then. (An asynchronous generator would be too late: all of them are closed at once, those that made services
    included.) SIGTERM would end the process at once; it is caught, where the worker runs in the main thread.

    Args:
        server: begins and ends.
    """

    def __init__(self, server: Lived) -> None:
        self._server = server
        self._life: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Begin, unless that is done."""
        if self._life is None:
            self._server.begin()
            self._life = asyncio.create_task(_close_at_the_end(self._server))
            if threading.current_thread() is threading.main_thread():
                self._catch_sigterm(asyncio.get_running_loop())

    def _catch_sigterm(self, loop: asyncio.AbstractEventLoop) -> None:
        before = signal.getsignal(signal.SIGTERM)
        if before is None or before == signal.SIG_IGN:
            return  # the signal is somebody else's

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


async def _close_at_the_end(server: Lived) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        server.drain()
        await server.aclose()


def _pass_on(handler: Any) -> None:
    """Do with SIGTERM what would have been done without us."""
    signal.signal(signal.SIGTERM, handler)
    os.kill(os.getpid(), signal.SIGTERM)

"""The life of a server in a worker of Azure Functions."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

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

    The worker tells nobody that it ends. Before its event loop is closed, asynchronous generators are: so one of them
    holds what is to be closed. SIGTERM would end the process at once: it is caught, in the main thread.

    Args:
        server: begins and ends.
    """

    def __init__(self, server: Lived) -> None:
        self._server = server
        self._life: AsyncGenerator[None] | None = None

    async def begin(self) -> None:
        """Begin, unless that is done."""
        if self._life is None:
            self._life = _life(self._server)
            await anext(self._life)
            if threading.current_thread() is threading.main_thread():
                self._close_before_sigterm(asyncio.get_running_loop())

    def _close_before_sigterm(self, loop: asyncio.AbstractEventLoop) -> None:
        before = signal.getsignal(signal.SIGTERM)
        if before is None or before == signal.SIG_IGN:
            return  # the signal is somebody else's

        def end(*_: object) -> None:
            if loop.is_closed():
                _pass_on(before)
            else:
                loop.call_soon_threadsafe(lambda: endings.append(loop.create_task(self._end(before))))

        endings: list[asyncio.Task[None]] = []
        signal.signal(signal.SIGTERM, end)

    async def _end(self, before: Any) -> None:
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                if self._life is not None:
                    await self._life.aclose()
        finally:
            _pass_on(before)


async def _life(server: Lived) -> AsyncGenerator[None]:
    server.begin()
    try:
        yield
    finally:
        server.drain()
        await server.aclose()


def _pass_on(handler: Any) -> None:
    """Do with SIGTERM what would have been done without us."""
    signal.signal(signal.SIGTERM, handler)
    os.kill(os.getpid(), signal.SIGTERM)

"""Ctrl+C while a command waits for a server: the first cancels the request, the second ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    T = TypeVar("T")

INTERRUPTED = 130
"""The exit code of a command that Ctrl+C has ended: 128 and the number of the signal."""


def run(work: Coroutine[Any, Any, T], on_interrupt: Callable[[], None]) -> T:
    """Run a coroutine as asyncio.run does. At the first Ctrl+C the coroutine is cancelled, and can clean up.

    Args:
        work: The coroutine.
        on_interrupt: Is called for each Ctrl+C, before anything else.

    Raises:
        KeyboardInterrupt: Ctrl+C has ended the coroutine.
    """
    try:
        return asyncio.run(_run(work, on_interrupt))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _run(work: Coroutine[Any, Any, T], on_interrupt: Callable[[], None]) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    interrupts = 0

    def interrupt(*_: object) -> None:
        nonlocal interrupts
        interrupts += 1
        try:
            on_interrupt()
        finally:
            if interrupts > 1:
                os._exit(INTERRUPTED)  # also if the first call was interrupted while it wrote
        loop.call_soon_threadsafe(task.cancel)

    previous_handler = signal.signal(signal.SIGINT, interrupt)
    try:
        return await task
    finally:
        signal.signal(signal.SIGINT, previous_handler)

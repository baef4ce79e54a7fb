"""A deadline for the exit of a server process, which holds even if an event loop, a thread or an executor hangs.

How it works: `start_exit_deadline` starts a thread and a timer of the kernel. When the time of `funcmcp._server.drain`
and that of the clean-up are over, the thread ends the process with code 0, whatever runs. If a C function holds the
interpreter's lock, the thread can't run; then the signal of the timer ends the process `_ALARM_SECONDS` later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from funcmcp._server.drain import CLEANUP_SECONDS, drain_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

_ALARM_SECONDS = 0.5


def start_exit_deadline() -> Callable[[], None]:
    """End the process in time; return a function that cancels the deadline."""
    seconds = drain_seconds() + CLEANUP_SECONDS
    cancelled = threading.Event()
    threading.Thread(target=_exit_unless, args=(cancelled, seconds), name="funcmcp watchdog", daemon=True).start()
    _set_alarm(seconds + _ALARM_SECONDS)

    def cancel() -> None:
        cancelled.set()
        _set_alarm(0)

    return cancel


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _exit_unless(cancelled: threading.Event, seconds: float) -> None:
    if cancelled.wait(seconds):
        return
    # sys.stderr has a lock, which a stuck thread may hold.
    os.write(2, b"Some calls did not end in time. The process exits without them.\n")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a closed pipe must not keep the process
            stream.flush()
    os._exit(0)

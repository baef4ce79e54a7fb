"""The end of a process that serves: it comes in time, even if an event loop, a thread or an executor hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAVE_SECONDS = 8.6  # then the process leaves without waiting for threads, executors or a blocked event loop
_ALARM_SECONDS = 9.4  # then the kernel ends it, even where a C function holds the interpreter's lock


def leave_in_time() -> Callable[[], None]:
    """See to it that the process ends within ten seconds; return a function that calls it off."""
    stayed = threading.Event()
    threading.Thread(target=_leave, args=(stayed,), name="funcmcp watchdog", daemon=True).start()
    _set_alarm(_ALARM_SECONDS)

    def stay() -> None:
        stayed.set()
        _set_alarm(0)

    return stay


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _leave(stayed: threading.Event) -> None:
    if stayed.wait(_LEAVE_SECONDS):
        return
    os.write(2, b"Some calls did not end in time; they are left behind.\n")  # no lock that a stuck thread could hold
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a closed pipe must not keep the process
            stream.flush()
    os._exit(0)

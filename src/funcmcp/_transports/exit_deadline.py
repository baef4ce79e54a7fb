"""A deadline for the exit of a server process, which holds even if an event loop, a thread or an executor hangs.

How it works: `start_exit_deadline` starts a thread and a timer of the kernel. When the time of `funcmcp._server.drain`
and that of the clean-up are over, the thread ends the process with code 0, whatever runs. If a C function holds the
interpreter's lock, the thread can't run; then the signal of the timer ends the process `_ALARM_SECONDS` later.

Once its code has ended, Python's main thread is no longer alive. The interpreter then waits for other threads, and
calls the functions of `atexit`, such as those in which OpenTelemetry exports the last spans. The line about the end of
the process names the thread or function that did not end in time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from funcmcp._server.drain import CLEANUP_SECONDS, drain_seconds
from funcmcp._server.log import logger
from funcmcp._server.log_output import JSONFormatter, is_json
from funcmcp._text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_ALARM_SECONDS = 0.5
_REPORT_SECONDS = 2
"""Seconds that the thread has for its line and the streams, which a stuck thread may hold."""


def start_exit_deadline(seconds: float | None = None) -> Callable[[], None]:
    """End the process in time; return a function that cancels the deadline.

    Args:
        seconds: The time; by default that of the drain and the clean-up.
    """
    if seconds is None:
        seconds = drain_seconds() + CLEANUP_SECONDS
    cancelled = threading.Event()
    threading.Thread(target=_exit_unless, args=(cancelled, seconds), name="funcmcp watchdog", daemon=True).start()
    _set_alarm(seconds + _ALARM_SECONDS)

    def cancel() -> None:
        cancelled.set()
        _set_alarm(0)

    return cancel


def _set_alarm(seconds: float) -> None:
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _exit_unless(cancelled: threading.Event, seconds: float) -> None:
    if cancelled.wait(seconds):
        return
    _set_alarm(_REPORT_SECONDS)  # this thread runs, so nothing holds the interpreter's lock
    # sys.stderr has a lock, which a stuck thread may hold.
    os.write(2, _line(_reason()).encode("utf-8", "backslashreplace"))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a closed pipe must not keep the process
            stream.flush()
    os._exit(0)


def _line(message: str) -> str:
    """Return a line of the log, in its format."""
    with contextlib.suppress(ValueError):  # the author's code has set an invalid format
        if is_json():
            record = logging.LogRecord(logger.name, logging.WARNING, __file__, 0, message, None, None)
            return f"{JSONFormatter().format(record)}\n"
    return f"{message}\n"


def _reason() -> str:
    """Return what has not ended, in a sentence, and that the process exits."""
    main = threading.main_thread()
    if main.is_alive():
        return "Some calls did not end in time. The process exits without them."
    place = _place_in(sys._current_frames().get(main.ident or 0))  # noqa: SLF001 - the only way to see other threads
    if place is None:
        names = [thread.name for thread in threading.enumerate() if not thread.daemon and thread is not main]
        place = f"the thread {visible_line(', '.join(names))}" if names else "a function of atexit"
    if place.partition(".")[0] == "opentelemetry":
        return (
            f"The server has ended, but not {place}: an exporter of OpenTelemetry did not reach its collector in time. "
            "The process exits without the last spans or metrics."
        )
    return f"The server has ended, but not {place}. The process exits without it."


def _place_in(frame: FrameType | None) -> str | None:
    """Return the innermost function that does not belong to Python itself, such as "package.module.function"."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in sys.stdlib_module_names:
            return visible_line(f"{module}.{frame.f_code.co_name}")
        frame = frame.f_back
    return None

"""Ends child processes of this process when it ends without doing so, also by SIGKILL.

How it works: `OrphanGuard` starts one small process, which has the reading end of a pipe. This process writes the ids
of the process groups that it starts, and of those that have ended. The end of the pipe is the end of this process,
however it comes. The guard then sends SIGTERM to the groups that remain, and SIGKILL to those that have not ended after
`TERMINATE_SECONDS`. It has a session of its own, so that Ctrl-C does not end it first.

What it cannot end is a process that has left its group, such as a daemon: its stdin is closed all the same. Windows has
no process groups of this kind, and a frozen program no interpreter to run the guard: a child then only sees the end of
its stdin.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
from threading import Lock

TERMINATE_SECONDS = 2.0

_GUARD = """
import os, signal, sys, time
groups = set()
for line in sys.stdin.buffer:
    if line[:1] == b"+":
        groups.add(int(line[1:]))
    else:
        groups.discard(int(line[1:]))
def send(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            groups.discard(group)
        except PermissionError:
            pass
send(signal.SIGTERM)
end = time.monotonic() + float(sys.argv[1])
while groups and time.monotonic() < end:
    time.sleep(0.02)
    send(0)
send(signal.SIGKILL)
"""


class OrphanGuard:
    """Knows the process groups of this process, and ends them when it has ended. It may be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._guard: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def is_possible(self) -> bool:
        """Whether there can be a guard."""
        return sys.platform != "win32" and not getattr(sys, "frozen", False) and bool(sys.executable)

    def add(self, group: int) -> None:
        """End a process group after the end of this process."""
        if not self.is_possible:
            return
        with self._lock:
            if self._guard is None or self._pid != os.getpid():  # a child that was forked has a guard of its own
                self._guard, self._pid = _start(), os.getpid()
            self._write(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Leave a process group alone, because it has ended."""
        with self._lock:
            if self._guard is not None and self._pid == os.getpid():
                self._write(f"-{group}\n")

    def close(self) -> None:
        """End the guard, and the groups that remain."""
        with self._lock:
            guard, self._guard = self._guard, None
            if guard is not None and guard.stdin is not None and self._pid == os.getpid():
                with contextlib.suppress(OSError):
                    guard.stdin.close()
                guard.wait()

    def _write(self, line: str) -> None:
        guard = self._guard
        if guard is None or guard.stdin is None:
            return
        try:
            guard.stdin.write(line.encode())
            guard.stdin.flush()
        except OSError:  # somebody has killed the guard: the next child gets another one
            guard.wait()
            self._guard = None


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - a constant program
        [sys.executable, "-I", "-S", "-c", _GUARD, str(TERMINATE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        close_fds=True,
    )


orphan_guard = OrphanGuard()
atexit.register(orphan_guard.close)

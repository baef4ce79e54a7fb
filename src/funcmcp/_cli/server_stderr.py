"""The stderr of a server that a command starts.

How it works: the server's process writes into a pipe, which a thread reads. The lines are held until the server has
answered, and are passed on from then on. If the process ends before, the command prints one line with the cause in
place of them: a client starts a process twice if it ends at the first request, and the lines would be there twice.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Self

from funcmcp._cli.causes import cause_of
from funcmcp._cli.output import write_text

if TYPE_CHECKING:
    from types import TracebackType

_JOIN_SECONDS = 2.0
_MAX_LINES = 1_000


class ServerStderr:
    """The stderr of a server's process.

    Args:
        hold_seconds: Seconds after which lines are passed on even if the server has not answered.

    Attributes:
        descriptor: The number of the open file that the process writes to.
    """

    def __init__(self, hold_seconds: float) -> None:
        self._hold_seconds = hold_seconds
        self._source, self.descriptor = os.pipe()
        self._is_open = True
        self._held: list[str] | None = []
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self.release()

    def release(self) -> None:
        """Write the lines that are held, and each further one at once."""
        with self._lock:
            held, self._held = self._held, None
            for line in held or ():
                write_text(line, error=True)

    def cause(self) -> str:
        """Return one line with the cause of the end of the process, and drop the lines that are held.

        It is empty if the lines have been written, or if there are none.
        """
        self._close()
        with self._lock:
            held, self._held = self._held, None
        return cause_of("".join(held or ()))

    def _close(self) -> None:
        """Close the pipe, and wait until the thread has read it. A process that still runs keeps it open."""
        if self._is_open:
            self._is_open = False
            os.close(self.descriptor)
            self._thread.join(_JOIN_SECONDS)

    def _read(self) -> None:
        with os.fdopen(self._source, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if time.monotonic() - self._start > self._hold_seconds:
                    self.release()
                with self._lock:
                    if self._held is None:
                        write_text(line, error=True)
                    else:
                        self._held = [*self._held[1 - _MAX_LINES :], line]

"""The stderr of a server that a command starts.

How it works: the server's process writes into a pipe, which a thread reads. The lines are held until the server has
answered, and are passed on from then on. If the process ends before, the command prints one line with the cause in
place of them: a client starts a process twice if it ends at the first request, and the lines would be there twice.
The cause is taken from the traceback that Python wrote.
"""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from funcmcp_cli.output import write_text

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


_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TRACEBACK = "Traceback (most recent call last):"
_PACKAGE = Path(__file__).resolve().parents[1]
_FOREIGN = re.compile(r"[\\/](?:site-packages|dist-packages|lib[\\/]python\d[\d.]*)[\\/]|^<")
"""Files of Python and of libraries."""


def cause_of(text: str) -> str:
    """Return the last line of a text, after the author's file and line if the text has a traceback.

    It is empty if the text is.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    place = place_in(text)
    return f"{place}: {lines[-1].strip()}" if place else lines[-1].strip()


def place_in(text: str) -> str:
    """Return the author's innermost file and line in the last traceback of a text. It is empty if there is none."""
    place = ""
    for line in text.rpartition(_TRACEBACK)[2].splitlines():
        frame = _FRAME.match(line)
        if frame is None or _FOREIGN.search(frame["file"]):
            continue
        file = Path(frame["file"])
        if not file.is_relative_to(_PACKAGE):
            folder = Path.cwd()
            name = file.relative_to(folder) if file.is_relative_to(folder) else file
            place = f"{name}, line {frame['line']}"
    return place

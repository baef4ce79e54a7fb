"""Signals that end the process: open streams end before the ASGI server waits for them.

How it works: ASGI has no event for the beginning of a shutdown. "lifespan.shutdown" comes after all connections have
closed, so a client that listens would keep a server that waits for its responses from ending. Therefore the first open
stream puts a handler before the server's own one (`_Chained`), and the end of the last stream restores the server's.
The handler ends the streams and calls the server's handler, so that no signal is lost.

- *Owners.* Each `ShutdownSignals` has its own handler for each signal. If two applications of a process have open
  streams, their handlers form a chain: each calls the one that it replaced.
- *Order of the ends.* A handler leaves the chain wherever it is. Below a handler of another owner it can't: the other
  one would restore it later. It stays, inactive, and only calls the one before, until a later stream replaces it.
- *Other owners.* Only a handler of Python is replaced. Without one (the default action, an ignored signal, a handler of
  a C library), or with the one that raises KeyboardInterrupt, no server waits, and a signal that interrupts a cell of a
  notebook must not end its streams. Callbacks of `loop.add_signal_handler` are still called: the loop learns of the
  signal through the file descriptor of `signal.set_wakeup_fd`, whatever the handler is.
- *Threads.* Only the main thread can set handlers. A server in another thread gets no signals either.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, TypeAlias

    _Handler: TypeAlias = Callable[[int, FrameType | None], Any]

SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGBREAK")  # the last one exists on Windows
    if hasattr(signal, name)
)


class ShutdownSignals:
    """Calls a function when a signal asks the process to end while streams are open.

    Args:
        drain: Ends the streams. It is called in a signal handler, so it takes no lock.
    """

    def __init__(self, drain: Callable[[], None]) -> None:
        self._drain = drain
        self._streams = 0
        self._handlers: list[_Chained] = []

    def watched(self) -> _Watch:
        """Watch the signals while a ``with`` block runs. Without effect outside of the main thread."""
        return _Watch(self)

    def begin(self) -> None:
        """Add a stream, in the main thread. The first one puts the handlers before those of the server."""
        self._streams += 1
        if self._streams == 1:
            self._handlers = _chained(self._drain)

    def end(self) -> None:
        """Remove a stream. The last one restores the handlers of the server."""
        self._streams -= 1
        if self._streams == 0:
            for handler in self._handlers:
                handler.release()


class _Watch:
    """A ``with`` block in which a stream is open. A context manager of a generator would take 0.4 KB of each stream."""

    __slots__ = ("_has_begun", "_signals")

    def __init__(self, signals: ShutdownSignals) -> None:
        self._signals = signals
        self._has_begun = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._has_begun:
            self._signals.begin()

    def __exit__(self, *_: object) -> None:
        if self._has_begun:
            self._signals.end()


def _chained(drain: Callable[[], None]) -> list[_Chained]:
    """Put a handler before each present one, and return the new handlers."""
    handlers = []
    for number in SIGNALS:
        previous = signal.getsignal(number)
        while isinstance(previous, _Chained) and not previous.active:
            previous = previous.previous
        if callable(previous) and previous is not signal.default_int_handler:
            handler = _Chained(number, previous, drain)
            signal.signal(number, handler)
            handlers.append(handler)
    return handlers


class _Chained:
    """A signal handler that calls a function, and then the handler that it replaced.

    Attributes:
        active: Whether the function is still called.
        previous: The handler that it replaced.
    """

    def __init__(self, number: signal.Signals, previous: _Handler, drain: Callable[[], None]) -> None:
        self.active = True
        self.previous = previous
        self._number = number
        self._drain = drain

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        try:
            if self.active:
                self._drain()
        finally:
            self.previous(number, frame)

    def release(self) -> None:
        """Leave the chain, if only handlers of this class were put before this one; then only call the previous one."""
        self.active = False
        current = signal.getsignal(self._number)
        is_first = current is self
        if is_first and threading.current_thread() is threading.main_thread():
            signal.signal(self._number, self.previous)
        while isinstance(current, _Chained):
            if current.previous is self:
                current.previous = self.previous
            current = current.previous

"""The time in which a server process ends after SIGTERM: its calls in flight and its tasks have until one deadline.

How it works: `Drain.begin` is called when the process is asked to end, and everything that may still run waits for
`Drain.remaining` at most. What is cancelled then has `CLEANUP_SECONDS`, which include writing the state of the tasks
and leaving lifespans. Afterwards the process exits, whatever runs.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import Final

VARIABLE: Final = "FUNCMCP_DRAIN_SECONDS"
"""The environment variable with the seconds; `funcmcp run --drain` sets it."""

DEFAULT_SECONDS: Final = 7
"""With the clean-up it is less than the 10 seconds after which Docker kills a container."""

CLEANUP_SECONDS: Final = 2

HURRY_SIGNALS: Final = 2
"""How often a signal has to come to end the time."""


def drain_seconds() -> int:
    """Return the seconds that calls in flight and tasks have to end; raise ValueError for an invalid variable."""
    return whole_seconds(VARIABLE, DEFAULT_SECONDS)


def whole_seconds(variable: str, default: int) -> int:
    """Return the seconds in an environment variable, or the default; raise ValueError for an invalid value."""
    text = os.environ.get(variable)
    if not text:
        return default
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{variable} must be a number of whole seconds; got {text!r}.")
    return int(text)


class Drain:
    """The end of a server.

    Attributes:
        seconds: Seconds that calls in flight and tasks have.
    """

    def __init__(self) -> None:
        self.seconds: float = drain_seconds()
        self._deadline: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the server stops."""
        return self._deadline is not None

    def begin(self) -> None:
        """Start the time, unless it runs. From any thread, and in a signal handler."""
        if self._deadline is None:
            self._deadline = monotonic() + self.seconds

    def hurry(self) -> None:
        """End the time at once. From any thread, and in a signal handler."""
        self._deadline = monotonic()

    def remaining(self) -> float:
        """Return the seconds until the deadline; all of them if the time does not run."""
        if self._deadline is None:
            return self.seconds
        return max(0.0, self._deadline - monotonic())

    def reset(self) -> None:
        """Forget the deadline: the server serves again."""
        self._deadline = None

"""The state of one upstream: what `Upstream.status` shows, the log says, and the time of the next attempt to connect.

How it works: `Health` belongs to one upstream, and all event loops use it. Its states are

- *unused*: nothing was sent to the upstream yet.
- *connected*: the last attempt to reach it has succeeded.
- *reconnecting*: it is away. A request that comes before the time of the next attempt fails at once, or waits if that
  is less than `PATIENCE_SECONDS` away. The time between attempts doubles, with jitter.
- *failed*: `MAX_FAILURES` attempts in a row have failed. Attempts are made every `FAILED_SECONDS`, if requests come.

An attempt is made by the first request after its time, so an upstream that nobody uses costs nothing. Failures of
requests that began before the last failure belong to the same outage, and do not count. The number of failures is zero
again after the first answer, and not after a connection: a process that dies with its first request is started less and
less often.
The log has one line when the upstream goes away, and one when it is back.
"""

from __future__ import annotations

import asyncio
import random
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Literal, TypeAlias

from funcmcp._objects.definitions import options_by_name
from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._protocol.errors import ClientError
from funcmcp._server.log import logger, quote
from funcmcp._state.outage import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

State: TypeAlias = Literal["unused", "connected", "reconnecting", "failed", "pin mismatch"]

MAX_FAILURES = 8
"""Attempts in a row that fail before the state is *failed*."""

FAILED_SECONDS = 30.0
"""Seconds between attempts in the state *failed*."""

PATIENCE_SECONDS = 1.0
"""Seconds that a request waits for the next attempt at most."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_MAX_ERROR = 300

STDERR_LINES = 200
"""Lines of stderr of one upstream that are logged in a minute."""

_MAX_STDERR = 1000


@public("funcmcp.upstreams")
class UpstreamError(ClientError):
    """An upstream did not answer a request. The text names the upstream and what to do, and has no internal details.

    Args:
        text: The text.
        may_have_run: Whether the upstream may have begun to run the request.
    """

    def __init__(self, text: str, *, may_have_run: bool = False) -> None:
        super().__init__(text)
        self.may_have_run = may_have_run


@public("funcmcp.upstreams")
@options_by_name
class UpstreamStatus:
    """The state of an upstream at one moment.

    Attributes:
        name: The name of the upstream.
        state: "unused" before the first connection; "connected"; "reconnecting" while it is away; "failed" after many
            attempts in a row; "pin mismatch" if it is connected, and definitions are hidden because they differ from
            the pinned ones.
        optional: Whether the server is ready without it.
        away_since: The time at which it went away, in seconds since 1970. None unless it is away.
        last_error: Why it is or was away, refuses access, or sent an answer that is not valid, for operators. None if
            none of these has happened.
        list_error: Why its list of features is old or missing. None if the last read has succeeded.
        changed: The definitions that are hidden because they differ from the pinned ones.
        sessions: Its open sessions. A server without sessions has one for each of its connections.
        failures: Attempts and requests that failed because it did not answer.
        reconnects: How often it was back after it had been away.
    """

    name: str
    state: State
    optional: bool
    away_since: float | None
    last_error: str | None
    list_error: str | None
    changed: tuple[str, ...]
    sessions: int
    failures: int
    reconnects: int


class Health:
    """Whether an upstream can be reached.

    Args:
        name: The name of the upstream.
        optional: Whether the server is ready without it.
        clock: Returns monotonic seconds.

    Attributes:
        name: The name of the upstream.
        optional: Whether the server is ready without it.
        sessions: Its open sessions in this process.
    """

    def __init__(self, name: str, *, optional: bool, clock: Callable[[], float] = monotonic) -> None:
        self.name = name
        self.optional = optional
        self.sessions = 0
        self._clock = clock
        self._lock = Lock()  # event loops of several threads may use one upstream
        self._outage = Outage()
        self._is_used = False
        self._failures = 0
        self._failed_at = float("-inf")
        self._next_at = float("-inf")
        self._away_since: float | None = None
        self._last_error: str | None = None
        self._list_error: str | None = None
        self._changed: tuple[str, ...] = ()
        self._total_failures = 0
        self._reconnects = 0

    @property
    def is_away(self) -> bool:
        """Whether the last attempt to reach the upstream has failed."""
        return self._away_since is not None

    @property
    def has_failed(self) -> bool:
        """Whether an attempt has failed since the last answer."""
        return self._failures > 0

    @property
    def state(self) -> State:
        """The state, as in `UpstreamStatus`."""
        if self.is_away:
            return "failed" if self._failures >= MAX_FAILURES else "reconnecting"
        if self._changed:
            return "pin mismatch"
        return "connected" if self._is_used else "unused"

    @property
    def status(self) -> UpstreamStatus:
        """The state at this moment."""
        with self._lock:
            return UpstreamStatus(
                name=self.name,
                state=self.state,
                optional=self.optional,
                away_since=self._away_since,
                last_error=self._last_error,
                list_error=self._list_error,
                changed=self._changed,
                sessions=self.sessions,
                failures=self._total_failures,
                reconnects=self._reconnects,
            )

    async def admit(self) -> None:
        """Wait for the next attempt if it is soon; raise UpstreamError if it is later."""
        if not self._failures:
            return
        remaining = self._next_at - self._clock()
        if remaining > PATIENCE_SECONDS:
            raise self.away_error()
        if remaining > 0:
            await asyncio.sleep(remaining)

    def away_error(self) -> UpstreamError:
        """Return the error for a request that was not sent, because the upstream is away."""
        seconds = seconds_until(self._next_at, self._clock())
        return UpstreamError(
            f"The server {self.name!r} is away, so nothing was sent to it. Try again in {seconds} s. "
            "The log of this server has the reason."
        )

    def reached(self) -> None:
        """Note that the upstream was reached, though it has not answered a request yet."""
        if not self._is_used or self.is_away:
            with self._lock:
                self._is_used = True
                if self.is_away:
                    self._away_since = None
                    self._reconnects += 1
            self._outage.end("The server %s is back.", quote(repr(self.name)))

    def answered(self) -> None:
        """Note that the upstream has answered a request."""
        if self._failures or self.is_away:
            self.reached()
            self._failures = 0

    def failed(self, reason: str, began: float) -> None:
        """Note that the upstream could not be reached, or that its connection has ended.

        Args:
            reason: The reason, for operators.
            began: When the attempt or the request began, in the seconds of the clock.
        """
        with self._lock:
            now = self._clock()
            self._is_used = True
            self._total_failures += 1
            self._last_error = quote(reason, _MAX_ERROR)
            if self._away_since is None:
                self._away_since = time()
            if began < self._failed_at:
                return
            self._failures += 1
            self._failed_at = now
            has_given_up = self._failures >= MAX_FAILURES
            pause = FAILED_SECONDS if has_given_up else _pause_after(self._failures)
            self._next_at = now + pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come back at once
        self._outage.begin("The server %s is away: %s", quote(repr(self.name)), self._last_error)
        if self._failures == MAX_FAILURES:
            logger.error(
                "The server %s has failed %d times in a row, and is tried again every %g seconds only: %s",
                *(quote(repr(self.name)), MAX_FAILURES, FAILED_SECONDS, self._last_error),
            )

    def not_valid(self, reason: str) -> None:
        """Note why an answer of the upstream, which is not away, can't be used. The caller quotes the reason."""
        self._last_error = reason

    def listed(self, error: str | None) -> None:
        """Note that the list of features was read, or why that has failed."""
        self._list_error = None if error is None else quote(error, _MAX_ERROR)

    def pin_mismatch(self, changed: Iterable[str]) -> None:
        """Note which definitions differ from the pinned ones, now and not before."""
        self._changed = tuple(changed)

    def now(self) -> float:
        """Return the seconds of the clock."""
        return self._clock()


class StderrLog:
    """Writes what an upstream writes on stderr into the log, with its name, and at most `STDERR_LINES` a minute.

    Args:
        name: The name of the upstream.
        clock: Returns monotonic seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = monotonic) -> None:
        self._name = name
        self._clock = clock
        self._until = float("-inf")
        self._count = 0

    def write(self, line: str) -> None:
        """Write one line, whose control characters are escaped."""
        now = self._clock()
        if now >= self._until:
            if self._count > STDERR_LINES:
                logger.info("%s: %d more lines on stderr", quote(self._name), self._count - STDERR_LINES)
            self._until, self._count = now + 60.0, 0
        self._count += 1
        if self._count <= STDERR_LINES:
            logger.info("%s: %s", quote(self._name), quote(line, _MAX_STDERR))
        elif self._count == STDERR_LINES + 1:
            logger.info("%s: further lines on stderr are left out for a minute", quote(self._name))


def _pause_after(failures: int) -> float:
    """Return the seconds until the next attempt. The first one is made at once: a process may have died only once."""
    return 0.0 if failures == 1 else min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failures - 2))

"""Sessions in the memory of this process, bounded in number and age.

How it works: a session ends with `end`, or when it has been idle for too long, which is earlier for a session that was
never used. Each use postpones that. Expired sessions are removed when they are used, and by a sweep that runs in
`create`: ten times per idle time, and when the store is full. A sweep that leaves a full store computes the earliest
time at which a session can expire. Until then there is no other sweep. A principal has a limit of its own, and so has
an address from which anonymous callers come, so that neither can fill the store alone.

In a full store a new session takes the place of one that is idle: of the caller with most sessions, the one that was
not used for the longest time. Its client gets 404 and begins another one. Sessions are in the order of their last use,
by caller, and callers in that of theirs. A session with a running call or an open stream is never ended. If there are
no others, a new session is refused, and for `_BUSY_SECONDS` no other one is looked for.
"""

from __future__ import annotations

import base64
import os
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_until
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import UNUSED_SECONDS, LocalSessions, SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._state.seal import KeyRing
    from funcmcp._state.sessions.store import Handshake

_SWEEPS = 10
"""How often the store looks for expired sessions during the time after which an idle session expires."""

_BUSY_SECONDS = 5


@public("funcmcp.state")
class MemorySessions(LocalSessions):
    """Sessions in the memory of one process.

    Args:
        limit: Number of sessions at once. When it is reached, a new session ends the one that has been idle for the
            longest time, of the caller with most sessions; its client gets 404 and begins another one. Sessions with a
            running call or an open stream are not ended. If all have one, new sessions are refused with 503.
        per_principal: Number of sessions of one principal at once. When it is reached, its new sessions are refused
            with 429. By default it is half of *limit*. An address from which anonymous callers come has this limit, or
            half of *limit*, whichever is more.
        idle: Seconds without a request after which a session ends. A session whose client sends nothing after
            `initialize` ends after five minutes at most.
        keys: Seal what clients carry between requests. The default is as in `SignedSessions`.
        clock: Returns monotonic seconds.

    Attributes:
        on_duration: Is called when a session has ended, with the seconds from its beginning to its end, or to its last
            request if it has expired, and with the date of its revision.
        on_eviction: Is called when a session was ended to make room for another one.
        is_busy: Returns whether a session has a running call or an open stream. The server sets it.
    """

    def __init__(
        self,
        *,
        limit: int = 10_000,
        per_principal: int | None = None,
        idle: float = 1800.0,
        keys: KeyRing | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.keys = keys
        self._limit = limit
        half = max(1, limit // 2)
        self._per_principal = half if per_principal is None else per_principal
        self._per_address = max(self._per_principal, half)
        self._paid: OrderedDict[str | None, OrderedDict[str, None]] = OrderedDict()
        """Session ids by the caller for whom they count, both in the order of their last use."""
        self._idle = idle
        self._unused = min(idle, UNUSED_SECONDS)
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        self._full_until = 0.0
        self._busy_until = 0.0
        self._sweep_at = 0.0
        self._evictions = LineLimit(clock=clock)
        self.endings: list[Callable[[str], None]] = []
        self.on_duration: Callable[[float, str], None] | None = None
        self.on_eviction: Callable[[], None] | None = None
        self.is_busy: Callable[[str], bool] = lambda _: False

    async def create(self, handshake: Handshake) -> str:
        """Create a session and return its id; raise SessionsFullError."""
        now = self._clock()
        if now >= self._sweep_at or (len(self._sessions) >= self._limit and now >= self._full_until):
            self._drop_expired(now)
        payer = handshake.payer
        if payer is not None:
            limit = self._per_address if handshake.owner is None else self._per_principal
            if len(self._paid.get(payer, ())) >= limit:
                raise SessionsFullError(seconds_until(self._sweep_at, now), is_owner_limit=True)
        if len(self._sessions) >= self._limit and not self._evict(now):
            raise SessionsFullError(min(seconds_until(self._full_until, now), _BUSY_SECONDS))
        session_id = base64.urlsafe_b64encode(os.urandom(33)).decode("ascii")
        self._paid.setdefault(payer, OrderedDict())[session_id] = None
        self._paid.move_to_end(payer)
        self._sessions[session_id] = _Session(handshake.reduced(), now, now + self._unused)
        return session_id

    async def get(self, session_id: str) -> Handshake | None:
        """Return the handshake of a session, or None. The session does not expire while it is used."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        now = self._clock()
        if session.expires <= now:
            self._drop(session_id)
            return None
        session.used, session.expires = now, now + self._idle
        payer = session.handshake.payer
        self._paid[payer].move_to_end(session_id)
        self._paid.move_to_end(payer)
        return session.handshake

    async def end(self, session_id: str) -> bool:
        """End a session; return whether it existed."""
        self._full_until = self._busy_until = 0.0
        session = self._sessions.get(session_id)
        if session is not None:
            session.used = self._clock()
        return self._drop(session_id)

    @property
    def count(self) -> int:
        """The number of sessions that have not expired. It may be read in any thread, so it drops none."""
        now = self._clock()
        return sum(session.expires > now for session in list(self._sessions.values()))

    def __len__(self) -> int:
        self._drop_expired(self._clock())
        return len(self._sessions)

    def _drop(self, session_id: str) -> bool:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        payer = session.handshake.payer
        del self._paid[payer][session_id]
        if not self._paid[payer]:
            del self._paid[payer]
        if self.on_duration is not None:
            self.on_duration(session.used - session.began, session.handshake.revision)
        return True

    def _evict(self, now: float) -> bool:
        """End a session that is idle; return False if all of them are busy."""
        if now < self._busy_until:
            return False
        session_id = self._longest_idle()
        if session_id is None:
            self._busy_until = now + _BUSY_SECONDS
            return False
        self._drop(session_id)
        for on_end in self.endings:
            on_end(session_id)
        if self.on_eviction is not None:
            self.on_eviction()
        self._evictions.write(
            "The limit of %d sessions (MemorySessions(limit=)) is reached. A new session ends the one that was idle "
            "longest, of the caller with most sessions. Its client begins another one.",
            self._limit,
        )
        return True

    def _longest_idle(self) -> str | None:
        """Return the session to end: of the caller with most sessions that are not all busy, the first one that is not.

        Of callers with as many sessions, the one counts that has sent nothing for the longest time.
        """
        most = max(self._paid.values(), key=len, default=OrderedDict())
        for session_ids in (most, *sorted(self._paid.values(), key=len, reverse=True)):
            for session_id in session_ids:
                if not self.is_busy(session_id):
                    return session_id
        return None

    def _drop_expired(self, now: float) -> None:
        """Drop expired sessions, and note the earliest time at which another one can expire; use only postpones it."""
        expired = [session_id for session_id, session in self._sessions.items() if session.expires <= now]
        for session_id in expired:
            self._drop(session_id)
            for on_end in self.endings:
                on_end(session_id)
        self._sweep_at = now + self._idle / _SWEEPS
        self._full_until = min((session.expires for session in self._sessions.values()), default=now)


class _Session:
    __slots__ = ("began", "expires", "handshake", "used")

    def __init__(self, handshake: Handshake, now: float, expires: float) -> None:
        self.handshake = handshake
        self.began = self.used = now
        self.expires = expires

"""Sessions in the memory of this process, bounded in number and age.

How it works: a session ends with `end`, or when it has been idle for too long. Each use postpones that. Expired
sessions are removed when they are used, and by a sweep that runs in `create`: ten times per idle time, and when the
store is full. A sweep that leaves a full store computes the earliest time at which a session can expire. Until then new
sessions are refused without another sweep. A principal has a limit of its own, so that it can't fill the store alone.
"""

from __future__ import annotations

import base64
import os
from time import monotonic
from typing import TYPE_CHECKING

from funcmcp.state.sessions.store import LiveSessions, SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.state.seal import KeyRing
    from funcmcp.state.sessions.store import Handshake

_SWEEPS = 10
"""How often the store looks for expired sessions during the time after which an idle session expires."""


class MemorySessions(LiveSessions):
    """Sessions in the memory of one process.

    Args:
        limit: Number of sessions at once. When it is reached, new sessions are refused with 503.
        per_principal: Number of sessions of one principal at once. When it is reached, its new sessions are refused
            with 429.
        idle: Seconds without a request after which a session ends.
        keys: Seal what clients carry between requests. The default is as in `SignedSessions`.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        limit: int = 10_000,
        per_principal: int = 5_000,
        idle: float = 1800.0,
        keys: KeyRing | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.keys = keys
        self._limit = limit
        self._per_principal = per_principal
        self._owned: dict[str, int] = {}
        self._idle = idle
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        self._full_until = 0.0
        self._sweep_at = 0.0
        self.endings: list[Callable[[str], None]] = []

    async def create(self, handshake: Handshake) -> str:
        """Create a session and return its id; raise SessionsFullError."""
        now = self._clock()
        if now >= self._sweep_at or (len(self._sessions) >= self._limit and now >= self._full_until):
            self._drop_expired(now)
        if len(self._sessions) >= self._limit:
            raise SessionsFullError(max(1, int(self._full_until - now) + 1))
        owner = handshake.owner
        if owner is not None:
            if self._owned.get(owner, 0) >= self._per_principal:
                raise SessionsFullError(max(1, int(self._sweep_at - now) + 1), is_owner_limit=True)
            self._owned[owner] = self._owned.get(owner, 0) + 1
        session_id = base64.urlsafe_b64encode(os.urandom(33)).decode("ascii")
        self._sessions[session_id] = _Session(handshake, now)
        return session_id

    async def get(self, session_id: str) -> Handshake | None:
        """Return the handshake of a session, or None. The session does not expire while it is used."""
        return self.get_at_once(session_id)

    def get_at_once(self, session_id: str) -> Handshake | None:
        """Return what `get` returns, without a coroutine."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        now = self._clock()
        if session.used + self._idle <= now:
            self._drop(session_id)
            return None
        session.used = now
        return session.handshake

    async def end(self, session_id: str) -> bool:
        """End a session; return whether it existed."""
        self._full_until = 0.0
        return self._drop(session_id)

    def __len__(self) -> int:
        self._drop_expired(self._clock())
        return len(self._sessions)

    def _drop(self, session_id: str) -> bool:
        session = self._sessions.pop(session_id, None)
        owner = None if session is None else session.handshake.owner
        if owner is not None:
            self._owned[owner] -= 1
            if not self._owned[owner]:
                del self._owned[owner]
        return session is not None

    def _drop_expired(self, now: float) -> None:
        """Drop expired sessions, and note the earliest time at which another one can expire; use only postpones it."""
        deadline = now - self._idle
        expired = [session_id for session_id, session in self._sessions.items() if session.used <= deadline]
        for session_id in expired:
            self._drop(session_id)
            for on_end in self.endings:
                on_end(session_id)
        self._sweep_at = now + self._idle / _SWEEPS
        self._full_until = min((session.used for session in self._sessions.values()), default=now) + self._idle


class _Session:
    __slots__ = ("handshake", "used")

    def __init__(self, handshake: Handshake, used: float) -> None:
        self.handshake = handshake
        self.used = used

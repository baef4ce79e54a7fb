"""Sessions in this process's memory, bounded in number and age."""

from __future__ import annotations

import base64
import os
from time import monotonic
from typing import TYPE_CHECKING

from funcmcp.state.sessions.store import SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.state.seal import KeyRing
    from funcmcp.state.sessions.store import Handshake


_SWEEPS = 10
"""How often those that are too old are looked for, in the time after which a session is too old."""


class MemorySessions:
    """Sessions that live in one process.

    Args:
        limit: Number of sessions at once. When it is reached, new sessions are refused with 503.
        per_principal: Number of sessions of one principal at once. When it is reached, its new sessions are refused
            with 429.
        idle: Seconds without a request after which a session ends.
        keys: Seal what clients carry between requests. The default is as in `SignedSessions`.
        clock: Returns monotonic seconds.
    """

    pushes: bool = True

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
        """Begin a session and return its id; raise SessionsFullError."""
        now = self._clock()
        if now >= self._sweep_at or (len(self._sessions) >= self._limit and now >= self._full_until):
            self._drop_old(now)
        if len(self._sessions) >= self._limit:
            raise SessionsFullError(max(1, int(self._full_until - now) + 1))
        owner = handshake.owner
        if owner is not None:
            if self._owned.get(owner, 0) >= self._per_principal:
                raise SessionsFullError(max(1, int(self._sweep_at - now) + 1), own=True)
            self._owned[owner] = self._owned.get(owner, 0) + 1
        session_id = base64.urlsafe_b64encode(os.urandom(33)).decode("ascii")
        self._sessions[session_id] = _Session(handshake, now)
        return session_id

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None; using it keeps it alive."""
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
        """End a session; return whether there was one."""
        self._full_until = 0.0
        return self._drop(session_id)

    def __len__(self) -> int:
        self._drop_old(self._clock())
        return len(self._sessions)

    def _drop(self, session_id: str) -> bool:
        session = self._sessions.pop(session_id, None)
        owner = None if session is None else session.handshake.owner
        if owner is not None:
            self._owned[owner] -= 1
            if not self._owned[owner]:
                del self._owned[owner]
        return session is not None

    def _drop_old(self, now: float) -> None:
        """Drop what is too old, and note until when nothing more can be: use only makes the sessions live longer."""
        deadline = now - self._idle
        old = [session_id for session_id, session in self._sessions.items() if session.used <= deadline]
        for session_id in old:
            self._drop(session_id)
            for tell in self.endings:
                tell(session_id)
        self._sweep_at = now + self._idle / _SWEEPS
        self._full_until = min((session.used for session in self._sessions.values()), default=now) + self._idle


class _Session:
    __slots__ = ("handshake", "used")

    def __init__(self, handshake: Handshake, used: float) -> None:
        self.handshake = handshake
        self.used = used

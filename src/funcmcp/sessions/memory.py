"""Sessions in this process's memory, bounded in number and age."""

from __future__ import annotations

import base64
import os
from time import monotonic
from typing import TYPE_CHECKING

from funcmcp.sessions.store import SessionsFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.sessions.store import Handshake


class MemorySessions:
    """Sessions that live in one process.

    Args:
        limit: how many sessions may live at once; one more is refused, and the others go on.
        idle: seconds without a request after which a session ends.
        clock: returns seconds; monotonic.
    """

    def __init__(self, *, limit: int = 10_000, idle: float = 1800.0, clock: Callable[[], float] = monotonic) -> None:
        self._limit = limit
        self._idle = idle
        self._clock = clock
        # In the order of their last use, so that the oldest stand first.
        self._sessions: dict[str, tuple[Handshake, float]] = {}

    async def create(self, handshake: Handshake) -> str:
        """Begin a session and return its id; raise SessionsFullError."""
        self._drop_old()
        if len(self._sessions) >= self._limit:
            oldest = next(iter(self._sessions.values()))[1]
            raise SessionsFullError(max(1, int(oldest + self._idle - self._clock()) + 1))
        session_id = base64.urlsafe_b64encode(os.urandom(33)).decode("ascii")
        self._sessions[session_id] = (handshake, self._clock())
        return session_id

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None; using it keeps it alive."""
        entry = self._sessions.pop(session_id, None)
        if entry is None:
            return None
        now = self._clock()
        if entry[1] + self._idle <= now:
            return None
        self._sessions[session_id] = (entry[0], now)
        return entry[0]

    async def end(self, session_id: str) -> bool:
        """End a session; return whether there was one."""
        return self._sessions.pop(session_id, None) is not None

    def __len__(self) -> int:
        self._drop_old()
        return len(self._sessions)

    def _drop_old(self) -> None:
        deadline = self._clock() - self._idle
        while self._sessions:
            session_id = next(iter(self._sessions))
            if self._sessions[session_id][1] > deadline:
                return
            del self._sessions[session_id]

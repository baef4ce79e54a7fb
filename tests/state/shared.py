"""Sessions that instances in one process share: what Redis is between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._state.bus import LocalBus
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.store import Notes, SharedSessions, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._state.bus import Bus
    from funcmcp._state.sessions.store import Handshake, SessionKey


class SharedMemory:
    """What all instances reach.

    Attributes:
        away: whether it can't be reached now.
        read: how often notes were read.
    """

    def __init__(self) -> None:
        self.sessions = MemorySessions()
        self.notes: dict[SessionKey, Notes] = {}
        self.bus = LocalBus()
        self.away = False
        self.read = 0

    def check(self) -> None:
        if self.away:
            raise StoreUnavailableError


class SharedMemorySessions(SharedSessions):
    """One instance's way there."""

    def __init__(self, memory: SharedMemory) -> None:
        self.memory = memory
        self.local = memory.bus.beside()
        self.bus: Bus = self.local
        self.endings: list[Callable[[str], None]] = []

    async def create(self, handshake: Handshake) -> str:
        self.memory.check()
        return await self.memory.sessions.create(handshake)

    async def get(self, session_id: str) -> Handshake | None:
        self.memory.check()
        return await self.memory.sessions.get(session_id)

    async def end(self, session_id: str) -> bool:
        self.memory.check()
        return await self.memory.sessions.end(session_id)

    async def notes(self, key: SessionKey) -> Notes:
        self.memory.check()
        self.memory.read += 1
        return self.memory.notes.get(key, Notes())

    async def note_level(self, key: SessionKey, level: str) -> None:
        self.memory.check()
        before = self.memory.notes.get(key, Notes())
        self.memory.notes[key] = Notes(level, before.subscribed)

    async def note_subscription(self, key: SessionKey, uri: str, *, subscribe: bool) -> None:
        self.memory.check()
        before = self.memory.notes.get(key, Notes())
        subscribed = before.subscribed | {uri} if subscribe else before.subscribed - {uri}
        self.memory.notes[key] = Notes(before.level, subscribed)

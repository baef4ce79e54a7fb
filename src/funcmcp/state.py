"""State that a server stores between requests: sessions, sign-ins, rates of callers, and keys for sealed text.

A single process needs none of this: ``MCPServer(sessions="signed")`` and ``MCPServer(sessions="memory")`` name the
two usual stores. `funcmcp.redis` has the stores that several instances share. A store of your own implements
`SessionStore`, or `LiveSessions` if its sessions have streams and subscriptions. A store for the sign-ins of an
`funcmcp.auth.OAuthProxy` implements `SignInStore`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._state.rates import MemoryRates, Rates
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.sessions.memory import MemorySessions
    from funcmcp._state.sessions.signed import SignedSessions
    from funcmcp._state.sessions.store import (
        Handshake,
        LiveSessions,
        SessionsFullError,
        SessionStore,
        StoreUnavailableError,
    )
    from funcmcp._state.sign_ins import MemorySignIns, SignInStore
    from funcmcp._state.sqlite_sign_ins import SQLiteSignIns

__all__ = [
    "Handshake",
    "KeyRing",
    "LiveSessions",
    "MemoryRates",
    "MemorySessions",
    "MemorySignIns",
    "Rates",
    "SQLiteSignIns",
    "SessionStore",
    "SessionsFullError",
    "SignInStore",
    "SignedSessions",
    "StoreUnavailableError",
]

_HOMES = {
    "_state.rates": ["MemoryRates", "Rates"],
    "_state.seal": ["KeyRing"],
    "_state.sessions.memory": ["MemorySessions"],
    "_state.sessions.signed": ["SignedSessions"],
    "_state.sessions.store": [
        "Handshake",
        "LiveSessions",
        "SessionStore",
        "SessionsFullError",
        "StoreUnavailableError",
    ],
    "_state.sign_ins": ["MemorySignIns", "SignInStore"],
    "_state.sqlite_sign_ins": ["SQLiteSignIns"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

"""State that a server stores between requests: sessions, sign-ins, values of callers, rates, and keys for sealed text.

A single process needs none of this: ``MCPServer(sessions="signed")`` and ``MCPServer(sessions="memory")`` name the
two usual stores. `funcmcp.redis` has the stores that several instances share. A store of your own implements
`SessionStore`, or `LiveSessions` if its sessions have streams and subscriptions. A store for the sign-ins of an
`funcmcp.auth.OAuthProxy` implements `SignInStore`, and one for ``MCPServer(state=)`` implements `StateStore`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._state.caller_state import CallerState, StateHandle, StateOwnerError, StateUnavailableError
    from funcmcp._state.key_values import MemorySignIns, MemoryState, SignInStore, StateFullError, StateStore
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
    from funcmcp._state.sqlite_key_values import SQLiteSignIns, SQLiteState

__all__ = [
    "CallerState",
    "Handshake",
    "KeyRing",
    "LiveSessions",
    "MemoryRates",
    "MemorySessions",
    "MemorySignIns",
    "MemoryState",
    "Rates",
    "SQLiteSignIns",
    "SQLiteState",
    "SessionStore",
    "SessionsFullError",
    "SignInStore",
    "SignedSessions",
    "StateFullError",
    "StateHandle",
    "StateOwnerError",
    "StateStore",
    "StateUnavailableError",
    "StoreUnavailableError",
]

_HOMES = {
    "_state.caller_state": ["CallerState", "StateHandle", "StateOwnerError", "StateUnavailableError"],
    "_state.key_values": ["MemorySignIns", "MemoryState", "SignInStore", "StateFullError", "StateStore"],
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
    "_state.sqlite_key_values": ["SQLiteSignIns", "SQLiteState"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

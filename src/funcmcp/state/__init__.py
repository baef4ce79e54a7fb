"""What a server keeps between requests: sessions, rates of callers, and the keys of sealed texts.

One process needs nothing of this module: ``MCPServer(sessions="signed")`` and ``MCPServer(sessions="memory")`` name the
two usual stores. `funcmcp.redis` has the stores that several instances share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.lazy_names import lazy_names

if TYPE_CHECKING:
    from funcmcp.state.rates import MemoryRates, Rates
    from funcmcp.state.seal import KeyRing
    from funcmcp.state.sessions.memory import MemorySessions
    from funcmcp.state.sessions.signed import SignedSessions
    from funcmcp.state.sessions.store import SessionStore

__all__ = ["KeyRing", "MemoryRates", "MemorySessions", "Rates", "SessionStore", "SignedSessions"]

_HOMES = {
    "state.rates": ["MemoryRates", "Rates"],
    "state.seal": ["KeyRing"],
    "state.sessions.memory": ["MemorySessions"],
    "state.sessions.signed": ["SignedSessions"],
    "state.sessions.store": ["SessionStore"],
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

"""Sessions without a store: the id is a signed token that holds what `initialize` agreed on.

Every process with the same keys can check it. What can't be kept in it is not there: streams between requests and
subscriptions. A session that was ended is remembered by the process that ended it, and by a store that all processes
share where there is one.
"""

from __future__ import annotations

import base64
import os
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp.protocol.codec import decode, encode
from funcmcp.sessions.store import Handshake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp.sessions.seal import KeyRing

_PURPOSE = "session"
_REMEMBERED = 10_000
_LONGEST = 4096
_KNOWN = {"elicitation": ("form", "url"), "sampling": ("context", "tools"), "roots": (), "extensions": None}
"""Client capabilities that a server acts on, and the parts of them."""

_LONGEST_TEXT = 100
_MOST_EXTENSIONS = 8


class Revocations(Protocol):
    """Remembers, for all instances, which sessions were ended. Both methods may raise StoreAwayError."""

    async def add(self, session_id: str, seconds: float) -> bool:
        """Remember a session for so long; return whether it was not remembered before."""

    async def has(self, session_id: str) -> bool:
        """Tell whether a session is remembered."""


class SignedSessions:
    """Sessions that live in their ids.

    Args:
        keys: sign the ids.
        revoked: remembers for all processes which sessions were ended. Without it each one remembers those that it
            has ended itself.
        lifetime: seconds after which a session ends and the client has to initialize again.
        clock: returns seconds since 1970.
    """

    pushes = False

    def __init__(
        self,
        keys: KeyRing,
        *,
        revoked: Revocations | None = None,
        lifetime: float = 86_400.0,
        clock: Callable[[], float] = time,
    ) -> None:
        self.endings: list[Callable[[str], None]] = []
        self._keys = keys
        self._revoked = revoked
        self._lifetime = lifetime
        self._clock = clock
        self._checked: dict[str, tuple[Handshake, float]] = {}
        self._ended: dict[str, float] = {}

    async def create(self, handshake: Handshake) -> str:
        """Begin a session and return its id."""
        payload = {
            "r": handshake.revision,
            "c": _capabilities(handshake.capabilities),
            "i": _info(handshake.info),
            "x": self._clock() + self._lifetime,
            "o": handshake.owner,
            "n": base64.b64encode(os.urandom(16)).decode("ascii"),
        }
        return self._keys.seal(_PURPOSE, encode(payload))

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None."""
        entry = self._checked.get(session_id) or self._open(session_id)
        if entry is None or entry[1] <= self._clock() or session_id in self._ended:
            return None
        if self._revoked is not None and await self._revoked.has(session_id):
            return None
        return entry[0]

    async def end(self, session_id: str) -> bool:
        """End a session; return whether there was one."""
        entry = self._checked.get(session_id) or self._open(session_id)
        if entry is None or await self.get(session_id) is None:
            return False
        expires = entry[1]
        if self._revoked is not None and not await self._revoked.add(session_id, expires - self._clock()):
            return False
        _bound(self._ended)
        self._ended[session_id] = expires
        self._checked.pop(session_id, None)
        return True

    def _open(self, session_id: str) -> tuple[Handshake, float] | None:
        payload = self._keys.open(_PURPOSE, session_id) if len(session_id) <= _LONGEST else None
        if payload is None:
            return None
        said = decode(payload)
        _bound(self._checked)
        entry = self._checked[session_id] = Handshake(said["r"], said["c"], said["i"], said["o"]), said["x"]
        return entry


def _bound(remembered: dict[str, Any]) -> None:
    """Make room for one more; the oldest goes first."""
    if len(remembered) >= _REMEMBERED:
        del remembered[next(iter(remembered))]


def _capabilities(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that matter, so that the id stays short."""
    kept: dict[str, Any] = {}
    for name, parts in _KNOWN.items():
        value = declared.get(name)
        if not isinstance(value, dict):
            continue
        wanted = parts if parts is not None else tuple(value)[:_MOST_EXTENSIONS]
        kept[name] = {part: {} for part in wanted if isinstance(value.get(part), dict) and len(part) <= _LONGEST_TEXT}
    return kept


def _info(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of the client, so that the id stays short."""
    return {
        name: given[name][:_LONGEST_TEXT] for name in ("name", "title", "version") if isinstance(given.get(name), str)
    }

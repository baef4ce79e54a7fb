"""Sessions without a store: the id is a signed token that holds what `initialize` agreed on.

Every process with the same keys can check it. What can't be kept in it is not there: streams between requests and
subscriptions. A session that was ended is remembered until it would have expired: by this process and the other workers
of ``funcmcp run --workers`` (`EndedSessions`), and by a store that all processes share where there is one.
"""

from __future__ import annotations

import base64
import os
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp.protocol.codec import decode, encode
from funcmcp.state.keys import configured_keys
from funcmcp.state.sessions.ended import EndedSessions, digest_of
from funcmcp.state.sessions.store import Handshake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp.state.bus import Bus
    from funcmcp.state.seal import KeyRing

_PURPOSE = "session"
_REMEMBERED = 10_000
_LONGEST = 4096
_FIELDS = frozenset("rcixon")
_KNOWN = {"elicitation": ("form", "url"), "sampling": ("context", "tools"), "roots": (), "extensions": None}
"""Client capabilities that a server acts on, and the parts of them."""

_LONGEST_TEXT = 100
_MOST_EXTENSIONS = 8


class Revocations(Protocol):
    """Remembers, for all instances, which sessions were ended. Both methods may raise StoreAwayError."""

    async def add(self, session_id: str, seconds: float) -> bool:
        """Remember a session for so long; return whether it was not remembered before.

        It must not be forgotten earlier: where there is no room, raise SessionsFullError.
        """

    async def has(self, session_id: str) -> bool:
        """Tell whether a session is remembered."""


class SignedSessions:
    """Sessions that live in their ids.

    Args:
        keys: Sign the ids. The default is the keys in the environment variable ``FUNCMCP_KEYS``, or those of the
            platform, or a random key that no other process has. A server derives keys of its own from them, by its
            name, and seals what clients carry between requests with these, too.
        revoked: Stores for all instances which sessions were ended, such as `funcmcp.redis.RedisRevocations`. Without
            it, an ended session is refused by the process that ended it and the other workers of its ``funcmcp run``.
        bus: Carries changes, answers of clients and cancellations to the other instances of the server, such as
            `funcmcp.redis.RedisBus`.
        lifetime: Seconds after which a session expires and the client has to initialize again.
        clock: Returns the seconds since 1970.

    Raises:
        ValueError: The keys in the environment are invalid.
    """

    pushes = False

    def __init__(
        self,
        keys: KeyRing | None = None,
        *,
        revoked: Revocations | None = None,
        bus: Bus | None = None,
        lifetime: float = 86_400.0,
        clock: Callable[[], float] = time,
    ) -> None:
        self.endings: list[Callable[[str], None]] = []
        self.keys = keys or configured_keys(os.environ)
        self.bus = bus
        self._revoked = revoked
        self._lifetime = lifetime
        self._clock = clock
        self._checked: dict[str, _Checked] = {}
        self._ended = EndedSessions.of_environment(os.environ, clock=clock)

    def signed_by(self, keys: KeyRing) -> SignedSessions:
        """Return a store with the same options whose ids are signed by *keys*."""
        return SignedSessions(keys, revoked=self._revoked, bus=self.bus, lifetime=self._lifetime, clock=self._clock)

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
        return self.keys.seal(_PURPOSE, encode(payload))

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None."""
        checked = self._checked.get(session_id) or self._open(session_id)
        if checked is None or checked.expires <= self._clock() or checked.digest in self._ended:
            return None
        if self._revoked is not None and await self._revoked.has(session_id):
            return None
        return checked.handshake

    async def end(self, session_id: str) -> bool:
        """End a session; return whether there was one.

        Raises:
            SessionsFullError: no further ended session can be remembered until others expire; this one lives on.
        """
        checked = self._checked.get(session_id) or self._open(session_id)
        if checked is None or await self.get(session_id) is None:
            return False
        if self._revoked is not None:
            return await self._revoked.add(session_id, checked.expires - self._clock())
        self._ended.add(checked.digest, checked.expires)
        return True

    def _open(self, session_id: str) -> _Checked | None:
        payload = self.keys.open(_PURPOSE, session_id) if len(session_id) <= _LONGEST else None
        if payload is None:
            return None
        checked = _checked(decode(payload), digest_of(session_id))
        if checked is not None:
            if len(self._checked) >= _REMEMBERED:
                del self._checked[next(iter(self._checked))]
            self._checked[session_id] = checked
        return checked


class _Checked(NamedTuple):
    """A session whose id has a valid signature."""

    handshake: Handshake
    expires: float
    digest: bytes


def _checked(payload: Any, digest: bytes) -> _Checked | None:
    """Return what the payload of an id says, or None if another version of the server wrote it."""
    match payload:
        case {"r": str(revision), "c": dict(capabilities), "i": dict(info), "o": str() | None as owner}:
            expires = payload.get("x")
            if isinstance(expires, int | float) and payload.keys() == _FIELDS:
                return _Checked(Handshake(revision, capabilities, info, owner), expires, digest)
    return None


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

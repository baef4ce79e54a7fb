"""Signed sessions: the session id is a signed token that contains the handshake.

How it works: `create` seals the handshake, its owner, the expiry time and random bytes in the id. It does not store
anything. Every process with the same keys can open the id; opened ids are cached. The session ends when it expires. If
the client ends it earlier, a record of that is kept until the expiry time. This process and the other workers of
``funcmcp run --workers`` share such records (`EndedSessions`), or all instances share them in a store (`Revocations`).
An id is a record (`funcmcp._state.records`) with short names: a version that adds a member that older ones may ignore
leaves ``v`` out, as this one does. A member that restricts a session needs another ``v``.
Signed sessions do not have subscriptions, or streams between requests, because no state is stored for them.
"""

from __future__ import annotations

import base64
import os
from time import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._state.keys import configured_keys
from funcmcp._state.records import VERSION, value_of
from funcmcp._state.sessions.ended import EndedSessions, digest_of
from funcmcp._state.sessions.store import Handshake, SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._state.bus import Bus
    from funcmcp._state.records import Value
    from funcmcp._state.seal import KeyRing

_PURPOSE = "session"
_MAX_CACHED = 10_000
_MAX_ID = 4096


class Revocations(Protocol):
    """Records ended sessions for all instances. Both methods may raise StoreUnavailableError."""

    async def add(self, session_id: str, seconds: float) -> bool:
        """Record a session for a number of seconds; return False if it is already recorded.

        The record must not be dropped earlier. If the store is full, the method raises SessionsFullError.
        """

    async def has(self, session_id: str) -> bool:
        """Return whether a session is recorded."""


@public("funcmcp.state")
class SignedSessions(SessionStore):
    """Sessions whose ids contain their handshakes.

    Args:
        keys: The keys that sign the ids. By default the keys in the environment variable ``FUNCMCP_KEYS``, those of the
            platform, or a random key of this process, whichever exists first. A server derives its own keys from them
            and its name. The derived keys also seal the state that clients return with later requests.
        revoked: The store in which all instances record ended sessions, such as `funcmcp.redis.RedisRevocations`.
            Without it, only the process that ended a session and the other workers of its ``funcmcp run`` reject it.
        bus: Sends changes, answers of clients and cancellations to the other instances of the server, such as
            `funcmcp.redis.RedisBus`.
        lifetime: Seconds after which a session expires and the client has to initialize again.
        clock: Returns the seconds since 1970.

    Raises:
        ValueError: The keys in the environment are invalid.
    """

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
        self.keys: KeyRing = keys or configured_keys(os.environ)
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
        """Create a session and return its id."""
        handshake = handshake.reduced()
        payload = {
            "r": handshake.revision,
            "c": handshake.capabilities,
            "i": handshake.info,
            "x": self._clock() + self._lifetime,
            "o": handshake.owner,
            "n": base64.b64encode(os.urandom(16)).decode("ascii"),
        }
        return self.keys.seal(_PURPOSE, encode(payload))

    async def get(self, session_id: str) -> Handshake | None:
        """Return the handshake of a session; None if its id is invalid, or if the session was ended or has expired."""
        checked = self._checked.get(session_id) or self._open(session_id)
        if checked is None or checked.expires <= self._clock() or self._ended.has(checked.digest, checked.start):
            return None
        if self._revoked is not None and await self._revoked.has(session_id):
            return None
        return checked.handshake

    async def end(self, session_id: str) -> bool:
        """End a session; return whether it existed.

        Raises:
            SessionsFullError: The store is full until earlier records expire. The session continues.
        """
        checked = self._checked.get(session_id) or self._open(session_id)
        if checked is None or await self.get(session_id) is None:
            return False
        if self._revoked is not None:
            return await self._revoked.add(session_id, checked.expires - self._clock())
        self._ended.add(checked.digest, checked.expires)
        return True

    def _open(self, session_id: str) -> _Checked | None:
        payload = self.keys.open(_PURPOSE, session_id) if len(session_id) <= _MAX_ID else None
        if payload is None:
            return None
        digest = digest_of(session_id)
        checked = _checked(value_of(payload), digest, self._ended.start_of(digest))
        if checked is not None:
            if len(self._checked) >= _MAX_CACHED:
                del self._checked[next(iter(self._checked))]
            self._checked[session_id] = checked
        return checked


class _Checked(NamedTuple):
    """A session whose id has a valid signature.

    Attributes:
        handshake: What was negotiated.
        expires: When the session expires, in seconds since 1970.
        digest: The digest under which `EndedSessions` records its end.
        start: The start of the bucket for the digest.
    """

    handshake: Handshake
    expires: float
    digest: bytes
    start: int


def _checked(record: Value, digest: bytes, start: int) -> _Checked | None:
    """Return the session of a record, or None if this version can't read it."""
    match record:
        case {
            "r": str(revision),
            "c": dict(capabilities),
            "i": dict(info),
            "x": int() | float() as expires,
            "o": str() | None as owner,
            **extra,
        } if extra.get("v", VERSION) == VERSION:
            return _Checked(Handshake(revision, capabilities, info, owner), expires, digest, start)
    return None

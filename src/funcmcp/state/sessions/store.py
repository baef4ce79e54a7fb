"""Sessions of the handshake era: what `initialize` agreed on, remembered for later requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp.state.bus import Bus


@dataclass(frozen=True, slots=True)
class Handshake:
    """What client and server agreed on.

    Attributes:
        revision: the date of the negotiated revision.
        capabilities: the client's ClientCapabilities.
        info: the client's Implementation.
        owner: whose session it is; None for anybody's.
    """

    revision: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    owner: str | None = None


class SessionsFullError(Exception):
    """There is no room for one more session, or for one more that was ended.

    Args:
        retry_after: seconds until one may.
        own: whether it is the owner's own share that is full.
    """

    def __init__(self, retry_after: int, *, own: bool = False) -> None:
        super().__init__("Too many sessions")
        self.retry_after = retry_after
        self.own = own


class StoreAwayError(Exception):
    """What the instances of the server share can't be reached now. `retry_after` is in seconds."""

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("The store is away")
        self.retry_after = retry_after


class SessionStore(Protocol):
    """Remembers sessions by unguessable ids of visible ASCII characters (0x21 to 0x7E).

    Attributes:
        pushes: whether what a session asks for between its requests (streams, subscriptions) is kept and served.
        endings: called with the id of each session that the store drops by itself, or finds to be over.
    """

    pushes: bool
    endings: list[Callable[[str], None]]

    async def create(self, handshake: Handshake) -> str:
        """Begin a session and return its id; raise SessionsFullError."""

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None if it never was, has ended or is too old."""

    async def end(self, session_id: str) -> bool:
        """End a session; return whether there was one. Raise SessionsFullError if that can't be remembered."""


class NoSessions:
    """The store of a server without sessions: `initialize` gives no id, and each request stands alone."""

    pushes = False

    def __init__(self) -> None:
        self.endings: list[Callable[[str], None]] = []

    async def create(self, handshake: Handshake) -> str:  # noqa: ARG002 - the protocol's signature
        """Return no id."""
        return ""

    async def get(self, session_id: str) -> Handshake | None:  # noqa: ARG002 - the protocol's signature
        """Return None: no session exists."""
        return None

    async def end(self, session_id: str) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return False: no session exists."""
        return False


@dataclass(frozen=True, slots=True)
class Notes:
    """What a session has chosen since its handshake.

    Attributes:
        level: the least severe level of log messages that the client wants; None if it has not said.
        subscribed: URIs of resources whose changes it wants to hear of.
    """

    level: str | None = None
    subscribed: frozenset[str] = frozenset()


@runtime_checkable
class SharedSessions(SessionStore, Protocol):
    """A store that every instance of a server reaches. Each of its methods may raise StoreAwayError.

    A session that nobody in particular began keeps notes of its own for each principal that uses it, too: a key of
    notes is the session's id, or that with a space and the principal's mark behind it.

    Attributes:
        bus: leads to the other instances.
    """

    bus: Bus

    async def notes(self, key: str) -> Notes:
        """Return what a session has chosen."""

    async def note_level(self, key: str, level: str) -> None:
        """Remember a log level for as long as the session lives."""

    async def note_subscription(self, key: str, uri: str, *, wanted: bool) -> None:
        """Remember, or forget, the URI of a resource for as long as the session lives."""

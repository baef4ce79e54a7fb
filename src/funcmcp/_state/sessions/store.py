"""Sessions of the handshake era: what `initialize` negotiated, stored for later requests.

How it works: three kinds of store differ in what a session can do between its requests. The class of a store says
which kind it is.

- `NoSessions`: `initialize` returns no session id, and each request stands alone.
- `SessionStore`, such as `SignedSessions`: a session is its handshake and nothing else. The server sends it messages
  only while it answers one of its requests.
- `LiveSessions`, such as `MemorySessions`: a session also has streams and subscriptions. `SharedSessions`, such as
  `RedisSessions`, are live sessions of all instances of a server.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._state.bus import Bus


@public("funcmcp.state")
class Handshake(NamedTuple):
    """The result of the negotiation between client and server.

    Attributes:
        revision: The date of the negotiated revision.
        capabilities: The client's ClientCapabilities.
        info: The client's Implementation.
        owner: The mark of the principal that owns the session; None for an anonymous session.
        address: The mark of the address from which an anonymous session began; None if it is unknown. A store counts
            the sessions of an address with it, and need not keep it.
    """

    revision: str
    capabilities: Mapping[str, Any] = {}
    info: Mapping[str, Any] = {}
    owner: str | None = None
    address: str | None = None

    @property
    def payer(self) -> str | None:
        """The mark of the caller for whom the session counts: a principal, or else an address; None if unknown."""
        return self.address if self.owner is None else self.owner

    def reduced(self) -> Handshake:
        """Return the handshake with only what a server uses, so that sessions are small.

        That is the name, title and version of the client, and the capabilities in `_CAPABILITIES`.
        """
        return self._replace(capabilities=_capabilities(self.capabilities), info=_info(self.info))


_CAPABILITIES = {"elicitation": ("form", "url"), "sampling": ("context", "tools"), "roots": (), "extensions": None}
"""The client capabilities that a server uses, with their parts. None: any part."""

_MAX_BYTES = 100
"""Bytes of a text of the client, in UTF-8."""

_MAX_EXTENSIONS = 8
"""Extensions that a session keeps. `negotiate` puts those that the server has before all others."""


def _capabilities(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the capabilities that a server uses."""
    capabilities: dict[str, Any] = {}
    for name, parts in _CAPABILITIES.items():
        value = declared.get(name)
        if not isinstance(value, dict):
            continue
        names = parts
        if names is None:
            names = tuple(part for part in tuple(value)[:_MAX_EXTENSIONS] if len(part.encode()) <= _MAX_BYTES)
        capabilities[name] = {part: {} for part in names if isinstance(value.get(part), dict)}
    return capabilities


def _info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the name, title and version of the client."""
    return {name: _short(info[name]) for name in ("name", "title", "version") if isinstance(info.get(name), str)}


def _short(text: str) -> str:
    return text[:_MAX_BYTES].encode()[:_MAX_BYTES].decode(errors="ignore")


class SessionKey(NamedTuple):
    """A session, or one principal's part of an anonymous session.

    Runs, questions, streams and subscriptions belong to a key. A caller that knows only the id of an anonymous session
    therefore gets nothing of another principal's part.

    Attributes:
        session_id: The id of the session.
        owner: The mark of the principal whose part of an anonymous session this is; None for the session itself.
    """

    session_id: str
    owner: str | None = None

    @classmethod
    def from_text(cls, text: str) -> SessionKey:
        """Return the key that `to_text` wrote."""
        session_id, _, owner = text.partition(" ")
        return cls(session_id, owner or None)

    def to_text(self) -> str:
        """Return the key as one string, for messages between instances. A session id contains no space."""
        if self.owner is None:
            return self.session_id
        return f"{self.session_id} {self.owner}"


UNUSED_SECONDS = 300.0
"""Seconds after which a session ends if its client has sent nothing since `initialize`."""


@public("funcmcp.state")
class SessionsFullError(Exception):
    """The store has no room for another session, or for another ended session.

    Args:
        retry_after: Seconds until there may be room.
        is_owner_limit: Whether the caller has reached its limit. Otherwise the store is full.
    """

    def __init__(self, retry_after: int, *, is_owner_limit: bool = False) -> None:
        super().__init__("Too many sessions")
        self.retry_after = retry_after
        self.is_owner_limit = is_owner_limit


@public("funcmcp.state")
class StoreUnavailableError(Exception):
    """A store of the server can't be used now. Requests that need it get status 503.

    Args:
        retry_after: Seconds after which the client may try again. None if the operator has to change something first,
            such as a path that does not exist.
        store: The name of the store in the error that the client gets.
        reason: The text of the error; None derives it from the other arguments.
        nothing_written: Whether it is certain that the store has changed nothing.
    """

    def __init__(
        self,
        retry_after: int | None = 1,
        *,
        store: str = "store",
        reason: str | None = None,
        nothing_written: bool = False,
    ) -> None:
        self.nothing_written = nothing_written
        if reason is not None:
            super().__init__(reason)
        elif retry_after is None:
            super().__init__(f"The {store} of the server can't be used. The server's log has the reason.")
        else:
            super().__init__(f"The {store} of the server is unavailable now.")
        self.retry_after = retry_after


@public("funcmcp.state")
@runtime_checkable
class SessionStore(Protocol):
    """Stores sessions under unguessable ids of visible ASCII characters (0x21 to 0x7E).

    Attributes:
        endings: Functions that the store calls with the id of each session that expires or that it no longer has.
    """

    endings: list[Callable[[str], None]]

    async def create(self, handshake: Handshake) -> str:
        """Create a session and return its id; raise SessionsFullError."""

    async def get(self, session_id: str) -> Handshake | None:
        """Return the handshake of a session, or None if the session does not exist, was ended or has expired."""

    async def end(self, session_id: str) -> bool:
        """End a session; return whether it existed. Raise SessionsFullError if the end can't be recorded."""


@public("funcmcp.state")
class LiveSessions(SessionStore):
    """A store whose sessions have streams and subscriptions between their requests."""


class LocalSessions(LiveSessions):
    """Sessions of this process, of which the store ends idle ones when it is full.

    Attributes:
        is_busy: Returns whether a session has a running call or an open stream. The server sets it.
    """

    is_busy: Callable[[str], bool]


class NoSessions(SessionStore):
    """The store of a server without sessions."""

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


class Notes(NamedTuple):
    """The choices of a client since the handshake of its session.

    Attributes:
        level: The least severe level of log messages that the client wants; None if it has not set one.
        subscribed: The URIs of the resources that it has subscribed to.
    """

    level: str | None = None
    subscribed: frozenset[str] = frozenset()


class SharedSessions(LiveSessions):
    """A store that every instance of a server uses. Each of its methods may raise StoreUnavailableError.

    Each principal's part of an anonymous session has notes of its own.

    Attributes:
        bus: Connects the instances.
    """

    bus: Bus

    @abstractmethod
    async def notes(self, key: SessionKey) -> Notes:
        """Return the notes of a session, or of a part of it."""

    @abstractmethod
    async def note_level(self, key: SessionKey, level: str) -> None:
        """Store a log level for the lifetime of the session."""

    @abstractmethod
    async def note_subscription(self, key: SessionKey, uri: str, *, subscribe: bool) -> None:
        """Add or remove the URI of a resource for the lifetime of the session."""

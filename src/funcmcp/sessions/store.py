"""Sessions of the handshake era: what `initialize` agreed on, remembered for later requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
    """No more sessions fit now. `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("Too many sessions")
        self.retry_after = retry_after


class SessionStore(Protocol):
    """Remembers sessions by unguessable ids of visible ASCII characters (0x21 to 0x7E).

    Attributes:
        pushes: whether what a session asks for between its requests (streams, subscriptions) is kept and served.
        endings: called with the id of each session that the store drops by itself.
    """

    pushes: bool
    endings: list[Callable[[str], None]]

    async def create(self, handshake: Handshake) -> str:
        """Begin a session and return its id; raise SessionsFullError."""

    async def get(self, session_id: str) -> Handshake | None:
        """Return a living session, or None if it never was, has ended or is too old."""

    async def end(self, session_id: str) -> bool:
        """End a session; return whether there was one."""

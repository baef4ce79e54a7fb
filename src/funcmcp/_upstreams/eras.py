"""The eras that an upstream speaks: the stateless one of 2026-07-28, sessions with a handshake, or both.

How it works: the connection over which lists are read asks the upstream with ``server/discover``, and with
``initialize`` if that is refused. An upstream without 2026-07-28 has a handshake only. One that has 2026-07-28 may have
a handshake, too. It says so in `supportedVersions`, or leaves the handshake revisions out of it, as the official SDKs
do. Then the first session that a client of the handshake era needs is the question: the other clients wait for its
outcome, and a refusal is remembered. An upstream that begins no session over HTTP can't ask a client in the handshake
era, so it counts as one that refuses.

The answers hold until a connection or a request for lists fails, because the upstream may then be another version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from funcmcp._client.errors import ConnectionFailedError, HTTPStatusError, SessionEndedError
from funcmcp._client.requests import NO_HANDSHAKE
from funcmcp._protocol.errors import InvalidResponseError, MCPError
from funcmcp._protocol.revisions import NEWEST_HANDSHAKE, REVISIONS
from funcmcp._upstreams.status import UpstreamError

if TYPE_CHECKING:
    from typing import TypeAlias

    from funcmcp._client.requests import Requests
    from funcmcp._protocol.errors import ClientError

    Era: TypeAlias = Literal["handshake", "newest"]

FIRST_SESSION_SECONDS = 30.0
"""Seconds that the first session of an upstream of 2026-07-28 may take to begin before it counts as refused."""

_SERVER_ERROR = -32000
_REFUSALS = NO_HANDSHAKE | {_SERVER_ERROR}
"""Error codes of ``initialize`` with which servers refuse a handshake."""

_REFUSING_STATUSES = frozenset({400, 404, 405, 410, 501})
"""HTTP statuses of ``initialize`` with which servers refuse a handshake."""


class HandshakeRefusedError(UpstreamError):
    """An upstream of 2026-07-28 begins no session, so nothing else was sent to it.

    Args:
        name: The name of the upstream.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"The server {name!r} begins no session. Nothing was sent to it: try again.")


class Eras:
    """The eras that one upstream speaks, as far as they are known.

    Args:
        era: The only era that is used; None for that of each client, if the upstream speaks it.

    Attributes:
        per_request: Whether it speaks a revision without a handshake; None if it was not asked.
        handshake: The newest revision with a handshake that both sides speak; None if that is not known.
        refuses_handshake: Whether it speaks 2026-07-28 only.
    """

    def __init__(self, era: Era | None = None) -> None:
        self._era = era
        self.per_request: bool | None = False if era == "handshake" else None
        self.handshake: str | None = None
        self.refuses_handshake: bool = era == "newest"

    @property
    def first_revision(self) -> str | None:
        """The revision for the connection over which lists are read; None to ask the upstream."""
        return NEWEST_HANDSHAKE if self._era == "handshake" else None

    @property
    def is_unsure(self) -> bool:
        """Whether the upstream speaks 2026-07-28, and may have a handshake, too."""
        return self.per_request is True and self.handshake is None and not self.refuses_handshake

    @property
    def session_revision(self) -> str | None:
        """The revision in which a session begins; None to ask the upstream."""
        is_chosen = self.per_request or self._era == "handshake"
        return NEWEST_HANDSHAKE if self.handshake is None and is_chosen else self.handshake

    def agreed(self, requests: Requests) -> None:
        """Note the outcome of a connection on which the upstream was asked for its revisions."""
        self.per_request = requests.revision.per_request
        named = [date for date in requests.supported if date in REVISIONS and not REVISIONS[date].per_request]
        self.handshake = max(named, default=None) if self.per_request else requests.date
        self.refuses_handshake = self._era == "newest"

    def session_began(self, date: str) -> None:
        """Note the revision of a session that has begun."""
        self.handshake = date
        self.refuses_handshake = False

    def session_refused(self) -> None:
        """Note that no session begins."""
        self.handshake = None
        self.refuses_handshake = True

    def forget(self) -> None:
        """Ask the upstream again, because it did not accept a connection."""
        self.handshake = None
        self.refuses_handshake = self._era == "newest"
        if not self.per_request and self._era != "handshake":
            self.per_request = None

    def is_refusal(self, error: Exception, *, is_http: bool) -> bool:
        """Return whether an error of ``initialize`` means that an upstream of 2026-07-28 has no handshake.

        Args:
            error: The error; TimeoutError if the time to connect is over.
            is_http: Whether the connection is over HTTP. A process without a handshake may end or stay silent.
        """
        if not self.per_request:
            return False
        if isinstance(error, MCPError):
            return error.code in _REFUSALS
        if isinstance(error, HTTPStatusError):
            return error.status in _REFUSING_STATUSES
        if isinstance(error, ConnectionFailedError):
            return self.is_unsure and not is_http and error.was_sent
        if isinstance(error, TimeoutError):
            return self.is_unsure
        return isinstance(error, InvalidResponseError)


def is_of_another_version(error: ClientError | MCPError) -> bool:
    """Return whether an upstream that is another version now may have answered a list request with an error."""
    cause = error.__cause__ if isinstance(error, UpstreamError) else error
    if isinstance(cause, MCPError):
        return cause.code in _REFUSALS
    return isinstance(cause, InvalidResponseError | SessionEndedError)

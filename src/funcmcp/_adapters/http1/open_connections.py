"""The number of a process's HTTP and WebSocket connections, and the memory of their unread bytes.

How it works: `_RESERVE` descriptors of the process, or a quarter of them, are left for files and for connections to
other servers. The remaining ones are places for connections, except those that are open when the first connection
comes. A connection with TLS has a place from the beginning of its handshake. The kernel gives a new descriptor the
lowest free number, so the number of a later connection shows how many are open. If half of the reserve is in use, a new
connection needs the place of another one, even if there are places.

A connection beyond the places closes another one, and so does one whose address has more than half of them. An eighth
of the places is for addresses that have no other connection, such as that of a health check. Only a connection that
waits for its client is closed. Of the address with the largest number of connections, it is the one that is idle
longest, or, if none is idle, the one whose request is incomplete for longest. If all of them answer requests, the new
connection is closed.

Headers that do not end, and requests that wait behind one that is answered, have a part of the memory (`Load.headers`
of `funcmcp._server.load`), so that they take no room from requests that are known. If that part has no room, the
connection whose unread bytes have not grown for longest is refused: one of the same address if its share is used up,
else one of all.

An address has no share behind proxies, which all callers share, and on a Unix socket, where it is unknown.

Source: POSIX, "File Descriptor Allocation".
"""

from __future__ import annotations

import heapq
import logging
import sys
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._server.limits import LimitReachedError
from funcmcp._state.line_limit import LineLimit
from funcmcp._transports.http.admission.caller import caller_at
from funcmcp._transports.http.messages import ip_address_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp._server.load import Budget

_RESERVE = 256
"""Descriptors that connections leave free."""

_FIRST_PART = 8
"""An eighth of the places is for the first connection of an address."""

_PER_SCAN = 1000
"""Connections that are searched for each one that is closed, so that the time of a new connection is bounded."""

_log = logging.getLogger("funcmcp")


class OpenConnection(Protocol):
    """A connection.

    Attributes:
        transport: Its transport.
        waiting_rank: The sort key among connections that may be closed for another one, of which the lowest is closed
            first; None while it may not be closed.
    """

    transport: Any

    @property
    def waiting_rank(self) -> tuple[int, float] | None:
        """See the class."""

    def give_way(self) -> None:
        """Close: another connection gets the place."""

    def refuse_unfinished(self, *, is_caller_limit: bool) -> None:
        """Refuse the requests that have not been answered: those of its address, or of all, take up too much memory."""


class OpenConnections:
    """Counts connections.

    Args:
        descriptors: Descriptors that the process may have; None for any number.
        has_shares: Whether an address has a share of the places. False behind proxies.
        headers: The memory of headers that have not ended; None to count none.

    Attributes:
        refused_headers: Writes the lines about headers that are too large.
    """

    def __init__(
        self, descriptors: int | None = None, *, has_shares: bool = True, headers: Budget | None = None
    ) -> None:
        self._descriptors = descriptors
        reserve = 0 if descriptors is None else min(_RESERVE, descriptors // 4)
        self._limit = None if descriptors is None else descriptors - reserve
        self._end_of_numbers = (descriptors or 0) - reserve // 2
        self._has_shares = has_shares
        self._headers = headers
        self._callers: dict[OpenConnection, str | None] = {}
        self._by_caller: dict[str | None, dict[OpenConnection, None]] = {}
        self._first_number = descriptors or 0  # the lowest number that a connection has had
        self._unfinished: dict[OpenConnection, int] = {}  # the one that has not grown for longest is the first
        self._logged: set[str] = set()
        self.refused_headers = LineLimit()

    def add(self, connection: OpenConnection) -> bool:
        """Count a new connection, unless it has replaced another one.

        If there is no place, close another one; return False if none can be closed.
        """
        if connection in self._callers:
            return True
        caller = self._caller_of(connection)
        self._add(connection, caller)
        if self._limit is None:
            return True
        siblings = self._by_caller[caller]
        if caller is not None and len(siblings) > max(1, self._limit // 2):
            self._log_once(
                "%s has half of the places for connections: those that are idle longest are closed. If it is a proxy,"
                " declare it with HTTPOptions(proxies=).",
                caller.partition(":")[2],
            )
            return self._make_room(connection, siblings)
        number = _descriptor_of(connection)
        self._first_number = min(self._first_number, number)
        places = self._limit - self._first_number
        if caller is not None and len(siblings) > 1:
            places -= self._limit // _FIRST_PART
        if number < self._end_of_numbers and len(self._callers) <= places:
            return True
        self._log_once(
            "Descriptors run out (the limit is %s): connections that are idle longest are closed. Raise the limit, such"
            " as with ulimit -n or LimitNOFILE=.",
            self._descriptors,
        )
        largest = max(self._by_caller.values(), key=len)
        return self._make_room(connection, largest) or self._make_room(connection, self._callers)

    def replace(self, connection: OpenConnection, successor: OpenConnection) -> None:
        """Count another protocol of the same transport in place of a connection."""
        caller = self._callers.get(connection)
        self.remove(connection)
        self._add(successor, caller)

    def remove(self, connection: OpenConnection) -> None:
        """Stop counting a connection."""
        if connection not in self._callers:
            return
        self.hold(connection, 0)
        caller = self._callers.pop(connection)
        siblings = self._by_caller[caller]
        del siblings[connection]
        if not siblings:
            del self._by_caller[caller]

    def hold(self, connection: OpenConnection, size: int) -> None:
        """Count the unread bytes of a connection in place of those before; refuse the oldest if they have no room."""
        if self._headers is None:
            return
        caller = self._callers.get(connection)
        counted = self._unfinished.pop(connection, 0)
        if counted:
            self._headers.give_back(caller, counted)
        while size:
            try:
                self._headers.check(caller, size)
            except LimitReachedError as error:
                is_caller_limit = error.is_caller_limit
            else:
                self._headers.count(caller, size)
                self._unfinished[connection] = size
                return
            oldest = self._oldest_unfinished(caller) if is_caller_limit else next(iter(self._unfinished), None)
            if oldest is None:
                connection.refuse_unfinished(is_caller_limit=is_caller_limit)
                return
            self.hold(oldest, 0)
            oldest.refuse_unfinished(is_caller_limit=is_caller_limit)

    def _oldest_unfinished(self, caller: str | None) -> OpenConnection | None:
        return next((connection for connection in self._unfinished if self._callers.get(connection) == caller), None)

    def _caller_of(self, connection: OpenConnection) -> str | None:
        peer = connection.transport.get_extra_info("peername")
        if not self._has_shares or not isinstance(peer, (tuple, list)) or not peer:
            return None
        address = ip_address_in(str(peer[0]))
        return caller_at(address)

    def _add(self, connection: OpenConnection, caller: str | None) -> None:
        self._callers[connection] = caller
        self._by_caller.setdefault(caller, {})[connection] = None

    def _make_room(self, connection: OpenConnection, candidates: Iterable[OpenConnection]) -> bool:
        """Close connections that wait for their clients; return False if there are none."""
        waiting = [
            (rank, index, other)
            for index, other in enumerate(candidates)
            if other is not connection and (rank := other.waiting_rank) is not None
        ]
        first = heapq.nsmallest(1 + len(waiting) // _PER_SCAN, waiting)
        for _, _, closing in first:
            closing.give_way()
        return bool(first)

    def _log_once(self, message: str, value: object) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _log.warning(message + " This is logged once.", value)


def descriptor_limit() -> int | None:
    """Return how many descriptors this process may have; None if it may have any number."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - does not exist on Windows

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def _descriptor_of(connection: OpenConnection) -> int:
    """Return the number of a connection's descriptor; -1 if it has none."""
    socket = connection.transport.get_extra_info("socket")
    return -1 if socket is None else int(socket.fileno())

"""The URIs of resources to which a client subscribed, limited for each client, each caller and the process.

A resource of another server is watched there as long as a client is subscribed to it. `watch` gets the function that
ends this.

A `SubscribedURIs` belongs to one session or one `subscriptions/listen`. All of its URIs count
for the caller that subscribes first, in the budget `Load.subscriptions`, until it is closed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.uri_template import MAX_URI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from funcmcp._server.load import Budget

MAX_URIS = 1000
"""The number of URIs to which one client may subscribe."""

MAX_BYTES = 512 * 1024
"""Bytes of memory for them."""

_OVERHEAD = 200
"""Bytes of memory of a URI besides its text, with the change by which it is looked up."""


class SubscribedURIs:
    """A set of URIs that counts its memory."""

    __slots__ = ("_budget", "_caller", "_closed", "_size", "_uris", "_watched")

    def __init__(self) -> None:
        self._uris: set[str] = set()
        self._size = 0
        self._budget: Budget | None = None
        self._caller: str | None = None
        self._closed = False
        self._watched: dict[str, Callable[[], None]] | None = None

    def charge_to(self, budget: Budget, caller: str | None) -> None:
        """Count the URIs for a caller, present ones included; does nothing if they count for a caller already."""
        if self._budget is None and not self._closed:
            self._budget, self._caller = budget, caller
            budget.count(caller, self._size)

    def check(self, uris: Iterable[str]) -> None:
        """Raise InvalidParams for too many or too long URIs, and LimitReachedError if the budget is used up."""
        uris = {uri for uri in uris if uri not in self._uris}
        if any(len(uri) > MAX_URI for uri in uris):
            raise InvalidParams(f"A URI may have {MAX_URI} characters.")
        size = sum(map(_size_of, uris))
        if len(self._uris) + len(uris) > MAX_URIS or self._size + size > MAX_BYTES:
            raise InvalidParams(f"A client may subscribe to {MAX_URIS} resources, whose URIs have {MAX_BYTES} bytes.")
        if self._budget is not None:
            self._budget.check(self._caller, size)

    def reserve(self, size: int) -> None:
        """Count further bytes that the client's subscriptions take up; raise LimitReachedError."""
        if self._budget is not None:
            self._budget.check(self._caller, size)
        self._count(size)

    def add(self, uri: str) -> None:
        """Add a URI, which `check` has passed."""
        if uri not in self._uris:
            self._uris.add(uri)
            self._count(_size_of(uri))

    def watch(self, uri: str, end: Callable[[], None]) -> None:
        """Call a function when the client is no longer subscribed to a URI."""
        if self._watched is None:
            self._watched = {}
        if self._closed or uri in self._watched:
            end()
        else:
            self._watched[uri] = end

    def discard(self, uri: str) -> None:
        """Remove a URI if it is present."""
        if uri in self._uris:
            self._uris.remove(uri)
            self._count(-_size_of(uri))
        self._end_watch(uri)

    def _end_watch(self, uri: str) -> None:
        end = None if self._watched is None else self._watched.pop(uri, None)
        if end is not None:
            end()

    def replace(self, uris: Iterable[str]) -> None:
        """Replace all URIs; `check` has passed them at the instance that added them."""
        size = sum(map(_size_of, self._uris))
        self._uris = set(uris)
        self._count(sum(map(_size_of, self._uris)) - size)
        for uri in [uri for uri in self._watched or () if uri not in self._uris]:
            self._end_watch(uri)

    def close(self) -> None:
        """Stop counting, because the session or the stream has ended."""
        if self._budget is not None:
            self._budget.give_back(self._caller, self._size)
            self._budget = None
        self._closed = True
        for uri in list(self._watched or ()):
            self._end_watch(uri)

    def _count(self, size: int) -> None:
        self._size += size
        if self._budget is not None:
            self._budget.count(self._caller, size)

    def __contains__(self, uri: object) -> bool:
        return uri in self._uris

    def __iter__(self) -> Iterator[str]:
        return iter(self._uris)

    def __len__(self) -> int:
        return len(self._uris)


def _size_of(uri: str) -> int:
    return sys.getsizeof(uri) + _OVERHEAD

"""The changes that an upstream reports over one connection; `funcmcp._upstreams.subscriptions` says how it works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._client.notifications import Change
from funcmcp._client.subscriptions import Listener, Subscriptions
from funcmcp._protocol.errors import ClientError, MCPError

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._client.requests import Requests

LISTS = ("tools", "prompts", "resources")


class ChangeReceiver(Protocol):
    """What receives the changes of all connections. `funcmcp._upstreams.subscriptions.UpstreamChanges` does."""

    def report(self, change: Change) -> None:
        """Handle a change."""

    def lost(self, owner: str | None) -> None:
        """Count lists as possibly changed, because the connection that reports their changes is lost.

        Args:
            owner: The mark of the principal whose connection it is; None if it is that of all callers.
        """

    def set_silent(self, *, is_silent: bool) -> None:
        """Note whether the upstream has no stream on which it could report changes of lists."""


class LinkChanges:
    """The changes that an upstream reports over one connection.

    Args:
        receiver: Receives the changes.
        owner: The mark of the principal whose connection it is; None if it is that of all callers.
        kinds: The lists that are followed.
    """

    def __init__(self, receiver: ChangeReceiver, owner: str | None = None, kinds: Collection[str] = LISTS) -> None:
        self._receiver = receiver
        self._owner = owner
        self._is_lost = False
        self._listener = Listener(_ignore, kinds, is_optional=True)
        self._requests: Requests | None = None
        self._subscriptions: Subscriptions | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def is_watching(self) -> bool:
        """Whether the connection has to stay open for a resource."""
        return bool(self._listener.uris)

    def session_began(self, requests: Requests) -> None:
        """Follow the changes of a new session, also those that were followed in the session before."""
        is_first = self._subscriptions is None
        has_reported, self._is_lost = self._is_lost, False
        if self._listener.kinds:
            self._receiver.set_silent(is_silent=False)
        if requests is not self._requests or self._subscriptions is None:
            self._requests = requests
            self._subscriptions = Subscriptions(
                requests, self._receiver.report, needs_stream=False, on_end=self._stream_ended
            )
            self._subscriptions.include(self._listener)
        self._subscriptions.session_began()
        if has_reported:  # the lists are read in this session already
            for uri in sorted(self._listener.uris):
                self._receiver.report(Change("resource", uri))
        elif not is_first:
            self._subscriptions.report_gap()

    def lost(self) -> None:
        """Note that the connection is lost, or its session: until the next one, changes are not reported."""
        if self._listener.kinds and self._subscriptions is not None:
            self._is_lost = True
            self._receiver.lost(self._owner)

    def _stream_ended(self, was_open: bool) -> None:  # noqa: FBT001 - the only argument of a callback
        """Note that the upstream refuses the stream on which it reports changes."""
        if self._listener.kinds:
            self._receiver.set_silent(is_silent=True)
        if was_open:
            self.lost()

    def notified(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification of the upstream."""
        if self._subscriptions is not None:
            self._subscriptions.notified(method, params)

    async def add(self, uri: str) -> None:
        """Subscribe to a resource, unless the upstream reports no changes of resources; raise MCPError, ClientError."""
        resources = None if self._requests is None else self._requests.capabilities.get("resources")
        if self._subscriptions is None or not isinstance(resources, dict) or not resources.get("subscribe"):
            return
        self._listener.uris.add(uri)
        try:
            await self._subscriptions.follow(None)
        except BaseException:
            self._listener.uris.discard(uri)
            raise

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource, beside the caller."""
        if uri not in self._listener.uris:
            return
        self._listener.uris.discard(uri)
        if self._subscriptions is not None:
            task = asyncio.create_task(self._follow(self._subscriptions))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End the subscriptions of the present session."""
        ending = list(self._ending)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._subscriptions is not None:
            await self._subscriptions.aclose()

    async def _follow(self, subscriptions: Subscriptions) -> None:
        try:
            await subscriptions.follow(None)
        except (MCPError, ClientError):
            return  # the upstream goes on to report what no client is subscribed to


def _ignore(_change: Change) -> None:
    """Handle no change: `LinkChanges` receives all of them."""

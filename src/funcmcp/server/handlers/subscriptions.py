"""`subscriptions/listen`: a request that stays open and tells of changes (2026-07-28).

Source: 2026-07-28 "basic/patterns/subscriptions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.envelope import SUBSCRIPTION_ID
from funcmcp.protocol.errors import INVALID_REQUEST, METHOD_NOT_FOUND, InvalidParams, MCPError
from funcmcp.server.connections.hub import LISTS, updated
from funcmcp.server.connections.subscribed_uris import MAX_URIS, SubscribedURIs

if TYPE_CHECKING:
    from funcmcp.server.calls.context import Context
    from funcmcp.server.connections.hub import Change
    from funcmcp.server.dispatch import Server

_URIS = "resourceSubscriptions"


async def listen(server: Server, context: Context) -> dict[str, Any]:
    """Answer `subscriptions/listen`: say what is honoured, tell of each change, and end when the server stops."""
    if context.http is not None and not context.http.streams:
        raise MCPError(METHOD_NOT_FOUND, "subscriptions/listen needs a live event stream, which this platform lacks.")
    if not context.channel.pushes:
        raise MCPError(
            INVALID_REQUEST, "This needs an event stream: accept text/event-stream, where the server can send one."
        )
    load, caller = server.load, context.caller
    load.streams.check(caller)
    with load.streams.counting(caller), load.runs.without(caller):
        return await _tell(server, context)


async def _tell(server: Server, context: Context) -> dict[str, Any]:
    wish = _Wish()
    try:
        honoured = await _honoured(server, context, wish)
        meta = {SUBSCRIPTION_ID: context.request.id}
        await server.bus.ready()
        with server.hub.listening(wish.wants, missed=wish.changes) as changes:
            acknowledged = {"_meta": meta, "notifications": honoured}
            await context.channel.notify("notifications/subscriptions/acknowledged", acknowledged)
            # The request exists as long as the stream; the subscription has all that is needed of it.
            del honoured, acknowledged, context.request.params["notifications"]
            async for change in changes:
                await context.channel.notify(change.method, {"_meta": meta, **change.params})
    finally:
        wish.uris.close()
    return {"_meta": meta}


class _Wish:
    """The changes that a client subscribed to.

    Attributes:
        lists: Changes of lists.
        uris: URIs of resources.
    """

    def __init__(self) -> None:
        self.lists: list[Change] = []
        self.uris = SubscribedURIs()

    def wants(self, change: Change) -> bool:
        """Return whether the client subscribed to a change."""
        return change in self.lists if change.uri is None else change.uri in self.uris

    def changes(self) -> list[Change]:
        """Return all changes that the client subscribed to."""
        return self.lists + [updated(uri) for uri in self.uris]


async def _honoured(server: Server, context: Context, wish: _Wish) -> dict[str, Any]:
    """Put the part of the request that this server fulfils for this caller into the wish, and return it."""
    guard, principal = server.guard, context.principal
    may_list = guard is None or guard.about_lists(server, principal) is None
    notifications = context.request.params.get("notifications")
    if type(notifications) is not dict:
        raise InvalidParams('"notifications" must be an object.')
    honoured: dict[str, Any] = {}
    for capability, change in LISTS.items():
        name = f"{capability}ListChanged"
        if type(notifications.get(name, False)) is not bool:
            raise InvalidParams(f'"{name}" must be true or false.')
        if notifications.get(name) and capability in server.offered and may_list:
            honoured[name] = True
            wish.lists.append(change)
    uris = notifications.get(_URIS, [])
    if type(uris) is not list or not all(type(uri) is str for uri in uris) or len(uris) > MAX_URIS:
        raise InvalidParams(f'"{_URIS}" must be an array of at most {MAX_URIS} URIs.')
    if uris and "resources" in server.offered:
        await _subscribe(server, context, wish.uris, uris)
        honoured[_URIS] = [uri for uri in uris if uri in wish.uris]
    return honoured


async def _subscribe(server: Server, context: Context, subscribed: SubscribedURIs, uris: list[str]) -> None:
    """Subscribe to the URIs that a caller may read; raise InvalidParams or LimitReachedError."""
    subscribed.charge_to(server.load.subscriptions, context.caller)
    subscribed.check(uris)
    for uri in uris:
        subscribed.add(uri)
    if server.guard is not None:
        for uri in uris:
            if not await server.guard.may_read(server, uri, context.principal):
                subscribed.discard(uri)

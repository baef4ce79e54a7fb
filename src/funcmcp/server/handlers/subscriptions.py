"""`subscriptions/listen`: a request that stays open and tells of changes (2026-07-28).

Source: 2026-07-28 "basic/patterns/subscriptions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.envelope import SUBSCRIPTION_ID
from funcmcp.protocol.errors import INVALID_REQUEST, METHOD_NOT_FOUND, InvalidParams, MCPError
from funcmcp.server.handlers.resources import MAX_SUBSCRIPTIONS
from funcmcp.server.hub import LISTS, updated

if TYPE_CHECKING:
    from funcmcp.server.context import Context
    from funcmcp.server.dispatch import Server
    from funcmcp.server.hub import Change

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
    honoured, wanted = await _honoured(server, context)
    meta = {SUBSCRIPTION_ID: context.request.id}
    await server.bus.ready()
    with server.hub.listening(wanted.__contains__, missed=wanted.__iter__) as changes:
        acknowledged = {"_meta": meta, "notifications": honoured}
        await context.channel.notify("notifications/subscriptions/acknowledged", acknowledged)
        async for change in changes:
            await context.channel.notify(change.method, {"_meta": meta, **change.params})
    return {"_meta": meta}


async def _honoured(server: Server, context: Context) -> tuple[dict[str, Any], frozenset[Change]]:
    """Return the part of the wish that this server fulfils for this caller, and the changes that it is about."""
    guard, principal = server.guard, context.principal
    may_list = guard is None or guard.about_lists(server, principal) is None
    wish = context.request.params.get("notifications")
    if type(wish) is not dict:
        raise InvalidParams('"notifications" must be an object.')
    honoured: dict[str, Any] = {}
    changes: list[Change] = []
    for capability, change in LISTS.items():
        name = f"{capability}ListChanged"
        if type(wish.get(name, False)) is not bool:
            raise InvalidParams(f'"{name}" must be true or false.')
        if wish.get(name) and capability in server.offered and may_list:
            honoured[name] = True
            changes.append(change)
    uris = wish.get(_URIS, [])
    if type(uris) is not list or not all(type(uri) is str for uri in uris) or len(uris) > MAX_SUBSCRIPTIONS:
        raise InvalidParams(f'"{_URIS}" must be an array of at most {MAX_SUBSCRIPTIONS} URIs.')
    if uris and "resources" in server.offered:
        if guard is not None:
            uris = [uri for uri in uris if await guard.may_read(server, uri, principal)]
        honoured[_URIS] = uris
        changes += [updated(uri) for uri in uris]
    return honoured, frozenset(changes)

"""`subscriptions/listen`: a request that stays open and sends notifications about changes (2026-07-28).

How it works: the handler sends which of the requested notifications it honours, then each change that the client
subscribed to, until the client leaves or the server stops. It holds a stream and not one of the places for requests.

Source: 2026-07-28 "basic/patterns/subscriptions"; the tasks extension, "Task Status Notifications".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.envelope import SUBSCRIPTION_ID
from funcmcp._protocol.errors import INVALID_REQUEST, METHOD_NOT_FOUND, InvalidParams, MCPError, ToolError
from funcmcp._protocol.jsonrpc import without_nulls
from funcmcp._server.authorization import guard_for
from funcmcp._server.catalog.conditions import is_shown
from funcmcp._server.connections.hub import LISTS, updated
from funcmcp._server.connections.subscribed_uris import MAX_URIS, SubscribedURIs
from funcmcp._server.handlers.resources import may_read, watch

if TYPE_CHECKING:
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.lookup import Lookup
    from funcmcp._server.connections.hub import Change, Hub
    from funcmcp._server.handlers.tasks import TaskMethods
    from funcmcp._server.load import Load

_URIS = "resourceSubscriptions"
_TASK_IDS = "taskIds"


class Subscription:
    """The changes that one client subscribed to.

    Attributes:
        lists: Changes of lists.
        uris: URIs of resources.
        tasks: Ids of tasks, by their changes.
    """

    __slots__ = ("lists", "tasks", "uris")

    def __init__(self) -> None:
        self.lists: list[Change] = []
        self.uris = SubscribedURIs()
        self.tasks: dict[Change, str] = {}

    def includes(self, change: Change) -> bool:
        """Return whether the client subscribed to a change."""
        if change.uri is None:
            return change in self.lists
        return change in self.tasks or change.uri in self.uris

    def changes(self) -> list[Change]:
        """Return all changes that the client subscribed to."""
        return [*self.lists, *(updated(uri) for uri in self.uris), *self.tasks]


class Subscriptions:
    """Answers `subscriptions/listen`.

    Args:
        catalog: The capabilities of the server, whose lists may change.
        lookup: Finds what reads a URI.
        guard: Decides which changes a caller gets; None if every caller gets all.
        hub: Publishes the changes.
        load: Limits streams and the memory for URIs.
    """

    def __init__(
        self,
        catalog: Catalog,
        lookup: Lookup,
        *,
        guard: Guard | None,
        hub: Hub,
        load: Load,
    ) -> None:
        self._catalog = catalog
        self._tasks: TaskMethods | None = None
        self._lookup = lookup
        self._guard = guard
        self._hub = hub
        self._load = load

    def add_tasks(self, tasks: TaskMethods) -> None:
        """Serve subscriptions to changes of tasks."""
        self._tasks = tasks

    async def listen(self, context: RequestContext) -> dict[str, Any]:
        """Answer `subscriptions/listen`; return when the server stops."""
        if _TASK_IDS in _requested(context) and self._tasks is not None:
            self._tasks.require_extension(context)
        if context.http is not None and not context.http.can_stream:
            raise MCPError(
                METHOD_NOT_FOUND, "subscriptions/listen needs a live event stream, which this platform lacks."
            )
        if not context.channel.pushes:
            raise MCPError(
                INVALID_REQUEST, "This needs an event stream: accept text/event-stream, where the server can send one."
            )
        # Not `counting`, `without` and `Hub.listening`: a context manager of a generator takes 0.4 KB of each stream.
        load, caller = self._load, context.caller
        load.streams.check(caller)
        load.streams.count(caller)
        load.runs.give_back(caller)
        subscription = Subscription()
        try:
            return await self._serve(context, subscription)
        finally:
            subscription.uris.close()
            load.runs.count(caller)
            load.streams.give_back(caller)

    async def _serve(self, context: RequestContext, subscription: Subscription) -> dict[str, Any]:
        honoured = await self._subscribe(context, subscription)
        meta = {SUBSCRIPTION_ID: context.request.id}
        await self._hub.ready()
        changes = self._hub.add(subscription.includes, subscription.changes)
        try:
            acknowledged = {"_meta": meta, "notifications": honoured}
            await context.channel.notify("notifications/subscriptions/acknowledged", acknowledged)
            # The request lives as long as the stream. What it asked for is in the subscription, so free the rest.
            del honoured, acknowledged, context.request.params["notifications"]
            self._load.memory.give_back(context.caller, context.routed.size)
            context.routed.size = 0
            for change in tuple(subscription.tasks):  # a task may have changed since the client created it
                await self._notify(context, change, subscription)
            async for change in changes:
                await self._notify(context, change, subscription)
        finally:
            self._hub.remove(changes)
        return {"_meta": meta}

    async def _notify(self, context: RequestContext, change: Change, subscription: Subscription) -> None:
        """Send the notification of a change; that of a task has the whole task."""
        meta = {SUBSCRIPTION_ID: context.request.id}
        task_id = subscription.tasks.get(change)
        if task_id is None or self._tasks is None:
            await context.channel.notify(change.method, {"_meta": meta, **change.params})
            return
        task = await self._tasks.state(context, task_id)
        if task is not None:
            await context.channel.notify(change.method, {"_meta": meta, **task})

    async def _subscribe(self, context: RequestContext, subscription: Subscription) -> dict[str, Any]:
        """Subscribe to what this server fulfils for this caller, and return that part of the request."""
        notifications = _requested(context)
        guard = guard_for(context, self._guard)
        may_list = guard is None or guard.check_lists(context.principal) is None
        honoured: dict[str, Any] = {}
        for capability, change in LISTS.items():
            name = f"{capability}ListChanged"
            if _flag(notifications, name) and capability in self._catalog.offered and may_list:
                honoured[name] = True
                subscription.lists.append(change)
        uris = _texts(notifications, _URIS, "URIs")
        if uris and "resources" in self._catalog.offered:
            await self._subscribe_to_resources(context, subscription.uris, uris)
            honoured[_URIS] = [uri for uri in uris if uri in subscription.uris]
        task_ids = _texts(notifications, _TASK_IDS, "ids")
        if task_ids and self._tasks is not None:
            subscription.uris.charge_to(self._load.subscriptions, context.caller)
            subscription.uris.reserve(_TASK_BYTES * len(task_ids))
            subscription.tasks = await self._tasks.watch(context, task_ids)
            honoured[_TASK_IDS] = list(subscription.tasks.values())
        return honoured

    async def _subscribe_to_resources(
        self, context: RequestContext, subscribed: SubscribedURIs, uris: list[str]
    ) -> None:
        """Subscribe to the URIs that a caller may read; raise InvalidParams or LimitReachedError."""
        subscribed.charge_to(self._load.subscriptions, context.caller)
        subscribed.check(uris)
        for uri in uris:
            subscribed.add(uri)
        guard = guard_for(context, self._guard)
        if guard is not None:
            for uri in uris:
                if not await may_read(uri, context.principal, self._lookup, guard):
                    subscribed.discard(uri)
        await asyncio.gather(*(self._watch(uri, subscribed, context) for uri in list(subscribed)))

    async def _watch(self, uri: str, subscribed: SubscribedURIs, context: RequestContext) -> None:
        """Watch the resource of another server; unsubscribe from the resource if that fails."""
        try:
            resource, _ = self._lookup.reader_of(uri)
        except MCPError:
            return
        if not await is_shown(resource, context):
            subscribed.discard(uri)
            return
        try:
            await watch(resource, uri, subscribed, context)
        except (MCPError, ToolError):
            subscribed.discard(uri)


_TASK_BYTES = 400
"""Bytes of memory of a task to whose changes a client listens."""


def _flag(notifications: dict[str, Any], name: str) -> bool:
    """Return a member that is true or false, false if it is absent; raise InvalidParams if it is another value."""
    flag = notifications.get(name, False)
    if type(flag) is not bool:
        raise InvalidParams(f'"{name}" must be true or false.')
    return flag


def _texts(notifications: dict[str, Any], name: str, plural: str) -> list[str]:
    """Return a member that is an array of texts, none if it is absent; raise InvalidParams if it is another value."""
    texts = notifications.get(name, [])
    if type(texts) is not list or not all(type(text) is str for text in texts) or len(texts) > MAX_URIS:
        raise InvalidParams(f'"{name}" must be an array of at most {MAX_URIS} {plural}.')
    return texts


def _requested(context: RequestContext) -> dict[str, Any]:
    """Return the notifications that a request asks for; raise InvalidParams."""
    notifications = context.request.params.get("notifications")
    if type(notifications) is not dict:
        raise InvalidParams('"notifications" must be an object.')
    return without_nulls(notifications)

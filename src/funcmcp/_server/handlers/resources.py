"""`resources/list`, `resources/read`, and the subscriptions of the handshake era."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._protocol import adaptation
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import METHOD_NOT_FOUND, MCPError
from funcmcp._server.authorization import guard_for
from funcmcp._server.calls.feature import TimeLimit
from funcmcp._server.calls.time_limit import within
from funcmcp._server.catalog.conditions import is_shown
from funcmcp._server.catalog.features import EncodedResult
from funcmcp._server.catalog.lookup import uri_of
from funcmcp._server.handlers.lists import cursor_of, page_of, start_of
from funcmcp._server.log import log_list_left_out
from funcmcp._server.run import Waiting, begin, is_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp._auth.principal import Principal
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature_call import FeatureCalls
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import Resource, ResourceLister, ResourceTemplate
    from funcmcp._server.catalog.lookup import Lookup
    from funcmcp._server.connections.conversation import Conversation
    from funcmcp._server.connections.subscribed_uris import SubscribedURIs
    from funcmcp._server.handlers.lists import FeatureList
    from funcmcp._server.load import Budget
    from funcmcp._server.results import Results

    ResourceAnswer: TypeAlias = dict[str, Any] | bytes

LISTER_TIME_LIMIT = TimeLimit(60.0, "fixed for functions that list resources")


class ResourceReads:
    """Reads resources.

    Args:
        calls: Runs the resources' handlers.
        results: Completes their results.
    """

    def __init__(self, calls: FeatureCalls, results: Results) -> None:
        self._calls = calls
        self._results = results

    def read(self, context: RequestContext) -> ResourceAnswer | Awaitable[ResourceAnswer]:
        """Answer `resources/read`: at once, or with an awaitable if the resource waits."""
        resource: Resource | ResourceTemplate = context.routed.require_feature()
        uri = uri_of(context.request.params)
        self._calls.open_rounds(context, resource)
        work = resource.handler(context, uri, context.routed.values)
        return self._calls.begin(resource, work, self._answer, context)

    def _answer(self, result: dict[str, Any] | EncodedResult, context: RequestContext) -> ResourceAnswer:
        """Return the contents of a resource as the client's revision has them."""
        revision = context.client.revision
        if isinstance(result, EncodedResult):
            return self._results.read(result, revision)
        if "contents" in result:
            return self._results.cacheable(result, revision, self._results.read_ttl, "private")
        return result


class ResourceList:
    """Lists the registered resources and those that functions list for the caller.

    Args:
        registered: The list of the registered resources.
        catalog: The functions.
        lookup: Finds what reads a URI.
        results: Completes the pages.
        guard: Decides which resources a caller gets; None if every caller gets all.
    """

    def __init__(
        self, registered: FeatureList, catalog: Catalog, lookup: Lookup, *, results: Results, guard: Guard | None
    ) -> None:
        self._registered = registered
        self._catalog = catalog
        self._lookup = lookup
        self._results = results
        self._guard = guard

    async def page(self, context: RequestContext) -> bytes:
        """Answer `resources/list`. Functions are called for each request, because their lists depend on the caller."""
        if not self._catalog.listers:
            return await self._registered.page(context)
        cursor = cursor_of(context)
        if self._registered.provided is not None:
            await self._registered.provided.ready()
        registered = await self._registered.features_for(context)
        definitions = await self._registered.definitions_of(context, registered)
        uris = {resource.key for resource in registered}
        listers = [lister for lister in self._catalog.listers if await self._may_call(lister, context)]
        for listed in await asyncio.gather(*(_listed_by(lister, context) for lister in listers)):
            for uri, definition in listed.items():
                if uri not in uris and uri not in definitions and await self._may_list(uri, context):
                    definitions[uri] = definition
        name = self._registered.name
        start = 0 if cursor is None else start_of(name, list(definitions), cursor)
        page = page_of(name, list(definitions.items()), start, self._registered.page_size_for(context))
        ttl = None if self._registered.provided is None else self._registered.provided.caching.ttl
        return self._results.list(name, page.items, page.next_cursor, context.client.revision, "private", ttl)

    async def _may_call(self, lister: ResourceLister, context: RequestContext) -> bool:
        guard = guard_for(context, self._guard)
        return guard is None or await guard.may_use(lister.access, context.principal)

    async def _may_list(self, uri: str, context: RequestContext) -> bool:
        if not await self._is_shown(uri, context):
            return False
        guard = guard_for(context, self._guard)
        if guard is None or not guard.filters(context.principal):
            return True
        return await may_read(uri, context.principal, self._lookup, guard)

    async def _is_shown(self, uri: str, context: RequestContext) -> bool:
        """Return whether the caller of a request has the feature that reads a URI, if there is one."""
        try:
            feature, _ = self._lookup.reader_of(uri)
        except MCPError:
            return True
        return await is_shown(feature, context)


async def may_read(uri: str, principal: Principal | None, lookup: Lookup, guard: Guard) -> bool:
    """Return whether a caller may read a URI; False for a URI that no resource and no template reads."""
    try:
        feature, _ = lookup.reader_of(uri)
    except MCPError:
        return False
    return await guard.may_use(feature.access, principal)


async def _listed_by(lister: ResourceLister, context: RequestContext) -> dict[str, bytes]:
    """Return the definitions that a function lists, as JSON text by URI; none if it fails, which is logged."""
    try:
        definitions = begin(_definitions_of(lister, context))
        if isinstance(definitions, Waiting):
            definitions = await within(LISTER_TIME_LIMIT, definitions, context)
    except BaseException as error:
        if not is_failure(error):
            raise
        log_list_left_out(lister.scheme, error)
        return {}
    return definitions


async def _definitions_of(lister: ResourceLister, context: RequestContext) -> dict[str, bytes]:
    revision = context.client.revision
    definitions: dict[str, bytes] = {}
    for resource in await lister.handler(context):
        definitions.setdefault(resource["uri"], encode(adaptation.definition(resource, revision)))
    return definitions


class ResourceSubscriptions:
    """Subscriptions of the handshake era, which last as long as their session.

    Args:
        budget: The memory for the URIs of all clients.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    async def subscribe(self, context: RequestContext) -> dict[str, Any]:
        """Answer `resources/subscribe`."""
        uri, conversation = uri_of(context.request.params), _conversation_of(context)
        resource: Resource | ResourceTemplate = context.routed.require_feature()
        await conversation.restore()
        conversation.subscribed.charge_to(self._budget, context.caller)
        conversation.subscribed.check([uri])
        if resource.watch is not None:
            await watch(resource, uri, conversation.subscribed, context)
        await conversation.subscribe(uri, is_subscribed=True)
        if conversation.keeper is None:
            context.client.listen()  # with a keeper, another instance may notify the client, which would do so twice
        return {}

    async def unsubscribe(self, context: RequestContext) -> dict[str, Any]:
        """Answer `resources/unsubscribe`."""
        await _conversation_of(context).subscribe(uri_of(context.request.params), is_subscribed=False)
        return {}


async def watch(
    resource: Resource | ResourceTemplate, uri: str, subscribed: SubscribedURIs, context: RequestContext
) -> None:
    """Watch a resource at the server from which it comes, as long as a client is subscribed to it.

    Raises:
        MCPError: That server refuses it.
        ToolError: That server can't be reached.
    """
    if resource.watch is not None:
        source = uri if resource.source_uri is None else resource.source_uri(uri)
        subscribed.watch(uri, await resource.watch(source, context))


def _conversation_of(context: RequestContext) -> Conversation:
    """Return the conversation of a session to which notifications can be sent; raise MCPError -32601 without one."""
    conversation = context.client.conversation
    if conversation is None or not conversation.pushes:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": context.request.method})
    return conversation

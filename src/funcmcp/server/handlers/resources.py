"""`resources/list`, `resources/templates/list`, `resources/read`, and subscriptions of the handshake era."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp.protocol import shape
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import METHOD_NOT_FOUND, InvalidParams, MCPError, ResourceNotFound
from funcmcp.protocol.uri_template import UnsafeValueError
from funcmcp.server.catalog.features import EncodedResult
from funcmcp.server.handlers.lists import (
    cursor_of,
    definitions_of,
    list_registry,
    list_result,
    listed_for,
    page_of,
    start_of,
)
from funcmcp.server.handlers.runs import completed, is_of_the_feature, open_rounds, run, within
from funcmcp.server.log import log_list_left_out
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from funcmcp.protocol.uri_template import Values
    from funcmcp.server.calls.context import Context
    from funcmcp.server.catalog.features import Resource, ResourceLister, ResourceTemplate
    from funcmcp.server.connections.conversation import Conversation
    from funcmcp.server.dispatch import Server

_LISTING_SECONDS = 60.0

_REMEMBERED = 256
"""URIs whose templates are kept in mind. Clients may vary them at will, so they are bounded."""


async def list_resources(server: Server, context: Context) -> bytes:
    """Answer `resources/list`; what listers say depends on who asks, and is asked for each time."""
    registry, cursor = server.resources, cursor_of(context)
    if not server.listers:
        return await list_registry(server, context, "resources", registry, shape.definition)
    seen = await listed_for(context.principal, server, registry)
    listed = await definitions_of(server, context, registry.kind, seen, shape.definition)
    listers = [lister for lister in list(server.listers) if await _may_ask(server, lister, context)]
    for found in await asyncio.gather(*(_listed(lister, context) for lister in listers)):
        for uri, definition in found.items():
            if uri not in listed and await _may_see(server, uri, context):
                listed[uri] = definition
    start = 0 if cursor is None else start_of("resources", list(listed), cursor)
    page = page_of("resources", list(listed.items()), start, server.options.page_size)
    return list_result(server, context.client.revision, "resources", page.items, page.next_cursor, scope="private")


async def _may_ask(server: Server, lister: ResourceLister, context: Context) -> bool:
    guard = server.guard
    return guard is None or await guard.may_use(server, lister.access, context.principal)


async def _may_see(server: Server, uri: str, context: Context) -> bool:
    guard, principal = server.guard, context.principal
    return guard is None or not guard.filters(principal) or await guard.may_read(server, uri, principal)


async def _listed(lister: ResourceLister, context: Context) -> dict[str, bytes]:
    """Return the definitions that a lister lists, as JSON by URI; none if it fails, which is told in the log."""
    try:
        begun = begin(_definitions(lister, context))
        return await within(_LISTING_SECONDS, begun) if isinstance(begun, Waiting) else begun
    except BaseException as error:
        if not is_of_the_feature(error):
            raise
        log_list_left_out(lister.scheme, error)
        return {}


async def _definitions(lister: ResourceLister, context: Context) -> dict[str, bytes]:
    revision = context.client.revision
    definitions: dict[str, bytes] = {}
    for found in await lister.handler(context):
        definitions.setdefault(found["uri"], encode(shape.definition(found, revision)))
    return definitions


async def list_templates(server: Server, context: Context) -> bytes:
    """Answer `resources/templates/list`."""
    return await list_registry(server, context, "resourceTemplates", server.templates, shape.definition)


async def read_resource(server: Server, context: Context) -> dict[str, Any] | bytes:
    """Answer `resources/read`."""
    revision, uri = context.client.revision, uri_of(context.request.params)
    resource, values = find_resource(server, uri)
    open_rounds(server, context, resource)
    result = await run(server, resource, resource.handler(context, uri, values))
    if isinstance(result, EncodedResult):
        return completed(result.text, server.end_of_read) if revision.per_request else result.text
    if revision.per_request and "contents" in result:
        return {**result, "ttlMs": int(server.options.read_ttl * 1000), "cacheScope": "private"}
    return result


def uri_of(params: dict[str, Any]) -> str:
    """Return the URI that a request names; raise InvalidParams."""
    uri = params.get("uri")
    if type(uri) is not str:
        raise InvalidParams('"uri" must be a string.')
    return uri


def find_resource(server: Server, uri: str) -> tuple[Resource | ResourceTemplate, Values]:
    """Return what reads a URI, and the values that the URI has for its template.

    A resource goes before a template, and a template before those that were registered after it.

    Raises:
        InvalidParams: a template takes the URI, but a value in it could lead out of where it belongs.
        ResourceNotFound: nothing reads it.
    """
    resource = server.resources.get(uri)
    if resource is not None:
        return resource, {}
    known = server.matched.get(uri)
    if known is not None:
        return known
    for template in server.templates:
        try:
            values = template.template.match(uri)
        except UnsafeValueError as error:
            raise InvalidParams(str(error), {"uri": uri}) from None
        if values is not None:
            if len(server.matched) >= _REMEMBERED:
                server.matched.clear()
            server.matched[uri] = template, values
            return template, values
    raise ResourceNotFound(uri)


async def subscribe(server: Server, context: Context) -> dict[str, Any]:
    """Answer `resources/subscribe`: remember the URI for as long as the session lives."""
    uri, conversation = uri_of(context.request.params), _subscriber(context)
    find_resource(server, uri)
    await conversation.restore()
    conversation.subscribed.charge_to(server.load.subscriptions, context.caller)
    conversation.subscribed.check([uri])
    await conversation.subscribe(uri, wanted=True)
    if conversation.keeper is None:  # else it may be told at another instance, and would be told again here
        context.client.listen()
    return {}


async def unsubscribe(_server: Server, context: Context) -> dict[str, Any]:
    """Answer `resources/unsubscribe`."""
    await _subscriber(context).subscribe(uri_of(context.request.params), wanted=False)
    return {}


def _subscriber(context: Context) -> Conversation:
    conversation = context.client.conversation
    if conversation is None or not conversation.pushes:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": context.request.method})
    return conversation

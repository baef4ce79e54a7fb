"""`resources/list`, `resources/templates/list`, `resources/read`, and subscriptions of the handshake era."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp.protocol import shape
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import METHOD_NOT_FOUND, InvalidParams, MCPError, ResourceNotFound
from funcmcp.protocol.uri_template import UnsafeValueError
from funcmcp.server.features import EncodedResult
from funcmcp.server.handlers.lists import cursor_of, list_registry, list_result, listed_for, page_of
from funcmcp.server.handlers.runs import completed, open_rounds, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.protocol.uri_template import Values
    from funcmcp.server.context import Context
    from funcmcp.server.dispatch import Server
    from funcmcp.server.features import Resource, ResourceLister, ResourceTemplate

MAX_SUBSCRIPTIONS = 1000
"""URIs that one client may subscribe to."""


async def list_resources(server: Server, context: Context) -> bytes:
    """Answer `resources/list`; what listers say depends on who asks, and is asked for each time."""
    if not server.listers:
        return await list_registry(server, context, "resources", server.resources, shape.definition)
    revision = context.client.revision
    cursor = cursor_of(context)
    listed = [resource.describe() for resource in await listed_for(context.principal, server, server.resources)]
    listers = [lister for lister in list(server.listers) if await _may_ask(server, lister, context)]
    for found in await asyncio.gather(*(_listed(lister, context) for lister in listers)):
        listed += [resource for resource in found if await _may_see(server, resource["uri"], context)]
    unique: dict[str, Mapping[str, Any]] = {}
    for resource in listed:
        unique.setdefault(resource["uri"], resource)
    page, next_cursor = page_of(list(unique.values()), cursor, server.options.page_size, lambda found: found["uri"])
    shaped = [shape.definition(resource, revision) for resource in page]
    return encode(list_result(server, revision, {"resources": shaped}, next_cursor, private=True))


async def _may_ask(server: Server, lister: ResourceLister, context: Context) -> bool:
    guard = server.guard
    return guard is None or await guard.may_use(server, lister.access, context.principal)


async def _may_see(server: Server, uri: str, context: Context) -> bool:
    guard = server.guard
    return guard is None or not guard.filters or await guard.may_read(server, uri, context.principal)


async def _listed(lister: ResourceLister, context: Context) -> list[dict[str, Any]]:
    result = await run(_Listing(lister.scheme), _wrapped(lister, context))
    listed: list[dict[str, Any]] = result["resources"]
    return listed


async def _wrapped(lister: ResourceLister, context: Context) -> dict[str, Any]:
    return {"resources": await lister.handler(context)}


class _Listing:
    """The run of a lister."""

    interactive = False
    timeout = 60.0

    def __init__(self, scheme: str) -> None:
        self.key = f"{scheme}: resources"


async def list_templates(server: Server, context: Context) -> bytes:
    """Answer `resources/templates/list`."""
    return await list_registry(server, context, "resourceTemplates", server.templates, shape.definition)


async def read_resource(server: Server, context: Context) -> dict[str, Any] | bytes:
    """Answer `resources/read`."""
    revision, uri = context.client.revision, uri_of(context.request.params)
    resource, values = find_resource(server, uri)
    open_rounds(server, context, resource)
    result = await run(resource, resource.handler(context, uri, values))
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
    for template in server.templates:
        try:
            values = template.template.match(uri)
        except UnsafeValueError as error:
            raise InvalidParams(str(error), {"uri": uri}) from None
        if values is not None:
            return template, values
    raise ResourceNotFound(uri)


async def subscribe(server: Server, context: Context) -> dict[str, Any]:
    """Answer `resources/subscribe`: remember the URI for as long as the session lives in this process."""
    uri, subscribed = uri_of(context.request.params), _subscriptions(context)
    find_resource(server, uri)
    if len(subscribed) >= MAX_SUBSCRIPTIONS and uri not in subscribed:
        raise InvalidParams(f"A client may subscribe to {MAX_SUBSCRIPTIONS} resources.")
    subscribed.add(uri)
    context.client.listen()
    return {}


async def unsubscribe(_server: Server, context: Context) -> dict[str, Any]:
    """Answer `resources/unsubscribe`."""
    _subscriptions(context).discard(uri_of(context.request.params))
    return {}


def _subscriptions(context: Context) -> set[str]:
    conversation = context.client.conversation
    if conversation is None or not conversation.pushes:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": context.request.method})
    return conversation.subscribed

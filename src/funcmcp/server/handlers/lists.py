"""Lists in pages: encoded once per change and revision, or made anew where they depend on who asks.

Source: "server/utilities/pagination"; 2026-07-28 "server/utilities/caching".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from funcmcp.protocol.codec import encode
from funcmcp.protocol.cursor import decode_cursor, encode_cursor
from funcmcp.protocol.errors import InvalidParams
from funcmcp.server.log import log_left_out
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp.auth.principal import Principal
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.context import Context
    from funcmcp.server.dispatch import Server
    from funcmcp.server.registry import Registry

    Shape = Callable[[Mapping[str, Any], Revision], dict[str, Any]]

T = TypeVar("T")


class Described(Protocol):
    """Anything that can describe itself."""

    @property
    def describe(self) -> Callable[[], Mapping[str, Any]]:
        """Returns the definition in the newest revision's shape."""


_BREATH = 16
"""Descriptions made in one go; then other requests have their turn."""


async def list_registry(server: Server, context: Context, name: str, registry: Registry[Any], shape: Shape) -> bytes:
    """Return a page of a registry as a result, encoded when it was first asked for.

    Args:
        server: has the cache.
        context: of the request.
        name: the member of the result, such as `tools`.
        registry: has the features, each with a `key` and a `describe`.
        shape: makes a description one of a revision.
    """
    cursor, revision = cursor_of(context), context.client.revision
    key = (name, revision.date, cursor)
    cached, version = server.lists.get(key), registry.version
    if cached is not None and cached[0] == version:
        return cached[1]
    features = await listed_for(context.principal, server, registry)
    page, next_cursor = page_of(features, cursor, server.options.page_size, lambda feature: feature.key)
    definitions = []
    for number, feature in enumerate(page, 1):
        try:
            definitions.append(described(feature, shape, revision))
        except RegistrationError as error:
            if feature.key not in server.left_out:
                server.left_out.add(feature.key)
                log_left_out(feature.key, error)
        if number % _BREATH == 0:
            await asyncio.sleep(0)
    rest = encode(list_result(server, revision, {}, next_cursor))[1:]
    encoded = b'{"%b":[%b]%b%b' % (name.encode(), b",".join(definitions), b"," if rest != b"}" else b"", rest)
    if server.guard is None or not server.guard.filters:
        server.lists[key] = (version, encoded)
    return encoded


async def listed_for(principal: Principal | None, server: Server, registry: Registry[Any]) -> list[Any]:
    """Return the features of a registry that a caller gets to see."""
    guard = server.guard
    if guard is None or not guard.filters:
        return list(registry)
    return [feature for feature in list(registry) if await guard.may_use(server, feature.access, principal)]


def described(feature: Described, shape: Shape, revision: Revision) -> bytes:
    """Return a feature's definition as JSON; raise RegistrationError if a type in it is no JSON."""
    try:
        return encode(shape(feature.describe(), revision))
    except RegistrationError:
        raise
    except Exception as error:  # authors' types take part in their schemas, and may raise anything
        raise RegistrationError(f"{type(error).__name__}: {error}") from error


def cursor_of(context: Context) -> str | None:
    """Return the cursor that a request brings; raise InvalidParams if it is no text."""
    cursor = context.request.params.get("cursor")
    if cursor is not None and type(cursor) is not str:
        raise InvalidParams('"cursor" must be a string.')
    return cursor


def page_of(
    items: Sequence[T], cursor: str | None, page_size: int | None, key: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """Return the page that a cursor means, and the cursor of the next one; raise InvalidParams."""
    size = page_size or max(len(items), 1)
    # Only the cursors that this server gives out count, so that there are no more pages than it has made.
    starts = {key(items[end - 1]): end for end in range(size, len(items), size)}
    start = 0 if cursor is None else starts.get(decode_cursor(cursor), -1)
    if start < 0:
        raise InvalidParams("The cursor is no longer valid; start again without a cursor.")
    page = items[start : start + size]
    return page, encode_cursor(key(page[-1])) if start + size < len(items) else None


def list_result(
    server: Server,
    revision: Revision,
    result: dict[str, Any],
    next_cursor: str | None,
    *,
    private: bool = False,
) -> dict[str, Any]:
    """Return a list's result with everything around the list."""
    if next_cursor is not None:
        result = {**result, "nextCursor": next_cursor}
    if not revision.per_request:
        return result
    scope = "private" if private else server.cache_scope
    return server.stamp({**result, "ttlMs": int(server.options.list_ttl * 1000), "cacheScope": scope})

"""Lists in pages: encoded once per change and revision, or made anew where they depend on who asks.

Source: "server/utilities/pagination"; 2026-07-28 "server/utilities/caching".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from funcmcp.protocol.codec import encode
from funcmcp.protocol.cursor import decode_cursor, encode_cursor
from funcmcp.protocol.errors import InvalidParams
from funcmcp.server.catalog.registry import RegistrationError
from funcmcp.server.log import log_left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from funcmcp.auth.principal import Principal
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.calls.context import Context
    from funcmcp.server.catalog.registry import Registry
    from funcmcp.server.dispatch import Server

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
    cursor, revision, version = cursor_of(context), context.client.revision, registry.version
    filters = server.guard is not None and server.guard.filters(context.principal)
    features = await listed_for(context.principal, server, registry) if filters else registry
    start = 0 if cursor is None else start_of(name, [feature.key for feature in features], cursor)
    key = (name, revision.date, start)
    cached = None if filters else server.lists.get(key)
    if cached is not None and cached[0] == version:
        return cached[1]
    page = page_of(name, [(feature.key, feature) for feature in features], start, server.options.page_size)
    definitions = await definitions_of(server, context, registry.kind, page.items, shape)
    encoded = list_result(server, revision, name, definitions.values(), page.next_cursor, scope=server.cache_scope)
    if page.regular and not filters:  # others begin where a client wants, so there could be one for each feature
        server.lists[key] = (version, encoded)
    return encoded


async def definitions_of(
    server: Server, context: Context, kind: str, features: Sequence[Any], shape: Shape
) -> dict[str, bytes]:
    """Return the definitions of features, as JSON by key; one that has none is left out, and told in the log once."""
    definitions: dict[str, bytes] = {}
    for number, feature in enumerate(features, 1):
        try:
            definitions[feature.key] = described(feature, shape, context.client.revision)
        except RegistrationError as error:
            if (kind, feature.key) not in server.left_out:
                server.left_out.add((kind, feature.key))
                log_left_out(kind, feature.key, context.request.method, error)
        if number % _BREATH == 0:
            await asyncio.sleep(0)
    return definitions


async def listed_for(principal: Principal | None, server: Server, registry: Registry[Any]) -> list[Any]:
    """Return the features of a registry that a caller gets to see."""
    guard = server.guard
    if guard is None or not guard.filters(principal):
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


def start_of(kind: str, keys: Sequence[str], cursor: str) -> int:
    """Return the place of the first item of the page that a cursor means; raise InvalidParams if it means none.

    If the item that it names has gone or has moved backwards, the place that it had counts: an item may be told twice
    then, but none is passed over.
    """
    end, last = decode_cursor(kind, cursor)
    place = keys.index(last) if last in keys else end
    return place + 1 if place < end else min(end - 1, len(keys))


class Page(NamedTuple, Generic[T]):
    """A page of a list.

    Attributes:
        items: what is on it.
        next_cursor: the cursor of the next page; None for the last one.
        regular: whether it is one of the pages that whoever starts at the beginning comes to.
    """

    items: Sequence[T]
    next_cursor: str | None
    regular: bool


def page_of(kind: str, items: Sequence[tuple[str, T]], start: int, page_size: int | None) -> Page[T]:
    """Return the page of a list that begins with the item of a place.

    Args:
        kind: of the list, for its cursors.
        items: all that the list has, with their keys.
        start: the place.
        page_size: how many items are on a page; None for all of them.
    """
    size = page_size or max(len(items), 1)
    end = start + size
    next_cursor = encode_cursor(kind, end, items[end - 1][0]) if end < len(items) else None
    return Page(
        [item for _, item in items[start:end]], next_cursor, start % size == 0 and start <= max(len(items) - 1, 0)
    )


def list_result(
    server: Server,
    revision: Revision,
    name: str,
    definitions: Iterable[bytes],
    next_cursor: str | None,
    *,
    scope: Literal["public", "private"],
) -> bytes:
    """Return a list as a result: its definitions, which are JSON already, with everything around them."""
    rest: dict[str, Any] = {} if next_cursor is None else {"nextCursor": next_cursor}
    if revision.per_request:
        rest = server.stamp({**rest, "ttlMs": int(server.options.list_ttl * 1000), "cacheScope": scope})
    end = b"," + encode(rest)[1:] if rest else b"}"
    return b'{"%b":[%b]%b' % (name.encode(), b",".join(definitions), end)

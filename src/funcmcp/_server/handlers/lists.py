"""Lists of features, in pages.

How it works: a page that is the same for all callers is encoded once per change of its registry and per revision, and
kept by the `FeatureList` that made it. A list that depends on its caller (filtered by access, or with resources that
functions list) is built for each request. A cursor is an opaque string with the name of the list, and the place and the
name of the page's last item.

Source: "server/utilities/pagination" (an invalid cursor is -32602); 2026-07-28 "server/utilities/caching".
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from funcmcp._protocol.codec import encode, well_formed
from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._server.authorization import guard_for
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import log_left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._server.results import Results

    Shape = Callable[[Mapping[str, Any], Revision], dict[str, Any]]

T = TypeVar("T")

YIELD_INTERVAL = 16
"""Definitions that are made in one go. Then other requests get their turn."""


class Described(Protocol):
    """A feature that can describe itself."""

    @property
    def describe(self) -> Callable[[], Mapping[str, Any]]:
        """Returns the definition, in the form of the newest revision."""


class FeatureList:
    """The list of the features of one kind.

    Args:
        method: The method, such as "tools/list".
        registry: The features.
        shape: Returns a definition in the form of a revision.
        results: Completes the pages.
        guard: Decides which features a caller gets; None if every caller gets all.
        page_size: The number of features on a page; None for all of them.

    Attributes:
        registry: The features.
        shape: Returns a definition in the form of a revision.
        left_out: Keys of features that have no valid definition and were logged.
    """

    def __init__(
        self,
        method: str,
        registry: Registry[Any],
        shape: Shape,
        *,
        results: Results,
        guard: Guard | None,
        page_size: int | None,
    ) -> None:
        self.name = FEATURE_LISTS[method]
        self.left_out: set[str] = set()
        self.page_size = page_size
        self.registry = registry
        self.shape = shape
        self._results = results
        self._guard = guard
        self._pages: dict[tuple[str, int], bytes] = {}  # by revision and place of the first feature
        self._version = registry.version  # of the registry when the pages were made

    async def page(self, context: RequestContext) -> bytes:
        """Answer a request for a page."""
        cursor, revision = cursor_of(context), context.client.revision
        guard = guard_for(context, self._guard)
        if guard is not None and guard.filters(context.principal):
            features = await self.features_for(context)
            return await self._built_page(context, features, cursor, keep=False)
        if self.registry.version != self._version:
            self._pages.clear()
            self._version = self.registry.version
        if cursor is None:
            page = self._pages.get((revision.date, 0))
            if page is not None:
                return page
        return await self._built_page(context, list(self.registry), cursor, keep=True)

    async def _built_page(
        self, context: RequestContext, features: list[Any], cursor: str | None, *, keep: bool
    ) -> bytes:
        revision, version = context.client.revision, self.registry.version
        start = 0 if cursor is None else start_of(self.name, [feature.key for feature in features], cursor)
        key = (revision.date, start)
        if keep and key in self._pages:
            return self._pages[key]
        page = page_of(self.name, [(feature.key, feature) for feature in features], start, self.page_size)
        definitions = await self.definitions_of(context, page.items)
        encoded = self._results.list(self.name, definitions.values(), page.next_cursor, revision)
        # Clients can begin elsewhere with old cursors; only pages that follow from the first one are kept.
        if keep and page.regular and version == self._version == self.registry.version:
            self._pages[key] = encoded
        return encoded

    async def features_for(self, context: RequestContext) -> list[Any]:
        """Return the features that the caller of a request gets."""
        guard, principal = guard_for(context, self._guard), context.principal
        if guard is None or not guard.filters(principal):
            return list(self.registry)
        return [feature for feature in self.registry if await guard.may_use(feature.access, principal)]

    async def definitions_of(self, context: RequestContext, features: Sequence[Any]) -> dict[str, bytes]:
        """Return the definitions of features, as JSON text by key. One without a valid definition is left out."""
        definitions: dict[str, bytes] = {}
        for number, feature in enumerate(features, 1):
            try:
                definitions[feature.key] = encoded_definition(feature, self.shape, context.client.revision)
            except RegistrationError as error:
                if feature.key not in self.left_out:
                    self.left_out.add(feature.key)
                    log_left_out(self.registry.kind, feature.key, context.request.method, error)
            if number % YIELD_INTERVAL == 0:
                await asyncio.sleep(0)
        return definitions


def encoded_definition(feature: Described, shape: Shape, revision: Revision) -> bytes:
    """Return a feature's definition as JSON text; raise RegistrationError if a type in it has no JSON Schema."""
    try:
        return encode(shape(feature.describe(), revision))
    except RegistrationError:
        raise
    except Exception as error:  # authors' types take part in their schemas, and may raise anything
        raise RegistrationError(f"{type(error).__name__}: {error}") from error


def cursor_of(context: RequestContext) -> str | None:
    """Return the cursor of a request; None for the first page. Raise InvalidParams if it is not a string.

    Clients that keep an absent cursor as an empty string send it for the first page.
    """
    cursor = context.request.params.get("cursor")
    if cursor is not None and type(cursor) is not str:
        raise InvalidParams('"cursor" must be a string.')
    return cursor or None


def start_of(kind: str, keys: Sequence[str], cursor: str) -> int:
    """Return the place of the first item of the page that a cursor names; raise InvalidParams for an invalid cursor.

    If the item before it was removed or has moved backwards, the place that the item had counts: the client may get an
    item twice, but misses none.
    """
    end, last = decode_cursor(kind, cursor)
    place = keys.index(last) if last in keys else end
    return place + 1 if place < end else min(end - 1, len(keys))


class Page(NamedTuple, Generic[T]):
    """A page of a list.

    Attributes:
        items: The items on the page.
        next_cursor: The cursor of the next page; None on the last one.
        regular: Whether a client that begins with the first page gets to this page.
    """

    items: Sequence[T]
    next_cursor: str | None
    regular: bool


def page_of(kind: str, items: Sequence[tuple[str, T]], start: int, page_size: int | None) -> Page[T]:
    """Return the page of a list that begins at a place.

    Args:
        kind: The kind of the list, for its cursors.
        items: All items of the list, with their keys.
        start: The place of the first item.
        page_size: The number of items on a page; None for all of them.
    """
    size = page_size or max(len(items), 1)
    end = start + size
    next_cursor = encode_cursor(kind, end, items[end - 1][0]) if end < len(items) else None
    regular = start % size == 0 and start <= max(len(items) - 1, 0)
    return Page([item for _, item in items[start:end]], next_cursor, regular)


_MAX_DIGITS = 9


def encode_cursor(kind: str, end: int, last: str) -> str:
    """Return the cursor of the next page.

    Args:
        kind: Name of the list, such as ``tools``.
        end: Number of items up to the end of this page.
        last: Name of the last item of this page.
    """
    return base64.urlsafe_b64encode(well_formed(f"{kind} {end} {last}").encode()).decode("ascii")


def decode_cursor(kind: str, cursor: object) -> tuple[int, str]:
    """Return the number of items and the name of the last item in a cursor of *kind*; raise InvalidParams."""
    if isinstance(cursor, str):
        try:
            _, end, last = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().split(" ", 2)
            if len(end) <= _MAX_DIGITS and int(end) > 0 and encode_cursor(kind, int(end), last) == cursor:
                return int(end), last
        except (binascii.Error, ValueError):
            pass
    raise InvalidParams("The cursor does not belong to this list. Start again without a cursor.")

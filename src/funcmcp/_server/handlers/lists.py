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
import logging
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from funcmcp._protocol.codec import encode, well_formed
from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.methods import METHODS
from funcmcp._server.authorization import guard_for
from funcmcp._server.catalog.needs import missing_of
from funcmcp._server.catalog.registry import BY_POSITION, RegistrationError
from funcmcp._server.log import log_left_out
from funcmcp._state.line_limit import LineOfEach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Capability, Feature
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.catalog.feature_view import FeatureView
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._server.connections.conversation import Rules
    from funcmcp._server.results import CacheScope, Results

    Shape = Callable[[Mapping[str, Any], Revision], dict[str, Any]]

T = TypeVar("T")

YIELD_INTERVAL = 16
"""Definitions that are made in one go. Then other requests get their turn."""


class Described(Protocol):
    """A feature that can describe itself."""

    @property
    def describe(self) -> Callable[[], Mapping[str, Any]]:
        """Returns the definition, in the form of the newest revision."""


class Caching(NamedTuple):
    """How clients may cache a list that has features of other servers.

    Attributes:
        ttl: Milliseconds; None for those of this server.
        scope: Whether caches may share the list; None: as the server's other answers.
    """

    ttl: int | None = None
    scope: CacheScope | None = None


class Provided(Protocol):
    """The features that are computed at run time, of all providers of one server.

    A provider that serves all callers alike is listed when a client first needs a list, and its features are then in
    the catalog like any others. Features of one caller are never there: `resolve` and `features_for` find them.
    """

    @property
    def is_per_caller(self) -> bool:
        """Whether the features of some provider depend on the caller."""

    async def ready(self, kind: str | None = None) -> None:
        """Bring the catalog up to date; what fails is logged.

        Args:
            kind: The kind of features that a list shows, such as "tool"; None for a request of another method.

        Raises:
            MCPError: There is no feature of this kind, and a server that may have some has never answered.
        """

    @property
    def caching(self) -> Caching:
        """How clients may cache lists, as the servers behind the providers say."""

    async def settle(self) -> None:
        """Wait for the first lists of other servers, on which capabilities depend, but not for long."""

    async def instructions(self) -> list[str]:
        """Return what providers add to the instructions of the server."""

    async def features_for(self, kind: str, principal: Principal | None) -> Iterable[Feature]:
        """Return the features of a kind, such as "tool", that depend on the caller."""

    async def resolve(
        self, routed: RoutedRequest, principal: Principal | None, route: Callable[[Request], RoutedRequest]
    ) -> RoutedRequest:
        """Return a request with the feature that it names, if a provider has it; otherwise the request unchanged.

        Args:
            routed: The request.
            principal: The caller.
            route: Routes a request again, after a list has changed.
        """


class ListFilter(Protocol):
    """Decides which features of a mounted server lists have, and how they are described."""

    @property
    def is_active(self) -> Callable[[], bool]:
        """Returns whether lists depend on it."""

    async def shown(self, method: str, features: Sequence[Any], context: RequestContext) -> list[Any]:
        """Return the features of a list that a caller gets.

        Args:
            method: The method of the list, such as "tools/list".
            features: The features that the caller may use, also those of other servers.
            context: The request.
        """


_DEFAULT_CACHING = Caching()


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
        left_out: Writes the lines of features that have no valid definition.
        cache_scope: Whether caches may share a page; None: as the server's other answers.
        provided: The features that are computed at run time; None if there are none.
        method: The method.
        view: Changes the features for each request; None if nothing does.
        filters: The mounted servers whose middleware lists pass.
    """

    cache_scope: CacheScope | None = None

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
        self.name = METHODS[method].items or method
        self.method = method
        self.view: FeatureView | None = None
        self.filters: Sequence[ListFilter] = ()
        self.left_out = LineOfEach(logging.ERROR)
        self.provided: Provided | None = None
        self.page_size = page_size
        self.registry = registry
        self.shape = shape
        self._results = results
        self._guard = guard
        self._pages: dict[tuple[str, int, frozenset[Capability], Caching], bytes] = {}  # by what they depend on
        self._version = -1  # of the registry when the pages were made
        self._needs: frozenset[Capability] = frozenset()  # of all features then
        self._has_conditions = False  # whether one of the features then is for some callers only

    async def page(self, context: RequestContext) -> bytes:
        """Answer a request for a page."""
        cursor, revision = cursor_of(context), context.client.revision
        if self.version != self._version:
            self._read_changes()
        is_private = self._is_private(context)
        if self.provided is not None:
            await self.provided.ready(self.registry.kind)
            is_private = is_private or self.provided.is_per_caller
        if is_private:
            features = await self.features_for(context)
            return await self._built_page(context, features, cursor, None)
        if self.version != self._version:
            self._read_changes()
        missing = missing_of(self._needs, context.client.capabilities) if self._needs else frozenset[Any]()
        if cursor is None:
            page = self._pages.get((revision.date, 0, missing, self._caching))
            if page is not None:
                return page
        features = [feature for feature in self.all() if not feature.needs & missing] if missing else self.all()
        return await self._built_page(context, features, cursor, missing)

    def _is_private(self, context: RequestContext) -> bool:
        """Return whether the list depends on the request, and not only on the client's revision and capabilities."""
        if self._has_conditions or context.every_version or self.view is not None:
            return True
        if any(list_filter.is_active() for list_filter in self.filters):
            return True
        guard = guard_for(context, self._guard)
        return session_rules_of(context) is not None or self.is_filtered(guard, context.principal)

    def _read_changes(self) -> None:
        """Note what the features need, and drop the pages that were kept."""
        self._pages.clear()
        self._version = self.version
        features = self.all()
        self._needs = frozenset().union(*(feature.needs for feature in features))
        self._has_conditions = any(feature.shown_if is not None for feature in features)

    @property
    def _caching(self) -> Caching:
        """How clients may cache the list."""
        return _DEFAULT_CACHING if self.provided is None else self.provided.caching

    @property
    def version(self) -> int:
        """A number that grows with each change of the list."""
        return self.registry.version

    def all(self) -> list[Any]:
        """Return the features that a caller gets who may use all of them."""
        return [feature for feature in self.registry if feature.is_listed]

    def page_size_for(self, context: RequestContext) -> int | None:
        """Return the number of features on a page. A list of all versions has one page: its keys are not unique."""
        return None if context.every_version else self.page_size

    def all_versions(self, rules: Rules | None) -> list[Any]:
        """Return the features that a session with these rules sees, in all versions."""
        registry = self.registry
        features: Iterable[Any] = registry.every_version()
        if rules is not None:
            shown = rules.decide
            features = [item for item in registry.every() if shown(item, default=registry.is_visible(item))]
        return [feature for feature in features if feature.is_listed]

    def is_filtered(self, guard: Guard | None, principal: Principal | None) -> bool:
        """Return whether a caller's list contains only the features that the caller may use."""
        return guard is not None and guard.filters(principal)

    def shown(self) -> list[Any]:
        """Return the features that most clients get whose callers may use all of them."""
        return self.all()

    async def _built_page(
        self, context: RequestContext, features: list[Any], cursor: str | None, missing: frozenset[Capability] | None
    ) -> bytes:
        """Return a page of features.

        Args:
            context: The request.
            features: All features of the list.
            cursor: The cursor of the page.
            missing: Capabilities that the client lacks; None if the list depends on its caller, and is not kept.
        """
        revision, version, caching = context.client.revision, self.version, self._caching
        start = 0 if cursor is None else start_of(self.name, [feature.key for feature in features], cursor)
        if missing is not None:
            kept = self._pages.get((revision.date, start, missing, caching))
            if kept is not None:
                return kept
        page = page_of(self.name, [(feature.key, feature) for feature in features], start, self.page_size_for(context))
        definitions = await self.definitions_of(context, page.items)
        scope = caching.scope or self.cache_scope
        if missing is None and self.provided is not None:
            scope = "private"
        encoded = self._results.list(self.name, definitions.values(), page.next_cursor, revision, scope, caching.ttl)
        # Clients can begin elsewhere with old cursors; only pages that follow from the first one are kept.
        if missing is not None and page.regular and version == self._version == self.version:
            self._pages[revision.date, start, missing, caching] = encoded
        return encoded

    async def features_for(self, context: RequestContext, *, through_mounts: bool = True) -> list[Any]:
        """Return the features that the caller of a request gets.

        Args:
            context: The request.
            through_mounts: Whether the list passes the middleware of mounted servers.
        """
        rules = session_rules_of(context)
        if context.every_version or self.view is not None:
            features = self.all_versions(rules)
        elif rules is None:
            features = self.all()
        else:
            from funcmcp._server.catalog.session_view import seen_features  # noqa: PLC0415 - few sessions have rules

            features = [feature for feature in seen_features(self.registry, rules) if feature.is_listed]
        features = self.with_provided(await self.allowed(features, context), await self.provided_for(context))
        if context.every_version or self.view is not None:
            features = list(dict.fromkeys(features))  # an older version may stand in for one that is not shown
        if through_mounts:
            features = await self.through_mounts(features, context)
        if self.view is not None:
            features = await self.view.listed(self.method, features, context)
        capabilities = context.client.capabilities
        return [item for item in features if not item.needs or not missing_of(item.needs, capabilities)]

    async def through_mounts(self, features: list[Any], context: RequestContext) -> list[Any]:
        """Return what the middleware of mounted servers makes of the features of a list."""
        for list_filter in self.filters:
            if list_filter.is_active():
                features = await list_filter.shown(self.method, features, context)
        return features

    async def provided_for(self, context: RequestContext) -> list[Any]:
        """Return the features that are computed for the caller of a request, but those whose name is another one's."""
        if self.provided is None:
            return []
        rules = session_rules_of(context)
        features = [
            feature
            for feature in await self.provided.features_for(self.registry.kind, context.principal)
            if feature.is_listed
            and all(feature.position < rival.position for rival in self.registry.rivals_of(feature))
            and (rules is None or rules.decide(feature, default=True))
        ]
        return await self.allowed(features, context)

    def with_provided(self, features: list[Any], provided: list[Any]) -> list[Any]:
        """Return a list with the features of the caller, in their order, and without those whose names these have."""
        if not provided:
            return features
        without_name = {id(rival) for feature in provided for rival in self.registry.rivals_of(feature)}
        remaining = [feature for feature in features if id(feature) not in without_name]
        return sorted([*remaining, *provided], key=BY_POSITION)

    async def allowed(self, features: list[Any], context: RequestContext) -> list[Any]:
        """Return the features of a list that the caller of a request may use."""
        if any(feature.shown_if is not None for feature in features):
            from funcmcp._server.catalog.conditions import shown_features  # noqa: PLC0415 - few features need it

            features = await shown_features(features, context, self.registry)
        guard, principal = guard_for(context, self._guard), context.principal
        if guard is None or not self.is_filtered(guard, principal):
            return features
        return [feature for feature in features if await guard.may_use(feature.access, principal)]

    async def definitions_of(self, context: RequestContext, features: Sequence[Any]) -> dict[str, bytes]:
        """Return the definitions of features, as JSON text by key. One without a valid definition is left out.

        In a list of all versions, the place in the list is a part of the key.
        """
        definitions: dict[str, bytes] = {}
        for number, feature in enumerate(features, 1):
            try:
                key = f"{feature.key} {number}" if context.every_version else feature.key
                definitions[key] = encoded_definition(self.registry, feature, self.shape, context.client.revision)
            except RegistrationError as error:
                log_left_out(self.left_out, self.registry.kind, feature.key, context.request.method, error)
            if number % YIELD_INTERVAL == 0:
                await asyncio.sleep(0)
        return definitions


def session_rules_of(context: RequestContext) -> Rules | None:
    """Return the rules of a request, or of its session; None if it sees what other clients see."""
    if context.rules is not None:
        return context.rules
    conversation = context.client.conversation
    return None if conversation is None else conversation.rules


def encoded_definition(registry: Registry[Any], feature: Described, shape: Shape, revision: Revision) -> bytes:
    """Return a feature's definition as JSON text; raise RegistrationError if a type in it has no JSON Schema."""
    try:
        return encode(shape(registry.describe(feature), revision))
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

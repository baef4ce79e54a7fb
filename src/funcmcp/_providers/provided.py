"""The providers of one server: when they are asked, and what is remembered of their answers.

How it works: there are two kinds of providers, and both change features by transforms first.

- Features for all callers: the list is read when a client first needs one, and is then in the catalog of the server. It
  is read again after `Provider.refresh` seconds, and when the provider says that it has changed. Before the first time,
  a request for one feature asks `Provider.get`, so a process that only answers calls never reads the list.
- Features for each request: nothing is remembered.
- Features for each caller: a list is read for each owner and is valid for some time. What was listed serves the calls
  of this owner, too. Lists of the owners that were not seen for the longest time are dropped.

Each answer has a time limit. A failure is one line in the log, at most one in a minute, and the last list remains. The
next attempt is made after `RETRY_SECONDS` by a request, and at other servers (`RemoteProvider`) also without one, if
clients listen to changes. Other servers delay nothing but the first list, the optional ones for `FIRST_LIST_SECONDS` at
most and only once: what comes later is a change of the list. A list that is read again is waited for in the same way. A
call of an unknown name waits as long for a list that may have it, of an optional server or one that was read before. An
empty list is an error as long as a server that could have some has never answered, unless it is optional.

Sources have positions, in the order in which they were added. Of two features with one name, that of the first source
has it (`Registry`), and a call of the name goes there. This does not depend on which source answers first.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import operator
from collections import OrderedDict
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._auth.owner import owner_of
from funcmcp._objects.definitions import replace
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError
from funcmcp._providers.namespace import Namespace
from funcmcp._providers.provider import Provider
from funcmcp._providers.remote import RemoteProvider
from funcmcp._server.calls.route import READS, RoutedRequest, with_scheme_of
from funcmcp._server.catalog.catalog import Catalog
from funcmcp._server.catalog.features import Prompt, Resource, Skill, Tool
from funcmcp._server.catalog.lookup import Lookup
from funcmcp._server.catalog.registry import BY_POSITION
from funcmcp._server.catalog.transformed import FEATURES, Transform, TransformedFeatures
from funcmcp._server.connections.hub import LISTS
from funcmcp._server.handlers.lists import Caching
from funcmcp._server.log import quote
from funcmcp._server.run import is_failure
from funcmcp._state.line_limit import LineLimit, LineOfEach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._server.catalog.transformed import AnyFeature, AnyTransform
    from funcmcp._server.dispatch import Server

    Match: TypeAlias = tuple[Feature, Values]
    AnySource: TypeAlias = "SharedFeatures | MountedFeatures | CallerSource"

LIST_SECONDS = 30.0
"""Seconds that a provider may take to answer."""

REMOTE_SECONDS = 300.0
"""Seconds that another server may take for all pages of all its lists. It has limits of its own for each request, and a
command such as uvx may have to install it first."""

FIRST_LIST_SECONDS = 8.0
"""Seconds that a list of this server waits for the first list of an optional server, and for a later list of any. It is
less than clients wait."""

SETTLE_SECONDS = 5.0
"""Seconds that `initialize` and `server/discover` wait for them, because capabilities depend on lists."""

RETRY_SECONDS = 5.0
"""Seconds after a failure in which a provider is not asked again. They double with each failure in a row."""

LONGEST_RETRY_SECONDS = 30.0
"""Seconds after a failure in which a provider is not asked again, at most."""

CALLER_SECONDS = 60.0
"""Seconds for which the list of a caller is valid, unless the provider says otherwise."""

MAX_CALLERS = 1_000
"""Callers whose lists are kept."""

MAX_CALLER_FEATURES = 100_000
"""Features in all of these lists together."""

MAX_FOUND = 1_000
"""Features that `Provider.get` has returned and that are kept until the list is read."""

_KINDS = {"template": "resource template"}
"""The names of lists, where they differ from those of components."""

_CAPABILITIES = {
    "tool": "tools",
    "resource": "resources",
    "template": "resources",
    "prompt": "prompts",
    "skill": "skills",
}


class _Named(NamedTuple):
    """How requests of a method name a feature.

    Attributes:
        kind: The class of the feature.
        member: The member of the params that has the name or URI.
        find: Finds the feature.
    """

    kind: type
    member: str
    find: Callable[[Lookup, dict[str, Any]], tuple[Feature, Values]]


_NAMED = {
    "tools/call": _Named(Tool, "name", Lookup.tool),
    "prompts/get": _Named(Prompt, "name", Lookup.prompt),
    "resources/read": _Named(Resource, "uri", Lookup.readable),
    "resources/subscribe": _Named(Resource, "uri", Lookup.readable),
    "completion/complete": _Named(Prompt, "", Lookup.completed),
    "skills/get": _Named(Skill, "uri", Lookup.skill),
}


class CallerSource(Protocol):
    """Features that depend on the caller: those of a provider, or of a mounted server.

    Attributes:
        position: The beginning of the positions of the features.
    """

    position: tuple[int, ...]

    @property
    def remote(self) -> RemoteProvider | None:
        """The other server that has them; None if there is none."""

    @property
    def is_used(self) -> bool:
        """Whether there may be such features."""

    def may_have(self, kind: type, key: str | None) -> bool:
        """Return whether a feature that clients see under a key can be one of these."""

    def unlisted(self, params: dict[str, Any]) -> Match | None:
        """Return a resource that the other server may have without listing it."""

    async def catalog_for(self, principal: Principal | None, *, again: bool = False) -> FeaturesOfCaller:
        """Return the features of a caller."""

    async def find(self, named: _Named, params: dict[str, Any], principal: Principal | None) -> Match | None:
        """Return the feature of the caller that a request names."""


class Providers:
    """The providers of one server.

    Args:
        server: The server.
        publish: Notifies clients that a resource has changed.
    """

    def __init__(self, server: Server, publish: Callable[[str], None]) -> None:
        self._server = server
        self._publish = publish
        self._shared: list[SharedFeatures | MountedFeatures] = []
        self._per_caller: list[CallerSource] = []
        self._slow: dict[AnySource, float] = {}  # sources for which calls do not wait, and until when
        server.catalog.follow_waiting(self._leave_out)

    def _leave_out(self, feature: Feature, reason: str) -> None:
        """Say once in the log that a feature is left out, because another one has its name."""
        key = feature.key if feature.upstream is None else feature.upstream.key
        for source in (*self._shared, *self._per_caller):
            if source.position == feature.position[:1] and isinstance(source, _Source | MountedFeatures):
                source.leave_out(key, reason)

    @property
    def is_per_caller(self) -> bool:
        """Whether the features of some provider depend on the caller."""
        return any(source.is_used for source in self._per_caller)

    @property
    def per_caller(self) -> Sequence[CallerSource]:
        """The sources of the features that depend on the caller."""
        return self._per_caller

    def add_mounted(self, mounted: Server, callers: CallerSource, transforms: Sequence[AnyTransform]) -> None:
        """Serve the features of the providers of a mounted server, which get into its catalog and from there here.

        Args:
            mounted: The mounted server.
            callers: The features of its providers that depend on the caller. They are in no catalog.
            transforms: Those of the mount.
        """
        source = MountedFeatures(self._server, mounted, callers.position, transforms)
        self._server.catalog.promise(source, mounted.catalog.promised)
        self._shared.append(source)
        self._per_caller.append(callers)

    def add(self, provider: Provider, transforms: Sequence[AnyTransform], services: Any) -> None:
        """Serve the features of a provider; raise RuntimeError if it belongs to a server already."""
        if provider.per_caller or provider.per_request:
            source: SharedFeatures | CallerFeatures = CallerFeatures(self._server, provider, transforms)
        else:
            source = SharedFeatures(self._server, provider, transforms)
        provider.attach(services, source.invalidate, lambda uri: self._publish(source.exposed_uri(uri)))
        if source.remote is not None:
            source.remote.on_doubt = source.expire
        self._server.catalog.promise(source, source.promised)
        self._server.offer_budget()
        if "skill" in provider.components:
            self._server.routes.add_skills()
        if isinstance(source, SharedFeatures):
            self._shared.append(source)
        else:
            self._per_caller.append(source)

    async def ready(self, kind: str | None = None) -> None:
        """Bring the catalog up to date.

        Args:
            kind: The kind of features that a list shows, such as "tool"; None for a request of another method.

        Raises:
            MCPError: There is no feature of this kind, and a server that may have some has never answered.
        """
        sources = [source for source in self._shared if source.is_waited_for]
        if sources:
            await asyncio.gather(*(source.ready() for source in sources))
        if kind is not None and not self._server.catalog.has_kind(kind):
            await self._refuse_empty_list(kind)

    async def _refuse_empty_list(self, kind: str) -> None:
        """Raise MCPError if a list is empty because servers have never answered; try once more to read theirs."""
        missing = [source for source in self.every_remote if source.is_missing(kind)]
        if missing:
            await asyncio.gather(*(source.ready(again=True) for source in missing))
        missing = [source for source in missing if source.is_missing(kind)]
        if missing and not self._server.catalog.has_kind(kind):
            raise _unread_error("There is no list.", missing)

    @property
    def _remote(self) -> list[SharedFeatures]:
        """The sources of the features that other servers have for all callers."""
        return [item for item in self._shared if isinstance(item, SharedFeatures) and item.remote is not None]

    @property
    def _mounted(self) -> list[MountedFeatures]:
        return [item for item in self._shared if isinstance(item, MountedFeatures)]

    @property
    def every_remote(self) -> list[SharedFeatures]:
        """The sources of the features that other servers have for all callers, with those of mounted servers."""
        return [*self._remote, *(source for item in self._mounted for source in item.remote_below)]

    def unread(self, kind: type, key: str | None) -> list[SharedFeatures]:
        """Return the sources that have never answered and may have a feature that clients see under a key."""
        own = [source for source in self._remote if source.is_unread and source.may_have(kind, key)]
        return own + [source for item in self._mounted for source in item.unread(kind, key)]

    @property
    def caching(self) -> Caching:
        """How clients may cache lists: the shortest time, and never shared if a server forbids it."""
        remote = [source.remote.caching for source in (*self._shared, *self._per_caller) if source.remote is not None]
        times = [caching.ttl for caching in remote if caching.ttl is not None]
        is_private = any(caching.scope == "private" for caching in remote)
        return Caching(min(times, default=None), "private" if is_private else None)

    async def settle(self) -> None:
        """Wait for the first lists of other servers, on which capabilities depend: not for long, and for each once."""
        unread = [source for source in self._remote if source.is_unread and not source.is_slow]
        first = [source.ready() for source in unread]
        first += [source.settle() for source in self._mounted]
        if first:
            try:
                async with asyncio.timeout(SETTLE_SECONDS):
                    await asyncio.gather(*first)
            except TimeoutError:
                for source in unread:
                    source.is_slow = source.is_unread

    async def instructions(self) -> list[str]:
        """Return what other servers add to the instructions, without those of servers that are slow."""
        sources = [source for source in self._remote if source.remote is not None and source.remote.adds_instructions]
        waited_for = [source for source in sources if source.is_waited_for and not source.is_slow]
        waiting = [asyncio.ensure_future(source.ready()) for source in waited_for]
        if waiting:
            await asyncio.wait(waiting, timeout=FIRST_LIST_SECONDS)
            for task in waiting:
                task.cancel()  # the list that it waits for is read on
            for source in waited_for:
                source.is_slow = source.is_unread
        texts = [source.remote.added_instructions() for source in sources if source.remote is not None]
        return [text for text in texts if text is not None]

    async def features_for(self, kind: str, principal: Principal | None) -> Iterable[Feature]:
        """Return the features of a kind that depend on the caller.

        Raises:
            MCPError: As `ready`.
        """
        catalogs = await asyncio.gather(*(source.catalog_for(principal) for source in self._per_caller))
        for source, catalog in zip(self._per_caller, catalogs, strict=True):
            if not isinstance(source, CallerFeatures):
                continue
            is_required = source.remote is not None and not source.remote.is_optional
            if catalog.is_unread and is_required and not self._server.catalog.has_kind(kind):
                raise _unread_error("There is no list.", [source])
        features: Registry[Feature] = self._server.catalog.registry_of(kind).empty()
        features.waiting_listeners.append(self._leave_out)
        for catalog in catalogs:
            for feature in catalog.of_kind(kind):
                # What a transform adds by itself has no position, and is the same in each catalog.
                if all(rival.position != feature.position for rival in features.rivals_of(feature)):
                    features.add(feature)
                if isinstance(feature, Tool):
                    self._server.offer_budget(feature)
        return features

    async def resolve(
        self, routed: RoutedRequest, principal: Principal | None, route: Callable[[Request], RoutedRequest]
    ) -> RoutedRequest:
        """Return a request with the feature that it names, if a provider has it; otherwise the request unchanged."""
        if await self._brought_up_to_date():
            routed = _routed_again(routed, route)
        if routed.fault is not None and self._stands_for_another(routed):
            await self.ready()
            return _routed_again(routed, route)
        named = _NAMED.get(routed.request.method)
        if named is None:
            return routed
        params = routed.request.params
        if routed.fault is None:
            sources = self._before(routed.feature)
            match = await self._match_of(named, sources, params, principal) if sources else None
        elif self._is_own(named, params.get(named.member)):
            match = None
        else:
            sources = sorted([*self._shared, *self._per_caller], key=BY_POSITION)
            match = await self._match_of(named, sources, params, principal) or self._unlisted(named, sources, params)
            if match is None:
                return self._with_reason(named, routed)
        if match is None:
            return routed
        if isinstance(match[0], Tool):
            self._server.offer_budget(match[0])
        resolved = routed.with_feature(*match)
        return with_scheme_of(match[0].key, resolved) if routed.request.method in READS else resolved

    def _before(self, feature: Feature | None) -> list[AnySource]:
        """Return the sources of features of the caller that have a name before one in the catalog."""
        if feature is None or not feature.position:
            return []
        return sorted((item for item in self._per_caller if item.position < feature.position), key=BY_POSITION)

    def _with_reason(self, named: _Named, routed: RoutedRequest) -> RoutedRequest:
        """Return a request for an unknown feature, with an error that names the servers which may have it."""
        key = _key_in(named, routed.request.params)
        if key is None:
            return routed
        missing = self.unread(named.kind, key)
        return routed.with_feature(fault=_unread_error(f"{quote(key)} is unknown.", missing)) if missing else routed

    async def _match_of(
        self, named: _Named, sources: Iterable[AnySource], params: dict[str, Any], principal: Principal | None
    ) -> Match | None:
        """Return the feature that a request names. All sources that may have it look for it at the same time."""
        key = _key_in(named, params)
        possible = [source for source in sources if source.may_have(named.kind, key)]
        if len(possible) == 1:
            return await possible[0].find(named, params, principal)
        searches = {source: asyncio.ensure_future(source.find(named, params, principal)) for source in possible}
        try:
            return await self._first_match(searches)
        finally:
            for search in searches.values():
                search.cancel()

    async def _first_match(self, searches: Mapping[AnySource, asyncio.Future[Match | None]]) -> Match | None:
        """Return what the first source finds that finds anything.

        The call waits `FIRST_LIST_SECONDS` in all, and then takes the first answer. A source for all callers that has
        not answered in time is not waited for in the next `LONGEST_RETRY_SECONDS`.
        """
        end = monotonic() + FIRST_LIST_SECONDS
        for source, search in searches.items():
            is_slow = self._slow.get(source, 0.0) > monotonic()
            await asyncio.wait({search}, timeout=0 if is_slow else max(0.0, end - monotonic()))
            if search.done():
                match = search.result()
                if match is not None:
                    return match
            elif source in self._shared and not is_slow:
                self._slow[source] = monotonic() + LONGEST_RETRY_SECONDS
        return await _any_match({search for search in searches.values() if not search.done()})

    def _unlisted(self, named: _Named, sources: Iterable[AnySource], params: dict[str, Any]) -> Match | None:
        """Return a resource that another server may have without listing it, if only one server may have it."""
        if named.kind is not Resource:
            return None
        key = _key_in(named, params)
        possible = [source for source in sources if source.may_have(Resource, key)]
        matches = [match for source in possible if (match := source.unlisted(params)) is not None]
        return matches[0] if len(matches) == 1 else None

    def _stands_for_another(self, routed: RoutedRequest) -> bool:
        """Return whether a request is a call of the tool that calls others, and no tool has the name in it."""
        name = routed.sent.params.get("name")
        tool = self._server.catalog.tools.get(name) if isinstance(name, str) else None
        return routed.request.method == "tools/call" and tool is not None and tool.reroute is not None

    async def _brought_up_to_date(self) -> bool:
        """Read the lists that are due, most of them beside the request; return whether the request has waited."""
        has_waited = False
        for source in self._shared:
            if not isinstance(source, SharedFeatures) or not source.is_due:
                continue
            if source.provider.is_quick:
                await source.ready()
                has_waited = True
            else:
                source.start()
        return has_waited

    def _is_own(self, named: _Named, key: object) -> bool:
        """Return whether the catalog has a feature of a key, which is hidden. No provider may stand in for it."""
        catalog = self._server.catalog
        if not isinstance(key, str):
            return False
        if named.kind is Resource:
            return catalog.resources.key_like(key) is not None
        registries: dict[type, Registry[Any]] = {
            Tool: catalog.tools,
            Prompt: catalog.prompts,
            Skill: catalog.skills,
        }
        return key in registries[named.kind]


class _Source:
    """What both kinds of providers have in common.

    Args:
        server: The server.
        provider: The provider.
        transforms: Change its features.

    Attributes:
        position: The beginning of the positions of its features.
    """

    def __init__(self, server: Server, provider: Provider, transforms: Sequence[AnyTransform]) -> None:
        self.server = server
        self.provider = provider
        self.position: tuple[int, ...] = (next(server.catalog.positions),)
        self.remote = provider if isinstance(provider, RemoteProvider) else None
        self.name = type(provider).__name__ if self.remote is None else self.remote.name
        self.transforms = list(transforms)
        self.can_get = type(provider).get is not Provider.get
        self.failure = ""
        self._failures = LineLimit()
        self._left_out = LineOfEach(logging.ERROR)

    @property
    def promised(self) -> set[str]:
        """The capabilities that the features of the provider may have; those of another server when it has answered."""
        promised = {_CAPABILITIES[kind] for kind in self.provider.components}
        if "resources" in promised:
            promised.add("subscriptions")
        if self.remote is None:
            return promised
        if self.remote.completes:
            promised.add("completions")
        offered = self.remote.offered
        return promised if offered is None else promised & offered

    def exposed_uri(self, uri: str) -> str:
        """Return the URI of a resource of the provider as clients see it."""
        for transform in self.transforms:
            if isinstance(transform, Namespace):
                uri = transform.uri(uri)
        return uri

    def may_have(self, kind: type, key: str | None) -> bool:
        """Return whether a feature that clients see under a key can be one of the provider."""
        if key is None or self.server.catalog.transforms:
            return True
        for transform in reversed(self.transforms):
            if isinstance(transform, Namespace):
                return transform.may_have(kind, key)
            if not isinstance(transform, Transform):
                return True  # a function may give it any name
            key = transform.source_key(kind, key)
        return True

    def unlisted(self, params: dict[str, Any]) -> Match | None:
        """Return a resource that the other server may have without listing it."""
        uri = params.get("uri")
        if self.remote is None or not isinstance(uri, str):
            return None
        resource = self.remote.unlisted(self.source_key(Resource, uri))
        if resource is None:
            return None
        single = self.new_catalog()
        self.add_to(single.features, resource)
        return single.find(_NAMED["resources/read"], params)

    def source_key(self, kind: type, key: str) -> str:
        """Return the key of a feature before the transforms, for the key that a client uses."""
        for transform in reversed([*self.transforms, *self.server.catalog.transforms]):
            source_key = getattr(transform, "source_key", None)
            key = key if source_key is None else source_key(kind, key)
        return key

    def publish_lists(self) -> None:
        """Notify clients that the lists of the provider have changed."""
        for capability in LISTS.keys() & {_CAPABILITIES[kind] for kind in self.provider.components}:
            self.server.hub.publish(LISTS[capability])

    def new_catalog(self) -> FeaturesOfCaller:
        """Return a catalog beside that of the server, with the transforms of both."""
        return FeaturesOfCaller(self.server, self.transforms)

    def add_to(self, features: TransformedFeatures, feature: AnyFeature, number: int = 0) -> None:
        """Add a feature, by its number in the list; one that can't be added is left out, which is logged once."""
        try:
            features.add(replace(feature, position=(*self.position, number)))
        except Exception as error:  # noqa: BLE001 - a transform may raise anything
            self.leave_out(feature.key, str(error))

    def leave_out(self, key: str, reason: str) -> None:
        """Say once in the log that a feature is left out."""
        text = "%s: %s is left out. %s"
        self._left_out.write(key, text, self.name, quote(key), quote(reason, 600))

    async def answer(self, work: Any, method: str, *, has_list: bool = False) -> Any:
        """Return what the provider answers within the time limit; `FAILED` if it fails, which is logged.

        Args:
            work: The answer.
            method: The method of the provider, for the log.
            has_list: Whether clients get an earlier list if the method fails.
        """
        seconds = LIST_SECONDS if self.remote is None else REMOTE_SECONDS
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except BaseException as error:
            if not is_failure(error):
                raise
            reason = quote(f"{type(error).__name__}: {error}", 600)
            if limit.expired():
                reason = f"no answer in {seconds:g} seconds"
            self.failure = reason
            effect = ", and the last list remains" if has_list else ""
            if self.remote is None or not self.remote.is_away:  # otherwise the log has the reason already
                self._failures.write("%s.%s has failed%s: %s", self.name, method, effect, reason)
            return FAILED

    async def listed(self, caller: Principal | None) -> list[AnyFeature]:
        """Return the features that the provider lists."""
        listed = self.provider.list(caller)
        if not inspect.isawaitable(listed):
            raise TypeError("list must be an async function")
        return [feature for feature in await listed if self._is_feature(feature)]

    async def got(self, named: _Named, key: str, caller: Principal | None) -> AnyFeature | None:
        """Return the feature that `Provider.get` returns for the key that a client uses."""
        key = self.source_key(named.kind, key)
        feature = await self.answer(self.provider.get(named.kind, key, caller), "get")
        if feature is None or feature is FAILED or not self._is_feature(feature):
            return None
        provided: AnyFeature = feature
        return provided

    def _is_feature(self, value: object) -> bool:
        """Return whether a value is a feature; another one is logged once for each type."""
        if isinstance(value, (*FEATURES, Skill)):
            return True
        name = type(value).__name__
        text = "%s: a value of the type %s is left out. Return features."
        self._left_out.write(name, text, self.name, quote(name))
        return False


FAILED = object()
"""What stands for the answer of a provider that has failed."""


class FeaturesOfCaller:
    """Features that are not in the server's catalog: those of one caller, or those that were looked up one by one.

    Args:
        server: The server.
        transforms: Change the features.
    """

    def __init__(self, server: Server, transforms: Sequence[AnyTransform]) -> None:
        self._catalog = catalog = Catalog(server.options, lambda _change: None)
        self.expires = 0.0
        self.generation: tuple[int, ...] = generation_of(server)
        self.count = 0
        self.is_unread = False
        self.has_failed = False
        self.may_differ = False  # from the next list, without a notification
        self.listed: list[AnyFeature] = []
        self.features = TransformedFeatures(catalog.add, catalog.remove, [*transforms, *server.catalog.transforms])
        self.lookup = Lookup(catalog)
        catalog.visibility = server.catalog.visibility
        for registry in (catalog.tools, catalog.resources, catalog.templates, catalog.prompts):
            registry.is_visible = catalog.visibility.allows

    def of_kind(self, kind: str) -> list[Any]:
        """Return the features of a kind, such as "tool", in their newest versions."""
        registry = self._registry(kind)
        return [
            feature if feature.version is None else replace(feature, describe=partial(registry.describe, feature))
            for feature in registry
        ]

    def every_version(self, kind: str) -> list[Any]:
        """Return the features of a kind in all versions that are not hidden."""
        return list(self._registry(kind).every_version())

    def _registry(self, kind: str) -> Registry[Any]:
        catalog = self._catalog
        registries: list[Any] = [
            catalog.tools,
            catalog.resources,
            catalog.templates,
            catalog.prompts,
            catalog.skills,
        ]
        registry: Registry[Any] = next(registry for registry in registries if registry.kind == kind)
        return registry

    @property
    def tool_name(self) -> str | None:
        """The name of the one tool that was looked up; None if transforms have removed it."""
        return next((tool.name for tool in self._catalog.tools.every()), None)

    def find(self, named: _Named, params: dict[str, Any]) -> Match | None:
        """Return the feature that a request names, with the values of a template; None if it is not here."""
        return _match_of(named, self.lookup, params)


class SharedFeatures(_Source):
    """The features of a provider that serves all callers alike. They are in the server's catalog.

    Attributes:
        is_slow: Whether a session has waited in vain for the first list of another server: later ones do not wait.
    """

    def __init__(self, server: Server, provider: Provider, transforms: Sequence[AnyTransform]) -> None:
        super().__init__(server, provider, transforms)
        self._features = TransformedFeatures(server.catalog.add, server.catalog.remove, self.transforms)
        self._current: list[AnyFeature] = []
        self._single_features: FeaturesOfCaller | None = self.new_catalog()
        self.is_slow = False
        self._is_late = False  # a request has waited in vain for the list that is being read
        self._is_stale = True
        self._next_at = float("-inf")  # the time of the next attempt
        self._read_at = float("inf")
        self._was_away = False  # at the last attempt
        self._loading: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._was_missing = False  # in a list that a client has
        self._pause = RETRY_SECONDS  # after the next failure
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _was_read(self) -> bool:
        return self._single_features is None

    def invalidate(self) -> None:
        """Read the list again, and notify clients."""
        self._is_stale, self._next_at = True, float("-inf")
        if self._single_features is not None:
            self._single_features = self.new_catalog()
        if self._loop is None or self._loop.is_closed():
            self.publish_lists()
            return
        with contextlib.suppress(RuntimeError):  # the loop has been closed in the meantime
            self._loop.call_soon_threadsafe(self.start)

    def expire(self, owner: str | None, seconds: float) -> None:
        """Read the list again with the next request, and after some seconds without one if clients listen."""
        del owner
        self._is_stale = True
        if self._was_read and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._try_again_after, seconds)

    def start(self) -> asyncio.Task[None]:
        """Return the task that reads the list."""
        if self._loading is None or self._loading.done() or self._loading.get_loop() is not asyncio.get_running_loop():
            self._loading = asyncio.create_task(self._load())
            self._is_late = False
        return self._loading

    @property
    def is_due(self) -> bool:
        """Whether a list that was read before is to be read again."""
        return self._was_read and self._is_time()

    def _is_time(self) -> bool:
        now = monotonic()
        refresh = self.provider.refresh
        is_old = self._is_stale or (refresh is not None and now >= self._read_at + refresh)
        is_back = self._was_away and self.remote is not None and not self.remote.is_away
        return is_old and (is_back or now >= self._next_at)

    @property
    def is_waited_for(self) -> bool:
        """Whether a request for a list waits: for the first list, or for one that is due or being read again."""
        return not (self._is_running and self._is_late) and (self._is_running or self._is_time())

    @property
    def _is_running(self) -> bool:
        return self._loading is not None and not self._loading.done()

    @property
    def _is_first_running(self) -> bool:
        return not self._was_read and self._is_running

    async def ready(self, *, again: bool = False) -> None:
        """Read the list, if it is time for it. While the first list is read, all requests wait for it.

        Args:
            again: Wait for another server also if the last attempt has failed.
        """
        if not (again or self.is_waited_for):
            return
        is_bounded = self._was_read or (self.remote is not None and self.remote.is_optional)
        self._loop = asyncio.get_running_loop()
        loading = self.start()  # it goes on if this request is cancelled
        if self.remote is None:
            await asyncio.wait({loading})
        elif again or not (self.failure or (self.remote.is_optional and self._was_missing)):
            await asyncio.wait({loading}, timeout=FIRST_LIST_SECONDS if is_bounded else None)
            self._is_late = not loading.done()
        self._was_missing = self._was_missing or not self._was_read

    @property
    def is_unread(self) -> bool:
        """Whether the list was never read."""
        return not self._was_read

    def is_missing(self, kind: str) -> bool:
        """Return whether the features of a kind are missing because another server has never answered."""
        if self.remote is None or self.remote.is_optional or self._was_read:
            return False
        return any(_KINDS.get(component, component) == kind for component in self.remote.components)

    async def _load(self) -> None:
        while True:
            self._is_stale = False
            try:
                features = await self.answer(self.listed(None), "list", has_list=self._was_read)
            except BaseException:  # the event loop ends, and another one may serve afterwards
                self._is_stale = True
                raise
            self._was_away = features is FAILED and self.remote is not None and self.remote.is_away
            if features is FAILED:
                self._is_stale, self._next_at = True, monotonic() + self._pause
                self._try_again_after(self._pause)
                self._pause = min(LONGEST_RETRY_SECONDS, self._pause * 2)
                return
            self.failure, self._pause, self.is_slow = "", RETRY_SECONDS, False
            self._next_at = float("-inf")
            self.server.catalog.promise(self, self.promised)
            self._replace(features)
            if not self._is_stale:  # otherwise the provider has changed in the meantime
                break
        self._read_at = monotonic()

    def _try_again_after(self, seconds: float) -> None:
        """Read the list of another server again, without a request if clients then listen to changes."""
        if self._timer is not None:
            self._timer.cancel()
        if self.remote is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._start_for_listeners)

    def _start_for_listeners(self) -> None:
        if self._is_stale and len(self.server.hub):
            self.start()

    def _replace(self, features: list[AnyFeature]) -> None:
        """Replace the features in the catalog, and notify clients if lists look different now."""
        is_first = not self._was_read and not self._was_missing
        self._single_features = None
        if len(features) == len(self._current) and all(map(operator.is_, features, self._current)):
            return
        is_different = not is_first and not _look_alike(features, self._current)
        with self.server.catalog.collecting() as changes:
            self._features.clear()
            for number, feature in enumerate(features):
                self.add_to(self._features, feature, number)
        self._current = features
        if is_different:
            for change in changes:
                self.server.hub.publish(change)

    async def find(self, named: _Named, params: dict[str, Any], principal: Principal | None) -> Match | None:
        """Return the feature that a request names: from the list, or looked up if the list was never read."""
        del principal
        key = params.get(named.member)
        if self._single_features is not None and self.can_get and isinstance(key, str):
            match = await self._looked_up(self._single_features, named, key, params)
            if match is not None or named.kind is not Resource:
                return match
        await self.ready(again=self._is_first_running or self._is_time())
        return _match_of(named, self.server.parts.lookup, params)

    async def _looked_up(
        self, single_features: FeaturesOfCaller, named: _Named, key: str, params: dict[str, Any]
    ) -> Match | None:
        """Return a feature without reading the list."""
        if single_features.count >= MAX_FOUND or single_features.generation != generation_of(self.server):
            self._single_features = single_features = self.new_catalog()
        match = single_features.find(named, params)
        if match is None:
            feature = await self.got(named, key, None)
            if feature is None:
                return None
            if isinstance(feature, Tool) and feature.task is not None:
                await self.ready()  # the worker of tasks finds its tools in the catalog
                return _match_of(named, self.server.parts.lookup, params)
            single_features.count += 1
            self.add_to(single_features.features, feature)
            match = single_features.find(named, params)
        return match


class MountedFeatures:
    """The features of the providers of a mounted server, which its catalog gets when they are read.

    Args:
        server: The server above.
        mounted: The mounted server.
        position: The beginning of the positions of its features.
        transforms: Those of the mount.
    """

    remote: None = None
    is_waited_for: bool = True

    def __init__(
        self, server: Server, mounted: Server, position: tuple[int, ...], transforms: Sequence[AnyTransform]
    ) -> None:
        self.position = position
        self._transforms = list(transforms)
        self._server = server
        self._mounted = mounted
        self._left_out = LineOfEach(logging.ERROR)

    def leave_out(self, key: str, reason: str) -> None:
        """Say once in the log that a feature is left out."""
        text = "%s: %s is left out of the server that mounts it. %s"
        self._left_out.write(key, text, self._mounted.options.name, quote(key), quote(reason, 600))

    def may_have(self, kind: type, key: str | None) -> bool:
        """Return whether a feature that clients see under a key can be one of the mounted server."""
        del kind, key
        return True

    def unlisted(self, params: dict[str, Any]) -> None:
        """Return None: only what is listed gets from one server to another."""

    async def ready(self) -> None:
        """Read the lists of the mounted server's providers."""
        if self._mounted.provided is None:
            return
        await self._mounted.provided.ready()
        self._promise()

    async def settle(self) -> None:
        """Wait for the first lists of other servers that the mounted server has, but not for long."""
        if self._mounted.provided is not None:
            await self._mounted.provided.settle()
            self._promise()

    def _promise(self) -> None:
        """Declare what the mounted server declares now."""
        self._server.catalog.promise(self, self._mounted.catalog.promised)

    async def find(self, named: _Named, params: dict[str, Any], principal: Principal | None) -> Match | None:
        """Return the feature that a request names. Servers that have never answered are asked for it once more."""
        del principal
        await self.ready()
        match = _match_of(named, self._server.parts.lookup, params)
        missing = [] if match is not None else self.unread(named.kind, _key_in(named, params))
        if not missing:
            return match
        await asyncio.gather(*(source.ready(again=True) for source in missing))
        return _match_of(named, self._server.parts.lookup, params)

    @property
    def remote_below(self) -> list[SharedFeatures]:
        """The sources of the features that other servers have, in the mounted server."""
        provided = self._mounted.provided
        return provided.every_remote if isinstance(provided, Providers) else []

    def unread(self, kind: type, key: str | None) -> list[SharedFeatures]:
        """Return the sources in the mounted server that have never answered and may have a feature of a key here."""
        provided = self._mounted.provided
        if not isinstance(provided, Providers) or not any(source.is_unread for source in self.remote_below):
            return []
        for transform in reversed(self._transforms):
            if key is None or not isinstance(transform, Transform):
                return provided.unread(kind, None)  # a function may give it any name
            if isinstance(transform, Namespace) and not transform.may_have(kind, key):
                return []
            key = transform.source_key(kind, key)
        return provided.unread(kind, key)


class CallerFeatures(_Source):
    """The features of a provider that depend on the caller, or on the request."""

    is_used = True

    def __init__(self, server: Server, provider: Provider, transforms: Sequence[AnyTransform]) -> None:
        super().__init__(server, provider, transforms)
        self._lists: OrderedDict[str | None, FeaturesOfCaller] = OrderedDict()  # the last used one is the last
        self._loading: dict[str | None, asyncio.Task[FeaturesOfCaller]] = {}
        self._missed: set[str | None] = set()  # owners that got a list without what is being loaded
        self._late: set[str | None] = set()  # owners that have waited in vain for what is being loaded
        self._changes = 0

    @property
    def _generation(self) -> tuple[int, ...]:
        """What the lists depend on beside the provider's answers."""
        return self._changes, *generation_of(self.server)

    def invalidate(self) -> None:
        """Read the lists again when they are needed, and notify clients."""
        self._changes += 1
        self.publish_lists()

    def expire(self, owner: str | None, seconds: float) -> None:
        """Read the list of a caller again with the next request that needs it, and notify clients if it differs."""
        del seconds
        features = self._lists.get(owner)
        if features is not None:
            features.expires = float("-inf")
            features.may_differ = True

    async def catalog_for(self, principal: Principal | None, *, again: bool = False) -> FeaturesOfCaller:
        """Return the features of a caller.

        Args:
            principal: The caller.
            again: Wait for another server also if it is slow, or if the last attempt has failed.
        """
        if self.provider.per_request:
            return await self._of_request(principal)
        owner = owner_of(principal)
        features = self._valid(owner)
        if features is not None:
            return features
        loading = self._loading.get(owner)
        if loading is None or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._loading[owner] = asyncio.create_task(self._load(owner, principal))
        previous = self._lists.get(owner)
        if owner not in self._late or previous is None:
            await self._wait_for_list(loading, previous, again=again)
        if loading.done():
            return loading.result()
        self._missed.add(owner)
        self._late.add(owner)
        if previous is None:
            previous = self.new_catalog()
            previous.is_unread = True
        return previous

    async def _of_request(self, principal: Principal | None) -> FeaturesOfCaller:
        """Return the features of one request; none if the provider fails."""
        features = self.new_catalog()
        listed = await self.answer(self.listed(principal), "list")
        for number, feature in enumerate(() if listed is FAILED else listed):
            self.add_to(features.features, without_task(feature), number)
        return features

    async def _wait_for_list(
        self, loading: asyncio.Task[FeaturesOfCaller], previous: FeaturesOfCaller | None, *, again: bool
    ) -> None:
        """Wait until a list is read, or for as long as a request waits for another server."""
        is_optional = self.remote is not None and self.remote.is_optional
        can_miss = is_optional or (self.remote is not None and previous is not None and not previous.is_unread)
        if again or not can_miss or previous is None or not previous.has_failed:
            await asyncio.wait({loading}, timeout=FIRST_LIST_SECONDS if can_miss else None)

    def _valid(self, owner: str | None) -> FeaturesOfCaller | None:
        features = self._lists.get(owner)
        if features is None or monotonic() >= features.expires or features.generation != self._generation:
            return None
        self._lists.move_to_end(owner)
        return features

    async def _load(self, owner: str | None, principal: Principal | None) -> FeaturesOfCaller:
        try:
            generation = self._generation
            previous = self._lists.get(owner)
            has_list = previous is not None and not previous.is_unread
            listed = await self.answer(self.listed(principal), "list", has_list=has_list)
            if listed is FAILED:
                features = self.new_catalog() if previous is None else previous
                features.is_unread = previous is None or previous.is_unread
                features.has_failed = True
                features.expires = monotonic() + RETRY_SECONDS
            else:
                features = self.new_catalog()
                features.listed = listed
                for number, feature in enumerate(listed):
                    self.add_to(features.features, without_task(feature), number)
                    features.count += 1
                may_differ = owner in self._missed or (previous is not None and previous.may_differ)
                if may_differ and not _look_alike(listed, [] if previous is None else previous.listed):
                    self.publish_lists()
                refresh = self.provider.refresh
                features.expires = monotonic() + (CALLER_SECONDS if refresh is None else refresh)
            features.generation = generation
            self._keep(owner, features)
            return features
        finally:
            self._loading.pop(owner, None)
            self._missed.discard(owner)
            self._late.discard(owner)

    def _keep(self, owner: str | None, features: FeaturesOfCaller) -> None:
        self._lists[owner] = features
        self._lists.move_to_end(owner)
        total = sum(item.count for item in self._lists.values())
        while len(self._lists) > 1 and (len(self._lists) > MAX_CALLERS or total > MAX_CALLER_FEATURES):
            _, dropped = self._lists.popitem(last=False)
            total -= dropped.count

    async def find(self, named: _Named, params: dict[str, Any], principal: Principal | None) -> Match | None:
        """Return the feature of the caller that a request names: from a list, or looked up without one."""
        key = params.get(named.member)
        listed = self._valid(owner_of(principal))
        if listed is None and self.can_get and isinstance(key, str):
            feature = await self.got(named, key, principal)
            if feature is not None:
                single = self.new_catalog()
                self.add_to(single.features, without_task(feature))
                if feature.key != self.source_key(named.kind, key) and isinstance(feature, Tool):
                    params = {
                        **params,
                        named.member: single.tool_name or feature.key,
                    }  # the key is another name of the tool
                match = single.find(named, params)
                if match is not None:
                    return match
            has_versions = feature is not None and feature.version is not None
            if named.kind is not Resource and not has_versions:
                return None
        features = await self.catalog_for(principal, again=True)
        return features.find(named, params)


def _unread_error(problem: str, sources: Iterable[_Source]) -> MCPError:
    """Return the error for what may belong to servers that have never answered. It has no internal details."""
    names = [source.name for source in sources]
    verb = "has" if len(names) == 1 else "have"
    text = f"{problem} {', '.join(names)} {verb} not answered yet. Try again later. The server's log has the reason."
    return MCPError(INTERNAL_ERROR, text)


def _key_in(named: _Named, params: dict[str, Any]) -> str | None:
    """Return the name or URI in the params of a request; None if it has another form."""
    key = params.get(named.member)
    return key if isinstance(key, str) else None


async def _any_match(running: set[asyncio.Future[Match | None]]) -> Match | None:
    """Return the first feature that a search finds; None if none finds any."""
    while running:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for search in done:
            match = search.result()
            if match is not None:
                return match
    return None


def _match_of(named: _Named, lookup: Lookup, params: dict[str, Any]) -> Match | None:
    """Return the feature that a request names, with the values of a template; None if there is none."""
    try:
        return named.find(lookup, params)
    except MCPError:
        return None


def _routed_again(routed: RoutedRequest, route: Callable[[Request], RoutedRequest]) -> RoutedRequest:
    """Return a request with the feature that the catalog has now."""
    again = route(routed.sent)
    again.size = routed.size
    return again


def without_task(feature: AnyFeature) -> AnyFeature:
    """Return a feature whose calls never become tasks: the worker of tasks finds its tools in the catalog."""
    return replace(feature, task=None) if isinstance(feature, Tool) and feature.task is not None else feature


def generation_of(server: Server) -> tuple[int, int]:
    """Return numbers that change with the rules and the transforms of a server."""
    return server.catalog.visibility.version, len(server.catalog.transforms)


def _look_alike(features: list[AnyFeature], others: list[AnyFeature]) -> bool:
    """Return whether two lists have equal definitions; False if one can't be described."""
    if len(features) != len(others):
        return False
    try:
        for feature, other in zip(features, others, strict=True):
            is_equal = type(feature) is type(other) and feature.version == other.version
            if not is_equal or feature.access != other.access or feature.describe() != other.describe():
                return False
    except Exception:  # noqa: BLE001 - schemas of authors may raise anything
        return False
    return True

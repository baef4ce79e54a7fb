"""`Upstream`: the features of another server, as a provider.

How it works: `Links` has the connections to the server (`links.py`). `features.py` makes features of the server's
definitions, whose handlers pass a request on (`forwarding.py`). The prefix of the mount and other transforms change
them as they change the features of any provider. `pins.py` hides what differs from pinned definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.extensions import SKILLS, declared_settings
from funcmcp._providers.remote import RemoteProvider
from funcmcp._server.handlers.lists import Caching
from funcmcp._upstreams.auth import auth_of
from funcmcp._upstreams.definitions import DefinitionReader, ListWork
from funcmcp._upstreams.features import UpstreamFeatures
from funcmcp._upstreams.forwarding import Forwarding
from funcmcp._upstreams.limits import UpstreamLimits, UpstreamTimeouts
from funcmcp._upstreams.links import Links, subject_of_client
from funcmcp._upstreams.names import NameLengths, Selection
from funcmcp._upstreams.pins import Pins
from funcmcp._upstreams.subscriptions import UpstreamChanges

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from funcmcp._auth.principal import Principal
    from funcmcp._client.target_transports import Target
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Resource
    from funcmcp._server.catalog.transformed import AnyFeature, AnyTransform
    from funcmcp._server.connections.client import ConnectedClient
    from funcmcp._serving.composition import ServerRuntime
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute
    from funcmcp._upstreams.auth import AuthFunction, UpstreamAuth
    from funcmcp._upstreams.definitions import UpstreamLists
    from funcmcp._upstreams.eras import Era
    from funcmcp._upstreams.features import ServerFacts
    from funcmcp._upstreams.links import SessionMode
    from funcmcp._upstreams.names import Only
    from funcmcp._upstreams.status import UpstreamStatus

_UNANNOUNCED_SECONDS = 60.0
"""Seconds after which the lists of an upstream that does not announce changes are read again."""

_LEAST_SECONDS = 1.0
"""Seconds for which a list is used at least, also if the upstream says that it is out of date at once."""

_LISTS = ("tools", "resources", "prompts")


@public("funcmcp.upstreams")
class Upstream(RemoteProvider):
    """The features of another server.

    Args:
        target: The server, as for `funcmcp.client.Client`: a URL, an HTTPEndpoint, a StdioCommand, another MCPServer or
            a Transport.
        auth: Who calls the server: a function of the principal, or None for an anonymous caller, that returns headers
            of requests and may be async; or `static`, `client_credentials`, `token_exchange`, `on_behalf_of`,
            `from_sign_in` or `ask_user`. It is for URLs. None: requests have the credentials of *target* only. No
            header of a client is ever passed on.
        name: The name in errors, the log, metrics and the page. None for the host, the command or the server's name.
        sessions: Which requests share a session of an upstream that has sessions: one of a revision before 2026-07-28,
            and one of both eras for clients of these revisions. ``"client"`` gives each session of a client one of its
            own, and clients without sessions one for each principal, or for each address without credentials.
            ``"call"`` begins one for each call. ``"shared"`` has one for all callers, who see each other's state there;
            with an upstream of both eras it uses 2026-07-28, which has none.
        optional: Whether the server is ready (``/readyz``) while the upstream is away, and answers with an empty list
            if it has no other features.
        timeouts: Seconds that the upstream may take.
        limits: Sessions and processes of the upstream.
        only: The features that are used: names and URIs, with ``*`` and ``?`` as wildcards, or a function that gets a
            definition and returns True. By default all of them.
        pinned: A file of ``funcmcp pin``. Definitions that differ from those in the file are hidden, and reported.
        short_names: Whether names of more than 64 characters, which most models refuse, are cut and get a hash.
        instructions: Whether the server's instructions are added to those of this server, with its name.
        skills: Whether the skills of the server, which are instructions for the model, are skills of this server, too.
        era: ``"handshake"`` sends all requests in sessions, also those of clients of 2026-07-28; ``"newest"`` sends all
            in the newest revision that the server speaks. By default a client of an older revision has a session, if
            the server begins one.
        client_info: How this server introduces itself to the other one: an Implementation of the specification, with
            ``name`` and ``version``. By default it is "funcmcp".

    Raises:
        TypeError: *auth* is not a function, *only* is neither a list of names nor a function, *timeouts* is not an
            `UpstreamTimeouts`, or *limits* not an `UpstreamLimits`.
        ValueError: The URL is not valid, *sessions* is none of the three, *era* is neither of the two, *client_info*
            has no name or version, there is *auth* for something else than a URL, or for an endpoint with `sign_in`, or
            the file of *pinned* is not one of ``funcmcp pin``.
        OSError: The file of *pinned* can't be read.

    Example:
        ```python
        mcp.mount(Upstream("https://example.com/mcp", only=["search", "get_*"]), prefix="docs")
        ```
    """

    _pause = 0.0
    """Seconds for which the lists are used at least, because of the work that they were."""

    names_instructions: bool = True  # before its instructions, if they are added

    def __init__(  # noqa: PLR0913 - keyword-only options, most upstreams need none or one
        self,
        target: Target,
        *,
        auth: UpstreamAuth | AuthFunction | None = None,
        name: str | None = None,
        sessions: SessionMode = "client",
        optional: bool = False,
        timeouts: UpstreamTimeouts | None = None,
        limits: UpstreamLimits | None = None,
        only: Only | None = None,
        pinned: str | Path | None = None,
        short_names: bool = False,
        instructions: bool = False,
        skills: bool = False,
        era: Era | None = None,
        client_info: Mapping[str, Any] | None = None,
    ) -> None:
        _check_options(sessions, era, client_info, timeouts, limits)
        self._auth = None if auth is None else auth_of(auth)
        if skills:
            self.components: frozenset[str] = RemoteProvider.components | {"skill"}
        self.per_caller: bool = self._auth is not None and self._auth.per_caller
        self._work = ListWork()
        self._changes = UpstreamChanges(self._announced, self.resource_updated, self._lost, self._silent, self._work)
        self._links = Links(
            target,
            auth=self._auth,
            on_message=self._changes.received,
            changes=self._changes,
            name=name,
            sessions=sessions,
            optional=optional,
            timeouts=timeouts,
            limits=limits,
            era=era,
            client_info=client_info,
        )
        self._forwarding = Forwarding(self._links)
        self.name: str = self._links.name
        self.is_optional: bool = optional
        self.adds_instructions: bool = instructions
        self.caching: Caching = Caching()
        self._selection = Selection(only, self.name)
        self._pins = None if pinned is None else Pins(pinned, self.name)
        self._name_lengths = NameLengths(self.name, shortens=short_names)
        reader = DefinitionReader(self.name, self._work, skills=skills)
        self._features = UpstreamFeatures(
            self, reader, self._links, self._forwarding, choose=self._chosen, watch=self._watch
        )

    @property
    def routes(self) -> Sequence[CustomRoute]:
        """The routes that the server gets with the upstream."""
        return () if self._auth is None else self._auth.routes

    @property
    def status(self) -> UpstreamStatus:
        """Whether the upstream is connected, and since when and why it is away."""
        return self._links.health.status

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The Implementation of the server; empty before the first list and before `connect`."""
        return {} if self._features.facts is None else self._features.facts.info

    @property
    def server_capabilities(self) -> Mapping[str, Any]:
        """The capabilities of the server; empty before the first list and before `connect`."""
        return {} if self._features.facts is None else self._features.facts.capabilities

    @property
    def offered(self) -> frozenset[str] | None:
        """The names of the capabilities that the server has; None as long as it has never answered."""
        if self._features.facts is None:
            return None
        names = frozenset(self._features.facts.capabilities)
        if declared_settings(self._features.facts.capabilities, SKILLS) is not None:
            names |= {"skills"}
        return names | {"subscriptions"} if self._features.reports_resources else names

    @property
    def is_away(self) -> bool:
        """Whether the server can't be reached, which the log has said."""
        return self._links.health.is_away

    @property
    def server_instructions(self) -> str | None:
        """The instructions of the server for the model; None if there are none, and before the first list."""
        return None if self._features.facts is None else self._features.facts.instructions

    async def connect(self) -> None:
        """Connect to the server before its features are needed; raise ClientError or MCPError if that fails."""
        await self._features.connect()

    async def list(self, caller: Principal | None) -> Iterable[AnyFeature]:
        """Return the features of the other server."""
        earlier = self._work.seconds
        try:
            features = await self._features.read(caller)
        except Exception as error:
            self._links.health.listed(f"{type(error).__name__}: {error}")
            raise
        self._links.health.listed(None)
        self.caching = self._features.caching
        self._pause = self._work.pause_after(earlier)
        self.refresh = self._seconds_until_refresh()
        return features

    def unlisted(self, uri: str) -> Resource | None:
        """Return a resource for a URI that the server does not list, unless only chosen resources may be read."""
        if self._pins is not None or not self._selection.includes_key(uri):
            return None
        return self._features.unlisted(uri)

    def added_instructions(self) -> str | None:
        """Return the instructions of the server, by default with its name; None if they differ from the pinned ones."""
        text = self.server_instructions
        if text is None or (self._pins is not None and not self._pins.allows_instructions(text)):
            return None
        return f"Instructions of the server {self.name}:\n\n{text}" if self.names_instructions else text

    def last_transforms(self) -> Sequence[AnyTransform]:
        """Return what looks at the length of names."""
        return [self._name_lengths]

    async def check(self) -> bool:
        """Return whether the other server can be reached; raise UpstreamError. It is True if it is optional."""
        return await self._links.check()

    def attach(self, services: Any, on_change: Callable[[], None], on_resource: Callable[[str], None]) -> None:
        """Close the connections when the server stops, and the sessions of a client when it ends its own."""
        super().attach(services, on_change, on_resource)
        if self._auth is not None:
            self._auth.attach(services)
        services.lifespans.add(self._open_while_serving, None)
        runtime: ServerRuntime = services.runtime
        runtime.upstreams.append(self)
        self._links.attach(runtime)

    async def _open_while_serving(self) -> AsyncIterator[None]:
        runtime: ServerRuntime = self.services.runtime
        endings = runtime.top.server.client_endings
        if self._client_ended not in endings:
            endings.append(self._client_ended)
        self._links.begin()
        try:
            yield
        finally:
            self._forwarding.close()
            await self._links.aclose()

    async def _watch(self, uri: str, context: RequestContext) -> Callable[[], None]:
        """Watch a resource for a client; return the function that ends it."""
        return await self._changes.watch(self._links, uri, context)

    def _client_ended(self, client: ConnectedClient) -> None:
        """End the sessions of a client that has ended its session or its connection."""
        subject = subject_of_client(client)
        if subject is not None:
            self._links.end(subject)

    async def definitions(self) -> tuple[ServerFacts, UpstreamLists]:
        """Return what the server says about itself, and all its definitions; raise ClientError or MCPError."""
        return await self._features.definitions()

    async def aclose(self) -> None:
        """Close the connections, if the server that has this upstream does not run."""
        await self._links.aclose()

    async def _chosen(self, lists: UpstreamLists) -> UpstreamLists:
        """Return the definitions that become features."""
        lists = self._selection.chosen(lists)
        if self._pins is not None:
            lists, differences = await self._pins.allowed(lists, self._selection.includes_key, self._work)
            self._links.health.pin_mismatch(differences)
        return lists

    def _announced(self) -> None:
        self._features.forget()
        self.changed()

    def _lost(self, owner: str | None, seconds: float) -> None:
        """Count lists as possibly changed, because the upstream could not announce changes."""
        self._features.forget()
        if self.on_doubt is not None:
            self.on_doubt(owner, seconds)

    def _silent(self) -> None:
        """Read the lists from time to time, because the upstream can't announce changes."""
        self.refresh = self._seconds_until_refresh()

    def _seconds_until_refresh(self) -> float | None:
        """Return after how many seconds the lists are read again; None if the server can announce changes."""
        ttl = self._features.caching.ttl
        if ttl is not None:
            return max(ttl / 1000, _LEAST_SECONDS, self._pause)
        declared = [self.server_capabilities.get(name) for name in _LISTS]
        announces = all(value.get("listChanged") is True for value in declared if isinstance(value, dict))
        return None if announces and not self._changes.is_silent else _UNANNOUNCED_SECONDS


def _check_types(timeouts: object, limits: object) -> None:
    """Raise TypeError for an option of `Upstream` that is not an object of its class."""
    if not isinstance(timeouts, UpstreamTimeouts | None):
        example = "UpstreamTimeouts(request=60)"
        raise TypeError(f"timeouts must be an UpstreamTimeouts, such as {example}; got {timeouts!r:.60}.")
    if not isinstance(limits, UpstreamLimits | None):
        raise TypeError(f"limits must be an UpstreamLimits, such as UpstreamLimits(processes=8); got {limits!r:.60}.")


def _check_options(
    sessions: str, era: str | None, client_info: Mapping[str, Any] | None, timeouts: object, limits: object
) -> None:
    """Raise ValueError or TypeError for an option of `Upstream` that is not valid."""
    _check_types(timeouts, limits)
    if sessions not in ("client", "shared", "call"):
        raise ValueError(f"sessions must be 'client', 'shared' or 'call'; got {sessions!r}.")
    if era not in (None, "handshake", "newest"):
        raise ValueError(f"era must be 'handshake', 'newest' or None; got {era!r}.")
    if client_info is not None and not all(isinstance(client_info.get(name), str) for name in ("name", "version")):
        raise ValueError("client_info needs a name and a version, such as {'name': 'gateway', 'version': '1.0'}.")

"""`Provider`, the base class of what computes features at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.catalog.transformed import AnyFeature
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute


@public("funcmcp.providers")
class Provider:
    """Computes features at run time: from a database, files, plugins, a document or another server.

    A subclass overrides `list`, and `get` if it can look up one feature without all others. Add it with
    ``mcp.add_provider(provider)``. See docs/guides/providers.md.

    Attributes:
        per_caller: Whether the features depend on the caller. Otherwise *caller* is None in `list` and `get`.
        refresh: Seconds after which the list is read again; None for only when `changed` was called. The list of a
            caller is read again after 60 seconds by default.
        components: The kinds of features that the provider may have.
        per_request: Whether the features depend on the request, so that nothing is remembered of `list` and `get`. It
            includes `per_caller`.
        is_quick: Whether a call waits while a list that is due is read again. Otherwise it is read beside the call,
            which runs the feature of the last list.
    """

    per_caller: bool = False
    refresh: float | None = None
    per_request: bool = False
    is_quick: bool = False
    components: frozenset[str] = frozenset({"tool", "resource", "template", "prompt"})

    @property
    def routes(self) -> Sequence[CustomRoute]:
        """The custom routes that the server gets with the provider."""
        return ()

    _on_change: Callable[[], None] | None = None
    _on_resource: Callable[[str], None] | None = None
    _services: Services | None = None

    async def list(self, caller: Principal | None) -> Iterable[AnyFeature]:
        """Return all features. An exception is logged, and the features of the last list remain.

        Args:
            caller: The caller of the request; None for anonymous callers, and for all callers unless `per_caller`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method list.")

    async def get(self, kind: type, key: str, caller: Principal | None) -> AnyFeature | None:
        """Return one feature, or None if there is none.

        It is called for a request that names a feature before the list has been read.

        Args:
            kind: `Tool`, `Resource` or `Prompt`.
            key: The name or URI.
            caller: As for `list`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method get.")

    def changed(self) -> None:
        """Say that `list` returns other features than before. Clients are notified. Can be called from any thread."""
        if self._on_change is not None:
            self._on_change()

    def resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribed to a resource of the provider. Can be called from any thread."""
        if self._on_resource is not None:
            self._on_resource(uri)

    @property
    def services(self) -> Services:
        """The services of the server, for functions that become features; raises RuntimeError before it is added."""
        if self._services is None:
            raise RuntimeError(f"{type(self).__name__} does not belong to a server yet. Call mcp.add_provider first.")
        return self._services

    def attach(self, services: Any, on_change: Callable[[], None], on_resource: Callable[[str], None]) -> None:
        """Connect the provider with the server that it is added to; raise RuntimeError if it has one already."""
        if self._services is not None:
            raise RuntimeError(f"This {type(self).__name__} belongs to a server already. Create another one.")
        self._services, self._on_change, self._on_resource = services, on_change, on_resource

"""The methods of FastMCP's server for providers: ``add_provider``, ``providers`` and ``local_provider``."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._app.mcp_server import MCPServer
from funcmcp._compat.context import context_variable
from funcmcp._providers.provider import Provider as NativeProvider
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.calls.resolving import resolving
from funcmcp._server.connections.client import ConnectedClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from funcmcp._auth.principal import Principal
    from funcmcp._compat.provider import Provider
    from funcmcp._compat.provider_features import ProvidedComponents


def add_provider(server: Any, provider: Any, namespace: str | None, transforms: Any) -> None:
    """Add a provider of FastMCP or funcmcp, or another server, to a server.

    Raises:
        TypeError: The value is none of them.
        ValueError: The namespace is malformed.
    """
    from funcmcp._compat.provider import Provider  # noqa: PLC0415 - few servers have providers
    from funcmcp._compat.transforms import native_transforms  # noqa: PLC0415 - as above

    transforms = native_transforms(transforms)
    if isinstance(provider, MCPServer):
        server.mount(provider, namespace, transforms=transforms)
    elif isinstance(provider, NativeProvider):
        server.add_native_provider(provider, namespace, transforms)
    elif isinstance(provider, Provider):
        provider.add_to(server, namespace, transforms)
        server.added_providers.append(provider)
    elif isinstance(provider, type):
        raise TypeError(f"mcp.add_provider takes an object, not a class. Write {provider.__name__}(...).")
    else:
        raise TypeError(
            f"mcp.add_provider takes a Provider of funcmcp.compat or funcmcp.providers, not {type(provider).__name__}. "
            "Write mcp.mount(server) for another server."
        )


def add_components(server: Any, provider: Provider, namespace: str | None, transforms: Any) -> None:
    """Ask a provider for components in each request to a server."""
    from funcmcp._compat.provider import Provider  # noqa: PLC0415 - as above
    from funcmcp._providers.namespace import Namespace  # noqa: PLC0415 - as above

    all_transforms = list(transforms)
    if namespace:
        all_transforms.append(Namespace(namespace))
    provided(server).add(provider, all_transforms)
    if type(provider).lifespan is not Provider.lifespan:

        def lifespan() -> AbstractAsyncContextManager[None]:
            return provider.lifespan()

        server.add_lifespan(lifespan)


def provided(server: Any) -> ProvidedComponents:
    """Return what asks FastMCP's providers for a server."""
    from funcmcp._compat.provider_features import ProvidedComponents  # noqa: PLC0415 - few servers have providers

    components: ProvidedComponents | None = server.provided_components
    if components is None:
        components = server.provided_components = ProvidedComponents(server.feature_of, partial(_in_context, server))
        server.add_native_provider(components, None, ())
    return components


class _LookupContext(RequestContext):
    """The context of a request whose feature is looked up, before its handler runs. Its client can't be asked.

    Args:
        caller: The caller.
        arguments: Those of `RequestContext`.
    """

    __slots__ = ("_caller",)

    def __init__(self, caller: Principal | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._caller = caller

    @property
    def principal(self) -> Principal | None:
        """The caller."""
        return self._caller


@contextmanager
def _in_context(server: Any, caller: Principal | None) -> Iterator[None]:
    """Set the context of the request whose feature is looked up, until the block ends, unless a request runs."""
    request = resolving.get()
    if context_variable.get() is not None or request is None:
        yield
        return
    client = ConnectedClient(server.newest_revision, {}, {})
    context = _LookupContext(caller, request.routed, client, ClosedChannel(), request.http)
    with server.active_context(context):
        yield

"""`MCPServer.add_provider`: connects providers with a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._providers.mounted_callers import MountedCallers
from funcmcp._providers.namespace import Namespace
from funcmcp._providers.provided import Providers
from funcmcp._providers.provider import Provider
from funcmcp._providers.remote import RemoteProvider
from funcmcp._server.catalog.transformed import listed_transforms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._server.catalog.transformed import AnyTransform
    from funcmcp._serving.composition import ServerRuntime


def add_provider(
    runtime: ServerRuntime, provider: Provider, prefix: str | None, transforms: Sequence[AnyTransform]
) -> None:
    """Add a provider to a server; see `MCPServer.add_provider`."""
    _check_provider(provider)
    all_transforms = listed_transforms(transforms)
    if prefix is not None:
        all_transforms.append(Namespace(prefix))
    if isinstance(provider, RemoteProvider):
        all_transforms += provider.last_transforms()
    _providers_of(runtime).add(provider, all_transforms, runtime.services)
    for route in provider.routes:
        runtime.add_route(route)


def _check_provider(provider: object) -> None:
    """Raise TypeError for a value that is not a provider."""
    if isinstance(provider, type):
        raise TypeError(f"mcp.add_provider takes an object, not a class. Write {provider.__name__}(...).")
    if not isinstance(provider, Provider):
        raise TypeError(
            f"mcp.add_provider takes a funcmcp.providers.Provider, not {type(provider).__name__}. "
            "Write mcp.mount(server) for another MCPServer."
        )


def follow(
    above: ServerRuntime,
    mounted: ServerRuntime,
    copy: Callable[[Any], Any],
    transforms: Sequence[AnyTransform],
    position: tuple[int, ...],
) -> None:
    """Serve the features of a mounted server's providers in the server above.

    Args:
        above: The server above.
        mounted: The mounted server.
        copy: Returns what the server above has of a feature.
        transforms: Those of the mount.
        position: That of the mount.
    """
    callers = MountedCallers(above.server, _providers_of(mounted), copy, transforms, position)
    _providers_of(above).add_mounted(mounted.server, callers, transforms)


def _providers_of(runtime: ServerRuntime) -> Providers:
    providers = runtime.server.provided
    if not isinstance(providers, Providers):
        providers = Providers(runtime.server, runtime.publish)
        runtime.server.provide(providers)
        for follow_mounted in runtime.on_provider:
            follow_mounted()
    return providers

"""`MCPServer(extensions=)` and `MCPServer.method`: adds extensions and their methods to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.features.extensions import Extension, MethodOptions, checked_method, make_method, methods_of
from funcmcp._authoring.features.options import checked_options
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.dispatch import Server


def add_extensions(server: Server, services: Services, extensions: Iterable[Extension]) -> None:
    """Declare extensions, and serve their methods; see `MCPServer`."""
    if isinstance(extensions, Extension):
        raise TypeError(f"extensions must be a list. Write extensions=[...] around {extensions.identifier}.")
    declared = server.catalog.extensions
    for extension in extensions:
        if not isinstance(extension, Extension):
            raise TypeError(f"extensions must be a list of Extension(...) objects; got {type(extension).__name__}.")
        if extension.identifier in declared:
            raise RegistrationError(f"The extension {extension.identifier} is there twice. Remove one of the two.")
        declared[extension.identifier] = extension.settings
        for function, name, options in methods_of(extension):
            add_method(server, services, function, name, options)


def add_method(
    server: Server, services: Services, function: Callable[..., Any], name: str, options: MethodOptions
) -> None:
    """Serve a method of an extension; see `MCPServer.method`."""
    options = checked_options(options, MethodOptions)
    checked_method(name, options)
    extension = options.get("extension")
    if extension is not None and extension not in server.catalog.extensions:
        raise RegistrationError(
            f"The extension {extension!r:.80} of {name} is not one of the server. "
            f"Write MCPServer(..., extensions=[Extension({extension!r:.80})])."
        )
    server.catalog.add(make_method(function, name, options, services))

"""What programs read of the private attribute ``_mcp_server``, the low-level server of the originals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._compat.context import context_variable

if TYPE_CHECKING:
    from funcmcp._app.mcp_server import MCPServer


class LowLevelServer:
    """The name, the version, the instructions and the running request of a server.

    Args:
        server: The server.
    """

    def __init__(self, server: MCPServer) -> None:
        self._server = server

    @property
    def name(self) -> str:
        """The server's name."""
        return self._server.name

    @property
    def version(self) -> str:
        """The server's version."""
        return self._server._server.options.version  # noqa: SLF001 - a part of MCPServer

    @property
    def instructions(self) -> str | None:
        """The guidance for the client's model."""
        return self._server._server.options.instructions  # noqa: SLF001 - a part of MCPServer

    @property
    def request_context(self) -> Any:
        """The request that runs now, with its session and the lifespan's value.

        Raises:
            LookupError: No request runs.
        """
        context = context_variable.get()
        if context is None:
            raise LookupError("No request runs here.")
        return context.request_context

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"funcmcp has no low-level server, so _mcp_server has no {name!r}. Use the methods of the "
            "server itself, or add_middleware."
        )

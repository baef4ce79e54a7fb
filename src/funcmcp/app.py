"""`MCPServer`: what an author holds in hand. It puts the rooms together and is an ASGI application itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp.adapters.asgi import ASGIApplication
from funcmcp.adapters.asgi_websocket import serve_websocket
from funcmcp.authoring.services import Services
from funcmcp.authoring.tools import ToolOptions, make_tool, tools_of
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.dispatch import Server
from funcmcp.server.options import ServerOptions
from funcmcp.server.registry import RegistrationError
from funcmcp.sessions.memory import MemorySessions
from funcmcp.sessions.seal import KeyRing
from funcmcp.transports.http.http_sse import HTTPSSE
from funcmcp.transports.http.options import HTTPOptions
from funcmcp.transports.http.streamable import StreamableHTTP
from funcmcp.transports.websocket import WebSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, Unpack

    from funcmcp.adapters.asgi import Receive, Scope, Send
    from funcmcp.authoring.tools import ToolKeywords
    from funcmcp.server.options import ServerKeywords
    from funcmcp.sessions.store import SessionStore
    from funcmcp.transports.http.messages import Exchange

F = TypeVar("F", bound="Callable[..., Any]")


class MCPServer(ASGIApplication):
    """An MCP server, and the ASGI application that serves it: ``uvicorn server:mcp``.

    Args:
        name: the program's name, as clients see it.
        path: where the endpoint is.
        revisions: dates of the protocol revisions to speak; all that funcmcp knows by default.
        http: options of Streamable HTTP: hosts, origins, body size.
        sessions: remembers sessions of the handshake era; in this process's memory by default.
        sse: where the endpoint of HTTP+SSE (2024-11-05) is, such as "/sse"; None for no such endpoint.
        websocket: where the endpoint for WebSockets is, such as "/ws"; None for no such endpoint.
        options: what the server says of itself, and how it answers lists: see `ServerOptions`.

    Raises:
        ValueError: a revision is unknown, or the path does not begin with a slash.
    """

    def __init__(  # noqa: PLR0913 - one for each thing that an author may choose, by name
        self,
        name: str,
        *,
        path: str = "/mcp",
        revisions: Sequence[str] = tuple(REVISIONS),
        http: HTTPOptions | None = None,
        sessions: SessionStore | None = None,
        sse: str | None = None,
        websocket: str | None = None,
        **options: Unpack[ServerKeywords],
    ) -> None:
        unknown = [date for date in revisions if date not in REVISIONS]
        if unknown or not revisions:
            raise ValueError(f"revisions must be some of {', '.join(REVISIONS)}; got {', '.join(unknown) or 'none'}.")
        self.path = _checked("path", path)
        self.services = Services()
        """What functions need and callers don't send: register it here, by type."""
        known = [REVISIONS[date] for date in sorted(revisions)]
        self.server = Server(ServerOptions(name, **options), known, keys=KeyRing())
        chosen = http or HTTPOptions()
        store = MemorySessions() if sessions is None else sessions
        exchange: Exchange = StreamableHTTP(self.server, store, chosen, path=path)
        if sse is not None:
            exchange = HTTPSSE(self.server, chosen, path=_checked("sse", sse), otherwise=exchange)
        super().__init__(exchange)
        websocket = None if websocket is None else _checked("websocket", websocket)
        self._websocket = WebSocket(self.server, chosen, path=websocket)

    @property
    def name(self) -> str:
        """The program's name."""
        return self.server.options.name

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, /, **options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Make a tool of a function; use it as ``@mcp.tool``, ``@mcp.tool("name", ...)`` or ``mcp.tool(function)``.

        The function stays callable as it was. Its name, docstring and type hints become the tool's name, title,
        description and schemas; keyword options override them.

        Raises:
            RegistrationError: the function can't be a tool, or the name is taken.
        """
        if callable(function):
            self.server.tools.add(make_tool(function, ToolOptions(**options), self.services))
            return function
        if function is not None:
            if "name" in options:
                raise RegistrationError("Give the tool's name once: by position or as name=.")
            options["name"] = function
        chosen = ToolOptions(**options)

        def register(decorated: F) -> F:
            self.server.tools.add(make_tool(decorated, chosen, self.services))
            return decorated

        return register

    def add(self, owner: object) -> None:
        """Add every method of a class or an object that is marked with ``@funcmcp.tool``.

        A class is constructed for each request, its constructor's parameters injected from `services`.

        Raises:
            RegistrationError: nothing in it is marked, or a name is taken.
        """
        tools = tools_of(owner, self.services)
        if not tools:
            raise RegistrationError(f"{owner!r} has no method marked with @funcmcp.tool.")
        for tool in tools:
            self.server.tools.add(tool)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; raise KeyError if there is none of that name."""
        self.server.tools.remove(name)

    def run(self, transport: Literal["http", "stdio"] = "http", *, host: str = "127.0.0.1", port: int = 8000) -> None:
        """Serve until the process is told to stop.

        Args:
            transport: "http" for Streamable HTTP, which needs ``pip install "funcmcp[server]"``; "stdio" for one
                client on this process's stdin and stdout, until it closes stdin.
            host: the address that HTTP listens on.
            port: the port that HTTP listens on; 0 for a free one.

        Raises:
            ValueError: there is no such transport.
        """
        if transport == "stdio":
            from funcmcp.transports import stdio  # noqa: PLC0415 - loaded by those who serve with it

            stdio.run(self.server, self.aclose)
            return
        if transport != "http":
            raise ValueError(f"The transport must be 'http' or 'stdio', not {transport!r}.")
        from funcmcp.adapters.uvicorn import announce, serve  # noqa: PLC0415 - vendor code is loaded by those who serve with it

        serve(self, host=host, port=port, on_ready=lambda origin: announce(origin + self.path))

    async def aclose(self) -> None:
        """Close the services that live as long as the server."""
        await self.services.aclose()

    async def serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scope of an ASGI server that is not HTTP."""
        if scope["type"] == "websocket":
            await serve_websocket(self._websocket, scope, receive, send)
        else:
            await super().serve_other(scope, receive, send)


def _checked(name: str, path: str) -> str:
    """Return a path; raise ValueError unless it begins with a slash."""
    if not path.startswith("/"):
        raise ValueError(f"{name} must begin with a slash, such as '/mcp'; got {path!r}.")
    return path

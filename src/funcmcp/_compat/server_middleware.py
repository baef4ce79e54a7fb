"""The methods of `FastMCP` that add middleware, and those that answer requests without a client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from funcmcp._compat.context import context_variable
from funcmcp._compat.middleware_adapters import native_middleware
from funcmcp._compat.middleware_switch import middleware_of
from funcmcp._compat.notification_hooks import Handler, Notifications
from funcmcp._compat.overrides import METHODS, OverriddenMethods, check_overrides, direct_calls, pending_of
from funcmcp._compat.transports import ServerTransports
from funcmcp._compat.unasked_spans import UnaskedSpans
from funcmcp._compat.visibility import component_rule
from funcmcp._objects.mappings import without_none
from funcmcp._protocol.methods import FEATURE_LISTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.objects import CallToolResult, GetPromptResult, ReadResourceResult


class MiddlewareList(Sequence[Any]):
    """The middleware of a server in the order in which it was added, as a sequence to which programs append.

    Args:
        add: Adds a middleware to the server.
    """

    def __init__(self, add: Callable[[Any], None]) -> None:
        self.items: list[Any] = []
        self._add = add

    def append(self, middleware: Any) -> None:
        """Add middleware inside the existing ones."""
        self._add(middleware)

    def extend(self, middleware: Iterable[Any]) -> None:
        """Add several."""
        for item in middleware:
            self._add(item)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return self.items[index]


class LowLevelServer:
    """What programs read of the originals' low-level server: ``_mcp_server``, or ``_lowlevel_server`` of the SDK 2.x.

    It is also a transport of the official SDK's client 2.x, which connects to the server in memory:
    ``mcp.client.Client(server._mcp_server)``.

    Args:
        server: The server.
    """

    __slots__ = ("_connection", "_server")

    def __init__(self, server: ServerMiddleware) -> None:
        self._server = server

    @property
    def funcmcp_server(self) -> ServerMiddleware:
        """The server for which this object stands."""
        return self._server

    async def __aenter__(self) -> Any:
        """Connect a client, and return its two streams."""
        from funcmcp._compat.original_clients import client_streams  # noqa: PLC0415 - tests of authors need it

        self._connection = client_streams(self._server)
        return await self._connection.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        """Close the connection."""
        return await self._connection.__aexit__(*error)

    @property
    def name(self) -> str:
        """The server's name."""
        return str(self._described("name"))

    @name.setter
    def name(self, name: str) -> None:
        self._describe("name", name)

    @property
    def version(self) -> str:
        """The server's version."""
        return str(self._described("version"))

    @version.setter
    def version(self, version: str | None) -> None:
        self._describe("version", version)

    @property
    def website_url(self) -> str | None:
        """The URL of the server's website."""
        url: str | None = self._described("websiteUrl")
        return url

    @website_url.setter
    def website_url(self, url: str | None) -> None:
        self._describe("websiteUrl", url)

    @property
    def instructions(self) -> str | None:
        """The guidance for the client's model."""
        return self._server._server.results.instructions  # noqa: SLF001 - a part of the server

    @instructions.setter
    def instructions(self, text: str | None) -> None:
        self._server._server.results.instructions = text  # noqa: SLF001 - a part of the server

    def _described(self, member: str) -> Any:
        return self._server._server.results.server_info.get(member)  # noqa: SLF001 - a part of the server

    def _describe(self, member: str, value: str | None) -> None:
        """Change what clients are told about the server; None is what they are told without a choice."""
        server = self._server._server  # noqa: SLF001 - a part of the server
        value = server.options.implementation().get(member) if value is None else value
        server.results.describe_as(without_none({**server.results.server_info, member: value}))

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

    def add_notification_handler(
        self, method: str, params_type: Any, handler: Callable[[Any, Any], Awaitable[None]]
    ) -> None:
        """Call a function ``async (context, params)`` for each notification of a method."""
        self._server.notifications.handlers[method] = Handler(params_type, handler)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"funcmcp has no low-level server, so what stands in its place has no {name!r}. Use the methods of the "
            "server itself, or add_middleware. In tests, pass the server itself to the client."
        )


class ServerMiddleware(ServerTransports):
    """A server with FastMCP's middleware."""

    _adapt_middleware: Callable[[Any], Any] = staticmethod(native_middleware)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__module__.startswith("funcmcp."):
            check_overrides(cls, ServerMiddleware)

    def _begin_middleware(self, telemetry_mode: str | None = None) -> None:
        """Add the middleware that calls methods which a subclass overrides, and that makes spans.

        Args:
            telemetry_mode: FastMCP's option.
        """
        self._spans = UnaskedSpans(self.name, telemetry_mode)
        self._server.add_middleware(self._spans, is_outermost=True)
        self._middleware_list = MiddlewareList(self.add_middleware)
        self._injected_tools: set[str] = set()
        self.notifications: Notifications = Notifications(self)
        self._server.notification_listeners.append(self.notifications.receive)
        overridden = OverriddenMethods(self)
        self._overrides_lists = not FEATURE_LISTS.keys().isdisjoint(overridden.names)
        if overridden.names:
            super().add_middleware(native_middleware(overridden))

    @property
    def middleware(self) -> MiddlewareList:
        """The middleware, to which programs append."""
        return self._middleware_list

    @property
    def changes_lists(self) -> bool:
        """Whether middleware or overridden methods, also those of mounted servers, may change the server's lists."""
        if self._middleware_list or self._overrides_lists:
            return True
        return any(list_filter.is_active() for list_filter in self._server.list_filters)

    def add_middleware(self, middleware: Any) -> None:
        """Add middleware: an object with hooks such as ``on_call_tool``, or a middleware of `funcmcp.middleware`."""
        is_native = getattr(middleware, "__module__", "").startswith(("funcmcp.middleware", "funcmcp._middleware"))
        super().add_middleware(middleware if is_native else self._adapt_middleware(middleware))
        if not is_native and self._adapt_middleware is native_middleware:
            self.notifications.middleware.append(middleware)
        self._middleware_list.items.append(middleware)
        if hasattr(middleware, "added_to"):
            middleware.added_to(self)

    def inject_tools(self, tools: Iterable[Any]) -> None:
        """Register tools that replace others of their names, also later ones, and that no rule hides.

        Args:
            tools: The tools. One whose name was injected before is left out.
        """
        for tool in tools:
            if tool.name in self._injected_tools:
                continue
            if tool.name in self._server.catalog.tools:
                self.remove_tool(tool.name)
            self.register(tool)
            self._injected_tools.add(tool.name)
        self._show_injected()

    def _show_injected(self) -> None:
        """Show the injected tools in spite of the rules before."""
        if self._injected_tools:
            conditions = {"names": self._injected_tools, "components": {"tool"}}
            self._server.catalog.set_visibility(component_rule(conditions, shows=True))

    def trace(self, *arguments: Any, **options: Any) -> None:
        """Make spans of requests, as `MCPServer.trace` of funcmcp does, in place of those that are made unasked."""
        self._spans.is_off = True
        super().trace(*arguments, **options)

    def has_injected(self, component: Any) -> bool:
        """Return whether an injected tool has the name of a component, and so stays in its place."""
        return component.kind == "tool" and component.name in self._injected_tools

    def register(self, component: Any) -> Any:
        """Register a component."""
        raise NotImplementedError

    @property
    def _mcp_server(self) -> LowLevelServer:
        return LowLevelServer(self)

    # What answers requests in the originals: a subclass that overrides it calls it with super()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *_: Any,
        run_middleware: bool = True,
        **options: Any,
    ) -> CallToolResult:
        """Call a tool of this server without a client; see `funcmcp.MCPServer.call_tool`.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            run_middleware: Whether the call passes the middleware.
            options: ``principal`` and ``raise_on_error``.
        """
        with middleware_of(self, runs=run_middleware), direct_calls(self):
            return await super().call_tool(name, arguments, **options)

    async def read_resource(self, uri: Any, *, run_middleware: bool = True, **options: Any) -> ReadResourceResult:
        """Read a resource of this server without a client; see `funcmcp.MCPServer.read_resource`."""
        pending = pending_of(self, "resources/read")
        if pending is not None:
            answer: ReadResourceResult = await pending(uri=str(uri))
            return answer
        with middleware_of(self, runs=run_middleware), direct_calls(self):
            return await super().read_resource(str(uri), **options)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *_: Any,
        run_middleware: bool = True,
        **options: Any,
    ) -> GetPromptResult:
        """Get a prompt of this server without a client; see `funcmcp.MCPServer.get_prompt`."""
        pending = pending_of(self, "prompts/get")
        if pending is not None:
            answer: GetPromptResult = await pending(name=name, arguments=dict(arguments or {}))
            return answer
        with middleware_of(self, runs=run_middleware), direct_calls(self):
            return await super().get_prompt(name, arguments, **options)

    async def _direct_list(
        self, method: str, principal: Principal | None, *, run_middleware: bool = True, **options: Any
    ) -> list[Any]:
        pending = pending_of(self, method)
        if pending is not None:
            page: list[Any] = await pending()
            return page
        with middleware_of(self, runs=run_middleware), direct_calls(self):
            return await super()._direct_list(method, principal, **options)


def _protocol_method(method: str, public: str) -> Any:
    """Return a private method of the originals, which subclasses override and call with super()."""

    async def answer(self: Any, *arguments: Any, **named: Any) -> Any:
        pending = pending_of(self, method)
        if pending is None:
            return await getattr(self, public)(*arguments, **named)
        return await pending.with_arguments(*arguments, **named)

    return answer


for _name, (_method, _public) in METHODS.items():
    if _name.startswith("_"):
        setattr(ServerMiddleware, _name, _protocol_method(_method, _public))

"""Extensions of the protocol in the classes of the official SDK 2.x: `Extension`, its bindings, and MCP Apps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.features.extensions import make_method
from funcmcp._compat.annotations import plain
from funcmcp._compat.context import get_context
from funcmcp._compat.editable import model_of
from funcmcp._compat.middleware_adapters import raise_as_mcp_error
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY, MCPError
from funcmcp._protocol.errors import InvalidParams as InvalidParamsError
from funcmcp._protocol.extensions import EXTENSIONS, is_identifier
from funcmcp._protocol.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from funcmcp._server.calls.context import RequestContext


@public("funcmcp.compat.mcp")
@dataclass(frozen=True)
class ToolBinding:
    """A tool that an extension adds.

    Attributes:
        fn: The function.
        meta: The ``_meta`` of the definition.
        kwargs: Other options of the tool.
    """

    fn: Callable[..., Any]
    meta: dict[str, Any] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@public("funcmcp.compat.mcp")
@dataclass(frozen=True)
class ResourceBinding:
    """A resource that an extension adds.

    Attributes:
        resource: The resource.
    """

    resource: Any


@public("funcmcp.compat.mcp")
@dataclass(frozen=True)
class MethodBinding:
    """A method that an extension adds.

    Attributes:
        method: The name.
        params_type: The model of the params.
        handler: Gets the context of the request and the params, and returns the result.
        protocol_versions: The revisions that have the method; None for all that have extensions.

    Raises:
        ValueError: The method is one of the protocol, or *protocol_versions* is empty.
    """

    method: str
    params_type: type[Any]
    handler: Callable[[Any, Any], Awaitable[Any]]
    protocol_versions: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.method in METHODS:
            raise ValueError(
                f"MethodBinding cannot bind spec method {self.method!r}; extension methods are additive. Use "
                "Extension.intercept_tool_call, or middleware of the server, to change what such a method does."
            )
        if self.protocol_versions is not None and not self.protocol_versions:
            raise ValueError(
                f"MethodBinding for {self.method!r} has an empty protocol_versions set, so it could never be served; "
                "use None to admit every version"
            )


@public("funcmcp.compat.mcp")
class Extension:
    """The base class of an extension, which a server takes as ``MCPServer(extensions=[...])``.

    Attributes:
        identifier: The name: a prefix that you own, and a slash, such as ``com.example/search``.

    Raises:
        TypeError: The identifier of a subclass is malformed.
    """

    identifier: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "identifier" in vars(cls):
            check_identifier(cls.identifier, cls.__name__)

    def settings(self) -> dict[str, Any]:
        """Return what the server declares with the extension."""
        return {}

    def tools(self) -> Sequence[ToolBinding]:
        """Return the tools of the extension."""
        return ()

    def resources(self) -> Sequence[ResourceBinding]:
        """Return the resources of the extension."""
        return ()

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods of the extension."""
        return ()

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ARG002 - of subclasses
        """Run around the calls of all tools. ``call_next(ctx)`` returns the result of the call."""
        return await call_next(ctx)


def check_identifier(identifier: object, owner: str) -> None:
    """Raise TypeError for a malformed identifier of an extension, whose class is *owner*."""
    if not isinstance(identifier, str) or not is_identifier(identifier):
        raise TypeError(
            f"{owner}.identifier must be a `vendor-prefix/name` string (reverse-DNS prefix required), got "
            f"{identifier!r}"
        )


@public("funcmcp.compat.mcp")
def require_client_extension(ctx: Any, identifier: str) -> None:
    """Check that the client of a request has declared an extension.

    Args:
        ctx: The context of the request.
        identifier: The name of the extension.

    Raises:
        MCPError: -32021: it has not.
    """
    capabilities = ctx.session.client_capabilities
    declared = getattr(capabilities, "extensions", None)
    if not declared or identifier not in declared:
        raise MCPError(
            MISSING_CLIENT_CAPABILITY,
            f"Client did not declare required extension {identifier!r}",
            {"requiredCapabilities": {"extensions": {identifier: {}}}},
        )


def add_extensions(server: Any, extensions: Iterable[Any]) -> None:
    """Declare extensions of a server, and serve what they add.

    Raises:
        TypeError: An identifier is malformed.
        ValueError: An extension is there twice, or two methods have the same name.
    """
    native = server._server  # noqa: SLF001 - a part of it
    declared = native.catalog.extensions
    names: set[str] = set()
    intercepting: list[Any] = []
    for extension in extensions:
        identifier = getattr(extension, "identifier", None)
        check_identifier(identifier, type(extension).__name__)
        if identifier in names:
            raise ValueError(f"Extension {identifier!r} is already registered")
        names.add(str(identifier))
        for tool in extension.tools():
            server.add_tool(tool.fn, meta=tool.meta, **tool.kwargs)
        for resource in extension.resources():
            server.add_resource(resource.resource)
        for method in extension.methods():
            add_method(server, identifier, method)
        if identifier not in EXTENSIONS:  # which the server declares itself
            declared[str(identifier)] = extension.settings()
        if not _is_inherited(extension):
            intercepting.append(extension)
    for extension in intercepting:
        server.add_middleware(_interceptor(extension))


def _is_inherited(extension: Any) -> bool:
    """Return whether an extension has not written a method ``intercept_tool_call`` itself."""
    method = getattr(type(extension), "intercept_tool_call", None)
    return method is None or getattr(method, "__qualname__", "") == "Extension.intercept_tool_call"


def add_method(server: Any, identifier: Any, method: Any) -> None:
    """Serve a method of an extension; raise ValueError if the server has a method of this name."""
    catalog = server._server.catalog  # noqa: SLF001 - a part of it
    if method.method in catalog.methods:
        raise ValueError(
            f"Extension {identifier!r} binds method {method.method!r}, which is already registered; extension methods "
            "are additive and cannot replace another handler"
        )

    async def handle(request: RequestContext, params: dict[str, Any]) -> dict[str, Any]:
        versions = method.protocol_versions
        if versions is not None and request.client.revision.date not in versions:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", method.method)
        with server._active_context(request):  # noqa: SLF001 - a part of it
            try:
                read = method.params_type.model_validate({**params, "_meta": dict(request.meta)})
            except ValueError as error:
                raise InvalidParamsError("Invalid params") from error
            try:
                result = await method.handler(get_context().request_context, read)
            except Exception as error:  # noqa: BLE001 - it is raised as funcmcp sends it
                raise_as_mcp_error(error)
        wire: dict[str, Any] = plain(result) or {}
        return wire

    def empty() -> dict[str, Any]:
        return {}

    feature = make_method(empty, method.method, {"extension": None}, server._services)  # noqa: SLF001 - a part of it
    catalog.add(replace(feature, handler=handle, interactive=True))


def _interceptor(extension: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return middleware of the SDK that passes calls of tools through an extension."""

    async def intercept(context: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if context.method != "tools/call":
            return await call_next(context)

        async def innermost(_: Any) -> Any:
            result = await call_next(context)
            is_question = result.get("resultType") == "input_required"
            return model_of("InputRequiredResult" if is_question else "CallToolResult", result)

        params = model_of("CallToolRequestParams", dict(context.params))
        return await extension.intercept_tool_call(params, context, innermost)

    return intercept

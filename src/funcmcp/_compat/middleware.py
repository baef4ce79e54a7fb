"""Middleware classes of FastMCP: methods such as ``on_call_tool`` around the requests of their kind.

How it works: `native_middleware` makes one funcmcp middleware of an object. For each request it calls the object with a
`MiddlewareContext`, as FastMCP does. The object's default `__call__` passes the request through its hooks, from the
most general to the most specific one. The innermost ``call_next`` writes the message's members back into the request,
passes it to funcmcp, and decodes the answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp._app.direct_calls import DirectContext
from funcmcp._authoring.results.sdk_results import is_sdk_type
from funcmcp._compat.annotations import plain
from funcmcp._compat.components import ListedTool, with_tags
from funcmcp._compat.content import ToolResult
from funcmcp._compat.context import context_variable, get_context
from funcmcp._compat.editable import (
    EditableBlock,
    EditableParams,
    ListedPrompt,
    ListedResource,
    ListedTemplate,
    PromptAnswer,
    ReadResult,
)
from funcmcp._compat.errors import (
    DisabledError,
    FastMCPError,
    McpError,
    NotFoundError,
    ToolError,
    ValidationError,
    as_fastmcp_error,
)
from funcmcp._objects.public_names import public
from funcmcp._protocol import objects
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError, ResourceNotFound, UnknownFeature
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._protocol.replies import Reply
from funcmcp._server.log import log_exception, quote

if TYPE_CHECKING:
    from funcmcp._compat.context import Context
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext as NativeCallNext
    from funcmcp._server.middleware import Middleware as NativeMiddleware

_logger = logging.getLogger("funcmcp.compat")

_HOOKS = {
    "initialize": "on_initialize",
    "tools/call": "on_call_tool",
    "resources/read": "on_read_resource",
    "prompts/get": "on_get_prompt",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "prompts/list": "on_list_prompts",
}
_DEFINITIONS: dict[str, type[objects.Definition]] = {
    "tools": ListedTool,
    "resources": ListedResource,
    "resourceTemplates": ListedTemplate,
    "prompts": ListedPrompt,
}
"""The class of the definitions in a list, by the member of the result that has them."""

_UNKNOWN: dict[str, Callable[[dict[str, Any]], MCPError]] = {
    "tools/call": lambda params: UnknownFeature("tool", str(params.get("name"))),
    "resources/read": lambda params: ResourceNotFound(str(params.get("uri"))),
    "prompts/get": lambda params: UnknownFeature("prompt", str(params.get("name"))),
}
"""Returns the error for an unknown feature from the params of a request, by its method."""


@public("funcmcp.compat")
@dataclass(kw_only=True)
class MiddlewareContext:
    """A request on its way through middleware.

    Attributes:
        message: The parameters of the request as attributes, such as ``name`` and ``arguments``.
        fastmcp_context: The context of the request.
        source: ``"client"``.
        type: ``"request"``.
        method: The method, such as ``"tools/call"``.
        timestamp: The time at which the request arrived.
    """

    message: Any
    fastmcp_context: Context | None = None
    source: Literal["client", "server"] = "client"
    type: Literal["request", "notification"] = "request"
    method: str | None = None
    timestamp: datetime = dataclass_field(default_factory=lambda: datetime.now(UTC))

    def copy(self, **changes: Any) -> MiddlewareContext:
        """Return a copy with changed attributes."""
        return replace(self, **changes)


CallNext: TypeAlias = Callable[[MiddlewareContext], Awaitable[Any]]
"""The function that passes a request on."""


@public("funcmcp.compat")
class Middleware:
    """The base class of middleware. A subclass overrides the hooks that it needs."""

    async def __call__(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Pass a request through the hooks."""
        hook = _HOOKS.get(context.method or "")
        if hook is not None:
            call_next = _hooked(getattr(self, hook), call_next)
        call_next = _hooked(self.on_request, call_next)
        return await self.on_message(context, call_next)

    async def on_message(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around every request."""
        return await call_next(context)

    async def on_request(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around every request."""
        return await call_next(context)

    async def on_initialize(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around `initialize`."""
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around calls of tools. ``call_next`` returns a `ToolResult`, or raises ToolError."""
        return await call_next(context)

    async def on_read_resource(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around reads of resources."""
        return await call_next(context)

    async def on_get_prompt(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around prompts."""
        return await call_next(context)

    async def on_list_tools(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around lists of tools. ``call_next`` returns the tools."""
        return await call_next(context)

    async def on_list_resources(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around lists of resources."""
        return await call_next(context)

    async def on_list_resource_templates(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around lists of resource templates."""
        return await call_next(context)

    async def on_list_prompts(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Run around lists of prompts."""
        return await call_next(context)


@public("funcmcp.compat")
class LoggingMiddleware(Middleware):
    """Writes a line to the log for each request.

    Args:
        logger: The logger. By default it is ``funcmcp.compat``.
        log_level: The level of the lines.
        options: Ignored.
    """

    def __init__(self, logger: logging.Logger | None = None, log_level: int = logging.INFO, **options: Any) -> None:  # noqa: ARG002 - what lines contain
        self.logger: logging.Logger = logger or _logger
        self.log_level = log_level

    async def on_message(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Write the method, and whether it failed."""
        try:
            result = await call_next(context)
        except Exception as error:
            self.logger.log(logging.ERROR, "%s failed: %s", context.method, error)
            raise
        self.logger.log(self.log_level, "%s", context.method)
        return result


StructuredLoggingMiddleware = LoggingMiddleware


@public("funcmcp.compat")
class TimingMiddleware(Middleware):
    """Writes the duration of each request to the log.

    Args:
        logger: The logger. By default it is ``funcmcp.compat``.
        log_level: The level of the lines.
    """

    def __init__(self, logger: logging.Logger | None = None, log_level: int = logging.INFO) -> None:
        self.logger: logging.Logger = logger or _logger
        self.log_level = log_level

    async def on_request(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Write the method and the milliseconds."""
        start = time.perf_counter()
        try:
            return await call_next(context)
        finally:
            milliseconds = 1000 * (time.perf_counter() - start)
            self.logger.log(self.log_level, "%s took %.2f ms", context.method, milliseconds)


DetailedTimingMiddleware = TimingMiddleware


@public("funcmcp.compat")
class ErrorHandlingMiddleware(Middleware):
    """Writes errors to the log and calls a function for each.

    Args:
        logger: The logger. By default it is ``funcmcp.compat``.
        include_traceback: Whether the log has the traceback.
        error_callback: Gets the exception and the context.
        transform_errors: Ignored: funcmcp sends errors in the specification's form.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        include_traceback: bool = False,  # noqa: FBT001, FBT002 - as in FastMCP
        error_callback: Callable[[Exception, MiddlewareContext], Any] | None = None,
        transform_errors: bool = True,  # noqa: ARG002, FBT001, FBT002 - as in FastMCP
    ) -> None:
        self.logger: logging.Logger = logger or _logger
        self.include_traceback = include_traceback
        self.error_callback = error_callback

    async def on_message(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        """Write the error of a request that fails."""
        try:
            return await call_next(context)
        except Exception as error:
            arguments = (quote(context.method), quote(error))
            if self.include_traceback:
                log_exception(self.logger, error, "%s failed: %s", arguments)
            else:
                self.logger.log(logging.ERROR, "%s failed: %s", *arguments)
            if self.error_callback is not None:
                self.error_callback(error, context)
            raise


def native_middleware(middleware: Any) -> NativeMiddleware:
    """Return a funcmcp middleware for an object of FastMCP's kind."""

    async def around(request: RequestContext, call_next: NativeCallNext) -> Any:
        method = request.request.method
        original: list[tuple[Reply, Any]] = []

        async def innermost(context: MiddlewareContext) -> Any:
            try:
                await _write_back(request, context.message)
            except MCPError as error:
                raise as_fastmcp_error(error, error) from error.__cause__
            reply = await call_next(request)
            value = _value_of(method, reply, request.error)
            current = context_variable.get()
            if method in FEATURE_LISTS and current is not None:
                value = [with_tags(feature, current.fastmcp) for feature in value]
            original.append((reply, value))
            return value

        message = EditableParams(**{"arguments": {}, **request.request.params})
        context = MiddlewareContext(message=message, fastmcp_context=context_variable.get(), method=method)
        try:
            value = await middleware(context, innermost)
        except (FastMCPError, NativeToolError) as error:
            native = _native_error(error, request)
            if native is error:
                raise
            raise native from error
        for reply, same in original:
            if value is same and not isinstance(value, list) and not _is_changed(value, reply):
                return reply
        return _result_of(method, value, original[-1][0] if original else None)

    around.__wrapped__ = middleware  # type: ignore[attr-defined] # errors name the author's class
    return around


@dataclass(kw_only=True)
class SDKMiddlewareContext:
    """A request on its way through middleware of the official SDK 2.x, which may pass on a copy with other params.

    Attributes:
        method: The method, such as ``"tools/call"``.
        params: The parameters of the request.
        request_id: The id of the JSON-RPC request.
        protocol_version: The protocol revision.
        request_context: The request with its session and the lifespan's value.
        session: The session.
        meta: The request's ``_meta``.
        lifespan_context: What the server's lifespan yielded.
    """

    method: str
    params: dict[str, Any]
    request_id: Any
    protocol_version: str
    request_context: Any
    session: Any
    meta: Any
    lifespan_context: Any


def _sdk_context(request: RequestContext) -> SDKMiddlewareContext:
    context = context_variable.get()
    return SDKMiddlewareContext(
        method=request.request.method,
        params=request.request.params,
        request_id=request.request.id,
        protocol_version=request.client.revision.date,
        request_context=None if context is None else context.request_context,
        session=None if context is None else context.session,
        meta=request.meta,
        lifespan_context=None if context is None else context.lifespan_context,
    )


def sdk_middleware(middleware: Callable[[Any, Any], Awaitable[Any]]) -> NativeMiddleware:
    """Return a funcmcp middleware for a function of the official SDK 2.x, ``async (context, call_next) -> result``."""

    @wraps(middleware)
    async def around(request: RequestContext, call_next: NativeCallNext) -> Reply | dict[str, Any]:
        named = _named_by(request)
        replies: list[Reply] = []

        async def innermost(context: SDKMiddlewareContext) -> dict[str, Any]:
            if context.method != request.request.method:
                raise TypeError("Middleware can't change the method of a request.")
            params = dict(context.params)  # the middleware may have changed the request's own
            request.request.params.clear()
            request.request.params.update(params)
            await _route_again(request, named)
            reply = await call_next(request)
            replies.append(reply)
            return _result_or_error(reply, request.error)

        try:
            answer = plain(await middleware(_sdk_context(request), innermost))
        except PassedError as error:
            return error.reply
        except Exception as error:
            raise as_mcp_error(error) from error
        if replies and answer == replies[-1].result():
            return replies[-1]
        if isinstance(answer, dict) and request.request.method in FEATURE_LISTS:
            return _private(answer)
        return answer  # type: ignore[no-any-return] # checked by the server

    return around


class PassedError(McpError):
    """The error of a request on its way back through middleware.

    Args:
        reply: The answer that has the error. It is sent unless the middleware handles the error.
    """

    def __init__(self, reply: Reply) -> None:
        error = reply.message()["error"]
        super().__init__(error["code"], error["message"], error.get("data"))
        self.reply = reply


def _result_or_error(reply: Reply, failure: BaseException | None) -> dict[str, Any]:
    """Return the result of an answer; raise the error that it has, caused by *failure*."""
    if reply.error is not None:
        raise PassedError(reply) from failure
    return reply.result() or {}


def _private(result: dict[str, Any]) -> dict[str, Any]:
    """Return a list that middleware has changed. It may differ between callers, so shared caches must not store it."""
    return {**result, "cacheScope": "private"} if "cacheScope" in result else result


def as_mcp_error(error: Exception) -> Exception:
    """Return an error of the official SDK as one of funcmcp; other exceptions are returned unchanged."""
    details: Any = getattr(error, "error", None)
    if is_sdk_type(type(error)) and hasattr(details, "code"):
        return MCPError(details.code, details.message, details.data)
    return error


def _hooked(hook: Callable[..., Awaitable[Any]], call_next: CallNext) -> CallNext:
    async def call(context: MiddlewareContext) -> Any:
        return await hook(context, call_next)

    return call


async def _write_back(request: RequestContext, message: Any) -> None:
    """Write a message's members back into the request, for middleware that changes them.

    Raises:
        MCPError: The message names another feature, and it does not exist, or the caller may not use it.
    """
    params = request.request.params
    named = _named_by(request)
    for name, value in vars(message).items():
        if name in params or value not in ({}, None):
            params[name] = value
    await _route_again(request, named)


def _named_by(request: RequestContext) -> tuple[Any, Any]:
    """Return the name and the URI of the feature that a request names."""
    params = request.request.params
    return params.get("name"), params.get("uri")


async def _route_again(request: RequestContext, before: tuple[Any, Any]) -> None:
    """Route a request to the feature that it names, if it named another one before.

    Raises:
        MCPError: The feature does not exist, or the caller may not use it.
    """
    if _named_by(request) == before:
        return
    server = get_context()._server._server  # noqa: SLF001 - parts of Context and of the server
    routed = await server.resolve(server.routes.route(request.request), request.principal, http=request.http)
    routed.size = request.routed.size
    is_author = isinstance(request, DirectContext) and request.principal is None
    if server.guard is not None and not is_author and not request.by_user:
        refusal = await server.guard.check(routed, request.principal)
        if refusal is not None:
            raise refusal.error()
    request.routed = routed


def _value_of(method: str, reply: Reply, failure: BaseException | None) -> Any:
    """Return an answer as FastMCP's middleware gets it; raise what the request failed with, caused by *failure*."""
    error = reply.message().get("error")
    if error is not None:
        raise as_fastmcp_error(MCPError(error["code"], error["message"], error.get("data")), failure) from failure
    result = reply.result() or {}
    if method == "tools/call" and "content" in result:
        call_result = objects.CallToolResult(result)
        if call_result.is_error:
            raise ToolError(call_result.text) from failure
        blocks = objects.objects_of(result["content"], EditableBlock)
        return _CalledTool(blocks, call_result.structured_content, call_result.meta or None, result)
    if method in FEATURE_LISTS:
        member = FEATURE_LISTS[method]
        return objects.objects_of(result.get(member, []), _DEFINITIONS[member])
    if method == "resources/read":
        return ReadResult(result)
    if method == "prompts/get":
        return PromptAnswer(result)
    return result


def _native_error(error: Exception, request: RequestContext) -> Exception:
    """Return an error of middleware as funcmcp sends it, with its text.

    One that says that a feature does not exist becomes the error for a feature that really does not: clients must not
    tell the difference. Other requests than those of `_UNKNOWN` fail with an internal error, as in FastMCP.
    """
    method = request.request.method
    if isinstance(error, MCPError) or method not in _UNKNOWN:
        return error
    if isinstance(error, NotFoundError | DisabledError):
        return _UNKNOWN[method](request.request.params)
    if method == "tools/call":
        return error if isinstance(error, NativeToolError) else ToolError(error)
    code = INVALID_PARAMS if isinstance(error, ValidationError) else INTERNAL_ERROR
    return MCPError(code, str(error))


def _is_changed(value: Any, reply: Reply) -> bool:
    """Return whether middleware has changed an answer in place."""
    result = reply.result() or {}
    if not isinstance(value, _CalledTool):
        return isinstance(value, dict) and dict(value) != result
    return (
        value.content != result.get("content")
        or value.structured_content != result.get("structuredContent")
        or (value.meta or {}) != result.get("_meta", {})
    )


class _CalledTool(ToolResult):
    """The result of a tool on its way back through middleware.

    Attributes:
        wire: The result in JSON form.
    """

    __slots__ = ("wire",)

    def __init__(self, blocks: Any, structured: Any, meta: Any, wire: dict[str, Any]) -> None:
        super().__init__(blocks, structured, meta)
        self.wire = wire


def _result_of(method: str, value: Any, reply: Reply | None) -> Any:
    """Return what middleware returned as a result in JSON form; objects that the server itself reads unchanged."""
    if isinstance(value, Reply):
        return value
    result = (reply.result() if reply is not None else None) or {}
    if method in FEATURE_LISTS:
        member = FEATURE_LISTS[method]
        edited = {**result, member: [dict(definition) for definition in value]}
        return _private(edited)
    if method == "tools/call":
        from funcmcp._authoring.results.tool_results import rendering_of  # noqa: PLC0415 - only for changed results

        if isinstance(value, ToolResult):
            value.content = [_block(block) for block in value.content]
        rendered = rendering_of(Any, "middleware").render(value)
        return rendered if isinstance(rendered, dict) else rendered.result()  # type: ignore[union-attr] # not a raw response
    return dict(value) if isinstance(value, dict) else value


def _block(block: Any) -> Any:
    """Return a block of an earlier result as content; blocks of the author are returned unchanged."""
    if not isinstance(block, dict):
        return block
    from funcmcp._authoring.results.content import Text  # noqa: PLC0415 - only for changed results

    content = Text("")
    content.block = dict(block)
    return content

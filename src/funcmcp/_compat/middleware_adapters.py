"""Middleware of FastMCP and of the official SDK as middleware of funcmcp.

How it works: `native_middleware` makes one funcmcp middleware of an object. For each request it calls the object with a
`MiddlewareContext`, as FastMCP does. The innermost ``call_next`` writes the message's members back into the request,
passes it to funcmcp, and decodes the answer.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from pydantic import BaseModel

from funcmcp._app.direct_calls import DirectContext
from funcmcp._authoring.results.sdk_results import is_sdk_type
from funcmcp._compat.annotations import plain
from funcmcp._compat.components import Component
from funcmcp._compat.content import ToolResult
from funcmcp._compat.context import context_variable, get_context
from funcmcp._compat.editable import EditableParams, ListPage
from funcmcp._compat.errors import (
    DisabledError,
    FastMCPError,
    McpError,
    NotFoundError,
    PromptError,
    ResourceError,
    ToolError,
    ValidationError,
    as_fastmcp_error,
    is_mcp_error,
    without_pydantic,
)
from funcmcp._compat.listed_components import with_tags
from funcmcp._compat.middleware import MalformedParams, MiddlewareContext
from funcmcp._compat.middleware_messages import (
    RESULTS,
    CutResult,
    ToolAnswer,
    message_of,
    model_in_json,
    params_of,
    value_of,
)
from funcmcp._compat.middleware_switch import is_skipped
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError, ResourceNotFound, UnknownFeature
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._protocol.replies import Reply
from funcmcp._server.log import log_failure, quote
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext as NativeCallNext
    from funcmcp._server.middleware import Middleware as NativeMiddleware

_logger = logging.getLogger("funcmcp.compat")

_UNKNOWN: dict[str, Callable[[dict[str, Any]], MCPError]] = {
    "tools/call": lambda params: UnknownFeature("tool", str(params.get("name"))),
    "resources/read": lambda params: ResourceNotFound(str(params.get("uri"))),
    "prompts/get": lambda params: UnknownFeature("prompt", str(params.get("name"))),
}
"""Returns the error for an unknown feature from the params of a request, by its method."""


@dataclass
class _Passed:
    """An answer that middleware has got.

    Attributes:
        reply: The answer.
        value: The answer as FastMCP's middleware gets it.
        wire: A model of ``mcp.types`` in JSON form, as it was before middleware could change it; None for others.
    """

    reply: Reply
    value: Any
    wire: dict[str, Any] | None

    def is_answer(self, value: Any) -> bool:
        """Return whether a value is the answer, unchanged."""
        if value is not self.value or isinstance(value, list):
            return False
        return not _is_changed(value, self.reply) if self.wire is None else plain(value) == self.wire


def _answer(value: Any, passed: list[_Passed], request: RequestContext) -> Any:
    """Return what middleware returned as funcmcp sends it.

    Args:
        value: What the middleware returned.
        passed: The answers that it got.
        request: The request.
    """
    for answer in passed:
        if answer.is_answer(value):
            return answer.reply
    result = _result_of(request.request.method, value, passed[-1].reply if passed else None)
    if not isinstance(value, CutResult):
        return result
    server = get_context()._server._server  # noqa: SLF001 - parts of Context and of the server
    return server._completed(result, request)  # noqa: SLF001 - not checked against the schema of the tool


def native_middleware(middleware: Any) -> NativeMiddleware:
    """Return a funcmcp middleware for an object of FastMCP's kind."""

    async def around(request: RequestContext, call_next: NativeCallNext) -> Any:
        current = context_variable.get()
        if is_skipped(current):
            return await call_next(request)
        method = request.request.method
        passed: list[_Passed] = []
        original = message_of(method, request.request.params)
        original_params = params_of(original, request.request.params)

        async def innermost(context: MiddlewareContext[Any]) -> Any:
            try:
                await _write_back(request, context.message, original_params)
            except MCPError as error:
                raise as_fastmcp_error(error, error) from error.__cause__
            reply = await call_next(request)
            value = value_of(method, reply, request.error)
            if isinstance(value, ListPage) and current is not None:
                value = ListPage(value.next_cursor, [with_tags(feature, current.fastmcp) for feature in value])
            passed.append(_Passed(reply, value, model_in_json(value)))
            return value

        context: MiddlewareContext[Any] = MiddlewareContext(message=original, fastmcp_context=current, method=method)
        try:
            value = await middleware(context, innermost)
        except Exception as error:  # noqa: BLE001 - it is raised as funcmcp sends it
            if method == "initialize" and passed and is_mcp_error(error):
                _logger.warning("Middleware failed after initialize was answered: %s", quote(error))
                return passed[-1].reply  # as FastMCP does
            raise_native(error, request)
        return _answer(value, passed, request)

    around.__wrapped__ = middleware  # type: ignore[attr-defined] # errors name the author's class
    return around


@dataclass(kw_only=True)
class ServerRequestContext:
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
        request: The HTTP request; None on stdio.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, _: Any) -> Any:
            """Return the class itself, for annotations such as ``ServerRequestContext[AppContext, Any]``."""
            return cls

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    request_id: Any = None
    protocol_version: str
    request_context: Any = None
    session: Any
    meta: Any = None
    lifespan_context: Any
    request: Any = None


HandlerResult: TypeAlias = BaseModel | dict[str, Any] | None
"""What middleware of the official SDK 2.x returns."""
CallNext: TypeAlias = "Callable[[ServerRequestContext], Awaitable[HandlerResult]]"
"""What such middleware calls to pass a request on."""


def _sdk_context(request: RequestContext) -> ServerRequestContext:
    context = context_variable.get()
    return ServerRequestContext(
        method=request.request.method,
        params=request.request.params,
        request_id=request.request.id,
        protocol_version=request.client.revision.date,
        request_context=None if context is None else context.request_context,
        session=None if context is None else context.session,
        meta=request.meta,
        lifespan_context=None if context is None else context.lifespan_context,
        request=None if context is None else context.request_context.request,
    )


def sdk_middleware(middleware: Callable[[Any, Any], Awaitable[Any]]) -> NativeMiddleware:
    """Return a funcmcp middleware for a function of the official SDK 2.x, ``async (context, call_next) -> result``."""

    @wraps(middleware)
    async def around(request: RequestContext, call_next: NativeCallNext) -> Reply | dict[str, Any]:
        if isinstance(request, DirectContext):  # in the SDK, middleware is for messages of clients
            return await call_next(request)
        named = _named_by(request)
        replies: list[Reply] = []

        async def innermost(context: ServerRequestContext) -> dict[str, Any]:
            if context.method != request.request.method:
                raise TypeError("Middleware can't change the method of a request.")
            params = dict(context.params)  # the middleware may have changed the request's own
            request.request.params.clear()
            request.request.params.update(params)
            await _route_again(request, named)
            reply = await call_next(request)
            replies.append(reply)
            if request.request.method == "tools/call" and isinstance(request.error, UnknownFeature):
                return unknown_tool(request.error)
            return _result_or_error(reply, request.error)

        try:
            answer = plain(await middleware(_sdk_context(request), innermost))
        except PassedError as error:
            return error.reply
        except Exception as error:  # noqa: BLE001 - it is raised as funcmcp sends it
            raise_as_mcp_error(error)
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


def unknown_tool(error: UnknownFeature) -> dict[str, Any]:
    """Return the result of a call of a tool that does not exist, which is not a JSON-RPC error in the official SDK."""
    return {"content": [{"type": "text", "text": error.message}], "isError": True}


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


def raise_as_mcp_error(error: Exception) -> NoReturn:
    """Raise an error of the official SDK as one of funcmcp, and other exceptions unchanged."""
    native = as_mcp_error(error)
    if native is error:
        raise error  # not from itself: its causes would be a circle
    raise native from error


async def _write_back(request: RequestContext, message: Any, original: dict[str, Any]) -> None:
    """Write a message's parameters back into the request, for middleware that changes them.

    Args:
        request: The request.
        message: The message.
        original: The parameters of the message before middleware could change them.

    Raises:
        MCPError: The message names another feature, and it does not exist, or the caller may not use it.
    """
    if isinstance(message, MalformedParams):
        return  # middleware sees the failure, and can't repair it
    params = request.request.params
    named = _named_by(request)
    changed = params_of(message, params)
    if isinstance(message, EditableParams | dict) or changed != original:
        params.clear()
        params.update(changed)
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


def _native_error(error: Exception, request: RequestContext) -> Exception:
    """Return an error of middleware as funcmcp sends it, with its text.

    One that says that a feature does not exist becomes the error for a feature that really does not: clients must not
    tell the difference. Other exceptions than FastMCP's have their text unless the server masks errors.
    """
    method = request.request.method
    if method == "tools/call" and isinstance(error, ResourceError | PromptError) and error is not request.error:
        return ToolError(error.message)
    if isinstance(error, MCPError) or error is request.error:
        return error
    if not isinstance(error, FastMCPError | NativeToolError):
        return _shown_error(error, method)
    if method not in _UNKNOWN:
        return MCPError(INTERNAL_ERROR, str(error))
    if isinstance(error, NotFoundError | DisabledError):
        return _UNKNOWN[method](request.request.params)
    if method == "tools/call":
        return error if isinstance(error, NativeToolError) else ToolError(error)
    code = INVALID_PARAMS if isinstance(error, ValidationError) else INTERNAL_ERROR
    return MCPError(code, str(error))


def _shown_error(error: Exception, method: str) -> Exception:
    """Return an exception of middleware with its text, and write a record about it; unchanged if errors are masked."""
    current = context_variable.get()
    server = None if current is None else current._server._server  # noqa: SLF001 - parts of Context and of the server
    if server is None or server.options.show_errors is not True or isinstance(error, StoreUnavailableError):
        return error
    log_failure(error, os.urandom(8).hex(), method, method)
    return MCPError(INTERNAL_ERROR, str(without_pydantic(error)) or type(error).__name__)


def raise_native(error: Exception, request: RequestContext) -> NoReturn:
    """Raise an error of middleware as funcmcp sends it."""
    native = _native_error(as_mcp_error(error), request)
    if native is error:
        raise error
    raise native from error


def _is_changed(value: Any, reply: Reply) -> bool:
    """Return whether middleware has changed an answer in place."""
    result = reply.result() or {}
    if not isinstance(value, ToolAnswer):
        return isinstance(value, dict) and dict(value) != result
    return (
        [plain(block) for block in value.content] != result.get("content")
        or value.structured_content != result.get("structuredContent")
        or (value.meta or {}) != result.get("_meta", {})
    )


def _result_of(method: str, value: Any, reply: Reply | None) -> Any:
    """Return what middleware returned as a result in JSON form; objects that the server itself reads unchanged."""
    if isinstance(value, Reply):
        return value
    result = (reply.result() if reply is not None else None) or {}
    if method in FEATURE_LISTS:
        member = FEATURE_LISTS[method]
        next_cursor = getattr(value, "next_cursor", None)
        page = {} if next_cursor is None else {"nextCursor": next_cursor}
        return _private({**page, **result, member: [_definition_of(item) for item in value]})
    if method == "tools/call":
        from funcmcp._authoring.results.tool_results import rendering_of  # noqa: PLC0415 - only for changed results

        if isinstance(value, ToolResult):
            value.content = [_block(block) for block in value.content]
        rendered = rendering_of(Any, "middleware").render(value)
        return rendered if isinstance(rendered, dict) else rendered.result()  # type: ignore[union-attr] # not a raw response
    if method in RESULTS and not isinstance(value, dict):
        return {**result, **plain(value)}
    return dict(value) if isinstance(value, dict) else value


def _definition_of(item: Any) -> dict[str, Any]:
    """Return a definition in a list in JSON form: of an item of the list, a component or a model of ``mcp.types``."""
    if isinstance(item, Component):
        return dict(item.definition)
    return dict(item if isinstance(item, dict) else plain(item))


def _block(block: Any) -> Any:
    """Return a block of an earlier result as content; blocks of the author are returned unchanged."""
    if not isinstance(block, dict):
        return block
    from funcmcp._authoring.results.content import Text  # noqa: PLC0415 - only for changed results

    content = Text("")
    content.block = dict(block)
    return content

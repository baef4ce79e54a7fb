"""Middleware classes of FastMCP: methods such as ``on_call_tool`` around the messages of their kind.

How it works: the module `middleware_adapters` makes one funcmcp middleware of an object. For each message it calls the
object with a `MiddlewareContext`, as FastMCP does. The object's default `__call__` passes the message through its
hooks, from the most general to the most specific one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from typing_extensions import TypeVar

    from funcmcp._compat.context import Context

    MessageT = TypeVar("MessageT", default=Any)
    ResultT_co = TypeVar("ResultT_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    MessageT = TypeVar("MessageT")
    ResultT_co = TypeVar("ResultT_co", covariant=True)

_HOOKS = {
    "initialize": "on_initialize",
    "server/discover": "on_discover",
    "tools/call": "on_call_tool",
    "resources/read": "on_read_resource",
    "prompts/get": "on_get_prompt",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "prompts/list": "on_list_prompts",
}


class MalformedParams(dict[str, Any]):
    """The parameters of a request that the server will refuse. Only the general hooks get it, as in FastMCP."""


@public("funcmcp.compat")
@dataclass(kw_only=True, frozen=True)
class MiddlewareContext(Generic[MessageT]):
    """A message on its way through middleware.

    Attributes:
        message: The message. For calls, reads and prompts it has the parameters as attributes, such as ``name`` and
            ``arguments``. For `initialize`, `server/discover` and lists it is the request, with the parameters in
            ``params``. Other messages are the parameters as a dict.
        fastmcp_context: The context of the request.
        source: ``"client"``.
        type: ``"request"`` or ``"notification"``.
        method: The method, such as ``"tools/call"``.
        timestamp: The time at which the message arrived.
    """

    message: MessageT
    fastmcp_context: Context | None = None
    source: Literal["client", "server"] = "client"
    type: Literal["request", "notification"] = "request"
    method: str | None = None
    timestamp: datetime = dataclass_field(default_factory=lambda: datetime.now(UTC))

    def copy(self, **changes: Any) -> MiddlewareContext[MessageT]:
        """Return a copy with changed attributes."""
        return replace(self, **changes)


@public("funcmcp.compat")
class CallNext(Protocol[MessageT, ResultT_co]):
    """The function that passes a message on."""

    def __call__(self, context: MiddlewareContext[MessageT]) -> Awaitable[ResultT_co]:
        """Return the result of the message."""


@public("funcmcp.compat")
class Middleware:
    """The base class of middleware. A subclass overrides the hooks that it needs."""

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Pass a message through the hooks."""
        hook = _HOOKS.get(context.method or "")
        if hook is not None and not isinstance(context.message, MalformedParams):
            call_next = _hooked(getattr(self, hook), call_next)
        general = self.on_notification if context.type == "notification" else self.on_request
        call_next = _hooked(general, call_next)
        return await self.on_message(context, call_next)

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around every message."""
        return await call_next(context)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around every request."""
        return await call_next(context)

    async def on_notification(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around every notification of the client."""
        return await call_next(context)

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around `initialize`."""
        return await call_next(context)

    async def on_discover(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around `server/discover`."""
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around calls of tools. ``call_next`` returns a `ToolResult`, or raises ToolError."""
        return await call_next(context)

    async def check_resource_access(self, context: MiddlewareContext[Any]) -> None:
        """Raise AuthorizationError if the caller may not read a resource. `on_read_resource` calls it first."""

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around reads of resources."""
        await self.check_resource_access(context)
        return await call_next(context)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around prompts."""
        return await call_next(context)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around lists of tools. ``call_next`` returns the tools."""
        return await call_next(context)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around lists of resources."""
        return await call_next(context)

    async def on_list_resource_templates(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around lists of resource templates."""
        return await call_next(context)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Run around lists of prompts."""
        return await call_next(context)


def _hooked(hook: Callable[..., Awaitable[Any]], call_next: CallNext[Any, Any]) -> CallNext[Any, Any]:
    async def call(context: MiddlewareContext[Any]) -> Any:
        return await hook(context, call_next)

    return call

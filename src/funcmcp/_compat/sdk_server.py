"""`MCPServer` under the name and with the behaviour of ``mcp.server.MCPServer`` of the official SDK 2.x.

How it works: it is `FastMCP` of funcmcp.compat with other defaults, other errors and other results. A direct call, such
as ``await mcp.call_tool(...)``, is a request of the server itself. Its `DirectCall` takes the exception, which the
caller gets, and has the context that the caller passes on.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._compat import sdk_components
from funcmcp._compat.completion import CompletionHandler, completed
from funcmcp._compat.components import Component
from funcmcp._compat.content import read_contents
from funcmcp._compat.context import context_variable
from funcmcp._compat.editable import plain_result
from funcmcp._compat.errors import ResourceNotFoundError, ToolError
from funcmcp._compat.functions import with_result
from funcmcp._compat.input_rounds import InputRequiredError
from funcmcp._compat.middleware_adapters import sdk_middleware, unknown_tool
from funcmcp._compat.overrides import pending_of
from funcmcp._compat.sdk_errors import PromptFailedError, log_crash, unknown_resource
from funcmcp._compat.sdk_features import contents_writer, make_sdk_tool, sdk_prompt, sdk_resource, written_description
from funcmcp._compat.sdk_managers import PromptManager, ResourceManager, ToolManager
from funcmcp._compat.server import FastMCP
from funcmcp._compat.server_registration import is_absolute_uri
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import InvalidParams, MCPError, UnknownFeature
from funcmcp._protocol.uri_template import URITemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments
    from funcmcp._compat.components import Prompt, Resource, ResourceTemplate, Tool
    from funcmcp._compat.context import Context
    from funcmcp._compat.server import F
    from funcmcp._compat.server_middleware import LowLevelServer
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext
_CACHEABLE = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"),
        "server/discover",
    }
)
"""The methods whose answers may be stored."""


@dataclass
class DirectCall:
    """A request that the server's own program makes.

    Attributes:
        context: The context that the function gets; None for that of the request.
        failure: The exception with which the feature has failed; None as long as it has not.
    """

    context: Context | None = None
    failure: Exception | None = None


_direct_call: ContextVar[DirectCall | None] = ContextVar("funcmcp_compat_direct_call", default=None)


@public("funcmcp.compat")
class MCPServer(FastMCP):
    """A server with the names of ``mcp.server.MCPServer`` of the official SDK 2.x.

    Clients get the text of `ToolError` and `ResourceError` only, as there.

    Args:
        name: The server's name.
        title: The title for people.
        description: The description for people.
        instructions: Guidance for the client's model.
        options: The other options of the official SDK, and those of `FastMCP`; see docs/guides/from-the-sdk.md.

    Raises:
        TypeError: An option does not exist, or funcmcp has nothing for it. The text says what to use.
    """

    _shows_errors = False
    _renders_prompts = True
    _default_policy = "keep"
    _default_unknown_arguments: Mapping[str, UnknownArguments] = {"tool": "drop", "prompt": "refuse"}
    _default_name = "mcp-server"
    _default_version = ""
    is_of_sdk = True
    _protocol_changes: Mapping[str, Any] = {"offer_prompts": True, "offer_resources": True, "share_caches": False}
    _adapt_middleware = staticmethod(sdk_middleware)
    _tool_class: type[Tool] = sdk_components.Tool
    _prompt_class: type[Prompt] = sdk_components.Prompt
    _resource_class: type[Resource] = sdk_components.FunctionResource
    _template_class: type[ResourceTemplate] = sdk_components.ResourceTemplate

    def __init__(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        **options: Any,
    ) -> None:
        resources, extensions = options.pop("resources", None) or (), options.pop("extensions", None) or ()
        self._completes: CompletionHandler | None = None
        self._cache_hints: Mapping[str, Any] = _checked_hints(options.pop("cache_hints", None))
        super().__init__(name, instructions, title=title, description=description, **options)
        for resource in resources:
            self.add_resource(resource)
        if extensions:
            from funcmcp._compat.sdk_extensions import add_extensions  # noqa: PLC0415 - few servers have any

            add_extensions(self, extensions)

    @property
    def icons(self) -> list[Any] | None:  # type: ignore[override] # as the SDK's
        """The icons; None without. Choose them in the constructor."""
        return super().icons or None

    @property
    def _lowlevel_server(self) -> LowLevelServer:
        return self._mcp_server

    @property
    def _tool_manager(self) -> ToolManager:  # type: ignore[override] # with more methods
        return ToolManager(self, self.registered_components())

    @property
    def _prompt_manager(self) -> PromptManager:
        return PromptManager(self, self.registered_components())

    @property
    def _resource_manager(self) -> ResourceManager:
        return ResourceManager(self, self.registered_components())

    def _decorated(self, kind: type[Component], name_or_fn: Any, options: dict[str, Any]) -> Any:
        if callable(name_or_fn) or isinstance(name_or_fn, Component):
            raise TypeError(
                f"The @{kind.kind} decorator was used incorrectly. Did you forget to call it? "
                f"Use @{kind.kind}() instead of @{kind.kind}"
            )
        return super()._decorated(kind, name_or_fn, options)

    def resource(self, uri: str, **options: Any) -> Callable[[F], F]:
        """Return a decorator that registers a function as a resource, or as a template if the URI has variables."""
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. Did you forget to call it? "
                "Use @resource('uri') instead of @resource"
            )
        if is_absolute_uri(uri):
            URITemplate(uri)  # so that a malformed one is an error of the line that has it
        return super().resource(uri, **options)

    def _check_resource(self, uri: str, function: Callable[..., Any]) -> None:
        if is_absolute_uri(uri):  # others are left out
            sdk_components.check_parameters(uri, function)

    def _feature(self, component: Component, options: dict[str, Any]) -> Any:
        if component.kind == "tool":
            return make_sdk_tool(component, options, self._services, self._report, tasks=self.task_default)
        if component.kind == "prompt":
            options = {**options, "description": written_description(component) or None}
            return sdk_prompt(super()._feature(component, options), component, self._report)
        writing = copy(component)
        writing.fn = with_result(component.fn, None, contents_writer(component))
        return sdk_resource(super()._feature(writing, options), component, self._report)

    # Requests

    async def _set_context(self, request: RequestContext, call_next: CallNext) -> Any:
        if request.request.method == "completion/complete" and self._completes is not None:
            with self._active_context(request):
                return await completed(self._completes, request.request.params)
        reply = await super()._set_context(request, call_next)
        if reply.error is None:
            hint = self._cache_hints.get(request.request.method)
            return reply if hint is None else _with_hint(reply, hint)
        if request.feature is not None:
            return reply
        params = request.request.params
        if request.request.method == "resources/read" and isinstance(params.get("uri"), str):
            raise unknown_resource(params["uri"]) from request.error
        if request.request.method == "tools/call" and isinstance(request.error, UnknownFeature):
            return unknown_tool(request.error)
        return reply

    @contextmanager
    def _active_context(self, request: RequestContext) -> Iterator[None]:
        direct = _direct_call.get()
        if direct is None or direct.context is None:
            with super()._active_context(request):
                yield
            return
        outer = context_variable.get()
        context_variable.set(direct.context)
        try:
            yield
        finally:
            context_variable.set(outer)

    def _report(self, failure: Exception, cause: Exception, request: RequestContext) -> None:
        """Give the exception of a feature to the program that called it directly; otherwise log a crash."""
        direct = _direct_call.get()
        if direct is not None:
            direct.failure = failure
        else:
            log_crash(failure, cause, request)

    def add_completion_handler(self, function: Callable[..., Any]) -> None:
        """Register a function that completes arguments of all prompts and templates, also of those that do not exist.

        It gets the reference, the argument and the context of ``mcp.types``, and returns a ``Completion`` or None.
        """
        self._completes = CompletionHandler(function, self._services.threads.run)
        self._server.catalog.always_offer("completions")

    # The server's own features

    @contextmanager
    def _calling(self, direct: DirectCall) -> Iterator[None]:
        token = _direct_call.set(direct)
        try:
            yield
        finally:
            _direct_call.reset(token)

    async def call_tool(  # type: ignore[override] # as the SDK's
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Context | None = None,
        *,
        principal: Principal | None = None,
        **_: Any,
    ) -> Any:
        """Call a tool of this server without a client, and return its result or its ``InputRequiredResult``.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            context: The context that the function gets.
            principal: The caller; None for the server's author, who may use every tool.

        Raises:
            ToolError: The tool does not exist, or it failed. A crash is an UnexpectedToolError.
            MCPError: The tool raised it.
        """
        if pending_of(self, "tools/call") is not None:  # an override of a subclass answers a request
            return await super().call_tool(name, arguments)
        direct = DirectCall(context)
        with self._calling(direct):
            try:
                result = await super().call_tool(name, arguments, raise_on_error=False, principal=principal)
            except MCPError as error:
                return _asked(error, direct)
        if result.is_error:
            raise direct.failure or ToolError(result.text)
        return plain_result("CallToolResult", result)

    async def read_resource(
        self, uri: Any, context: Context | None = None, *, principal: Principal | None = None, **_: Any
    ) -> Any:
        """Return the contents of a resource: a list, whose items have ``content`` and ``mime_type``.

        Args:
            uri: The URI.
            context: The context that the function gets.
            principal: The caller; None for the server's author, who may read every resource.

        Raises:
            ResourceNotFoundError: No resource reads the URI.
            ResourceError: The resource failed. A crash is an UnexpectedResourceError.
            MCPError: The resource raised it.
        """
        if pending_of(self, "resources/read") is not None:
            return read_contents(await super().read_resource(str(uri)))
        direct = DirectCall(context)
        with self._calling(direct):
            try:
                return read_contents(await super().read_resource(str(uri), principal=principal))
            except MCPError as error:
                if direct.failure is None and isinstance(error.data, dict) and error.data.get("uri") == str(uri):
                    raise ResourceNotFoundError(error.message) from error
                return _asked(error, direct)

    async def get_prompt(  # type: ignore[override] # as the SDK's
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Context | None = None,
        *,
        principal: Principal | None = None,
    ) -> Any:
        """Return the messages of a prompt.

        Args:
            name: The prompt's name.
            arguments: The prompt's arguments.
            context: The context that the function gets.
            principal: The caller; None for the server's author, who may use every prompt.

        Raises:
            ValueError: The prompt does not exist, an argument is missing, or it failed.
            MCPError: The prompt raised it.
        """
        if pending_of(self, "prompts/get") is not None:
            return await self.rendered(name, arguments)
        direct = DirectCall(context)
        with self._calling(direct):
            try:
                return plain_result("GetPromptResult", await self.rendered(name, arguments, principal=principal))
            except MCPError as error:
                if direct.failure is None or isinstance(direct.failure, PromptFailedError | InvalidParams):
                    raise ValueError(error.message) from error
                return _asked(error, direct)


def _asked(error: MCPError, direct: DirectCall) -> Any:
    """Return the ``InputRequiredResult`` with which a direct call has ended; raise the error of another call."""
    failure = direct.failure
    if isinstance(failure, InputRequiredError):
        return failure.result
    raise failure or error


def _checked_hints(hints: Mapping[Any, Any] | None) -> Mapping[str, Any]:
    """Return the hints by method.

    Raises:
        TypeError: A hint is not a ``CacheHint``.
        ValueError: The answers of a method can't be stored.
    """
    unknown = sorted(repr(method) for method in hints or () if method not in _CACHEABLE)
    if unknown:
        raise ValueError(f"cache_hints keys must be cacheable methods (see CacheableMethod); got: {', '.join(unknown)}")
    for method, hint in (hints or {}).items():
        if not hasattr(hint, "ttl_ms") or not hasattr(hint, "scope"):
            raise TypeError(f"cache_hints[{method!r}] must be a CacheHint, got {type(hint).__name__}")
    return hints or {}


def _with_hint(reply: Reply, hint: Any) -> Reply | dict[str, Any]:
    """Return an answer with the time and the scope of a hint, in revisions that have them."""
    result = reply.result()
    if result is None or "ttlMs" not in result:
        return reply
    return {**result, "ttlMs": hint.ttl_ms, "cacheScope": hint.scope}

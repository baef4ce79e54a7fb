"""`Context`, the object that functions of FastMCP and the official SDK take, over funcmcp's own context."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, Union, get_args, get_origin
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from funcmcp._authoring.calling.questions import ElicitURL
from funcmcp._compat.annotations import plain
from funcmcp._compat.content import read_contents
from funcmcp._compat.editable import model_of
from funcmcp._compat.elicitation import AcceptedElicitation, answered, answered_url, raising_mcp_errors
from funcmcp._compat.errors import PromptError, ResourceError, as_fastmcp_error
from funcmcp._compat.input_required import is_input_required_type
from funcmcp._compat.request_meta import RequestMeta
from funcmcp._compat.request_parts import access_token_of, http_request_of
from funcmcp._compat.sampling import SamplingResult, sampling_messages, sampling_options, sdk_result
from funcmcp._compat.session_visibility import as_dicts, rules_of
from funcmcp._compat.versions import VersionSpec
from funcmcp._compat.visibility import component_rule
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError
from funcmcp._protocol.levels import LEVELS
from funcmcp._server.catalog.versions import requested_version
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from typing import Self

    from typing_extensions import TypeVarTuple, Unpack

    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.feature_context import Context as InnerContext
    from funcmcp._authoring.calling.questions import Root
    from funcmcp._compat.request_parts import AccessToken
    from funcmcp._compat.visibility import ComponentRule
    from funcmcp._protocol.objects import GetPromptResult, Prompt, Resource
    from funcmcp._server.calls.context import HTTPRequestInfo, RequestContext
    from funcmcp._server.connections.conversation import Rules

    Types = TypeVarTuple("Types", default=Unpack[tuple[Any, ...]])
else:
    from typing import TypeVarTuple

    Types = TypeVarTuple("Types")

_MAX_TOKENS = 512

_DEFAULT_LEVEL = "info"
"""The level of messages to a client that chose none."""

_states: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The states of sessions that were made by hand."""

_to_client = logging.getLogger("fastmcp.server.context.to_client")
"""The logger of FastMCP with this name, by which programs find what clients are sent."""


_OWN_ID = "\0session_id"
"""Where the state of a request has the id that stands for that of a session. No author's key begins like that."""

_OUTSIDE = "Context is not available outside of a request"


class OutsideRequestError(ValueError, RuntimeError):
    """A context that was made by hand has no request, or no server."""


class Call(NamedTuple):
    """The request of a context.

    Attributes:
        request: The request.
        context: funcmcp's own context of it.
    """

    request: RequestContext
    context: InnerContext


@public("funcmcp.compat")
class Context(Generic[*Types]):
    """The context of a request: messages and questions to the client, state, and data of the request.

    A function gets it through a parameter of this type, or from `get_context`.

    Args:
        fastmcp: The server of a context that is made by hand, for example in a test. Such a context has no request.
        mcp_server: The same, as the official SDK has it.
        session: The session of a context that is made by hand. Contexts with the same session share their state.
        request_context: The request of a context that is made by hand.
        task_id: The task of a context that is made by hand.
        origin_request_id: The id of the request of a context that is made by hand.
    """

    def __init__(
        self,
        fastmcp: MCPServer | None = None,
        session: Any = None,
        *,
        mcp_server: MCPServer | None = None,
        request_context: Any = None,
        task_id: str | None = None,
        origin_request_id: str | None = None,
    ) -> None:
        self._call: Call | None = None
        self._own_task, self._own_request_id = task_id, origin_request_id
        self._own_server = fastmcp or mcp_server
        self._own_request = request_context
        self._own_session: Any = session
        self._state: dict[str, Any] = {} if session is None else _states.setdefault(session, {})
        self._request_state: dict[str, Any] = {}
        self._outer: Context | None = None

    @classmethod
    def of_call(
        cls,
        call: Call,
        server: MCPServer,
        state: dict[str, Any],
        request_state: dict[str, Any],
        outer: Context | None = None,
    ) -> Context[*Types]:
        """Return the context of a request.

        Args:
            call: The request.
            server: The server that answers it.
            state: The state of its session.
            request_state: The state of the request.
            outer: The context that was active before: that of the caller, for a direct call within a request.
        """
        context = cls(server)
        context._outer = outer
        context._call, context._state, context._request_state = call, state, request_state
        return context

    async def __aenter__(self) -> Self:
        """Make a context that was made by hand the active one, until the block ends."""
        self._outer = context_variable.get()
        if self._outer is not None:
            self._request_state = self._outer._request_state  # noqa: SLF001 - a part of Context
        context_variable.set(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Make the context active that was before."""
        context_variable.set(self._outer)

    @property
    def _request(self) -> RequestContext:
        if self._call is None:
            raise OutsideRequestError(_OUTSIDE)
        return self._call.request

    @property
    def _inner(self) -> InnerContext:
        if self._call is None:
            raise OutsideRequestError(_OUTSIDE)
        return self._call.context

    @property
    def _is_of_sdk(self) -> bool:
        """Whether the server is one with the names of the official SDK."""
        return bool(getattr(self._own_server, "is_of_sdk", False))

    @property
    def _server(self) -> MCPServer:
        if self._own_server is None:
            raise OutsideRequestError(_OUTSIDE)
        return self._own_server

    if not TYPE_CHECKING:  # type checkers know generics and report unknown attributes themselves

        def __class_getitem__(cls, _: Any) -> Any:
            """Return the class itself: ``Context[ServerSession, AppContext]`` means the same."""
            return cls

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that names the class of compat."""
            message = f"funcmcp.compat.Context has no attribute {name!r}"  # Python adds ". Did you mean ...?"
            raise AttributeError(message, name=name, obj=self)

    def is_around(self, request: RequestContext | None) -> bool:
        """Return whether a request is that of this context, or reached a mounted server through it."""
        if self._call is None:
            return False
        while request is not None and request.request is not self._call.request.request:
            request = request.outer
        return request is not None

    def is_of(self, request: RequestContext) -> bool:
        """Return whether the context is that of a request."""
        return self._call is not None and self._call.request is request

    def client_supports_extension(self, extension_id: str) -> bool:
        """Return whether the client has declared an extension, such as MCP Apps; False if no request runs."""
        if self._call is None:
            return False
        extensions = self._call.request.client.capabilities.get("extensions")
        return isinstance(extensions, dict) and extension_id in extensions

    # The server and the request

    @property
    def fastmcp(self) -> MCPServer:
        """The server."""
        return self._server

    @property
    def mcp_server(self) -> MCPServer:
        """The server."""
        return self._server

    @property
    def request_context(self) -> Any:
        """The request, with the context of the server's lifespan.

        Raises:
            OutsideRequestError: The context was made by hand, without a request.
        """
        if self._call is None and self._own_request is None:
            if self._own_server is not None and not self._is_of_sdk:
                return None  # as in FastMCP 4
            raise OutsideRequestError(_OUTSIDE)
        return RequestView(self) if self._own_request is None else self._own_request

    @property
    def lifespan_context(self) -> Any:
        """What the server's lifespan yielded; an empty dict if it has none."""
        return self._inner.lifespan_context

    @property
    def request_id(self) -> str:
        """The id of the JSON-RPC request."""
        return str(self._request.request.id)

    @property
    def request_method(self) -> str:
        """The method of the JSON-RPC request, such as ``"tools/call"``."""
        return self._request.request.method

    @property
    def client_id(self) -> str | None:
        """The ``client_id`` in the request's ``_meta``, which any client chooses. `access_token` has another one."""
        client_id = self._request.meta.get("client_id")
        return client_id if isinstance(client_id, str) else None

    @property
    def session_id(self) -> str | None:
        """The id of the session; without one, an id of the connection, or in 2026-07-28 of the request.

        In a server of the official SDK it is None without a session.

        Raises:
            OutsideRequestError: The context was made by hand.
        """
        if self._call is None:
            raise OutsideRequestError(f"session_id is not available because no session exists. {_OUTSIDE}")
        client = self._call.request.client
        if client.session_id is not None or self._is_of_sdk:
            return client.session_id
        if client.revision.per_request or client.conversation is None:
            own: str = self._request_state.setdefault(_OWN_ID, uuid4().hex)
            return own
        return session_of(self).own_id

    @property
    def task_id(self) -> str | None:
        """The id of the task that runs the tool; None if the call is not a task."""
        return self._own_task if self._call is None else self._call.context.task_id

    @property
    def is_background_task(self) -> bool:
        """Whether the call is a task."""
        return self.task_id is not None

    @property
    def origin_request_id(self) -> str | None:
        """The id of the JSON-RPC request; None without a request."""
        return self._own_request_id if self._call is None else self.request_id

    @property
    def session(self) -> ServerSession:
        """The session: the messages and questions of the official SDK's ServerSession.

        Raises:
            OutsideRequestError: The context was made by hand, without a session.
        """
        if self._call is None and self._own_request is None:
            if self._own_session is None:
                raise OutsideRequestError(f"session is not available. {_OUTSIDE}")
            session: ServerSession = self._own_session
        elif self._own_request is None:
            session = session_of(self)
        else:
            session = self._own_request.session
        return session

    @property
    def protocol_version(self) -> str:
        """The protocol revision of the request."""
        return self._inner.protocol_version

    @property
    def client_capabilities(self) -> Any:
        """The client's capabilities as attributes, which are None for those that it did not declare."""
        return ServerSession(self).client_capabilities

    @property
    def input_responses(self) -> dict[str, Any] | None:
        """The client's answers to the questions of an ``InputRequiredResult``, by key; None in the first round."""
        from funcmcp._compat.input_rounds import input_responses  # noqa: PLC0415 - few functions ask in this way

        return None if self._call is None else input_responses(self._call.request)

    @property
    def request_state(self) -> str | None:
        """The ``request_state`` that the function returned in the round before; None in the first round."""
        from funcmcp._compat.input_rounds import request_state  # noqa: PLC0415 - as above

        return None if self._call is None else request_state(self._call.request)

    @property
    def http(self) -> HTTPRequestInfo | None:
        """The HTTP request; None without one."""
        return None if self._call is None else self._call.request.http

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of the HTTP request; None on stdio."""
        if self._own_request is not None:
            return getattr(self._own_request.request, "headers", None)
        return None if self._request.http is None else self._request.http.headers

    @property
    def transport(self) -> str | None:
        """The transport of the request: ``"stdio"`` or ``"streamable-http"``; None without a request."""
        if self._call is None:
            return None
        return "stdio" if self._request.http is None else "streamable-http"

    @property
    def access_token(self) -> AccessToken | None:
        """The token that the caller sent; None for a caller without credentials."""
        if self._call is None:  # made by hand
            return None if self._outer is None else self._outer.access_token
        if self._request.by_author:  # a direct call within a request is one of its caller
            return None if self._outer is None else self._outer.access_token
        principal = self._request.principal
        return None if principal is None else access_token_of(principal)

    @property
    def principal(self) -> Principal | None:
        """The caller; None for one without credentials."""
        return self._request.principal

    @property
    def requested_version(self) -> VersionSpec | None:
        """The version of a component that the request names; None if it names none."""
        version = requested_version(self._request.request.params)
        return None if version is None else VersionSpec(eq=version)

    @property
    def is_of_user(self) -> bool:
        """Whether the user of this process has sent the request, as on stdio."""
        if self._request.by_author:
            return self._outer is not None and self._outer.is_of_user
        return self._request.by_user

    # Messages to the client

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to a client that asked for it."""
        if self._own_request is not None:
            await self._own_request.session.report_progress(progress, total, message)
            return
        await self._inner.report_progress(progress, total, message)

    async def log(
        self, message: Any = "", *arguments: Any, level: str | None = None, logger_name: str | None = None, **extra: Any
    ) -> None:
        """Send a log message: ``log(message, level=...)`` as in FastMCP, or ``log(level, message)`` as in the SDK."""
        if arguments:
            if _is_level(message) and not _is_level(arguments[0]):
                level, message = message, arguments[0]
            else:
                level = arguments[0]
        elif "data" in extra:
            await self._inner.log(message or level or "info", extra["data"], logger_name)
            return
        await self._send_log(level or "info", message, logger_name, extra)

    async def debug(self, message: Any, logger_name: str | None = None, **extra: Any) -> None:
        """Send a log message of the level debug."""
        await self._send_log("debug", message, logger_name, extra)

    async def info(self, message: Any, logger_name: str | None = None, **extra: Any) -> None:
        """Send a log message of the level info."""
        await self._send_log("info", message, logger_name, extra)

    async def warning(self, message: Any, logger_name: str | None = None, **extra: Any) -> None:
        """Send a log message of the level warning."""
        await self._send_log("warning", message, logger_name, extra)

    async def error(self, message: Any, logger_name: str | None = None, **extra: Any) -> None:
        """Send a log message of the level error."""
        await self._send_log("error", message, logger_name, extra)

    async def _send_log(self, level: str, message: Any, logger_name: str | None, extra: dict[str, Any]) -> None:
        details = extra.pop("extra", None) or extra
        data = {"msg": message, "extra": dict(details) if details else None}
        if self._is_of_sdk:
            data = data if details else message
        elif self._is_below_level(level):
            return
        else:
            _copy_to_log(level, message, logger_name, details)
        if self._own_request is not None:
            await self._own_request.session.send_log_message(level=level, data=data, logger=logger_name)
            return
        await self._inner.log(level, data, logger_name)

    def _is_below_level(self, level: str) -> bool:
        """Return whether the server's ``client_log_level`` leaves out a message to a client that chose no level."""
        lowest = getattr(self._own_server, "client_log_level", None)
        conversation = None if self._call is None else self._call.request.client.conversation
        is_chosen = conversation is not None and conversation.log_level != _DEFAULT_LEVEL
        return lowest is not None and not is_chosen and LEVELS[level] < LEVELS[lowest]

    async def send_notification(self, notification: Any) -> None:
        """Send a notification of ``mcp.types`` on the stream of this request."""
        await self.session.send_notification(notification)

    async def close_sse_stream(self) -> None:
        """Close the connection of this request while the call continues. The client resumes the stream later."""
        await self._inner.close_stream()

    async def notify_resource_updated(self, uri: Any) -> None:
        """Notify the clients that subscribed to a resource that it has changed."""
        self._server.notify_resource_updated(str(uri))

    async def notify_resources_changed(self) -> None:
        """Notify clients that the list of resources has changed."""
        self._server.notify_resources_changed()

    async def notify_tools_changed(self) -> None:
        """Do nothing: the server notifies clients itself when a tool is added or removed."""

    async def notify_prompts_changed(self) -> None:
        """Do nothing: the server notifies clients itself when a prompt is added or removed."""

    # Visibility

    @property
    def session_rules(self) -> Rules | None:
        """The rules that hide and show components for this client; None if it sees what other clients see."""
        return None if self._call is None else rules_of(self._call.request)

    async def enable_components(self, *, match_all: bool = False, **conditions: Any) -> None:
        """Show components to this client, whatever the server hides; the last rule that matches decides.

        Args:
            match_all: Whether all components are shown.
            conditions: ``names``, ``keys``, ``version``, ``tags`` and ``components``, as those of ``mcp.enable``.

        Raises:
            RuntimeError: Nothing identifies the client: it has no session, and is not authenticated.
            ToolError: The session can't keep rules, or the client has too many.
        """
        await self._change_visibility(component_rule(conditions, shows=True, match_all=match_all))

    async def disable_components(self, *, match_all: bool = False, **conditions: Any) -> None:
        """Hide components from this client. Arguments and errors are those of `enable_components`."""
        await self._change_visibility(component_rule(conditions, shows=False, match_all=match_all))

    async def reset_visibility(self) -> None:
        """Forget the rules of this client. Errors are those of `enable_components`."""
        await self._change_visibility(None)

    # For transforms

    @property
    def caller(self) -> Principal | None:
        """The caller of the request; None for callers without credentials, and for the server's author."""
        return None if self._call is None else self._call.request.principal

    async def _change_visibility(self, rule: ComponentRule | None) -> None:
        server: Any = self._server
        await server.client_rules.change(self._request, rule)

    async def _get_visibility_rules(self) -> list[dict[str, Any]]:
        """Return the rules in FastMCP's form."""
        return as_dicts(self.session_rules)

    # Questions to the client

    async def elicit(
        self,
        message: str,
        response_type: Any = None,
        schema: Any = None,
        *,
        response_title: str | None = None,
        response_description: str | None = None,
    ) -> Any:
        """Ask the user to fill in a form, and return the accepted, declined or cancelled answer.

        Args:
            message: The reason for the question, which the user reads.
            response_type: The form: a model, a dataclass, a simple type, an enum, choices in a list or in a dict with
                their titles, one of these in a list for several answers, or None for a question without fields. The
                SDK's name of it is *schema*.
            schema: The same.
            response_title: The title of the field of a simple type, or of choices.
            response_description: The description of that field.

        Raises:
            TypeError: A form can't show the type.
            McpError: The client does not support forms, or answered with an error.
            ToolError: The answer does not fit. A server of the official SDK raises it in place of McpError, too.
        """
        if schema is not None or self._is_of_sdk:
            from funcmcp._compat.sdk_forms import SDKForm  # noqa: PLC0415 - loads pydantic

            question = SDKForm(message, schema if response_type is None else response_type)
            return answered(await self._inner._ask_one(question, None))  # noqa: SLF001 - a part of it
        from funcmcp._compat.forms import form_of  # noqa: PLC0415 - loads pydantic

        form = form_of(response_type, response_title, response_description)
        with raising_mcp_errors("Elicitation not supported"):
            answer = answered(await self._inner.elicit(message, form.schema))
        return AcceptedElicitation(form.read(answer.data)) if answer.action == "accept" else answer

    async def elicit_url(self, message: str, url: str, elicitation_id: str | None = None) -> Any:
        """Ask the user to visit a page."""
        return answered_url(await self.session.elicit_url(message, url, elicitation_id))

    async def sample(
        self,
        messages: Any,
        system_prompt: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: Any = None,
        **options: Any,
    ) -> SamplingResult:
        """Ask the client's model for a message.

        Raises:
            TypeError: *options* has tools or a result type, which funcmcp does not have.
        """
        chosen = sampling_options(system_prompt, temperature, model_preferences, options)
        answer = await self._inner.sample(sampling_messages(messages), max_tokens=max_tokens or _MAX_TOKENS, **chosen)
        return SamplingResult(answer)

    async def list_roots(self) -> list[Root]:
        """Return the client's roots."""
        return await self._inner.list_roots()

    # State

    async def get_state(self, key: str, default: Any = None) -> Any:
        """Return a value that `set_state` stored in this request, for this session, or for this caller in a store."""
        if key in self._request_state:
            return self._request_state[key]
        if not self._has_store:
            return self._state.get(key, default)
        return await self._inner.state.get(key, default)

    def set_state(self, key: str, value: Any, *, serializable: bool = True) -> Done:
        """Store a value. With a server that has ``state=``, ``await`` is needed; otherwise it is allowed.

        Args:
            key: Its name.
            value: Any value; in a store one that JSON can carry.
            serializable: Store it for the caller in the server's store. Without a store it is for the session, on this
                server and in this process; for the request if the request has no session. False stores it for the
                request, also on the servers that this one mounts.
        """
        if not serializable:
            self._request_state[key] = value
            return Done()
        self._request_state.pop(key, None)
        if self._has_store:
            return Done(lambda: self._inner.state.set(key, value))
        self._state[key] = value
        return Done()

    def delete_state(self, key: str) -> Done:
        """Delete a value that `set_state` stored. ``await`` is needed as there."""
        self._request_state.pop(key, None)
        if self._has_store:
            return Done(lambda: self._inner.state.delete(key))
        self._state.pop(key, None)
        return Done()

    @property
    def _has_store(self) -> bool:
        """Whether state is in a store, for a caller that has a session, credentials, or the process for itself."""
        if not runtime_of(self._server).has_shared_state:
            return False
        from funcmcp._server.calls.value_owner import value_owner_of  # noqa: PLC0415 - few servers have a store

        return value_owner_of(self._request) is not None

    # The server's own features

    @property
    def _principal(self) -> Principal | None:
        """The caller of the request; None without a request."""
        return None if self._call is None else self._call.request.principal

    async def read_resource(self, uri: Any) -> Any:
        """Return the contents of a resource of this server: a list, whose items have ``content`` and ``mime_type``."""
        try:
            result: Any = await self._server.read_resource(str(uri), principal=self._principal)
        except MCPError as error:
            raise self._error_of(error, ResourceError) from error.__cause__
        if is_input_required_type(type(result)):
            raise RuntimeError(
                "Resource returned InputRequiredResult; ctx.read_resource() only returns content — use "
                "MCPServer.read_resource(uri, context) to receive and forward it."
            )
        return result if isinstance(result, list) else read_contents(result)

    async def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> GetPromptResult:
        """Return the messages of a prompt of this server."""
        try:
            server: Any = self._server
            rendered: GetPromptResult = await server.rendered(name, arguments, principal=self._principal)
            return rendered
        except MCPError as error:
            raise self._error_of(error, PromptError) from error.__cause__

    def _error_of(self, error: MCPError, failure: type[ResourceError | PromptError]) -> MCPError:
        """Return the error of a request within this one: *failure* if a function of FastMCP's failed."""
        server: Any = self._server
        if error.code == INTERNAL_ERROR and not server.is_of_sdk:
            return failure(error.message)
        return as_fastmcp_error(error, error.__cause__)

    async def list_resources(self) -> list[Resource]:
        """Return the resources of this server that the caller sees."""
        return await self._server.list_resources(principal=self._principal)

    async def list_prompts(self) -> list[Prompt]:
        """Return the prompts of this server that the caller sees."""
        return await self._server.list_prompts(principal=self._principal)


def _copy_to_log(level: str, message: Any, logger_name: str | None, details: Mapping[str, Any]) -> None:
    """Write a message to the client into the server's log, with the level DEBUG as FastMCP does."""
    if _to_client.isEnabledFor(logging.DEBUG):
        name = f" ({logger_name})" if logger_name else ""
        members = {*vars(logging.makeLogRecord({})), "asctime", "message"}  # which a program may have added to
        extra = {key: value for key, value in (details or {}).items() if key not in members}
        _to_client.debug("Sending %s to client%s: %s", level.upper(), name, message, extra=extra)


def is_context(hint: Any) -> bool:
    """Return whether an annotation is a `Context`, or a union with one."""
    origin = get_origin(hint)
    if origin is Annotated:
        return is_context(get_args(hint)[0])
    if origin in {Union, UnionType}:
        return any(is_context(member) for member in get_args(hint))
    return isinstance(hint, type) and issubclass(hint, Context)


def _is_level(value: Any) -> bool:
    return isinstance(value, str) and value in LEVELS


class Done:
    """An awaitable that is done, or that does something once.

    Args:
        work: Returns what is to be awaited; None if nothing remains.
    """

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], Awaitable[object]] | None = None) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, None]:
        if self._work is not None:
            yield from self._work().__await__()


class RequestView:
    """The request of a `Context`, with the names of the official SDK's RequestContext."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def lifespan_context(self) -> Any:
        """What the server's lifespan yielded."""
        return self._context.lifespan_context

    @property
    def method(self) -> str:
        """The method of the request."""
        return self._context.request_method

    @property
    def request_id(self) -> str:
        """The id of the JSON-RPC request."""
        return self._context.request_id

    @property
    def session(self) -> Any:
        """The session."""
        return self._context.session

    @property
    def protocol_version(self) -> str:
        """The protocol revision of the request."""
        return self._context.protocol_version

    @property
    def meta(self) -> RequestMeta:
        """The members of the request's ``_meta``, as a mapping and as attributes."""
        return RequestMeta(self._context._request.meta)  # noqa: SLF001 - a part of Context

    @property
    def request(self) -> Any:
        """The HTTP request; None on stdio."""
        http = self._context._request.http  # noqa: SLF001 - a part of Context
        return None if http is None else http_request_of(http)


def _includes(declared: Mapping[str, Any], required: Mapping[str, Any]) -> bool:
    """Return whether declared capabilities have the required members, at each depth, but for members of False."""
    for name, value in required.items():
        present = declared.get(name, False)
        if isinstance(value, dict) and isinstance(present, dict):
            if not _includes(present, value):
                return False
        elif present != value:
            return False
    return True


class ServerSession:
    """The session of a `Context`, with the names of the official SDK's ServerSession.

    It is one object for all requests of a session, because servers keep their data by it. What it sends belongs to the
    request that runs; without one, to the last one that asked for the session. Over HTTP that request is not kept.
    """

    def __init__(self, context: Context) -> None:
        self._last: Callable[[], Context | None] = lambda: context
        self.own_id: str = uuid4().hex

    def use(self, context: Context) -> None:
        """Set the last request of the session."""
        # A session over HTTP ends late or never, and a request may be large.
        is_kept = context._request.http is None  # noqa: SLF001 - a part of Context
        self._last = (lambda: context) if is_kept else ref(context)

    @property
    def _context(self) -> Context:
        last, now = self._last(), context_variable.get()
        if now is not None and now._call is not None:  # noqa: SLF001 - a part of Context
            conversation = now._call.request.client.conversation  # noqa: SLF001 - a part of Context
            if conversation is not None and conversation.session is self:
                return now
        if last is None:
            raise OutsideRequestError("The request of this session has ended.")
        return last

    @property
    def client_params(self) -> SimpleNamespace:
        """The client's name, version and capabilities."""
        client = self._context._request.client  # noqa: SLF001 - a part of Context
        implementation = model_of("Implementation", {"name": "", "version": "", **client.info})
        return SimpleNamespace(
            clientInfo=implementation,
            client_info=implementation,
            capabilities=self.client_capabilities,
            protocolVersion=client.revision.date,
            protocol_version=client.revision.date,
        )

    @property
    def client_capabilities(self) -> Any:
        """The client's capabilities as attributes, which are None for those that it did not declare."""
        capabilities = self._context._request.client.capabilities  # noqa: SLF001 - a part of Context
        return model_of("ClientCapabilities", dict(capabilities))

    @property
    def protocol_version(self) -> str:
        """The protocol revision of the request."""
        return self._context.protocol_version

    def check_client_capability(self, capability: Any) -> bool:
        """Return whether the client declared the capabilities of a ``ClientCapabilities`` object."""
        required = capability.model_dump(by_alias=True, exclude_none=True)
        inner = self._context._inner  # noqa: SLF001 - a part of Context
        can_ask = all(inner.can(name) for name in ("sampling", "elicitation", "roots") if name in required)
        return can_ask and _includes(self._context._request.client.capabilities, required)  # noqa: SLF001 - as above

    async def create_message(self, messages: Any, *, max_tokens: int = _MAX_TOKENS, **options: Any) -> Any:
        """Ask the client's model for a message.

        Returns:
            A ``CreateMessageResult`` of ``mcp.types``; a `SamplingResult` if the package `mcp` is not installed.
        """
        return sdk_result(await self._context.sample(messages, max_tokens=max_tokens, **options))

    async def elicit(self, message: str, requestedSchema: Any = None, **options: Any) -> Any:  # noqa: N803 - the SDK's name
        """Ask the user to fill in a form."""
        return await self._context.elicit(message, requestedSchema or options.get("requested_schema"))

    async def elicit_form(self, message: str, requested_schema: Any, **_: Any) -> Any:
        """Ask the user to fill in a form, and return the answer with its ``action`` and its ``content``."""
        return await self._context.elicit(message, requested_schema)

    async def elicit_url(self, message: str, url: str, elicitation_id: str | None = None, **_: Any) -> Any:
        """Ask the user to visit a page, and return the answer with its ``action``."""
        context = self._context._request  # noqa: SLF001 - a part of Context
        has_id = context.client.revision.elicitation_ids
        question = ElicitURL(message, url, elicitation_id=(elicitation_id or uuid4().hex) if has_id else None)
        answer = question.read((await context.ask({f"url-{elicitation_id or url}": question.request()})).popitem()[1])
        return model_of("ElicitResult", {"action": answer.action})

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress of this request."""
        await self._context.report_progress(progress, total, message)

    async def list_roots(self) -> SimpleNamespace:
        """Return the client's roots."""
        return SimpleNamespace(roots=await self._context.list_roots())

    async def send_log_message(self, level: str, data: Any, logger: str | None = None, **_: Any) -> None:
        """Send a log message."""
        await self._context._inner.log(level, data, logger)  # noqa: SLF001 - a part of Context

    async def send_progress_notification(
        self,
        progress_token: Any,  # noqa: ARG002 - it is the request's own
        progress: float,
        total: float | None = None,
        message: str | None = None,
        **_: Any,
    ) -> None:
        """Report progress of this request."""
        await self._context.report_progress(progress, total, message)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:  # noqa: ARG002 - it is this one
        """Send a notification of ``mcp.types`` on the stream of this request."""
        message = plain(getattr(notification, "root", notification))
        await self._context._request.notify(message["method"], message.get("params") or {})  # noqa: SLF001 - a part of Context

    async def send_resource_updated(self, uri: Any) -> None:
        """Notify the clients that subscribed to a resource that it has changed."""
        self._context.fastmcp.notify_resource_updated(str(uri))

    async def send_resource_list_changed(self) -> None:
        """Notify clients that the list of resources has changed."""
        self._context.fastmcp.notify_resources_changed()

    async def send_elicit_complete(self, elicitation_id: str, **_: Any) -> None:
        """Do nothing: funcmcp itself chooses the ids of questions with a URL."""

    async def send_tool_list_changed(self) -> None:
        """Do nothing: the server notifies clients itself when a tool is added or removed."""

    async def send_prompt_list_changed(self) -> None:
        """Do nothing: the server notifies clients itself when a prompt is added or removed."""


def session_of(context: Context) -> ServerSession:
    """Return the session of a request: the same object as in the session's other requests."""
    conversation = context._request.client.conversation  # noqa: SLF001 - a part of Context
    if conversation is None:
        return ServerSession(context)
    session = conversation.session
    if not isinstance(session, ServerSession):
        session = conversation.session = ServerSession(context)
    session.use(context)
    return session


context_variable: ContextVar[Context | None] = ContextVar("funcmcp_compat_context", default=None)
"""The context of the request that runs now. The server sets it around each request."""


@public("funcmcp.compat")
def get_context() -> Context:
    """Return the context of the request that runs now.

    Raises:
        RuntimeError: No request runs.
    """
    context = context_variable.get()
    if context is None:
        raise RuntimeError("No active context found: no request runs here.")
    return context

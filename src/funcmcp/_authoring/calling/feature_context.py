"""The context of a call: data of the request, and messages and questions to the client; `CancellationToken`.

How it works: a function that has a parameter of the type `Context` gets one object for the length of one call. Messages
and questions go through the request's `RequestContext`. When the call ends, `FunctionCall` closes the context: messages
are ignored from then on, and threads that wait in `Context.wait` are released with a ToolError. A plain function
may outlive its call, because a thread can't be stopped from outside.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import math
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload
from uuid import uuid4

from funcmcp._authoring.calling.questions import Elicit, Elicited, ElicitURL, ListRoots, Root, Sample, Sampled
from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._authoring.schemas.python_values import python_value
from funcmcp._authoring.signatures.partials import is_async
from funcmcp._authoring.signatures.signature import parameter_of
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ToolError
from funcmcp._protocol.extensions import declared_settings, is_method
from funcmcp._protocol.levels import LEVELS
from funcmcp._server.calls.feature import CallEnd, TimeLimit
from funcmcp._server.catalog.visibility import visibility_rule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from os import PathLike
    from typing import Literal, Unpack

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.questions import Question, SampleOptions
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.results.content import Content, ResourceLink
    from funcmcp._server.calls.context import HTTPRequestInfo, RequestContext
    from funcmcp._server.catalog.visibility import VisibilityRule
    from funcmcp._state.caller_state import CallerState

T = TypeVar("T")
D = TypeVar("D")

_TRACE = ("traceparent", "tracestate", "baggage")
_NO_SIGN_IN = (
    "This needs a sign-in of the user through the server's own sign-in page, in the call itself. A task, an API key "
    "and a token of another issuer have none. If the user has signed in there, the server is not configured for such "
    "tokens: report it to its operator."
)


@public("funcmcp")
class CancellationToken:
    """Shows a tool whether its call was cancelled. It may be read from any thread.

    Example:
        ```python
        @mcp.tool
        def crunch(rows: list[int], token: CancellationToken) -> int:
            for row in rows:
                token.raise_if_cancelled()
        ```
    """

    __slots__ = ("_cancelled",)

    def __init__(self) -> None:
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or has timed out."""
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        """Raise ToolError if the call was cancelled or has timed out."""
        if self._cancelled:
            raise ToolError("The call was cancelled.")

    def cancel(self) -> None:
        """Set the token."""
        self._cancelled = True


class HandleArgument(NamedTuple):
    """The argument of a tool that is a `funcmcp.state.StateHandle`.

    Attributes:
        name: The name of the argument.
        handle: What the client has sent; None if it has left the argument out.
    """

    name: str
    handle: str | None


@public("funcmcp")
class Context:
    """The context of one call: data of its request, and messages and questions to the client.

    A function of a tool, resource, template or prompt, a lister and a completer get it through a parameter of this
    type. A plain function runs in a worker thread and calls the async methods through `wait`:
    ``context.wait(context.report_progress(1, 10))``.

    Attributes:
        name: The name of the tool, resource, template or prompt, or of the function that lists or completes.
        arguments: The arguments of a tool or prompt as the client sent them, of prompts texts. Otherwise empty.
        uri: The requested URI of a resource or a template. Otherwise empty.
    """

    __slots__ = (
        "_began",
        "_closed",
        "_context",
        "_counts",
        "_handle",
        "_loop",
        "_progress",
        "_services",
        "_state",
        "_waits",
        "arguments",
        "name",
        "uri",
    )

    def __init__(
        self,
        context: RequestContext,
        services: Services,
        name: str,
        *,
        arguments: Mapping[str, Any] = MappingProxyType({}),
        uri: str = "",
        handle: HandleArgument | None = None,
    ) -> None:
        self.name: str = name
        self.arguments: Mapping[str, Any] = arguments
        self.uri: str = uri
        self._context = context
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._counts: dict[str, int] = {}
        self._progress: float | None = None
        self._closed = False
        self._handle = handle
        self._state: CallerState | None = None
        self._waits: set[concurrent.futures.Future[Any]] = set()

    if not TYPE_CHECKING:  # type checkers report unknown attributes themselves

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that names funcmcp's counterpart of an attribute of other frameworks."""
            from funcmcp._text.other_frameworks import CONTEXT_ATTRIBUTES  # noqa: PLC0415 - only errors need it

            message = f"Context has no attribute {name!r}"  # Python adds ". Did you mean ...?"
            if name in CONTEXT_ATTRIBUTES:
                message += f". Use {CONTEXT_ATTRIBUTES[name]}"
            raise AttributeError(message, name=name, obj=self)

    @property
    def principal(self) -> Principal | None:
        """The principal that calls. None for a caller without credentials, or if the server has no `auth`."""
        return self._context.principal

    async def upstream_token(self, scopes: Sequence[str], *, audience: str | None = None) -> str:
        """Return an access token for another API, on behalf of the user of the call.

        The user must have signed in through an `OAuthProxy` whose upstream exchanges tokens, such as
        ``EntraID(..., on_behalf_of="access_as_user")``. The token is for this server: send it to the other API only,
        and never return it. It is valid for a minute at least, unless the provider issues shorter ones.

        Args:
            scopes: The scopes at the other API. With Entra ID they name it, as in
                ``["https://graph.microsoft.com/Calendars.Read"]``, and all of them must be of one API.
            audience: The other API, for providers that want it apart from the scopes.

        Raises:
            UpstreamTokenError: There is no token. Its ``reason`` says who can do something about it, and its text is
                for the caller.
        """
        if isinstance(scopes, str):
            raise TypeError("upstream_token takes a list of scopes, not one string.")
        principal = self.principal
        if principal is None or principal.upstream_tokens is None:
            from funcmcp._auth.principal import UpstreamTokenError  # noqa: PLC0415 - most tools need none

            raise UpstreamTokenError("missing", _NO_SIGN_IN)
        return await principal.upstream_tokens(scopes, audience)

    async def grant_token(self, provider: str, scopes: Sequence[str] = (), *, refused: str | None = None) -> str:
        """Return an access token of the user of the call at a service of ``Auth(grants=[...])``.

        The user is asked to connect an account if that has not happened, or if the account lacks a scope. In 2026-07-28
        a question ends the run, and the tool runs again from its start. With ``@mcp.tool(grant=...)`` the user is asked
        before the tool runs. The token is for this server: send it to the service only, and never return it.

        Args:
            provider: The name of the `funcmcp.auth.GrantProvider`.
            scopes: The scopes that the token must have, all of them.
            refused: A token that the service has just refused (401). It is renewed, or the user is asked again.

        Raises:
            UpstreamTokenError: There is no token. Its ``reason`` says who can do something about it, and its text is
                for the caller.
            LookupError: The server has no such provider.
            RuntimeError: The server has no grants.
        """
        from funcmcp._auth.grants import Grant  # noqa: PLC0415 - few tools have grants
        from funcmcp._authoring.calling.grants import grants_of  # noqa: PLC0415 - as above

        return await grants_of(self._services).token(self._context, Grant(provider, scopes), refused)

    async def end_grant(self, provider: str) -> bool:
        """Forget the account of the user of the call at a service, and revoke its tokens there.

        Args:
            provider: The name of the `funcmcp.auth.GrantProvider`.

        Returns:
            Whether the service has revoked them. False if there was no account, if the service has no revocation
            endpoint, or if it could not be reached. The account is forgotten in each case.

        Raises:
            UpstreamTokenError: The caller is not a user, or the store of the server can't be reached.
            LookupError: The server has no such provider.
            RuntimeError: The server has no grants.
        """
        from funcmcp._authoring.calling.grants import grants_of  # noqa: PLC0415 - few tools have grants

        return await grants_of(self._services).end(self.principal, provider)

    @property
    def session_id(self) -> str | None:
        """The session's id. None if the call has no session."""
        return self._context.client.session_id

    @property
    def request_id(self) -> str | int:
        """The id of the request, as the client chose it. Behind Azure's triggers it is a number of this process."""
        return self._context.request.id

    @property
    def protocol_version(self) -> str:
        """The protocol revision of the call, such as ``"2026-07-28"``."""
        return self._context.client.revision.date

    @property
    def client_info(self) -> Mapping[str, Any]:
        """The client's name, version and other members of its Implementation. Empty if the client did not send it."""
        return self._context.client.info

    @property
    def http_request(self) -> HTTPRequestInfo | None:
        """The HTTP request: method, url, headers, query_params, cookies. None on a transport without HTTP."""
        return self._context.http

    @property
    def client_address(self) -> str | None:
        """The IP address that the request came from, such as ``"203.0.113.7"``.

        Behind the proxies that ``HTTPOptions(proxies=)`` declares, it is the address that the outermost of them
        received the request from. None if the address is unknown: on stdio, from a client in memory, on a Unix socket
        without `proxies`, and in a task.
        """
        return self._context.client_address

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``."""
        return self._context.meta

    @property
    def trace(self) -> dict[str, str]:
        """The client's W3C trace context: those of ``traceparent``, ``tracestate`` and ``baggage`` that it sent.

        They are those of the request's ``_meta``. If it has none of them, they are those of the HTTP headers.
        """
        meta = self.meta
        trace = {name: meta[name] for name in _TRACE if isinstance(meta.get(name), str)}
        http = self._context.http
        if trace or http is None:
            return trace
        return {name: http.headers[name] for name in _TRACE if name in http.headers}

    @property
    def lifespan_context(self) -> Any:
        """What the functions of `MCPServer.add_lifespan` have yielded: one value, or the members of several dicts.

        It is an empty dict for a server without them. Raises RuntimeError if the server has not started.
        """
        return self._services.lifespans.value_in(self._loop)

    @property
    def state(self) -> CallerState:
        """Values of the caller that last across calls: `get`, `set`, `change`, `delete`; see docs/guides/state.md.

        Example:
            ```python
            cart = await context.state.get("cart", [])
            await context.state.set("cart", [*cart, item], ttl=3600)
            ```
        """
        if self._state is None:
            from funcmcp._authoring.calling.state_access import state_of  # noqa: PLC0415 - few functions have state

            self._state = state_of(self._context, self._services, self._handle)
        return self._state

    def can(self, capability: str) -> bool:
        """Return whether the client declared a capability: ``"elicitation"``, ``"sampling"`` or ``"roots"``."""
        return isinstance(self._context.client.capabilities.get(capability), dict)

    def client_extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Return the settings with which the client declares an extension; None if it does not declare it.

        Args:
            identifier: The name, such as ``"com.example/search"``.
        """
        return declared_settings(self._context.client.capabilities, identifier)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification of an extension, on the stream of this request.

        Nothing is sent where notifications can't reach the client before the result. Ask `client_extension` first:
        other clients ignore the notification, or log a warning.

        Args:
            method: The name, with a prefix that you own, such as ``"com.example/search/found"``.
            params: A JSON object.

        Raises:
            ValueError: The name has no such prefix, or the params are not JSON.
        """
        if not is_method(method) or "." not in method.partition("/")[0]:
            raise ValueError(f"A notification needs a name such as 'com.example/search/found'; got {method!r:.80}.")
        message = dict(params or {})
        encode(message)
        if not self._closed:
            await self._context.notify(method, message)

    @property
    def wants_progress(self) -> bool:
        """Whether progress is sent: the client asked for it, or the call runs as a task."""
        return type(self.meta.get("progressToken")) in {str, int} or self._context.task_id is not None

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress. Nothing is sent if the client did not ask for it, or if the progress did not increase.

        In a task the progress becomes the status message, such as "reading (3 of 10)".

        Raises:
            ValueError: A number is not a finite number, or the message is not valid Unicode.
        """
        progress = _number(progress)
        params: dict[str, Any] = {"progress": progress}
        if total is not None:
            params["total"] = _number(total)
        if message is not None:
            params["message"] = message
        encode(params)  # raises ValueError for the author, even if the client did not ask for progress
        if self._closed or not self.wants_progress:
            return
        if self._progress is not None and progress <= self._progress:
            return
        self._progress = progress
        await self._context.notify(
            "notifications/progress", {"progressToken": self.meta.get("progressToken"), **params}
        )

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message. Nothing is sent if the client did not ask for messages of this level.

        Args:
            level: One of debug, info, notice, warning, error, critical, alert and emergency.
            data: Any JSON value, as a tool may return it. It must not contain secrets.
            logger: The name of the part of the program that logs.

        Raises:
            ValueError: The level is unknown, or the data is not JSON.
        """
        if level not in LEVELS:
            raise ValueError(f"The level must be one of {', '.join(LEVELS)}, not {level!r}.")
        if self._closed:
            return
        params = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        try:
            encode(params)
        except ValueError:
            params["data"] = jsonable(data)
            encode(params)
        await self._context.notify("notifications/message", params)

    async def debug(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of the level debug; see `log`."""
        await self.log("debug", data, logger)

    async def info(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of the level info; see `log`."""
        await self.log("info", data, logger)

    async def warning(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of the level warning; see `log`."""
        await self.log("warning", data, logger)

    async def error(self, data: Any, logger: str | None = None) -> None:
        """Send a log message of the level error; see `log`."""
        await self.log("error", data, logger)

    async def extend(self, seconds: float) -> float:
        """Extend the time limit of the call to so many seconds from now, and return the seconds that it has.

        The option ``max_timeout=`` limits the whole call, and the ``ttl`` limits a task as well: near the limit a call
        gets less than it asks for. A call without a time limit needs no extension.

        Args:
            seconds: The seconds, counted from now.

        Raises:
            RuntimeError: The tool, resource or prompt has no ``max_timeout=``.
            ValueError: The seconds are not a number above 0.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise ValueError(f"extend takes a number of seconds above 0; got {seconds!r:.60}.")
        limit, now = self._context.time_limit, self._loop.time()
        if limit is None:
            return self._context.latest_end - now
        if limit.longest is None:
            raise RuntimeError(f"{self.name} can't be extended. Set max_timeout= beside its timeout=.")
        moved = self._context.moved_end
        end = self._began + limit.seconds if moved is None else moved.time
        latest = min(self._began + limit.longest, self._context.latest_end)
        extended = min(now + seconds, latest)
        if extended > end and not self._closed:
            self._context.move_end(CallEnd(extended, TimeLimit(round(extended - self._began, 1), "max_timeout=")))
            end = extended
        return min(end, self._context.latest_end) - now

    async def link_file(
        self, data: bytes | str | PathLike[str], *, name: str | None = None, mime_type: str | None = None
    ) -> ResourceLink:
        """Keep a file for the caller, and return a link to it, for a file that is too large for a result.

        The caller can read the link as a resource, or pass its URI to a tool that takes an `UploadedFile`, until
        `Uploads.seconds` have passed. The file counts for the caller's limits of `Uploads`.

        Args:
            data: The bytes of the file, or its path.
            name: The name that clients see. By default it is that of the path.
            mime_type: The media type. By default it follows from the name's suffix.

        Raises:
            RuntimeError: The server has no `HTTPOptions(uploads=...)`.
            ValueError: The file has more than `Uploads.file_bytes`.
            ToolError: There is no room for the file.
            OSError: The file can't be read.
        """
        from funcmcp._authoring.calling.uploaded_file import link_file  # noqa: PLC0415 - few servers keep files

        return await link_file(self._services.uploads, self._context, data, name=name, mime_type=mime_type)

    async def enable(
        self,
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
        components: Collection[Literal["tool", "resource", "template", "prompt"]] | None = None,
        only: bool = False,
    ) -> None:
        """Show features to the session of the call, also those that `MCPServer.disable` hides from other clients.

        The rules of a session precede those of the server, and the last one that matches a feature decides. The client
        is notified. The rules end with the session.

        Args:
            names: Names of tools and prompts, and URIs of resources and templates.
            tags: Tags of which the feature must have at least one.
            components: Kinds of features.
            only: Hide all other features from the session, and forget its previous rules.

        Raises:
            ToolError: The call has no session that can keep rules: see docs/guides/servers.md. Or the session has too
                many rules.
            TypeError: An argument is one string, and not a collection of strings.
            ValueError: A kind of feature is unknown.
        """
        await self._change_view(visibility_rule(names, tags, components, shows=True, only=only))

    async def disable(
        self,
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
        components: Collection[Literal["tool", "resource", "template", "prompt"]] | None = None,
    ) -> None:
        """Hide features from the session of the call, for which they are unknown. Errors are as for `enable`.

        Args:
            names: Names of tools and prompts, and URIs of resources and templates.
            tags: Tags of which the feature must have at least one.
            components: Kinds of features.
        """
        await self._change_view(visibility_rule(names, tags, components, shows=False))

    async def reset_visibility(self) -> None:
        """Forget the rules of the session, so that it sees what other clients see. Errors are as for `enable`."""
        await self._change_view(None)

    async def _change_view(self, rule: VisibilityRule | None) -> None:
        from funcmcp._authoring.calling.session_rules import change_rules  # noqa: PLC0415 - few tools need it

        await change_rules(self._context, rule)

    async def close_stream(self) -> None:
        """Close the connection of this request while the call continues. The client resumes the stream later.

        Nothing happens if the client can't resume the stream.
        """
        self._context.channel.close_stream()

    @overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> Elicited[T]: ...

    @overload
    async def elicit(
        self, message: str, schema: dict[str, Any], *, key: str | None = None
    ) -> Elicited[dict[str, Any]]: ...

    @overload
    async def elicit(self, message: str, schema: list[str], *, key: str | None = None) -> Elicited[str]: ...

    @overload
    async def elicit(self, message: str, schema: list[list[str]], *, key: str | None = None) -> Elicited[list[str]]: ...

    @overload
    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Elicited[Any]: ...

    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Elicited[Any]:
        """Ask the user to fill in a form; see `Elicit` for the schema.

        Args:
            message: The reason for the question, which the user reads.
            schema: The form.
            key: The name of the question. By default questions have numbers. A 2026-07-28 client sends the call again
                with the answer, so a tool must ask the same questions in the same order each time it runs.

        Returns:
            The answer. Its ``action`` is ``"accept"``, ``"decline"`` or ``"cancel"``. Its ``content`` is an object of
            the form's type, the value itself if the form is a single field, or a dict if the form is a JSON schema;
            it is None if the user did not accept. Type checkers know its type after
            ``if answer.action == "accept":``.

        Raises:
            ToolError: The client does not support forms, or its answer does not fit.
        """
        answer: Elicited[Any] = await self._ask_one(Elicit(message, schema), key)
        return answer

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited[None]:
        """Ask the user to visit a page, for data that must not pass through the client, such as a password."""
        elicitation_id = uuid4().hex if self._context.client.revision.elicitation_ids else None
        question = ElicitURL(message, url, elicitation_id=elicitation_id)
        answer: Elicited[None] = await self._ask_one(question, key)
        return answer

    async def sample(
        self,
        messages: str | Content | Sequence[str | Content | Mapping[str, Any]],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> Sampled:
        """Ask the client's model for a message; see `Sample`."""
        answer: Sampled = await self._ask_one(Sample(messages, max_tokens=max_tokens, **options), key)
        return answer

    async def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Return the client's roots."""
        roots: list[Root] = await self._ask_one(ListRoots(), key)
        return roots

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask several questions at once, and return the answers under the same keys.

        Example:
            ```python
            answers = await context.ask({"name": Elicit("Who are you?", Name), "roots": ListRoots()})
            ```
        """
        if not questions:
            return {}
        answers = await self._context.ask({key: question.request() for key, question in questions.items()})
        return {key: question.read(answers[key]) for key, question in questions.items()}

    async def _ask_one(self, question: Question, key: str | None) -> Any:
        if key is None:
            number = self._counts[question.kind] = self._counts.get(question.kind, 0) + 1
            key = f"{question.kind}-{number}"
        return (await self.ask({key: question}))[key]

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Run an awaitable on the server's event loop, wait for it in a worker thread, and return its result.

        Raises:
            RuntimeError: The method was called on the event loop.
            ToolError: The call was cancelled in the meantime.
        """
        if _running_loop() is self._loop:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise RuntimeError("context.wait is for plain functions. Use await in an async function.")
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)
        self._waits.add(future)
        try:
            if self._closed:
                future.cancel()
            return future.result()
        except concurrent.futures.CancelledError:
            raise ToolError("The call was cancelled.") from None
        finally:
            self._waits.discard(future)

    @property
    def task_id(self) -> str | None:
        """The id of the task that a tool runs as. None in a plain call."""
        return self._context.task_id

    async def once(self, key: str, function: Callable[[], T | Awaitable[T]]) -> T:
        """Run a part of a task that must not run again, such as a payment, and return its result.

        The store keeps the result. A later run of the same task, after a question or a crash, gets it without running
        the function. Only a process that dies between the end of the function and the write runs it again. In a plain
        call the function just runs.

        Args:
            key: The name of the part, the same in every run of the tool.
            function: Takes no arguments and returns a value that JSON can represent. A later run gets what JSON makes
                of it, such as a dict for a model. A plain function runs in a worker thread.

        Raises:
            MCPError: The result can't be stored, because there is no room or the task has ended.
            ValueError: JSON can't represent the result.
        """

        async def run() -> Any:
            if is_async(function):
                result: Any = function()
            else:
                result = await self._services.threads.run(function, {})
            return await result if inspect.isawaitable(result) else result

        result: T = await self._context.once(key, run)
        return result

    async def detach(self) -> None:
        """Continue the call as a task, for a tool with ``task=TaskOptions(detaches=True)``.

        The run ends here, and the task runs the tool again from its start. In the task, and in calls of clients without
        tasks, this method does nothing.
        """
        await self._context.detach()

    @overload
    def get_argument(self, name: str, type: type[T]) -> T | None: ...

    @overload
    def get_argument(self, name: str, type: type[T], default: D) -> T | D: ...

    def get_argument(self, name: str, type: Any = Any, default: Any = None) -> Any:
        """Return an argument converted to a type, or the default if it is absent or null.

        Raises:
            ToolError: The argument does not fit the type.
        """
        value = self.arguments.get(name)
        return default if value is None else _read(name, value, type)

    def get_required_argument(self, name: str, type: type[T]) -> T:
        """Return an argument converted to a type.

        Raises:
            ToolError: The argument is absent, or does not fit the type.
        """
        if name not in self.arguments:
            raise ToolError(f"{name}: is required")
        result: T = _read(name, self.arguments[name], type)
        return result

    def close(self) -> None:
        """End the context with its call: later messages are ignored, and threads in `wait` get a ToolError."""
        self._closed = True
        for future in tuple(self._waits):
            future.cancel()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _read(name: str, value: Any, type: Any) -> Any:
    try:
        reader = _reader(name, type)
    except TypeError:  # the type has marks that are not hashable, so it can't be cached
        reader = _reader.__wrapped__(name, type)
    return reader({name: value})[name]


def _number(value: Any) -> float:
    """Return a number; one of another library as a number of Python. Raise ValueError for other values."""
    try:
        number = value if isinstance(value, int | float) else python_value(value)
    except ValueError:
        number = None
    if not isinstance(number, int | float):
        raise ValueError("progress and total must be numbers.")  # noqa: TRY004 - as the docstring of `report_progress` says
    return number


@lru_cache(maxsize=256)
def _reader(name: str, type: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from funcmcp._authoring.calling.arguments import parts_of, reader_of  # noqa: PLC0415 - loads pydantic, for tools that convert

    return reader_of(parts_of([parameter_of(name, type)], "get_argument", lax=False), lax=False)

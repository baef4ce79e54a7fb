"""An MCP client: typed methods for the requests of a client, and the callbacks for what the server sends.

How it works: `requests.py` agrees on a revision with the server and sends single requests. `_in_rounds` repeats a
request with answers while the server asks for input (2026-07-28). `tool_tasks.py` follows calls that become tasks.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from funcmcp._client.answers import Answers
from funcmcp._client.messages import member_of
from funcmcp._client.notifications import log_message_of, progress_of
from funcmcp._client.requests import Requests
from funcmcp._client.targets import HTTPEndpoint, StdioCommand
from funcmcp._client.tool_tasks import TaskClient, ToolTask
from funcmcp._client.transport import Transport
from funcmcp._protocol.completion import completion_of
from funcmcp._protocol.errors import InvalidResponseError
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._protocol.objects import (
    CallToolResult,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
    objects_of,
)
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._public_names import public
from funcmcp._server.run import require_asyncio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._app import MCPServer
    from funcmcp._client.answers import Callback
    from funcmcp._client.notifications import LogMessage, ProgressUpdate
    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.objects import Task, WireObject
    from funcmcp._transports.http.messages import Exchange

    R = TypeVar("R", bound=WireObject)
    D = TypeVar("D", bound=WireObject)
    Target: TypeAlias = MCPServer | str | HTTPEndpoint | StdioCommand | Transport | Exchange
    OnProgress: TypeAlias = Callable[[ProgressUpdate], None]

_MAX_ROUNDS = 20
_RESULT_TYPES = {
    "tools/call": ("input_required", "task"),
    "resources/read": ("input_required",),
    "prompts/get": ("input_required",),
}
"""The types of results that a method may have in addition to "complete"."""


@public("funcmcp.client")
class Client:
    """A client of one server.

    Entering the ``async with`` block connects to the server. Leaving it ends the session and the connection. Requests
    may run concurrently. The callbacks `on_notification`, `on_progress`, `on_log` and `on_task` are called in the event
    loop and must not block it.

    Example:
        ```python
        async with Client(mcp, revision="2026-07-28") as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
        ```

    Args:
        target: The server: an MCPServer, which the client calls in memory; the URL of a Streamable HTTP endpoint, or an
            HTTPEndpoint; a StdioCommand; an async function from HttpRequest to HttpResponse; or your own Transport.
        revision: The protocol revision to use. By default the newest one that the server supports.
        elicit: Answers ``elicitation/create``: receives its params and returns an ElicitResult such as
            ``{"action": "accept", "content": {...}}``. The client declares the capability only if this is set. An
            MCPError of the callback is sent to the server. Any other exception also fails the request under way.
        sample: Answers ``sampling/createMessage`` in the same way.
        roots: Root objects such as ``{"uri": "file:///data"}``, which the client returns for ``roots/list``.
        on_notification: Receives every notification of the server, as a JSON-RPC message.
        on_progress: Receives the progress of each call without its own `on_progress` argument. The client asks for
            progress only if one of the two is set.
        on_log: Receives every log message of the server.
        on_task: Receives each new state of a task that the client follows.
        log_level: The least severe log messages to ask for: debug, info, notice, warning, error, critical, alert or
            emergency. By default info if `on_log` is set; otherwise the client does not ask for any.
        headers: Header fields of every HTTP request, such as ``{"authorization": "Bearer ..."}``.
        timeout: Seconds that each request may take, including the time to answer questions, and those that connect.
            None: no limit.

    Raises:
        ValueError: The revision, the log level or the URL is invalid, or *headers* is set for a StdioCommand.
        TypeError: The target has another type, or a callback ``on_...`` is an async function.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options, most calls use none or one
        self,
        target: Target,
        *,
        revision: str | None = None,
        elicit: Callback | None = None,
        sample: Callback | None = None,
        roots: Sequence[dict[str, Any]] | None = None,
        on_notification: Callable[[dict[str, Any]], None] | None = None,
        on_progress: OnProgress | None = None,
        on_log: Callable[[LogMessage], None] | None = None,
        on_task: Callable[[Task], None] | None = None,
        log_level: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if revision is not None and revision not in REVISIONS:
            raise ValueError(f"revision must be one of {', '.join(REVISIONS)}; got {revision!r}.")
        if log_level is not None and log_level not in LEVELS:
            raise ValueError(f"log_level must be one of {', '.join(LEVELS)}; got {log_level!r}.")
        _refuse_async(on_notification=on_notification, on_progress=on_progress, on_log=on_log, on_task=on_task)
        if log_level is None and on_log is not None:
            log_level = "info"
        self._requests = Requests(
            _transport_for(target, headers or {}),
            Answers(elicit, sample, roots),
            revision=revision,
            log_level=log_level,
            timeout=timeout,
            on_notification=self._notified,
        )
        self._tasks = TaskClient(self._requests, on_task)
        self._on_notification = on_notification
        self._on_progress = on_progress
        self._on_log = on_log
        self._progress_callbacks: dict[str | int, OnProgress] = {}

    @property
    def revision(self) -> str:
        """The revision that client and server use."""
        return self._requests.date

    @property
    def server_info(self) -> dict[str, Any]:
        """The server's Implementation, such as its name and version. Empty if the server does not send it."""
        return self._requests.server_info

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's capabilities, by name."""
        return self._requests.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's instructions for the model. None if the server does not send any."""
        return self._requests.instructions

    @property
    def session_id(self) -> str | None:
        """The id of the session. None in 2026-07-28, on stdio, and with servers without sessions."""
        return self._requests.session_id

    async def __aenter__(self) -> Self:
        require_asyncio()
        await self._requests.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._requests.aclose()

    async def list_tools(self) -> list[Tool]:
        """Return the definitions of all tools, from all pages of the list."""
        return await self._definitions("tools/list", Tool)

    async def list_resources(self) -> list[Resource]:
        """Return the definitions of all resources, from all pages of the list."""
        return await self._definitions("resources/list", Resource)

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return the definitions of all resource templates, from all pages of the list."""
        return await self._definitions("resources/templates/list", ResourceTemplate)

    async def list_prompts(self) -> list[Prompt]:
        """Return the definitions of all prompts, from all pages of the list."""
        return await self._definitions("prompts/list", Prompt)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the client cancels the request at the server, too
        raise_on_error: bool = False,
    ) -> CallToolResult:
        """Call a tool and return its result.

        If the server runs the call as a task, wait for the end of the task. If the caller stops waiting, or an answer
        to a question fails, cancel the task.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            meta: Members of the request's `_meta`, such as ``{"progressToken": 1}``.
            on_progress: Receives the progress of this call, instead of the client's `on_progress`. A task has no
                progress; see the client's `on_task`.
            timeout: Seconds that each request may take, instead of the client's `timeout`. A task may take longer.
            raise_on_error: Raise ToolError if the tool fails. By default the result has `is_error` set.

        Raises:
            MCPError: The server rejects the request, for example because the tool does not exist; or the task failed.
            ToolError: The tool failed, and *raise_on_error* is set.
            ClientError: The request failed. The subclass names the reason.
        """
        task = await self.start_tool(name, arguments, meta=meta, on_progress=on_progress, timeout=timeout)
        try:
            return await task.result(raise_on_error=raise_on_error)
        except BaseException:
            await task.cancel_quietly()
            raise

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> ToolTask:
        """Call a tool, and return a handle as soon as the call has become a task or has ended.

        In 2026-07-28 the server decides whether a call becomes a task. In 2025-11-25 the client asks for a task if the
        tool supports it. Older revisions have no tasks.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            meta: Members of the request's `_meta`.
            on_progress: Receives the progress of the call until it has become a task.
            timeout: Seconds that each request may take, instead of the client's `timeout`.

        Raises:
            MCPError: The server rejects the request.
            ClientError: The request failed. The subclass names the reason.
        """
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments or {})}
        if await self._tasks.asks_for_task(name):
            params["task"] = {}
        result = await self._in_rounds("tools/call", params, meta, on_progress, timeout)
        return self._tasks.started(result, timeout)

    async def get_task(self, task_id: str) -> ToolTask:
        """Return a handle for a task that exists at the server, for example after a new start of the client.

        Args:
            task_id: The id of the task.

        Raises:
            MCPError: The server does not have the task, or it belongs to another principal.
            ClientError: The request failed, or the revision has no tasks.
        """
        seconds = self._requests.seconds(None)
        return ToolTask(self._tasks, await self._tasks.get(task_id, seconds), None)

    async def read_resource(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> ReadResourceResult:
        """Read a resource and return its contents. The other arguments and the errors are those of `call_tool`.

        Args:
            uri: The resource's URI.
            meta: Members of the request's `_meta`.
            on_progress: Receives the progress of this request.
            timeout: Seconds that each request may take.
        """
        result = await self._in_rounds("resources/read", {"uri": uri}, meta, on_progress, timeout)
        return ReadResourceResult(result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> GetPromptResult:
        """Get a prompt and return its messages. The errors are those of `call_tool`.

        Args:
            name: The prompt's name.
            arguments: The prompt's arguments. All of them are strings.
            meta: Members of the request's `_meta`.
            on_progress: Receives the progress of this request.
            timeout: Seconds that each request may take.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        return GetPromptResult(await self._in_rounds("prompts/get", params, meta, on_progress, timeout))

    async def complete(
        self, ref: Mapping[str, str], name: str, value: str, *, context: Mapping[str, str] | None = None
    ) -> Completion:
        """Return values that complete an argument of a prompt or a resource template.

        Args:
            ref: The feature: ``{"type": "ref/prompt", "name": ...}`` or ``{"type": "ref/resource", "uri": ...}``.
            name: The argument's name.
            value: The beginning of the argument's value.
            context: The values of arguments that are already set, by name.
        """
        params: dict[str, Any] = {"ref": dict(ref), "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = await self._requests.send_checked("completion/complete", params, self._requests.seconds(None))
        return completion_of(member_of(result, "completion", dict, "completion/complete"))

    async def list_items(self, method: str, member: str) -> list[Any]:
        """Return the items of a list as the server sends them, from all pages.

        Args:
            method: The method, such as ``tools/list``.
            member: The member of the result that holds the items, such as ``tools``.

        Raises:
            InvalidResponseError: A page does not have the member, or there are more than 1,000 pages.
        """
        return await self._requests.list_items(method, member)

    async def _definitions(self, method: str, kind: type[D]) -> list[D]:
        """Return the definitions of a list of features, from all pages."""
        return objects_of(await self.list_items(method, FEATURE_LISTS[method]), kind)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> dict[str, Any]:
        """Send a request of any method and return its result.

        Args:
            method: The method.
            params: The request's params. The client adds the members of `_meta` that the revision requires.
            timeout: Seconds that the request may take, instead of the client's `timeout`.

        Raises:
            MCPError: The response is an error.
            ClientError: The request failed. The subclass names the reason.
        """
        return await self._requests.send(method, params or {}, self._requests.seconds(timeout))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification. Raise ClientError if it cannot be sent."""
        await self._requests.notify(method, params)

    async def _in_rounds(
        self,
        method: str,
        params: dict[str, Any],
        meta: Mapping[str, Any] | None,
        on_progress: OnProgress | None,
        timeout: float | None,  # noqa: ASYNC109 - as above
    ) -> dict[str, Any]:
        """Send a request, repeat it with answers while the server asks for input, and return its result."""
        if meta:
            params["_meta"] = dict(meta)
        seconds = self._requests.seconds(timeout)
        result_types = _RESULT_TYPES[method]
        token = self._add_progress_token(params, on_progress or self._on_progress)
        try:
            result = await self._requests.send_checked(method, params, seconds, *result_types)
            for _ in range(_MAX_ROUNDS):
                if result.get("resultType") != "input_required":
                    return result
                repeated = await self._next_round(params, result, method)
                result = await self._requests.send_checked(method, repeated, seconds, *result_types)
        finally:
            if token is not None:
                del self._progress_callbacks[token]
        raise InvalidResponseError(f"{method} asked for input more than {_MAX_ROUNDS} times.")

    def _add_progress_token(self, params: dict[str, Any], on_progress: OnProgress | None) -> str | int | None:
        """Add a progress token to *params* if there is a callback. Return the token."""
        if on_progress is None:
            return None
        _refuse_async(on_progress=on_progress)
        meta = params.setdefault("_meta", {})
        token: str | int = meta.setdefault("progressToken", f"progress-{self._requests.next_id()}")
        self._progress_callbacks[token] = on_progress
        return token

    async def _next_round(self, params: dict[str, Any], result: dict[str, Any], method: str) -> dict[str, Any]:
        """Return the params of the next round: those of the request, with answers to the questions in *result*."""
        responses = {}
        questions = result.get("inputRequests") or {}
        if not isinstance(questions, dict):
            raise InvalidResponseError(f"'inputRequests' in the result of {method} is not an object.")
        for key, question in questions.items():
            if not isinstance(question, dict):
                raise InvalidResponseError(f"A member of 'inputRequests' in the result of {method} is not an object.")
            responses[key] = await self._requests.answers.to(question)
        repeated = {**params, "inputResponses": responses}
        if "requestState" in result:
            repeated["requestState"] = result["requestState"]
        return repeated

    def _notified(self, notification: dict[str, Any]) -> None:
        method = notification["method"]
        params = notification.get("params")
        if not isinstance(params, dict):
            params = {}
        if method in {"notifications/tasks", "notifications/tasks/status"}:
            self._tasks.notified(params)
        if self._on_notification is not None:
            self._on_notification(notification)
        if method == "notifications/message" and self._on_log is not None:
            self._on_log(log_message_of(params))
        if method == "notifications/progress":
            token = params.get("progressToken")
            callback = self._progress_callbacks.get(token) if isinstance(token, str | int) else None
            update = progress_of(params)
            if callback is not None and update is not None:
                callback(update)


def _refuse_async(**callbacks: Callable[..., None] | None) -> None:
    """Raise TypeError if a callback is an async function, which would never run."""
    for name, callback in callbacks.items():
        if inspect.iscoroutinefunction(callback):
            raise TypeError(f"{name} must be a plain function, not an async one. Start a task in it for what is async.")


def _transport_for(target: Target, headers: Mapping[str, str]) -> Transport:
    """Return the transport for a target. A module that only one kind of target needs is imported for that kind."""
    if isinstance(target, str):
        target = HTTPEndpoint(target)
    if isinstance(target, HTTPEndpoint):
        return _http_transport(target, headers)
    if isinstance(target, StdioCommand):
        if headers:
            raise ValueError("headers are for HTTP. Pass secrets to a StdioCommand with env=.")
        from funcmcp._client.stdio import StdioTransport  # noqa: PLC0415 - see above

        return StdioTransport(target)
    from funcmcp._app import MCPServer  # noqa: PLC0415 - see above
    from funcmcp._client.streamable_http import MemoryTransport, StreamableHTTP  # noqa: PLC0415 - see above
    from funcmcp._serving import serving_of  # noqa: PLC0415 - see above

    if isinstance(target, MCPServer):
        return MemoryTransport(serving_of(target), headers)
    if isinstance(target, Transport):
        return target
    if callable(target):
        return StreamableHTTP(target, "/mcp", headers)
    raise TypeError(f"Client needs an MCPServer, a URL, a StdioCommand or a transport; got {type(target).__name__}.")


def _http_transport(endpoint: HTTPEndpoint, headers: Mapping[str, str]) -> Transport:
    try:
        from funcmcp._client.http_exchange import HTTPTransport  # noqa: PLC0415 - vendor code, for URLs alone
    except ModuleNotFoundError as error:
        if error.name != "httpx2":
            raise
        message = 'httpx2 is not installed. A client of a URL needs: pip install "funcmcp[client]"'
        raise ModuleNotFoundError(message, name="httpx2") from None
    return HTTPTransport(endpoint, headers)

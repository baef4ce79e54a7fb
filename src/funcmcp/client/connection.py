"""An MCP client: agrees on a revision with the server, sends requests, and answers the server's questions.

How it works: `Client.__aenter__` opens the transport and agrees on a revision with the server. If the caller did not
choose one, the client sends ``server/discover`` in the newest revision. If the server does not have that method, the
client sends ``initialize`` in the newest handshake revision. After that, each request is one message: `_send` adds the
members and headers that the revision requires, waits for the response, and cancels the request if the caller stops
waiting. `_in_rounds` repeats a request with answers while the server asks for input (2026-07-28). In the handshake era
the server sends its questions as requests, which the transport passes to `_receive`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from funcmcp import __version__
from funcmcp.client.answers import Answers, UndeclaredQuestionError
from funcmcp.client.errors import ConnectionFailedError, RequestTimeoutError
from funcmcp.client.messages import member_of, result_of
from funcmcp.client.notifications import log_message_of, progress_of
from funcmcp.client.targets import HTTPEndpoint, StdioCommand
from funcmcp.client.transport import Transport
from funcmcp.protocol import envelope
from funcmcp.protocol import headers as header_names
from funcmcp.protocol.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    ClientError,
    InvalidResponseError,
    MCPError,
)
from funcmcp.protocol.levels import LEVELS
from funcmcp.protocol.methods import METHODS
from funcmcp.protocol.objects import (
    CallToolResult,
    Completion,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
    objects_of,
)
from funcmcp.protocol.revisions import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp.app import MCPServer
    from funcmcp.client.answers import Callback
    from funcmcp.client.notifications import LogMessage, ProgressUpdate
    from funcmcp.protocol.headers import MirroredParameter
    from funcmcp.protocol.objects import WireObject
    from funcmcp.transports.http.messages import Exchange

    R = TypeVar("R", bound=WireObject)
    Target: TypeAlias = MCPServer | str | HTTPEndpoint | StdioCommand | Transport | Exchange
    OnProgress: TypeAlias = Callable[[ProgressUpdate], None]

_MAX_ROUNDS = 20
_MAX_PAGES = 1000
_PROBE_SECONDS = 10.0
"""Seconds that a server on stdio may take for ``server/discover``. Old servers may ignore unknown methods."""

_CANCEL_SECONDS = 2.0
"""Seconds that sending ``notifications/cancelled`` may take."""

_LATEST_HANDSHAKE = max(date for date, revision in REVISIONS.items() if not revision.per_request)
_KNOWS_PER_REQUEST = {INTERNAL_ERROR, HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY}
"""Error codes of ``server/discover`` after which the client does not try ``initialize``."""

_CLIENT_INFO = {"name": "funcmcp", "version": __version__}


class Client:
    """A client of one server.

    Entering the ``async with`` block connects to the server. Leaving it ends the session and the connection. Requests
    may run concurrently. The callbacks `on_notification`, `on_progress` and `on_log` are called in the event loop and
    must not block it.

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
        log_level: The least severe log messages to ask for: debug, info, notice, warning, error, critical, alert or
            emergency. By default info if `on_log` is set; otherwise the client does not ask for any.
        headers: Header fields of every HTTP request, such as ``{"authorization": "Bearer ..."}``.
        timeout: Seconds that each request may take, including the time to answer questions. None: no limit.

    Attributes:
        revision: The revision that client and server use.
        server_info: The server's Implementation, such as its name and version. Empty if the server does not send it.
        capabilities: The server's capabilities, by name.
        instructions: The server's instructions for the model. None if the server does not send any.

    Raises:
        ValueError: The revision, the log level or the URL is invalid, or *headers* is set for a StdioCommand.
        TypeError: The target has another type.
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
        log_level: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if revision is not None and revision not in REVISIONS:
            raise ValueError(f"revision must be one of {', '.join(REVISIONS)}; got {revision!r}.")
        if log_level is not None and log_level not in LEVELS:
            raise ValueError(f"log_level must be one of {', '.join(LEVELS)}; got {log_level!r}.")
        if log_level is None and on_log is not None:
            log_level = "info"
        self.revision = revision or ""
        self.server_info: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {}
        self.instructions: str | None = None
        self._requested_revision = revision
        self._transport = _transport_for(target, headers or {})
        self._answers = Answers(elicit, sample, roots)
        self._on_notification = on_notification
        self._on_progress = on_progress
        self._on_log = on_log
        self._log_level = log_level
        self._timeout = timeout
        self._ids = count(1)
        self._progress_callbacks: dict[str | int, OnProgress] = {}
        self._mirrored: dict[str, tuple[MirroredParameter, ...]] | None = None
        self._is_connected = False

    @property
    def session_id(self) -> str | None:
        """The id of the session. None in 2026-07-28, on stdio, and with servers without sessions."""
        return self._transport.session_id

    async def __aenter__(self) -> Self:
        await self._transport.connect(self._receive)
        try:
            await self._negotiate()
            if self._log_level is not None and "logging" in self.capabilities and not self._per_request:
                await self.request("logging/setLevel", {"level": self._log_level})
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def list_tools(self) -> list[Tool]:
        """Return the definitions of all tools, from all pages of the list."""
        return objects_of(await self.list_items("tools/list", "tools"), Tool)

    async def list_resources(self) -> list[Resource]:
        """Return the definitions of all resources, from all pages of the list."""
        return objects_of(await self.list_items("resources/list", "resources"), Resource)

    async def list_templates(self) -> list[ResourceTemplate]:
        """Return the definitions of all resource templates, from all pages of the list."""
        return objects_of(await self.list_items("resources/templates/list", "resourceTemplates"), ResourceTemplate)

    async def list_prompts(self) -> list[Prompt]:
        """Return the definitions of all prompts, from all pages of the list."""
        return objects_of(await self.list_items("prompts/list", "prompts"), Prompt)

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

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            meta: Members of the request's `_meta`, such as ``{"progressToken": 1}``.
            on_progress: Receives the progress of this call, instead of the client's `on_progress`.
            timeout: Seconds that each request may take, instead of the client's `timeout`.
            raise_on_error: Raise ToolError if the tool fails. By default the result has `is_error` set.

        Raises:
            MCPError: The server rejects the request, for example because the tool does not exist.
            ToolError: The tool failed, and *raise_on_error* is set.
            ClientError: The request failed. The subclass names the reason.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        result = CallToolResult(await self._in_rounds("tools/call", params, meta, on_progress, timeout))
        if raise_on_error:
            result.raise_for_error()
        return result

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
        result = await self.request("completion/complete", params)
        return Completion(member_of(result, "completion", dict, "completion/complete"))

    async def list_items(self, method: str, member: str) -> list[Any]:
        """Return the items of a list as the server sends them, from all pages.

        Args:
            method: The method, such as ``tools/list``.
            member: The member of the result that holds the items, such as ``tools``.

        Raises:
            InvalidResponseError: A page does not have the member, or there are more than 1,000 pages.
        """
        items: list[Any] = []
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            result = await self.request(method, params)
            items += member_of(result, member, list, method)
            if result.get("nextCursor") is None:
                return items
            params = {"cursor": result["nextCursor"]}
        raise InvalidResponseError(f"{method} has more than {_MAX_PAGES} pages.")

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
        return await self._send(method, dict(params or {}), timeout)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification. Raise ClientError if it cannot be sent."""
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        await self._transport.send(message, self._headers())

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
        token = self._add_progress_token(params, on_progress or self._on_progress)
        try:
            result = await self._send(method, params, timeout)
            for _ in range(_MAX_ROUNDS):
                if result.get("resultType") != "input_required":
                    return result
                result = await self._send(method, await self._next_round(params, result, method), timeout)
        finally:
            if token is not None:
                del self._progress_callbacks[token]
        raise InvalidResponseError(f"{method} asked for input more than {_MAX_ROUNDS} times.")

    def _add_progress_token(self, params: dict[str, Any], on_progress: OnProgress | None) -> str | int | None:
        """Add a progress token to *params* if there is a callback. Return the token."""
        if on_progress is None:
            return None
        meta = params.setdefault("_meta", {})
        token: str | int = meta.setdefault("progressToken", f"progress-{next(self._ids)}")
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
            responses[key] = await self._answers.to(question)
        repeated = {**params, "inputResponses": responses}
        if "requestState" in result:
            repeated["requestState"] = result["requestState"]
        return repeated

    async def _send(self, method: str, params: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        """Send a request and return its result. Cancel it at the server if the caller stops waiting."""
        if seconds is None:
            seconds = self._timeout
        headers = await self._request_headers(method, params)
        if self._per_request:
            params = {**params, "_meta": {**params.get("_meta", {}), **self._envelope()}}
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                response = await self._transport.request(message, headers)
        except TimeoutError:
            if not scope.expired():
                raise
            await self._cancel(request_id, method, f"no response within {seconds:g} seconds")
            raise RequestTimeoutError(f"{method} got no response within {seconds:g} seconds.") from None
        except asyncio.CancelledError:
            await self._cancel(request_id, method, "the caller stopped waiting")
            raise
        return result_of(response, method)

    async def _cancel(self, request_id: int, method: str, reason: str) -> None:
        """Cancel a request at the server. In the per-request era, closing its HTTP response has already done so."""
        if method == "initialize" or (self._per_request and self._transport.is_http):
            return
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})

    async def _receive(self, message: dict[str, Any]) -> None:
        """Handle a notification or a request of the server. Exceptions of callbacks propagate."""
        if "id" not in message:
            self._notified(message)
            return
        try:
            result = await self._answers.to(message)
        except UndeclaredQuestionError:
            await self._refuse(message, MCPError(METHOD_NOT_FOUND, "The client does not have this method"))
        except MCPError as error:
            await self._refuse(message, error)
        except Exception:
            with suppress(ClientError):
                await self._refuse(message, MCPError(INTERNAL_ERROR, "The client failed to answer"))
            raise
        else:
            response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            await self._transport.send(response, self._headers())

    async def _refuse(self, message: dict[str, Any], error: MCPError) -> None:
        """Answer a request of the server with an error."""
        response = {"jsonrpc": "2.0", "id": message["id"], "error": error.payload()}
        await self._transport.send(response, self._headers())

    def _notified(self, notification: dict[str, Any]) -> None:
        method = notification["method"]
        params = notification.get("params")
        if not isinstance(params, dict):
            params = {}
        if method == "notifications/tools/list_changed":
            self._mirrored = None
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

    @property
    def _per_request(self) -> bool:
        if not self.revision:
            raise RuntimeError("The client is not connected. Write: async with Client(mcp) as client")
        return REVISIONS[self.revision].per_request

    def _envelope(self) -> dict[str, Any]:
        """Return the members of `_meta` that every request of the per-request era has."""
        members: dict[str, Any] = {
            envelope.PROTOCOL_VERSION: self.revision,
            envelope.CLIENT_CAPABILITIES: self._answers.capabilities,
            envelope.CLIENT_INFO: _CLIENT_INFO,
        }
        if self._log_level is not None:
            members[envelope.LOG_LEVEL] = self._log_level
        return members

    def _headers(self) -> dict[str, str]:
        """Return the header fields that every message has."""
        if self._per_request or self._is_connected:
            return {header_names.VERSION: self.revision}
        return {}

    async def _request_headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        """Return the header fields of a request."""
        fields = self._headers()
        if not self._per_request or not self._transport.is_http:
            return fields
        fields[header_names.METHOD] = header_names.encode_value(method)
        row = METHODS.get(method)
        name = params.get(row.mirrored) if row is not None and row.mirrored is not None else None
        if isinstance(name, str):
            fields[header_names.NAME] = header_names.encode_value(name)
        arguments = params.get("arguments")
        if method == "tools/call" and isinstance(arguments, dict):
            parameters = (await self._mirrored_parameters()).get(str(name), ())
            fields |= header_names.encode_mirrored(arguments, parameters)
        return fields

    async def _mirrored_parameters(self) -> dict[str, tuple[MirroredParameter, ...]]:
        """Return the arguments that HTTP requests repeat in headers, by tool."""
        if self._mirrored is None:
            self._mirrored = {}
            for tool in await self.list_tools():
                with suppress(ValueError, InvalidResponseError):  # without a valid schema there is nothing to repeat
                    self._mirrored[tool.name] = header_names.mirrored_parameters(tool.input_schema)
        return self._mirrored

    async def _negotiate(self) -> None:
        """Agree with the server on a revision."""
        self._is_connected = False
        self._mirrored = None
        if self._requested_revision is not None:
            self.revision = self._requested_revision
            if self._per_request:
                await self._discover(None)
            else:
                await self._initialize()
        elif not await self._try_newest():
            self.revision = _LATEST_HANDSHAKE
            await self._initialize()
        self._is_connected = True

    async def _try_newest(self) -> bool:
        """Send ``server/discover`` in the newest revision. Return whether the server supports that revision."""
        self.revision = max(REVISIONS)
        try:
            await self._discover(None if self._transport.is_http else _PROBE_SECONDS)
        except MCPError as error:
            if error.code in _KNOWS_PER_REQUEST:
                raise
            return False
        except (InvalidResponseError, RequestTimeoutError):
            return False
        except ConnectionFailedError:
            if self._transport.is_http:
                raise
            await self._transport.aclose()  # an old server may exit when it receives an unknown method
            await self._transport.connect(self._receive)
            return False
        return True

    async def _discover(self, seconds: float | None) -> None:
        method = "server/discover"
        result = await self._send(method, {}, seconds)
        supported = result.get("supportedVersions", [self.revision])
        if not isinstance(supported, list) or self.revision not in supported:
            raise InvalidResponseError(f"The server does not support revision {self.revision}.")
        meta = result.get("_meta")
        self._learn(result, meta.get(envelope.SERVER_INFO) if isinstance(meta, dict) else None, method)

    async def _initialize(self) -> None:
        method = "initialize"
        params = {
            "protocolVersion": self.revision,
            "capabilities": self._answers.capabilities,
            "clientInfo": _CLIENT_INFO,
        }
        result = await self._send(method, params, None)
        revision = member_of(result, "protocolVersion", str, method)
        if revision not in REVISIONS or REVISIONS[revision].per_request:
            raise InvalidResponseError(
                f"The server chose the revision {revision!r:.50}, which this client does not support."
            )
        self._learn(result, result.get("serverInfo"), method)
        self.revision = revision
        self._is_connected = True
        await self.notify("notifications/initialized")

    def _learn(self, result: dict[str, Any], server_info: object, method: str) -> None:
        """Store the server's capabilities, information and instructions from the first result."""
        self.capabilities = member_of(result, "capabilities", dict, method)
        self.server_info = server_info if isinstance(server_info, dict) else {}
        instructions = result.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else None

    async def _close(self) -> None:
        self._is_connected = False
        await self._transport.aclose()


def _transport_for(target: Target, headers: Mapping[str, str]) -> Transport:
    """Return the transport for a target. A module that only one kind of target needs is imported for that kind."""
    if isinstance(target, str):
        target = HTTPEndpoint(target)
    if isinstance(target, HTTPEndpoint):
        return _http_transport(target, headers)
    if isinstance(target, StdioCommand):
        if headers:
            raise ValueError("headers are for HTTP. Pass secrets to a StdioCommand with env=.")
        from funcmcp.client.stdio import StdioTransport  # noqa: PLC0415 - see above

        return StdioTransport(target)
    from funcmcp.app import MCPServer  # noqa: PLC0415 - see above
    from funcmcp.client.streamable_http import StreamableHTTP  # noqa: PLC0415 - see above
    from funcmcp.serving import serving_of  # noqa: PLC0415 - see above

    if isinstance(target, MCPServer):
        serving = serving_of(target)
        return StreamableHTTP(serving.exchange, serving.path, headers)
    if isinstance(target, Transport):
        return target
    if callable(target):
        return StreamableHTTP(target, "/mcp", headers)
    raise TypeError(f"Client needs an MCPServer, a URL, a StdioCommand or a transport; got {type(target).__name__}.")


def _http_transport(endpoint: HTTPEndpoint, headers: Mapping[str, str]) -> Transport:
    try:
        from funcmcp.client.http_exchange import HTTPTransport  # noqa: PLC0415 - vendor code, for URLs alone
    except ModuleNotFoundError as error:
        if error.name != "httpx2":
            raise
        message = 'httpx2 is not installed. A client of a URL needs: pip install "funcmcp[client]"'
        raise ModuleNotFoundError(message, name="httpx2") from None
    return HTTPTransport(endpoint, headers)

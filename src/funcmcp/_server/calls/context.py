"""The context of one request: the request, its route and its client, and the channel back to the client.

Source: "basic/lifecycle, Capability Negotiation"; "client/elicitation", "client/sampling" and "client/roots", for what
a client must have declared before it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._protocol.envelope import LOG_LEVEL
from funcmcp._protocol.errors import MissingClientCapability, ToolError, capability_names
from funcmcp._protocol.jsonrpc import without_nulls
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.methods import CLIENT_CAPABILITIES_SINCE, CLIENT_METHODS, can_be_asked
from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextvars import Context as Variables

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._server.calls.channel import Channel
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.connections.client import Client


class HTTPRequestInfo(Protocol):
    """The part of an HTTP request that features may read."""

    @property
    def method(self) -> str:
        """The HTTP method, upper case."""

    @property
    def can_stream(self) -> bool:
        """Whether an answer reaches the client part by part."""

    @property
    def url(self) -> str:
        """The absolute URL."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Header values by name, in any case."""

    @property
    def query_params(self) -> Mapping[str, str]:
        """Query parameters; the last one wins where a name is repeated."""

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies by name."""

    @property
    def by_user(self) -> bool:
        """Whether the user of this process has sent it."""

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None for an anonymous one, and on a server without authentication."""

    @property
    def client_address(self) -> str | None:
        """The IP address of the client; None if unknown."""

    @property
    def caller(self) -> str | None:
        """The caller whose share of the limits the request uses; None if the caller is not known."""

    @property
    def network_transport(self) -> str | None:
        """How the request came, in OpenTelemetry's words: "tcp"; None from a client in memory."""


class Deadline(Protocol):
    """The part of `asyncio.Timeout` that contexts need."""

    def expired(self) -> bool:
        """Return whether the time is up."""


@public("funcmcp.middleware")
class RequestContext:
    """One request, its client, and the channel back to the client.

    Attributes:
        routed: The request with its route and the feature that it names.
        request: The JSON-RPC request.
        client: The client: its revision, capabilities, name and version, and session.
        channel: Takes the notifications and questions for the client.
        http: The HTTP request; None on a transport without HTTP.
        deadline: The time limit of the call while it waits.
        error: The exception with which the feature, or a middleware, has failed; None as long as none has failed.
        outer: The context of the server that mounts this one, whose time limit also holds; None for other calls.
        log_variables: The context variables in which a record about the whole request is written, so that it belongs to
            the span of the request. None without tracing.
    """

    __slots__ = ("channel", "client", "deadline", "error", "http", "log_variables", "outer", "request", "routed")

    def __init__(
        self,
        routed: RoutedRequest,
        client: Client,
        channel: Channel,
        http: HTTPRequestInfo | None = None,
    ) -> None:
        self.routed: RoutedRequest = routed
        self.request: Request = routed.request
        self.client: Client = client
        self.channel: Channel = channel
        self.http: HTTPRequestInfo | None = http
        self.deadline: Deadline | None = None
        self.error: BaseException | None = None
        self.outer: RequestContext | None = None
        self.log_variables: Variables | None = None

    def set_error(self, error: BaseException | None) -> None:
        """Set the exception with which the call has failed, also for the servers that mount this one."""
        self.error = error
        if self.outer is not None:
            self.outer.set_error(error)

    @property
    def timeout(self) -> TimeoutError | None:
        """The exception with which the call ends because its time is up; None as long as it is not."""
        if self.deadline is not None and self.deadline.expired():
            return TimeoutError("The time limit of the call has passed.")
        return None if self.outer is None else self.outer.timeout

    @property
    def feature(self) -> Feature | None:
        """The tool, resource, resource template or prompt that the request names; None if there is none."""
        return self.routed.feature

    @property
    def network_transport(self) -> str | None:
        """How the request came, in OpenTelemetry's words: "tcp" or "pipe"; None if it was made in this process."""
        return "pipe" if self.http is None else self.http.network_transport

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None for an anonymous one, and on a transport without authentication."""
        return None if self.http is None else self.http.principal

    @property
    def by_user(self) -> bool:
        """Whether the user of this process has sent the request, as on stdio. That user has access to everything."""
        return self.http is not None and self.http.by_user

    @property
    def task_id(self) -> str | None:
        """The id of the task that the feature runs as; None in a plain call."""
        return None

    async def once(self, _key: str, function: Callable[[], Awaitable[Any]]) -> Any:
        """Run a function; a task runs it once for each key."""
        return await function()

    async def detach(self) -> None:
        """Continue the call as a task, if the client has tasks and the call is not one yet."""

    @property
    def caller(self) -> str | None:
        """The caller whose share of the limits the request uses; None if the caller is not known, as on stdio."""
        return None if self.http is None else self.http.caller

    @property
    def client_address(self) -> str | None:
        """The IP address of the client, behind `HTTPOptions(proxies=)` the forwarded one; None if unknown."""
        return None if self.http is None else self.http.client_address

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``; empty when it has none."""
        meta = self.request.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def log_level(self) -> str | None:
        """The lowest level of the log messages that the client wants; None if it wants none."""
        if self.client.revision.per_request:
            return self.meta.get(LOG_LEVEL)
        conversation = self.client.conversation
        return "info" if conversation is None else conversation.log_level

    async def set_log_level(self, level: str) -> None:
        """Keep the level for the rest of the session."""
        if self.client.conversation is not None:
            await self.client.conversation.set_level(level)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on this request's stream.

        The notification is dropped where the transport can't push. A log message is also dropped if its level is
        lower than the client's.
        """
        if method == "notifications/message":
            lowest = self.log_level
            if lowest is None or LEVELS[params["level"]] < LEVELS[lowest]:
                return
        await self.channel.notify(method, params)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Ask the client and return its answers under the same keys.

        Args:
            questions: A request ``{"method": ..., "params": {...}}`` for each key. A key must be the same in every
                run of the feature, because in 2026-07-28 the feature is run again with the answers.

        Raises:
            MissingClientCapability: A 2026-07-28 client did not declare a capability that a question needs.
            ToolError: A client of an older revision did not declare it, or the transport can't ask.
        """
        missing: dict[str, Any] = {}
        for question in questions.values():
            missing.update(missing_capability(self.client, question))
        if missing:
            if self.client.revision.per_request:
                raise MissingClientCapability(missing)
            raise ToolError(f"This needs a client that supports: {', '.join(capability_names(missing))}.")
        return await self.channel.ask(questions)


class UserContext(RequestContext):
    """A request of the user of this process, on stdio."""

    __slots__ = ()

    @property
    def by_user(self) -> bool:
        """Whether the user of this process has sent the request: always."""
        return True


def missing_capability(client: Client, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a question needs and the client lacks, in the shape of ClientCapabilities."""
    capability = CLIENT_METHODS[question["method"]].capability
    declared = client.capabilities.get(capability)
    if not isinstance(declared, dict) or not can_be_asked(question["method"], client.revision.date):
        return {capability: {}}
    declared = without_nulls(declared)
    needed = _SUB_CAPABILITIES[capability](question["params"])
    if "form" in needed and "url" not in declared:
        return {}  # a client that names no mode can show forms
    missing: dict[str, Any] = {}
    for name in needed:
        is_newer = client.revision.date < CLIENT_CAPABILITIES_SINCE.get(f"{capability}.{name}", "")
        if name not in declared or is_newer:
            missing[name] = {}
    return {capability: missing} if missing else {}


def _sampling_needs(params: Mapping[str, Any]) -> list[str]:
    needed = ["tools"] if "tools" in params or "toolChoice" in params else []
    return [*needed, "context"] if params.get("includeContext", "none") != "none" else needed


_SUB_CAPABILITIES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "elicitation": lambda params: [params.get("mode", "form")],
    "sampling": _sampling_needs,
    "roots": lambda _: [],
}

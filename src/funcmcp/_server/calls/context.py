"""The context of one request: the request, its route and its client, and the channel back to the client.

Source: "basic/lifecycle, Capability Negotiation"; "client/elicitation", "client/sampling" and "client/roots", for what
a client must have declared before it is asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._objects.public_names import public
from funcmcp._protocol.envelope import LOG_LEVEL
from funcmcp._protocol.errors import CannotAskError, MissingClientCapability, capability_names
from funcmcp._protocol.jsonrpc import without_nulls
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.methods import CLIENT_METHODS, can_be_asked, has_part
from funcmcp._server.calls.alarms import Alarms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextvars import Context as Variables

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._server.calls.channel import Channel
    from funcmcp._server.calls.feature import CallEnd, Feature, TimeLimit
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.connections.client import ConnectedClient
    from funcmcp._server.connections.conversation import Rules
    from funcmcp._state.caller_values import ValueOwner


class HTTPRequestInfo(Protocol):
    """The part of an HTTP request that features may read."""

    @property
    def method(self) -> str:
        """The HTTP method, upper case."""

    @property
    def path(self) -> str:
        """The path below the mount path, percent-decoded."""

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
    """The end of the time of a call that waits; see `funcmcp._server.calls.time_limit`."""

    @property
    def has_passed(self) -> bool:
        """Whether the time is up."""

    def move(self, when: float) -> None:
        """Change the time at which the time is up, in the clock of the event loop."""


@public("funcmcp.middleware")
class RequestContext:
    """One request, its client, and the channel back to the client.

    Attributes:
        alarms: Call functions when the request has waited for some time; None before `alarms_of` makes them.
        routed: The request with its route and the feature that it names.
        request: The JSON-RPC request.
        client: The client: its revision, capabilities, name and version, and session.
        channel: Takes the notifications and questions for the client.
        http: The HTTP request; None on a transport without HTTP.
        deadline: The time limit of the call while it waits.
        end: When the time of the call is up, after a `move_end`; None before.
        error: The exception with which the feature, or a middleware, has failed; None as long as none has failed.
        outer: The context of the server that mounts this one, whose time limit also holds; None for other calls.
        is_reusable: Whether the result may answer other calls: not if the call has asked its client, or has made
            something for its caller only.
        shown_names: The names that clients see for arguments of the tool, where a `ToolTransform` has changed them.
        log_variables: The context variables in which a record about the whole request is written, so that it belongs to
            the span of the request. None without tracing.
        rules: Hide and show features for this request; None if those of the session hold.
    """

    __slots__ = (
        "alarms",
        "channel",
        "client",
        "deadline",
        "end",
        "error",
        "http",
        "is_reusable",
        "log_variables",
        "outer",
        "request",
        "routed",
        "rules",
        "shown_names",
    )

    def __init__(
        self,
        routed: RoutedRequest,
        client: ConnectedClient,
        channel: Channel,
        http: HTTPRequestInfo | None = None,
    ) -> None:
        self.routed: RoutedRequest = routed
        self.request: Request = routed.request
        self.client: ConnectedClient = client
        self.channel: Channel = channel
        self.http: HTTPRequestInfo | None = http
        self.alarms: Alarms | None = None
        self.deadline: Deadline | None = None
        self.end: CallEnd | None = None
        self.error: BaseException | None = None
        self.outer: RequestContext | None = None
        self.is_reusable: bool = True
        self.shown_names: Mapping[str, str] | None = None
        self.log_variables: Variables | None = None
        self.rules: Rules | None = None

    @property
    def every_version(self) -> bool:
        """Whether a list has all versions of each feature: not in the protocol, which knows no versions."""
        return False

    def set_error(self, error: BaseException | None) -> None:
        """Set the exception with which the call has failed, also for the servers that mount this one."""
        self.error = error
        if self.outer is not None:
            self.outer.set_error(error)

    def forbid_reuse(self) -> None:
        """Forbid the use of the result for other calls, also in the servers that mount this one."""
        self.is_reusable = False
        if self.outer is not None:
            self.outer.forbid_reuse()

    @property
    def timeout(self) -> TimeoutError | None:
        """The exception with which the call ends because its time is up; None as long as it is not."""
        if self.deadline is not None and self.deadline.has_passed:
            return TimeoutError("The time limit of the call has passed.")
        return None if self.outer is None else self.outer.timeout

    @property
    def time_limit(self) -> TimeLimit | None:
        """The time that the call may take; None for no limit. In a mounted server it is that of the server above."""
        if self.outer is not None:
            return self.outer.time_limit
        return None if self.feature is None else self.feature.time_limit

    @property
    def latest_end(self) -> float:
        """The time, in the clock of the event loop, at which the call ends whatever its time limit is."""
        return math.inf

    @property
    def moved_end(self) -> CallEnd | None:
        """When the time of the call is up, after a `move_end`; None before."""
        return self.end if self.outer is None else self.outer.moved_end

    def move_end(self, end: CallEnd) -> None:
        """Change when the time of a call is up that has a time limit, also before it first waits.

        Once it is up, nothing changes.
        """
        if self.outer is not None:
            self.outer.move_end(end)
            return
        if self.deadline is not None and self.deadline.has_passed:
            return
        self.end = end
        if self.deadline is not None:
            self.deadline.move(end.time)

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
    def by_author(self) -> bool:
        """Whether the author's code has made the call without a caller. It has access to everything."""
        return False

    @property
    def task_id(self) -> str | None:
        """The id of the task that the feature runs as; None in a plain call."""
        return None

    @property
    def task_owner(self) -> ValueOwner | None:
        """The owner of the values of a task's caller, if it has no principal; None in a plain call."""
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
            CannotAskError: A client of an older revision did not declare it, or the transport can't ask.
            ToolError: The client did not answer, or its answer is not valid.
        """
        missing: dict[str, Any] = {}
        for question in questions.values():
            missing.update(missing_capability(self.client, question))
        if missing:
            if self.client.revision.per_request:
                raise MissingClientCapability(missing)
            raise CannotAskError(f"This needs a client that supports: {', '.join(capability_names(missing))}.")
        self.forbid_reuse()
        return await self.channel.ask(questions)


class UserContext(RequestContext):
    """A request of the user of this process, on stdio."""

    __slots__ = ()

    @property
    def by_user(self) -> bool:
        """Whether the user of this process has sent the request: always."""
        return True


def missing_capability(client: ConnectedClient, question: Mapping[str, Any]) -> dict[str, Any]:
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
        if name not in declared or not has_part(capability, name, client.revision.date):
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


def alarms_of(context: RequestContext) -> Alarms:
    """Return the alarms of a request; those of the request above in a mounted server."""
    while context.outer is not None:
        context = context.outer
    if context.alarms is None:
        context.alarms = Alarms()
    return context.alarms

"""OpenTelemetry: metrics of a server.

A server that is not measured does not load this module.

Each value of an attribute comes from the server, never from a client: names of features that it has, and words of the
lists below. So callers can't make up time series. `Names` bounds the names as well, for servers whose features come
from other servers.

Source: OpenTelemetry "Semantic conventions for Model Context Protocol (MCP)", metrics (in development: names may still
change).
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

try:
    from opentelemetry.metrics import Observation, get_meter, get_meter_provider
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Metrics need: pip install "funcmcp[otel]"', name=error.name) from None

from funcmcp._adapters.opentelemetry import Flush, method_name, outcome_of, upstream_attributes
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError
from funcmcp._protocol.tasks import COMPLETED, FAILED, INPUT_REQUIRED
from funcmcp._server.tasks.worker import NoOutcome, Retrying
from funcmcp._state.tasks.record import Outcome
from funcmcp._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import TypeAlias

    from opentelemetry.metrics import CallbackOptions, MeterProvider

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.upstream_call import Send, UpstreamCall
    from funcmcp._server.load import Load
    from funcmcp._server.middleware import CallNext
    from funcmcp._server.tasks.backlog import BacklogWatch
    from funcmcp._server.tasks.worker import RunEnd
    from funcmcp._state.sessions.memory import MemorySessions
    from funcmcp._state.tasks.record import Claim, TaskRecord
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

    Attributes: TypeAlias = dict[str, str]

_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
"""The boundaries of the buckets of durations, as the conventions for MCP have them."""

_TASK_SECONDS = [*_SECONDS, 900, 3600, 4 * 3600, 24 * 3600]
_OTHER = "_OTHER"  # the conventions' word for what has no name of its own
_MAX_NAMES, _MAX_CODES = 1000, 100
_FIRST_ERROR = 400
_NAMED_BY = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_MAX_LENGTH = 256


class Names:
    """Names as values of an attribute. Names beyond a number of them are `_OTHER`.

    Args:
        limit: The number.
    """

    def __init__(self, limit: int = _MAX_NAMES) -> None:
        self._limit = limit
        self._names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name in self._names:
            return name
        if len(self._names) >= self._limit or len(name) > _MAX_LENGTH:
            return _OTHER
        self._names.add(name)
        return name


def flush_metrics(meter_provider: MeterProvider | None) -> Flush:
    """Return the flush of a provider's metrics, by default of the global provider."""
    return Flush(lambda: get_meter_provider() if meter_provider is None else meter_provider)


class Meters:
    """What the metrics of one server have in common.

    Args:
        server: The name of the server.
        meter_provider: Makes the instruments; the process's global one by default.

    Attributes:
        server: The name of the server.
        meter: Makes the instruments.
        upstreams: Returns the other servers whose features the server has, each with its `status`.
        gauges: Return a number when metrics are exported, in any thread, or None if there is none; by their names.
    """

    def __init__(self, server: str, meter_provider: MeterProvider | None = None) -> None:
        self.server = server
        self.meter = get_meter("funcmcp", VERSION, meter_provider)
        self.gauges: dict[str, Callable[[], float | None]] = {}
        self.upstreams: Callable[[], Iterable[Any]] = tuple
        provider = get_meter_provider() if meter_provider is None else meter_provider
        if provider in _measured:
            _measured[provider].add(self)
            return
        servers = _measured[provider] = WeakSet([self])
        for name, (unit, description) in _GAUGES.items():
            self.meter.create_observable_gauge(name, [partial(_observe, servers, name)], unit, description)
        sessions, *counters = _UPSTREAMS
        self.meter.create_observable_gauge(
            sessions.name, [partial(_observe_upstreams, servers, sessions.member)], sessions.unit, sessions.description
        )
        for counter in counters:
            self.meter.create_observable_counter(
                counter.name, [partial(_observe_upstreams, servers, counter.member)], counter.unit, counter.description
            )


class _UpstreamNumber(NamedTuple):
    """A number in the status of an upstream, as an instrument."""

    name: str
    member: str
    unit: str
    description: str


_UPSTREAMS = (
    _UpstreamNumber("funcmcp.upstream.sessions", "sessions", "{session}", "Open sessions of an upstream."),
    _UpstreamNumber("funcmcp.upstream.failures", "failures", "{failure}", "Attempts to reach an upstream that failed."),
    _UpstreamNumber("funcmcp.upstream.reconnects", "reconnects", "{reconnect}", "How often an upstream was back."),
)

_GAUGES = {
    "funcmcp.server.requests": ("{request}", "Requests that wait while they run."),
    "funcmcp.server.streams": ("{stream}", "Streams that are open."),
    "funcmcp.server.sessions": ("{session}", "Sessions in the memory of this process."),
    "funcmcp.task.waiting": ("{task}", "Tasks in the store that are due and that no worker has."),
    "funcmcp.task.waiting.oldest": ("s", "The time for which the first of the waiting tasks has been due."),
}

_measured: WeakKeyDictionary[MeterProvider, WeakSet[Meters]] = WeakKeyDictionary()
"""The servers that have one provider. An SDK keeps the functions of the first gauge of a name only."""


def _observe(servers: WeakSet[Meters], name: str, _options: CallbackOptions) -> Iterable[Observation]:
    for server in list(servers):
        read = server.gauges.get(name)
        value = None if read is None else read()
        if value is not None:
            yield Observation(value, {"funcmcp.server.name": server.server})


def _observe_upstreams(servers: WeakSet[Meters], member: str, _options: CallbackOptions) -> Iterable[Observation]:
    for server in list(servers):
        for upstream in server.upstreams():
            status = upstream.status
            attributes = {"funcmcp.server.name": server.server, "funcmcp.upstream.name": status.name}
            yield Observation(getattr(status, member), attributes)


class UpstreamMetrics:
    """Measures the requests of a server to its upstreams.

    Args:
        meters: Those of the server.
        upstreams: Returns the upstreams.
    """

    def __init__(self, meters: Meters, upstreams: Callable[[], Iterable[Any]]) -> None:
        meters.upstreams = upstreams
        self._server = meters.server
        self._features = {kind: Names() for kind in _NAMED_BY}
        self._codes = Names(_MAX_CODES)
        self._durations = meters.meter.create_histogram(
            "mcp.client.operation.duration",
            "s",
            "The time from a request to an upstream to its answer.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    async def measure(self, call: UpstreamCall, send: Send) -> dict[str, Any]:
        """Measure a request."""
        began = monotonic()
        outcome: str | None = None
        try:
            result = await send()
            if result.get("isError") is True:
                outcome = "tool_error"
            return result
        except MCPError as error:
            outcome = str(error.code)
            raise
        except Exception as error:
            outcome = type(error).__qualname__
            raise
        finally:
            self._durations.record(monotonic() - began, self._attributes(call, outcome))

    def _attributes(self, call: UpstreamCall, outcome: str | None) -> Attributes:
        attributes = upstream_attributes(call)
        attributes.pop("mcp.resource.uri", None)
        attributes["funcmcp.server.name"] = self._server
        if call.method in _NAMED_BY:
            name = _NAMED_BY[call.method]
            attributes[name] = self._features[call.method][attributes.get(name, "")]
        if outcome is not None:
            attributes["error.type"] = self._codes[outcome]
        return attributes


class RequestMetrics:
    """Measures the requests of a server.

    Args:
        meters: Those of the server.
        load: What is under way.
    """

    def __init__(self, meters: Meters, load: Load) -> None:
        self._server = meters.server
        self._features = {kind: Names() for kind in _NAMED_BY}
        self._codes = Names(_MAX_CODES)
        self._durations = meters.meter.create_histogram(
            "mcp.server.operation.duration",
            "s",
            "The time from the arrival of a request to its answer.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._refused = meters.meter.create_counter(
            "funcmcp.http.refused", "{response}", "HTTP responses with a status of 400 or more."
        )
        meters.gauges["funcmcp.server.requests"] = lambda: load.runs.used
        meters.gauges["funcmcp.server.streams"] = lambda: load.streams.used

    async def measure(self, context: RequestContext, call_next: CallNext) -> Reply:
        """Measure a request, as a middleware."""
        began = monotonic()
        outcome: Attributes = {}
        try:
            reply = await call_next(context)
            outcome = outcome_of(reply)
            return reply
        except Exception:  # a limit is reached or a store is away: the transport answers with this code
            outcome = {"rpc.response.status_code": str(INTERNAL_ERROR), "error.type": str(INTERNAL_ERROR)}
            raise
        finally:
            self._durations.record(monotonic() - began, {**self._attributes(context), **self._bounded(outcome)})

    def count_refusals(self, exchange: Exchange) -> Exchange:
        """Return a function that answers HTTP requests as another one, and counts refusals."""

        async def answer(request: HttpRequest) -> HttpResponse:
            response = await exchange(request)
            if response.status >= _FIRST_ERROR:
                self._refused.add(
                    1, {"funcmcp.server.name": self._server, "http.response.status_code": response.status}
                )
            return response

        return answer

    def _attributes(self, context: RequestContext) -> Attributes:
        method, feature = method_name(context), context.feature
        attributes = {
            "funcmcp.server.name": self._server,
            "mcp.method.name": method,
            "mcp.protocol.version": context.client.revision.date,
        }
        if context.network_transport is not None:
            attributes["network.transport"] = context.network_transport
        if method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
        if method in _NAMED_BY and feature is not None:
            attributes[_NAMED_BY[method]] = self._features[method][feature.key]
        return attributes

    def _bounded(self, outcome: Attributes) -> Attributes:
        """Return an outcome with a bounded number of codes, which authors may choose as they like."""
        return {name: self._codes[value] for name, value in outcome.items()}


def measure_sessions(meters: Meters, sessions: MemorySessions) -> None:
    """Measure sessions that live in this process."""
    durations = meters.meter.create_histogram(
        "mcp.server.session.duration",
        "s",
        "The time from the beginning of a session to its end, or to its last request if it has expired.",
        explicit_bucket_boundaries_advisory=_SECONDS,
    )
    sessions.on_duration = lambda seconds, revision: durations.record(
        seconds, {"funcmcp.server.name": meters.server, "mcp.protocol.version": revision}
    )
    meters.gauges["funcmcp.server.sessions"] = lambda: sessions.count
    evictions = meters.meter.create_counter(
        "funcmcp.server.sessions.evicted", "{session}", "Idle sessions that were ended to make room for others."
    )
    sessions.on_eviction = lambda: evictions.add(1, {"funcmcp.server.name": meters.server})


class TaskMetrics:
    """Measures the tasks of a server.

    Args:
        meters: Those of the server.
        backlog: How many of its tasks wait.
    """

    def __init__(self, meters: Meters, backlog: BacklogWatch) -> None:
        self._meters = meters
        self._tools = Names()
        meter = meters.meter
        self._created = meter.create_counter("funcmcp.task.created", "{task}", "Tasks that were created.")
        self._started = meter.create_counter("funcmcp.task.started", "{run}", "Runs of tasks that began.")
        self._retried = meter.create_counter("funcmcp.task.retried", "{run}", "Runs of tasks that have to be repeated.")
        self._ended = meter.create_counter("funcmcp.task.ended", "{task}", "Tasks that ended, by outcome.")
        self._running = meter.create_up_down_counter("funcmcp.task.running", "{run}", "Runs of tasks in this process.")
        self._waits = meter.create_histogram(
            "funcmcp.task.start.duration",
            "s",
            "The time from the creation of a task to its first run.",
            explicit_bucket_boundaries_advisory=_TASK_SECONDS,
        )
        self._runs = meter.create_histogram(
            "funcmcp.task.run.duration",
            "s",
            "The duration of a run of a task.",
            explicit_bucket_boundaries_advisory=_TASK_SECONDS,
        )
        meters.gauges["funcmcp.task.waiting"] = lambda: None if backlog.latest is None else backlog.latest.waiting
        meters.gauges["funcmcp.task.waiting.oldest"] = lambda: None if backlog.latest is None else backlog.latest.oldest

    def created(self, record: TaskRecord) -> None:
        """Count a task that this process has created."""
        self._created.add(1, self._attributes(record))

    async def measure(self, claim: Claim, run: Callable[[], Coroutine[Any, Any, RunEnd]]) -> RunEnd:
        """Run the tool of a task, and count the run and how it ended."""
        record = claim.record
        attributes = self._attributes(record)
        self._started.add(1, attributes)
        if record.starts > 1:
            self._retried.add(1, {**attributes, "funcmcp.task.retry.reason": "interrupted"})
        elif not record.failures and not record.serial:
            self._waits.record(max(0.0, claim.now - record.created), attributes)
        self._running.add(1, attributes)
        began = monotonic()
        status: Attributes = {}
        try:
            end = await run()
            status = _status_of(end)
        finally:
            self._running.add(-1, attributes)
            self._runs.record(monotonic() - began, {**attributes, **status})
        if isinstance(end, Retrying):
            self._retried.add(1, {**attributes, "funcmcp.task.retry.reason": "failed"})
        return end

    def ended(self, record: TaskRecord) -> None:
        """Count a task that this process has ended."""
        status = {"mcp.task.status": record.status}
        if record.status == COMPLETED and record.failed:
            status["error.type"] = "tool_error"
        self._ended.add(1, {**self._attributes(record), **status})

    def _attributes(self, record: TaskRecord) -> Attributes:
        return {"funcmcp.server.name": self._meters.server, "gen_ai.tool.name": self._tools[record.tool]}


def _status_of(end: RunEnd) -> Attributes:
    """Return the status that a task has after a run; none if the run was stopped, or is repeated."""
    if isinstance(end, Outcome):
        if end.is_error:
            return {"mcp.task.status": FAILED}
        return {"mcp.task.status": COMPLETED, **({"error.type": "tool_error"} if end.tool_failed else {})}
    if isinstance(end, NoOutcome):
        return {}
    if isinstance(end, Retrying):
        return {"error.type": "tool_error"}
    return {"mcp.task.status": INPUT_REQUIRED}

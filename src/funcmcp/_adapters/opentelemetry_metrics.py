"""OpenTelemetry: metrics of a server.

A server that is not measured does not load this module.

Each value of an attribute comes from the server, never from a client: names of tools that it has, and words of the
lists below. So callers can't make up time series. `ToolNames` bounds the names as well, for servers whose tools come
from other servers.
"""

from __future__ import annotations

from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

try:
    from opentelemetry.metrics import Observation, get_meter, get_meter_provider
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Metrics need: pip install "funcmcp[otel]"', name=error.name) from None

from funcmcp._protocol.tasks import COMPLETED, FAILED, INPUT_REQUIRED
from funcmcp._server.tasks.worker import NoOutcome, Retrying
from funcmcp._state.tasks.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import TypeAlias

    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider

    from funcmcp._server.tasks.backlog import BacklogWatch
    from funcmcp._server.tasks.worker import RunEnd
    from funcmcp._state.tasks.record import Claim, TaskRecord

    Attributes: TypeAlias = dict[str, str]

_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
"""The boundaries of the buckets of durations, as the conventions for MCP have them."""

_TASK_SECONDS = [*_SECONDS, 900, 3600, 4 * 3600, 24 * 3600]
_OTHER = "_OTHER"  # the conventions' word for what has no name of its own
_MAX_NAMES = 1000
_MAX_LENGTH = 256


class ToolNames:
    """The names of tools as values of an attribute. After a thousand names, other tools are `_OTHER`."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name in self._names:
            return name
        if len(self._names) >= _MAX_NAMES or len(name) > _MAX_LENGTH:
            return _OTHER
        self._names.add(name)
        return name


class TaskMetrics:
    """Measures the tasks of a server.

    Args:
        server: The name of the server.
        backlog: How many of its tasks wait.
        meter_provider: Makes the instruments; the process's global one by default.
    """

    def __init__(self, server: str, backlog: BacklogWatch, meter_provider: MeterProvider | None = None) -> None:
        self.server = server
        self.backlog = backlog
        self._tools = ToolNames()
        meter = get_meter("funcmcp", version("funcmcp"), meter_provider)
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
        _observe_backlog(self, meter, meter_provider)

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
        return {"funcmcp.server.name": self.server, "gen_ai.tool.name": self._tools[record.tool]}


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


_measured: WeakKeyDictionary[MeterProvider, WeakSet[TaskMetrics]] = WeakKeyDictionary()
"""The servers that have one provider. An SDK keeps the functions of the first gauge of a name only."""


def _observe_backlog(metrics: TaskMetrics, meter: Meter, meter_provider: MeterProvider | None) -> None:
    """Let the provider read how many tasks wait."""
    provider = get_meter_provider() if meter_provider is None else meter_provider
    if provider in _measured:
        _measured[provider].add(metrics)
        return
    servers = _measured[provider] = WeakSet([metrics])

    def waiting(_options: CallbackOptions) -> Iterable[Observation]:
        for server in list(servers):
            if (backlog := server.backlog.latest) is not None:
                yield Observation(backlog.waiting, {"funcmcp.server.name": server.server})

    def oldest(_options: CallbackOptions) -> Iterable[Observation]:
        for server in list(servers):
            if (backlog := server.backlog.latest) is not None:
                yield Observation(backlog.oldest, {"funcmcp.server.name": server.server})

    meter.create_observable_gauge(
        "funcmcp.task.waiting", [waiting], "{task}", "Tasks in the store that are due and that no worker has."
    )
    meter.create_observable_gauge(
        "funcmcp.task.waiting.oldest", [oldest], "s", "The time for which the first of the waiting tasks has been due."
    )

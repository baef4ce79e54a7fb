"""The tasks of one server: creating them, finding them for a caller, and publishing their changes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import re
import secrets
from typing import TYPE_CHECKING, Any

from funcmcp._auth.owner import address_mark, owner_of
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, InvalidParams, MCPError, MissingClientCapability
from funcmcp._protocol.tasks import EXTENSION, IDEMPOTENCY_KEY, TaskStatus, declares, poll_seconds
from funcmcp._server.authorization import guard_for
from funcmcp._server.calls.rounds import digest
from funcmcp._server.calls.task_call import encode_call
from funcmcp._server.connections.hub import Change
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.log import logger, quote
from funcmcp._server.tasks.worker import TaskWorker
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.record import NewTask, TaskKey
from funcmcp._state.tasks.store import TasksFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set

    from funcmcp._protocol.revisions import TaskRules
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.catalog.task_options import TaskOptions
    from funcmcp._server.connections.hub import Hub
    from funcmcp._server.tasks.backlog import BacklogWatch
    from funcmcp._server.tasks.outcomes import TaskMeter, TaskRuns, TaskTracer
    from funcmcp._state.bus import Bus, Message
    from funcmcp._state.tasks.record import Claim, TaskRecord
    from funcmcp._state.tasks.store import TaskStore

METHOD = "notifications/tasks"

_ID = re.compile(r"[A-Za-z0-9_-]{44}")
_ID_BYTES = 33
_IDEMPOTENCY_KEY = re.compile(r"[!-~]{16,128}")
_TOPIC = "tasks"
_OF_RETRY = "retry"
"""The fingerprint of a task that an operator creates for one that has failed. No call of a client has it."""

_CONFIRMATIONS, _CONFIRMATION_PAUSE = 3, 0.3
"""How often the store is asked for a task whose creation it has not confirmed, and the seconds before each time."""

_SHOWN_ARGUMENTS = 200
"""Characters of the arguments that the list of a caller's tasks has."""

_LONGEST_WAIT = 60
"""The most seconds of a Retry-After. Room comes as soon as a task ends, mostly long before one expires."""

_MIN_REQUESTED_TTL = 60.0
"""Seconds after the delay of a task that a client may request at least, if the tool allows them."""


class Tasks:
    """The tasks of one server.

    Args:
        store: Keeps them.
        catalog: The tools.
        guard: Decides who may use a tool; None if every caller may.
        hub: Publishes changes to those who listen.
        bus: Connects the instances of the server.

    Attributes:
        store: Keeps them.
    """

    def __init__(self, store: TaskStore, *, catalog: Catalog, guard: Guard | None, hub: Hub, bus: Bus) -> None:
        self.store = store
        self._catalog = catalog
        self._guard = guard
        self._hub = hub
        self._bus = bus
        self._runs: TaskRuns | None = None
        self._worker: TaskWorker | None = None
        self._probe: asyncio.Future[None] | None = None
        self._tracer: TaskTracer | None = None
        self._limits: dict[str, int] = {}
        self._limits_of: int | None = None
        self._meter: TaskMeter | None = None
        self._backlog: BacklogWatch | None = None
        bus.subscribe(_TOPIC, self._hear)

    def run_with(self, runs: TaskRuns) -> None:
        """Run the tools of tasks in this process."""
        self._runs = runs
        self._worker = TaskWorker(self.store, runs.run, self.changed, self._concurrency_of_tools)

    def trace_with(self, tracer: TaskTracer) -> None:
        """Trace the runs of tasks."""
        self._tracer = tracer
        if self._runs is not None:
            self._runs.tracer = tracer

    def measure_with(self, meter: TaskMeter, backlog: BacklogWatch) -> None:
        """Measure tasks and their runs, and look from time to time how many tasks wait."""
        self._meter, self._backlog = meter, backlog
        if self._runs is not None:
            self._runs.meter = meter

    @property
    def has_tools(self) -> bool:
        """Whether calls of some tool become tasks."""
        return "tasks" in self._catalog.offered

    @property
    def concurrency(self) -> int:
        """Tasks that run at once in this process; 0 if it runs none."""
        return 0 if self._worker is None else self._worker.concurrency

    def set_concurrency(self, count: int) -> None:
        """Run so many tasks at once in this process, instead of as many as the store says."""
        if self._worker is not None:
            self._worker.concurrency = count

    @property
    def queues(self) -> Set[str] | None:
        """The queues that this process serves; None for all."""
        return None if self._worker is None else self._worker.queues

    def set_queues(self, names: Set[str] | None) -> None:
        """Run tasks of these queues only in this process; None for all."""
        if self._worker is not None:
            self._worker.queues = names

    @property
    def queues_of_tools(self) -> dict[str, str]:
        """The queues of the tools whose calls become tasks, by the names of the tools."""
        return {tool.name: tool.task.queue for tool in self._catalog.tools if tool.task is not None}

    def follow_queues(self, use: Callable[[str], None]) -> None:
        """Call a function with the queues of tools: now, and with that of each tool which is added later."""

        def follow(tool: Tool, count: int) -> None:
            if count > 0 and tool.task is not None:
                use(tool.task.queue)

        for queue in sorted(set(self.queues_of_tools.values())):
            use(queue)
        self._catalog.tools.listeners.append(follow)

    def _concurrency_of_tools(self) -> Mapping[str, int]:
        """Return how many tasks of a tool run at once in this process, for the tools that have such a limit."""
        tools = self._catalog.tools
        if self._limits_of != tools.version:
            self._limits = {
                tool.name: tool.task.concurrency
                for tool in tools
                if tool.task is not None and tool.task.concurrency is not None
            }
            self._limits_of = tools.version
        return self._limits

    def start(self) -> None:
        """Begin to run tasks in this process, unless that has begun."""
        if self._backlog is not None:
            self._backlog.start()
        if self._worker is not None:
            self._worker.start()

    def start_shared(self) -> None:
        """Begin to run tasks that other processes, or an earlier start, may have created.

        A store that can't be reached is noticed, and logs it: a worker asks it for tasks, and a process without a
        worker reads a task that does not exist.
        """
        if self.store.shared and self.has_tools:
            self.start()
            if not self.store.concurrency or not self.store.pulls:
                self._probe = asyncio.ensure_future(self._read_nothing())

    async def run(self, claim: Claim) -> bool:
        """Run a task that a platform has brought; return False if the platform has to bring it again."""
        return self._worker is not None and await self._worker.run(claim)

    def drain(self) -> None:
        """Begin no more tasks in this process: it is about to end. From any thread."""
        if self._worker is not None:
            self._worker.drain()

    def hurry(self) -> None:
        """End the runs of this process at once. From any thread."""
        if self._worker is not None:
            self._worker.hurry()

    async def stop(self, seconds: float) -> None:
        """Run no more tasks, and close the store. Tasks that run have some seconds to end."""
        if self._worker is not None:
            await self._worker.stop(seconds)
        if self._backlog is not None:
            await self._backlog.stop()
        await self.store.aclose()

    async def create(
        self,
        context: RequestContext,
        options: TaskOptions,
        *,
        ttl: float | None = None,
        answers: Mapping[str, tuple[str, Mapping[str, Any]]] | None = None,
    ) -> TaskRecord:
        """Create a task for a call, or return the one of an earlier call with the same idempotency key.

        Args:
            context: The call.
            options: Those of its tool.
            ttl: Seconds; None for those of the tool.
            answers: Digest of the request and answer of the questions that were asked within the call, by key.

        Raises:
            LimitReachedError: There are too many tasks.
            InvalidParams: The idempotency key of the call is invalid, or was used for another call.
            MCPError: The server stops, and no other process can run the task.
            StoreUnavailableError: The store can't be reached. If it is not known whether there is a task now, the error
                says so, and has no time after which the client may try again.
        """
        if self._worker is not None and self._worker.draining and not self.store.shared:
            raise MCPError(INTERNAL_ERROR, "The server stops. Send the request again.")
        key = repeatable_key(context)
        fingerprint = "" if key is None else _fingerprint(context)
        earlier = await self._earlier(key, fingerprint)
        if earlier is not None:
            return earlier
        task = NewTask(
            key=key or TaskKey(owner_of(context.principal), secrets.token_urlsafe(_ID_BYTES)),
            tool=context.request.params["name"],
            call=encode_call(context, None if self._tracer is None else self._tracer.traceparent()),
            ttl=options.ttl if ttl is None else ttl,
            keep=options.keep,
            poll=options.poll,
            delay=options.delay,
            attempts=options.attempts or 1,
            answers={} if answers is None else answers,
            address=address_mark(context.caller),
            fingerprint=fingerprint,
            queue=options.queue,
            limited=options.concurrency is not None,
            arguments=_beginning_of(context.request.params.get("arguments", {})),
        )
        record = await self._create(task)
        _log(record, "created")
        if self._meter is not None:
            self._meter.created(record)
        # The same call may have come at the same time: the task is the one that was created first.
        return await self._earlier(key, fingerprint) or record

    async def _create(self, task: NewTask) -> TaskRecord:
        """Write a new task to the store; raise the error for the client if that is not possible."""
        self.start()  # where the application around the server does not run its lifespan
        try:
            return await self.store.create(task)
        except TasksFullError as error:
            raise limit_reached_by(error) from None
        except StoreUnavailableError as error:
            if error.nothing_written or error.retry_after is None:
                raise
            return await self._confirm(task, error)

    async def repeated(self, context: RequestContext) -> TaskRecord | None:
        """Return the task that an earlier call with the same idempotency key has created; None if there is none.

        Raises:
            InvalidParams: The key is invalid, or was used for another tool or other arguments.
            StoreUnavailableError: The store can't be reached.
        """
        key = repeatable_key(context)
        return None if key is None else await self._earlier(key, _fingerprint(context))

    async def _earlier(self, key: TaskKey | None, fingerprint: str) -> TaskRecord | None:
        """Return the task with a repeatable key; raise InvalidParams if its call had another fingerprint."""
        record = None if key is None else await self.store.read(key)
        if record is not None and record.fingerprint != fingerprint:
            raise InvalidParams("The idempotency key was used for a call of another tool or with other arguments.")
        return record

    async def _confirm(self, task: NewTask, failure: StoreUnavailableError) -> TaskRecord:
        """Return a task whose creation the store has not confirmed; raise the failure if it does not exist."""
        for _ in range(_CONFIRMATIONS):
            await asyncio.sleep(_CONFIRMATION_PAUSE)  # a store that failed refuses everything for a moment
            try:
                record = await self.store.read(task.key)
            except StoreUnavailableError:
                continue
            if record is None:
                raise failure
            return record
        text = "The task store of the server has not confirmed the task. It may have started."
        raise StoreUnavailableError(None, reason=text) from failure

    async def find(self, context: RequestContext) -> TaskRecord:
        """Return the task that a request names.

        Raises:
            MissingClientCapability: The client has not declared the extension.
            InvalidParams: No task with this id exists, or it belongs to another owner, or the caller may not use its
                tool. The errors are the same.
        """
        if rules_of(context).extension:
            require_extension(context)
        task_id = context.request.params.get("taskId")
        if type(task_id) is not str:
            raise InvalidParams('"taskId" must be a string.')
        record = await self.find_id(context, task_id)
        if record is None:
            raise InvalidParams("Task not found")
        return record

    async def find_id(self, context: RequestContext, task_id: str) -> TaskRecord | None:
        """Return the task of an id if the caller may use it; else None."""
        if not _ID.fullmatch(task_id):
            return None
        record = await self.store.read(TaskKey(owner_of(context.principal), task_id))
        tool = None if record is None else self._catalog.tools.get(record.tool)
        guard = guard_for(context, self._guard)
        if tool is not None and guard is not None and not await guard.may_use(tool.access, context.principal):
            return None
        return record

    async def cancel(self, record: TaskRecord) -> TaskRecord | None:
        """Cancel a task, and stop its run wherever that is; return None if it was over."""
        cancelled = await self.store.cancel(record.key)
        if cancelled is not None:
            self._stop_run(record.key)
            self._bus.publish(_TOPIC, _cancellation(record.key))
            self.changed(cancelled)
        return cancelled

    async def cancel_elsewhere(self, record: TaskRecord) -> TaskRecord | None:
        """Cancel a task from a process that does not serve; return None if it was over.

        The run ends at its next renewal if the other instances can't be reached.
        """
        cancelled = await self.store.cancel(record.key)
        if cancelled is not None:
            with contextlib.suppress(StoreUnavailableError):
                await self._bus.send(_TOPIC, _cancellation(record.key))
                await self._hub.send(change_of(record.key))
        return cancelled

    async def retry(self, record: TaskRecord) -> TaskRecord | None:
        """Create a task for the call of one that has failed; return None if its call is not kept.

        The new task belongs to the same caller. The client gets its id from the operator. The id follows from that of
        the failed task, so that a task is retried once, however many operators try it at the same time.

        Raises:
            TasksFullError: There is no room for another task.
        """
        call = await self.store.read_call(record.key) if record.failed else None
        if call is None:
            return None
        task = NewTask(
            key=_key_of_retry(record.key),
            tool=record.tool,
            call=call,
            ttl=record.expires - record.created,
            keep=record.keep,
            poll=record.poll,
            attempts=record.attempts,
            address=record.address,
            queue=record.queue,
            limited=record.limited,
            fingerprint=_OF_RETRY,
            arguments=record.arguments,
        )
        return await self.store.create(task)

    async def retried(self, record: TaskRecord) -> TaskRecord | None:
        """Return the task that an operator has created for one that has failed; None if there is none."""
        return await self.store.read(_key_of_retry(record.key))

    def has_tool(self, name: str) -> bool:
        """Return whether the server has a tool."""
        return self._catalog.tools.get(name) is not None

    async def _read_nothing(self) -> None:
        with contextlib.suppress(StoreUnavailableError):
            await self.store.read(TaskKey(None, "0"))

    def changed(self, record: TaskRecord) -> None:
        """Publish a change of a task, if a client waits for it; log and count its end."""
        if record.over:
            _log(record, record.status)
            if self._meter is not None:
                self._meter.ended(record)
        if record.watched:
            self._hub.publish(change_of(record.key))

    def _hear(self, message: Message) -> None:
        self._stop_run(TaskKey(message["owner"], message["id"]))

    def _stop_run(self, key: TaskKey) -> None:
        if self._worker is not None:
            self._worker.cancel(key)


def limit_reached_by(error: TasksFullError) -> LimitReachedError:
    """Return the error that a client gets."""
    wait = min(error.retry_after, _LONGEST_WAIT)
    return LimitReachedError(f"{error}.", wait, is_caller_limit=error.is_owner_limit)


def task_digest(task_id: str) -> str:
    """Return a digest of a task's id. Readers of logs and traces could use the task with the id itself."""
    return hashlib.sha256(task_id.encode()).hexdigest()[:16]


def _log(record: TaskRecord, event: str) -> None:
    """Write a line about a task: what happened, its tool, a digest of its id and the mark of its owner."""
    if not logger.isEnabledFor(logging.INFO):
        return
    key = record.key
    owner = key.owner or "anonymous"
    logger.info("task %s tool=%s task=%s owner=%s", event, quote(record.tool), task_digest(key.task_id), owner)


def _key_of_retry(key: TaskKey) -> TaskKey:
    """Return the key of the task that an operator creates for one that has failed."""
    return TaskKey(key.owner, _derived_id(f"retry {key.task_id}"))


def _derived_id(text: str) -> str:
    """Return the id of a task that follows from a text."""
    return base64.urlsafe_b64encode(hashlib.sha512(text.encode()).digest()[:_ID_BYTES]).decode()


def change_of(key: TaskKey) -> Change:
    """Return the change of a task, as the hub publishes it."""
    return Change(METHOD, f"{key.owner or ''} {key.task_id}")


def require_extension(context: RequestContext, *, need: str = "This request needs") -> None:
    """Raise MissingClientCapability, whose message begins with *need*, unless the client has declared the extension."""
    if not declares(context.client.capabilities):
        raise MissingClientCapability({"extensions": {EXTENSION: {}}}, need=need)


def status_of(record: TaskRecord, now: float) -> TaskStatus:
    """Return what clients see of a task.

    Args:
        record: The task.
        now: The time, to derive the polling interval from its age.
    """
    outcome = record.outcome
    return TaskStatus(
        task_id=record.key.task_id,
        status=record.status,
        message=record.message,
        created=record.created,
        updated=record.updated,
        ttl=(record.removed if record.over else record.expires) - record.created,
        poll=poll_seconds(max(0.0, now - record.created), record.poll),
        tool_failed=outcome is not None and outcome.tool_failed,
    )


def rules_of(context: RequestContext) -> TaskRules:
    """Return how the revision of a request about tasks has them."""
    rules = context.client.revision.tasks
    if rules is None:
        raise MCPError(METHOD_NOT_FOUND, "This protocol revision has no tasks.")
    return rules


def _cancellation(key: TaskKey) -> dict[str, Any]:
    """Return the message with which an instance stops the run of a task at the others."""
    return {"owner": key.owner, "id": key.task_id}


def repeatable_key(context: RequestContext) -> TaskKey | None:
    """Return the key of the task of a call with an idempotency key; None if the call has none.

    Raises:
        InvalidParams: The idempotency key is invalid.
    """
    meta = context.request.params.get("_meta")
    if type(meta) is not dict or meta.get(IDEMPOTENCY_KEY) is None:
        return None
    key = meta[IDEMPOTENCY_KEY]
    if type(key) is not str or not _IDEMPOTENCY_KEY.fullmatch(key):
        raise InvalidParams("The idempotency key must have 16 to 128 visible ASCII characters.")
    owner = owner_of(context.principal)
    return TaskKey(owner, _derived_id(f"{owner} {key}"))


def _beginning_of(arguments: object) -> str:
    """Return the first characters of arguments as JSON."""
    text = encode(arguments).decode()
    return text if len(text) <= _SHOWN_ARGUMENTS else f"{text[:_SHOWN_ARGUMENTS]}..."


def _fingerprint(context: RequestContext) -> str:
    """Return the digest of the tool and the arguments of a call."""
    params = context.request.params
    return digest([params["name"], params.get("arguments", {})])


def requested_ttl(params: Mapping[str, Any], options: TaskOptions, rules: TaskRules) -> float | None:
    """Return the seconds to live that a client of 2025-11-25 requests, within the limits of the tool.

    Raises:
        InvalidParams: ``params["task"]`` is invalid.
    """
    task = params.get("task")
    if type(task) is not dict:
        raise InvalidParams('"task" must be an object.')
    ttl = task.get(rules.ttl)
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0:
        raise InvalidParams(f'"{rules.ttl}" must be a number of milliseconds.')
    requested = min(ttl, options.ttl * 1000) / 1000  # a larger integer may not fit into a float
    return min(max(requested, options.delay + _MIN_REQUESTED_TTL), options.ttl)

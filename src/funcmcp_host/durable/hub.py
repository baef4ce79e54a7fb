"""`DurableHub`: runs the orchestrations, activities and entities of an app.

How it works. Each instance that has not ended has an asyncio task. It runs a turn (`turn`) when its inbox has events,
and waits otherwise. The open tasks of an instance are activities and timers. They are asyncio tasks, too: each one puts
an event into the inbox at its end. Sub-orchestrations are instances, and entities have a queue of operations; both put
an event into the inbox of the instance that waits for them.

Orchestrators and entities run a few at a time, as activities do, so that many instances leave room for other calls.

What a function answers may be anything. An answer that can't be carried out fails its instance, or the operation of its
entity. If the store fails, an instance stops, and goes on at the next start from where it was stored.

What has to be stored together is written to the store before one commit, and begins after it. At the next start all
instances that have not ended go on. An activity whose end is not stored runs again, so it may run more than once, as on
Azure. The end is stored with the turn that sees it; at once if the instance is suspended, and when the hub is closed.

An operation of an entity that is due later stays in the queue. An alarm wakes the entity then.

If the file can't be used, because the disk is full or another process has it, all work stops, and requests fail with
`StoreError`. The file is opened again after 1 s, 2 s and so on up to 30 s, and instances go on as at a start.

Instances, tasks and queues change on the event loop only, and between two ``await``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._server.log import quote
from funcmcp_host.bindings import BindingError, DurableTrigger, Function
from funcmcp_host.blobs import BlobError
from funcmcp_host.durable.answers import AnswerError, answer_of_failure, decoded, read_answer
from funcmcp_host.durable.instances import EventType, Instance, event, now_text
from funcmcp_host.durable.store import Store, StoreError
from funcmcp_host.durable.turn import EntityRequest, Turn, end, entity_id, key_of
from funcmcp_host.expressions import ExpressionError
from funcmcp_host.extras import plan_extras
from funcmcp_host.invocation import Trigger
from funcmcp_host.json_texts import loads
from funcmcp_host.workers.worker import FunctionFailed, Invocation, Value, WorkerGone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence
    from pathlib import Path

    from funcmcp_host.durable.answers import Answer
    from funcmcp_host.durable.turn import Effects
    from funcmcp_host.extras import Extras, Storage
    from funcmcp_host.workers.worker import LanguageWorker

_log = logging.getLogger("funcmcp.host")

_ATTEMPTS = 5
"""How often a function is called whose worker ends each time."""

_PARALLEL = 10 * (os.cpu_count() or 1)
"""How many activities run at once, and how many orchestrators and entities together, as on Azure."""

_MAX_LOGGED = 1000
"""Characters of a function's text in the log."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds after which a file that can't be used is opened again."""

_FAILURES = (FunctionFailed, BlobError, ExpressionError, TimeoutError, WorkerGone)
_KINDS = {"orchestration": "an orchestrator", "activity": "an activity", "entity": "an entity"}


class HubError(Exception):
    """A request can't be carried out. The text says why."""


class UnknownFunctionError(HubError):
    """The app has no function of the kind and name."""


class ConflictError(HubError):
    """There is an instance with this id, and it has not ended."""


class _DurableFunction(NamedTuple):
    function: str
    parameter: str
    extras: Extras


class _Run:
    """An instance that has not ended.

    Attributes:
        instance: The instance.
        awake: Set when the instance may be due.
        task: Runs its turns.
        open: The asyncio tasks of its open tasks, by the ids of these.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.awake = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.open: dict[int, asyncio.Task[None]] = {}

    def cancel(self) -> None:
        """End its activities and timers, and its turns if it is not one of these that ends it."""
        for task in self.open.values():
            task.cancel()
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()


class DurableHub:
    """Runs the orchestrations, activities and entities of an app.

    Args:
        worker: Runs the functions.
        file: Where instances and entities are stored. It is opened when it is first needed.
        seconds: The time that a call may take; None for any time.

    Attributes:
        seconds: The argument, which may change.
    """

    def __init__(self, worker: LanguageWorker, file: Path, *, seconds: float | None) -> None:
        self._worker = worker
        self._file = file
        self._store: Store | None = None
        self.seconds = seconds
        self._functions: dict[tuple[str, str], _DurableFunction] = {}
        self._runs: dict[str, _Run] = {}
        self._entities: dict[str, asyncio.Task[None]] = {}
        self._alarms: dict[str, asyncio.TimerHandle] = {}
        self._activities = asyncio.Semaphore(_PARALLEL)
        self._turns = asyncio.Semaphore(_PARALLEL)
        self._fault: StoreError | None = None
        self._pause = _FIRST_PAUSE
        self._recovery: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """The number of orchestrators, activities and entities."""
        return len(self._functions)

    def update(self, functions: Sequence[Function], storage: Storage) -> dict[str, str]:
        """Run these functions and no others; return why some can't run, by their names."""
        self._functions.clear()
        left_out = {}
        for function in functions:
            trigger = function.trigger
            if not isinstance(trigger, DurableTrigger):
                continue
            key = trigger.kind, trigger.name.lower()
            try:
                if key in self._functions:
                    raise BindingError(f"{self._functions[key].function} has the same name, {trigger.name}.")
                extras = plan_extras(function.extras, storage)
                self._functions[key] = _DurableFunction(function.name, trigger.parameter, extras)
            except BindingError as error:
                left_out[function.name] = str(error)
        return left_out

    def resume(self) -> None:
        """Go on with the instances and entities that a process before has left; later if the file can't be used."""
        if self._store is None and self._fault is None and self._file.exists():
            with contextlib.suppress(StoreError):  # it is logged
                self._opened()

    async def aclose(self) -> None:
        """Stop all work; it goes on at the next start."""
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)
        if self._store is not None and self._fault is None:
            with contextlib.suppress(StoreError):  # it is logged
                self._save_inboxes()
        await self._stop()

    async def _stop(self) -> None:
        """Drop what is in memory, and close the file."""
        tasks = list(self._entities.values())
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        for run in self._runs.values():
            tasks += [*run.open.values(), *([run.task] if run.task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._runs.clear()
        self._entities.clear()
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def start(self, name: str, value: Any, *, instance_id: str, version: str | None = None) -> None:
        """Start an instance of an orchestration; one that has ended is replaced.

        Args:
            name: The name of the orchestrator.
            value: Its input, decoded from JSON.
            instance_id: The id of the instance.
            version: Its version.

        Raises:
            UnknownFunctionError: The app has no such orchestrator.
            ConflictError: The instance has not ended.
            StoreError: The file can't be used.
        """
        self._function("orchestration", name)
        existing = self.instance(instance_id)
        if existing is not None and not existing.has_ended:
            raise ConflictError(f"An orchestration with the id {instance_id!r} exists, and is {existing.status}.")
        instance = Instance(instance_id, name, value, version=version)
        self._save(instance)
        self._commit()
        self._begin(instance)

    def instance(self, instance_id: str) -> Instance | None:
        """Return an instance, or None if there is none."""
        store = self._opened()
        run = self._runs.get(instance_id)
        if run is not None:
            return run.instance
        record = store.get("instance", instance_id)
        return None if record is None else Instance.of_record(record)

    def instances(self) -> Iterator[Instance]:
        """Yield all instances in the order of their ids."""
        for record in self._opened().all("instance"):
            yield Instance.of_record(record)

    def raise_event(self, instance: Instance, name: str, value: Any) -> None:
        """Raise an event for an instance that has not ended."""
        self._deliver(instance.id, event(EventType.EVENT_RAISED, Name=name, Input=json.dumps(value)))
        self._commit()

    def terminate(self, instance: Instance, reason: str) -> None:
        """End an instance that has not ended."""
        end(instance, "Terminated", reason)
        self._finish(instance)
        self._commit()

    def suspend(self, instance: Instance, *, is_suspended: bool) -> None:
        """Make an instance wait, or go on."""
        if is_suspended or instance.status == "Suspended":
            instance.status = "Suspended" if is_suspended else "Running"
            self._save(instance)
            self._commit()
            run = self._runs.get(instance.id)
            if run is not None:
                run.awake.set()

    def purge(self, instance: Instance) -> None:
        """Forget an instance that has ended."""
        self._opened().delete("instance", instance.id)
        self._commit()

    def entity(self, entity: str) -> dict[str, Any] | None:
        """Return what is stored of an entity; None if it does not exist."""
        record = self._opened().get("entity", entity)
        return record if record is not None and record["exists"] else None

    def signal(self, request: EntityRequest) -> None:
        """Send an operation to an entity.

        Raises:
            UnknownFunctionError: The app has no such entity.
        """
        self._function("entity", request.entity.split("@")[1])
        self._queue(request)
        self._commit()
        self._work_at(request.entity)

    def _opened(self) -> Store:
        """Return the file; raise StoreError. When it is opened, what a process before has left goes on."""
        if self._fault is not None:
            raise self._fault
        if self._store is None:
            try:
                self._use(Store(self._file, self._note_fault))
            except StoreError as error:
                self._note_fault(error)
                raise
        assert self._store is not None  # noqa: S101 - narrows the type
        return self._store

    def _use(self, store: Store) -> None:
        self._store = store
        for record in list(store.all("instance")):
            instance = Instance.of_record(record)
            if not instance.has_ended:
                self._begin(instance)
        for record in list(store.all("entity")):
            if record["queue"]:
                self._work_at(record["id"])

    def _note_fault(self, error: StoreError) -> None:
        """Go back to what is stored: the file can't be used, and memory may have changes that it does not have."""
        if self._fault is None:
            self._fault = error
            _log.error("Durable Functions are stopped until their file can be used. %s", error)
            self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        """Open the file again, until it can be used."""
        await self._stop()
        while self._store is None:
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            try:
                self._use(Store(self._file, self._note_fault))
            except StoreError as error:
                self._fault = error
                await self._stop()
        self._fault = None
        _log.info("Durable Functions run again: the file %s can be used.", self._file)

    def _commit(self) -> None:
        self._opened().commit()
        self._pause = _FIRST_PAUSE

    def _function(self, kind: str, name: str) -> _DurableFunction:
        function = self._functions.get((kind, name.lower()))
        if function is None:
            raise UnknownFunctionError(
                f"The function '{name}' doesn't exist, is disabled, or is not {_KINDS[kind]} function."
            )
        return function

    def _save(self, instance: Instance) -> None:
        instance.updated = now_text()
        self._opened().put("instance", instance.id, instance.record())

    def _begin(self, instance: Instance) -> None:
        """Run an instance from where it is."""
        run = self._runs[instance.id] = _Run(instance)
        ended = {key_of(received) for received in instance.inbox}
        for task_id in instance.open:
            if task_id not in ended:
                self._launch(run, int(task_id))
        run.task = asyncio.create_task(self._drive(run), name=f"orchestration {instance.id}")

    async def _drive(self, run: _Run) -> None:
        """Run the turns of an instance until it ends."""
        with contextlib.suppress(StoreError):  # noted; it goes on when the file can be used
            while not run.instance.has_ended:
                if run.instance.is_due:
                    await self._take_turn(run)
                else:
                    run.awake.clear()
                    await run.awake.wait()

    async def _take_turn(self, run: _Run) -> None:
        instance = run.instance
        try:
            async with self._turns:
                turn = Turn(instance)
                answer = await self._answer(instance, turn)
            effects = turn.apply(answer)
            if instance.status == "Failed":
                instance.output = _failure_of(instance, str(instance.output))
            self._carry_out(run, effects)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the answer may be anything
            self._opened().rollback()
            instance.custom_status = None  # it may be what can't be stored
            end(instance, "Failed", _failure_of(instance, _text_of(error)))
            self._finish(instance)
            self._commit()

    async def _answer(self, instance: Instance, turn: Turn) -> Answer:
        function = self._function("orchestration", instance.name)
        try:
            return read_answer(await self._invoke(function, turn.context()))
        except FunctionFailed as error:
            return answer_of_failure(str(error))
        except _FAILURES as error:
            raise AnswerError(_text_of(error)) from error

    def _carry_out(self, run: _Run, effects: Effects) -> None:
        """Store what a turn has changed, and begin what it has asked for."""
        instance = run.instance
        children = [child for child in effects.children if self._can_begin(child)]
        for child in children:
            self._save(child)
        for request in effects.requests:
            self._queue(request)
        if instance.has_ended:
            self._finish(instance)
        else:
            self._save(instance)
        self._commit()
        over = effects.cancelled if instance.history else list(run.open)  # another execution begins with no tasks
        for task_id in over:
            task = run.open.pop(task_id, None)
            if task is not None:
                task.cancel()
        for task_id in effects.begun:
            self._launch(run, task_id)
        for child in children:
            self._begin(child)
        for request in effects.requests:
            self._work_at(request.entity)

    def _can_begin(self, child: Instance) -> bool:
        """Return whether a sub-orchestration can begin; otherwise its parent gets a failure."""
        try:
            self._function("orchestration", child.name)
            existing = self.instance(child.id)
            if existing is not None and not existing.has_ended:
                raise ConflictError(f"An orchestration with the id {child.id!r} exists, and is {existing.status}.")
        except HubError as error:
            end(child, "Failed", str(error))
            self._answer_parent(child)
            return False
        return True

    def _finish(self, instance: Instance) -> None:
        """Store an instance that has ended, and tell the one that waits for it; the caller commits."""
        if instance.status == "Failed":
            text = quote(str(instance.output), _MAX_LOGGED)
            _log.error("The orchestration %s of %s failed. %s", quote(instance.id), instance.name, text)
        self._save(instance)
        self._answer_parent(instance)
        run = self._runs.pop(instance.id, None)
        if run is not None:
            run.cancel()

    def _answer_parent(self, instance: Instance) -> None:
        parent = instance.parent
        if parent is None:
            return
        run = self._runs.get(parent.instance)
        if run is None or run.instance.execution != parent.execution:
            return
        if instance.status == "Completed":
            result = json.dumps(instance.output)
            ending = event(EventType.SUB_ORCHESTRATION_COMPLETED, TaskScheduledId=parent.task, Result=result)
        else:
            reason = f"The sub-orchestration '{instance.name}' failed: {instance.output}"
            ending = event(EventType.SUB_ORCHESTRATION_FAILED, TaskScheduledId=parent.task, Reason=reason, Details="")
        self._deliver(parent.instance, ending)

    def _deliver(self, instance_id: str, received: dict[str, Any]) -> None:
        """Put an event into the inbox of an instance; the caller commits."""
        run = self._runs.get(instance_id)
        if run is None:
            return
        run.instance.inbox.append(received)
        self._save(run.instance)
        run.awake.set()

    def _launch(self, run: _Run, task_id: int) -> None:
        """Begin an activity or a timer of an instance."""
        task = run.instance.open.get(str(task_id))
        if task is None or task["kind"] in {"child", "entity"}:
            return
        work = self._activity(task, task_id) if task["kind"] == "activity" else _timer(task, task_id)
        run.open[task_id] = asyncio.create_task(self._complete(run, task_id, work))

    async def _complete(self, run: _Run, task_id: int, work: Awaitable[dict[str, Any]]) -> None:
        """Wait for the end of an activity or a timer, and tell its instance."""
        ending = await work
        run.open.pop(task_id, None)
        run.instance.inbox.append(ending)
        run.awake.set()
        # The turn that follows at once stores it: a save for each of many activities takes long.
        if run.instance.status == "Suspended":
            with contextlib.suppress(StoreError):  # noted; it runs again when the file can be used
                self._save(run.instance)
                self._commit()

    def _save_inboxes(self) -> None:
        """Store the events that instances have not seen."""
        for run in self._runs.values():
            if run.instance.inbox:
                self._save(run.instance)
        self._commit()

    async def _activity(self, task: dict[str, Any], task_id: int) -> dict[str, Any]:
        """Run an activity and return the event of its end."""
        value = task["input"]
        try:
            function = self._function("activity", task["name"])
            async with self._activities:
                result = await self._invoke(function, value if isinstance(value, str) else json.dumps(value))
            text = result.data if result.kind == "json" else json.dumps(decoded(result))
        except (*_FAILURES, HubError, AnswerError) as error:
            reason = f"Activity function '{task['name']}' failed: {_text_of(error)}"
            _log.error("%s", quote(reason, _MAX_LOGGED))
            return event(EventType.TASK_FAILED, TaskScheduledId=task_id, Reason=reason, Details="")
        return event(EventType.TASK_COMPLETED, TaskScheduledId=task_id, Result=text)

    async def _invoke(self, function: _DurableFunction, text: str) -> Value:
        """Call a function, again if its worker ends, and return its value."""
        trigger = Trigger({}, "data", function.parameter)
        inputs = {**await function.extras.read(trigger), function.parameter: Value("string", text)}
        invocation = Invocation(function.function, inputs)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                outcome = await self._worker.invoke(invocation, self.seconds)
                break
            except WorkerGone:
                if attempt == _ATTEMPTS:
                    raise
        await function.extras.write(trigger, outcome.outputs)
        return outcome.value

    def _queue(self, request: EntityRequest) -> None:
        """Store an operation of an entity; the caller commits, and then calls `_work_at`."""
        record = self._entity_record(request.entity)
        record["queue"].append(asdict(request))
        self._opened().put("entity", request.entity, record)

    def _entity_record(self, entity: str) -> dict[str, Any]:
        empty = {"id": entity, "exists": False, "state": None, "queue": []}
        return self._opened().get("entity", entity) or empty

    def _work_at(self, entity: str) -> None:
        if entity not in self._entities:
            self._entities[entity] = asyncio.create_task(self._work(entity), name=f"entity {entity}")

    async def _work(self, entity: str) -> None:
        """Run the operations of an entity that are due, one after the other, and set an alarm for the next one."""
        alarm = self._alarms.pop(entity, None)
        if alarm is not None:
            alarm.cancel()
        try:
            with contextlib.suppress(StoreError):  # noted, as for instances
                while queue := self._entity_record(entity)["queue"]:
                    request = min((EntityRequest(**queued) for queued in queue), key=_seconds_until_due)
                    seconds = _seconds_until_due(request)
                    if seconds > 0:
                        loop = asyncio.get_running_loop()
                        self._alarms[entity] = loop.call_later(seconds, self._work_at, entity)
                        break
                    await self._operate(entity, request)
        finally:
            self._entities.pop(entity, None)  # at once: an operation that comes now needs another task

    async def _operate(self, entity: str, request: EntityRequest) -> None:
        """Run one operation, and store the state with which it leaves the entity."""
        _, name, key = entity.split("@", 2)
        before = self._entity_record(entity)
        operation = {"id": request.id, "name": request.operation, "isSignal": request.caller is None}
        batch = [{**operation, "input": json.dumps(request.input)}]
        context = {"self": {"name": name, "key": key}, "exists": before["exists"], "state": before["state"]}
        try:
            function = self._function("entity", name)
            async with self._turns:
                value = await self._invoke(function, json.dumps({**context, "batch": batch}))
            answer = _read_state(value)
        except Exception as error:  # noqa: BLE001 - the answer may be anything
            text = _text_of(error)
            _log.error("The entity %s failed. %s", quote(entity), quote(text, _MAX_LOGGED))
            answer = _EntityAnswer(before["exists"], before["state"], {"isError": True, "result": json.dumps(text)}, [])
        record = self._entity_record(entity)  # the queue may have grown
        queue = [other for other in record["queue"] if other["id"] != request.id]
        record.update(exists=answer.exists, state=answer.state, queue=queue)
        self._opened().put("entity", entity, record)
        for signal in answer.signals:
            self._queue(signal)
        if request.caller is not None:
            self._deliver(request.caller, _response(request, answer.result))
        self._commit()
        for signal in answer.signals:
            self._work_at(signal.entity)


class _EntityAnswer(NamedTuple):
    exists: bool
    state: str | None
    result: dict[str, Any]
    signals: list[EntityRequest]


def _read_state(value: Value) -> _EntityAnswer:
    """Return what an entity function answers; raise AnswerError or another exception if it can't be carried out."""
    content = decoded(value)
    if not isinstance(content, dict) or not content.get("results"):
        raise AnswerError("It did not return the state of an entity.")
    exists = bool(content.get("entityExists"))
    state, result = content.get("entityState") if exists else None, content["results"][0]
    if not isinstance(state, str | None) or not isinstance(result, dict):
        raise AnswerError("The state of an entity must be a text with JSON, and each of its results an object.")
    return _EntityAnswer(exists, state, result, [_signal_of(signal) for signal in content.get("signals") or ()])


def _signal_of(signal: dict[str, Any]) -> EntityRequest:
    text = signal.get("input")
    return EntityRequest(entity_id(signal.get("target")), str(signal.get("name")), loads(text) if text else None)


def _response(request: EntityRequest, result: dict[str, Any]) -> dict[str, Any]:
    """Return the event with the result of an operation."""
    text = result.get("result")
    message: dict[str, Any] = {"result": "null" if text is None else text}
    if result.get("isError"):
        message["exceptionType"] = "Error"
    return event(EventType.EVENT_RAISED, Name=request.id, Input=json.dumps(message))


async def _timer(task: dict[str, Any], task_id: int) -> dict[str, Any]:
    """Wait until a timer is over, and return the event."""
    await asyncio.sleep(_seconds_until(task["fire_at"]))
    return event(EventType.TIMER_FIRED, TimerId=task_id, FireAt=task["fire_at"])


def _seconds_until(text: str) -> float:
    """Return the seconds until a time, which is in UTC unless it says otherwise; less than 0 if it is over."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - datetime.now(UTC)).total_seconds()


def _seconds_until_due(request: EntityRequest) -> float:
    """Return the seconds until an operation of an entity is due; 0 if it is due."""
    return 0.0 if request.due is None else max(0.0, _seconds_until(request.due))


def _failure_of(instance: Instance, text: str) -> str:
    return f"Orchestrator function '{instance.name}' failed: {text}"


def _text_of(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "The function did not finish in time."
    if isinstance(error, (*_FAILURES, AnswerError, HubError)):
        return str(error)
    return f"What it returned can't be carried out ({type(error).__name__}: {error})."

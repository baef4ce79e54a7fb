"""Runs tasks that are due, in this process.

How it works: one asyncio task claims tasks of the store, as many as this process may run at once, and starts an asyncio
task for each. While a tool runs, its claim in a shared store is renewed: five times in a lease, and every five seconds
at least, so that a cancellation at another instance stops the run even if its message was lost. A renewal that
is refused ends the run. Nothing that goes wrong in one run, or in the store, ends the claiming.

A platform may also bring a task that it has claimed (`TaskWorker.run`).

A place is free again when the tool returns, so that another task runs while the end of the run is stored. While as many
ends as there are places wait for the store, nothing is claimed.

No caller gets all places of a process (`places.Places`). While one has its share and nothing ends, the worker looks
through the queue once a second for tasks of others, and returns what it may not run. Behind thousands of tasks of one
caller it looks more often, and they come back later.

A worker serves all queues, or those that the operator names, and a tool may have a limit of runs at once. Both are part
of each claim. What a store brings all the same, because an earlier version has stored it or a limit has changed, goes
back to its queue.

When the server stops, nothing more is claimed, and runs have the time of `funcmcp._server.drain` to end. A run that
does not end is cancelled: the task is released for another worker if the tool may be started again, else it fails.

A task whose tool this process does not have goes back to the queue, for a process of another version. The log says so
once for each tool. The task fails after several such deliveries, with pauses between them that grow up to a limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
from enum import Enum, auto
from random import uniform
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from funcmcp._server.calls.task_call import CANCELLED_BY_CLIENT
from funcmcp._server.log import log_failure, logger, quote
from funcmcp._server.tasks.concurrency import Places
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.record import Outcome, failure, interrupted
from funcmcp._state.tasks.task_filter import TaskFilter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence, Set

    from funcmcp._server.tasks.concurrency import ToolLimits
    from funcmcp._state.tasks.record import Claim, Question, TaskKey, TaskRecord
    from funcmcp._state.tasks.store import TaskStore

    RunEnd: TypeAlias = "Outcome | Retrying | Mapping[str, Question] | NoOutcome"
    RunTool: TypeAlias = Callable[[Claim, Callable[[str], None]], Awaitable[RunEnd]]

_RENEWALS = 5
"""Renewals in a lease. A process that stalls for two thirds of a lease loses nothing."""

_LONGEST_RENEWAL = 5.0
_REPORT_INTERVAL = 0.5
"""Seconds between two writes of the status message."""

_LOOK_PAUSE, _NEXT_LOOK_PAUSE = 1.0, 0.25
"""Seconds between two looks for tasks of those who may have a place that is kept from a caller, and until the next look
after one that saw only a part of the queue."""

_RETURN_DELAY, _RETURN_STEP, _LONGEST_RETURN_DELAY = 2.0, 1.0, 300.0
"""Seconds after which a task is due again that its caller has no place for.

They grow by a step with each look that sees only a part of the queue, and shrink with each that sees all that is due.
So thousands of waiting tasks of one caller are looked at in turn, and not before each new task of another."""

_AWAY_PAUSE = 0.5
_FAULT_PAUSE = 1.0
_UNKNOWN_DELAY = 2.0
"""Seconds after which a task that this process can't run is due again, for a process of another version.

Each delivery to such a process doubles them, so that a rolling deployment has a minute to bring a process that can."""

_LONGEST_UNKNOWN_DELAY = 60.0
"""The most seconds between two deliveries, before they are varied."""

_MAX_REPORTED_TOOLS = 100
"""Tools of tasks of other versions that the log names."""

_UNKNOWN_DELIVERIES = 5
"""Deliveries to processes that can't run a task, beyond the attempts of its tool, until the task fails."""


class NoOutcome(Enum):
    """Why a run ended without an outcome and without questions."""

    UNKNOWN = auto()
    """This process has no such tool, or can't read the call. Another version of the server may."""
    EXPIRED = auto()
    """The time of the task is up."""
    STOPPED = auto()
    """The server stops."""
    NO_PLACE = auto()
    """The caller or the tool has its share of the places of this process, or it does not serve the queue."""
    LOST = auto()
    """The task was cancelled, or another worker has it."""


class Retrying(NamedTuple):
    """The end of a run that failed, after which the tool runs again.

    Attributes:
        delay: Seconds until then.
        message: The status message until then.
    """

    delay: float
    message: str


class TaskWorker:
    """Claims tasks and runs them.

    Args:
        store: The tasks.
        run: Runs the tool of a claimed task; the second argument takes status messages.
        changed: Is called with a task after each change.
        limits: How many tasks of a tool run at once, for the tools that have such a limit.

    Attributes:
        queues: The queues that this process serves; None for all.
    """

    def __init__(
        self,
        store: TaskStore,
        run: RunTool,
        changed: Callable[[TaskRecord], None],
        limits: ToolLimits = dict,
    ) -> None:
        self.queues: Set[str] | None = None
        self._limits = limits
        self._places = Places(store.concurrency, limits)
        self._store = store
        self._run_tool = run
        self._changed = changed
        self._runs: dict[TaskKey, _Run] = {}
        self._claiming: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._draining = False
        self._freed = asyncio.Event()
        self._return_delay = _RETURN_DELAY
        self._unknown_tools: set[str] = set()
        self._saw_all = True

    @property
    def concurrency(self) -> int:
        """Tasks that run at once; 0 if this process runs none."""
        return self._places.count

    @concurrency.setter
    def concurrency(self, count: int) -> None:
        self._places.count = count

    @property
    def draining(self) -> bool:
        """Whether the worker waits for the end of its runs, and begins no more."""
        return self._draining

    def start(self) -> None:
        """Begin to claim tasks on the running event loop, unless that has begun or is about to end.

        If an event loop of another thread claims tasks already, it runs those that this one creates, too.
        """
        loop = asyncio.get_running_loop()
        if self._claims_elsewhere():
            return
        if not self.concurrency or not self._store.pulls or (self._draining and self._loop is loop):
            return
        if self._loop is loop and self._claiming is not None and not self._claiming.done():
            return
        self._begin_on(loop)
        # Without the context variables of the request during which the work begins.
        self._claiming = loop.create_task(self._claim_tasks(), context=contextvars.Context())

    async def run(self, claim: Claim) -> bool:
        """Run a task that a platform has brought, on the running event loop.

        Return whether the end of the run is stored. If it is not, the platform has to bring the task again.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._begin_on(loop)
        has_place = claim.record.over or not self._places.is_full(claim.record.tool)
        run = self._begin(claim)
        if not has_place:
            run.end(NoOutcome.NO_PLACE)
        await asyncio.wait([run.task])
        return run.is_stored

    def drain(self) -> None:
        """Claim nothing more, and let the runs continue until `stop`. From any thread, and in a signal handler."""
        self._draining = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stop_claiming)

    def _stop_claiming(self) -> None:
        self._stopping = True
        self._freed.set()
        if self._claiming is not None:
            self._store.wake()

    def hurry(self) -> None:
        """End the runs at once, as `stop` does when their time is up. From any thread, and in a signal handler."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # as above
                self._loop.call_soon_threadsafe(self._stop_runs)

    def _stop_runs(self) -> None:
        for run in self._runs.values():
            run.end(NoOutcome.STOPPED)

    async def stop(self, seconds: float) -> None:
        """Claim nothing more, and wait some seconds for the runs; end those that still run.

        Nothing happens if an event loop of another thread claims the tasks.
        """
        if self._claims_elsewhere():
            return
        self._stopping = True
        self._freed.set()
        try:
            if self._loop is asyncio.get_running_loop():
                self._draining = True
                await self._end_runs(seconds)
        finally:
            self._draining = False

    async def _end_runs(self, seconds: float) -> None:
        claiming, self._claiming = self._claiming, None
        if claiming is not None:
            self._store.wake()
            await asyncio.wait([claiming])  # a claim that is under way must be released or run
        running = [run.task for run in self._runs.values()]
        if running:
            await asyncio.wait(running, timeout=seconds)
        self._stop_runs()
        if self._runs:
            await asyncio.wait([run.task for run in self._runs.values()])

    def cancel(self, key: TaskKey) -> None:
        """Stop the run of a task that was cancelled, if this process runs it."""
        run = self._runs.get(key)
        if run is not None:
            run.end(NoOutcome.LOST, CANCELLED_BY_CLIENT)

    def _claims_elsewhere(self) -> bool:
        """Return whether an event loop of another thread claims tasks."""
        loop, claiming = self._loop, self._claiming
        if loop is None or claiming is None or loop is asyncio.get_running_loop():
            return False
        return loop.is_running() and not claiming.done()

    def _begin_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._runs = {}
        self._places = Places(self._places.count, self._limits)
        self._stopping = False
        self._freed = asyncio.Event()

    async def _claim_tasks(self) -> None:
        while not self._stopping:
            unstored = sum(run.has_returned for run in self._runs.values())
            if unstored >= self._places.count:  # the store is slow, or away
                self._freed.clear()
                await self._freed.wait()
                continue
            if self._places.open < 1:
                await self._wait_for_place()
                if self._stopping or not self._places.free:
                    continue
            try:
                for claim in await self._claims():
                    has_place = claim.record.over or self._has_place(claim.record)
                    # If the server stops meanwhile, the task is released before its tool runs.
                    self._begin(claim, has_place=has_place)
            except StoreUnavailableError:
                await asyncio.sleep(_AWAY_PAUSE)
            except Exception as error:  # noqa: BLE001 - one record that can't be read must not stop all tasks
                log_failure(error, os.urandom(8).hex(), "task worker")
                await asyncio.sleep(_FAULT_PAUSE)

    async def _claims(self) -> Sequence[Claim]:
        """Return claims for the open places; with none, those behind the tasks of a caller that has its share."""
        only = TaskFilter(self.queues, self._places.of_tools())
        count = self._places.open
        if count >= 1:
            return await self._store.claim(count, only)
        count = self._store.limits.live_per_principal + self._places.free
        claims = await self._store.claim(count, only)
        self._saw_all = len(claims) < count
        step = -_RETURN_STEP if self._saw_all else _RETURN_STEP
        self._return_delay = min(max(self._return_delay + step, _RETURN_DELAY), _LONGEST_RETURN_DELAY)
        return claims

    def _has_place(self, record: TaskRecord) -> bool:
        is_served = self.queues is None or record.queue in self.queues
        return is_served and self._places.has_room(record.payer, record.tool)

    async def _wait_for_place(self) -> None:
        """Return when a run has ended, or if there is a free place, when it is time to look for tasks of others."""
        self._freed.clear()
        timer = None
        if self._places.free > 0:
            pause = _LOOK_PAUSE if self._saw_all else _NEXT_LOOK_PAUSE
            timer = asyncio.get_running_loop().call_later(pause, self._freed.set)
        await self._freed.wait()
        if timer is not None:
            timer.cancel()

    def _begin(self, claim: Claim, *, has_place: bool = True) -> _Run:
        run = _Run(claim, self._places if has_place else None)
        if run.places is not None:
            run.places.take(claim.record.payer, claim.record.tool)
        run.task = asyncio.ensure_future(self._work(run))
        self._runs[claim.key] = run
        run.task.add_done_callback(lambda _task: self._ended(run))
        if self._stopping:
            run.end(NoOutcome.STOPPED)
        if not has_place:
            run.end(NoOutcome.NO_PLACE)
        return run

    def _ended(self, run: _Run) -> None:
        if self._runs.get(run.claim.key) is run:
            del self._runs[run.claim.key]
        self._free_place(run)
        self._freed.set()

    def _free_place(self, run: _Run) -> None:
        """Free the place of a run for another task."""
        places, run.places = run.places, None
        if places is None:
            return
        record = run.claim.record
        was_full = places.is_full(record.tool)
        places.give_back(record.payer, record.tool)
        self._freed.set()
        if was_full and not places.is_full(record.tool) and self._claiming is not None:
            self._store.wake()  # a claim that waits leaves tasks of this tool to others

    async def _work(self, run: _Run) -> None:
        """Run one task and store how its run ended."""
        claim = run.claim
        if claim.record.over:
            self._changed(claim.record)
            run.is_stored = True
            return
        # The tasks of one process end only here: nobody else can take or cancel them.
        renewing = asyncio.ensure_future(self._renew(run)) if self._store.shared else None
        reports = _Reports(self._store, claim, self._changed)
        try:
            end = await self._end_of(run, reports)
            run.has_returned = run.places is not None
            self._free_place(run)
            await reports.close()
            await self._write(run, end)
        except Exception as error:  # noqa: BLE001 - a fault of the server; the lease lapses, and the task is due again
            log_failure(error, os.urandom(8).hex(), f"task of {claim.record.tool}")
        finally:
            if renewing is not None:
                renewing.cancel()

    async def _end_of(self, run: _Run, reports: _Reports) -> RunEnd:
        """Run the tool; return how the run ended."""
        claim = run.claim
        run.cancellable = True
        try:
            if run.reason is not None:
                return run.reason
            run.has_begun = True
            async with asyncio.timeout(claim.record.expires - claim.now) as deadline:
                return await self._run_tool(claim, reports.report)
        except TimeoutError:
            if not deadline.expired():
                raise
            return NoOutcome.EXPIRED
        except asyncio.CancelledError:
            if run.reason is None:
                raise
            return run.reason
        finally:
            run.cancellable = False

    async def _write(self, run: _Run, end: RunEnd) -> None:
        """Store the end of a run; try again while the store is away, until the lease has lapsed."""
        claim = run.claim
        loop = asyncio.get_running_loop()
        last_try = loop.time() + min(self._store.lease, claim.record.expires - claim.now)
        while run.reason is not NoOutcome.LOST:
            try:
                record = await self._written(run, end)
            except StoreUnavailableError:
                if loop.time() >= last_try:
                    logger.warning("The outcome of a task of %s could not be stored.", claim.record.tool)
                    return
                await asyncio.sleep(_AWAY_PAUSE)
                continue
            run.is_stored = True
            if record is not None:
                self._changed(record)
            return
        run.is_stored = True  # by the one who has the task now

    async def _written(self, run: _Run, end: RunEnd) -> TaskRecord | None:
        store, claim = self._store, run.claim
        if isinstance(end, Outcome):
            return await store.finish(claim, end)
        if isinstance(end, Retrying):
            return await store.retry(claim, end.delay, end.message)
        if not isinstance(end, NoOutcome):
            return await store.ask(claim, end)
        if end is NoOutcome.UNKNOWN:
            return await self._return(claim)
        if end is NoOutcome.NO_PLACE:
            return await store.release(claim, self._return_delay)
        if end is NoOutcome.STOPPED and (not run.has_begun or claim.record.starts < claim.record.attempts):
            return await store.release(claim)
        if end is NoOutcome.STOPPED:
            return await store.finish(claim, interrupted())
        record = await store.read(claim.key)
        if record is None or record.updated != record.expires:
            return None  # another process has ended it, or has claimed it
        return record  # it has failed by the clock of the store

    async def _return(self, claim: Claim) -> TaskRecord | None:
        """Return a task that this process can't run to the queue; fail it after too many deliveries."""
        record = claim.record
        deliveries = record.returned + 1
        if deliveries >= record.attempts + _UNKNOWN_DELIVERIES:
            logger.warning("A task failed because no worker has its tool %s.", quote(record.tool))
            return await self._store.finish(claim, failure("No worker of the server can run the tool of the task."))
        self._report_unknown(record.tool)
        delay = min(_UNKNOWN_DELAY * 2**record.returned, _LONGEST_UNKNOWN_DELAY)
        # Workers look at the queue in equal intervals. With equal delays it would always be the turn of the same one.
        delay *= uniform(1, 1.5)  # noqa: S311 - no secret
        return await self._store.release(claim, delay, unknown=True)

    def _report_unknown(self, tool: str) -> None:
        """Log once that this process can't run the tasks of a tool."""
        if tool in self._unknown_tools or len(self._unknown_tools) >= _MAX_REPORTED_TOOLS:
            return
        self._unknown_tools.add(tool)
        logger.warning(
            "This process can't run a task of %s: it does not have the tool, or a newer version of the server has "
            "written the call. The task waits for a process that can, and fails after several more deliveries.",
            quote(tool),
        )

    async def _renew(self, run: _Run) -> None:
        interval = min(self._store.lease / _RENEWALS, _LONGEST_RENEWAL)
        while True:
            await asyncio.sleep(interval)
            with contextlib.suppress(StoreUnavailableError):
                if not await self._store.renew(run.claim):
                    run.end(NoOutcome.LOST)
                    return


class _Run:
    """A task that runs in this process.

    Attributes:
        claim: The claim.
        places: Where it has a place; None if it has none, or none any more.
        task: The asyncio task of the run.
        reason: Why the run is to end without an outcome; None as long as it is not.
        cancellable: Whether the tool runs now.
        has_begun: Whether the tool has run.
        has_returned: Whether the run had a place and its end has to be stored.
        is_stored: Whether the store has the end of the run.
    """

    def __init__(self, claim: Claim, places: Places | None) -> None:
        self.claim = claim
        self.places = places
        self.task: asyncio.Task[None]
        self.reason: NoOutcome | None = None
        self.cancellable = False
        self.has_begun = False
        self.has_returned = False
        self.is_stored = False

    def end(self, reason: NoOutcome, message: str | None = None) -> None:
        """Cancel the run, unless that has been done.

        Args:
            reason: The reason.
            message: The argument of the CancelledError in the run.
        """
        if self.reason is None:
            self.reason = reason
            if self.cancellable:
                self.task.cancel(message)


class _Reports:
    """Writes the status message of a task, not too often."""

    def __init__(self, store: TaskStore, claim: Claim, changed: Callable[[TaskRecord], None]) -> None:
        self._store = store
        self._claim = claim
        self._changed = changed
        self._message: str | None = None
        self._writing: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, message: str) -> None:
        """Write a message soon."""
        self._message = message
        if self._writing is None and not self._closed:
            self._writing = asyncio.ensure_future(self._write())

    async def close(self) -> None:
        """Stop writing. A message that has not been written is dropped, because it is about a run that has ended."""
        self._closed = True
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
            await asyncio.wait([writing])

    async def _write(self) -> None:
        while self._message is not None:
            message = self._message
            with contextlib.suppress(StoreUnavailableError):
                record = await self._store.report(self._claim, message)
                if record is not None:
                    self._changed(record)
            if self._message is message:
                self._message = None
            await asyncio.sleep(_REPORT_INTERVAL)
        self._writing = None

"""A worker that is started again when it ends, and replaced when the app changes.

How it works. `Supervised` owns one process at a time. A task waits for its end and then starts the next one: at once
the first time, then after 0.1 s, 0.2 s, 0.4 s and so on up to 30 s. A process that has lived for a minute resets the
delay. Meanwhile calls wait, and their time does not run out.

A call whose process ends fails if the process had begun with it, because it may have had an effect. Otherwise the next
process gets it. A call past its time is cancelled. If the process then does not answer a ping, it hangs and is ended; a
missing answer alone is legal, because a plain function may block the event loop of a worker. A call that waits behind
such a function until its own time is over has not begun: it waits for the outcome of the ping, and the next process
gets it with all of its time. New calls wait for that outcome, too: some workers do not report that they have begun with
a call, so a call that such a worker has received can't go to the next process.

`WorkerPool` distributes calls over several of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from funcmcp_host.workers.worker import LoadFailed, Outcome, WorkerGone

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from funcmcp_host.workers.worker import FunctionInfo, Invocation, SingleWorker

_log = logging.getLogger("funcmcp.host")

_EXIT_SECONDS = 0.2
"""How long the next start waits for the exit code of a process whose connection has ended."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When a worker is started again, and when it counts as hanging.

    Attributes:
        first_delay: Seconds before the second start in a row; each further one waits twice as long.
        longest_delay: The most seconds between two starts.
        stable_seconds: The lifetime of a process after which the next start is immediate again.
        wait_seconds: Seconds that a call waits for a worker.
        ping_seconds: Seconds in which a process has to answer after a call that took too long.
        drain_seconds: Seconds in which the calls of a replaced process may finish.
    """

    first_delay: float = 0.1
    longest_delay: float = 30.0
    stable_seconds: float = 60.0
    wait_seconds: float = 30.0
    ping_seconds: float = 5.0
    drain_seconds: float = 60.0


class Supervised:
    """A worker that is started again when it ends.

    Args:
        make: Makes the worker of a process that is not started yet.
        policy: When it is started again.
        on_start: Called when a process has loaded the app.
    """

    def __init__(
        self,
        make: Callable[[], SingleWorker],
        policy: RestartPolicy | None = None,
        on_start: Callable[[Sequence[FunctionInfo]], None] = lambda _: None,
    ) -> None:
        self._make = make
        self._on_start = on_start
        self._policy = policy or RestartPolicy()
        self._worker: SingleWorker | None = None
        self._available = asyncio.Event()
        self._away_since: float | None = None
        self._watch: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._checks: dict[SingleWorker, asyncio.Task[None]] = {}
        self._running: set[SingleWorker] = set()
        self.functions: Sequence[FunctionInfo] = ()
        self.description = ""
        """What runs the functions, for people."""

    @property
    def http_url(self) -> str | None:
        """Where the worker serves HTTP itself."""
        return None if self._worker is None else self._worker.http_url

    @property
    def pid(self) -> int | None:
        """The process; None while there is none."""
        return None if self._worker is None else self._worker.pid

    @property
    def away_seconds(self) -> float:
        """How long there has been no process."""
        return 0.0 if self._away_since is None else time.monotonic() - self._away_since

    async def start(self) -> None:
        """Start the first process; raise LoadFailed."""
        worker = await self._start_worker()
        self._use(worker)

    async def available(self) -> SingleWorker:
        """Return the worker that runs now, or the next one; raise WorkerGone."""
        return self._worker or await self._wait_for_worker()

    async def invoke(self, invocation: Invocation, seconds: float | None) -> Outcome:
        """Call a function; see `LanguageWorker`."""
        loop = asyncio.get_running_loop()
        limit = math.inf if seconds is None else seconds
        deadline = loop.time() + limit
        was_blocked = False
        while True:
            worker = self._worker
            if worker is None:
                worker = await self._wait_for_worker()
                deadline = loop.time() + limit  # the time of a call does not run out while there is no process
            if worker in self._checks:  # it may hang
                await self._end_if_blocked(worker)
                deadline = loop.time() + limit
                continue
            if was_blocked:  # the process before took the time of the call, which has not begun
                deadline, was_blocked = loop.time() + limit, False
            remaining = None if seconds is None else max(0.0, deadline - loop.time())
            try:
                return await worker.invoke(invocation, remaining, partial(self._end_if_blocked, worker))
            except WorkerGone as gone:
                if gone.begun:
                    raise
                was_blocked = loop.time() >= deadline
                if worker is self._worker:  # its end has not been seen yet
                    await asyncio.sleep(0)
                    self._lose(worker)
            except TimeoutError:
                self._check(worker)
                raise

    async def replace(self) -> None:
        """Start another process beside the present one, and use it from now on.

        Raises:
            LoadFailed: The process can't load the app, or a function of it that the present one has loaded. The present
                one goes on.
        """
        worker = await self._start_worker()
        failures = _new_failures(self.functions, worker.functions)
        if failures:
            await self._end(worker)
            raise LoadFailed(" ".join(failures))
        previous = self._worker
        self._use(worker)
        if previous is not None:
            self._spawn(self._drain(previous))

    async def aclose(self) -> None:
        """End all processes."""
        tasks = [*self._tasks]
        if self._watch is not None:
            tasks.append(self._watch)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._worker = None
        await asyncio.gather(*(self._end(worker) for worker in tuple(self._running)))

    async def _start_worker(self) -> SingleWorker:
        """Start another process; raise LoadFailed. `aclose` ends it if the start is cancelled."""
        worker = self._make()
        self._running.add(worker)
        try:
            await worker.start()
        except LoadFailed:
            self._running.discard(worker)
            raise
        return worker

    async def _end(self, worker: SingleWorker) -> None:
        """End a process; one that is not through with it when it is cancelled is ended by `aclose`."""
        await worker.aclose()
        self._running.discard(worker)

    def _use(self, worker: SingleWorker) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._take(worker)
        self._watch = asyncio.create_task(self._keep_running(worker))

    def _take(self, worker: SingleWorker) -> None:
        self._worker = worker
        self._away_since = None
        self.functions, self.description = worker.functions, worker.description
        self._on_start(worker.functions)
        self._available.set()

    def _lose(self, worker: SingleWorker) -> None:
        if self._worker is worker:
            self._worker = None
            self._away_since = time.monotonic()
            self._available.clear()

    async def _wait_for_worker(self) -> SingleWorker:
        try:
            async with asyncio.timeout(self._policy.wait_seconds):
                while self._worker is None:
                    await self._available.wait()
        except TimeoutError:
            raise WorkerGone(begun=False) from None
        return self._worker

    async def _keep_running(self, worker: SingleWorker) -> None:
        """Start the next process whenever one ends."""
        failures = 0
        while True:
            started = time.monotonic()
            await asyncio.shield(worker.ended)
            self._lose(worker)
            await asyncio.wait({self._spawn(self._end(worker))}, timeout=_EXIT_SECONDS)
            if time.monotonic() - started >= self._policy.stable_seconds:
                failures = 0
            _log.error("The function app stopped (exit code %s). It is started again.", worker.exit_code)
            worker, failures = await self._start_next(failures)
            self._take(worker)

    async def _start_next(self, failures: int) -> tuple[SingleWorker, int]:
        """Return a started worker, and the number of starts in a row."""
        reason = ""
        while True:
            if failures:
                delay = self._policy.first_delay * 2.0 ** min(failures - 1, 30)
                await asyncio.sleep(min(delay, self._policy.longest_delay))
            failures += 1
            try:
                return await self._start_worker(), failures
            except LoadFailed as error:
                if str(error) != reason:
                    reason = str(error)
                    _log.error("The function app can't be loaded. %s", reason)

    def _check(self, worker: SingleWorker) -> asyncio.Task[None]:
        """Return the task that ends a process if it does not answer; there is one at a time for each process."""
        check = self._checks.get(worker)
        if check is None:
            check = self._checks[worker] = self._spawn(self._end_if_hanging(worker))
            check.add_done_callback(lambda _: self._checks.pop(worker))
        return check

    async def _end_if_blocked(self, worker: SingleWorker) -> None:
        """Wait until a process has answered or is ended."""
        await asyncio.wait({self._check(worker)})

    async def _end_if_hanging(self, worker: SingleWorker) -> None:
        if not await worker.ping(self._policy.ping_seconds) and not worker.ended.done():
            _log.error("The function app does not answer. It is ended.")
            await self._end(worker)

    async def _drain(self, worker: SingleWorker) -> None:
        """Wait until the calls of a process have finished, then end it."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._policy.drain_seconds):
                    await worker.idle()
        finally:
            await self._end(worker)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _new_failures(before: Sequence[FunctionInfo], after: Sequence[FunctionInfo]) -> list[str]:
    """Return why functions that were loaded before can't be loaded any more."""
    loaded = {function.name for function in before if function.error is None}
    return [
        f"{function.name}: {function.error}"
        for function in after
        if function.error is not None and function.name in loaded
    ]


class WorkerPool:
    """Several workers with the same app. Each call goes to the next one that runs.

    Args:
        workers: The workers; the first one says which functions there are.
    """

    def __init__(self, workers: Sequence[Supervised]) -> None:
        self._workers = workers
        self._next = itertools.cycle(workers)

    @property
    def functions(self) -> Sequence[FunctionInfo]:
        """The app's functions."""
        return self._workers[0].functions

    @property
    def description(self) -> str:
        """What runs the functions, for people."""
        return self._workers[0].description

    @property
    def http_url(self) -> str | None:
        """Where the first worker serves HTTP itself."""
        return self._workers[0].http_url

    @property
    def away_seconds(self) -> float:
        """How long there has been no process at all."""
        return min(worker.away_seconds for worker in self._workers)

    async def start(self) -> None:
        """Start all workers; raise LoadFailed."""
        try:
            for worker in self._workers:
                await worker.start()
        except BaseException:
            await self.aclose()
            raise

    async def available(self) -> SingleWorker:
        """Return a process that runs, or the next one; raise WorkerGone."""
        return await self._next_worker().available()

    async def invoke(self, invocation: Invocation, seconds: float | None) -> Outcome:
        """Call a function; see `LanguageWorker`."""
        return await self._next_worker().invoke(invocation, seconds)

    def _next_worker(self) -> Supervised:
        """Return the next worker in turn that runs; the next one of all if none runs."""
        for _ in self._workers:
            worker = next(self._next)
            if worker.pid is not None:
                break
        return worker

    async def replace(self) -> None:
        """Replace all workers, one after the other; raise LoadFailed, with the rest of them as they were."""
        for worker in self._workers:
            await worker.replace()

    async def aclose(self) -> None:
        """End all processes."""
        await asyncio.gather(*(worker.aclose() for worker in self._workers))

"""Tasks at three workers on a real server. Workers and the server are killed and suspended all the time.

The process that creates the tasks runs two of them at once itself, and lives on.

``make soak-tasks`` creates SOAK_TASKS (200) tasks in a store of the kind SOAK_STORE (``redis`` or ``postgres``). It
prints a summary and exits with 1 if something went wrong.

How it works: half of the tasks may run again, the others may not. Each run writes a line to a file when it begins and
when it ends. When all tasks have ended and the faults are over, each task must have ended exactly once, with the same
state at every poll: a task that may not run again has begun at most once, and has failed in words if its run was
interrupted; a task that may run again is completed, unless it was interrupted as often as it may be started. A run
that was killed while the server was there must begin again within the lease and five seconds.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import time
from typing import Any

from funcmcp._server.log import logger
from funcmcp._serving import serving_of
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.record import TaskKey
from tests.cluster.task_worker import LEASE, Ledger, make_server
from tests.postgres_server import PostgresServer, postgres_server
from tests.redis_server import RedisServer, redis_server
from tests.server.task_parts import create, get
from tests.serving import REPOSITORY

SERVERS: dict[str, Any] = {"redis": redis_server, "postgres": postgres_server}
FAULTS_OF_WORKERS = ["kill", "kill", "suspend", "suspend", "restart"]
WORKERS = 3
CLIENTS = 8
ATTEMPTS = 3
RUN_SECONDS = 0.5
PATIENCE = 60.0
STOPPED = "The server was stopped while the tool ran. Part of its work may be done."
ENDED = ("completed", "failed", "cancelled")


@dataclass
class Trial:
    """What happens, and what went wrong.

    Attributes:
        backend: The Redis or the PostgreSQL of all.
        ledger: The runs.
        remaining: Tasks that have not been created yet.
        tools: The tool of each task whose creation the client knows of.
        ended: The state in which each task ended.
        unknown: Creations whose outcome the client does not know, because the server was away.
        faults: How often each fault happened.
        away: When the server was away: begin and end.
        suspended: When a worker was suspended: begin and end.
        violations: In words.
    """

    backend: RedisServer | PostgresServer
    ledger: Ledger
    remaining: int
    tools: dict[str, str] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    unknown: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    away: list[tuple[float, float]] = field(default_factory=list)
    suspended: list[tuple[float, float]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


class Worker:
    """A process that runs tasks, and is started again when it was killed."""

    def __init__(self, trial: Trial) -> None:
        self._arguments = [trial.backend.url, str(trial.ledger.path), "work"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it takes a moment until it works."""
        command = [sys.executable, "-m", "tests.cluster.task_worker", *self._arguments]
        with Path(os.devnull).open("wb") as nowhere:
            self._process = subprocess.Popen(command, cwd=REPOSITORY, stdout=nowhere, stderr=nowhere)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; wait for its end if it is the last one."""
        assert self._process is not None
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self._process.wait()

    def stop(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self.send(signal.SIGKILL)


async def play(trial: Trial, server: Any) -> None:
    """Create tasks, one after the other, and poll each until it has ended."""
    while trial.remaining:
        trial.remaining -= 1
        name = random.choice(["again", "once"])
        try:
            task_id = await create(server, name, {"seconds": RUN_SECONDS})
        except StoreUnavailableError:
            trial.unknown += 1
            await asyncio.sleep(0.2)
            continue
        trial.tools[task_id] = name
        await follow(trial, server, task_id)


async def follow(trial: Trial, server: Any, task_id: str) -> None:
    """Poll a task until it has ended."""
    end = time() + PATIENCE
    while time() < end:
        try:
            task = await get(server, task_id)
        except StoreUnavailableError:
            task = {"status": "unknown"}
        except KeyError:
            trial.violations.append(f"A task of {trial.tools[task_id]} was lost.")
            return
        if task["status"] in ENDED:
            trial.ended[task_id] = task
            return
        await asyncio.sleep(0.1)
    trial.violations.append(f"A task of {trial.tools[task_id]} did not end.")


async def disturb(trial: Trial, workers: list[Worker]) -> None:
    """Let one thing fail after the other."""
    while True:
        await asyncio.sleep(random.uniform(0.3, 1.5))
        worker = random.choice(workers)
        fault = random.choice([*FAULTS_OF_WORKERS, "kill the server", "suspend the server"])
        trial.faults[fault] += 1
        begin = time()
        match fault:
            case "kill":
                worker.send(signal.SIGKILL)
                worker.start()
            case "restart":
                worker.send(signal.SIGTERM)
                await asyncio.sleep(RUN_SECONDS * 3)
                worker.stop()
                worker.start()
            case "suspend":
                worker.send(signal.SIGSTOP)
                await asyncio.sleep(random.uniform(0.1, 3 * LEASE))
                worker.send(signal.SIGCONT)
                trial.suspended.append((begin, time()))
            case "kill the server":
                trial.backend.kill()
                try:
                    await asyncio.sleep(random.uniform(0.1, 2 * LEASE))
                finally:
                    trial.backend.start()
                trial.away.append((begin, time() + 1))
            case _:
                trial.backend.pause()
                try:
                    await asyncio.sleep(random.uniform(0.1, 2 * LEASE))
                finally:
                    trial.backend.resume()
                trial.away.append((begin, time() + 1))


async def check(trial: Trial, server: Any) -> None:
    """Compare the tasks that have ended with the file of their runs."""
    runs = trial.ledger.runs()
    violations = trial.violations
    for task_id, task in trial.ended.items():
        name = trial.tools[task_id]
        if await get(server, task_id) != task:
            violations.append(f"A task of {name} has changed after its end.")
        message = task.get("error", {}).get("message")
        if name == "once" and runs[task_id] > 1:
            violations.append(f"A task of once ran {runs[task_id]} times.")
        if task["status"] == "completed" and not runs[task_id]:
            violations.append(f"A task of {name} is completed without a run.")
        if task["status"] != "completed" and message != STOPPED:
            violations.append(f"A task of {name} ended as {task['status']}: {message}")
        if name == "again" and runs[task_id] > ATTEMPTS:
            violations.append(f"A task of again ran {runs[task_id]} times.")
        record = await server.tasks.store.read(TaskKey(None, task_id))
        if name == "again" and message == STOPPED and record.starts != ATTEMPTS:
            violations.append(f"A task of again failed after {record.starts} starts.")


def check_delays(trial: Trial) -> None:
    """Compare the times at which a task began again with the lease."""
    steps = trial.ledger.steps()
    for task_id, name in trial.tools.items():
        begins = [step.time for step in steps if step.task_id == task_id and step.kind == "begin"]
        for first, second in pairwise(begins):
            disturbed = any(begin < second and end > first for begin, end in trial.away + trial.suspended)
            if second - first > RUN_SECONDS + LEASE + 5 and not disturbed:
                trial.violations.append(f"A task of {name} began again after {second - first:.1f} s.")


async def run(tasks: int, store: str) -> Trial:
    """Run the trial, and print a summary of it."""
    logger.disabled = True  # the server fails all the time
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        backend: RedisServer | PostgresServer = stack.enter_context(SERVERS[store]())
        trial = Trial(backend, Ledger(folder / "runs"), tasks)
        workers = [Worker(trial) for _ in range(WORKERS)]
        for worker in workers:
            stack.callback(worker.stop)
            worker.start()
        client = make_server(backend.url, trial.ledger.path, concurrency=2)
        async with client.lifespan():
            server = serving_of(client).server
            begin = time()
            disturbing = asyncio.create_task(disturb(trial, workers))
            playing = [asyncio.create_task(play(trial, server)) for _ in range(CLIENTS)]
            await asyncio.gather(*playing)
            disturbing.cancel()
            with suppress(asyncio.CancelledError):
                await disturbing
            await asyncio.sleep(LEASE)
            await check(trial, server)
            check_delays(trial)
        print_summary(trial, time() - begin)
    logger.disabled = False
    return trial


def print_summary(trial: Trial, seconds: float) -> None:
    """Print what was done and what went wrong."""
    statuses = Counter((trial.tools[task_id], task["status"]) for task_id, task in trial.ended.items())
    repeated = sum(count - 1 for count in trial.ledger.runs().values())
    lines = [
        f"time:       {seconds:.0f} s, {WORKERS} workers, {CLIENTS} clients, lease {LEASE} s",
        "tasks:      " + ", ".join(f"{name} {status} {count}" for (name, status), count in sorted(statuses.items())),
        f"runs:       {trial.ledger.runs().total()}, of which {repeated} again",
        f"refused:    {trial.unknown} calls while the server was away",
        "faults:     " + ", ".join(f"{kind} {count}" for kind, count in sorted(trial.faults.items())),
        f"violations: {len(trial.violations)}",
        *trial.violations[:20],
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    environment = os.environ
    played = asyncio.run(run(int(environment.get("SOAK_TASKS", "200")), environment.get("SOAK_STORE", "redis")))
    sys.exit(1 if played.violations else 0)

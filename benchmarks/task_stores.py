"""Measure the stores of tasks by themselves: operations in a second, and how they change with the number of tasks.

Each store is measured with 100 tasks, all of which have ended, and with 100,000, of which 10,000 wait for a worker. The
times are medians of single operations; the rates are medians of several rounds of 16 concurrent callers, and so is the
CPU time of this process for an operation, which depends little on other programs. The servers of Redis and PostgreSQL
are those of the tests: Redis writes each change to the disk (``appendfsync always``), or not (``--no-disk``), and
PostgreSQL does not wait for the disk. Azurite keeps everything in memory, and has 100 tasks only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from redis import Redis  # noqa: E402 - as below

from funcmcp.tasks import (  # noqa: E402 - the tests' servers are imported from this checkout
    AzureTasks,
    BaseTasks,
    MemoryTasks,
    NewTask,
    Outcome,
    PostgresTasks,
    RedisTasks,
    SQLiteTasks,
    TaskKey,
    TaskLimits,
)
from tests.azurite import Azurite  # noqa: E402
from tests.postgres_server import postgres_server  # noqa: E402
from tests.redis_server import redis_server  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

RESULTS = HERE / "results" / "task_stores.md"
KINDS = ("memory", "sqlite", "redis", "postgres", "azure")
SIZES = ((100, 0), (90_000, 10_000))
"""Tasks that have ended, and tasks that wait."""

TASKS_OF_AN_OWNER = 100
CALLERS = 16
OPERATIONS = 400
ROUNDS = 5
IDLE_SECONDS = 5.0
CALL = b'{"name":"add","arguments":{"a":1,"b":2}}'
RESULT = Outcome(b'{"content":[{"type":"text","text":"3"}]}')
LIMITS = TaskLimits(total=1_000_000, per_principal=10_000, live_per_principal=10_000, total_bytes=4 << 30)


class Figures(NamedTuple):
    """What was measured of one store with so many tasks; times in milliseconds."""

    create: float
    read: float
    page: float
    claim_and_finish: float
    rate: float
    cpu: float
    idle: float


def main() -> None:
    """Run the measurements and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=KINDS, action="append", help="measure this store only; may be repeated")
    parser.add_argument("--no-disk", action="store_true", help="let Redis write nothing to the disk")
    options = parser.parse_args()
    lines = [
        "| tasks in | kept | waiting | create | read | list | claim and finish | 16 callers | CPU of one | idle CPU |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in options.only or KINDS:
        with ExitStack() as stack:
            store = opened(kind, stack, disk=not options.no_disk)
            for kept, waiting, figures in asyncio.run(measured(store, SIZES[:1] if kind == "azure" else SIZES)):
                times = " | ".join(f"{value:.2f} ms" for value in figures[:4])
                rate = f"{figures.rate:,.0f}/s | {figures.cpu:.2f} ms | {figures.idle:.2%}"
                row = f"| {kind} | {kept:,} | {waiting:,} | {times} | {rate} |"
                print(row, flush=True)
                lines.append(row)
    if options.only is None:
        RESULTS.write_text("# Stores of tasks\n\n" + "\n".join(lines) + "\n")


def opened(kind: str, stack: ExitStack, *, disk: bool) -> BaseTasks:
    """Return an empty store."""
    if kind == "memory":
        return MemoryTasks(limits=LIMITS)
    if kind == "sqlite":
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=HERE.parent))
        return SQLiteTasks(Path(folder) / "tasks.db", limits=LIMITS)
    if kind == "redis":
        url = stack.enter_context(redis_server()).url
        if not disk:
            with Redis.from_url(url) as redis:
                redis.config_set("appendonly", "no")
        return RedisTasks(url, limits=LIMITS)
    if kind == "azure":
        azurite = Azurite()
        azurite.start()
        stack.callback(azurite.aclose)
        os.environ["STORAGE"] = azurite.connection_string
        return AzureTasks("STORAGE", limits=LIMITS)
    return PostgresTasks(stack.enter_context(postgres_server()).url, limits=LIMITS)


async def measured(store: BaseTasks, sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int, Figures]]:
    """Return the figures of a store for each size."""
    store.bind("bench")
    rows = []
    done = 0
    for kept, waiting in sizes:
        await fill(store, kept - done, waiting)
        done = kept
        rows.append((kept, waiting, await figures_of(store, waiting, kept // TASKS_OF_AN_OWNER)))
    await store.aclose()
    return rows


async def fill(store: BaseTasks, kept: int, waiting: int) -> None:
    """Create tasks of many owners; those that are kept have ended."""
    await at_once([partial(store.create, new_task(number // TASKS_OF_AN_OWNER)) for number in range(kept)])
    await end_all(store, kept)
    await at_once([partial(store.create, new_task(number // TASKS_OF_AN_OWNER)) for number in range(waiting)])


async def end_all(store: BaseTasks, number: int) -> None:
    """Claim and finish so many tasks."""
    while number > 0:
        claims = await store.claim(min(CALLERS, number))
        await asyncio.gather(*(store.finish(claim, RESULT) for claim in claims))
        number -= len(claims)


async def figures_of(store: BaseTasks, waiting: int, owners: int) -> Figures:
    """Measure a store in which so many tasks wait, and tasks have so many owners."""
    keys: list[TaskKey] = []

    async def create() -> None:
        task = new_task(len(keys) % owners)
        keys.append(task.key)
        await store.create(task)

    async def claim_and_finish() -> None:
        await end_all(store, 1)

    async def read() -> None:
        await store.read(keys[0])

    async def page() -> None:
        await store.page(mark_of(owners // 2), None, 50)

    create_time, read_time = await time_of(create), await time_of(read)
    page_time, run_time = await time_of(page), await time_of(claim_and_finish)
    rounds: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        await at_once([create] * OPERATIONS)
        await end_all(store, OPERATIONS)
        count = OPERATIONS * 3
        rounds.append((count / (time.perf_counter() - began), (time.process_time() - cpu) / count * 1000))
    rate, cpu_time = (median(column) for column in zip(*rounds, strict=True))
    idle = await idle_cpu(store) if not waiting else await idle_cpu_behind(store, waiting)
    return Figures(create_time, read_time, page_time, run_time, rate, cpu_time, idle)


async def idle_cpu(store: BaseTasks) -> float:
    """Return the share of a core that a worker uses that has nothing to do."""
    began, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() < began + IDLE_SECONDS:
        claims = await store.claim(10)
        if claims:
            raise RuntimeError("A task is due.")
    return (time.process_time() - cpu) / (time.perf_counter() - began)


async def idle_cpu_behind(store: BaseTasks, waiting: int) -> float:
    """Do the same after the tasks that wait have ended."""
    await end_all(store, waiting)
    return await idle_cpu(store)


async def time_of(operation: Callable[[], Awaitable[None]]) -> float:
    """Return the median of the milliseconds that an operation takes."""
    times = []
    for _ in range(OPERATIONS):
        began = time.perf_counter()
        await operation()
        times.append(time.perf_counter() - began)
    return median(times) * 1000


async def at_once(operations: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Do many things, a few at a time."""
    waiting = iter(operations)

    async def work() -> None:
        for operation in waiting:
            await operation()

    await asyncio.gather(*(work() for _ in range(CALLERS)))


def mark_of(owner: int) -> str:
    """Return the mark of an owner."""
    return f"{owner:032x}"


def new_task(owner: int) -> NewTask:
    """Return a task of an owner."""
    return NewTask(TaskKey(mark_of(owner), secrets.token_urlsafe(33)), "add", CALL)


if __name__ == "__main__":
    main()

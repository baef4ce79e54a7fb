"""Measure tasks of funcmcp and of FastMCP's tasks extra, in memory and on Redis, in one run with alternating rounds.

Requires Linux with two cores and taskset; scripts/setup-redis.sh sets up Redis.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from peers import run_with_peers
from targets import HERE, LOAD_CORE, RUN, SERVER_CORE, SERVERS, Target, environment, free_port, rotated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

PEERS = (RUN, "fastmcp")
KINDS = ("memory", "redis")
RESULTS = HERE / "results" / "tasks.md"

CLIENTS = 16
BURST = 480
POLL = 0.02
FAST_POLL = 0.002
IDLE_SECONDS = 10.0


class Row(NamedTuple):
    """One row of the table.

    Attributes:
        measure: What was measured.
        kind: Where the tasks are.
        funcmcp: funcmcp's median.
        fastmcp: FastMCP's median.
        goal: In words.
    """

    measure: str
    kind: str
    funcmcp: str
    fastmcp: str
    goal: str


def make_row(measure: str, kind: str, texts: Sequence[str], goal: str) -> Row:
    """Return a row; the texts are those of `PEERS`."""
    return Row(measure, kind, texts[0], texts[1], goal)


class Store(NamedTuple):
    """Where the tasks of two running servers are.

    Attributes:
        kind: One of `KINDS`.
        targets: The servers.
    """

    kind: str
    targets: dict[str, Target]

    def alternate(self, rounds: int, measure: Callable[[Target], T]) -> dict[str, list[T]]:
        """Return what was measured of each server; the first round only warms up."""
        measured: dict[str, list[T]] = {name: [] for name in self.targets}
        for turn in range(rounds + 1):
            for name in rotated(tuple(self.targets), turn):
                value = measure(self.targets[name])
                if turn:
                    measured[name].append(value)
        return measured


def main() -> None:
    """Run the measurements and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a round for one server")
    parser.add_argument("--only", choices=KINDS, action="append", help="measure this store only; may be repeated")
    parser.add_argument("--quick", action="store_true", help="measure rates and delays of short tasks only")
    options = parser.parse_args()
    run_with_peers(Path(__file__), "requirements-fastmcp-tasks.txt")
    os.sched_setaffinity(0, {LOAD_CORE})
    rows: list[Row] = []
    for kind in options.only or KINDS:
        rows += measure(kind, options.rounds, options.seconds, quick=options.quick)
    if not options.quick:
        rows.append(imports(options.rounds))
    lines = ["| measure | tasks in | funcmcp | FastMCP | goal |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    table = "\n".join(lines) + "\n"
    print(table)
    if not options.quick and options.only is None:
        RESULTS.write_text(f"# Tasks\n\n{versions()}\n\n{table}")


def measure(kind: str, rounds: int, seconds: float, *, quick: bool) -> list[Row]:
    """Return the rows of one store."""
    with ExitStack() as stack:
        redis_port = stack.enter_context(redis()) if kind == "redis" else None
        targets = {name: start(name, kind, redis_port, database) for database, name in enumerate(PEERS)}
        for target in targets.values():
            stack.callback(target.stop)
            target.wait()
        store = Store(kind, targets)
        rows = [*rates(store, rounds, seconds), *bursts(store, rounds), creation(store, rounds), delay(store, rounds)]
        if quick:
            return rows
        rows += [obedient(store, 0.3, rounds), obedient(store, 5.0, 1), notification(store, rounds)]
        rows += [idle(store), size(store, redis_port)]
        return rows


def start(name: str, kind: str, redis_port: int | None, database: int) -> Target:
    """Start a server."""
    return Target(f"{name}_tasks", BENCH_TASKS=kind, BENCH_REDIS=f"redis://127.0.0.1:{redis_port}/{database}")


@contextmanager
def redis() -> Iterator[int]:
    """Run a Redis that writes nothing to the disk, on the core of the load generator; yield its port."""
    program = HERE.parent / ".servers" / "bin" / "redis-server"
    executable = str(program) if program.exists() else shutil.which("redis-server")
    if executable is None:
        sys.exit("redis-server is missing: run scripts/setup-redis.sh.")
    port = free_port()
    command = ["taskset", "-c", str(LOAD_CORE), executable, "--port", str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen([*command, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL) as process:
        time.sleep(0.5)
        yield port
        process.terminate()


def rates(store: Store, rounds: int, seconds: float) -> list[Row]:
    """Measure tasks a second and the CPU time of one: 16 clients create a task and poll it to its end, over and over.

    Other programs on the machine lower the rate, but hardly the CPU time.
    """
    from task_client import TaskClient

    async def play(port: int, end: float) -> int:
        async with TaskClient(port) as client:
            for done in count():
                if time.perf_counter() >= end:
                    return done
                await client.end_of(await client.create("now"), POLL)
        raise AssertionError

    async def load(target: Target) -> tuple[float, float]:
        begin, cpu = time.perf_counter(), target.cpu()
        done = sum(await asyncio.gather(*(play(target.port, begin + seconds) for _ in range(CLIENTS))))
        return done / (time.perf_counter() - begin), (target.cpu() - cpu) / done

    goal = ">= 10 x FastMCP" if store.kind == "memory" else ">= 4 x FastMCP"
    return rate_rows(
        "tasks, 16 clients", store, store.alternate(rounds, lambda target: asyncio.run(load(target))), goal
    )


def bursts(store: Store, rounds: int) -> list[Row]:
    """Measure the same for tasks that 16 clients create at once, and then poll to their ends."""
    from task_client import TaskClient

    async def play(port: int) -> None:
        async with TaskClient(port) as client:
            tasks = [await client.create("now") for _ in range(BURST // CLIENTS)]
            for task in tasks:
                await client.end_of(task, POLL)

    async def load(target: Target) -> tuple[float, float]:
        begin, cpu = time.perf_counter(), target.cpu()
        await asyncio.gather(*(play(target.port) for _ in range(CLIENTS)))
        return BURST / (time.perf_counter() - begin), (target.cpu() - cpu) / BURST

    measured = store.alternate(rounds, lambda target: asyncio.run(load(target)))
    return rate_rows(f"tasks, {BURST} at once", store, measured, "none")


def rate_rows(measure: str, store: Store, measured: dict[str, list[tuple[float, float]]], goal: str) -> list[Row]:
    """Return the rows of rates and CPU times."""
    pairs = list(zip(measured[RUN], measured["fastmcp"], strict=True))
    medians = {name: [median(column) for column in zip(*values, strict=True)] for name, values in measured.items()}
    times = median(ours[0] / theirs[0] for ours, theirs in pairs)
    share = median(theirs[1] / ours[1] for ours, theirs in pairs)
    ours, theirs = medians[RUN], medians["fastmcp"]
    texts = f"{ours[0]:.0f}/s, {times:.1f} x FastMCP", f"{theirs[0]:.0f}/s"
    cpu_texts = f"{ours[1] * 1000:.2f} ms, 1/{share:.1f} of FastMCP's", f"{theirs[1] * 1000:.2f} ms"
    return [
        make_row(measure, store.kind, texts, goal),
        make_row(f"CPU time of the server for one of these ({measure})", store.kind, cpu_texts, "<= 1/10 of FastMCP's"),
    ]


def creation(store: Store, rounds: int) -> Row:
    """Measure the time of the call that creates a task, with one client."""
    from task_client import TaskClient

    async def create(target: Target) -> float:
        times = []
        async with TaskClient(target.port) as client:
            for _ in range(50):
                begin = time.perf_counter()
                task = await client.create("now")
                times.append(time.perf_counter() - begin)
                await client.end_of(task, POLL)
        return median(times)

    measured = store.alternate(rounds, lambda target: asyncio.run(create(target)))
    goal = "<= 1 ms" if store.kind == "memory" else "<= 2 ms"
    return make_row("create, p50, one client", store.kind, milliseconds(measured), goal)


def delay(store: Store, rounds: int) -> Row:
    """Measure the time from the end of a tool to its client, which polls every 2 ms.

    The time in which the client waits for its next request does not count: it is half the interval on average with any
    server.
    """
    measured = store.alternate(rounds, lambda target: asyncio.run(fast_delays(target)))
    goal = "<= 1 ms" if store.kind == "memory" else "<= 2 ms"
    return make_row(
        "end to client beyond its own pause, p50, polling every 2 ms", store.kind, milliseconds(measured), goal
    )


async def fast_delays(target: Target) -> float:
    """Return the median of the times from the end of a tool to its client, without the pauses of the client."""
    from task_client import TaskClient, end_time

    times = []
    async with TaskClient(target.port) as client:
        for _ in range(20):
            end = end_time(await client.end_of(await client.create("wait", seconds=0.05), FAST_POLL))
            times.append(time.time() - end - client.paused_since(end))
    return median(times)


def obedient(store: Store, seconds: float, rounds: int) -> Row:
    """Measure the time from the end of a tool to its client, which polls as the server asks."""
    measured = store.alternate(rounds, lambda target: asyncio.run(delays(target, seconds, 3)))
    texts = [f"{median(values):.2f} s" for values in measured.values()]
    goal = "<= 0.25 s" if seconds < 1 else "<= 10 % of its age"
    return make_row(f"end to client, at the server's interval, task of {seconds:g} s", store.kind, texts, goal)


async def delays(target: Target, seconds: float, number: int) -> float:
    """Return the median of the times from the end of a tool to its client, which polls as the server asks."""
    from task_client import TaskClient, seconds_since_end

    async def one() -> float:
        async with TaskClient(target.port) as client:
            return seconds_since_end(await client.end_of(await client.create("wait", seconds=seconds)))

    return median(await asyncio.gather(*(one() for _ in range(number))))


def notification(store: Store, rounds: int) -> Row:
    """Measure the time from the end of a tool to the client that listens."""
    from task_client import TaskClient, seconds_since_end

    async def one(port: int) -> float:
        async with TaskClient(port) as client, TaskClient(port) as listener:
            task = await client.create("wait", seconds=0.2)
            await listener.listen(task["taskId"])
            arrived = await listener.arrival()
            arrived_ago = time.time() - arrived
            return seconds_since_end(await client.get(task["taskId"])) - arrived_ago

    async def several(target: Target) -> list[float]:
        return [await one(target.port) for _ in range(10 * rounds)]

    times = asyncio.run(several(store.targets[RUN]))
    p95 = quantiles(times, n=20)[18]
    return Row("end to notifications/tasks, p95", store.kind, f"{p95 * 1000:.1f} ms", "none", "<= 50 ms")


def idle(store: Store) -> Row:
    """Measure the CPU time of servers that have nothing to do."""
    before = {name: target.cpu() for name, target in store.targets.items()}
    time.sleep(IDLE_SECONDS)
    shares = [(target.cpu() - before[name]) / IDLE_SECONDS for name, target in store.targets.items()]
    return make_row("idle CPU", store.kind, [f"{share:.2%}" for share in shares], "<= 0.5 %")


def size(store: Store, redis_port: int | None) -> Row:
    """Measure what a task takes that has ended."""
    texts = []
    for target in store.targets.values():
        first, second = (2000, 6000) if target.name.startswith("funcmcp") else (200, 600)
        asyncio.run(fill(target, first))
        before = used(target, redis_port)
        asyncio.run(fill(target, second))
        texts.append(f"{(used(target, redis_port) - before) / second:.0f} bytes")
    return make_row("a kept task", store.kind, texts, "<= 4 KB" if redis_port is None else "<= 2 KB")


async def fill(target: Target, number: int) -> None:
    """Create tasks that end."""
    from task_client import TaskClient

    async def several(share: int) -> None:
        async with TaskClient(target.port) as client:
            for _ in range(share):
                await client.end_of(await client.create("now"), POLL)

    await asyncio.gather(*(several(number // CLIENTS) for _ in range(CLIENTS)))


def used(target: Target, redis_port: int | None) -> int:
    """Return the bytes that a server or Redis uses."""
    if redis_port is None:
        return target.memory() * 1024
    from redis import Redis

    with Redis(port=redis_port) as client:
        facts: Any = client.info("memory")
    return int(facts["used_memory"])


def imports(rounds: int) -> Row:
    """Measure the import of a server whose tools run as tasks, beyond that of the same server without tasks.

    It is CPU time, as other programs on the machine would add more to the elapsed time than tasks do.
    """
    texts = []
    for name in ("funcmcp", "fastmcp"):
        times: dict[str, list[float]] = {"none": [], "memory": []}
        for turn in range(rounds * 2 + 1):
            for kind in rotated(("none", "memory"), turn):
                took = import_time(f"{name}_tasks_server", kind)
                if turn:
                    times[kind].append(took)
        without, with_tasks = median(times["none"]), median(times["memory"])
        texts.append(f"{without * 1000:.0f} -> {with_tasks * 1000:.0f} ms")
    return make_row("CPU time of the import of a server with a task tool", "memory", texts, "<= + 5 ms")


def import_time(module: str, kind: str) -> float:
    """Return the CPU seconds of a process that imports a module."""
    command = ["taskset", "-c", str(SERVER_CORE), sys.executable, "-c", f"import {module}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=SERVERS, env=environment({"BENCH_TASKS": kind}), check=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def milliseconds(measured: dict[str, list[float]]) -> Sequence[str]:
    """Return the medians as texts."""
    return [f"{median(values) * 1000:.1f} ms" for values in measured.values()]


def versions() -> str:
    """Return the versions of what was measured."""
    import platform
    from importlib.metadata import version

    names = ("funcmcp-slim", "fastmcp", "fastmcp-tasks", "pydocket", "redis")
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}."


if __name__ == "__main__":
    main()

"""A process that runs tasks, and a server whose runs write a line to a file when they begin and end.

Arguments: the URL of a Redis or a PostgreSQL, the file, and what to do: ``work`` until SIGTERM, with a short lease or
``work-with-usual-lease``, or ``create`` a task and die before its answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp import Context, MCPServer
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._serving.composition import runtime_of
from funcmcp.tasks import PostgresTasks, RedisTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from funcmcp._server.dispatch import Server
    from funcmcp.tasks import TaskStore

LEASE = 1.0
USUAL_LEASE = 15.0
"""That of RedisTasks."""

TIMEOUT = 3.0
"""Seconds for one step at the store: the machine that runs the tests may be busy."""

NAME = "faults"


class Step(NamedTuple):
    """A line of the file.

    Attributes:
        kind: ``begin`` or ``end``.
        task_id: Of the task.
        process: The id of the process.
        time: Seconds since 1970.
        call: The number of the call, if the caller gave it one.
    """

    kind: str
    task_id: str
    process: int
    time: float
    call: int


class Ledger:
    """The file.

    Args:
        path: Of the file, which is created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def write(self, kind: str, task_id: str, call: int = 0) -> None:
        """Add a line; lines of several processes do not mix."""
        with self.path.open("ab", buffering=0) as file:
            file.write(f"{kind} {task_id} {os.getpid()} {time()} {call}\n".encode())

    def steps(self) -> list[Step]:
        """Return all lines."""
        lines = [line.split() for line in self.path.read_text(encoding="utf-8").splitlines()]
        return [
            Step(kind, task_id, int(process), float(moment), int(call))
            for kind, task_id, process, moment, call in lines
        ]

    def runs(self, process: int | None = None) -> Counter[str]:
        """Return how often each task has begun to run, in all processes or in one."""
        return Counter(
            step.task_id for step in self.steps() if step.kind == "begin" and process in (None, step.process)
        )

    def running(self, process: int) -> set[str]:
        """Return the tasks that a process runs now."""
        running: set[str] = set()
        for step in self.steps():
            if step.process == process and step.kind == "begin":
                running.add(step.task_id)
            elif step.process == process:
                running.discard(step.task_id)
        return running


def store_at(url: str, *, concurrency: int, lease: float) -> TaskStore:
    """Return a store of the kind that the URL names."""
    if url.startswith("postgresql:"):
        return PostgresTasks(url, timeout=TIMEOUT, lease=lease, concurrency=concurrency)
    return RedisTasks(RedisLink(url, timeout=TIMEOUT), lease=lease, concurrency=concurrency)


def make_server(url: str, path: Path, *, concurrency: int, name: str = NAME, lease: float = LEASE) -> MCPServer:
    """Return a server with two tools that sleep, and return the id of their process."""
    mcp = MCPServer(name, tasks=store_at(url, concurrency=concurrency, lease=lease))
    ledger = Ledger(path)

    async def run(context: Context, seconds: float = 0.5) -> str:
        assert context.task_id is not None
        ledger.write("begin", context.task_id)
        await asyncio.sleep(seconds)
        ledger.write("end", context.task_id)
        return str(os.getpid())

    mcp.tool("again", task="optional", idempotent=True)(run)
    mcp.tool("once", task="optional")(run)
    return mcp


async def work(url: str, path: Path, *, lease: float) -> None:
    """Run tasks until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with make_server(url, path, concurrency=10, lease=lease).lifespan():
        print("ready", flush=True)
        await stopping.wait()


async def create_and_die(url: str, path: Path) -> None:
    """Create a task, and die when the store has it and the client has no answer."""
    from tests.server.task_parts import create

    server: Server = runtime_of(make_server(url, path, concurrency=0)).server
    assert server.tasks is not None
    store: Any = server.tasks.store
    create_in_store = store.create

    async def die_after(task: Any) -> None:
        await create_in_store(task)
        os.kill(os.getpid(), signal.SIGKILL)

    store.create = die_after
    await create(server, "once", {"seconds": 0.0})


if __name__ == "__main__":
    if sys.argv[3] == "create":
        main: Callable[[str, Path], Coroutine[Any, Any, None]] = create_and_die
    else:
        main = partial(work, lease=LEASE if sys.argv[3] == "work" else USUAL_LEASE)
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

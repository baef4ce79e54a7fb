"""``funcmcp worker``: runs the tasks of a server without serving it."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from funcmcp_cli.commands import Target, app, check_queues
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_note
from funcmcp_cli.server_options import WorkerOptions, set_variables, with_options

if TYPE_CHECKING:
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._serving.composition import ServerRuntime

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DEFAULT_CONCURRENCY = 10


@app.command()
@with_options
def worker(target: Target, *, options: WorkerOptions) -> None:
    """Run the tasks of TARGET without serving it, until Ctrl+C or SIGTERM. Running tasks are finished first.

    The server needs a store of tasks that other processes reach, such as RedisTasks. Tasks that do not end in time are
    returned for another worker if they may be started again; others fail. A second signal stops the worker at once.
    """
    from funcmcp._server.log_output import write_to_stderr
    from funcmcp._serving.composition import runtime_of
    from funcmcp._serving.environment import TASK_CONCURRENCY_VARIABLE
    from funcmcp_cli.log_options import LogOptions, configure_process
    from funcmcp_cli.targets import load

    set_variables(options)
    check_queues(options.queue)
    if os.environ.get(TASK_CONCURRENCY_VARIABLE) == "0":  # set for the processes that serve, which this is not
        del os.environ[TASK_CONCURRENCY_VARIABLE]
    runtime = runtime_of(load(target))
    tasks = _tasks_of(runtime)
    if options.concurrency is not None:
        tasks.set_concurrency(options.concurrency)
    elif not tasks.concurrency:
        tasks.set_concurrency(_DEFAULT_CONCURRENCY)
    configure_process(LogOptions(is_verbose=options.verbose))
    write_to_stderr()
    asyncio.run(_work(runtime))


def _tasks_of(runtime: ServerRuntime) -> Tasks:
    """Return the tasks of a server. Raise Failure if a worker cannot run them."""
    from funcmcp_cli.targets import open_tasks

    tasks, name = open_tasks(runtime), runtime.name
    if not tasks.has_tools:
        raise Failure(f'{name} has no tools with task=. Write @mcp.tool(task="optional").')
    if not tasks.store.shared:
        raise Failure(
            f"{name} stores tasks in the memory of each process, where a worker cannot reach them. Write "
            'MCPServer(..., tasks=RedisTasks(url)), or tasks=SQLiteTasks("tasks.db") on one machine.'
        )
    if not tasks.store.pulls:
        raise Failure(f"The platform starts the tasks of {name}. They need no worker.")
    return tasks


async def _work(runtime: ServerRuntime) -> None:
    """Run tasks until a signal."""
    from funcmcp._authoring.calling.lifespans import LifespanError
    from funcmcp._server.drain import HURRY_SIGNALS
    from funcmcp._server.log import log_failure
    from funcmcp._transports.exit_deadline import start_exit_deadline

    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    signals = 0

    def stop(number: int, *_: object) -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            start_exit_deadline()
            runtime.drain()
            loop.call_soon_threadsafe(stopping.set)
        elif signals == HURRY_SIGNALS:
            runtime.hurry()
        else:
            os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        await runtime.start()
    except LifespanError as error:
        log_failure(error, "", "add_lifespan")
        raise Failure(str(error)) from error
    try:
        write_note(f"{runtime.name} runs its tasks (Ctrl+C stops it)")
        await stopping.wait()
        write_note("Finishing the running tasks (Ctrl+C again ends at once)", error=True)
    finally:
        await runtime.aclose()

"""Tasks of a server in a function app: the functions with queue triggers that run them.

Azure may stop an app between two invocations, so tasks run in invocations only. With `AzureTasks` the functions host
invokes a function for each message in a queue of the store, and renews the message while the function runs. It deletes
the message if the function returns, and delivers it again if the function raises or its instance stops. With a store
that other machines can reach, such as `RedisTasks`, the app creates tasks and answers questions about them, and a
worker outside of the app runs them.

Source: "Azure Queue storage trigger for Azure Functions", "Improve the performance and reliability of Azure Functions"
(no background work after an invocation).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import azure.functions as func  # noqa: TC002 - the worker reads the type of a function's parameter

from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger, quote
from funcmcp._state.tasks.queues import DEFAULT_QUEUE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.dispatch import Server
    from funcmcp._server.tasks.service import Tasks

_DRAIN_SECONDS = 2.0
"""Seconds for which runs may go on when the worker stops; the platform gives it a few more."""


class OutcomeNotStoredError(Exception):
    """The end of a run could not be stored, so the functions host has to deliver the message again."""


def check_store(server: Server) -> None:
    """Check that the tasks of a server can run in a function app, or beside it.

    Raises:
        ValueError: The server has tools with ``task=``, and its tasks live in one process or on one machine.
    """
    if not server.has_tasks:
        return
    tasks = server.tasks
    if tasks is None:
        _refuse_tools(server, "MemoryTasks")
        return
    # A server that begins without a task needs none of these modules.
    from funcmcp._adapters.azure.tasks import AzureTasks  # noqa: PLC0415
    from funcmcp._state.tasks.memory import MemoryTasks  # noqa: PLC0415
    from funcmcp._state.tasks.sqlite import SQLiteTasks  # noqa: PLC0415

    if isinstance(tasks.store, MemoryTasks | SQLiteTasks):
        _refuse_tools(server, type(tasks.store).__name__)
    elif isinstance(tasks.store, AzureTasks):
        tasks.store.pulls = False  # the functions host brings them
    else:
        tasks.set_concurrency(0)
        if tasks.has_tools:
            logger.warning(
                "%s creates tasks in %s and does not run them: Azure stops a function app between two invocations. "
                "Run the same server elsewhere, for example with `funcmcp worker`.",
                quote(server.options.name),
                type(tasks.store).__name__,
            )
    server.drain.seconds = _DRAIN_SECONDS


def _refuse_tools(server: Server, store: str) -> None:
    """Refuse the tools with ``task=`` that a server has and gets."""
    names = [tool.name for tool in server.catalog.tools if tool.task is not None]
    if names:
        raise ValueError(_refusal(names[0], store))

    def refuse(tool: Tool, count: int) -> None:
        if count > 0 and tool.task is not None:
            raise RegistrationError(_refusal(tool.name, store))

    server.catalog.tools.listeners.append(refuse)


def register(tasks: Tasks, app: func.FunctionApp, *, name: str, begin: Callable[[], Awaitable[None]]) -> None:
    """Register the functions that run the tasks of a server, if the functions host brings them.

    There is one for the default queue, and one for each other queue of a tool that the app serves.

    Args:
        tasks: The tasks.
        app: The function app.
        name: The name of the function of the default queue, and the beginning of the other names.
        begin: Begins the server, unless that has happened.
    """
    from funcmcp._adapters.azure.tasks import AzureTasks  # noqa: PLC0415 - as above

    store = tasks.store
    if not isinstance(store, AzureTasks):
        return

    registered: set[str] = set()

    def add_function(queue: str) -> None:
        if queue in registered or (tasks.queues is not None and queue not in tasks.queues):
            return
        registered.add(queue)

        async def run_task(message: func.QueueMessage) -> None:
            await begin()
            claim = await store.take(message.get_body(), message.dequeue_count or 1, queue)
            if claim is not None and not await tasks.run(claim):
                raise OutcomeNotStoredError

        function: Any = app.function_name(_function_name(name, queue))(run_task)
        trigger = app.queue_trigger(arg_name="message", queue_name=store.queue_name(queue), connection=store.connection)
        trigger(function)

    add_function(DEFAULT_QUEUE)
    tasks.follow_queues(add_function)


def _function_name(name: str, queue: str) -> str:
    """Return the name of the function of a queue. Names of functions differ by more than case."""
    if queue == DEFAULT_QUEUE:
        return name
    readable = re.sub("[^a-z0-9]", "_", queue.lower())
    if readable == queue:
        return f"{name}_{readable}"
    return f"{name}_{readable}_{hashlib.sha256(queue.encode()).hexdigest()[:8]}"


def _refusal(tool: str, store: str) -> str:
    return (
        f"The tool {tool!r} has task=, and {store} can't have the tasks of a function app: Azure starts and stops "
        "instances as it likes. Write MCPServer(..., tasks=AzureTasks()), with AzureTasks from funcmcp.tasks, or "
        "tasks=None."
    )

"""Tasks of a server in a function app: the function with a queue trigger that runs them.

Azure may stop an app between two invocations, so tasks run in invocations only. With `AzureTasks` the functions host
invokes a function for each message in the store's queue, and renews the message while the function runs. It deletes the
message if the function returns, and delivers it again if the function raises or its instance stops. With a store that
other machines can reach, such as `RedisTasks`, the app creates tasks and answers questions about them, and a worker
outside of the app runs them.

Source: "Azure Queue storage trigger for Azure Functions", "Improve the performance and reliability of Azure Functions"
(no background work after an invocation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import azure.functions as func  # noqa: TC002 - the worker reads the type of a function's parameter

from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger, quote

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
    """Register the function that runs the tasks of a server, if the functions host brings them.

    Args:
        tasks: The tasks.
        app: The function app.
        name: The name of the function.
        begin: Begins the server, unless that has happened.
    """
    from funcmcp._adapters.azure.tasks import AzureTasks  # noqa: PLC0415 - as above

    store = tasks.store
    if not isinstance(store, AzureTasks):
        return

    async def run_task(message: func.QueueMessage) -> None:
        await begin()
        claim = await store.take(message.get_body(), message.dequeue_count or 1)
        if claim is not None and not await tasks.run(claim):
            raise OutcomeNotStoredError

    function: Any = app.function_name(name)(run_task)
    app.queue_trigger(arg_name="message", queue_name=store.queue_name, connection=store.connection)(function)


def _refusal(tool: str, store: str) -> str:
    return (
        f"The tool {tool!r} has task=, and {store} can't have the tasks of a function app: Azure starts and stops "
        "instances as it likes. Write MCPServer(..., tasks=AzureTasks()), with AzureTasks from funcmcp.tasks, or "
        "tasks=None."
    )

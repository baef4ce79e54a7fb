"""Long tool calls that clients poll: options of tools, and the stores of tasks; see guides/tasks.md.

`MemoryTasks` is the default. `SQLiteTasks` survives restarts, and serves all processes of one machine. `RedisTasks`
serves any number of machines and needs ``pip install "funcmcp[redis]"``; so does `PostgresTasks` with
``pip install "funcmcp[postgres]"``. `AzureTasks` serves the instances of an Azure
function app and needs ``pip install "funcmcp[azure-tasks]"``.

Example:
    ```python
    mcp = MCPServer("Orders", tasks=SQLiteTasks("tasks.db"))


    @mcp.tool(task="optional", idempotent=True)
    async def reindex(catalog: str, context: Context) -> str: ...
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._adapters.azure.tasks import AzureTasks
    from funcmcp._adapters.postgres.tasks import PostgresTasks
    from funcmcp._adapters.redis.tasks import RedisTasks
    from funcmcp._server.catalog.task_options import Retry, TaskOptions
    from funcmcp._state.tasks.any_store import BaseTasks, OwnedTasks, successor
    from funcmcp._state.tasks.memory import MemoryTasks
    from funcmcp._state.tasks.record import (
        Claim,
        NewTask,
        Outcome,
        Question,
        TaskKey,
        TaskRecord,
        changed_bytes,
        claimed,
        from_json,
        to_json,
    )
    from funcmcp._state.tasks.sqlite import SQLiteTasks
    from funcmcp._state.tasks.store import (
        Backlog,
        TaskLimits,
        TasksFullError,
        TaskStore,
        UnreadableTask,
        UnreadableTaskError,
        position,
    )
    from funcmcp._state.tasks.task_filter import TaskFilter

__all__ = [
    "AzureTasks",
    "Backlog",
    "BaseTasks",
    "Claim",
    "MemoryTasks",
    "NewTask",
    "Outcome",
    "OwnedTasks",
    "PostgresTasks",
    "Question",
    "RedisTasks",
    "Retry",
    "SQLiteTasks",
    "TaskFilter",
    "TaskKey",
    "TaskLimits",
    "TaskOptions",
    "TaskRecord",
    "TaskStore",
    "TasksFullError",
    "UnreadableTask",
    "UnreadableTaskError",
    "changed_bytes",
    "claimed",
    "from_json",
    "position",
    "successor",
    "to_json",
]

_HOMES = {
    "_adapters.azure.tasks": ["AzureTasks"],
    "_adapters.postgres.tasks": ["PostgresTasks"],
    "_adapters.redis.tasks": ["RedisTasks"],
    "_server.catalog.task_options": ["Retry", "TaskOptions"],
    "_state.tasks.any_store": ["BaseTasks", "OwnedTasks", "successor"],
    "_state.tasks.memory": ["MemoryTasks"],
    "_state.tasks.task_filter": ["TaskFilter"],
    "_state.tasks.record": [
        "Claim",
        "NewTask",
        "Outcome",
        "Question",
        "TaskKey",
        "TaskRecord",
        "changed_bytes",
        "claimed",
        "from_json",
        "to_json",
    ],
    "_state.tasks.sqlite": ["SQLiteTasks"],
    "_state.tasks.store": [
        "Backlog",
        "TaskLimits",
        "TaskStore",
        "TasksFullError",
        "UnreadableTask",
        "UnreadableTaskError",
        "position",
    ],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

"""Long tool calls that clients poll: options of tools, and the stores of tasks; see guides/tasks.md.

`MemoryTasks` is the default. `SQLiteTasks` survives restarts, and serves all processes of one machine. `RedisTasks`
serves any number of machines and needs ``pip install "funcmcp[redis]"``. `AzureTasks` serves the instances of an Azure
function app and needs ``pip install "funcmcp[azure-tasks]"``.

Example:
    ```python
    mcp = MCPServer("Orders", tasks=SQLiteTasks("tasks.db"))


    @mcp.tool(task="optional", idempotent=True)
    async def reindex(catalog: str, context: ToolContext) -> str: ...
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.lazy_names import lazy_names

if TYPE_CHECKING:
    from funcmcp.adapters.azure.tasks import AzureTasks
    from funcmcp.adapters.redis.tasks import RedisTasks
    from funcmcp.server.catalog.task_options import TaskOptions
    from funcmcp.state.tasks.memory import MemoryTasks
    from funcmcp.state.tasks.sqlite import SQLiteTasks
    from funcmcp.state.tasks.store import TaskLimits, TaskStore

__all__ = ["AzureTasks", "MemoryTasks", "RedisTasks", "SQLiteTasks", "TaskLimits", "TaskOptions", "TaskStore"]

_HOMES = {
    "adapters.azure.tasks": ["AzureTasks"],
    "adapters.redis.tasks": ["RedisTasks"],
    "server.catalog.task_options": ["TaskOptions"],
    "state.tasks.memory": ["MemoryTasks"],
    "state.tasks.sqlite": ["SQLiteTasks"],
    "state.tasks.store": ["TaskLimits", "TaskStore"],
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

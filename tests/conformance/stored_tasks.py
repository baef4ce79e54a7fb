"""The sample that offers everything, with its tasks in the store that the variables STORE and STORE_URL name."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import funcmcp
from funcmcp.tasks import AzureTasks, MemoryTasks, PostgresTasks, RedisTasks, SQLiteTasks, TaskStore


def _store() -> TaskStore:
    """Return a new store."""
    url = os.environ["STORE_URL"]
    match os.environ["STORE"]:
        case "memory":
            return MemoryTasks()
        case "sqlite":
            return SQLiteTasks(url)
        case "redis":
            return RedisTasks(url)
        case "postgres":
            return PostgresTasks(url)
        case _:
            return AzureTasks("STORE_URL")  # the name of the variable that has the connection string


_WITH_STORE: Any = partial(funcmcp.MCPServer, tasks=_store())
funcmcp.MCPServer = _WITH_STORE  # type: ignore[misc]

from samples.everything.server import mcp  # noqa: E402 - it has to find the class above

__all__ = ["mcp"]

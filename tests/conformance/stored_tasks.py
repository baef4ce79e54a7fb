"""The sample that offers everything, with its tasks in the store that the variables STORE and STORE_URL name."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import funcmcp
from funcmcp.tasks import PostgresTasks, RedisTasks, SQLiteTasks

_STORES: dict[str, Any] = {"sqlite": SQLiteTasks, "redis": RedisTasks, "postgres": PostgresTasks}
_WITH_STORE: Any = partial(funcmcp.MCPServer, tasks=_STORES[os.environ["STORE"]](os.environ["STORE_URL"]))
funcmcp.MCPServer = _WITH_STORE  # type: ignore[misc]

from samples.everything.server import mcp  # noqa: E402 - it has to find the class above

__all__ = ["mcp"]

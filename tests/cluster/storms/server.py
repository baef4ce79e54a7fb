"""The server of the storms, whose runs write a line to a file when they begin, get an answer, and end.

Environment: STORE ("redis", "sqlite", "postgres" or "azure"), STORE_URL, LEDGER (the file), PLACES (tasks that one
process runs at once), KEPT (tasks of one caller that are kept), LEASE and TIMEOUT (seconds; the latter of a step at
Redis).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pydantic import BaseModel

from funcmcp import Context, MCPServer
from funcmcp.auth import APIKeys
from funcmcp.redis import RedisLink
from funcmcp.tasks import AzureTasks, PostgresTasks, RedisTasks, SQLiteTasks, TaskLimits, TaskOptions, TaskStore
from tests.cluster.storms.settings import ATTEMPTS, CALLERS, DELAY
from tests.cluster.task_worker import Ledger


class Permit(BaseModel):
    """The answer to the question in the middle of a task."""

    permitted: bool


def store() -> TaskStore:
    """Return a new store."""
    lease = float(os.environ["LEASE"])
    url, places = os.environ["STORE_URL"], int(os.environ["PLACES"])
    limits = TaskLimits(per_principal=int(os.environ["KEPT"]), live_per_principal=5_000)
    match os.environ["STORE"]:
        case "redis":
            link = RedisLink(url, timeout=float(os.environ["TIMEOUT"]))
            return RedisTasks(link, limits=limits, lease=lease, concurrency=places)
        case "postgres":
            return PostgresTasks(url, limits=limits, lease=lease, concurrency=places)
        case "sqlite":
            return SQLiteTasks(url, limits=limits, lease=lease, concurrency=places)
        case _:  # the name of the variable that has the connection string
            return AzureTasks("STORE_URL", limits=limits, lease=lease, concurrency=places)


mcp = MCPServer("Storm", auth=APIKeys(CALLERS), tasks=store())
ledger = Ledger(Path(os.environ["LEDGER"]))


async def work(context: Context, call: int, seconds: float) -> str:
    """Work for some seconds."""
    assert context.task_id is not None
    ledger.write("begin", context.task_id, call)
    await asyncio.sleep(seconds)
    ledger.write("end", context.task_id, call)
    return str(call)


async def ask(context: Context, call: int, seconds: float) -> str:
    """Work for some seconds, with a question in the middle."""
    assert context.task_id is not None
    ledger.write("begin", context.task_id, call)
    await asyncio.sleep(seconds / 2)
    await context.elicit("Continue?", Permit)
    ledger.write("answered", context.task_id, call)
    await asyncio.sleep(seconds / 2)
    ledger.write("end", context.task_id, call)
    return str(call)


ONCE = TaskOptions("required", attempts=1)
AGAIN = TaskOptions("required", attempts=ATTEMPTS)
mcp.tool("once", task=ONCE)(work)
mcp.tool("again", task=AGAIN)(work)
mcp.tool("later", task=TaskOptions("required", attempts=1, delay=DELAY))(work)
mcp.tool("ask_once", task=ONCE)(ask)
mcp.tool("ask_again", task=AGAIN)(ask)

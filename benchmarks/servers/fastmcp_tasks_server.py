"""FastMCP with two tools that run as tasks, or, with BENCH_TASKS=none, the same tools without tasks."""

from __future__ import annotations

import asyncio
import os
import time

from fastmcp import FastMCP

KIND = os.environ.get("BENCH_TASKS", "memory")

server = FastMCP("bench", version="1.0.0")

if KIND != "none":
    from fastmcp_tasks import TasksExtension

    server.add_extension(TasksExtension(url=os.environ["BENCH_REDIS"] if KIND == "redis" else "memory://"))


@server.tool(task=KIND != "none")
async def now() -> str:
    """Return the time."""
    return repr(time.time())


@server.tool(task=KIND != "none")
async def wait(seconds: float) -> str:
    """Return the time after some seconds."""
    await asyncio.sleep(seconds)
    return repr(time.time())


app = server.http_app(stateless_http=True, json_response=True)

"""A process that runs tasks from Redis: a URL and a file, to which each run adds a line."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from funcmcp import MCPServer, ToolContext
from funcmcp.tasks import RedisTasks

LEASE = 1.0


def make_server(url: str, runs: Path, *, concurrency: int) -> MCPServer:
    """Return a server whose tools take half a second."""
    mcp = MCPServer("faults", tasks=RedisTasks(url, lease=LEASE, concurrency=concurrency))

    async def run(context: ToolContext) -> str:
        with runs.open("a", encoding="utf-8") as file:
            file.write(f"{context.task_id}\n")
        await asyncio.sleep(0.5)
        return "done"

    mcp.tool("again", task="optional", idempotent=True)(run)
    mcp.tool("once", task="optional")(run)
    return mcp


async def work(url: str, runs: Path) -> None:
    """Run tasks until the process ends."""
    async with make_server(url, runs, concurrency=10).lifespan():
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))

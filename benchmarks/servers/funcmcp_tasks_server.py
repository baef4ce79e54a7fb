"""funcmcp with two tools that run as tasks, or, with BENCH_TASKS=none, the same tools without tasks."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Literal

from funcmcp import MCPServer

KIND = os.environ.get("BENCH_TASKS", "memory")
MODE: Literal["optional"] | None = None if KIND == "none" else "optional"

if KIND == "redis":
    from funcmcp.tasks import RedisTasks, TaskLimits

    LIMITS = TaskLimits(total=1_000_000, total_bytes=1 << 32, bytes_per_principal=1 << 32)
    app = MCPServer("bench", tasks=RedisTasks(os.environ["BENCH_REDIS"], limits=LIMITS))
elif KIND == "memory":
    from funcmcp.tasks import MemoryTasks, TaskLimits

    LIMITS = TaskLimits(total=1_000_000, total_bytes=1 << 32, bytes_per_principal=1 << 32)
    app = MCPServer("bench", tasks=MemoryTasks(limits=LIMITS))
else:
    app = MCPServer("bench")


@app.tool(task=MODE)
async def now() -> str:
    """Return the time."""
    return repr(time.time())


@app.tool(task=MODE)
async def wait(seconds: float) -> str:
    """Return the time after some seconds."""
    await asyncio.sleep(seconds)
    return repr(time.time())

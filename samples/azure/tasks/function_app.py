"""An MCP server whose tools run as tasks, as a function app.

``func start`` serves it at /api/mcp, and a queue trigger runs the tasks. On this machine Azurite is the storage:
``npx azurite``.
"""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

import funcmcp.azure
from funcmcp import Context, MCPServer
from funcmcp.tasks import AzureTasks, TaskOptions

CHAPTERS = ("sales", "returns", "stock")
PAUSE = 0.2
"""Seconds that a chapter takes."""

mcp = MCPServer("reports", version="1.0.0", tasks=AzureTasks())


class Approval(BaseModel):
    """The answer to the question before an order."""

    approve: bool


@mcp.tool(task=TaskOptions("optional", ttl=1200), read_only=True)
async def write_report(year: int, context: Context) -> str:
    """Write the report of a year, chapter by chapter."""
    lines = [f"Report of {year}"]
    for number, chapter in enumerate(CHAPTERS, 1):
        await context.report_progress(number, len(CHAPTERS), chapter)
        await asyncio.sleep(PAUSE)
        lines.append(f"{number}. {chapter}")
    return "\n".join(lines)


@mcp.tool(task=TaskOptions("optional", ttl=1200))
async def order_paper(reams: int, context: Context) -> str:
    """Order paper, after an approval. No instance of the app waits for the answer."""
    answer = await context.elicit(f"Order {reams} reams of paper?", Approval)
    if answer.action != "accept" or not answer.content.approve:
        return "Nothing was ordered."
    return f"Ordered {reams} reams of paper."


app = funcmcp.azure.http_app(mcp)

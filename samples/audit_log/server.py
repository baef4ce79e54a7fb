"""An audit log: one JSON line for each call of a tool, with the caller and the outcome, but without arguments.

Run it with ``funcmcp run samples/audit_log/server.py`` and call a tool: the lines are written to audit.jsonl.
"""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp import MCPServer
from funcmcp.middleware import on_tool_call

if TYPE_CHECKING:
    from funcmcp.middleware import CallNext, Reply, RequestContext

FILE = Path(os.environ.get("AUDIT_FILE", "audit.jsonl"))


@on_tool_call
async def audit(context: RequestContext, call_next: CallNext) -> Reply:
    """Append a line before the tool runs and one after it, so that a crash in between leaves a trace."""
    tool = None if context.feature is None else context.feature.key
    caller = None if context.principal is None else context.principal.subject
    entry = {"request": context.request.id, "tool": tool, "caller": caller, "client": context.client.info.get("name")}
    await _append({**entry, "event": "called"})
    reply = await call_next(context)
    result = reply.result()
    outcome = "failed" if result is None or result.get("isError") else "succeeded"
    await _append({**entry, "event": outcome})
    return reply


async def _append(entry: dict[str, object]) -> None:
    line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **entry})
    await asyncio.to_thread(_write, line)  # a slow disk must not hold up other requests


def _write(line: str) -> None:
    with FILE.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


mcp = MCPServer("Audited", middleware=[audit])


@mcp.tool
def transfer(amount: int, to: str) -> str:
    """Transfer an amount to an account."""
    if amount <= 0:
        raise ValueError("The amount must be positive.")
    return f"Transferred {amount} to {to}."

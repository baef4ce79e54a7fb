"""Drives tasks with FastMCP's own client and prints what came back as one JSON object. Argument: the endpoint's URL.

It runs in the virtual environment of scripts/setup-fastmcp.sh, without funcmcp.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError
from fastmcp_tasks.client import call_tool_task

ANSWERS = {"name": "Ada", "confirm": True}


async def drive(url: str) -> dict[str, Any]:
    questions: list[str] = []

    async def answer(message: str, _type: Any, params: Any, _context: Any) -> ElicitResult[dict[str, Any]]:
        questions.append(message)
        content = {name: ANSWERS[name] for name in params.requested_schema["properties"]}
        return ElicitResult(action="accept", content=content)

    async with Client(url, elicitation_handler=answer) as client:

        async def text(name: str, arguments: dict[str, Any]) -> str:
            try:
                result = await client.call_tool(name, arguments)
            except ToolError as error:
                return f"ToolError: {error}"
            return str(result.content[0].text)

        seen: dict[str, Any] = {
            "computed": await text("slow_compute", {"seconds": 0.2, "label": "pi"}),
            "failed": await text("failing_job", {}),
            "confirmed": await text("confirm_delete", {"filename": "notes.txt"}),
            "asked": await text("multi_input", {}),
            "detached": await text("test_tool_with_task", {}),
        }
        task = await call_tool_task(client, "slow_compute", {"seconds": 60})
        seen["created"] = (await task.status()).status
        await task.cancel()
        seen["cancelled"] = (await task.status()).status
    return {**seen, "questions": sorted(questions)}


print(json.dumps(asyncio.run(drive(sys.argv[1]))))

"""Calls tools on FastMCP, in its own environment.

Each line of the standard input is a JSON object with the source of a signature and arguments of calls. Each line of the
output is an array: for each call null if FastMCP rejects the arguments, or an object with what the function received
and the structured content. The answer is a string if FastMCP does not accept the function.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import FastMCP

from tests.differential.vocabulary import tool_of


async def answer(source: str, calls: list[dict[str, Any]]) -> list[dict[str, Any] | None] | str:
    """Return the verdicts on some calls, or why there are none."""
    function, received = tool_of(source)
    server = FastMCP("differential")
    try:
        server.tool(function)
        tool: Any = await server.get_tool("tool")
    except Exception as error:  # noqa: BLE001 - whatever FastMCP raises is the answer
        return repr(error)
    verdicts: list[dict[str, Any] | None] = []
    for arguments in calls:
        received.clear()
        try:
            structured: Any = (await tool.run(arguments)).structured_content
        except Exception as error:  # noqa: BLE001 - arguments that it rejects, or a result that it can't write
            structured = repr(error)
        verdicts.append({"received": received[0], "structured": structured} if received else None)
    return verdicts


for line in sys.stdin:
    request = json.loads(line)
    sys.stdout.write(json.dumps(asyncio.run(answer(request["source"], request["calls"]))) + "\n")
    sys.stdout.flush()

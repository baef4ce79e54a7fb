"""Prints what servers of FastMCP or the official SDK answer to unknown arguments: True for an error.

``python -m tests.compat.unknown_arguments_client FastMCP`` needs FastMCP, and ``MCPServer`` the official SDK.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import warnings
from typing import Any

from pydantic import BaseModel, ConfigDict


class Plain(BaseModel):
    x: int = 1


class Forbidding(Plain):
    model_config = ConfigDict(extra="forbid")


TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("weather", {"city": "Rome"}),
    ("weather", {"city": "Rome", "sessionId": "1"}),
    ("weather", {"city": "Rome", "day": 2}),
    ("weather", {"citty": "Rome"}),
    ("ping", {"a": 1}),
    ("nested", {"model": {"x": 2, "y": 3}}),
    ("nested", {"model": {}, "x": 2}),
    ("forbidding", {"model": {"x": 2, "y": 3}}),
]
PROMPTS = [
    ("ask", {"topic": "x"}),
    ("ask", {"topic": "x", "sessionId": "1"}),
    ("ask", {"topic": "x", "tonne": "1"}),
    ("ask", {"tpic": "x"}),
    ("fixed", {"a": "1"}),
]


def weather(city: str, days: int = 1) -> str:
    return f"{city} {days}"


def ping() -> str:
    return "pong"


def nested(model: Plain) -> str:
    return str(model)


def forbidding(model: Forbidding) -> str:
    return str(model)


def ask(topic: str, tone: str = "dry") -> str:
    return f"{topic} {tone}"


def fixed() -> str:
    return "fixed"


def register(mcp: Any) -> Any:
    """Register tools and prompts, and return the server."""
    for tool in (weather, ping, nested, forbidding):
        mcp.tool()(tool)
    for prompt in (ask, fixed):
        mcp.prompt()(prompt)
    return mcp


async def errors_of(client: Any, **options: Any) -> list[bool]:
    """Return for each call whether its answer is an error."""
    errors = [(await client.call_tool(name, arguments, **options)).is_error for name, arguments in TOOLS]
    for name, arguments in PROMPTS:
        try:
            await client.get_prompt(name, arguments)
        except Exception:  # noqa: BLE001 - each framework has its own
            errors.append(True)
        else:
            errors.append(False)
    return errors


async def main(framework: str) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if framework == "FastMCP":
        from fastmcp import Client, FastMCP

        async with Client(register(FastMCP("a"))) as client:
            errors = await errors_of(client, raise_on_error=False)
    else:
        from mcp import Client as SDKClient
        from mcp.server import MCPServer

        async with SDKClient(register(MCPServer("a"))) as client:
            errors = await errors_of(client)
    print(json.dumps(errors))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

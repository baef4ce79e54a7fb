"""Four threads with `asyncio.run`, as workers of Celery or views of Flask have them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from shop import mcp

from funcmcp.testing import Client


async def call() -> str:
    async with Client(mcp) as client:
        first = await client.call_tool("use")
        second = await client.call_tool("use_in_a_thread")
        return f"{first.text} {second.text}"


async def call_directly() -> str:
    async with mcp.lifespan():
        return (await mcp.call_tool("use")).text


def work(_number: int) -> list[str]:
    return [asyncio.run(call()), asyncio.run(call_directly())]


with ThreadPoolExecutor(4) as threads:
    results = list(threads.map(work, range(40)))
assert results == [["open open open open", "open open"]] * 40, results
print("done")

"""A server that is imported once and used in many event loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator  # noqa: TC003 - an annotation of a factory

from funcmcp import Context, MCPServer

mcp = MCPServer("Shop")


class Pool:
    """A resource that works in the event loop that opened it only."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_open = True
        self.lock = asyncio.Lock()

    async def use(self) -> str:
        """Return the word "open"; fail in another event loop, or after the end."""
        assert self.is_open
        assert self.loop is asyncio.get_running_loop()
        async with self.lock:
            await asyncio.sleep(0)
        return "open"


class Cache(Pool):
    """Another one."""


@mcp.add_lifespan
async def open_pool() -> AsyncIterator[Pool]:
    pool = Pool()
    yield pool
    assert pool.loop is asyncio.get_running_loop()
    pool.is_open = False


async def open_cache() -> AsyncIterator[Cache]:
    cache = Cache()
    yield cache
    assert cache.loop is asyncio.get_running_loop()
    cache.is_open = False


mcp.services.register_factory(Cache, open_cache, scope="app")


@mcp.tool
async def use(context: Context, cache: Cache) -> str:
    """Use the pool of the lifespan and the service of the loop."""
    return f"{await context.lifespan_context.use()} {await cache.use()}"


@mcp.tool
def use_in_a_thread(context: Context, cache: Cache) -> str:
    """Use both in a plain function."""
    return f"{context.wait(context.lifespan_context.use())} {context.wait(cache.use())}"

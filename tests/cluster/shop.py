"""A server that several instances serve, for the tests beside it. Environment: SHOP_REDIS, SHOP_SESSIONS."""

from __future__ import annotations

import asyncio
import os
import secrets

from pydantic import BaseModel

from funcmcp import MCPServer, ToolContext
from funcmcp.adapters.redis import RedisRevocations, RedisSessions
from funcmcp.adapters.redis_bus import RedisBus
from funcmcp.adapters.redis_link import RedisLink
from funcmcp.sessions.keys import configured_keys
from funcmcp.sessions.signed import SignedSessions

INSTANCE = secrets.token_hex(4)


class Size(BaseModel):
    """What is asked for."""

    size: int


link = RedisLink(os.environ["SHOP_REDIS"], timeout=0.5)
keys = configured_keys(os.environ)
if os.environ.get("SHOP_SESSIONS") == "signed":
    mcp = MCPServer(
        "Shop", keys=keys, sessions=SignedSessions(keys.of("Shop"), revoked=RedisRevocations(link)), bus=RedisBus(link)
    )
else:
    mcp = MCPServer("Shop", keys=keys, sessions=RedisSessions(link))


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def instance() -> str:
    """Name the instance that answers."""
    return INSTANCE


@mcp.tool
async def order(what: str, context: ToolContext) -> str:
    """Order something; the size is asked for."""
    answer = await context.elicit("Which size?", Size)
    return f"{what} in {answer.content.size}" if answer.content else answer.action


@mcp.tool
async def log(context: ToolContext) -> str:
    """Log at two levels, and show which instance ran it."""
    await context.log("info", "a word")
    await context.log("error", "a worry")
    return INSTANCE


@mcp.tool
async def break_off(context: ToolContext) -> str:
    """End the connection in the middle, so that the client has to take the stream up again."""
    await context.log("error", "before")
    await context.close_stream()
    await context.log("error", "after")
    return INSTANCE


@mcp.tool
async def wait(context: ToolContext) -> str:
    """Say that it has begun, and wait until it is cancelled."""
    await context.log("error", "begun")
    await asyncio.Event().wait()
    return "never"


@mcp.tool
async def touch(uri: str) -> str:
    """Tell that a resource has changed."""
    await mcp.resource_updated(uri)
    return uri


@mcp.tool
async def touch_today() -> str:
    """Tell that the menu of today has changed."""
    return await touch("menu://today")


@mcp.tool
def pid() -> int:
    """Return the number of the process that answers."""
    return os.getpid()


@mcp.tool
async def grow(name: str) -> str:
    """Add a tool."""

    def more() -> str:
        """Do more."""
        return name

    mcp.tool(name)(more)
    return name


@mcp.resource("menu://{dish}")
async def dish(dish: str) -> str:
    """Return a dish."""
    return dish

"""A server that several instances serve, for the tests beside it.

Environment: SHOP_REDIS, where Redis is; SHOP_PREFIX, of its keys there; SHOP_SESSIONS, "signed" or "redis";
SHOP_SECRET, the key of the tokens that its callers need ("" for no such need); SHOP_LISTS, "closed", or "open" for
sessions that nobody in particular began; SHOP_TIMEOUT, the seconds that a step in Redis may take; SHOP_LEDGER, a
file to which the tool `tick` appends.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path

from pydantic import BaseModel

from funcmcp import Context, MCPServer
from funcmcp._adapters.redis.bus import RedisBus
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.revocations import RedisRevocations
from funcmcp._adapters.redis.sessions import RedisSessions
from funcmcp._auth.policy import Auth
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._state.sessions.signed import SignedSessions

INSTANCE = secrets.token_hex(4)


class Size(BaseModel):
    """What is asked for."""

    size: int


def doorman(secret: str) -> Auth | None:
    """Return what finds out who calls, if callers need tokens."""
    if not secret:
        return None
    tokens = BearerTokens(
        issuer="https://login.example.com",
        audience="https://shop.example.com/mcp",
        keys=StaticKeys({"kty": "oct", "k": secret}),
        rules=TokenRules(algorithms=["HS256"]),
    )
    return Auth(tokens, lists="open" if os.environ["SHOP_LISTS"] == "open" else "closed")


link = RedisLink(os.environ["SHOP_REDIS"], prefix=os.environ["SHOP_PREFIX"], timeout=float(os.environ["SHOP_TIMEOUT"]))
auth = doorman(os.environ["SHOP_SECRET"])
if os.environ["SHOP_SESSIONS"] == "signed":
    mcp = MCPServer("Shop", auth=auth, sessions=SignedSessions(revoked=RedisRevocations(link), bus=RedisBus(link)))
else:
    mcp = MCPServer("Shop", auth=auth, sessions=RedisSessions(link))


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def whoami(context: Context) -> str:
    """Name the caller, what the client called itself when the session began, and the instance."""
    caller = context.principal.subject if context.principal else "nobody"
    return f"{caller} {context.client_info['name']} {INSTANCE}"


@mcp.tool
def instance() -> str:
    """Name the instance that answers."""
    return INSTANCE


@mcp.tool
async def order(what: str, context: Context) -> str:
    """Order something; the size is asked for."""
    answer = await context.elicit("Which size?", Size)
    return f"{what} in {answer.content.size}" if answer.content else answer.action


@mcp.tool
async def log(context: Context) -> str:
    """Log at two levels, and show which instance ran it."""
    await context.info("a word")
    await context.error("a worry")
    return INSTANCE


@mcp.tool
async def break_off(context: Context) -> str:
    """End the connection in the middle, so that the client has to take the stream up again."""
    await context.error("before")
    await context.close_stream()
    await context.error("after")
    return INSTANCE


@mcp.tool
def tick(token: str) -> str:
    """Append a token to the ledger, which tells how often this was done."""
    with Path(os.environ["SHOP_LEDGER"]).open("a") as ledger:
        ledger.write(f"{token}\n")
    return token


@mcp.tool
async def count(to: int, context: Context) -> str:
    """Log the numbers below a limit, and end the connection in the middle."""
    for number in range(to):
        await context.error(str(number))
        if number == to // 2:
            await context.close_stream()
        await asyncio.sleep(0.01)
    return str(to)


@mcp.tool
async def wait(context: Context) -> str:
    """Say that it has begun, and wait until it is cancelled."""
    await context.error("begun")
    await asyncio.Event().wait()
    return "never"


@mcp.tool
async def touch(uri: str) -> str:
    """Tell that a resource has changed."""
    mcp.notify_resource_updated(uri)
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

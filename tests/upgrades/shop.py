"""A server for both versions, so it has only names that both have.

Environment: SHOP_NAME; SHOP_VERSION, that of funcmcp; SHOP_TASKS and SHOP_SIGN_INS, kinds of stores ("" for none);
SHOP_SESSIONS, "signed" or "" for Redis; SHOP_REDIS, SHOP_POSTGRES and SHOP_AZURE, where the stores are; SHOP_FOLDER for
files; SHOP_URL, the endpoint; SHOP_UPSTREAM, the issuer of an OpenID provider if users sign in, with SHOP_CLIENT and
SHOP_SECRET.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from funcmcp import Auth, Context, MCPServer, ProtocolOptions
from funcmcp.auth import OIDC, OAuthProxy
from funcmcp.azure import AzureSignIns
from funcmcp.postgres import PostgresSignIns
from funcmcp.redis import RedisBus, RedisLink, RedisRevocations, RedisSessions, RedisSignIns
from funcmcp.state import SignedSessions, SQLiteSignIns
from funcmcp.tasks import AzureTasks, PostgresTasks, RedisTasks, SQLiteTasks, TaskOptions

VERSION = os.environ["SHOP_VERSION"]
FOLDER = Path(os.environ["SHOP_FOLDER"])
TIMEOUT = 60.0
"""Seconds that a store may take: the machine of the tests may be busy."""

SCOPES = {"orders.read": "See your orders"}


def link() -> RedisLink:
    """Return a connection to Redis."""
    return RedisLink(os.environ["SHOP_REDIS"], timeout=TIMEOUT)


def sessions() -> Any:
    """Return the store of sessions."""
    if os.environ.get("SHOP_SESSIONS") == "signed":
        shared = link()
        return SignedSessions(revoked=RedisRevocations(shared), bus=RedisBus(shared))
    return RedisSessions(link())


def tasks() -> Any:
    """Return the store of tasks."""
    match os.environ.get("SHOP_TASKS"):
        case "SQLite":
            return SQLiteTasks(FOLDER / "tasks.db")
        case "Redis":
            return RedisTasks(link())
        case "PostgreSQL":
            return PostgresTasks(os.environ["SHOP_POSTGRES"], timeout=TIMEOUT)
        case "Azure Storage":
            return AzureTasks("SHOP_AZURE")
        case _:
            return None


def sign_ins() -> Any:
    """Return the store of sign-ins."""
    match os.environ.get("SHOP_SIGN_INS"):
        case "SQLite":
            return SQLiteSignIns(FOLDER / "sign-ins.db")
        case "Redis":
            return RedisSignIns(link())
        case "PostgreSQL":
            return PostgresSignIns(os.environ["SHOP_POSTGRES"], timeout=TIMEOUT)
        case "Azure Storage":
            return AzureSignIns("SHOP_AZURE")
        case _:
            return None


def auth() -> Auth | None:
    """Return the sign-in, if users sign in."""
    upstream = os.environ.get("SHOP_UPSTREAM")
    if not upstream:
        return None
    provider = OIDC(upstream, os.environ["SHOP_CLIENT"], os.environ["SHOP_SECRET"])
    proxy = OAuthProxy(os.environ["SHOP_URL"], upstream=provider, scopes=SCOPES, store=sign_ins())
    return Auth(proxy, scopes=["orders.read"])


mcp = MCPServer(
    os.environ["SHOP_NAME"],
    auth=auth(),
    sessions=sessions(),
    tasks=tasks(),
    protocol=ProtocolOptions(page_size=2),
)


class Size(BaseModel):
    """What is asked for."""

    size: int


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def running() -> str:
    """Return the version that answers."""
    return VERSION


@mcp.tool
def who(context: Context) -> str:
    """Return the user who calls, and the name of the client."""
    user = context.principal.subject if context.principal else "nobody"
    return f"{user} {context.client_info['name']}"


@mcp.tool
def note(token: str) -> str:
    """Append a line to the file of calls, which has each call that was run."""
    with (FOLDER / "calls").open("a", encoding="utf-8") as file:
        file.write(f"{token}\n")
    return token


@mcp.tool
async def order(what: str, context: Context) -> str:
    """Order something; the size is asked for."""
    answer = await context.elicit("Which size?", Size)
    return f"{what} in {answer.content.size}" if answer.content else answer.action


@mcp.tool
async def log(context: Context) -> str:
    """Send a message of level info, and one of level error."""
    await context.info("a word")
    await context.error("a worry")
    return VERSION


@mcp.tool
async def touch(uri: str) -> str:
    """Report that a resource has changed."""
    mcp.notify_resource_updated(uri)
    return uri


@mcp.resource("menu://{dish}")
async def dish(dish: str) -> str:
    """Return a dish."""
    return dish


if os.environ.get("SHOP_TASKS"):
    OPTIONS = TaskOptions(poll=0.1)

    @mcp.tool(task=OPTIONS)
    async def cook(dish: str) -> str:
        """Cook a dish, once."""
        with (FOLDER / "calls").open("a", encoding="utf-8") as file:
            file.write(f"{dish}\n")
        return f"{dish} is ready"

    @mcp.tool(task=OPTIONS)
    async def prepare(dish: str, context: Context) -> str:
        """Ask for the size of a dish."""
        answer = await context.elicit("Which size?", Size)
        return f"{dish} in {answer.content.size}" if answer.content else answer.action

    @mcp.tool(task=OPTIONS, idempotent=True)
    async def bake(dish: str) -> str:
        """Bake until there is a file with the name of the dish; another process may begin anew."""
        with (FOLDER / "begun").open("a", encoding="utf-8") as file:
            file.write(f"{dish}\n")
        while not (FOLDER / dish).exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.05)
        return f"{dish} by {VERSION}"

"""pytest-asyncio: clients of a server of funcmcp.compat in the loop of the session and in those of functions."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from shop import Pool

from funcmcp.compat import Context, FastMCP
from funcmcp.testing import Client


@asynccontextmanager
async def open_pool(_server):
    pool = Pool()
    yield {"pool": pool}
    await pool.use()  # in the loop that opened it
    pool.is_open = False


mcp = FastMCP("Shop", lifespan=open_pool)


@mcp.tool
async def use(ctx: Context) -> str:
    """Use the pool of the lifespan."""
    return await ctx.request_context.lifespan_context["pool"].use()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def session_client():
    async with Client(mcp) as client:
        yield client


@pytest_asyncio.fixture
async def client():
    async with Client(mcp) as client:
        yield client


@pytest.mark.asyncio
async def test_first(client):
    assert (await client.call_tool("use")).text == "open"


@pytest.mark.asyncio(loop_scope="session")
async def test_session(session_client):
    assert (await session_client.call_tool("use")).text == "open"


@pytest.mark.asyncio
async def test_second(session_client, client):
    assert (await client.call_tool("use")).text == "open"
    async with Client(mcp) as other:
        assert (await other.call_tool("use")).text == "open"


@pytest.mark.asyncio(loop_scope="session")
async def test_session_again(session_client):
    assert (await session_client.call_tool("use")).text == "open"
    assert (await mcp.call_tool("use")).content[0].text == "open"

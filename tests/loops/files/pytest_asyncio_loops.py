"""pytest-asyncio: a client in the loop of the session, and others in the loops of functions."""

from __future__ import annotations

import pytest
import pytest_asyncio
from shop import mcp

from funcmcp.testing import Client


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
    assert (await client.call_tool("use")).text == "open open"


@pytest.mark.asyncio(loop_scope="session")
async def test_session(session_client):
    assert (await session_client.call_tool("use")).text == "open open"


@pytest.mark.asyncio
async def test_second(session_client, client):
    assert (await client.call_tool("use_in_a_thread")).text == "open open"


@pytest.mark.asyncio(loop_scope="session")
async def test_session_again(session_client):
    assert (await session_client.call_tool("use_in_a_thread")).text == "open open"

"""anyio's pytest plugin: fixtures and tests run in one task of its runner."""

from __future__ import annotations

import anyio
import pytest
from shop import mcp

from funcmcp.testing import Client

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request):
    return request.param


@pytest.fixture(scope="module")
async def module_client():
    async with Client(mcp) as client:
        yield client


@pytest.fixture
async def client():
    async with Client(mcp) as client:
        yield client


async def test_first(module_client, client):
    assert (await client.call_tool("use")).text == "open open"
    assert (await module_client.call_tool("use")).text == "open open"


async def test_a_loop_of_a_thread(client):
    def in_a_thread():
        async def main():
            async with Client(mcp) as other:
                return (await other.call_tool("use")).text

        return anyio.run(main)

    assert await anyio.to_thread.run_sync(in_a_thread) == "open open"
    assert (await client.call_tool("use_in_a_thread")).text == "open open"

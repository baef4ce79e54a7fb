"""A server that counts for each session: clients of the proxy never see each other's count."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from tests import nodejs
from tests.patience import PATIENCE
from tests.proxy.serving import proxy, started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.serving import Served

pytestmark = pytest.mark.slow("Many clients call through several processes.")

COUNTER = Path(__file__).with_name("counter.mjs")
CLIENTS, CALLS = 5, 4


@contextmanager
def counter(transport: str) -> Iterator[dict[str, Any]]:
    """Yield a row of PROXY for the counter. It speaks 2025-11-25 only."""
    nodejs.package("@modelcontextprotocol/sdk")
    command = [str(nodejs.node()), str(COUNTER), str(nodejs.HOME), transport]
    if transport == "stdio":
        yield {"command": command, "prefix": "my"}
        return
    with started(command, "running on") as lines:
        yield {"url": f"{lines[0].rpartition(' ')[2]}/mcp", "prefix": "my"}


@pytest.fixture(scope="module", params=["stdio", "http"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with counter(request.param) as row, proxy(row) as served:
        yield served


async def counts_of_one_client(url: str, others: asyncio.Barrier) -> list[int]:
    """Call in step with other clients."""
    counts = []
    async with Client(url, mode="legacy", read_timeout_seconds=PATIENCE) as client:
        for _ in range(CALLS):
            await others.wait()
            result = await client.call_tool("my_count", {})
            counts.append(int(result.content[0].text))  # type: ignore[union-attr]
    return counts


async def test_each_client_has_a_count_of_its_own(served: Served) -> None:
    together = asyncio.Barrier(CLIENTS)
    counts = await asyncio.gather(*(counts_of_one_client(served.url, together) for _ in range(CLIENTS)))
    assert counts == [list(range(1, CALLS + 1))] * CLIENTS


async def test_a_client_that_comes_later_begins_at_one(served: Served) -> None:
    alone = asyncio.Barrier(1)
    for _ in range(2):
        assert await counts_of_one_client(served.url, alone) == list(range(1, CALLS + 1))

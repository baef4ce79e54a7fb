"""Many clients of three instances: each goes on at any instance, with its own session at the upstream, which ends.

There are 400 of them, all of which are open at once, ten times as many as act at the same time. The environment
variable CLIENTS sets another number, such as the 10,000 sessions that an upstream may have by default.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests import nodejs
from tests.instances import Caller
from tests.patience import PATIENCE
from tests.proxy.serving import started
from tests.redis_server import redis_server
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

pytestmark = [
    pytest.mark.slow("Many clients call through three processes."),
    pytest.mark.timeout(1800),
]

CLIENTS = int(os.environ.get("CLIENTS", "400"))
INSTANCES, AT_ONCE = 3, 40
COUNTER = Path(__file__).with_name("counter.mjs")
INSTANCE = Path(__file__).with_name("instance.py")


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    """The origin of a server that counts for each session; it speaks 2025-11-25 only."""
    nodejs.package("@modelcontextprotocol/sdk")
    with started([str(nodejs.node()), str(COUNTER), str(nodejs.HOME), "http"], "running on") as lines:
        yield lines[0].rpartition(" ")[2]


@pytest.fixture(scope="module")
def instances(upstream: str) -> Iterator[list[str]]:
    with redis_server() as redis, ExitStack() as stack:
        variables = {
            "REDIS": redis.url,
            "PREFIX": secrets.token_hex(4),
            "UPSTREAM": f"{upstream}/mcp",
            "SESSIONS": str(CLIENTS),
            "FUNCMCP_KEYS": secrets.token_urlsafe(32),
            "PYTHONPATH": str(REPOSITORY),
        }
        yield [stack.enter_context(serve(INSTANCE, env=variables)).url for _ in range(INSTANCES)]


async def for_all(callers: list[Caller], act: Callable[[int, Caller], Awaitable[None]]) -> None:
    """Do something for all clients, some at a time."""
    waiting = iter(enumerate(callers))

    async def work() -> None:
        for number, caller in waiting:
            await act(number, caller)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def open_sessions(http: httpx2.AsyncClient, upstream: str) -> int:
    """Return the number of sessions that the upstream has."""
    return int((await http.get(f"{upstream}/sessions")).text)


async def test_all_clients_go_on_at_any_instance(upstream: str, instances: list[str]) -> None:
    # uvicorn closes connections that are idle for 5 s. The client has to stop using them before that.
    limits = httpx2.Limits(max_connections=2 * AT_ONCE, keepalive_expiry=1.0)
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False, limits=limits) as http:
        callers = [Caller(http) for _ in range(CLIENTS)]

        def url(number: int, step: int) -> str:
            return instances[(number + step) % INSTANCES]

        async def begin(number: int, caller: Caller) -> None:
            await caller.begin(url(number, 0), capabilities={})
            assert await caller.call(url(number, 0), "my_count") == "1"

        async def go_on(number: int, caller: Caller) -> None:
            counts = [await caller.call(url(number, step), "my_count") for step in (1, 2, 0)]
            assert counts == ["2", "3", "4"]

        async def end(number: int, caller: Caller) -> None:
            ended = await http.delete(url(number, 2), headers=caller.session)
            assert ended.status_code in {200, 204}

        await for_all(callers, begin)
        assert await open_sessions(http, upstream) >= CLIENTS
        await for_all(callers, go_on)
        await for_all(callers, end)
        async with asyncio.timeout(PATIENCE):  # each instance has one session for lists
            while await open_sessions(http, upstream) > INSTANCES:
                pass

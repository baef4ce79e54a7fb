"""Instances of one server, and a client that picks among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.cluster.serving import instances
from tests.instances import Caller
from tests.patience import PATIENCE
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.redis_server import RedisServer


@pytest.fixture(scope="package")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(scope="package")
def shops(redis: RedisServer) -> Iterator[list[str]]:
    """Three instances with sessions in Redis."""
    with instances(redis, 3) as urls:
        yield urls


@pytest.fixture(scope="package")
def signed_shops(redis: RedisServer) -> Iterator[list[str]]:
    """Two instances with signed sessions, and a bus between them."""
    with instances(redis, 2, "signed") as urls:
        yield urls


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        yield Caller(http)

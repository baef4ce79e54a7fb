"""Instances of one server, and a client that picks among them."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.instances import PATIENCE, Caller
from tests.redis_server import redis_server
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.redis_server import RedisServer

SHOP = Path(__file__).parent / "shop.py"


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@contextmanager
def instances(redis: RedisServer, count: int, sessions: str = "redis") -> Iterator[list[str]]:
    """Serve so many instances; yield their endpoints."""
    env = {"SHOP_REDIS": redis.url, "SHOP_SESSIONS": sessions, "FUNCMCP_KEYS": secrets.token_urlsafe(32)}
    with ExitStack() as stack:
        yield [stack.enter_context(serve(SHOP, env=env)).url for _ in range(count)]


@pytest.fixture(scope="module")
def shops(redis: RedisServer) -> Iterator[list[str]]:
    """Three instances with sessions in Redis."""
    with instances(redis, 3) as urls:
        yield urls


@pytest.fixture(scope="module")
def signed_shops(redis: RedisServer) -> Iterator[list[str]]:
    """Two instances with signed sessions, and a bus between them."""
    with instances(redis, 2, "signed") as urls:
        yield urls


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        yield Caller(http)

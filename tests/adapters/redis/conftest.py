from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.redis.link import RedisLink
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.redis_server import RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as running:
        yield running


@pytest.fixture
async def link(server: RedisServer) -> AsyncIterator[RedisLink]:
    link = RedisLink(server.url)
    yield link
    await link.aclose()

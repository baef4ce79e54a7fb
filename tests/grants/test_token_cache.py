"""Tokens that are requested once at a time, and bounded in number."""

from __future__ import annotations

import asyncio

from funcmcp._grants import token_cache
from funcmcp._grants.token_cache import Issued, TokenCache
from tests.auth.making_tokens import NOW, Clock


class Requests:
    """Requests for tokens that wait, and fail or not."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self) -> Issued:
        self.count += 1
        await self.may_end.wait()
        return Issued(f"token-{self.count}", NOW + 60)


async def test_a_caller_that_leaves_does_not_end_the_request_of_others() -> None:
    cache, request = TokenCache(Clock()), Requests()
    request.may_end.clear()
    first, second = (asyncio.create_task(cache.get(("ada",), request)) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    request.may_end.set()
    assert await second == "token-1"
    assert request.count == 1


async def test_the_number_of_tokens_is_bounded_and_those_that_have_ended_go_first() -> None:
    clock = Clock()
    cache, request = TokenCache(clock), Requests()
    limit = token_cache._MAX_TOKENS
    await cache.get(("old",), request)
    clock.now += 120
    for number in range(limit + 50):
        await cache.get((str(number),), lambda: _issued(clock))
    assert len(cache._tokens) == limit
    assert ("old",) not in cache._tokens


async def _issued(clock: Clock) -> Issued:
    return Issued("token", clock.now + 60)

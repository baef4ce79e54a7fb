"""Tokens that are requested once at a time, and bounded in number."""

from __future__ import annotations

import asyncio

import pytest

from funcmcp._auth.principal import UpstreamTokenError
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


async def test_a_token_is_cached_until_it_expires_or_is_dropped() -> None:
    clock = Clock()
    cache, request = TokenCache(clock), Requests()
    for _ in range(2):
        assert await cache.get(("ada",), request) == "token-1"
    cache.drop(("ada",), "another")
    assert await cache.get(("ada",), request) == "token-1"
    cache.drop(("ada",), "token-1")
    assert await cache.get(("ada",), request) == "token-2"
    clock.now += 60
    assert await cache.get(("ada",), request) == "token-3"


async def test_a_failure_holds_for_some_seconds() -> None:
    clock = Clock()
    cache, count = TokenCache(clock), 0

    async def fail() -> Issued:
        nonlocal count
        count += 1
        raise UpstreamTokenError("unavailable", "away")

    for seconds, expected in ((0, 1), (1, 1), (5, 2)):
        clock.now += seconds
        with pytest.raises(UpstreamTokenError, match="away"):
            await cache.get(("ada",), fail)
        assert count == expected


def test_a_request_of_another_event_loop_is_not_waited_for() -> None:
    cache, request = TokenCache(Clock()), Requests()

    async def get() -> str:
        request.may_end = asyncio.Event()
        request.may_end.set()
        return await cache.get(("ada",), request)

    async def begin() -> None:
        request.may_end = asyncio.Event()
        task = asyncio.create_task(cache.get(("ada",), request))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(begin())
    assert asyncio.run(get()) == "token-2"

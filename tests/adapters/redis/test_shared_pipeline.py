from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ResponseError

from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.shared_pipeline import SharedPipeline
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    from tests.redis_server import RedisServer

pytestmark = pytest.mark.lowest("redis sends the commands.")


class Echo:
    """Sends calls of ECHO, and counts the pipelines."""

    def __init__(self) -> None:
        self.pipelines: list[list[str]] = []

    async def send(self, redis: Redis, calls: Sequence[str]) -> list[Any] | None:
        self.pipelines.append(list(calls))
        pipeline = redis.pipeline(transaction=False)
        for call in calls:
            pipeline.execute_command(*call.split(" "))
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        return None if 1 in replies else replies


async def test_calls_of_one_iteration_go_together_and_get_their_own_replies(link: RedisLink) -> None:
    echo = Echo()
    calls = SharedPipeline(link, echo.send)
    assert await asyncio.gather(*(calls.do(f"ECHO {n}") for n in range(5))) == [b"%d" % n for n in range(5)]
    assert await calls.do("ECHO 5") == b"5"
    assert [len(pipeline) for pipeline in echo.pipelines] == [5, 1]


async def test_a_call_that_redis_refuses_does_not_fail_the_others(link: RedisLink) -> None:
    calls = SharedPipeline(link, Echo().send, store="task store")
    replies = await asyncio.gather(calls.do("ECHO 1"), calls.do("NONSENSE"), calls.do("ECHO 2"), return_exceptions=True)
    assert (replies[0], replies[2]) == (b"1", b"2")
    assert isinstance(replies[1], StoreUnavailableError)
    assert str(replies[1]) == "The task store of the server is unavailable now."
    assert isinstance(replies[1].__cause__, ResponseError)


async def test_a_reply_of_another_type_fails_all_calls(link: RedisLink) -> None:
    calls = SharedPipeline(link, Echo().send)
    replies = await asyncio.gather(
        calls.do("ECHO 1"), calls.do("EXISTS x"), calls.do("LPUSH l 1"), return_exceptions=True
    )
    assert [type(reply) for reply in replies] == [StoreUnavailableError] * 3


async def test_a_cancelled_call_leaves_the_others(link: RedisLink) -> None:
    calls = SharedPipeline(link, Echo().send)
    first, second = asyncio.create_task(calls.do("ECHO 1")), asyncio.create_task(calls.do("ECHO 2"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == b"2"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_calls_fail_together_while_redis_is_away() -> None:
    link = RedisLink("redis://127.0.0.1:1")
    calls = SharedPipeline(link, Echo().send)
    replies = await asyncio.gather(calls.do("ECHO 1"), calls.do("ECHO 2"), return_exceptions=True)
    assert [type(reply) for reply in replies] == [StoreUnavailableError] * 2
    assert replies[0] is not replies[1]  # each has a traceback of its own


def test_another_event_loop_has_its_own_calls(server: RedisServer) -> None:
    echo = Echo()
    link = RedisLink(server.url)
    calls = SharedPipeline(link, echo.send)

    async def leave_a_call() -> None:
        waiting = asyncio.create_task(calls.do("ECHO 1"))
        await asyncio.sleep(0)
        waiting.cancel()

    async def call() -> Any:
        reply = await calls.do("ECHO 2")
        await calls.aclose()
        await link.aclose()
        return reply

    asyncio.run(leave_a_call())
    assert asyncio.run(call()) == b"2"


async def test_closing_waits_for_calls_under_way(link: RedisLink) -> None:
    calls = SharedPipeline(link, Echo().send)
    waiting = asyncio.create_task(calls.do("ECHO 1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await calls.aclose()
    assert await waiting == b"1"

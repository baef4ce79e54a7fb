"""Redis stops, is killed or hangs under two instances, and comes back."""

from __future__ import annotations

import asyncio
import signal
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.redis.link import RedisLink
from tests.cluster.serving import instances
from tests.instances import INITIALIZE, per_request, text_of
from tests.patience import PATIENCE
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import httpx2

    from tests.instances import Caller
    from tests.redis_server import RedisServer

    Do = Callable[[Any], Awaitable[None]]

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")


ADD = per_request("tools/call", name="add", arguments={"a": 1, "b": 2})
STEP_SECONDS = 1.0
"""Each refusal takes as long while Redis is paused. On a busy machine a step may take longer and be refused, too."""

FAULTS = pytest.mark.parametrize("fault", ["stop", "kill", "pause"])


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(scope="module")
def shops(redis: RedisServer) -> Iterator[list[str]]:
    with instances(redis, 2, step_seconds=STEP_SECONDS) as urls:
        yield urls


@pytest.fixture(scope="module")
def signed_shops(redis: RedisServer) -> Iterator[list[str]]:
    with instances(redis, 2, "signed", step_seconds=STEP_SECONDS) as urls:
        yield urls


def take_away(redis: RedisServer, fault: str) -> None:
    if fault == "pause":
        redis.pause()
    else:
        redis.stop(signal.SIGKILL if fault == "kill" else signal.SIGTERM)


def bring_back(redis: RedisServer, fault: str) -> float:
    """Bring Redis back; return until when all must be well again."""
    (redis.resume if fault == "pause" else redis.start)()
    return monotonic() + PATIENCE


def assert_refused(response: httpx2.Response, request_id: int | None) -> None:
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) >= 1
    body = response.json()
    assert body["error"]["code"] == -32603
    assert body.get("id") == request_id


async def until_answered(caller: Caller, url: str, request: dict[str, Any], until: float) -> httpx2.Response:
    """Send a request until it is answered; whatever is said before must be that it is not possible now."""
    while (response := await caller.post(url, request)).status_code != 200:
        assert_refused(response, request["id"])
        assert monotonic() < until
        await asyncio.sleep(0.05)
    return response


async def is_well(caller: Caller, url: str, until: float) -> None:
    """Call until it is answered."""
    response = await until_answered(
        caller, url, caller.request("tools/call", name="add", arguments={"a": 1, "b": 2}), until
    )
    assert text_of(response.json()) == "3"


async def begin(caller: Caller, url: str) -> None:
    """Begin a session as soon as it is possible: an instance may still hear of what the test before did to Redis."""
    request = {"id": 0, "method": "initialize", "params": INITIALIZE}
    response = await until_answered(caller, url, request, monotonic() + PATIENCE)
    caller.session = {"mcp-session-id": response.headers["mcp-session-id"]}


@FAULTS
@pytest.mark.parametrize("kind", ["shops", "signed_shops"])
async def test_what_needs_redis_is_503_and_the_rest_goes_on(
    kind: str, fault: str, redis: RedisServer, caller: Caller, request: pytest.FixtureRequest
) -> None:
    urls: list[str] = request.getfixturevalue(kind)
    await begin(caller, urls[0])
    take_away(redis, fault)
    try:
        for url in urls * 3:
            call = caller.request("tools/call", name="add", arguments={"a": 1, "b": 2})
            assert_refused(await caller.post(url, call), call["id"])
            assert_refused(await caller.http.delete(url, headers=caller.session), None)
            message, headers = ADD
            assert text_of((await caller.post(url, message, **headers)).json()) == "3"
            begun = await caller.post(url, {"id": 7, "method": "initialize", "params": INITIALIZE})
            if kind == "shops":
                assert_refused(begun, 7)
            else:
                assert begun.status_code == 200  # a signed session needs no store to begin
    finally:
        until = bring_back(redis, fault)
    for url in urls:
        await is_well(caller, url, until)


@FAULTS
async def test_open_streams_stay_and_hear_again_when_redis_is_back(
    fault: str, redis: RedisServer, shops: list[str], caller: Caller
) -> None:
    await begin(caller, shops[0])
    for uri in ("menu://today", "menu://other"):
        await caller.ask(shops[0], "resources/subscribe", uri=uri)
    wish, headers = per_request("subscriptions/listen", notifications={"resourceSubscriptions": ["menu://today"]})
    async with caller.stream(shops[1]) as general, caller.stream(shops[1], wish, **headers) as listening:
        await listening.message()
        take_away(redis, fault)
        message, more = per_request("tools/call", name="touch", arguments={"uri": "menu://today"})
        await caller.post(shops[0], message, **more)  # nobody at the other instance hears it now
        until = bring_back(redis, fault)
        await is_well(caller, shops[0], until)
        # What may have been missed is told once Redis is back.
        told = await listening.message()
        assert told is not None
        assert told["params"]["uri"] == "menu://today"
        # After a pause nothing can have been lost; else an instance can't know what was.
        missed = {"menu://today"} if fault == "pause" else {"menu://today", "menu://other"}
        uris: set[str] = set()
        while not missed <= uris:
            told = await general.message()
            assert told is not None
            uris |= {told["params"].get("uri")} - {None}
        assert monotonic() < until
        await caller.call(shops[0], "touch", uri="menu://today")
        told = await listening.message()
        assert told is not None
        assert told["params"]["uri"] == "menu://today"


async def cut(redis: Any) -> None:
    await redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


async def slow_down(redis: Any) -> None:
    await redis.execute_command("DEBUG", "SLEEP", "0.3")


async def fill(redis: Any) -> None:
    await redis.config_set("maxmemory", "1")


async def empty(redis: Any) -> None:
    await redis.config_set("maxmemory", "0")


async def make_read_only(redis: Any) -> None:
    await redis.execute_command("REPLICAOF", "127.0.0.1", "1")


async def make_writable(redis: Any) -> None:
    await redis.execute_command("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize(
    ("fault", "end"),
    [(cut, None), (slow_down, None), (fill, empty), (make_read_only, make_writable)],
    ids=["cut", "slow", "full", "read-only"],
)
async def test_a_redis_that_is_unwell_loses_no_session_and_gives_no_wrong_answer(
    fault: Do, end: Do | None, redis: RedisServer, shops: list[str], caller: Caller
) -> None:
    link = RedisLink(redis.url)
    await begin(caller, shops[0])
    for number in range(200):
        if number == 50:
            await link.do(fault)
        if number == 150 and end is not None:
            await link.do(end)
        call = caller.request("tools/call", name="add", arguments={"a": number, "b": 1})
        response = await caller.post(shops[number % 2], call)
        if response.status_code == 200:
            assert text_of(response.json()) == str(number + 1)
        else:
            assert_refused(response, call["id"])
    for url in shops:
        await is_well(caller, url, monotonic() + PATIENCE)
    await begin(caller, shops[1])
    await link.aclose()


async def test_an_answer_that_can_not_be_passed_on_is_503_and_may_be_sent_again(
    redis: RedisServer, shops: list[str], caller: Caller
) -> None:
    await begin(caller, shops[0])
    async with caller.stream(shops[0], caller.request("tools/call", name="order", arguments={"what": "Tea"})) as events:
        question = await events.message()
        assert question is not None
        redis.stop(signal.SIGKILL)
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 2}}}
        assert_refused(await caller.post(shops[1], answer), None)
        until = bring_back(redis, "kill")
        await is_well(caller, shops[1], until)
        assert (await caller.post(shops[1], answer)).status_code == 202
        ended = await events.message()
    assert ended is not None
    assert text_of(ended) == "Tea in 2"


async def test_a_run_that_waits_for_an_answer_goes_on_when_redis_was_away(
    redis: RedisServer, shops: list[str], caller: Caller
) -> None:
    await begin(caller, shops[0])
    async with caller.stream(shops[0], caller.request("tools/call", name="order", arguments={"what": "Tea"})) as events:
        question = await events.message()
        assert question is not None
        for fault in ("stop", "pause", "kill"):
            take_away(redis, fault)
            await is_well(caller, shops[1], bring_back(redis, fault))
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 3}}}
        assert (await caller.post(shops[1], answer)).status_code == 202
        ended = await events.message()
    assert ended is not None
    assert text_of(ended) == "Tea in 3"

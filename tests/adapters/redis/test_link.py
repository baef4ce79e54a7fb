"""The way to a real Redis, whose connections break."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from redis.exceptions import MovedError

from funcmcp._adapters.redis.bus import RedisBus
from funcmcp._adapters.redis.link import RedisLink
from funcmcp._adapters.redis.rates import RedisRates
from funcmcp._adapters.redis.revocations import RedisRevocations
from funcmcp._adapters.redis.sessions import RedisSessions
from funcmcp._state.sessions.store import Handshake, SessionKey, StoreUnavailableError
from tests.patience import PATIENCE
from tests.redis_forwarder import forwarder
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from tests.redis_forwarder import Forwarder

pytestmark = pytest.mark.lowest("redis sends the commands.")
_SLOW = pytest.mark.slow("It takes half a second or longer with a real store.")

HANDSHAKE = Handshake("2025-11-25", {}, {"name": "client", "version": "1"}, "somebody")
CONNECTIONS = 20
EVENT_LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@pytest.fixture(scope="module")
def forwarding() -> Iterator[Forwarder]:
    with redis_server() as server, forwarder(server.url.removeprefix("unix://")) as running:
        yield running


def run(new_loop: Callable[[], asyncio.AbstractEventLoop], work: Coroutine[Any, Any, None]) -> None:
    """Run a test on an event loop of its own."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work)


async def fill_the_pool(link: RedisLink) -> None:
    """Open several connections, which are idle afterwards."""
    await asyncio.gather(*(link.do(lambda redis: redis.blpop(["nothing"], 0.05)) for _ in range(CONNECTIONS)))


@_SLOW
@EVENT_LOOPS
def test_reset_connections_are_opened_again_and_nothing_fails(
    new_loop: Callable[[], asyncio.AbstractEventLoop], forwarding: Forwarder, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        link = RedisLink(forwarding.url, timeout=10)
        sessions, revocations, bus = RedisSessions(link), RedisRevocations(link), RedisBus(link)
        rates = RedisRates(link, 1000, 1000)
        session_id = await sessions.create(HANDSHAKE)
        steps: list[Callable[[], Awaitable[Any]]] = [
            lambda: sessions.get(session_id),
            lambda: sessions.create(HANDSHAKE),
            lambda: sessions.end("a" * 44),
            lambda: sessions.notes(SessionKey(session_id)),
            lambda: sessions.note_level(SessionKey(session_id), "error"),
            lambda: sessions.note_subscription(SessionKey(session_id), "menu://a", subscribe=True),
            lambda: revocations.has("session"),
            lambda: revocations.add("session", 1),
            lambda: bus.send("topic", {}),
            lambda: rates.take("caller"),
        ]
        for step in steps:
            await fill_the_pool(link)
            assert forwarding.reset() >= CONNECTIONS
            await asyncio.sleep(0.05)  # the event loop notices
            for _ in range(CONNECTIONS):
                await step()
        assert await sessions.get(session_id) == HANDSHAKE
        await link.aclose()

    run(new_loop, scenario())
    assert [record.message for record in caplog.records] == []


@EVENT_LOOPS
def test_a_bus_hears_on_after_its_connection_is_reset(
    new_loop: Callable[[], asyncio.AbstractEventLoop], forwarding: Forwarder
) -> None:
    async def scenario() -> None:
        here, there = RedisBus(RedisLink(forwarding.url)), RedisBus(RedisLink(forwarding.url))
        heard: asyncio.Queue[Any] = asyncio.Queue()
        here.subscribe("topic", heard.put_nowait)
        await here.ready()
        for number in range(5):
            assert forwarding.reset()
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        await there.send("topic", {"number": number})
                        break
                    except StoreUnavailableError:
                        await asyncio.sleep(0.05)
                assert await heard.get() == {"number": number}
        assert heard.empty()
        await here.aclose()
        await there.aclose()

    run(new_loop, scenario())


@EVENT_LOOPS
@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":x\r\n", b"$-5\r\n", b"*1\r\n", b""])
def test_a_port_where_something_else_listens_is_a_store_that_is_away(
    new_loop: Callable[[], asyncio.AbstractEventLoop], answer: bytes
) -> None:
    async def scenario() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        link = RedisLink(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
        with pytest.raises(StoreUnavailableError):
            await RedisSessions(link).get("a" * 44)
        server.close()
        await link.aclose()

    run(new_loop, scenario())


@_SLOW
@pytest.mark.parametrize("reply", ["text", [1, 2], {1: 2}, b"bytes"])
def test_a_reply_of_another_type_is_a_store_that_is_away(forwarding: Forwarder, reply: object) -> None:
    async def scenario() -> None:
        link = RedisLink(forwarding.url)
        sessions, revocations, bus = RedisSessions(link), RedisRevocations(link), RedisBus(RedisLink(forwarding.url))
        steps: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("EVAL", lambda: sessions.end("a" * 44)),
            ("EVAL", lambda: revocations.add("session", 1)),
            ("ZSCORE", lambda: revocations.has("session")),
            ("HGETALL", lambda: sessions.notes(SessionKey("a" * 44))),
        ]
        if reply != [1, 2]:  # which says that there is no room
            steps.append(("EVAL", lambda: sessions.create(HANDSHAKE)))
        steps.append(("HMGET", lambda: sessions.get("a" * 44)))
        steps.append(("HMGET", lambda: sessions.end("a" * 44)))
        if reply != b"bytes":
            sessions._alive_until["b" * 44] = math.inf
            steps.append(("HGET", lambda: sessions.get("b" * 44)))
        for command, step in steps:
            assert await link.do(lambda redis: redis.ping()) is True
            link._redis.set_response_callback(command, lambda *_, **__: reply)
            with pytest.raises(StoreUnavailableError):
                await step()
            await asyncio.sleep(0.3)  # for a moment nothing is tried again
        assert await RedisRates(link, 1, 1).take("caller") == 0
        await bus.ready()
        bus._link._redis.set_response_callback("EVAL", lambda *_, **__: reply)
        with pytest.raises(StoreUnavailableError):
            await bus.other_instances()
        await bus.aclose()
        await link.aclose()

    run(asyncio.new_event_loop, scenario())


def test_a_bus_never_goes_on_from_a_position_that_is_not_one(forwarding: Forwarder) -> None:
    async def scenario() -> None:
        here, there = RedisBus(RedisLink(forwarding.url)), RedisBus(RedisLink(forwarding.url))
        heard: asyncio.Queue[Any] = asyncio.Queue()
        here.subscribe("topic", heard.put_nowait)
        replies = iter([[[b"stream", [(b"PONG", {b"m": b"{}"})]]]])
        callbacks: Any = here._link._redis.response_callbacks
        parse = callbacks["XREAD"]
        callbacks["XREAD"] = lambda reply, **options: next(replies, None) or parse(reply, **options)
        await here.ready()
        await there.send("topic", {"number": 1})
        async with asyncio.timeout(PATIENCE):
            assert await heard.get() == {"number": 1}
        await here.aclose()
        await there.aclose()

    run(asyncio.new_event_loop, scenario())


@_SLOW
@EVENT_LOOPS
def test_requests_that_find_all_connections_in_use_do_not_make_redis_look_away(
    new_loop: Callable[[], asyncio.AbstractEventLoop], forwarding: Forwarder, caplog: pytest.LogCaptureFixture
) -> None:
    async def many_at_once() -> None:
        link = RedisLink(forwarding.url, timeout=1.2)
        steps = [link.do(lambda redis: redis.blpop(["nothing"], 0.5), kind=object) for _ in range(150)]
        results = await asyncio.gather(*steps, return_exceptions=True)
        assert {type(result) for result in results} == {type(None), StoreUnavailableError}
        assert await link.do(lambda redis: redis.ping()) is True
        await link.aclose()

    run(new_loop, many_at_once())
    assert not caplog.messages


@pytest.mark.parametrize(
    ("setting", "value", "code"), [("min-replicas-to-write", 1, "NOREPLICAS"), ("maxmemory", 1, "OutOfMemoryError")]
)
async def test_the_log_says_why_redis_refuses_a_command(
    caplog: pytest.LogCaptureFixture, setting: str, value: int, code: str
) -> None:
    with redis_server() as server:
        link = RedisLink(server.url)
        await link.do(lambda redis: redis.config_set(setting, value))
        with pytest.raises(StoreUnavailableError):
            await link.do(lambda redis: redis.set("secret", "value"))
        await link.aclose()
    assert [record.message for record in caplog.records] == [
        f"Redis refuses a command ({code}). Requests that need Redis are answered with 503."
    ]


@pytest.mark.parametrize(("url", "is_named"), [("redis://localhost", True), ("redis+cluster://localhost:6379", False)])
async def test_a_node_of_a_cluster_is_told_how_to_be_reached(
    url: str, is_named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    link = RedisLink(url)
    link.note_failure(MovedError("1 127.0.0.1:6379"))
    (message,) = caplog.messages
    assert message.startswith("Redis refuses a command (MovedError).")
    assert ("write redis+cluster:// in the URL" in message) is is_named
    await link.aclose()

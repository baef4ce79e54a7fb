"""Three instances behind a proxy that sends each request to the next one, with a real Redis between them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.clients.plan import Step, Target, hear, tool
from tests.clients.players import PLAYERS, Player
from tests.cluster.proxy import round_robin
from tests.cluster.serving import instances
from tests.instances import INITIALIZE, text_of
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.instances import Caller
    from tests.redis_server import RedisServer

SESSIONS = 2000
AT_ONCE = 40
CALLS = 3
RECOVERY = 5.0
"""Seconds after which a request that a fault has hit is answered."""

_NOT_NOW = {502, 503, 504}
"""What the proxy says of an instance that has died, and an instance of Redis."""


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint in front of three instances that nothing happens to."""
    with instances(redis, 3) as urls, round_robin(urls, tmp_path_factory.mktemp("proxy")) as url:
        yield url


PLAN = [
    *(tool("add", {"a": number, "b": 1}) for number in range(6)),
    tool("order", {"what": "Tea"}, {"action": "accept", "content": {"size": 3}}),
    tool("order", {"what": "Tea"}, {"action": "decline"}),
    Step("watch", {"resourceSubscriptions": ["menu://today"]}),
    hear(("resources/updated", {"uri": "menu://today"}), again=["touch_today"]),
    *(tool("add", {"a": number, "b": 1}) for number in range(6)),
]


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_official_clients_notice_nothing_of_the_instances(player: Player, proxy: str) -> None:
    played = player.play(Target("http", proxy), PLAN)
    assert played.revision == player.revision
    texts = [call.result["content"][0]["text"] for call in played.calls if call.result and "content" in call.result]
    sums = [str(number + 1) for number in range(6)]
    assert texts == [*sums, "Tea in 3", "decline", *sums]
    assert [call.error for call in played.calls] == [None] * len(PLAN)


@dataclass
class Load:
    """Sessions that are begun and used, whatever happens meanwhile.

    Attributes:
        port: of the proxy.
        done: how many sessions have come to their end.
        waits: seconds that requests took which a fault has hit.
        instances: that have answered.
    """

    port: int
    done: int = 0
    waits: list[float] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self, count: int) -> None:
        """Run so many sessions, `AT_ONCE` at a time."""
        numbers = iter(range(count))
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._sessions(numbers))

    async def reached(self, count: int) -> None:
        """Wait until so many sessions have come to their end."""
        async with self.progress:
            await self.progress.wait_for(lambda: self.done >= count)

    async def _sessions(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self._session(number)
            async with self.progress:
                self.done += 1
                self.progress.notify_all()

    async def _session(self, number: int) -> None:
        """Begin a session, use it, and end it; every answer must be the right one."""
        answer, session = await self._ask("initialize", INITIALIZE, "")
        assert answer["result"]["serverInfo"]["name"] == "Shop"
        for one in range(CALLS):
            answer, _ = await self._ask("tools/call", {"name": "add", "arguments": {"a": number, "b": one}}, session)
            assert text_of(answer) == str(number + one)
        answer, _ = await self._ask("tools/call", {"name": "instance", "arguments": {}}, session)
        self.answered.add(text_of(answer))

    async def _ask(self, method: str, params: dict[str, Any], session: str) -> tuple[dict[str, Any], str]:
        """Send a request, again where it is not possible now; return the answer and the session that it began."""
        request_id = random.getrandbits(32)
        body = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()
        begun, hit = monotonic(), False
        while True:
            status, headers, answer = await self._send(body, session)
            if status == 200:
                break
            assert status in _NOT_NOW, (status, answer)
            hit = True
            assert monotonic() - begun < RECOVERY
            await asyncio.sleep(0.05)
        if hit:
            self.waits.append(monotonic() - begun)
        said = json.loads(answer)
        assert said["id"] == request_id
        return said, headers.get("mcp-session-id", "")

    async def _send(self, body: bytes, session: str) -> tuple[int, dict[str, str], bytes]:
        """Send one request on a connection of its own; a connection that breaks counts as 502."""
        head = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
        if session:
            head += f"mcp-session-id: {session}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
            answer = await reader.read()
        except ConnectionError:
            answer = b""
        finally:
            writer.close()
        if not answer:
            return 502, {}, b""
        lines, _, content = answer.partition(b"\r\n\r\n")
        status, *fields = lines.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in fields)
        return int(status.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}, content


async def test_sessions_survive_the_death_of_an_instance_and_a_restart_of_redis(tmp_path: Path, caller: Caller) -> None:
    with redis_server() as redis, instances(redis, 3) as urls, round_robin(urls, tmp_path) as proxy:
        load = Load(urlsplit(proxy).port or 0)
        await caller.begin(proxy)
        dying = int(await caller.call(urls[0], "pid"))
        order = caller.request("tools/call", name="order", arguments={"what": "Tea"})
        async with (
            asyncio.timeout(60),
            asyncio.TaskGroup() as group,
            caller.stream(urls[1]) as general,
            caller.stream(urls[2], order) as asking,
        ):
            question = await asking.message()
            assert question is not None
            group.create_task(load.run(SESSIONS))
            await load.reached(SESSIONS // 4)
            assert len(load.answered) == 3
            os.kill(dying, signal.SIGKILL)
            await load.reached(SESSIONS // 2)
            redis.stop(signal.SIGKILL)
            redis.start()
            answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 3}}}
            await until(202, caller, urls[1], answer)
            ended = await asking.message()
            assert ended is not None
            assert text_of(ended) == "Tea in 3"
            touch = caller.request("tools/call", name="touch", arguments={"uri": "menu://today"})
            await until(200, caller, proxy, caller.request("resources/subscribe", uri="menu://today"))
            await until(200, caller, proxy, touch)
            while (told := await general.message()) is not None:
                if told["method"] == "notifications/resources/updated":
                    break
            assert told is not None
            assert told["params"] == {"uri": "menu://today"}
    assert load.done == SESSIONS
    assert load.waits, "the faults hit nobody"
    assert max(load.waits) < RECOVERY


async def until(status: int, caller: Caller, url: str, message: dict[str, Any]) -> None:
    """Send a message until it is answered; what is said before must be that it is not possible now."""
    begun = monotonic()
    while (response := await caller.post(url, message)).status_code != status:
        assert response.status_code in _NOT_NOW
        assert monotonic() - begun < RECOVERY
        await asyncio.sleep(0.05)

"""Thousands of sessions of many principals, each request at an instance by chance, while instances and Redis die.

No answer may be a wrong one, no session may be given to another principal, and what a fault has hit has to be well
again in five seconds.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.clients.players import HANDSHAKE, PER_REQUEST
from tests.cluster.load import NOT_NOW, Load
from tests.cluster.proxy import proxied
from tests.cluster.serving import instances
from tests.cluster.steady import Use, use_python, use_typescript
from tests.cluster.tokens import Tokens
from tests.instances import Caller, text_of
from tests.patience import PATIENCE
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.steady import Steady
    from tests.instances import Events
    from tests.redis_server import RedisServer

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")

SESSIONS = 2000
PRINCIPALS = [f"caller-{number}" for number in range(20)]
MENU = "menu://today"


EXCUSE = re.compile(
    r"The store of the server is unavailable now|Server returned an error response|50[234] |terminated|timed out",
    re.IGNORECASE,
)
"""What the clients may say while something is dead; of a session that is not there they say something else."""


class Trial:
    """Instances with all that goes on at them.

    Args:
        urls: of the instances.
        proxy: in front of them.
        redis: between them.
        tokens: of those who call.
        http: sends the requests of a caller whose streams are looked at.
    """

    def __init__(
        self, urls: list[str], proxy: str, redis: RedisServer, tokens: Tokens, http: httpx2.AsyncClient
    ) -> None:
        self.urls = urls
        self.proxy = proxy
        self.redis = redis
        self.load = Load(urlsplit(proxy).port or 0, tokens, PRINCIPALS)
        self.caller = Caller(http, tokens.headers("alice"))
        self.tokens = tokens

    async def used(self, share: float) -> None:
        """Wait until so much of the use of the sessions is done."""
        await self.load.until(lambda: self.load.done >= share * self.load.wanted)

    async def restart_redis(self) -> None:
        """Kill Redis, and start it again when somebody has felt it."""
        before = self.load.not_now
        self.redis.stop(signal.SIGKILL)
        await self.load.until(lambda: self.load.not_now > before)
        await asyncio.to_thread(self.redis.start)

    async def kill(self, url: str) -> None:
        """Kill an instance."""
        os.kill(int(await self.caller.call(url, "pid")), signal.SIGKILL)

    async def until(self, status: int, url: str, message: dict[str, Any]) -> None:
        """Send a message until it is answered; what is said before must be that it is not possible now."""
        async with asyncio.timeout(PATIENCE):
            while (response := await self.caller.post(url, message)).status_code != status:
                assert response.status_code in NOT_NOW
                await asyncio.sleep(0.05)

    async def hear_again(self, dead: Events) -> None:
        """See a stream end with its instance, and hear of a change on one at an instance that lives."""
        with suppress(httpx2.HTTPError):
            while await dead.message() is not None:
                pass
        async with asyncio.timeout(PATIENCE), self.caller.stream(self.urls[-1]) as stream:
            assert stream.response.status_code == 200
            await self.touch(stream)

    async def touch(self, stream: Events) -> None:
        """Tell of a change at any instance, and hear of it on a stream."""
        await self.until(200, self.proxy, self.caller.request("tools/call", name="touch", arguments={"uri": MENU}))
        while (told := await stream.message()) is not None:
            if told["method"] == "notifications/resources/updated":
                assert told["params"] == {"uri": MENU}
                return
        raise AssertionError("the stream has ended")

    async def answer(self, question: dict[str, Any] | None, asking: Events) -> None:
        """Answer at one instance what another one asked before Redis was away."""
        assert question is not None
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 3}}}
        await self.until(202, self.urls[0], answer)
        ended = await asking.message()
        assert ended is not None
        assert text_of(ended) == "Tea in 3"

    async def run(self) -> None:
        """Let Redis die and come back, and then instances die but for one, in the middle of the load."""
        order = self.caller.request("tools/call", name="order", arguments={"what": "Tea"})
        await self.caller.begin(self.proxy)
        assert "result" in await self.caller.ask(self.proxy, "resources/subscribe", uri=MENU)
        async with self.caller.stream(self.urls[0]) as general, self.caller.stream(self.urls[-1], order) as asking:
            question = await asking.message()
            await self.used(0.2)
            assert len(self.load.answered) == len(self.urls)
            await self.restart_redis()
            await self.answer(question, asking)
            await self.touch(general)
            await self.used(0.5)
            await self.kill(self.urls[0])
            await self.hear_again(general)
        for number, url in enumerate(self.urls[1:-1]):
            await self.used(0.7 + number / 10)
            await self.kill(url)


@pytest.fixture(params=[2, 3], ids=lambda count: f"{count}-instances")
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[list[str], str, RedisServer, Tokens]]:
    tokens = Tokens()
    with (
        redis_server() as redis,
        instances(redis, request.param, tokens=tokens) as urls,
        proxied(urls, tmp_path) as proxy,
    ):
        yield urls, proxy, redis, tokens


async def test_no_session_is_lost_or_mixed_up_when_instances_and_redis_die(
    served: tuple[list[str], str, RedisServer, Tokens],
) -> None:
    _, proxy, _, tokens = served
    over = asyncio.Event()
    modes = {HANDSHAKE: "legacy", PER_REQUEST: PER_REQUEST}
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http, asyncio.timeout(PATIENCE):
        trial = Trial(*served, http)
        clients: list[tuple[str, str, asyncio.Task[Steady]]] = []
        async with asyncio.TaskGroup() as group:
            for revision, mode in modes.items():
                for name, use in (("python", use_python), ("typescript", use_typescript)):
                    connected = asyncio.Event()
                    work = use(Use(proxy, tokens.headers(f"{name}-{revision}"), mode), connected, over)
                    clients.append((name, revision, group.create_task(work)))
                    await connected.wait()
            await trial.load.begin(SESSIONS)
            using = group.create_task(trial.load.use())
            await trial.run()
            await using
            await trial.load.end(every=20)
            over.set()
    assert trial.load.not_now, "the faults hit nobody"
    for name, revision, client in clients:
        seen = client.result()
        assert seen.revision == revision
        assert seen.order == "Tea in 3"
        said = {text.rpartition(" ")[0] for text in seen.texts - {seen.order}}
        assert said == {f"{name}-{revision} {name}"}
        assert not {error for error in seen.errors if not EXCUSE.search(error)}

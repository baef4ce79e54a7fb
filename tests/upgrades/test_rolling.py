"""A deployment is upgraded and rolled back, instance by instance, while clients use it: nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.instances import Caller, text_of
from tests.patience import PATIENCE
from tests.redis_server import redis_server
from tests.sign_in.people import CLIENT_ID, SECRET, oidc_provider
from tests.upgrades import values
from tests.upgrades.deployment import deployment
from tests.upgrades.values import ANSWER, RefusedError, SigningIn, created, per_request_result, until, until_noted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.upgrades.deployment import Deployment, Version

pytestmark = pytest.mark.slow("Servers of two versions start for each case.")

COUNT = 3
UPGRADE: list[Version] = ["0.2", "0.1"]
"""To the new version, and back."""

ROUNDS = 2
"""How often each client has to do its work between two changes of the deployment."""


class Load:
    """Clients that do their work again and again. A failure of one of them ends the test.

    Args:
        shop: The deployment.
        folder: Of the files of its instances.
        http: Sends the requests.
    """

    def __init__(self, shop: Deployment, folder: Path, http: httpx2.AsyncClient) -> None:
        self.shop = shop
        self.url = shop.url
        self.done: Counter[str] = Counter()
        self.versions: set[str] = set()
        self._folder = folder
        self._http = http
        self._news = asyncio.Condition()
        self._over = False
        self._sessions: list[Caller] = []
        self._numbers = itertools.count()

    @property
    def clients(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What the clients do, by a name for each of them."""
        return {
            "sessions": self.use_sessions,
            "questions": self.answer_question,
            "values": self.use_values,
            "tasks": self.run_tasks,
            "calls": self.call_once,
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let the clients work while the block runs."""
        async with asyncio.TaskGroup() as group:
            for name, work in self.clients.items():
                group.create_task(self._repeat(name, work))
            group.create_task(self._listen())
            yield
            self._over = True

    async def progress(self) -> None:
        """Wait until each client has done its work some more times."""
        before = self.done.copy()
        names = [*self.clients, "changes"]
        async with self._news:
            await self._news.wait_for(lambda: all(self.done[name] >= before[name] + ROUNDS for name in names))

    async def _repeat(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        while not self._over:
            await work()
            await self._note(name)

    async def _note(self, name: str) -> None:
        async with self._news:
            self.done[name] += 1
            self._news.notify_all()

    async def use_sessions(self) -> None:
        """Begin a session, and use all that have been begun."""
        caller = Caller(self._http)
        number = len(self._sessions)
        await caller.begin(self.url, clientInfo={"name": f"client-{number}", "version": "1"})
        self._sessions.append(caller)
        for name, session in enumerate(self._sessions):
            assert await session.call(self.url, "who") == f"nobody client-{name}"
            self.versions.add(await session.call(self.url, "running"))

    async def answer_question(self) -> None:
        """Answer a question of a call, which may be at another instance than the call."""
        caller = Caller(self._http)
        await caller.begin(self.url)
        call = caller.request("tools/call", name="order", arguments={"what": "Tea"})
        async with caller.stream(self.url, call) as events:
            question = await events.message()
            assert question is not None
            sent = await caller.post(self.url, {"id": question["id"], "result": ANSWER})
            assert sent.status_code == 202
            answer = await events.message()
        assert answer is not None
        assert text_of(answer) == "Tea in 3"

    async def use_values(self) -> None:
        """Use a cursor and the state of a call, each request at another instance."""
        for value in (values.cursor, values.state):
            async for _ in value(self.url, self._http, self._folder):
                pass

    async def run_tasks(self) -> None:
        """Run a task that asks, and one that must not run twice."""
        caller, number = Caller(self._http), next(self._numbers)
        asking = await created(caller, self.url, "prepare", f"pie-{number}")
        running = await created(caller, self.url, "cook", f"soup-{number}")
        question = await until(caller, self.url, asking, "input_required")
        answers = dict.fromkeys(question["inputRequests"], ANSWER)
        await per_request_result(caller, self.url, "tasks/update", taskId=asking, inputResponses=answers)
        assert text_of(await until(caller, self.url, asking, "completed")) == f"pie-{number} in 3"
        assert text_of(await until(caller, self.url, running, "completed")) == f"soup-{number} is ready"

    async def call_once(self) -> None:
        """Call a tool that must not run twice, in an event of 2026-07-28."""
        token = f"call-{next(self._numbers)}"
        result = await per_request_result(
            Caller(self._http), self.url, "tools/call", name="note", arguments={"token": token}
        )
        assert text_of({"result": result}) == token

    async def _listen(self) -> None:
        """Hear of changes on the stream of a session. When its instance ends, open it again."""
        caller, menu = Caller(self._http), "menu://today"
        await caller.begin(self.url)
        assert "result" in await caller.ask(self.url, "resources/subscribe", uri=menu)
        while not self._over:
            async with caller.stream(self.url) as changes:
                assert changes.response.status_code == 200
                is_open = True
                while is_open and not self._over:
                    await caller.call(self.url, "touch", uri=menu)
                    change = await changes.message()
                    is_open = change is not None
                    if change is not None:
                        assert change["params"] == {"uri": menu}
                        await self._note("changes")


async def replaced_with_tasks(load: Load, folder: Path, number: int, version: Version) -> None:
    """Replace an instance while tasks run, some of them in it, that end when no request reaches it any more."""
    caller = Caller(load._http)
    dishes = [f"bread-{version}-{number}-{index}" for index in range(COUNT)]
    baking = [await created(caller, load.url, "bake", dish) for dish in dishes]
    for dish in dishes:
        await until_noted(folder / "begun", dish)
    await load.shop.begin_replacement(number, version)
    await load.progress()
    stopping = asyncio.create_task(load.shop.end_replacement())
    for dish in dishes:
        (folder / dish).touch()
    for dish, task in zip(dishes, baking, strict=True):
        assert text_of(await until(caller, load.url, task, "completed")).startswith(f"{dish} by ")
    await stopping


async def test_nothing_is_lost_while_a_deployment_is_upgraded_and_rolled_back(tmp_path: Path) -> None:
    with redis_server() as redis:
        environment = {"SHOP_REDIS": redis.url, "SHOP_TASKS": "Redis"}
        with deployment(environment, tmp_path, count=COUNT) as shop:
            for number in range(COUNT):
                await shop.replace(number, "0.1")
            async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
                load = Load(shop, tmp_path, http)
                async with load.running():
                    await load.progress()
                    assert load.versions == {"0.1"}
                    for version, number in itertools.product(UPGRADE, range(COUNT)):
                        await replaced_with_tasks(load, tmp_path, number, version)
                    load.versions.clear()
                    await load.progress()
                assert load.versions == {"0.1"}
    calls = Counter((tmp_path / "calls").read_text(encoding="utf-8").split())
    assert {name for name, count in calls.items() if count != 1} == set()
    assert len(calls) == load.done["tasks"] + load.done["calls"]


class Users:
    """Users whose clients call a tool again and again with the access tokens that they have."""

    def __init__(self) -> None:
        self.signed_in: dict[str, SigningIn] = {}
        self._calls = 0
        self._over = False
        self._news = asyncio.Condition()

    async def call(self) -> None:
        """Call until the end of the test. A call that is refused ends it."""
        while not self._over:
            for name, user in [*self.signed_in.items()]:
                assert await user.call() == f"{name} client"
            async with self._news:
                self._calls += 1
                self._news.notify_all()
            await asyncio.sleep(0.01)

    async def progress(self) -> None:
        """Wait until each user has called all instances."""
        target = self._calls + COUNT + 1
        async with self._news:
            await self._news.wait_for(lambda: self._calls >= target)

    def end(self) -> None:
        """Make no more calls."""
        self._over = True


async def begun(shop: Deployment, users: Users, steps: int, name: str) -> SigningIn:
    """Begin a sign-in, and send the first requests of it."""
    user = SigningIn(shop.url, name)
    await user.run(*SigningIn.steps[:steps])
    if user.tokens:
        users.signed_in[name] = user
    return user


async def upgrade_with_sign_ins(shop: Deployment, users: Users) -> None:
    """Upgrade a deployment with a sign-in at each of its requests, and send them to 0.2 when two instances have it."""
    count = len(SigningIn.steps)
    waiting = {steps: await begun(shop, users, steps, f"user{steps}") for steps in range(1, count + 1)}
    await users.progress()
    for number in (1, 2):
        await shop.replace(number, "0.2")
        await users.progress()
    await shop.sign_in_at(1)
    for steps, user in waiting.items():
        await user.run(*SigningIn.steps[steps:], "refresh")
        users.signed_in[f"user{steps}"] = user
    await users.progress()
    await shop.replace(0, "0.2")
    await users.progress()


async def roll_back_with_sign_ins(shop: Deployment, users: Users) -> None:
    """Return to 0.1. Access tokens of 0.2 are accepted, and its applications register again."""
    await begun(shop, users, len(SigningIn.steps), "late")
    await shop.replace(0, "0.1")
    await users.progress()
    await shop.replace(2, "0.1")
    await shop.sign_in_at(0)
    await shop.replace(1, "0.1")
    await users.progress()
    for user in users.signed_in.values():
        with pytest.raises(RefusedError, match="500"):
            await user.run("refresh")
    await begun(shop, users, len(SigningIn.steps), "new")
    await users.progress()


@pytest.mark.parametrize("store", ["none", "Redis"])
async def test_sign_ins_go_on_if_their_paths_lead_to_one_version_at_a_time(store: str, tmp_path: Path) -> None:
    client = {"SHOP_SIGN_INS": store, "SHOP_CLIENT": CLIENT_ID, "SHOP_SECRET": SECRET}
    with ExitStack() as stack:
        environment = {"SHOP_REDIS": stack.enter_context(redis_server()).url, **client}
        shop = stack.enter_context(deployment(environment, tmp_path, count=COUNT))
        callback = f"{shop.url.removesuffix('/mcp')}/oauth/callback"
        shop.set("SHOP_UPSTREAM", stack.enter_context(oidc_provider(callback)))
        for number in range(COUNT):
            await shop.replace(number, "0.1")
        await shop.sign_in_at(0)
        users = Users()
        async with asyncio.TaskGroup() as group:
            group.create_task(users.call())
            await upgrade_with_sign_ins(shop, users)
            await roll_back_with_sign_ins(shop, users)
            users.end()
        for user in users.signed_in.values():
            await user.aclose()

"""Mixed traffic at three instances on a real Redis, which are killed and stopped and whose connections are reset.

``make soak`` runs it for SOAK_SECONDS (600). It prints a summary and exits with 1 if something went wrong.

How it works: clients play scenarios over and over, each request at an instance chosen at random. Meanwhile faults hit
one instance or all connections to Redis, and are recorded with their time. A request that fails is excused only if a
fault explains it: a broken connection or a late answer if its instance was hit, 503 if its instance or Redis was. The
scenario is then given up and counted as interrupted. Everything else is a violation: another status, a wrong, missing
or repeated message, a session that is lost or outlives its DELETE, a traceback in a log, growing memory. Once the
faults are over, every scenario has to pass without an excuse.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx2

from funcmcp._adapters.redis.link import RedisLink
from tests.cluster.serving import SHOP
from tests.cluster.tokens import Tokens
from tests.instances import Caller, per_request, text_of
from tests.redis_forwarder import forwarder
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from tests.instances import Events
    from tests.redis_forwarder import Forwarder

INSTANCES = 3
CLIENTS = 12
GRACE = 4.0
"""Seconds for which a fault explains failures after it is over."""

PATIENCE = 15.0
"""Seconds for which a scenario waits. A fault may have lost what it waits for, such as a cancellation."""

WARM_UP = 0.25
"""The part of the time after which memory must not grow any more."""

MAX_GROWTH = 16 * 1024 * 1024
START_SECONDS = 30.0
REDIS = "redis"
PRINCIPALS = [f"caller-{number}" for number in range(8)]


class Violation(Exception):
    """Something happened that must never happen."""


class Interrupted(Exception):
    """A scenario ended because of a fault."""


@dataclass
class Faults:
    """What was done to whom, and when."""

    spans: list[tuple[str, float, float]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def of(self, target: str, kind: str) -> Iterator[None]:
        """Record a fault for as long as the block runs."""
        self.kinds[kind] += 1
        index = len(self.spans)
        begin = monotonic()
        self.spans.append((target, begin, float("inf")))
        try:
            yield
        finally:
            self.spans[index] = (target, begin, monotonic())

    def explain(self, since: float, targets: Sequence[str]) -> bool:
        """Return whether a fault of one of the targets can explain a failure since then."""
        return any(target in targets and end + GRACE >= since for target, _, end in self.spans[-50:])

    def recent(self) -> str:
        """Return the last faults with the seconds since their beginning and their end."""
        now = monotonic()
        return ", ".join(f"{target} -{now - begin:.1f}..-{now - end:.1f} s" for target, begin, end in self.spans[-5:])


class Instance:
    """One instance, a process on a port of its own.

    Attributes:
        name: for the record of faults.
        url: of its endpoint.
        down: whether it has been killed and does not serve yet.
    """

    def __init__(self, number: int, folder: Path, env: dict[str, str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.name = f"instance {number}"
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.log = folder / f"{self.name}.log"
        self.down = True
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the process and wait until it accepts connections."""
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(SHOP.parent), "--no-use-colors", "shop:mcp"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it takes no time that matters here
                [*command, "--no-access-log", "--port", str(self.port)],
                env={**os.environ, **self._env},
                stdout=log,
                stderr=log,
            )
        async with asyncio.timeout(START_SECONDS):
            while self.down:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    self.down = False

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal; wait for its end if it is the last one."""
        assert self._process is not None
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self.down = True
            self._process.wait()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGKILL)

    def resident(self) -> int:
        """Return the bytes of memory that the process has."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Soak:
    """The trial.

    Attributes:
        done: scenarios that were played to their end, by name.
        interrupted: those that a fault ended.
        violations: sentences.
        ticked: tokens of calls that were answered.
    """

    instances: list[Instance]
    forwarding: Forwarder
    tokens: Tokens
    http: httpx2.AsyncClient
    faults: Faults = field(default_factory=Faults)
    done: Counter[str] = field(default_factory=Counter)
    interrupted: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    requests: int = 0
    ticked: list[str] = field(default_factory=list)
    over: bool = False

    def pick(self) -> Instance:
        """Return an instance by chance, one that serves if there is one."""
        return random.choice([instance for instance in self.instances if not instance.down] or self.instances)

    def caller(self, name: str = "") -> Caller:
        """Return the client of a principal."""
        return Caller(self.http, self.tokens.headers(name or random.choice(PRINCIPALS)))

    @asynccontextmanager
    async def excusing(self, *instances: Instance, since: float | None = None) -> AsyncIterator[None]:
        """Tell failures that a fault of these instances explains from others, since a time or since now."""
        since = monotonic() if since is None else since
        try:
            yield
        except (httpx2.TransportError, TimeoutError) as error:
            if self.faults.explain(since, [instance.name for instance in instances]):
                raise Interrupted from error
            names = " or ".join(instance.name for instance in instances)
            raise Violation(f"{type(error).__name__} without a fault of {names}") from error

    def check(self, instance: Instance, since: float, response: httpx2.Response, status: int) -> None:
        """Check a status; 503 needs a fault."""
        if response.status_code == status:
            return
        if response.status_code == 503 and self.faults.explain(since, [instance.name, REDIS]):
            raise Interrupted
        raise Violation(f"{response.status_code} instead of {status} at {instance.name}")

    async def post(
        self, caller: Caller, message: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        """Send a message to an instance and return its answer, which has that status."""
        instance, since = self.pick(), monotonic()
        self.requests += 1
        async with self.excusing(instance):
            response = await caller.post(instance.url, message, **(headers or {}))
        self.check(instance, since, response, status)
        return response

    async def call(self, caller: Caller, tool: str, **arguments: Any) -> str:
        """Call a tool in a session and return its text."""
        response = await self.post(caller, caller.request("tools/call", name=tool, arguments=arguments))
        return text_of(response.json())

    async def tick(self, call: Callable[[str], Awaitable[str]]) -> None:
        """Call the tool that keeps a ledger."""
        token = secrets.token_hex(8)
        expect(await call(token), token)
        self.ticked.append(token)

    @asynccontextmanager
    async def stream(
        self, caller: Caller, message: dict[str, Any] | None = None, **headers: str
    ) -> AsyncIterator[tuple[Events, Instance]]:
        """Open a stream at an instance."""
        instance, since = self.pick(), monotonic()
        self.requests += 1
        async with AsyncExitStack() as stack:
            async with self.excusing(instance):
                events = await stack.enter_async_context(caller.stream(instance.url, message, **headers))
                events.patience = PATIENCE
            self.check(instance, since, events.response, 200)
            yield events, instance

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Caller]:
        """Begin a session; end it at an instance by chance, after which it is over at all of them."""
        caller = self.caller()
        message = {"id": 0, "method": "initialize", "params": INITIALIZE}
        response = await self.post(caller, message)
        caller.session = {"mcp-session-id": response.headers["mcp-session-id"]}
        try:
            yield caller
        except BaseException:
            await self._end_somehow(caller)
            raise
        instance, since = self.pick(), monotonic()
        async with self.excusing(instance):
            response = await caller.http.delete(instance.url, headers=caller.headers)
        self.check(instance, since, response, 204)
        for _ in range(INSTANCES):
            await self.post(caller, caller.request("ping"), 404)

    async def _end_somehow(self, caller: Caller) -> None:
        """End a session that a fault has interrupted, so that it takes no memory."""
        for _ in range(10):
            try:
                await caller.http.delete(self.pick().url, headers=caller.headers)
            except httpx2.TransportError:
                await asyncio.sleep(0.5)
            else:
                return


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "soak", "version": "1"},
}


def expect(value: object, right: object) -> None:
    """Raise Violation unless a value is the right one."""
    if value != right:
        raise Violation(f"{value!r} instead of {right!r}")


async def calls(soak: Soak) -> None:
    """Use a session at all instances, and try it as somebody else."""
    async with soak.session() as caller:
        for _ in range(4):
            expect((await soak.call(caller, "whoami")).split()[1], "soak")
            await soak.tick(lambda token: soak.call(caller, "tick", token=token))
        thief = soak.caller("thief")
        thief.session = caller.session
        await soak.post(thief, thief.request("ping"), 404)


async def single_requests(soak: Soak) -> None:
    """Call tools in the per-request era, and answer a question at another instance."""
    caller = soak.caller()

    async def call(tool: str, **arguments: Any) -> Any:
        message, headers = per_request("tools/call", name=tool, arguments=arguments)
        return (await soak.post(caller, message, headers=headers)).json()

    async def tick(token: str) -> str:
        return text_of(await call("tick", token=token))

    await soak.tick(tick)
    message, headers = per_request("tools/call", name="order", arguments={"what": "Tea"})
    question = (await soak.post(caller, message, headers=headers)).json()["result"]
    [key] = question["inputRequests"]
    message["params"]["inputResponses"] = {key: {"action": "accept", "content": {"size": 3}}}
    message["params"]["requestState"] = question["requestState"]
    expect(text_of((await soak.post(caller, message, headers=headers)).json()), "Tea in 3")


async def resumed_stream(soak: Soak) -> None:
    """Read the stream of a call that breaks off, the rest at an instance by chance.

    The call ends with its instance, so a fault since its beginning explains that the rest does not come.
    """
    numbers, result = [], ""
    async with soak.session() as caller:
        begun = monotonic()
        request = caller.request("tools/call", name="count", arguments={"to": 8})
        async with soak.stream(caller, request) as (events, owner):
            async with soak.excusing(owner):
                while (message := await events.message()) is not None:
                    numbers.append(message["params"]["data"])
            last = events.last_id
        async with (
            soak.stream(caller, last_event_id=last) as (events, reader),
            soak.excusing(owner, reader, since=begun),
        ):
            while not result and (message := await events.message()) is not None:
                if "result" in message:
                    result = text_of(message)
                else:
                    numbers.append(message["params"]["data"])
            if not result and soak.faults.explain(begun, [owner.name, reader.name]):
                raise Interrupted
        expect((numbers, result), ([str(number) for number in range(8)], "8"))


async def question(soak: Soak) -> None:
    """Answer a call's question at an instance by chance, twice; the first answer counts."""
    async with soak.session() as caller:
        request = caller.request("tools/call", name="order", arguments={"what": "Tea"})
        async with soak.stream(caller, request) as (events, owner), soak.excusing(owner):
            question = await events.message()
            if question is None:
                raise httpx2.RemoteProtocolError("the stream ended")
            for size in (2, 2):
                answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": size}}}
                await soak.post(caller, answer, 202)
            ended = await events.message()
            if ended is None:
                raise httpx2.RemoteProtocolError("the stream ended")
            expect((ended["id"], text_of(ended)), (request["id"], "Tea in 2"))
            expect(await events.message(), None)


async def cancellation(soak: Soak) -> None:
    """Cancel a call at an instance by chance: its stream ends without an answer."""
    async with soak.session() as caller:
        request = caller.request("tools/call", name="wait", arguments={})
        async with soak.stream(caller, request) as (events, owner), soak.excusing(owner):
            first = await events.message()
            if first is None:
                raise httpx2.RemoteProtocolError("the stream ended")
            expect(first["params"]["data"], "begun")
            cancel = {"method": "notifications/cancelled", "params": {"requestId": request["id"]}}
            await soak.post(caller, cancel, 202)
            expect(await events.message(), None)


async def subscription(soak: Soak) -> None:
    """Subscribe at one instance, listen at another, change at a third; DELETE ends the stream."""
    uri = f"menu://{secrets.token_hex(6)}"
    async with AsyncExitStack() as stack, soak.session() as caller:
        await soak.post(caller, caller.request("resources/subscribe", uri=uri))
        events, owner = await stack.enter_async_context(soak.stream(caller))
        await soak.call(caller, "touch", uri=uri)
        async with soak.excusing(owner):
            await hear(soak, events, owner, uri)


async def listening(soak: Soak) -> None:
    """Listen in the per-request era at one instance, and change at another."""
    uri = f"menu://{secrets.token_hex(6)}"
    caller = soak.caller()
    message, headers = per_request("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
    async with soak.stream(caller, message, **headers) as (events, owner), soak.excusing(owner):
        if await events.message() is None:
            raise httpx2.RemoteProtocolError("the stream ended")
        message, headers = per_request("tools/call", name="touch", arguments={"uri": uri})
        await soak.post(caller, message, headers=headers)
        await hear(soak, events, owner, uri)


async def hear(soak: Soak, events: Events, owner: Instance, uri: str) -> None:
    """Read a stream until a resource has changed; other changes come only after a gap."""
    while True:
        message = await events.message()
        if message is None:
            raise httpx2.RemoteProtocolError("the stream ended")
        if message["method"] == "notifications/resources/updated":
            expect(message["params"]["uri"], uri)
            return
        if not soak.faults.explain(monotonic() - PATIENCE, [owner.name, REDIS]):
            raise Violation(f"{message['method']} without a gap")


SCENARIOS: tuple[Callable[[Soak], Awaitable[None]], ...] = (
    calls,
    single_requests,
    resumed_stream,
    question,
    cancellation,
    subscription,
    listening,
)


async def play(soak: Soak, scenario: Callable[[Soak], Awaitable[None]]) -> None:
    """Play a scenario once and count how it ended."""
    name = scenario.__name__
    try:
        await scenario(soak)
    except Interrupted:
        soak.interrupted[name] += 1
    except Violation as error:
        soak.violations.append(f"{name}: {error}; {soak.faults.recent()}")
    except Exception as error:  # noqa: BLE001 - an answer that is not even of the right form
        soak.violations.append(f"{name}: {type(error).__name__}: {error}")
    else:
        soak.done[name] += 1


async def client(soak: Soak) -> None:
    """Play scenarios until the time is over."""
    while not soak.over:
        await play(soak, random.choice(SCENARIOS))


async def kill(soak: Soak) -> None:
    """Kill an instance other than the first one, whose memory is watched, and start it again."""
    instance = random.choice(soak.instances[1:])
    with soak.faults.of(instance.name, "kill -9"):
        instance.signal(signal.SIGKILL)
        await asyncio.sleep(random.uniform(0.1, 1.0))
        await instance.start()


async def pause(soak: Soak) -> None:
    """Stop an instance for a while."""
    instance = random.choice(soak.instances)
    with soak.faults.of(instance.name, "SIGSTOP"):
        instance.signal(signal.SIGSTOP)
        await asyncio.sleep(random.uniform(0.1, 2.5))
        instance.signal(signal.SIGCONT)


async def reset(soak: Soak) -> None:
    """Reset all connections to Redis."""
    with soak.faults.of(REDIS, "reset"):
        soak.forwarding.reset()


async def disturb(soak: Soak, seconds: float) -> dict[str, int]:
    """Bring faults, one after the other, until the time is over; return what memory was after the warm-up."""
    start = monotonic()
    warm: dict[str, int] = {}
    while monotonic() < start + seconds:
        await asyncio.sleep(random.uniform(0.2, 3.0))
        await random.choice((kill, pause, reset, reset))(soak)
        if not warm and monotonic() >= start + seconds * WARM_UP:
            warm = await memory(soak)
    return warm or await memory(soak)


async def memory(soak: Soak) -> dict[str, int]:
    """Return the bytes that the first instance and Redis have, and the number of keys in Redis."""
    link = RedisLink(soak.forwarding.url)
    facts: Any = await link.do(lambda redis: redis.info("memory"))
    keys: int = await link.do(lambda redis: redis.dbsize())
    await link.aclose()
    return {"instance": soak.instances[0].resident(), REDIS: facts["used_memory"], "keys": keys}


def check_ledger(soak: Soak, ledger: Path) -> None:
    """Check that each answered call ran once, and no call twice."""
    lines = Counter(ledger.read_text().split())
    missing = [token for token in soak.ticked if token not in lines]
    repeated = [token for token, count in lines.items() if count > 1]
    if missing or repeated:
        soak.violations.append(f"ledger: {len(missing)} calls missing, {len(repeated)} repeated")


def check_logs(soak: Soak) -> None:
    """Check that no instance logged a traceback."""
    for instance in soak.instances:
        text = instance.log.read_text()
        if "Traceback" in text:
            excerpt = text[text.index("Traceback") :][:3000]
            soak.violations.insert(0, f"{instance.name}: {text.count('Traceback')} tracebacks in its log:\n{excerpt}")


async def run(seconds: float) -> Soak:
    """Run the trial, and print a summary of it."""
    tokens = Tokens()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        redis = stack.enter_context(redis_server())
        forwarding = stack.enter_context(forwarder(redis.url.removeprefix("unix://")))
        ledger = folder / "ledger"
        ledger.touch()
        env = {
            "SHOP_REDIS": forwarding.url,
            "SHOP_PREFIX": "soak",
            "SHOP_SESSIONS": "redis",
            "SHOP_SECRET": tokens.secret,
            "SHOP_LISTS": "closed",
            "SHOP_TIMEOUT": "2",
            "SHOP_LEDGER": str(ledger),
            "FUNCMCP_KEYS": secrets.token_urlsafe(32),
        }
        instances = [Instance(number, folder, env) for number in range(INSTANCES)]
        for instance in instances:
            stack.callback(instance.stop)
        await asyncio.gather(*(instance.start() for instance in instances))
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            soak = Soak(instances, forwarding, tokens, http)
            playing = [asyncio.create_task(client(soak)) for _ in range(CLIENTS)]
            warm = await disturb(soak, seconds)
            soak.over = True
            await asyncio.gather(*playing)
            await asyncio.sleep(GRACE)
            soak.faults.spans.clear()
            for scenario in SCENARIOS * 3:
                await play(soak, scenario)
        after = await memory(soak)
        if after["instance"] > warm["instance"] + MAX_GROWTH or after[REDIS] > warm[REDIS] + MAX_GROWTH:
            soak.violations.append(f"memory: {warm} became {after}")
        check_ledger(soak, ledger)
        check_logs(soak)
    print_summary(soak, seconds, warm, after)
    return soak


def print_summary(soak: Soak, seconds: float, warm: dict[str, int], after: dict[str, int]) -> None:
    """Print what was done and what went wrong."""
    lines = [
        f"time:        {seconds:.0f} s, {INSTANCES} instances, {CLIENTS} clients",
        f"requests:    {soak.requests}",
        f"scenarios:   {soak.done.total()} done, {soak.interrupted.total()} interrupted by a fault",
        "done:        " + ", ".join(f"{name} {count}" for name, count in sorted(soak.done.items())),
        "interrupted: " + ", ".join(f"{name} {count}" for name, count in sorted(soak.interrupted.items())),
        "faults:      " + ", ".join(f"{kind} {count}" for kind, count in sorted(soak.faults.kinds.items())),
        f"memory:      instance 0 {warm['instance'] >> 20} -> {after['instance'] >> 20} MiB",
        f"Redis:       {warm[REDIS] >> 10} -> {after[REDIS] >> 10} KiB, {warm['keys']} -> {after['keys']} keys",
        f"violations:  {len(soak.violations)}",
        *soak.violations[:20],
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(run(float(os.environ.get("SOAK_SECONDS", "600")))).violations else 0)

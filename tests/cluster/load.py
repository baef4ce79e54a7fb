"""Many sessions of several principals, all alive at the same time and used whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.instances import INITIALIZE, text_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from tests.cluster.tokens import Tokens


NOT_NOW = frozenset({502, 503, 504})
"""What the proxy says of an instance that has died, and an instance of a Redis that is away."""

_AT_ONCE = 40
_USES = 2
_TOKENS = 3
_WHO = {"name": "whoami", "arguments": {}}


@dataclass(frozen=True)
class Session:
    """A session that lives.

    Attributes:
        number: that its client calls itself by.
        owner: who began it.
        id: of the session.
    """

    number: int
    owner: str
    id: str


@dataclass
class Load:
    """The clients of the sessions. Every answer that is not the right one is an AssertionError.

    Attributes:
        port: of the proxy.
        tokens: makes those of the principals; each has several, and takes any of them.
        principals: whose sessions they are.
        wanted: how many requests the use of the sessions is.
        done: how many of these have been answered.
        not_now: how many were refused because of a fault, and sent again.
        answered: names of the instances that have answered.
        sessions: that live.
    """

    port: int
    tokens: Tokens
    principals: list[str]
    wanted: int = 0
    done: int = 0
    not_now: int = 0
    answered: set[str] = field(default_factory=set)
    sessions: list[Session] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self._tokens = {name: [self.tokens.of(name) for _ in range(_TOKENS)] for name in self.principals}

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait for the load to be as far as that."""
        async with self._news:
            await self._news.wait_for(reached)

    async def begin(self, count: int) -> None:
        """Begin so many sessions."""
        await self._all(self._begin(number) for number in range(count))

    async def use(self) -> None:
        """Use each session several times by its owner and once by somebody else, all in an order by chance."""
        work = [(session, session.owner) for session in self.sessions for _ in range(_USES)]
        work += [(session, self._another(session)) for session in self.sessions]
        random.shuffle(work)
        self.wanted, self.done = len(work), 0
        await self._all(self._use(session, caller) for session, caller in work)

    async def end(self, every: int) -> None:
        """End every so many-th session, which then is there for nobody."""
        await self._all(self._end(session) for session in self.sessions[::every])

    async def _all(self, work: Iterable[Awaitable[None]]) -> None:
        """Do all of it, so much at a time."""
        waiting = iter(work)
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._some(waiting))

    async def _some(self, waiting: Iterator[Awaitable[None]]) -> None:
        for one in waiting:
            await one
            async with self._news:
                self.done += 1
                self._news.notify_all()

    async def _begin(self, number: int) -> None:
        owner = self.principals[number % len(self.principals)]
        params = {**INITIALIZE, "clientInfo": {"name": f"client-{number}", "version": "1"}}
        status, headers, answer = await self._ask(owner, "", "initialize", params)
        assert (status, answer["result"]["serverInfo"]["name"]) == (200, "Shop")
        self.sessions.append(Session(number, owner, headers["mcp-session-id"]))

    async def _use(self, session: Session, caller: str) -> None:
        status, _, answer = await self._ask(caller, session.id, "tools/call", _WHO)
        if caller != session.owner:
            assert (status, "result" in answer) == (404, False)
            return
        assert status == 200
        *said, instance = text_of(answer).split()
        assert said == [session.owner, f"client-{session.number}"]
        self.answered.add(instance)

    async def _end(self, session: Session) -> None:
        for caller, status in ((self._another(session), 404), (session.owner, 204)):
            assert (await self._send("DELETE", self._head(caller, session.id), b""))[0] == status
        for caller in (session.owner, self._another(session)):
            assert (await self._ask(caller, session.id, "tools/call", _WHO))[0] == 404

    def _another(self, session: Session) -> str:
        return random.choice([name for name in self.principals if name != session.owner])

    def _head(self, caller: str, session_id: str) -> str:
        named = f"mcp-session-id: {session_id}\r\n" if session_id else ""
        return f"authorization: Bearer {random.choice(self._tokens[caller])}\r\n{named}"

    async def _ask(
        self, caller: str, session_id: str, method: str, params: dict[str, Any]
    ) -> tuple[int, dict[str, str], dict[str, Any]]:
        """Send a request, again where it is not possible now, and return its answer."""
        request_id = random.getrandbits(32)
        body = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()
        async with asyncio.timeout(PATIENCE):
            while True:
                status, headers, answer = await self._send("POST", self._head(caller, session_id), body)
                if status not in NOT_NOW:
                    break
                await self._note_not_now()
                await asyncio.sleep(0.05)
        said = json.loads(answer)
        assert said["id"] == request_id
        return status, headers, said

    async def _note_not_now(self) -> None:
        async with self._news:
            self.not_now += 1
            self._news.notify_all()

    async def _send(self, method: str, more: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send one request on a connection of its own; an answer that breaks off counts as 502."""
        head = f"{method} /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nconnection: close\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"{head}{more}content-length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.read()
        except ConnectionError:
            answer = b""
        finally:
            writer.close()
        lines, _, content = answer.partition(b"\r\n\r\n")
        status, *fields = lines.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in fields)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if not answer or len(content) < int(headers.get("content-length", 0)):
            return 502, {}, b""
        return int(status.split()[1]), headers, content

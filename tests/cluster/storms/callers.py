"""Callers of a storm: each plays one call after the other over HTTP, from its creation to the end of its task.

How it works: a call has a number, which is an argument of its tool, so that each run in the file of runs belongs to a
call. A caller repeats a call until it has the id of a task or does not know whether there is one: that is so after an
answer that does not come, and after one that says "It may have started". A call with an idempotency key is repeated in
that case as well. The other requests of a task are repeated until they are answered.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx2

from tests.cluster.storms.instances import Instance, pick
from tests.cluster.storms.settings import ATTEMPTS, CALLERS
from tests.instances import HEADERS, PER_REQUEST

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOLS = {"once": 1, "again": ATTEMPTS, "later": 1, "ask_once": 1, "ask_again": ATTEMPTS}
"""How often the tools may be started."""

WEIGHTS = [8, 5, 2, 3, 2]
CANCELLED_PART, KEYED_PART = 0.1, 0.5
ENDED = ("completed", "failed", "cancelled")
ANSWER = {"action": "accept", "content": {"permitted": True}}
REQUEST_SECONDS = 15.0
PAUSE = 0.5
TASK_SECONDS = 240.0
"""Seconds after which a task that has not ended is stuck."""

_META = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/tasks": {}},
        "elicitation": {"form": {}},
    },
    "io.modelcontextprotocol/clientInfo": {"name": "storm", "version": "1"},
}
_KEY = "io.funcmcp/idempotencyKey"
_NOT_FOUND = "Task not found"


class Refused(Exception):
    """The request was not carried out."""


class Unknown(Exception):
    """Nobody knows whether the request was carried out."""


class Lost(Exception):
    """The server does not know the task."""


@dataclass
class Call:
    """A call and what its caller knows of it.

    Attributes:
        number: Its number, from 1.
        tool: The name of the tool.
        caller: The name of the caller.
        key: The idempotency key; None if it has none.
        cancels: Whether the caller cancels the task soon.
        task_id: The id of the task.
        unknown: Whether the caller does not know if there is a task.
        answers: How many questions were answered.
        cancelled: Whether a cancellation was sent.
        end: The task as it was when it had ended.
        status: The latest status that the caller knows.
    """

    number: int
    tool: str
    caller: str
    key: str | None
    cancels: bool
    task_id: str = ""
    unknown: bool = False
    answers: int = 0
    cancelled: bool = False
    end: dict[str, Any] | None = None
    status: str = ""


@dataclass
class Callers:
    """All callers.

    Attributes:
        instances: Where they send their requests.
        http: Sends them.
        seconds: How long a run takes at least and at most.
        url: Where they send them instead; None if they choose one of the instances themselves.
        calls: All calls.
        refused: How often a request was refused, or its outcome is unknown.
        problems: In words.
    """

    instances: Sequence[Instance]
    http: httpx2.AsyncClient
    seconds: tuple[float, float]
    url: str | None = None
    calls: list[Call] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    async def play(self, count: int) -> None:
        """Play calls until there are so many."""
        while len(self.calls) < count:
            (tool,) = random.choices([*TOOLS], WEIGHTS)
            key = str(uuid4()) if random.random() < KEYED_PART else None
            caller = random.choice([*CALLERS])
            call = Call(len(self.calls) + 1, tool, caller, key, random.random() < CANCELLED_PART)
            self.calls.append(call)
            try:
                async with asyncio.timeout(TASK_SECONDS):
                    await self._create(call)
                    if call.task_id:
                        await self._follow(call)
            except Lost:
                self.problems.append(f"lost: the task of call {call.number} ({call.tool})")
            except TimeoutError:
                if not call.task_id:
                    self.refused["given up"] += 1

    async def get(self, call: Call) -> dict[str, Any]:
        """Return the task of a call, as soon as an instance answers."""
        return await self._until_answered(call, "tasks/get", taskId=call.task_id)

    async def _create(self, call: Call) -> None:
        arguments = {"call": call.number, "seconds": random.uniform(*self.seconds)}
        while True:
            try:
                result = await self._send(call, "tools/call", name=call.tool, arguments=arguments)
            except Refused:
                await asyncio.sleep(PAUSE)
            except Unknown:
                if call.key is None:
                    call.unknown = True
                    return
                await asyncio.sleep(PAUSE)
            else:
                call.task_id = result["taskId"]
                return

    async def _follow(self, call: Call) -> None:
        """Poll a task until it has ended; answer its question, or cancel it."""
        cancels_at = monotonic() + random.uniform(0, 2 * self.seconds[1]) if call.cancels else float("inf")
        while True:
            task = await self.get(call)
            call.status = task["status"]
            if call.status in ENDED:
                call.end = task
                return
            if monotonic() >= cancels_at:
                cancels_at = float("inf")
                call.cancelled = True
                await self._until_answered(call, "tasks/cancel", taskId=call.task_id)
            elif call.status == "input_required":
                call.answers = 1
                answers = dict.fromkeys(task["inputRequests"], ANSWER)
                await self._until_answered(call, "tasks/update", taskId=call.task_id, inputResponses=answers)
            else:
                await asyncio.sleep(PAUSE)

    async def _until_answered(self, call: Call, method: str, **params: Any) -> dict[str, Any]:
        while True:
            try:
                return await self._send(call, method, **params)
            except (Refused, Unknown):
                await asyncio.sleep(PAUSE)

    async def _send(self, call: Call, method: str, **params: Any) -> dict[str, Any]:
        """Send a request to an instance and return its result."""
        url = self.url or pick(self.instances, random.randrange(1_000_000)).url
        meta = {**_META, _KEY: call.key} if call.key and method == "tools/call" else _META
        headers = {
            **HEADERS,
            "x-api-key": CALLERS[call.caller],
            "mcp-protocol-version": PER_REQUEST,
            "mcp-method": method,
            "mcp-name": params.get("name") or params["taskId"],
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        try:
            response = await self.http.post(url, json=message, headers=headers)
        except httpx2.ConnectError as error:
            self.refused["no connection"] += 1
            raise Refused from error
        except httpx2.TransportError as error:
            self.refused[f"no answer ({type(error).__name__})"] += 1
            raise Unknown from error
        return self._result_of(call, method, response)

    def _result_of(self, call: Call, method: str, response: httpx2.Response) -> dict[str, Any]:
        """Return the result of a response; note what must not be answered."""
        if response.status_code in (429, 503):
            kind = "not carried out" if "retry-after" in response.headers else "not confirmed"
            self.refused[f"{response.status_code}, {kind}"] += 1
            raise Refused if "retry-after" in response.headers else Unknown
        if "application/json" not in response.headers.get("content-type", ""):  # an answer of the proxy
            self.problems.append(f"{method} of call {call.number} was answered with {response.status_code}, no JSON")
            raise Unknown
        answer = response.json()
        if "result" in answer:
            result: dict[str, Any] = answer["result"]
            return result
        message = answer["error"]["message"]
        if message == _NOT_FOUND:
            raise Lost
        self.problems.append(f"{method} of call {call.number} was answered with {response.status_code}: {message}")
        raise Unknown

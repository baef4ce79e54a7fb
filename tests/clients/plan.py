"""What clients do with a server, and how each client is made to do it.

A client lists the tools and plays a plan, a list of steps: requests, and two words of our own. `watch` asks for changes
in the way of the client's era, and `hear` waits for notifications. What came back has one shape for all clients, so
that the expectations are written once.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp import StdioServerParameters
from mcp.client.sse import sse_client

from tests import nodejs
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent

Transport: TypeAlias = Literal["http", "sse", "stdio", "websocket"]


@dataclass(frozen=True)
class Step:
    """One request, with what the client answers to the questions that come of it.

    Attributes:
        method: of the protocol, or `watch` or `hear`.
        params: of the request. Of `watch`: a SubscriptionFilter. Of `hear`: `wanted`, notifications with the params
            that matter, and `again`, tools to call every second until all are there.
        answers: results for `elicitation/create`, `sampling/createMessage` and `roots/list`.
        cancel: whether to cancel the request when its first progress is told.
    """

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    cancel: bool = False


@dataclass
class Call:
    """What came of a step: a result or an error, the progress told, the questions asked.

    Of `hear` the result is all that was heard since the one before, and of a cancelled call there is none.
    """

    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    progress: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Played:
    """What a client saw: the revision it spoke, the tools, and a call per step."""

    revision: str
    tools: dict[str, dict[str, Any]]
    calls: list[Call]


@dataclass(frozen=True)
class Target:
    """A server as clients are told of it.

    Attributes:
        transport: how it is reached.
        url: its endpoint; empty for stdio.
        command: what starts it, for stdio.
        env: environment variables that it is started with.
    """

    transport: Transport
    url: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    def for_python(self) -> Any:
        """Return what the Python SDK's client takes."""
        if self.transport == "stdio":
            return StdioServerParameters(command=self.command[0], args=list(self.command[1:]), env=self.env)
        return sse_client(self.url) if self.transport == "sse" else self.url


def tool(name: str, arguments: dict[str, Any] | None = None, elicited: dict[str, Any] | None = None) -> Step:
    """Return the step that calls a tool, and answers its form."""
    answers = {} if elicited is None else {"elicitation/create": elicited}
    return Step("tools/call", {"name": name, "arguments": arguments or {}}, answers)


def hear(*wanted: tuple[str, dict[str, Any]], again: Sequence[str] = ()) -> Step:
    """Return the step that waits for notifications: methods, and the params that matter."""
    notifications = [{"method": f"notifications/{method}", "params": params} for method, params in wanted]
    return Step("hear", {"wanted": notifications, "again": list(again)})


def play_node(script: str, target: Target, mode: str, plan: Sequence[Step]) -> Played:
    """Play with one of the scripts beside this file."""
    for package in ("sdk", "client"):
        nodejs.package(f"@modelcontextprotocol/{package}")
    steps = json.dumps([asdict(step) for step in plan])
    finished = subprocess.run(
        [str(nodejs.node()), str(HERE / script), str(nodejs.HOME), json.dumps(asdict(target)), steps, mode],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)
    calls = [Call(**call) for call in told["calls"]]
    return Played(told["revision"], {tool["name"]: tool for tool in told["tools"]}, calls)

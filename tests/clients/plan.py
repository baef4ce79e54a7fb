"""What every client does with the orders sample, and how each client is made to do it.

A client lists the tools and plays `PLAN`, a list of calls. What came back has one shape for all clients, so that
the expectations are written once.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import mcp_types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from tests import nodejs

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext

HERE = Path(__file__).parent
_CLIENT_SECONDS = 60

Transport: TypeAlias = Literal["http", "sse", "stdio", "websocket"]


@dataclass(frozen=True)
class Step:
    """One tool call, and the answer to the question that it asks, if it asks one."""

    tool: str
    arguments: dict[str, Any]
    answer: dict[str, Any] | None = None


@dataclass
class Call:
    """What came of a step: a result or an error, the progress told, the questions asked."""

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


async def play_python(target: Target, mode: str, plan: list[Step]) -> Played:
    """Play with the official Python SDK; the mode is "legacy" (handshake era), "auto", or a revision."""
    calls: list[Call] = []
    answer: dict[str, Any] = {}

    async def answer_question(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        calls[-1].questions.append(params.model_dump(mode="json", by_alias=True, exclude_none=True))
        return mcp_types.ElicitResult.model_validate(answer)

    async def note_progress(progress: float, total: float | None, message: str | None) -> None:
        calls[-1].progress.append({"progress": progress, "total": total, "message": message})

    options: Any = {"mode": mode, "elicitation_callback": answer_question, "read_timeout_seconds": 20}
    async with Client(target.for_python(), **options) as client:
        listed = await client.list_tools()
        for step in plan:
            calls.append(Call())
            answer = step.answer or {}
            try:
                result = await client.call_tool(step.tool, step.arguments, progress_callback=note_progress)
                calls[-1].result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            except MCPError as error:
                calls[-1].error = {"code": error.code, "message": error.message}
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
        return Played(client.protocol_version, {tool["name"]: tool for tool in tools}, calls)


def play_node(script: str, target: Target, mode: str, plan: list[Step]) -> Played:
    """Play with one of the scripts beside this file."""
    for package in ("sdk", "client"):
        nodejs.package(f"@modelcontextprotocol/{package}")
    steps = json.dumps([vars(step) for step in plan])
    finished = subprocess.run(
        [str(nodejs.node()), str(HERE / script), str(nodejs.HOME), json.dumps(asdict(target)), steps, mode],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_CLIENT_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)
    calls = [Call(**call) for call in told["calls"]]
    return Played(told["revision"], {tool["name"]: tool for tool in told["tools"]}, calls)

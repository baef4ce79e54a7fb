"""An upstream whose lists and results a test writes, as a transport in memory that speaks 2026-07-28."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from funcmcp.client import ConnectionFailedError

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
Answer = Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]]


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}, **members}


class Scripted:
    """Answers requests by their method.

    Attributes:
        answers: Results, or functions of the params that return them, by method.
        requests: The requests so far: the method and the params.
        is_away: Whether no connection is possible.
    """

    is_http = False
    session_id: str | None = None

    def __init__(self, answers: Mapping[str, Answer] | None = None, **server: Any) -> None:
        capabilities = {"tools": {"listChanged": True}, "resources": {"listChanged": True}, "prompts": {}}
        capabilities["completions"] = {}
        discovered = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **server}
        empty: dict[str, list[Any]] = {"tools": [], "resources": [], "prompts": [], "resources/templates": []}
        lists: dict[str, Answer] = {f"{name}/list": {_member(name): items} for name, items in empty.items()}
        self.answers: dict[str, Answer] = {"server/discover": discovered, **lists, **(answers or {})}
        self.requests: list[tuple[str, Mapping[str, Any]]] = []
        self.is_away = False

    def asked(self, method: str) -> list[Mapping[str, Any]]:
        """Return the params of the requests of a method."""
        return [params for name, params in self.requests if name == method]

    async def connect(self, receive: Any) -> None:
        del receive
        if self.is_away:
            raise ConnectionFailedError("it is away")

    async def request(self, message: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        del headers
        if self.is_away:
            raise ConnectionFailedError("it is away")
        method, params = message["method"], message["params"]
        self.requests.append((method, params))
        if method == "subscriptions/listen":
            await asyncio.Event().wait()  # it never reports a change
        answer = self.answers[method]
        result = answer(params) if callable(answer) else answer
        kind = {} if "resultType" in result else {"resultType": "complete"}
        return {"jsonrpc": "2.0", "id": message["id"], "result": {**kind, **result}}

    async def send(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        del message, headers

    async def aclose(self) -> None:
        pass


def _member(name: str) -> str:
    return "resourceTemplates" if name.endswith("templates") else name

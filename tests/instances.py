"""A client that sends each of its requests to the instance of a server that a test picks."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import httpx2

NEWEST = "2025-11-25"
PER_REQUEST = "2026-07-28"
INITIALIZE = {
    "protocolVersion": NEWEST,
    "capabilities": {"elicitation": {}, "sampling": {}},
    "clientInfo": {"name": "client", "version": "1"},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Events:
    """An event stream that is read as it comes.

    Attributes:
        response: The response.
        last_id: The id of the last event, or an empty string.
        patience: The seconds for which a message may take, though the server sends pings.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.last_id = ""
        self.patience: float = PATIENCE
        self._lines = response.aiter_lines()

    async def message(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end of the stream; raise TimeoutError if none comes."""
        async with asyncio.timeout(self.patience):
            async for line in self._lines:
                if line.startswith("id: "):
                    self.last_id = line[4:]
                if line.startswith("data: {"):
                    found: dict[str, Any] = json.loads(line[6:])
                    return found
        return None


class Caller:
    """Sends requests of one client; a session of the handshake era, once it has begun.

    Args:
        http: sends them.
        identity: headers that say who calls.

    Attributes:
        session: the header that names the session.
    """

    def __init__(self, http: httpx2.AsyncClient, identity: Mapping[str, str] | None = None) -> None:
        self.http = http
        self.identity = identity or {}
        self.session: dict[str, str] = {}
        self._count = 0

    @property
    def headers(self) -> dict[str, str]:
        """What each request carries."""
        return {**HEADERS, **self.identity, **self.session}

    async def post(self, url: str, message: Mapping[str, Any], **headers: str) -> httpx2.Response:
        """Send one message."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(url, json={"jsonrpc": "2.0", **message}, headers={**self.headers, **given})

    async def begin(self, url: str, **params: Any) -> None:
        """Begin a session."""
        response = await self.post(url, {"id": 0, "method": "initialize", "params": {**INITIALIZE, **params}})
        assert response.status_code == 200, response.text
        self.session = {"mcp-session-id": response.headers["mcp-session-id"]}

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Return a request with an id of its own."""
        self._count += 1
        return {"id": self._count, "method": method, "params": params}

    async def ask(self, url: str, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the response to it. It is the last event if the server is slow and has streamed."""
        response = await self.post(url, self.request(method, **params))
        assert response.status_code == 200, response.text
        *_, data = [line for line in response.text.splitlines() if line.startswith(("{", "data: {"))]
        found: dict[str, Any] = json.loads(data.removeprefix("data: "))
        return found

    async def call(self, url: str, tool: str, **arguments: Any) -> str:
        """Call a tool and return its text."""
        answer = await self.ask(url, "tools/call", name=tool, arguments=arguments)
        return text_of(answer)

    @asynccontextmanager
    async def stream(self, url: str, message: Mapping[str, Any] | None = None, **headers: str) -> AsyncIterator[Events]:
        """Open a stream: the answer to a message, or of what belongs to none."""
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        body = None if message is None else {"jsonrpc": "2.0", **message}
        async with self.http.stream("GET" if message is None else "POST", url, json=body, headers=given) as response:
            yield Events(response)


def per_request(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a message of 2026-07-28 and the headers that go with it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
    }
    headers = {"mcp_protocol_version": PER_REQUEST, "mcp_method": method}
    if "name" in params:
        headers["mcp_name"] = params["name"]
    return {"id": 1, "method": method, "params": {**params, "_meta": meta}}, headers


def text_of(answer: Mapping[str, Any]) -> str:
    """Return the text of a tool's result."""
    text: str = answer["result"]["content"][0]["text"]
    return text

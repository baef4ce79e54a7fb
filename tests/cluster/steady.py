"""The official clients, each in one connection that it uses on and on while instances and Redis fail."""

from __future__ import annotations

import asyncio
import json
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import mcp_types as types
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests import nodejs
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext

SCRIPT = Path(__file__).parent / "steady.mjs"
ACCEPTED = {"action": "accept", "content": {"size": 3}}

_LONGEST_CALL = 2.0
_TIMEOUT = 10
_PAUSE = 0.05


@dataclass
class Steady:
    """What a client saw.

    Attributes:
        revision: that it spoke.
        texts: what it was answered, each once.
        errors: what it was told instead, each once.
        order: the answer to a last call that asks something, when the faults were over.
    """

    revision: str = ""
    texts: set[str] = field(default_factory=set)
    errors: set[str] = field(default_factory=set)
    order: str = ""


@dataclass(frozen=True)
class Use:
    """How a client is used.

    Attributes:
        url: of the endpoint.
        headers: that say who calls.
        mode: of negotiation: "legacy" (handshake era) or a revision.
        recovery: seconds that calls may still fail for when the faults are over.
        longest: seconds that a call may take.
    """

    url: str
    headers: dict[str, str]
    mode: str
    recovery: float = PATIENCE
    longest: float = _LONGEST_CALL


class _Whole(httpx2.AsyncHTTPTransport):
    """Makes 502 of an answer that breaks off: the SDK's client does not outlive one."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; read what is no stream to its end."""
        try:
            response = await super().handle_async_request(request)
            if "text/event-stream" not in response.headers.get("content-type", ""):
                await response.aread()
        except httpx2.TransportError:
            return httpx2.Response(502)
        return response


async def use_python(use: Use, connected: asyncio.Event, over: asyncio.Event) -> Steady:
    """Use the Python SDK until the faults are over, and once more then."""
    seen = Steady()

    async def accept(_context: ClientRequestContext, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(ACCEPTED)

    async def call(name: str, arguments: dict[str, Any]) -> str | None:
        try:
            result = await client.call_tool(name, arguments)
        except MCPError as error:
            seen.errors.add(str(error))
            return None
        [content] = result.content
        assert isinstance(content, types.TextContent)
        seen.texts.add(content.text)
        return content.text

    options: Any = {
        "mode": use.mode,
        "elicitation_callback": accept,
        "read_timeout_seconds": use.longest,
        "client_info": types.Implementation(name="python", version="1"),
    }
    with warnings.catch_warnings():
        # What 2026-07-28 has no longer, the SDK warns of in the handshake era too.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with (
            httpx2.AsyncClient(headers=use.headers, timeout=_TIMEOUT, transport=_Whole()) as http,
            Client(streamable_http_client(use.url, http_client=http), **options) as client,
        ):
            connected.set()
            while not over.is_set():
                await call("whoami", {})
                await asyncio.sleep(_PAUSE)
            async with asyncio.timeout(use.recovery):
                while not seen.order:
                    seen.order = await call("order", {"what": "Tea"}) or ""
            seen.revision = client.protocol_version
    return seen


async def use_typescript(use: Use, connected: asyncio.Event, over: asyncio.Event) -> Steady:
    """Use the TypeScript SDK v2 in the same way."""
    nodejs.package("@modelcontextprotocol/client")
    process = await asyncio.create_subprocess_exec(
        *(str(nodejs.node()), str(SCRIPT), str(nodejs.HOME), json.dumps(asdict(use))),
        stdin=asyncio.subprocess.PIPE,  # its end tells that the faults are over
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        if await process.stdout.readline():  # otherwise the process has ended with an error
            connected.set()
            await over.wait()
        said, complaint = await process.communicate(b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 0, complaint.decode()
    told = json.loads(said)
    return Steady(told["revision"], set(told["texts"]), set(told["errors"]), told["order"])

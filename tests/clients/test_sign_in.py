"""The official clients sign in at the sample: discovery, registration, consent, tokens, and a step up."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests import nodejs
from tests.clients.signing_in import BACK, SignIn, agree, serve_sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MENU = {"name": "search_menu", "arguments": {"query": "pizza"}}
ORDER = {
    "name": "create_order",
    "arguments": {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 1}]},
}
PER_REQUEST = "2026-07-28"
_NODE_SECONDS = 60


class Memory:
    """Keeps what a client of the Python SDK wants to keep."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def python_provider(url: str, memory: Memory) -> OAuthClientProvider:
    """Return what signs in, with a user who agrees to everything."""
    came_back: dict[str, str] = {}

    async def go(address: str) -> None:
        came_back.update(await agree(address))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: came_back[name] for name in ("code", "state", "iss")})

    about = OAuthClientMetadata(client_name="python", redirect_uris=[BACK], token_endpoint_auth_method="none")  # type: ignore[list-item]
    return OAuthClientProvider(url, about, memory, go, back)


async def play_python(url: str, mode: str, calls: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """Sign in with the Python SDK, and call."""
    memory = Memory()
    async with httpx2.AsyncClient(auth=python_provider(url, memory), timeout=20) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=20) as client:
            results = [
                (await client.call_tool(call["name"], call["arguments"])).model_dump(mode="json", by_alias=True)
                for call in calls
            ]
    assert memory.tokens is not None
    return results, memory.tokens.model_dump(mode="json")


def play_typescript(sdk: str, url: str, mode: str, calls: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """Sign in with a TypeScript SDK, and call."""
    script = nodejs.HOME.parent / "clients" / "typescript_sign_in.mjs"
    command = [nodejs.node(), script, nodejs.HOME, sdk, url, BACK, mode, json.dumps(calls)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_NODE_SECONDS, check=False)
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    return said["results"], said["tokens"]


def play(client: str, url: str, mode: str, calls: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    if client == "python":
        return asyncio.run(play_python(url, mode, calls))
    return play_typescript(client, url, mode, calls)


@pytest.fixture
def sign_in(tmp_path: Path) -> Iterator[SignIn]:
    with serve_sign_in(tmp_path / "orders.db") as served:
        yield served


CLIENTS = [("python", "legacy"), ("python", "auto"), ("python", PER_REQUEST)]
CLIENTS += [("v1", "legacy"), ("v2", "legacy"), ("v2", "auto"), ("v2", PER_REQUEST)]


@pytest.mark.parametrize(("client", "mode"), CLIENTS)
def test_x(sign_in: SignIn, client: str, mode: str) -> None:
    try:
        (menu, order), tokens = play(client, sign_in.url, mode, [MENU, ORDER])
    finally:
        for one in sign_in.log:
            print(one.server, one.what, one.status, one.challenge, {k: v for k, v in one.values.items() if k in ("scope", "resource")})
    assert 0

"""The official clients sign in at the sample: discovery, registration, consent, tokens, and a step up."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests import nodejs
from tests.clients.signing_in import BACK, SignIn, agree, serve_sign_in
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MENU: dict[str, Any] = {"name": "search_menu", "arguments": {"query": "pizza"}}
ORDER: dict[str, Any] = {
    "name": "create_order",
    "arguments": {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 1}]},
}
PER_REQUEST = "2026-07-28"


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


def python_provider(url: str, memory: Memory, *, decision: str = "allow") -> OAuthClientProvider:
    """Return what signs in, with a user who always decides the same."""
    came_back: dict[str, str] = {}

    async def go(address: str) -> None:
        came_back.clear()
        came_back.update(await agree(address, decision=decision))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=came_back.get("code", ""), state=came_back["state"], iss=came_back["iss"])

    about = OAuthClientMetadata(client_name="python", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none")
    return OAuthClientProvider(url, about, memory, go, back)


async def play_python(url: str, mode: str, calls: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """Sign in with the Python SDK, and call."""
    memory = Memory()
    async with httpx2.AsyncClient(auth=python_provider(url, memory), timeout=PATIENCE) as http:
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
    command = [str(nodejs.node()), str(script), str(nodejs.HOME), sdk, url, BACK, mode, json.dumps(calls)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
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
FLOW = [
    ("orders", "GET /.well-known/oauth-protected-resource/mcp", 200),
    ("authorization", "GET /.well-known/oauth-authorization-server", 200),
    ("authorization", "POST /register", 201),
    ("authorization", "GET /authorize", 200),
    ("authorization", "POST /consent", 302),
    ("authorization", "POST /token", 200),
    ("orders", "POST /mcp tools/call search_menu", 200),
    ("orders", "POST /mcp tools/call create_order", 403),
    ("authorization", "GET /authorize", 200),
    ("authorization", "POST /consent", 302),
    ("authorization", "POST /token", 200),
    ("orders", "POST /mcp tools/call create_order", 200),
]


def claims(token: str | None) -> dict[str, Any]:
    """Return what a token says."""
    assert token is not None
    payload = token.split(".")[1]
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return said


@pytest.mark.slow("Clients of others start for each case.")
@pytest.mark.parametrize(("client", "mode"), CLIENTS)
def test_a_client_signs_in_with_nothing_but_the_url_and_steps_up_for_a_tool_that_takes_more(
    sign_in: SignIn, client: str, mode: str
) -> None:
    (menu, order), tokens = play(client, sign_in.url, mode, [MENU, ORDER])
    assert "Margherita" in json.dumps(menu["structuredContent"])
    assert (order["structuredContent"]["customerId"], tokens["scope"]) == ("ada", "orders.read orders.write")
    log = sign_in.log
    metadata = f'resource_metadata="{sign_in.url.removesuffix("/mcp")}/.well-known/oauth-protected-resource/mcp"'
    assert (log[0].status, log[0].token, log[0].challenge) == (401, None, f'Bearer scope="orders.read", {metadata}')
    went = iter([(one.server, one.what, one.status) for one in log])
    assert [step for step in FLOW if step in went] == FLOW
    assert [one.values["scope"] for one in sign_in.those("GET /authorize")] == [
        "orders.read",
        "orders.read orders.write",
    ]
    about = [*sign_in.those("GET /authorize"), *sign_in.those("POST /token")]
    assert {one.values["resource"] for one in about} == {sign_in.url}
    assert {one.values["code_challenge_method"] for one in sign_in.those("GET /authorize")} == {"S256"}
    (refused, ordered) = sign_in.those("POST /mcp tools/call create_order")
    said = 'error_description="More scopes are needed.", scope="orders.read orders.write"'
    assert refused.challenge == f'Bearer error="insufficient_scope", {said}, {metadata}'
    assert [(claims(one.token)["aud"], claims(one.token)["scope"]) for one in (refused, ordered)] == [
        (sign_in.url, "orders.read"),
        (sign_in.url, "orders.read orders.write"),
    ]
    served = [one for one in log if one.what.startswith("POST /mcp") and one.status == 200]
    assert all(claims(one.token)["sub"] == "ada" for one in served)


@pytest.mark.slow("Clients of others start for each case.")
@pytest.mark.parametrize("client", ["python", "v1", "v2"])
def test_a_client_finds_an_issuer_with_a_path_whose_keys_are_of_another_kind(tmp_path: Path, client: str) -> None:
    """RFC 8414 section 3.1: the path comes behind the well-known one."""
    with serve_sign_in(tmp_path / "orders.db", "/tenants/one", "ES256") as sign_in:
        (menu,), _ = play(client, sign_in.url, "legacy", [MENU])
        assert "Margherita" in json.dumps(menu["structuredContent"])
        assert sign_in.those("GET /.well-known/oauth-authorization-server/tenants/one")


@pytest.mark.slow("Clients of others start for each case.")
async def test_a_token_that_is_over_is_refreshed_without_the_user(sign_in: SignIn) -> None:
    memory = Memory()
    provider = python_provider(sign_in.url, memory)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=PATIENCE) as http,
        Client(streamable_http_client(sign_in.url, http_client=http), mode="legacy") as client,
    ):
        await client.call_tool(**MENU)
        provider.context.token_expiry_time = 1.0
        await client.call_tool(**MENU)
    grants = [one.values["grant_type"] for one in sign_in.those("POST /token")]
    assert grants == ["authorization_code", "refresh_token"]
    assert len(sign_in.those("GET /authorize")) == 1
    first, second = sign_in.those("POST /mcp tools/call search_menu")
    assert first.token != second.token
    assert (first.status, second.status) == (200, 200)


@pytest.mark.slow("Clients of others start for each case.")
async def test_where_the_user_does_not_agree_the_client_gets_nothing(sign_in: SignIn) -> None:
    provider = python_provider(sign_in.url, Memory(), decision="deny")
    async with httpx2.AsyncClient(auth=provider, timeout=PATIENCE) as http:
        with pytest.raises(OAuthFlowError):
            await http.post(sign_in.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert not sign_in.those("POST /token")
    assert [one.status for one in sign_in.log if one.server == "orders" and "/mcp" in one.what[:9]] == [401]

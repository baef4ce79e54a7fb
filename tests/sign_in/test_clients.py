"""Clients sign in at a server with a proxy, in front of a certified OpenID provider, without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from funcmcp.client import Client
from tests.clients.test_sign_in import Memory
from tests.patience import PATIENCE
from tests.sign_in.people import BACK, SignIn, browse, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def served() -> Iterator[SignIn]:
    """Serve one server and one provider for all tests: each test has a user of its own."""
    with signed_in() as running:
        yield running


def provider_for(url: str, memory: Memory, **options: str) -> OAuthClientProvider:
    """Return what signs in, with the options of `browse`."""
    returned: dict[str, str] = {}

    async def go(address: str) -> None:
        returned.clear()
        returned.update(await browse(address, **options))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=returned.get("code", ""), state=returned.get("state"), iss=returned.get("iss")
        )

    about = OAuthClientMetadata(client_name="python", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none")
    return OAuthClientProvider(url, about, memory, go, back)


async def call_official(
    url: str, memory: Memory, mode: Any, *calls: tuple[str, dict[str, str]], **options: Any
) -> list[Any]:
    async with httpx2.AsyncClient(auth=provider_for(url, memory, **options), timeout=PATIENCE) as http:
        transport = streamable_http_client(url, http_client=http)
        async with OfficialClient(transport, mode=mode, read_timeout_seconds=20) as client:
            return [(await client.call_tool(name, arguments)).structured_content for name, arguments in calls]


async def test_the_official_python_client_signs_in_calls_steps_up_and_refreshes(served: SignIn) -> None:
    memory = Memory()
    who, ordered = await call_official(served.url, memory, "auto", ("who", {}), ("order", {"dish": "pizza"}))
    assert who == {"subject": "ada", "name": "ada of the tests", "email": "ada@example.com"}
    assert ordered == {"ordered": "pizza"}
    assert memory.tokens is not None
    assert memory.tokens.scope == "orders.read orders.write"
    requests = [asked for asked in served.log if asked.what == "GET /oauth/authorize"][-2:]
    assert [asked.values["scope"] for asked in requests] == ["orders.read", "orders.read orders.write"]
    assert {asked.values["resource"] for asked in requests} == {served.url}
    assert memory.client is not None
    async with httpx2.AsyncClient() as http:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": memory.tokens.refresh_token,
            "client_id": memory.client.client_id,
        }
        renewed = await http.post(f"{served.origin}/oauth/token", data=form)
        assert renewed.status_code == 200
        replayed = await http.post(f"{served.origin}/oauth/token", data=form)
        assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    own = Client(served.url, headers={"authorization": f"Bearer {renewed.json()['access_token']}"})
    async with own as client:
        assert (await client.call_tool("who")).structured_content == who


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_official_python_client_signs_in_in_each_era(served: SignIn, mode: Any) -> None:
    (who,) = await call_official(served.url, Memory(), mode, ("who", {}), user="bea")
    assert who["subject"] == "bea"


async def test_a_user_who_denies_gives_the_client_nothing(served: SignIn) -> None:
    memory = Memory()
    with pytest.raises(BaseExceptionGroup) as failure:
        await call_official(served.url, memory, "auto", ("who", {}), decision="deny")
    assert failure.group_contains(OAuthFlowError)
    assert memory.tokens is None


async def test_a_disabled_account_ends_at_the_next_refresh(served: SignIn) -> None:
    memory = Memory()
    await call_official(served.url, memory, "auto", ("who", {}), user="eve")
    assert memory.tokens is not None
    assert memory.client is not None
    async with httpx2.AsyncClient() as http:
        await http.get(f"{served.upstream}/disable/eve")
        form = {
            "grant_type": "refresh_token",
            "refresh_token": memory.tokens.refresh_token,
            "client_id": memory.client.client_id,
        }
        answer = await http.post(f"{served.origin}/oauth/token", data=form)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


async def test_a_code_works_once_and_its_replay_ends_the_sign_in(served: SignIn) -> None:
    memory = Memory()
    await call_official(served.url, memory, "auto", ("who", {}), user="cid")
    exchange = [asked for asked in served.log if asked.values.get("grant_type") == "authorization_code"][-1]
    assert memory.tokens is not None
    async with httpx2.AsyncClient() as http:
        replayed = await http.post(f"{served.origin}/oauth/token", data=exchange.values)
        assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
        form = {
            "grant_type": "refresh_token",
            "refresh_token": memory.tokens.refresh_token,
            "client_id": exchange.values["client_id"],
        }
        ended = await http.post(f"{served.origin}/oauth/token", data=form)
        assert (ended.status_code, ended.json()["error"]) == (400, "invalid_grant")

"""Clients sign in at a server with a proxy, in front of real OpenID providers, without a person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from funcmcp.auth import OIDC, OAuthProxy, Program, StaticKeys
from funcmcp.client import Client, ClientCredentials, HTTPEndpoint, PrivateKeyJWT
from funcmcp.client import SignIn as ClientSignIn
from funcmcp.state import KeyRing, MemorySignIns
from tests.auth.making_tokens import key, public
from tests.cli.processes import FUNCMCP
from tests.clients.test_sign_in import Memory
from tests.patience import PATIENCE
from tests.requirements import require
from tests.serving import REPOSITORY
from tests.sign_in.browsing import BACK, browse, visit
from tests.sign_in.people import HERE, SignIn, django, oidc_provider, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from joserfc.jwk import ECKey

    from funcmcp.auth import User

pytestmark = pytest.mark.slow("Clients and identity providers of others start for each case.")


KEYS = KeyRing([b"the key of these tests" * 2])
PROGRAMS = {
    "reports": Program(secret="the-secret-of-reports", scopes=["orders.read"], roles=["auditor"]),
    "signer": Program(keys=StaticKeys(public("P-256")), scopes=["orders.read"]),
}


@pytest.fixture(scope="module")
def served() -> Iterator[SignIn]:
    """Serve one server and one provider for all tests: each test has a user of its own."""
    with signed_in(keys=KEYS, programs=PROGRAMS) as running:
        yield running


@pytest.fixture(scope="module")
def stored() -> Iterator[SignIn]:
    """Serve a server with a store, whose sign-in is below a path of the host."""
    with signed_in(path="/team/orders", store=MemorySignIns()) as running:
        yield running


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_the_official_python_client_gets_a_token_for_a_program(served: SignIn, method: Any) -> None:
    auth = ClientCredentialsOAuthProvider(
        served.url, Memory(), "reports", "the-secret-of-reports", method, issuer=served.origin
    )
    async with httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http:
        transport = streamable_http_client(served.url, http_client=http)
        async with OfficialClient(transport, read_timeout_seconds=20) as client:
            who = (await client.call_tool("who", {})).structured_content
    assert who == {"subject": "reports", "name": "reports", "email": None}


async def test_our_client_gets_a_token_for_a_program(served: SignIn) -> None:
    signing = PrivateKeyJWT(cast("ECKey", key("P-256")).as_pem(private=True))
    for credentials in (
        ClientCredentials("reports", "the-secret-of-reports", issuer=served.origin),
        ClientCredentials("signer", credential=signing, issuer=served.origin),
    ):
        async with Client(HTTPEndpoint(served.url, sign_in=credentials)) as client:
            who = (await client.call_tool("who")).structured_content
            assert who["subject"] == credentials.client_id


async def test_the_official_python_client_signs_a_statement_for_a_program(served: SignIn) -> None:
    pem = cast("ECKey", key("P-256")).as_pem(private=True).decode()
    signed = SignedJWTParameters(issuer="signer", subject="signer", signing_key=pem, signing_algorithm="ES256")
    auth = PrivateKeyJWTOAuthProvider(
        served.url, Memory(), "signer", signed.create_assertion_provider(), issuer=served.origin
    )
    async with httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http:
        transport = streamable_http_client(served.url, http_client=http)
        async with OfficialClient(transport, read_timeout_seconds=20) as client:
            who = (await client.call_tool("who", {})).structured_content
    assert who["subject"] == "signer"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_the_official_python_client_signs_in_with_an_id_and_a_secret(served: SignIn, method: Any) -> None:
    upstream = OIDC(served.upstream, "funcmcp")
    proxy = OAuthProxy(served.url, upstream=upstream, scopes={"orders.read": "See"}, issuer=served.origin, keys=KEYS)
    client_id, secret = proxy.client("Platform", [BACK])
    memory = Memory()
    memory.client = OAuthClientInformationFull(
        client_id=client_id,
        client_secret=secret,
        redirect_uris=[AnyUrl(BACK)],
        token_endpoint_auth_method=method,
        issuer=served.origin,
    )
    (who,) = await call_official(served.url, memory, "auto", ("who", {}), user="gil")
    assert who["subject"] == "gil"
    assert memory.tokens is not None
    async with httpx2.AsyncClient() as http:
        document = (await http.get(f"{served.origin}/.well-known/openid-configuration")).json()
        bearer = {"authorization": f"Bearer {memory.tokens.access_token}"}
        claims = (await http.get(document["userinfo_endpoint"], headers=bearer)).json()
    assert claims == {"sub": "gil", "name": who["name"], "email": who["email"], "email_verified": True}


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


async def test_claims_of_userinfo_decide_who_may_sign_in_and_use_a_tool() -> None:
    """The provider's default: the ID token has the subject only, and 200 groups are too long for an access token."""
    provider = partial(oidc_provider, conforms=True)

    def allow(user: User) -> bool:
        return (user.email or "").endswith("@example.com")

    with signed_in(provider, allow=allow, claims=["groups"], store=MemorySignIns()) as running:
        memory = Memory()
        who, groups = await call_official(running.url, memory, "auto", ("who", {}), ("groups", {}))
        assert who == {"subject": "ada", "name": "ada of the tests", "email": "ada@example.com"}
        assert groups == {"result": 200}
        assert memory.tokens is not None
        assert len(memory.tokens.access_token) < 2000


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


def expire(file: Path, url: str) -> str:
    """Let the token in a file of our client expire; return its refresh token."""
    entry = json.loads(file.read_text())[url]
    file.write_text(json.dumps({url: entry | {"expires": 1}}))
    return str(entry["refresh_token"])


async def sign_in_and_renew(url: str, file: Path, user: str) -> list[str]:
    """Sign in with our client, step up, and renew the tokens, also in a client that begins; return what was opened."""
    opened = []

    async def go(address: str) -> None:
        opened.append(address)
        await visit(address, user)

    endpoint = HTTPEndpoint(url, sign_in=ClientSignIn(open_browser=go, file=file))
    for _ in range(2):
        async with Client(endpoint) as client:
            who = (await client.call_tool("who")).structured_content
            assert who == {"subject": user, "name": f"{user} of the tests", "email": f"{user}@example.com"}
            assert (await client.call_tool("order", {"dish": "soup"})).structured_content == {"ordered": "soup"}
        expired = expire(file, url)
    async with Client(endpoint) as client:
        assert (await client.call_tool("who")).structured_content == who
    assert expire(file, url) != expired
    return opened


async def test_our_client_signs_in_steps_up_and_renews(served: SignIn, tmp_path: Path) -> None:
    assert len(await sign_in_and_renew(served.url, tmp_path / "tokens.json", "fay")) == 2


async def test_our_client_signs_in_at_a_proxy_with_a_store_below_a_path(stored: SignIn, tmp_path: Path) -> None:
    assert len(await sign_in_and_renew(stored.url, tmp_path / "tokens.json", "fox")) == 2


async def test_another_openid_provider_signs_in_as_well(tmp_path: Path) -> None:
    """Django with its OAuth Toolkit has another login page, other scopes, and rotates its refresh tokens."""
    with signed_in(django, path="/orders") as running:
        assert len(await sign_in_and_renew(running.url, tmp_path / "tokens.json", "dana")) == 2
        memory = Memory()
        (who,) = await call_official(running.url, memory, "auto", ("who", {}), user="dora")
        assert who["subject"] == "dora"


def browser_of(user: str, **variables: str) -> dict[str, str]:
    """Return the environment of a program that opens a browser, with a person."""
    return {**os.environ, "BROWSER": f"{sys.executable} {HERE / 'visitor.py'} {user} %s &", **variables}


def test_the_command_signs_in_with_the_browser_and_the_next_one_does_not_have_to(
    served: SignIn, tmp_path: Path
) -> None:
    first, second, refused = [
        subprocess.run(
            [*FUNCMCP, "call", served.url, "who", *options],
            env=browser_of("gil", XDG_STATE_HOME=str(tmp_path)),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        for options in (["--sign-in"], ["--sign-in"], [])
    ]
    assert first.stderr.startswith(f"Sign in with your browser: {served.origin}/oauth/authorize?"), first.stderr
    assert (json.loads(first.stdout)["subject"], json.loads(second.stdout)["subject"]) == ("gil", "gil")
    assert second.stderr == ""
    assert refused.returncode == 1
    assert refused.stderr.endswith("or sign in with --sign-in.\n")
    assert (tmp_path / "funcmcp" / "sign-ins.json").exists()


def test_fastmcps_client_signs_in_steps_up_and_renews(served: SignIn, stored: SignIn) -> None:
    """One process signs in at two servers, without and with a store: FastMCP takes long to start."""
    fastmcp = REPOSITORY / ".servers/differential/bin/python"
    python = require("FastMCP (scripts/setup-differential.sh)", str(fastmcp) if fastmcp.exists() else None)
    ended = subprocess.run(
        [python, str(HERE / "fastmcp_client.py"), served.url, stored.url],
        env=browser_of("hal"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    who = {"subject": "hal", "name": "hal of the tests", "email": "hal@example.com"}
    assert json.loads(ended.stdout) == [{"results": [who, {"ordered": "pizza"}, who], "is_renewed": True}] * 2

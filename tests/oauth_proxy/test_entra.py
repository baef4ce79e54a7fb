"""Entra ID as upstream, against a script of our own, and the tokens of managed identities against real HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamRefusedError, UpstreamUnavailableError
from funcmcp.auth import EntraID, ManagedIdentity
from tests.auth.making_tokens import NOW, Clock
from tests.oauth_proxy.scripted import APP, ENTRA, TENANT, EntraHTTP, with_keys

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")


def entra(http: EntraHTTP, secret: str | None = "secret", **options: Any) -> Any:
    return with_keys(EntraID(TENANT, APP, secret, clock=Clock(), **options), http)


async def exchange(upstream: Any, code: str = "code") -> Any:
    return await upstream.exchange(code, redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


async def test_a_user_of_the_tenant_signs_in_and_is_named_by_tenant_and_object() -> None:
    http = EntraHTTP()
    http.claims |= {"email": "ada@example.com", "email_verified": True, "roles": ["cook"]}
    signed_in = await exchange(entra(http))
    user = signed_in.user
    assert (user.subject, user.name, user.tenant, user.roles) == (f"{TENANT}.ada-object", "Ada", TENANT, {"cook"})
    assert user.email is None  # Entra does not verify it
    assert signed_in.refresh_token == "code+"
    http.claims["xms_edov"] = True
    assert (await exchange(entra(http), "another")).user.email == "ada@example.com"


async def test_the_request_has_no_resource_and_no_scopes_of_an_api() -> None:
    url = await entra(EntraHTTP()).authorization_url(REQUEST)
    query = dict(parse_qsl(urlsplit(url).query))
    assert url.startswith(f"{ENTRA}/authorize?")
    assert query["scope"] == "openid profile email offline_access"
    assert query["prompt"] == "select_account"
    assert "resource" not in query


async def test_a_refresh_repeats_the_scopes() -> None:
    http = EntraHTTP()
    upstream = entra(http)
    renewed = await upstream.refresh("again", f"{TENANT}.ada-object")
    assert renewed.refresh_token == "again+"
    assert http.requests[-1][3]["scope"] == "openid profile email offline_access"
    with pytest.raises(UpstreamRefusedError, match="AADSTS54005"):
        await upstream.refresh("again", f"{TENANT}.ada-object")


@pytest.mark.parametrize(
    "claims",
    [
        {"tid": "another"},
        {"tid": None},
        {"oid": None},
        {"acct": 1},
        {"idp": "https://sts.windows.net/another/"},
        {"iss": "https://login.microsoftonline.com/another/v2.0"},
        {"iss": f"https://sts.windows.net/{TENANT}/"},
        {"aud": "another"},
        {"nonce": "another"},
    ],
)
async def test_users_of_other_tenants_guests_and_other_tokens_are_refused(claims: dict[str, Any]) -> None:
    http = EntraHTTP()
    http.claims |= claims
    with pytest.raises(UpstreamRefusedError):
        await exchange(entra(http))


async def test_guests_can_be_accepted() -> None:
    http = EntraHTTP()
    http.claims |= {"acct": 1, "idp": "https://sts.windows.net/another/"}
    assert (await exchange(entra(http, guests=True))).user.subject == f"{TENANT}.ada-object"


async def test_an_error_of_the_configuration_is_an_outage_with_its_code_in_the_log() -> None:
    http = EntraHTTP()
    http.token = lambda headers, form: (401, {"error": "invalid_client", "error_description": "AADSTS7000215"})  # type: ignore[method-assign]
    with pytest.raises(UpstreamUnavailableError, match="AADSTS7000215"):
        await exchange(entra(http))


async def credential() -> str:
    return "an assertion"


@pytest.mark.parametrize("function", [credential, lambda: "an assertion"])
async def test_a_credential_is_an_assertion_for_each_request(function: Any) -> None:
    http = EntraHTTP()
    await exchange(entra(http, None, credential=function))
    form = http.requests[-1][3]
    assert form["client_id"] == APP
    assert form["client_assertion"] == "an assertion"
    assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert "client_secret" not in form
    assert "authorization" not in http.requests[-1][2]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("common", APP, "s"), {}),
        ((TENANT, "app", "s"), {}),
        ((TENANT, APP), {}),
        ((TENANT, APP, "s"), {"credential": credential}),
    ],
)
def test_an_invalid_configuration_is_refused(arguments: tuple[str, ...], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"GUID|EntraID needs either"):
        EntraID(*arguments, **options)


async def test_the_token_of_a_managed_identity_is_kept_until_shortly_before_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        body = json.dumps({"access_token": "a token", "expires_on": str(int(NOW) + 3600)}).encode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    clock = Clock()
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", "the header")
    identity = ManagedIdentity("user-assigned", clock=clock)
    assert [await identity(), await identity()] == ["a token", "a token"]
    (head,) = requests
    query = dict(parse_qsl(urlsplit(head.split(" ")[1]).query))
    expected = {"resource": "api://AzureADTokenExchange", "client_id": "user-assigned", "api-version": "2019-08-01"}
    assert query == expected
    assert "x-identity-header: the header" in head.lower()
    clock.now += 3301
    await identity()
    assert len(requests) == 2
    server.close()
    await server.wait_closed()


async def test_on_a_virtual_machine_the_token_comes_from_the_instance_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDENTITY_ENDPOINT", raising=False)
    identity = ManagedIdentity(clock=Clock())
    asked: list[tuple[str, Any]] = []

    async def get(url: str, headers: Any = None) -> dict[str, Any]:
        asked.append((url, headers))
        return {"access_token": "a token", "expires_on": int(NOW) + 3600}

    monkeypatch.setattr(identity._http, "get", get)
    assert await identity() == "a token"
    ((url, headers),) = asked
    assert url.startswith("http://169.254.169.254/metadata/identity/oauth2/token?")
    assert headers == {"metadata": "true"}


@pytest.mark.parametrize(
    "answer", [{}, {"access_token": "t"}, {"expires_on": "1"}, {"access_token": "t", "expires_on": "x"}]
)
async def test_a_managed_identity_without_a_token_is_an_outage(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, str]
) -> None:
    identity = ManagedIdentity()

    async def get(url: str, headers: Any = None) -> dict[str, Any]:
        return answer

    monkeypatch.setattr(identity._http, "get", get)
    with pytest.raises(UpstreamUnavailableError, match="no token"):
        await identity()

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
from tests.oauth_proxy.scripted import APP, TENANT, with_keys
from tests.oauth_proxy.scripted_entra import READ_USER, SECRET, ScriptedEntra
from tests.oauth_proxy.stage import challenge_of

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", challenge_of("verifier"), "nonce")
ADA = f"{TENANT}.ada-object"


def entra(script: ScriptedEntra, secret: str | None = SECRET, **options: Any) -> Any:
    return with_keys(EntraID(TENANT, APP, secret, clock=Clock(), **options), script)


async def exchange(upstream: Any, script: ScriptedEntra) -> Any:
    code = script.sign_in(await upstream.authorization_url(REQUEST))["code"]
    return await upstream.exchange(code, redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


async def test_a_user_of_the_tenant_signs_in_and_is_named_by_tenant_and_object() -> None:
    script = ScriptedEntra(claims={"email": "ada@example.com", "email_verified": True, "roles": ["cook"]})
    signed_in = await exchange(entra(script), script)
    user = signed_in.user
    assert (user.subject, user.name, user.tenant, user.roles) == (ADA, "Ada", TENANT, {"cook"})
    assert user.email is None  # Entra does not verify it
    assert signed_in.refresh_token in script.grants
    assert signed_in.access_token is None
    script.claims["xms_edov"] = True
    assert (await exchange(entra(script), script)).user.email == "ada@example.com"


async def test_the_request_has_no_resource_and_no_scopes_of_an_api() -> None:
    url = await entra(ScriptedEntra()).authorization_url(REQUEST)
    query = dict(parse_qsl(urlsplit(url).query))
    assert query["scope"] == "openid profile email offline_access"
    assert query["prompt"] == "select_account"
    assert "resource" not in query


@pytest.mark.parametrize(
    ("parameters", "prompt"), [({"domain_hint": "example.com"}, "select_account"), ({"prompt": ""}, None)]
)
async def test_parameters_are_added_to_the_request_or_left_out(parameters: dict[str, str], prompt: str | None) -> None:
    url = await entra(ScriptedEntra(), parameters=parameters).authorization_url(REQUEST)
    query = dict(parse_qsl(urlsplit(url).query))
    assert (query.get("domain_hint"), query.get("prompt")) == (parameters.get("domain_hint"), prompt)
    with pytest.raises(ValueError, match=r"EntraID\.parameters can't contain nonce"):
        entra(ScriptedEntra(), parameters={"nonce": "x"})


async def test_a_code_and_a_refresh_are_sent_with_the_scopes() -> None:
    script = ScriptedEntra()
    upstream = entra(script)
    signed_in = await exchange(upstream, script)
    renewed = await upstream.refresh(signed_in.refresh_token, ADA)
    assert renewed.refresh_token in script.grants
    assert [form["scope"] for *_, form in script.requests[-2:]] == ["openid profile email offline_access"] * 2
    with pytest.raises(UpstreamRefusedError, match="AADSTS70000"):
        await upstream.refresh("unknown", ADA)


@pytest.mark.parametrize(
    ("claims", "advice"),
    [
        ({"tid": "another"}, "not one of the organization"),
        ({"tid": None}, "not one of the organization"),
        ({"oid": None}, None),
        ({"acct": 1}, "guests"),
        ({"idp": "https://sts.windows.net/another/"}, "guests"),
        ({"iss": "https://login.microsoftonline.com/another/v2.0"}, "Report it to the operator"),
        ({"iss": f"https://sts.windows.net/{TENANT}/"}, "Report it to the operator"),
        ({"aud": "another"}, "Report it to the operator"),
        ({"nonce": "another"}, "answered for another sign-in"),
    ],
)
async def test_users_of_other_tenants_guests_and_other_tokens_are_refused(
    claims: dict[str, Any], advice: str | None
) -> None:
    script = ScriptedEntra(claims=claims)
    with pytest.raises(UpstreamRefusedError) as caught:
        await exchange(entra(script), script)
    assert advice is None if caught.value.advice is None else str(advice) in caught.value.advice


async def test_guests_can_be_accepted() -> None:
    script = ScriptedEntra(claims={"acct": 1, "idp": "https://sts.windows.net/another/"})
    assert (await exchange(entra(script, guests=True), script)).user.subject == ADA


def many(count: int) -> list[str]:
    return [f"group-{number}" for number in range(count)]


@pytest.mark.parametrize("overage", [{}, {"hasgroups": True}, {"_claim_names": "unreadable"}])
async def test_a_user_with_too_many_groups_for_a_token_does_not_count_as_one_without_groups(
    overage: dict[str, Any],
) -> None:
    script = ScriptedEntra(groups=many(3) if overage else many(201), claims=overage)
    with pytest.raises(UpstreamRefusedError, match="app roles") as caught:
        await exchange(entra(script), script)
    assert "more groups" in str(caught.value.advice)


async def test_groups_that_fit_a_token_are_claims() -> None:
    script = ScriptedEntra(groups=many(200))
    assert (await exchange(entra(script), script)).user.claims["groups"] == many(200)


async def test_groups_can_be_ignored_for_all_users() -> None:
    for count in (1, 201):
        script = ScriptedEntra(groups=many(count))
        user = (await exchange(entra(script, groups="ignore"), script)).user
        assert {"groups", "_claim_names", "_claim_sources"}.isdisjoint(user.claims)


@pytest.mark.parametrize("on_behalf_of", [None, "access_as_user"])
async def test_groups_that_do_not_fit_come_from_microsoft_graph(on_behalf_of: str | None) -> None:
    script = ScriptedEntra(groups=many(250))
    upstream = entra(script, groups="graph", on_behalf_of=on_behalf_of)
    signed_in = await exchange(upstream, script)
    assert signed_in.user.claims["groups"] == many(250)
    assert "_claim_names" not in signed_in.user.claims
    assert (signed_in.access_token is None) == (on_behalf_of is None)
    renewed = await upstream.refresh(signed_in.refresh_token, ADA)
    assert renewed.user.claims["groups"] == many(250)


async def test_a_failure_of_microsoft_graph_does_not_let_a_user_in_without_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = ScriptedEntra(groups=many(250))
    upstream = entra(script, groups="graph")
    answers: list[tuple[int, Any]] = [
        (403, {}),
        (200, {}),
        (200, {"value": [5]}),
        (200, {"value": [{"@odata.type": "#microsoft.graph.group"}]}),
        (200, {"value": [], "@odata.nextLink": "https://evil.example.com/"}),
    ]
    for answer in answers:
        monkeypatch.setattr(script, "graph", lambda url, headers, answer=answer: answer)
        with pytest.raises(UpstreamUnavailableError, match="Microsoft Graph"):
            await exchange(upstream, script)
    endless = 200, {"value": [], "@odata.nextLink": "https://graph.microsoft.com/v1.0/me/transitiveMemberOf?again"}
    monkeypatch.setattr(script, "graph", lambda url, headers: endless)
    with pytest.raises(UpstreamRefusedError, match="too many"):
        await exchange(upstream, script)


async def test_the_application_exchanges_its_token_for_one_of_another_api() -> None:
    script = ScriptedEntra()
    upstream = entra(script, on_behalf_of="access_as_user")
    signed_in = await exchange(upstream, script)
    url = await upstream.authorization_url(REQUEST)
    assert dict(parse_qsl(urlsplit(url).query))["scope"] == f"openid profile email {APP}/access_as_user offline_access"
    issued = await upstream.exchange_token(signed_in.access_token.token, [READ_USER], None)
    assert script.issued[issued.token] == ("https://graph.microsoft.com", frozenset({READ_USER}))
    assert issued.seconds == 3600
    with pytest.raises(ValueError, match="the scopes name the API"):
        await upstream.exchange_token(signed_in.access_token.token, [READ_USER], "graph")


async def credential() -> str:
    return "an assertion"


@pytest.mark.parametrize("function", [credential, lambda: "an assertion"])
async def test_a_credential_is_an_assertion_for_each_request(function: Any) -> None:
    script = ScriptedEntra(federated={"an assertion"})
    await exchange(entra(script, None, credential=function), script)
    form = script.requests[-1][3]
    assert form["client_id"] == APP
    assert form["client_assertion"] == "an assertion"
    assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert "client_secret" not in form
    assert "authorization" not in script.requests[-1][2]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("common", APP, "s"), {}),
        ((TENANT, "app", "s"), {}),
        ((TENANT, APP), {}),
        ((TENANT, APP, "s"), {"credential": credential}),
        ((TENANT, APP, "s"), {"groups": "all"}),
        ((TENANT, APP, "s"), {"on_behalf_of": ""}),
        ((TENANT, APP, "s"), {"on_behalf_of": f"api://{APP}/access_as_user"}),
    ],
)
def test_an_invalid_configuration_is_refused(arguments: tuple[str, ...], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"GUID|EntraID needs either|EntraID.groups|EntraID.on_behalf_of"):
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

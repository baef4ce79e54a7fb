"""Who calls an upstream: what is sent for each caller, and that nothing of a client's own request is."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from funcmcp import Auth, MCPServer, Principal
from funcmcp._upstreams import auth as auth_module
from funcmcp._upstreams.auth import Caller
from funcmcp.auth import BearerTokens, StaticKeys, UpstreamTokenError, VerifiedToken
from funcmcp.client import Client, ClientCredentials, HTTPEndpoint, StdioCommand
from funcmcp.upstreams import Upstream, client_credentials, from_sign_in, on_behalf_of, static, token_exchange
from tests.auth.making_tokens import AUDIENCE, ISSUER, Clock, claims, public, sign

if TYPE_CHECKING:
    from tests.upstreams.recording import Recording

CANARY = "x-canary"
TENANT = "11111111-2222-4333-8444-555555555555"


def desk(upstream: Recording, auth: Any, clock: Clock | None = None) -> MCPServer:
    """Return a server with the features of the upstream, for callers with a token or without."""
    tokens = BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=clock or Clock())
    mcp = MCPServer("Desk", auth=Auth(tokens, lists="open"))
    mcp.mount(Upstream(upstream.url, auth=auth), prefix="docs")
    return mcp


def token_of(subject: str, **changes: object) -> str:
    return sign(claims(sub=subject, **changes))


async def search(mcp: MCPServer, token: str, **headers: str) -> str:
    """Call the tool of the upstream as a caller does who has just connected."""
    fields = {"authorization": f"Bearer {token}", **headers}
    async with Client(mcp, headers=fields) as client:
        result = await client.call_tool("docs_search", {"query": "mcp"})
        return f"{'error: ' if result.get('isError') else ''}{result.text}"


async def test_static_headers_are_sent_with_every_request(upstream: Recording) -> None:
    mcp = desk(upstream, static({"X-Api-Key": "k"}))
    assert await search(mcp, token_of("ada")) == "found mcp"
    assert {call["x-api-key"] for call in upstream.calls} == {"k"}


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"Host": "evil.example"}, ValueError),
        ({"Mcp-Session-Id": "x"}, ValueError),
        ({"x-key": "a\r\nx-evil: 1"}, ValueError),
        ({"x-key": 7}, ValueError),
        ("x-key: 7", TypeError),
    ],
)
def test_headers_that_a_request_can_not_have_are_refused(headers: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        static(headers)
    assert "evil: 1" not in str(raised.value)


async def test_a_function_of_the_principal_returns_the_headers(upstream: Recording) -> None:
    async def by_name(principal: Principal | None) -> dict[str, str]:
        return {"x-user": "nobody" if principal is None else principal.subject}

    mcp = desk(upstream, by_name)
    await asyncio.gather(*(search(mcp, token_of(name)) for name in ("ada", "bob", "eve")))
    users = [call["x-user"] for call in upstream.calls if call.get("mcp-method") == "tools/call"]
    assert sorted(users) == ["ada", "bob", "eve"]


def test_auth_is_a_function_and_for_urls(upstream: Recording) -> None:
    with pytest.raises(TypeError, match=r"function of the principal.*not str"):
        Upstream(upstream.url, auth="Bearer x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the class StaticKeys"):
        Upstream(upstream.url, auth=StaticKeys)  # type: ignore[arg-type]
    for target in (StdioCommand("python", "server.py"), MCPServer("Other")):
        with pytest.raises(ValueError, match="for a URL or an HTTPEndpoint"):
            Upstream(target, auth=static({}))
    with pytest.raises(ValueError, match="one of them says who calls"):
        Upstream(HTTPEndpoint(upstream.url, sign_in=ClientCredentials("a", "b")), auth=static({}))


async def test_a_server_calls_as_itself_with_one_token_for_all_callers(upstream: Recording, issuer: Recording) -> None:
    auth = client_credentials(issuer.token_url, "desk", "hush-hush", scopes=["docs.read"], resource=upstream.url)
    mcp = desk(upstream, auth)
    assert await asyncio.gather(*(search(mcp, token_of(name)) for name in ("ada", "bob"))) == ["found mcp"] * 2
    form = {"grant_type": "client_credentials", "resource": upstream.url, "scope": "docs.read"}
    assert issuer.forms == [form]
    assert upstream.tokens == {"Bearer token-1"}


async def test_a_token_is_renewed_before_it_expires(upstream: Recording, issuer: Recording) -> None:
    clock = Clock()
    mcp = desk(upstream, client_credentials(issuer.token_url, "desk", "hush-hush", clock=clock))
    await search(mcp, token_of("ada"))
    clock.now += 3600 - 31
    await search(mcp, token_of("ada"))
    assert len(issuer.forms) == 1
    clock.now += 2
    await search(mcp, token_of("ada"))
    assert len(issuer.forms) == 2


async def test_a_token_with_a_short_lifetime_is_not_requested_for_each_call(
    upstream: Recording, issuer: Recording
) -> None:
    issuer.expires_in = 20
    mcp = desk(upstream, client_credentials(issuer.token_url, "desk", "hush-hush", clock=Clock()))
    await search(mcp, token_of("ada"))
    await search(mcp, token_of("ada"))
    assert len(issuer.forms) == 1


async def test_a_further_scope_is_requested_once(upstream: Recording, issuer: Recording) -> None:
    mcp = desk(upstream, client_credentials(issuer.token_url, "desk", "hush-hush", scopes=["docs.read"]))
    await search(mcp, token_of("ada"))
    upstream.challenge = 'Bearer error="insufficient_scope", scope="docs.admin"'
    upstream.needs_token = "token-2"
    assert await search(mcp, token_of("ada")) == "found mcp"
    assert [form["scope"] for form in issuer.forms] == ["docs.read", "docs.read docs.admin"]
    upstream.needs_token = "token-9"
    assert "The token lacks: docs.admin." in await search(mcp, token_of("ada"))
    assert len(issuer.forms) == 2


async def test_a_scope_that_is_not_issued_changes_nothing(upstream: Recording, issuer: Recording) -> None:
    mcp = desk(upstream, client_credentials(issuer.token_url, "desk", "hush-hush"))
    await search(mcp, token_of("ada"))
    upstream.challenge = 'Bearer error="insufficient_scope", scope="docs.admin"'
    issuer.answers = [(400, {"error": "invalid_scope"})]
    assert "The token lacks: docs.admin." in await search(mcp, token_of("ada"))
    upstream.challenge = None
    assert await search(mcp, token_of("ada")) == "found mcp"
    assert len(issuer.forms) == 2


async def test_a_token_that_the_upstream_refuses_is_renewed_once(upstream: Recording, issuer: Recording) -> None:
    mcp = desk(upstream, client_credentials(issuer.token_url, "desk", "hush-hush"))
    await search(mcp, token_of("ada"))
    upstream.valid = {"token-2"}
    assert await search(mcp, token_of("ada")) == "found mcp"
    assert len(issuer.forms) == 2
    upstream.valid = set()
    upstream.calls.clear()
    text = await search(mcp, token_of("ada"))
    assert text.startswith("error: ")
    assert "does not accept the credentials of this server" in text
    assert (len(issuer.forms), len(upstream.calls)) == (3, 2)


async def test_each_caller_has_a_token_of_its_own(upstream: Recording, issuer: Recording) -> None:
    auth = token_exchange(issuer.token_url, "desk", "hush-hush", audience="docs", scopes=["docs.read"])
    mcp = desk(upstream, auth)
    ada, bob = token_of("ada"), token_of("bob")
    async with Client(mcp, headers={"authorization": f"Bearer {ada}"}) as client:
        for _ in range(3):
            assert (await client.call_tool("docs_search", {"query": "mcp"})).text == "found mcp"
    await search(mcp, bob)
    assert [form["subject_token"] for form in issuer.forms] == [ada, bob]
    assert issuer.forms[0] == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": ada,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "audience": "docs",
        "scope": "docs.read",
    }
    assert issuer.token_headers[0]["authorization"] == "Basic ZGVzazpodXNoLWh1c2g="
    assert upstream.tokens == {"Bearer token-1", "Bearer token-2"}


async def test_callers_of_one_token_share_one_request(upstream: Recording, issuer: Recording) -> None:
    mcp = desk(upstream, token_exchange(issuer.token_url, "desk", "hush-hush"))
    token = token_of("ada")
    async with Client(mcp, headers={"authorization": f"Bearer {token}"}) as client:
        calls = [client.call_tool("docs_search", {"query": "mcp"}) for _ in range(20)]
        texts = [result.text for result in await asyncio.gather(*calls)]
    assert texts == ["found mcp"] * 20
    assert len(issuer.forms) == 1


async def test_another_token_of_a_caller_is_exchanged_anew(upstream: Recording, issuer: Recording) -> None:
    mcp = desk(upstream, token_exchange(issuer.token_url, "desk", "hush-hush"))
    await search(mcp, token_of("ada", scope="read"))
    await search(mcp, token_of("ada", scope="read write"))
    assert len(issuer.forms) == 2


async def test_entra_issues_tokens_on_behalf_of_callers(upstream: Recording, issuer: Recording) -> None:
    auth = on_behalf_of(TENANT, "desk", "hush-hush", scopes=["api://docs/.default"], token_url=issuer.token_url)
    token = token_of("ada")
    assert await search(desk(upstream, auth), token) == "found mcp"
    assert issuer.forms[0] == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "requested_token_use": "on_behalf_of",
        "assertion": token,
        "scope": "api://docs/.default",
    }


def test_on_behalf_of_needs_a_tenant_and_scopes() -> None:
    with pytest.raises(ValueError, match="tenant must be a GUID"):
        on_behalf_of("common", "desk", "hush-hush", scopes=["a"])
    with pytest.raises(ValueError, match="needs scopes"):
        on_behalf_of(TENANT, "desk", "hush-hush", scopes=[])
    with pytest.raises(ValueError, match="must begin with https"):
        token_exchange("http://login.example.com/token", "desk", "hush-hush")
    with pytest.raises(ValueError, match="either client_secret or credential"):
        token_exchange("https://login.example.com/token", "desk", "hush-hush", credential=lambda: "x")


async def test_a_caller_without_a_token_is_refused_where_the_identity_is_needed(
    upstream: Recording, issuer: Recording
) -> None:
    auth = token_exchange(issuer.token_url, "desk", "hush-hush")
    for principal, text in [(None, "needs to know who calls"), (Principal("ada"), "no token that can be exchanged")]:
        with pytest.raises(UpstreamTokenError, match=text) as raised:
            await auth.headers(Caller(principal))
        assert raised.value.reason == "missing"
    assert issuer.received == []


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        ((400, {"error": "invalid_grant", "error_description": "{canary}"}), "sign_in", "Sign in again"),
        ((400, {"error": "interaction_required"}), "sign_in", "interaction_required"),
        ((403, {"error": "mfa_required"}), "sign_in", "mfa_required"),
        ((400, {"error": "invalid_scope"}), "configuration", "The log of this server says why"),
        ((429, {"error": "slow_down"}), "unavailable", "Try again later"),
        ((401, {"error": "invalid_client"}), "configuration", "The log of this server says why"),
        ((503, {}), "unavailable", "Try again later"),
        ((200, {}), "unavailable", "Try again later"),
        ((200, {"access_token": "a", "token_type": "DPoP"}), "unavailable", "Try again later"),
        ((200, {"access_token": "a\nb"}), "unavailable", "Try again later"),
        ((302, {}), "configuration", "The log"),
    ],
)
async def test_failures_name_no_secret_and_hold_for_some_seconds(
    upstream: Recording, issuer: Recording, caplog: pytest.LogCaptureFixture, answer: Any, reason: str, text: str
) -> None:
    del upstream
    clock = Clock()
    token = token_of("ada")
    status, body = answer
    echoed = {name: value.replace("{canary}", f"{token} hush-hush") for name, value in body.items()}
    issuer.answers = [(status, echoed)] * 2
    auth = token_exchange(issuer.token_url, "desk", "hush-hush", clock=clock)
    caller = Caller(Principal("ada", verified_token=VerifiedToken(token)))
    for _ in range(3):
        with pytest.raises(UpstreamTokenError, match=text) as raised:
            await auth.headers(caller)
        assert raised.value.reason == reason
        assert token not in str(raised.value)
        assert "hush-hush" not in str(raised.value)
        assert raised.value.__cause__ is None
    assert len(issuer.forms) == 1
    assert "event=upstream_token_failed" in caplog.text
    assert token not in caplog.text
    assert "hush-hush" not in caplog.text
    clock.now += 6
    with pytest.raises(UpstreamTokenError):
        await auth.headers(caller)
    assert len(issuer.forms) == 2


async def test_a_missing_scope_is_named_to_the_caller(upstream: Recording, issuer: Recording) -> None:
    mcp = desk(upstream, client_credentials(issuer.token_url, "desk", "hush-hush"))
    await search(mcp, token_of("ada"))
    upstream.challenge = 'Bearer error="insufficient_scope", scope="docs.read docs.admin"'
    text = await search(mcp, token_of("ada"))
    assert "The token lacks: docs.read docs.admin." in text
    assert len(issuer.forms) == 2
    upstream.challenge = "Bearer"
    assert "denies access with these credentials" in await search(mcp, token_of("ada"))


async def test_what_a_sign_in_gives_for_another_api_is_sent(upstream: Recording) -> None:
    requested = []

    async def tokens(scopes: Any, audience: str | None) -> str:
        requested.append((tuple(scopes), audience))
        return "exchanged"

    auth = from_sign_in(["docs.read"], audience="docs")
    assert await auth.headers(Caller(Principal("ada", upstream_tokens=tokens))) == {"authorization": "Bearer exchanged"}
    assert requested == [(("docs.read",), "docs")]
    for principal in (None, Principal("ada")):
        with pytest.raises(UpstreamTokenError, match="needs a user"):
            await auth.headers(Caller(principal))
    assert upstream.received == []


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


async def test_a_canary_of_the_client_reaches_the_token_endpoint_alone(
    upstream: Recording,
    issuer: Recording,
    shared_issuer: Recording,
    spans: InMemorySpanExporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No token passthrough ("Security Best Practices")."""
    del shared_issuer
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    caplog.set_level(logging.DEBUG)
    canary = token_of("canary")
    mcp = desk(upstream, token_exchange(issuer.token_url, "desk", "hush-hush"))
    mcp.trace(provider)
    headers = {CANARY: "canary-header", "cookie": "canary=cookie", "x-api-key": "canary-key", "dpop": "canary-proof"}
    assert await search(mcp, canary, **headers) == "found mcp"
    upstream.valid = set()
    await search(mcp, canary, **headers)
    upstream.valid, upstream.redirect = None, f"{issuer.origin}/elsewhere"
    issuer.received.clear()
    text = await search(mcp, canary, **headers)
    assert text.startswith("error: ")
    assert issuer.received == []  # neither the canary nor the token of the upstream went there
    exported = " ".join(span.to_json() for span in spans.get_finished_spans())
    assert exported
    for place in (upstream.everything, caplog.text, exported, text):
        assert canary not in place
        assert "canary-" not in place.replace("canary-header ", "")
        assert "hush-hush" not in place
    assert "token-1" in upstream.everything
    for place in (caplog.text, exported, text):
        assert "token-1" not in place


async def test_a_token_is_in_no_representation_or_copy_of_its_principal() -> None:
    token = token_of("canary")
    tokens = BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=Clock())
    principal = await tokens({"authorization": f"Bearer {token}"})
    assert isinstance(principal, Principal)
    assert principal.verified_token is not None
    assert principal.verified_token.reveal() == token
    assert principal == dataclasses.replace(principal, verified_token=None)
    assert copy.deepcopy(principal.verified_token) is None
    assert pickle.loads(pickle.dumps([principal.verified_token])) == [None]
    for text in (repr(principal), str(principal.verified_token)):
        assert token not in text


@pytest.mark.parametrize(("seconds", "until"), [(90, 81.0), (10**400, 270.0), (True, 270.0), ("90", 270.0)])
def test_a_lifetime_that_is_not_a_usable_number_is_the_default_one(seconds: object, until: float) -> None:
    assert auth_module.issued_in({"access_token": "t", "expires_in": seconds}, 0.0).until == until

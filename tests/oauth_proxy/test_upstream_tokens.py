"""Tokens for other APIs: from a tool to the identity provider, and everything that it may answer."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._auth.authenticator import Challenge
from funcmcp._oauth_proxy import upstream_tokens
from funcmcp._oauth_proxy.upstream import (
    IssuedToken,
    SignIn,
    UpstreamMisconfiguredError,
    UpstreamRefusedError,
    UpstreamUnavailableError,
)
from funcmcp._server.calls.task_call import decode_call, encode_call
from funcmcp.auth import APIKeys, Auth, Principal, UpstreamTokenError, first_of
from funcmcp.client import Client
from funcmcp.state import KeyRing, MemorySignIns
from tests.auth.making_tokens import Clock
from tests.instances import per_request
from tests.oauth_proxy.scripted_entra import READ_USER
from tests.oauth_proxy.stage import ISSUER, KEYS, ScriptedUpstream, Stage, claims_of
from tests.oauth_proxy.test_entra_errors import EntraStage
from tests.server.calls.test_task_call import CHANNEL
from tests.server.parts import tool
from tests.server.task_parts import HTTP, asking

SCOPES = ["https://api.example.com/read"]


class ExchangingUpstream(ScriptedUpstream):
    """An identity provider that exchanges tokens.

    Attributes:
        exchanged: The tokens, scopes and audiences of the exchanges.
        answer: What it answers: an exception, or seconds.
        lifetime: Seconds for which the access tokens of sign-ins are valid.
    """

    def __init__(self) -> None:
        super().__init__()
        self.exchanges_tokens = True
        self.exchanged: list[tuple[str, tuple[str, ...], str | None]] = []
        self.answer: Exception | float | None = 600.0
        self.lifetime: float | None = 3600.0
        self.token = "upstream-access"

    async def exchange(self, code: str, **values: Any) -> SignIn:
        signed_in = await super().exchange(code, **values)
        return signed_in._replace(access_token=IssuedToken(self.token, self.lifetime))

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        signed_in = await super().refresh(refresh_token, subject)
        return signed_in._replace(access_token=IssuedToken(f"{self.token}-renewed", self.lifetime))

    async def exchange_token(self, access_token: str, scopes: Any, audience: str | None) -> IssuedToken:
        self.exchanged.append((access_token, tuple(scopes), audience))
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return IssuedToken(f"token-{len(self.exchanged)}", self.answer)


async def signed_in(**options: Any) -> tuple[Stage, ExchangingUpstream, Principal, str]:
    upstream = ExchangingUpstream()
    stage = Stage(upstream=upstream, **options)
    stage.upstream = upstream
    await stage.with_client()
    token = (await stage.tokens())["access_token"]
    return stage, upstream, await stage.caller_of(token), token


async def token_of(principal: Principal, scopes: Any = SCOPES, audience: str | None = None) -> str:
    assert principal.upstream_tokens is not None
    assert principal.verified_token is None  # the proxy's own token is sent nowhere
    return await principal.upstream_tokens(scopes, audience)


async def test_the_token_of_the_sign_in_is_exchanged_and_never_the_clients() -> None:
    _, upstream, principal, token = await signed_in()
    assert await token_of(principal, [*SCOPES, *SCOPES], "api") == "token-1"
    assert upstream.exchanged == [("upstream-access", tuple(SCOPES), "api")]
    assert token not in str(upstream.exchanged)


async def test_neither_the_client_nor_an_author_sees_the_token_of_the_provider() -> None:
    _, _, principal, token = await signed_in()
    assert "upstream-access" not in str(claims_of(token))
    assert claims_of(token)["upstream"].startswith("c1.")
    assert "upstream" not in principal.claims
    assert "upstream" not in repr(principal)
    assert principal == Principal(
        **{
            name: getattr(principal, name)
            for name in ("subject", "issuer", "client_id", "scopes", "roles", "claims", "name")
        }
    )


async def test_without_the_option_no_token_of_the_provider_is_kept() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens())["access_token"]
    assert "upstream" not in claims_of(token)
    assert (await stage.caller_of(token)).upstream_tokens is None
    assert (await stage.caller_of(token)).verified_token is None


async def test_a_token_is_requested_once_for_all_calls_at_the_same_time_and_kept_until_shortly_before_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(1000.0)
    monkeypatch.setattr(upstream_tokens, "monotonic", clock)
    _, upstream, principal, _ = await signed_in()
    assert set(await asyncio.gather(*(token_of(principal) for _ in range(20)))) == {"token-1"}
    clock.now += 539
    assert await token_of(principal) == "token-1"
    assert await token_of(principal, ["https://api.example.com/write"]) == "token-2"
    assert await token_of(principal, audience="api") == "token-3"
    clock.now += 1
    assert await token_of(principal) == "token-4"
    assert len(upstream.exchanged) == 4


@pytest.mark.parametrize("seconds", [None, 60.0])
async def test_a_token_without_a_lifetime_or_with_a_short_one_is_not_kept(seconds: float | None) -> None:
    _, upstream, principal, _ = await signed_in()
    upstream.answer = seconds
    assert [await token_of(principal), await token_of(principal)] == ["token-1", "token-2"]


async def test_a_very_long_token_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_tokens, "_MAX_CACHED_TOKEN", len("token-1") - 1)
    _, _, principal, _ = await signed_in()
    assert [await token_of(principal), await token_of(principal)] == ["token-1", "token-2"]


async def test_another_user_and_another_sign_in_get_tokens_of_their_own() -> None:
    stage, upstream, principal, _ = await signed_in()
    upstream.token = "another-sign-in"
    second = await stage.caller_of((await stage.tokens())["access_token"])
    assert [await token_of(principal), await token_of(second)] == ["token-1", "token-2"]
    assert [token for token, *_ in upstream.exchanged] == ["upstream-access", "another-sign-in"]


async def test_few_tokens_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1000.0)
    monkeypatch.setattr(upstream_tokens, "monotonic", clock)
    monkeypatch.setattr(upstream_tokens, "_MAX_CACHED", 2)
    _, upstream, principal, _ = await signed_in()
    for number in range(3):
        await token_of(principal, [f"scope-{number}"])
    assert await token_of(principal, ["scope-2"]) == "token-3"
    assert await token_of(principal, ["scope-0"]) == "token-4"
    clock.now += 1000
    assert await token_of(principal, ["scope-2"]) == "token-5"
    assert len(upstream.exchanged) == 5


@pytest.mark.parametrize("store", [None, MemorySignIns])
async def test_a_refresh_brings_a_new_token_of_the_provider(store: Any) -> None:
    upstream = ExchangingUpstream()
    stage = Stage(upstream=upstream, store=store and store())
    stage.upstream = upstream
    await stage.with_client()
    renewed = await stage.refresh((await stage.tokens())["refresh_token"])
    await token_of(await stage.caller_of(renewed.json["access_token"]))
    assert upstream.exchanged[0][0] == "upstream-access-renewed"


@pytest.mark.parametrize(("lifetime", "seconds"), [(900.5, 900), (None, 3600), (90_000.0, 3600)])
async def test_the_access_token_ends_with_that_of_the_provider(lifetime: float | None, seconds: int) -> None:
    upstream = ExchangingUpstream()
    upstream.lifetime = lifetime
    stage = Stage(upstream=upstream)
    stage.upstream = upstream
    await stage.with_client()
    tokens = await stage.tokens()
    claims = claims_of(tokens["access_token"])
    assert tokens["expires_in"] == claims["exp"] - claims["iat"] == seconds


async def test_a_token_that_is_too_long_for_a_header_is_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    upstream = ExchangingUpstream()
    upstream.token = "x" * 4097
    stage = Stage(upstream=upstream)
    stage.upstream = upstream
    await stage.with_client()
    token = (await stage.tokens())["access_token"]
    assert (await stage.caller_of(token)).upstream_tokens is None
    await stage.tokens()
    assert caplog.text.count("oauth_upstream_token_too_long characters=4097") == 1


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (UpstreamRefusedError("secret reason", "Ask for it."), "sign_in", "Ask for it."),
        (UpstreamRefusedError("secret reason"), "sign_in", "gives no token"),
        (UpstreamMisconfiguredError("secret reason", "The operator has to."), "configuration", "The operator has to."),
        (UpstreamMisconfiguredError("secret reason"), "configuration", "Report it to the operator"),
        (UpstreamUnavailableError("secret reason"), "unavailable", "can't be reached"),
    ],
)
async def test_an_error_says_who_can_do_something(
    answer: Exception, reason: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, upstream, principal, _ = await signed_in()
    upstream.answer = answer
    with pytest.raises(UpstreamTokenError) as caught:
        await token_of(principal)
    assert caught.value.reason == reason
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "step=exchange" in caplog.text
    upstream.answer = 600.0
    assert await token_of(principal) == "token-2"


async def test_a_caller_that_is_cancelled_does_not_stop_the_request_of_others() -> None:
    _, upstream, principal, _ = await signed_in()
    first = asyncio.create_task(token_of(principal))
    await asyncio.sleep(0)
    second = asyncio.create_task(token_of(principal))
    first.cancel()
    assert await second == "token-1"
    assert len(upstream.exchanged) == 1


async def test_a_rotated_key_exchanges_and_a_removed_one_asks_for_a_sign_in() -> None:
    stage, upstream, _, token = await signed_in()
    stage.proxy = stage.instance(keys=KeyRing([b"a newer key of the tests" * 2, b"the key of the tests" * 2]))
    await token_of(await stage.caller_of(token))
    assert len(upstream.exchanged) == 1
    stage.proxy = stage.instance(keys=KeyRing([b"another key of the tests" * 2]))
    assert isinstance(await stage.caller_of(token), Challenge)
    exchange = stage.instance()._settings.exchange
    assert exchange is not None
    tokens = exchange.tokens_of("c1.damaged")
    assert tokens is not None
    with pytest.raises(UpstreamTokenError, match="Sign in again"):
        await tokens(SCOPES, None)
    assert exchange.tokens_of(5) is None


async def test_the_concealed_token_stands_for_no_other_text_of_the_proxy() -> None:
    stage, _, _, token = await signed_in()
    concealed = claims_of(token)["upstream"]
    assert (await stage.refresh(concealed)).json["error"] == "invalid_grant"
    assert (await stage.exchange(concealed)).json["error"] == "invalid_grant"
    assert KEYS.of("oauth https://another.example.com/mcp").reveal("oauth upstream", concealed) is None


# With Entra, and from a tool


async def test_a_tool_calls_microsoft_graph_on_behalf_of_the_user() -> None:
    stage = EntraStage(on_behalf_of="access_as_user")
    await stage.with_client()
    token = (await stage.tokens())["access_token"]
    assert len(token) < 2000
    principal = await stage.caller_of(token)
    exchanged = await token_of(principal, [READ_USER])
    assert stage.entra.issued[exchanged] == ("https://graph.microsoft.com", frozenset({READ_USER}))
    stage.entra.consented.clear()
    with pytest.raises(UpstreamTokenError, match="Ask an administrator") as caught:
        await token_of(principal, ["https://graph.microsoft.com/Mail.Read"])
    assert caught.value.reason == "sign_in"
    stage.entra.exchange_error = "interaction_required", 50076, "Use multi-factor authentication."
    with pytest.raises(UpstreamTokenError, match=r"another proof of who you are.*AADSTS50076"):
        await token_of(principal, [READ_USER, "https://graph.microsoft.com/Mail.Read"])
    with pytest.raises(UpstreamTokenError, match="AADSTS28000") as caught:
        await token_of(principal, [READ_USER, "https://management.azure.com/user_impersonation"])
    assert caught.value.reason == "configuration"


async def test_a_tool_without_a_sign_in_gets_an_error_that_its_caller_reads() -> None:
    mcp = MCPServer("Orders")

    @mcp.tool
    async def calendar(context: Context) -> str:
        return await context.upstream_token(SCOPES)

    @mcp.tool
    async def wrong(context: Context) -> str:
        return await context.upstream_token("one string")

    async with Client(mcp) as client:
        result = await client.call_tool("calendar")
        assert (result.is_error, "sign-in of the user" in result.text) == (True, True)
        assert (await client.call_tool("wrong")).is_error


async def test_a_tool_over_http_gets_a_token_for_its_caller_and_not_for_a_robot_with_a_key() -> None:
    stage, upstream, _, token = await signed_in()
    authenticator = first_of(APIKeys({"robot": "a-key-of-16-characters"}), stage.proxy)
    hosts = HTTPOptions(allowed_hosts=["orders.example.com"])
    mcp = MCPServer("Orders", auth=Auth(authenticator), http=hosts)
    received: list[str] = []

    @mcp.tool
    async def calendar(context: Context) -> str:
        received.append(await context.upstream_token(SCOPES, audience="api"))
        return "read"

    message, headers = per_request("tools/call", name="calendar", arguments={})
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers["accept"] = "application/json, text/event-stream"

    async def call(**credentials: str) -> Any:
        answer = await http.post(
            "/mcp",
            json={"jsonrpc": "2.0", **message},
            headers=headers | {name.replace("_", "-"): value for name, value in credentials.items()},
        )
        return answer.json()["result"]

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp), base_url=ISSUER) as http:
        for _ in range(2):
            assert (await call(authorization=f"Bearer {token}"))["content"][0]["text"] == "read"
        assert received == ["token-1", "token-1"]
        assert upstream.exchanged == [("upstream-access", tuple(SCOPES), "api")]
        refused = await call(x_api_key="a-key-of-16-characters")
        assert (refused["isError"], "sign-in of the user" in refused["content"][0]["text"]) == (True, True)


async def test_a_stored_call_of_a_task_has_neither_the_token_nor_a_way_to_others() -> None:
    _, _, principal, token = await signed_in()
    call = encode_call(asking("tools/call", {"name": "job", "arguments": {}}, http=HTTP(principal)))
    assert claims_of(token)["upstream"].encode() not in call
    restored = decode_call(call, tool("job"), task_id="1", channel=CHANNEL)
    assert restored is not None
    assert restored.principal is not None
    assert (restored.principal.subject, restored.principal.upstream_tokens) == (principal.subject, None)

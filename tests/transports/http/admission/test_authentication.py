"""Authenticators that fail or answer nonsense, and batches beyond the limit; all else is seen on the wire."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp._auth.authenticator import Challenge, UnavailableError
from funcmcp._auth.policy import Auth
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._server.authorization import Guard
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.admission.authentication import Authentication
from funcmcp.testing import Client, MemoryRequest, post
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, claims, public, sign
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.authenticator import Authenticator


class PanicError(BaseException):
    """What a library that is not written in Python may raise."""


@pytest.mark.parametrize(
    "answer",
    [
        True,
        "alice",
        {"sub": "alice"},
        RuntimeError("secret-of-the-house"),
        PanicError("secret-of-the-house"),
        SystemExit(3),
        asyncio.CancelledError(),
    ],
)
async def test_a_faulty_authenticator_is_500_with_an_error_id_and_lets_nobody_in(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def faulty(_headers: Mapping[str, str]) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    mcp = MCPServer("Orders", auth=Auth(faulty, lists="open"))
    response = await post(runtime_of(mcp).exchange, "/mcp", b"{}", {})
    assert response.status == 500
    assert isinstance(response.body, bytes)
    said = json.loads(response.body)["error"]
    assert said["code"] == -32603
    assert "secret" not in said["message"]
    assert said["message"].split()[-1].rstrip(".") in caplog.text


async def test_credentials_that_can_not_be_checked_now_are_503_and_not_401() -> None:
    async def away(_headers: Mapping[str, str]) -> Any:
        raise UnavailableError("The keys of the issuer are not available.", 7)

    mcp = MCPServer("Orders", auth=Auth(away, lists="open"))
    response = await post(runtime_of(mcp).exchange, "/mcp", b"{}", {})
    assert response.status == 503
    assert ("retry-after", "7") in response.headers
    assert isinstance(response.body, bytes)
    assert json.loads(response.body)["error"]["message"] == "The keys of the issuer are not available."


class RevokingTokens(BearerTokens):
    """Tokens of which the author's own list revokes some."""

    revoked = False

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Check a token, and the list."""
        return Challenge("invalid_token", "Revoked.") if self.revoked else await super().__call__(headers)


def ping_with(*authorization: str) -> MemoryRequest:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    lines = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    lines += [(b"authorization", line.encode()) for line in authorization]
    return MemoryRequest("POST", "/mcp", lines, body)


async def test_a_token_that_was_checked_before_is_refused_once_it_has_expired() -> None:
    clock = Clock()
    bearer = BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=clock)
    exchange = runtime_of(MCPServer("Orders", auth=Auth(bearer), sessions=None)).exchange
    header = f"Bearer {sign(claims(exp=NOW + 10))}"
    for now, status in ((NOW, 200), (NOW + 1, 200), (NOW + 69, 200), (NOW + 70, 401), (NOW + 71, 401)):
        clock.now = now
        assert (await exchange(ping_with(header))).status == status


async def test_a_token_that_was_checked_before_is_refused_next_to_another_one() -> None:
    bearer = BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=Clock())
    exchange = runtime_of(MCPServer("Orders", auth=Auth(bearer), sessions=None)).exchange
    header = f"Bearer {sign(claims())}"
    assert [(await exchange(ping_with(header))).status for _ in range(2)] == [200, 200]
    assert (await exchange(ping_with(header, header))).status == 400
    assert (await exchange(ping_with())).status == 401
    assert (await exchange(ping_with(f"Basic {header}"))).status == 401


async def test_a_subclass_checks_each_request_even_if_the_token_is_cached() -> None:
    bearer = RevokingTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=Clock())
    exchange = runtime_of(MCPServer("Orders", auth=Auth(bearer), sessions=None)).exchange
    header = f"Bearer {sign(claims())}"
    assert [(await exchange(ping_with(header))).status for _ in range(2)] == [200, 200]
    bearer.revoked = True
    assert (await exchange(ping_with(header))).status == 401


async def test_an_authenticator_that_never_answers_is_500_and_holds_up_no_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def hang(_headers: Mapping[str, str]) -> Principal:
        await asyncio.Event().wait()
        return Principal("alice")

    monkeypatch.setattr("funcmcp._transports.http.admission.authentication.DECISION_TIMEOUT", 0.01)
    mcp = MCPServer("Orders", auth=Auth(hang, lists="open"))
    response = await asyncio.wait_for(post(runtime_of(mcp).exchange, "/mcp", b"{}", {}), PATIENCE)
    assert response.status == 500
    assert "TimeoutError: " in caplog.text
    assert "feature=authenticator" in caplog.text
    assert runtime_of(mcp).server.load.requests.used == 0


class Forwarded(MemoryRequest):
    """A request that a proxy on 127.0.0.1 passes on."""

    peer = "127.0.0.1"
    network_transport = "tcp"


async def test_a_refusal_with_401_is_logged_once_in_a_minute_with_the_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def nobody(headers: Mapping[str, str]) -> Challenge | None:
        return Challenge("invalid_token", "It is\nold.") if "authorization" in headers else None

    """A client sends a request without credentials before each sign-in: that is no warning, and hides no other line."""
    monkeypatch.setenv("FUNCMCP_PROXIES", "1")
    caplog.set_level(logging.INFO)
    exchange = runtime_of(MCPServer("Orders", auth=nobody)).exchange
    for fields, level, reason in (
        ({}, "INFO", "it has no credentials."),
        ({"authorization": "Bearer secret"}, "WARNING", "It is old."),
    ):
        pairs = [(b"host", b"127.0.0.1"), (b"x-forwarded-for", b"192.0.2.9"), (b"content-type", b"application/json")]
        pairs += [(name.encode(), value.encode()) for name, value in fields.items()]
        pairs.append((b"accept", b"application/json, text/event-stream"))
        for _ in range(3):
            response = await exchange(Forwarded("POST", "/mcp", pairs, b'{"jsonrpc":"2.0","method":"ping","id":1}'))
            assert response.status == 401
        lines = [record for record in caplog.records if "is refused with 401" in record.getMessage()]
        assert [(line.levelname, line.getMessage()) for line in lines] == [
            (level, f"A request of 192.0.2.9 is refused with 401: {reason}")
        ]
        caplog.clear()


async def test_no_more_than_100_messages_of_a_batch_are_decided_about() -> None:
    asked: list[Principal] = []

    def allow(principal: Principal) -> bool:
        asked.append(principal)
        return True

    async def anybody(_headers: Mapping[str, str]) -> Principal:
        return Principal("alice")

    mcp = MCPServer("Orders", auth=anybody)
    mcp.tool("it", authorize=allow)(lambda: "")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "it"}}
    server = runtime_of(mcp).server
    assert server.guard is not None
    authentication = Authentication(server, server.guard, anybody)
    request = MemoryRequest("POST", "/mcp", [], b"")
    request.principal = Principal("alice")
    assert await authentication.check([call] * 5000, request) is None
    assert len(asked) == 100


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_client_for_tests_sends_headers(revision: str) -> None:
    async def by_name(headers: Mapping[str, str]) -> Principal | None:
        return Principal(headers["x-name"]) if "x-name" in headers else None

    mcp = MCPServer("Orders", auth=by_name)

    @mcp.tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with Client(mcp, revision=revision, headers={"X-Name": "alice"}) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2}))["content"][0]["text"] == "3"


def test_a_server_says_which_of_its_features_mean_nothing_without_auth(caplog: pytest.LogCaptureFixture) -> None:
    for auth, options, warned in (
        (None, {"scopes": ["a"]}, True),
        (None, {}, False),
        (_nobody, {"scopes": ["a"]}, False),
    ):
        caplog.clear()
        mcp = MCPServer("Orders", auth=auth)
        mcp.tool("it", **options)(lambda: "")  # type: ignore[call-overload]
        runtime_of(mcp).begin()
        assert ("have no effect without auth" in caplog.text) is warned


async def _nobody(_headers: Mapping[str, str]) -> None:
    return None


def test_ways_to_say_who_calls() -> None:
    authenticate: Authenticator = _nobody
    assert runtime_of(MCPServer("Orders")).server.guard is None
    assert isinstance(runtime_of(MCPServer("Orders", auth=authenticate)).server.guard, Guard)
    with pytest.raises(ValueError, match="lists must be"):
        MCPServer("Orders", auth=Auth(authenticate, lists="some"))  # type: ignore[arg-type]
    assert MemoryRequest("GET", "/", [], b"").principal is None

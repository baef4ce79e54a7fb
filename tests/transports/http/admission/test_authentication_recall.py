"""Requests that repeat a header share the digest of its credentials. All other decisions are made for each request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpRequest, RequestHeader
from funcmcp.auth import BearerTokens, Challenge, Principal, StaticKeys
from funcmcp.state import MemoryRates
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, claims, public, sign

if TYPE_CHECKING:
    from collections.abc import Mapping

CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "add",
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
).encode()


def header_of(token: str) -> RequestHeader:
    return RequestHeader(
        [
            (b"host", b"localhost"),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            (b"mcp-protocol-version", b"2026-07-28"),
            (b"mcp-method", b"tools/call"),
            (b"mcp-name", b"add"),
            (b"authorization", f"Bearer {token}".encode()),
        ]
    )


class Shop:
    """A server with one tool, whose callers have tokens.

    Attributes:
        callers: The subjects of the calls that ran.
    """

    def __init__(self, rates: MemoryRates | None = None, kind: type[BearerTokens] = BearerTokens) -> None:
        self.clock = Clock()
        self.callers: list[str] = []
        tokens = kind(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=self.clock)
        self.mcp = MCPServer("Shop", auth=tokens, http=HTTPOptions(rates=rates))
        self.add_tool()

    def add_tool(self, **access: Any) -> None:
        def add(context: Context) -> str:
            assert context.principal is not None
            self.callers.append(context.principal.subject)
            return "done"

        self.mcp.tool(**access)(add)

    async def status(self, header: RequestHeader) -> int:
        request = HttpRequest("POST", "/mcp", header.pairs, "127.0.0.1", header)
        request.body = CALL
        return (await runtime_of(self.mcp).exchange(request)).status


async def test_a_repeated_token_is_refused_once_it_has_expired() -> None:
    shop = Shop()
    header = header_of(sign(claims(exp=NOW + 10)))
    assert [await shop.status(header) for _ in range(3)] == [200, 200, 200]
    assert header.credentials_digest is not None
    shop.clock.now = NOW + 100
    assert await shop.status(header) == 401
    assert shop.callers == ["alice"] * 3


async def test_a_subclass_that_adds_a_check_is_asked_for_each_request() -> None:
    checked: list[str] = []

    class CheckedTokens(BearerTokens):
        async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
            checked.append(headers["authorization"])
            return Challenge("invalid_token", "Locked.") if len(checked) > 2 else await super().__call__(headers)

    shop = Shop(kind=CheckedTokens)
    header = header_of(sign(claims()))
    assert [await shop.status(header) for _ in range(3)] == [200, 200, 401]


async def test_a_subclass_that_overrides_both_is_recalled() -> None:
    recalled: list[bytes] = []

    class CountedTokens(BearerTokens):
        def recall(self, digest: bytes) -> Principal | None:
            recalled.append(digest)
            return super().recall(digest)

    shop = Shop(kind=CountedTokens)
    header = header_of(sign(claims()))
    assert [await shop.status(header) for _ in range(2)] == [200, 200]
    assert header.credentials_digest in recalled


async def test_tokens_that_share_a_prefix_are_different_credentials() -> None:
    shop = Shop()
    token = sign(claims())
    header = header_of(token)
    assert [await shop.status(header) for _ in range(2)] == [200, 200]
    for other in (token[:-1], token + "A", token[:-4] + "AAAA"):
        assert [await shop.status(header_of(other)) for _ in range(2)] == [401, 401]
    bob = header_of(sign(claims(sub="bob")))
    assert [await shop.status(bob), await shop.status(header), await shop.status(bob)] == [200, 200, 200]
    assert shop.callers == ["alice", "alice", "bob", "alice", "bob"]


async def test_a_principal_without_rate_is_refused_and_others_are_not() -> None:
    shop = Shop(MemoryRates(0.001, 2))
    alice, bob = header_of(sign(claims())), header_of(sign(claims(sub="bob")))
    assert [await shop.status(alice) for _ in range(3)] == [200, 200, 429]
    assert await shop.status(header_of(sign(claims(jti="second")))) == 429
    assert await shop.status(bob) == 200


@pytest.mark.parametrize(
    "access",
    [{"scopes": ["orders.write"]}, {"authorize": lambda _principal: False}],
    ids=["scopes", "authorize"],
)
async def test_a_change_of_access_counts_for_the_next_request(access: dict[str, Any]) -> None:
    shop = Shop()
    header = header_of(sign(claims()))
    assert [await shop.status(header) for _ in range(2)] == [200, 200]
    shop.mcp.remove_tool("add")
    shop.add_tool(**access)
    assert await shop.status(header) == 403
    shop.mcp.remove_tool("add")
    shop.add_tool()
    assert await shop.status(header) == 200


async def test_another_authenticator_counts_inside_its_block_only() -> None:
    """The blocks of two tests overlap, and the tokens of the server count all the time."""
    shop, own = Shop(), sign(claims())

    async def by_word(headers: Mapping[str, str]) -> Principal | Challenge | None:
        if headers["authorization"] == "Bearer word":
            return Principal("tester")
        return Challenge("invalid_token", "not a word")

    async def by_nothing(_headers: Mapping[str, str]) -> None:
        return None

    runtime = runtime_of(shop.mcp)
    assert [await shop.status(header_of(token)) for token in (own, own, "word")] == [200, 200, 401]
    first, second = runtime.accepting(by_nothing), runtime.accepting(by_word)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert [await shop.status(header_of(token)) for token in ("word", own, "other")] == [200, 200, 401]
    second.__exit__(None, None, None)
    assert [await shop.status(header_of(token)) for token in ("word", own)] == [401, 200]
    assert shop.callers == ["alice", "alice", "tester", "alice", "alice"]


def test_a_server_without_auth_accepts_no_other_authenticator() -> None:
    with pytest.raises(ValueError, match="Shop has no auth"):
        runtime_of(MCPServer("Shop")).accepting(BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public())))

"""Proofs that a token is the client's own (DPoP), and nonces of servers that want them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from joserfc import jwt
from joserfc.jwk import import_key

from funcmcp._client.token_requests import ProofKey
from funcmcp.client import Client, ClientCredentials, HTTPEndpoint, SignIn, SignInError
from tests.client.authorizing import Visitor

if TYPE_CHECKING:
    from tests.client.authorizing import Authorizing

pytestmark = pytest.mark.lowest("joserfc signs the proofs.")

PROGRAM = ClientCredentials("reports", "hush", dpop=True)


def verified(proof: str, method: str, url: str, token: str | None = None) -> dict[str, Any]:
    """Return the claims of a proof, after the checks of RFC 9449 section 4.3."""
    assert proof.count(".") == 2
    key = import_key(_header(proof)["jwk"])
    read = jwt.decode(proof, key, algorithms=["ES256"])
    assert read.header["typ"] == "dpop+jwt"
    assert read.header["jwk"].keys() == {"kty", "crv", "x", "y"}  # and no private part
    claims = read.claims
    assert (claims["htm"], claims["htu"]) == (method, url)
    assert abs(claims["iat"] - time()) < 300
    digest = None if token is None else hashlib.sha256(token.encode()).digest()
    expected = None if digest is None else base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert claims.get("ath") == expected
    return claims


def _header(proof: str) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(base64.urlsafe_b64decode(proof.split(".", maxsplit=1)[0] + "=="))
    return header


async def test_every_request_has_a_fresh_proof_with_one_key(server: Authorizing) -> None:
    server.token_type = "DPoP"
    async with Client(HTTPEndpoint(server.url, sign_in=PROGRAM)) as client:
        await asyncio.gather(*(client.call_tool("greet") for _ in range(5)))
    (token,) = server.valid
    claims = [verified(server.token_headers[0]["dpop"], "POST", f"{server.origin}/token")]
    for call in server.calls[1:]:
        assert call["authorization"] == f"DPoP {token}"
        claims.append(verified(call["dpop"], call["method"], server.url, token))
    assert len({claim["jti"] for claim in claims}) == len(claims) >= 6
    keys = {str(_header(call["dpop"])["jwk"]) for call in [*server.token_headers, *server.calls[1:]]}
    assert len(keys) == 1


async def test_nonces_of_both_servers_are_used_until_they_change(server: Authorizing) -> None:
    server.token_type, server.nonces = "DPoP", {"/token": "as-1", "/mcp": "rs-1"}
    async with Client(HTTPEndpoint(server.url, sign_in=PROGRAM)) as client:
        await client.call_tool("greet")
        calls = len(server.calls)
        await client.call_tool("greet")
        assert len(server.calls) == calls + 1  # the nonce is known
        server.nonces["/mcp"] = "rs-2"
        await client.call_tool("greet")
        assert len(server.calls) == calls + 3
    assert len(server.those("token")) == 2


async def test_a_server_that_always_wants_another_nonce_gets_two_requests(server: Authorizing) -> None:
    class Changing(dict[str, str]):
        count = 0

        def get(self, path: str, _default: Any = None) -> Any:
            self.count += 1
            return f"nonce-{self.count}" if path == "/token" else None

    server.token_type, server.nonces = "DPoP", Changing()
    with pytest.raises(SignInError, match="use_dpop_nonce"):
        async with Client(HTTPEndpoint(server.url, sign_in=PROGRAM)):
            pass
    assert len(server.those("token")) == 2


async def test_a_user_signs_in_with_a_bound_token(server: Authorizing) -> None:
    server.token_type = "DPoP"
    async with Client(HTTPEndpoint(server.url, sign_in=SignIn(open_browser=Visitor(), dpop=True))) as client:
        assert (await client.call_tool("greet")).text == "hello"
    verified(server.token_headers[0]["dpop"], "POST", f"{server.origin}/token")


@pytest.mark.parametrize(("dpop", "token_type"), [(True, "Bearer"), (False, "DPoP")])
async def test_a_token_of_the_other_kind_is_not_used(server: Authorizing, token_type: str, *, dpop: bool) -> None:
    server.answers = [(200, {"access_token": "a", "token_type": token_type})]
    with pytest.raises(SignInError, match="issued a token that is not a"):
        async with Client(HTTPEndpoint(server.url, sign_in=ClientCredentials("reports", "hush", dpop=dpop))):
            pass


def test_the_url_in_a_proof_has_no_query_and_nonces_belong_to_an_origin() -> None:
    key = ProofKey()
    assert key.remember("https://a.example/x", "n1")
    assert not key.remember("https://a.example/y", "n1")  # it is known
    assert verified(key.proof("GET", "https://a.example/x?q=1#f"), "GET", "https://a.example/x")["nonce"] == "n1"
    assert "nonce" not in verified(key.proof("GET", "https://a.example:444/x"), "GET", "https://a.example:444/x")


@pytest.mark.parametrize("nonce", [None, "", 'a"b', "a b", "a\\b", "é", "x" * 600])
def test_a_nonce_with_other_characters_is_ignored(nonce: str | None) -> None:
    assert not ProofKey().remember("https://a.example", nonce)


def test_the_nonces_of_few_origins_are_remembered() -> None:
    key = ProofKey()
    for number in range(40):
        assert key.remember(f"https://{number}.example", "n")
    assert key.remember("https://0.example", "n")  # it was forgotten
    assert not key.remember("https://39.example", "n")

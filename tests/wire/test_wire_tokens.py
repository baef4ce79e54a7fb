"""Tokens on the wire: a bad one is a 401 with its challenge whatever is bad about it, and nothing runs."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest

from funcmcp import MCPServer
from funcmcp._auth.authenticator import first_of
from funcmcp._auth.easy_auth import HEADER, EasyAuth
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.keys import StaticKeys
from tests import rules
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, claims, key, pem, public, sign, text
from tests.wire.callers import Caller
from tests.wire.peer import ERAS, PER_REQUEST, initialize

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

BROUGHT_ALONG = public("RSA", "stranger")
STRANGER = key("RSA", "stranger")


def signed_with_the_public_key() -> str:
    """Return a token whose secret is what everybody may know."""
    unsigned = sign(claims(), header={"alg": "HS256"}).rpartition(".")[0]
    return f"{unsigned}.{text(hmac.digest(pem(), unsigned.encode(), 'sha256'))}"


BAD = {
    "no token at all": "anything",
    "two parts": "a.b",
    "no signature (alg none)": sign(claims(), header={"alg": "none"}).rpartition(".")[0] + ".",
    "alg none with a signature": sign(claims(), header={"alg": "none"}),
    "a public key taken for a secret": signed_with_the_public_key(),
    "a key that the token brings along": sign(claims(), signer=STRANGER, header={"jwk": BROUGHT_ALONG}),
    "the address of a key": sign(claims(), signer=STRANGER, header={"jku": "http://127.0.0.1:1/keys"}),
    "another's signature": sign(claims(), signer=STRANGER),
    "an extension that must be understood": sign(claims(), header={"crit": ["exp"]}),
    "a token for another server": sign(claims(aud="https://other.example.com/mcp")),
    "a token for a longer name": sign(claims(aud=AUDIENCE + ".evil.example")),
    "a token for a shorter name": sign(claims(aud=AUDIENCE[:-1])),
    "a token for nobody": sign(claims(aud=None)),
    "a token for an empty list": sign(claims(aud=[])),
    "a token for an object": sign(claims(aud={AUDIENCE: True})),
    "another issuer": sign(claims(iss=ISSUER + ".evil.example")),
    "a list of issuers": sign(claims(iss=[ISSUER])),
    "no issuer": sign(claims(iss=None)),
    "over": sign(claims(exp=NOW - 61)),
    "no end": sign(claims(exp=None)),
    "an end that is a text": sign(claims(exp=str(int(NOW + 600)))),
    "an end that is true": sign(claims(exp=True)),
    "an end that no clock reaches": sign(claims(exp=10**400)),
    "not yet good": sign(claims(nbf=NOW + 61)),
    "an ID token": sign(claims(nonce="n"), header={"typ": "JWT"}),
    "nobody's": sign(claims(sub=None)),
    "deep": sign(b"[" * 8000 + b"]" * 8000),
    "long": "a" * 17_000 + ".b.c",
}


def shop() -> tuple[MCPServer, list[str]]:
    """Return a server that wants tokens, and the list of what has run."""
    ran: list[str] = []
    tokens = BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=Clock())
    mcp = MCPServer("Shop", auth=tokens)

    @mcp.tool
    async def order() -> str:
        ran.append("order")
        return "ordered"

    return mcp, ran


@rules.verifies(rules.THREAT_11, rules.THREAT_12, rules.THREAT_13, rules.THREAT_14, rules.THREAT_15, rules.THREAT_17)
@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_bad_token_is_401_and_nothing_runs(revision: str, case: str, caplog: pytest.LogCaptureFixture) -> None:
    """The response is one line of JSON, the challenge repeats no input, and neither does the line of the log."""
    mcp, ran = shop()
    answer = await Caller(mcp, revision, key=BAD[case]).call("order")
    assert answer.status == 401
    challenge = str(answer.header("www-authenticate"))
    assert challenge.startswith('Bearer error="invalid_token", error_description="')
    assert BAD[case] not in challenge + answer.body.decode()
    assert answer.reads == 0
    assert ran == []
    [line] = [record.getMessage() for record in caplog.records if record.name == "funcmcp"]
    assert " is refused with 401: " in line
    assert BAD[case] not in line


async def test_a_good_token_is_let_in() -> None:
    """Otherwise the tests before this one would show nothing."""
    mcp, ran = shop()
    answer = await Caller(mcp, PER_REQUEST, key=sign(claims())).call("order")
    assert (answer.status, answer.text, ran) == (200, "ordered", ["order"])


def principal(**claims: str) -> str:
    """Return a header as App Service writes it."""
    content: dict[str, Any] = {"auth_typ": "aad", "name_typ": "name", "role_typ": "roles"}
    content["claims"] = [{"typ": kind, "val": value} for kind, value in claims.items()]
    return base64.b64encode(json.dumps(content).encode()).decode()


@rules.verifies(rules.THREAT_20)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("trusted", "environment", "status"),
    [
        (True, {"WEBSITE_AUTH_ENABLED": "True"}, 200),
        (True, {"WEBSITE_AUTH_ENABLED": "False"}, 401),
        (True, {"WEBSITE_AUTH_ENABLED": ""}, 401),
        (True, {}, 401),
        (False, {"WEBSITE_AUTH_ENABLED": "True"}, 401),
    ],
)
async def test_who_the_platform_says_it_is_counts_only_behind_the_platform(
    revision: str, trusted: bool, environment: dict[str, str], status: int
) -> None:
    """The header has no effect without the authenticator, or if the platform is not trusted."""
    mcp = MCPServer("Shop", auth=first_of(EasyAuth(trust_platform=trusted, environ=environment)))
    mcp.tool("order")(lambda: "ordered")
    caller = Caller(mcp, revision)
    headers = {HEADER: principal(sub="alice"), f"{HEADER}-id": "alice", f"{HEADER}-name": "alice"}
    message = caller.call_message("order") if caller.per_request else initialize(revision)
    assert (await caller.post(message, headers)).status == status

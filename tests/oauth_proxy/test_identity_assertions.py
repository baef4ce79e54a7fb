"""Identity assertions (ID-JAG): which ones are valid, and what a client gets for one."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._auth.tokens.compact import TokenError
from funcmcp._oauth_proxy.identity_assertions import assertion_of, validated
from funcmcp.auth import StaticKeys, User
from tests.auth.making_tokens import ISSUER as IDP
from tests.auth.making_tokens import NOW, key, public, sign
from tests.oauth_proxy.stage import ISSUER, URL

GOOD = {
    "iss": IDP,
    "aud": ISSUER,
    "sub": "ada",
    "client_id": "https://claude.ai/client.json",
    "jti": "one",
    "exp": NOW + 300,
    "iat": NOW,
    "resource": URL,
    "scope": "orders.read orders.write",
}


def assertion(header: dict[str, object] | None = None, **changes: Any) -> str:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    return sign(claims, header={"typ": "oauth-id-jag+jwt"} | (header or {}))


async def validate(text: str, now: float = NOW) -> dict[str, Any]:
    keys = StaticKeys(public())
    return await validated(text, issuer=IDP, audience=ISSUER, resource=URL, keys=keys, now=now)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": [ISSUER]},
        {"resource": None},
        {"resource": f"{URL}/"},
        {"resource": [URL]},
        {"nbf": NOW},
        {"exp": NOW - 30, "iat": NOW - 300},
        {"iat": NOW + 30},
    ],
)
async def test_an_assertion_for_this_server_is_valid(changes: dict[str, Any]) -> None:
    assert (await validate(assertion(**changes)))["sub"] == "ada"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"aud": "https://other.example.com"}, "another server"),
        ({"aud": [ISSUER, "https://other.example.com"]}, "another server"),
        ({"aud": f"{ISSUER}/"}, "another server"),
        ({"aud": None}, "another server"),
        ({"resource": "https://other.example.com/mcp"}, "another resource"),
        ({"resource": [URL, "https://other.example.com/mcp"]}, "another resource"),
        ({"resource": []}, "another resource"),
        ({"resource": 5}, "another resource"),
        ({"sub": None}, "no sub"),
        ({"sub": ""}, "no sub"),
        ({"jti": None}, "no jti"),
        ({"jti": "x" * 513}, "no jti"),
        ({"client_id": 5}, "no client_id"),
        ({"exp": None}, "no expiry"),
        ({"iat": None}, "no expiry"),
        ({"exp": True}, "no expiry"),
        ({"exp": NOW - 60, "iat": NOW - 300}, "expired"),
        ({"iat": NOW + 61}, "in the future"),
        ({"exp": NOW + 3601}, "more than 3600 seconds"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"nbf": "now"}, "not valid yet"),
    ],
)
async def test_an_assertion_with_other_claims_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenError, match=message):
        await validate(assertion(**changes))


@pytest.mark.parametrize("kind", [None, "JWT", "at+jwt", "oauth-id-jag"])
async def test_a_token_of_another_type_is_not_an_assertion(kind: str | None) -> None:
    with pytest.raises(TokenError, match="another type"):
        await validate(assertion({"typ": kind}))


async def test_a_forged_assertion_is_refused() -> None:
    forged = sign(GOOD, signer=key("RSA", "second"), header={"typ": "oauth-id-jag+jwt"})
    with pytest.raises(TokenError, match="signature"):
        await validate(forged)
    shared = sign(GOOD, signer=key("oct"), algorithm="HS256", header={"typ": "oauth-id-jag+jwt"})
    with pytest.raises(TokenError, match="algorithm"):
        await validate(shared)
    for text in ("", "a.b.c", "x" * 20_000):
        with pytest.raises(TokenError):
            await validate(text)


@pytest.mark.parametrize(
    ("changes", "scopes", "signed_in"),
    [
        ({}, ("orders.read", "orders.write"), NOW),
        ({"scope": None, "auth_time": NOW - 5000}, (), NOW - 5000),
        ({"scope": ["orders.read"], "auth_time": NOW + 5000}, (), NOW),
        ({"scope": "", "auth_time": "today"}, (), NOW),
    ],
)
def test_an_assertion_says_what_the_provider_allows(
    changes: dict[str, Any], scopes: tuple[str, ...], signed_in: float
) -> None:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    read = assertion_of(claims, User("ada"), NOW)
    assert (read.scopes, read.signed_in, read.seconds) == (scopes, signed_in, 360)
    assert read.unique == f"{IDP} ada one"

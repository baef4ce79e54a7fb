"""Verifiers with FastMCP's names: which tokens they accept."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from time import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from funcmcp.compat import (
    Auth0JWTVerifier,
    AWSCognitoTokenVerifier,
    AzureJWTVerifier,
    DebugTokenVerifier,
    FastMCP,
    IntrospectionTokenVerifier,
    JWTVerifier,
    RSAKeyPair,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ISSUER = "https://login.example.com"
AUDIENCE = "https://orders.example.com/mcp"
PAIR = RSAKeyPair.generate()
SECRET = "a secret that is long enough for it"


def token(**claims: Any) -> str:
    """Return a token for the server, with other claims."""
    return PAIR.create_token("ann", ISSUER, AUDIENCE, ["read"], additional_claims=claims)


def encoded(part: bytes) -> str:
    return urlsafe_b64encode(part).rstrip(b"=").decode()


def verifier(**options: Any) -> JWTVerifier:
    return JWTVerifier(**{"public_key": PAIR.public_key, "issuer": ISSUER, "audience": AUDIENCE, **options})


async def test_a_token_of_the_issuer_for_the_server_is_accepted() -> None:
    access = await verifier(required_scopes=["read"]).verify_token(token(azp="app"))
    assert access is not None
    assert (access.client_id, access.subject, access.scopes) == ("app", "ann", ["read"])
    assert access.claims["iss"] == ISSUER


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example.com"},
        {"iss": [ISSUER]},
        {"aud": "https://other.example.com/mcp"},
        {"aud": None},
        {"aud": {"https://orders.example.com/mcp": 1}},
        {"exp": 5},
        {"exp": "soon"},
        {"nbf": 4102444800},
        {"scope": "write"},
        {"sub": 5},
    ],
)
async def test_a_token_that_is_not_for_the_server_is_refused(claims: dict[str, Any]) -> None:
    assert await verifier(required_scopes=["read"]).verify_token(token(**claims)) is None


async def test_only_the_algorithm_and_the_key_of_the_author_count() -> None:
    other = RSAKeyPair.generate().create_token("ann", ISSUER, AUDIENCE)
    assert await verifier().verify_token(other) is None
    signed = ".".join(map(encoded, (b'{"alg":"HS256"}', json.dumps({"iss": ISSUER, "aud": AUDIENCE}).encode())))
    confused = f"{signed}.{encoded(hmac.digest(PAIR.public_key.encode(), signed.encode(), 'sha256'))}"
    assert await verifier().verify_token(confused) is None
    key = RSAKey.import_key(PAIR.private_key.get_secret_value())
    longer = jwt.encode({"alg": "RS512"}, {"iss": ISSUER, "aud": AUDIENCE}, key, algorithms=["RS512"])
    assert await verifier().verify_token(longer) is None
    assert await verifier(algorithm="RS512").verify_token(longer) is not None
    for text in ("", "a.b.c", "eyJhbGciOiJub25lIn0.e30."):
        assert await verifier().verify_token(text) is None


async def test_a_secret_signs_and_verifies() -> None:
    made = jwt.encode({"alg": "HS256"}, {"sub": "ann", "scp": ["a"]}, OctKey.import_key(SECRET), algorithms=["HS256"])
    access = await JWTVerifier(public_key=SECRET, algorithm="HS256").verify_token(made)
    assert access is not None
    assert (access.client_id, access.scopes, access.expires_at) == ("ann", ["a"], None)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ValueError, "Either public_key or jwks_uri"),
        ({"public_key": "x", "jwks_uri": "https://x.test/keys"}, ValueError, "not both"),
        ({"public_key": "short", "algorithm": "HS256"}, ValueError, "too short"),
        ({"public_key": PAIR.public_key, "algorithm": "HS256"}, ValueError, "shared secret"),
        ({"jwks_uri": "https://x.test/keys", "algorithm": "HS256"}, ValueError, "jwks_uri"),
        ({"public_key": "x", "algorithm": "none"}, ValueError, "Unsupported algorithm"),
        ({"jwks_uri": "https://x.test/keys", "ssrf_safe": True}, TypeError, "ssrf_safe"),
        ({"jwks_uri": "http://x.test/keys"}, ValueError, "https"),
        ({"public_key": "x", "jwks_refresh_interval": -1}, ValueError, "non-negative"),
    ],
)
def test_options_that_can_not_be_meant_stop_the_start(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        JWTVerifier(**options)


async def test_a_key_that_can_not_be_used_accepts_no_token(caplog: pytest.LogCaptureFixture) -> None:
    assert await JWTVerifier(public_key="not a key").verify_token(token()) is None
    assert "accepts no token" in caplog.text


async def test_keys_come_from_the_issuer_with_the_client_of_the_author() -> None:
    key = RSAKey.import_key(PAIR.public_key).as_dict(private=False)
    answers = {"keys": [{**key, "kid": "one", "alg": "RS256"}]}
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, json=answers))
    async with httpx2.AsyncClient(transport=transport) as client:
        keys = JWTVerifier(jwks_uri=f"{ISSUER}/keys", issuer=[ISSUER], http_client=client)
        assert await keys.verify_token(PAIR.create_token("ann", ISSUER, kid="one")) is not None
        assert await keys.verify_token(PAIR.create_token("ann", ISSUER, kid="two")) is None


async def test_verifiers_of_platforms_know_their_claims() -> None:
    auth0 = Auth0JWTVerifier(public_key=PAIR.public_key, required_scopes=["orders:read"])
    assert await auth0.verify_token(token(permissions=["orders:read"])) is not None
    cognito = AWSCognitoTokenVerifier(public_key=PAIR.public_key, audience="app")
    assert await cognito.verify_token(token(token_use="access", client_id="app")) is not None
    assert await cognito.verify_token(token(token_use="id", client_id="app")) is None
    assert await cognito.verify_token(token(token_use="access", client_id="other")) is None
    azure = AzureJWTVerifier(client_id="app", tenant_id="t", required_scopes=["read"])
    assert azure.scopes_supported == ["api://app/read"]
    assert azure.issuer == "https://login.microsoftonline.com/t/v2.0"


Answer = dict[str, Any]


def introspection(answer: Callable[[httpx2.Request], httpx2.Response], **options: Any) -> IntrospectionTokenVerifier:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return IntrospectionTokenVerifier(
        introspection_url=f"{ISSUER}/introspect", client_id="me", client_secret=SECRET, http_client=client, **options
    )


ACTIVE = {"active": True, "client_id": "app", "scope": "read write", "sub": "ann", "aud": AUDIENCE}


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (ACTIVE, True),
        ({**ACTIVE, "active": False}, False),
        ({**ACTIVE, "active": "true"}, False),
        ({**ACTIVE, "exp": 5}, False),
        ({**ACTIVE, "scope": "read"}, False),
        ({**ACTIVE, "aud": "https://other.example.com"}, False),
        ({**ACTIVE, "aud": [AUDIENCE, ""]}, False),
        ([], False),
    ],
)
async def test_the_answer_of_the_issuer_decides(answer: Any, accepted: bool) -> None:
    asked = introspection(
        lambda _request: httpx2.Response(200, json=answer), audience=[AUDIENCE], required_scopes="read write"
    )
    access = await asked.verify_token("opaque")
    assert (access is not None) is accepted


@pytest.mark.parametrize("status", [401, 500])
async def test_without_an_answer_no_token_is_accepted(status: int) -> None:
    assert await introspection(lambda _request: httpx2.Response(status, json=ACTIVE)).verify_token("x") is None


@pytest.mark.parametrize(("seconds", "requests"), [(None, 2), (60, 1)])
async def test_answers_are_used_again_if_the_author_says_so(seconds: int | None, requests: int) -> None:
    seen: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        return httpx2.Response(200, json={**ACTIVE, "exp": int(time()) + 30})

    asked = introspection(answer, cache_ttl_seconds=seconds, max_cache_size=1, client_auth_method="client_secret_post")
    for _ in range(2):
        access = await asked.verify_token("opaque")
        assert access is not None
        access.scopes.append("admin")  # of this caller only
    assert await asked.verify_token("opaque") is not None
    assert "admin" not in (await asked.verify_token("opaque")).scopes  # type: ignore[union-attr]
    assert len(seen) == (requests if seconds else 4)
    assert b"client_secret=" in seen[0]


async def test_the_debug_verifier_asks_the_function() -> None:
    async def validate(text: str) -> bool:
        return text == "good"

    checked = DebugTokenVerifier(validate, scopes=["read"])
    assert (await checked.verify_token("good")).scopes == ["read"]  # type: ignore[union-attr]
    assert await checked.verify_token("bad") is None
    assert await checked.verify_token(" ") is None
    assert await DebugTokenVerifier(json.loads).verify_token("{") is None


async def test_a_server_accepts_what_its_verifier_accepts() -> None:
    mcp = FastMCP("orders", auth=verifier(required_scopes=["read"]), stateless_http=True)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    transport = httpx2.ASGITransport(app=mcp)
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for text, status in ((token(), 200), (token(exp=5), 401), (token(scope="write"), 401)):
            answer = await http.post("/mcp", json=message, headers={**headers, "authorization": f"Bearer {text}"})
            assert answer.status_code == status

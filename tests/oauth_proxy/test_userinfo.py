"""The userinfo endpoint: what it says about a user, and to whom it says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import Program
from tests.auth.making_proofs import proof
from tests.auth.making_tokens import claims, key, sign
from tests.oauth_proxy.stage import ADA, ISSUER, URL, Stage
from tests.oauth_proxy.test_client_authentication import basic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.auth import Challenge, Principal
    from tests.oauth_proxy.stage import Answer

PATH = "/oauth/userinfo"


async def ask(stage: Stage, token: str, scheme: str = "Bearer", method: str = "GET", **headers: str) -> Answer:
    return await stage.send(method, PATH, headers={"authorization": f"{scheme} {token}", **headers})


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_token_says_who_its_user_is(method: str) -> None:
    stage = await Stage().with_client()
    answer = await ask(stage, (await stage.tokens())["access_token"], method=method)
    assert (answer.status, answer.header("cache-control")) == (200, "no-store")
    assert answer.json == {"sub": "ada", "name": "Ada", "email": "ada@example.com", "email_verified": True}
    assert answer.header("access-control-allow-origin") == "*"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"email": None}, {"sub": "ada", "name": "Ada"}),
        ({"name": None, "email": None}, {"sub": "ada"}),
        (
            {"claims": {"email": "e@example.com", "email_verified": False}, "email": None},
            {"sub": "ada", "name": "Ada"},
        ),
    ],
)
async def test_only_a_verified_address_is_named(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    stage = await Stage().with_client()
    stage.upstream.user = replace(ADA, **changes)
    assert (await ask(stage, (await stage.tokens())["access_token"])).json == expected


@pytest.mark.parametrize(
    ("header", "status", "error"),
    [
        (None, 401, "invalid_token"),
        ("Basic YWRhOng=", 401, "invalid_token"),
        ("Bearer", 400, "invalid_request"),
        ("Bearer a b", 400, "invalid_request"),
        ("Bearer x", 401, "invalid_token"),
        (f"Bearer {sign(claims(iss=ISSUER, aud=URL))}", 401, "invalid_token"),
        ("Bearer refresh", 401, "invalid_token"),
        ("Bearer expired", 401, "invalid_token"),
        ("Bearer other", 401, "invalid_token"),
    ],
)
async def test_without_a_valid_token_nothing_is_said(header: str | None, status: int, error: str) -> None:
    stage = await Stage().with_client()
    tokens = await stage.tokens()
    if header == "Bearer refresh":
        header = f"Bearer {tokens['refresh_token']}"
    elif header == "Bearer expired":
        header = f"Bearer {tokens['access_token']}"
        stage.clock.now += 4000
    elif header == "Bearer other":
        header = f"Bearer {tokens['access_token']}"
        stage.proxy = stage.instance(url="https://orders.example.com/other")
    answer = await stage.send("GET", PATH, headers={} if header is None else {"authorization": header})
    assert (answer.status, answer.json["error"]) == (status, error)
    assert (answer.header("www-authenticate") or "").startswith("Bearer")
    assert "ada" not in answer.text


async def test_a_token_in_the_query_does_not_count() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens())["access_token"]
    assert (await stage.send("GET", PATH, {"access_token": token})).status == 401


async def test_an_outage_of_the_store_is_no_refusal() -> None:
    """A token may refer to claims in the store, and used proofs may be there."""

    async def away(headers: Mapping[str, str]) -> Principal | Challenge | None:
        raise StoreUnavailableError

    stage = Stage()
    with patch.object(stage.proxy, "_bearer", away):
        answer = await ask(stage, "token")
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.header("retry-after") == "5"


async def test_a_program_has_no_user() -> None:
    programs = {"reports": Program(secret="a-secret-of-reports", scopes=["orders.read"])}
    stage = Stage(programs=programs)
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "authorization": basic("reports", "a-secret-of-reports"),
    }
    answer = await stage.send("POST", "/oauth/token", body=b"grant_type=client_credentials", headers=headers)
    refused = await ask(stage, answer.json["access_token"])
    assert (refused.status, refused.json["error"]) == (403, "insufficient_scope")
    stage.proxy = stage.instance(programs=None)  # the program is gone, and its token is valid for an hour
    assert (await ask(stage, answer.json["access_token"])).status == 403


async def test_a_bound_token_needs_a_proof_for_this_address() -> None:
    stage = await Stage(dpop="allowed", dpop_nonces=False).with_client()
    own = key("P-256")
    code = await stage.code()
    answer = await stage.exchange(code, proof=proof(htu=f"{ISSUER}/oauth/token", jti="one"))
    token = answer.json["access_token"]
    good = proof(token, htm="GET", htu=f"{ISSUER}{PATH}", jti="two")
    assert (await ask(stage, token)).json["error"] == "invalid_token"
    assert (await ask(stage, token, "DPoP")).json["error"] == "invalid_dpop_proof"
    for wrong in (
        proof(token, htm="POST", htu=f"{ISSUER}{PATH}", jti="three"),
        proof(token, htm="GET", htu=URL, jti="four"),
        proof("another token", htm="GET", htu=f"{ISSUER}{PATH}", jti="five"),
        "x.y.z",
    ):
        assert (await ask(stage, token, "DPoP", dpop=wrong)).json["error"] == "invalid_dpop_proof"
    other = proof(token, signer=key("P-256", "second"), htm="GET", htu=f"{ISSUER}{PATH}", jti="six")
    assert (await ask(stage, token, "DPoP", dpop=other)).json["error"] == "invalid_token"
    assert (await ask(stage, token, "DPoP", dpop=good)).json["sub"] == "ada"
    assert (await ask(stage, token, "DPoP", dpop=good)).status == 401  # it is used
    assert own.thumbprint()


async def test_a_proof_gets_the_nonce_that_it_lacks() -> None:
    stage = await Stage(dpop="allowed", dpop_nonces=True).with_client()
    first = proof(htu=f"{ISSUER}/oauth/token", jti="one")
    code = await stage.code()
    nonce = (await stage.exchange(code, proof=first)).header("dpop-nonce")
    answer = await stage.exchange(code, proof=proof(htu=f"{ISSUER}/oauth/token", jti="two", nonce=nonce))
    token = answer.json["access_token"]
    refused = await ask(stage, token, "DPoP", dpop=proof(token, htm="GET", htu=f"{ISSUER}{PATH}", jti="three"))
    assert (refused.status, refused.json["error"]) == (401, "use_dpop_nonce")
    good = proof(token, htm="GET", htu=f"{ISSUER}{PATH}", jti="four", nonce=refused.header("dpop-nonce"))
    assert (await ask(stage, token, "DPoP", dpop=good)).status == 200

"""How the proxy authenticates at a provider, and what it reads from the answer of a token endpoint."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from funcmcp._oauth_proxy import client_requests
from funcmcp._oauth_proxy.client_requests import (
    ClientAuthentication,
    issued_token_in,
    refresh_token_in,
    url_with,
)
from funcmcp.auth import UpstreamMisconfiguredError, UpstreamUnavailableError
from tests.auth.making_tokens import NOW, Clock

TOKEN = "https://login.example.com/token"
SECRET = "a secret with more than 32 characters"


def authentication(secret: str | None = SECRET, **options: Any) -> ClientAuthentication:
    return ClientAuthentication("OIDC", "app", secret, clock=Clock(), **options)


@pytest.mark.parametrize(
    ("supported", "fields"),
    [
        (["client_secret_post", "client_secret_basic"], []),
        (["client_secret_jwt", "client_secret_post"], ["client_id", "client_secret"]),
        (["client_secret_jwt", "tls_client_auth"], ["client_assertion", "client_assertion_type", "client_id"]),
        (["none"], ["client_id", "client_secret"]),
        ([], ["client_id", "client_secret"]),
    ],
)
async def test_a_secret_is_sent_in_the_first_way_that_the_provider_supports(
    supported: list[str], fields: list[str]
) -> None:
    headers, form = await authentication().fields(supported, TOKEN)
    assert (sorted(form), "authorization" in headers) == (fields, not fields)


async def test_a_public_client_sends_its_id_only() -> None:
    assert await authentication(None).fields(["client_secret_basic"], TOKEN) == ({}, {"client_id": "app"})


async def test_an_assertion_is_for_the_audience_of_the_request() -> None:
    async def assertion(audience: str) -> str:
        return f"signed for {audience}"

    _, form = await authentication(None, assertion=assertion).fields(["client_secret_basic"], TOKEN)
    assert form["client_assertion"] == f"signed for {TOKEN}"


async def test_a_credential_that_fails_or_hangs_is_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(audience: str) -> str:
        raise OSError(f"no route for {audience}")

    async def hangs(audience: str) -> str:
        await asyncio.sleep(600)
        return audience

    async def is_away(audience: str) -> str:
        raise UpstreamUnavailableError(audience)

    with pytest.raises(UpstreamMisconfiguredError, match=r"credential_failed: .*OSError: no route"):
        await authentication(None, assertion=fails).fields([], TOKEN)
    monkeypatch.setattr(client_requests, "_CREDENTIAL_SECONDS", 0.01)
    with pytest.raises(UpstreamMisconfiguredError, match=r"credential_failed: .*TimeoutError"):
        await authentication(None, assertion=hangs).fields([], TOKEN)
    with pytest.raises(UpstreamUnavailableError, match="/token"):
        await authentication(None, assertion=is_away).fields([], TOKEN)


async def test_an_assertion_that_the_secret_signs_is_valid_for_a_minute_and_has_no_secret() -> None:
    _, form = await authentication(method="client_secret_jwt").fields([], TOKEN)
    claims = jwt.decode(form["client_assertion"], OctKey.import_key(SECRET), ["HS256"]).claims
    assert (claims["aud"], claims["iat"], claims["exp"]) == (TOKEN, int(NOW), int(NOW) + 60)
    assert SECRET not in str(form)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [({"a": "1", "b": ""}, "https://x.example/?a=1"), ({"a": "& ="}, "https://x.example/?a=%26+%3D")],
)
def test_a_parameter_is_encoded_or_left_out(parameters: dict[str, str], expected: str) -> None:
    assert url_with("https://x.example/", parameters) == expected
    assert url_with("https://x.example/?t=1", {"a": "1"}) == "https://x.example/?t=1&a=1"


@pytest.mark.parametrize("answer", [{}, {"refresh_token": ""}, {"refresh_token": 5}, {"refresh_token": None}])
def test_an_answer_without_a_refresh_token(answer: dict[str, Any]) -> None:
    assert refresh_token_in(answer) is None


@pytest.mark.parametrize("seconds", [None, 0, -1, True, "300", float("nan")])
def test_a_lifetime_that_is_not_a_number_of_seconds_is_unknown(seconds: object) -> None:
    assert issued_token_in({"access_token": "x", "expires_in": seconds}) == ("x", None)


@pytest.mark.parametrize("answer", [{}, {"access_token": ""}, {"access_token": "x", "token_type": "DPoP"}])
def test_an_answer_without_a_bearer_token_is_an_outage(answer: dict[str, Any]) -> None:
    with pytest.raises(UpstreamUnavailableError):
        issued_token_in(answer)

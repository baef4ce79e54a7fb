"""Google as upstream, against a script of our own."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamRefusedError
from funcmcp.auth import Google
from tests.auth.making_tokens import Clock
from tests.oauth_proxy.scripted import GOOGLE, OpenIDHTTP, with_keys

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")


def google(http: OpenIDHTTP, domains: Any) -> Any:
    return with_keys(Google("app", "secret", domains=domains, clock=Clock()), http)


async def exchange(domains: Any, **claims: Any) -> Any:
    http = OpenIDHTTP(GOOGLE, "app")
    http.claims = {"sub": "1", "name": "Ada", "email": "ada@example.com", "email_verified": True} | claims
    upstream = google(http, domains)
    return await upstream.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="v", nonce="nonce")


async def test_a_user_of_the_domain_signs_in() -> None:
    user = (await exchange(["Example.com", "example.org"], hd="example.com")).user
    assert (user.subject, user.name, user.email, user.tenant) == ("1", "Ada", "ada@example.com", "example.com")


@pytest.mark.parametrize("claims", [{}, {"hd": "evil.example"}, {"hd": None}, {"hd": ["example.com"]}])
async def test_a_user_of_no_or_another_domain_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(UpstreamRefusedError, match="domains"):
        await exchange(["example.com"], **claims)


async def test_every_account_is_accepted_if_that_is_configured() -> None:
    assert (await exchange(None)).user.tenant is None


@pytest.mark.parametrize(
    ("domains", "hint"), [(["example.com"], "example.com"), (["example.com", "example.org"], None), (None, None)]
)
async def test_the_request_asks_for_a_refresh_token_and_hints_at_the_domain(domains: Any, hint: str | None) -> None:
    url = await google(OpenIDHTTP(GOOGLE, "app"), domains).authorization_url(REQUEST)
    query = dict(parse_qsl(urlsplit(url).query))
    assert (query["access_type"], query["prompt"], query.get("hd")) == ("offline", "consent", hint)


def test_the_domains_have_to_be_decided() -> None:
    with pytest.raises(TypeError, match="domains"):
        Google("app", "secret")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="list"):
        Google("app", "secret", domains="example.com")
    with pytest.raises(ValueError, match="None accepts every Google account"):
        Google("app", "secret", domains=[])


async def test_parameters_are_added_and_replace_those_of_the_proxy_but_not_its_own_values() -> None:
    upstream = with_keys(
        Google(
            "app", "secret", domains=None, parameters={"prompt": "select_account", "access_type": ""}, clock=Clock()
        ),
        OpenIDHTTP(GOOGLE, "app"),
    )
    query = dict(parse_qsl(urlsplit(await upstream.authorization_url(REQUEST)).query))
    assert query["prompt"] == "select_account"
    assert "access_type" not in query
    with pytest.raises(ValueError, match=r"Google\.parameters can't contain scope"):
        Google("app", "secret", domains=None, parameters={"scope": "x"})

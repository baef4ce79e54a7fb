"""The page with settings for each identity provider: each row constructs, and signs a user in at a script of its form.

The scripts are our own work. They have what the page says of them, and prove nothing about the services.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp.auth import OIDC, AuthorizationRequest, EntraID, GitHub, Google, OAuth2, User
from tests.auth.making_tokens import Clock
from tests.oauth_proxy.scripted import OpenIDHTTP, ScriptedHTTP, with_keys

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGE = (GUIDES / "sign-in-providers.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|]+) \| `((?:OIDC|EntraID|Google|GitHub)\([^.].+\))` \|", PAGE, re.MULTILINE))
NAMES = {"OIDC": OIDC, "EntraID": EntraID, "Google": Google, "GitHub": GitHub, "ID": "app", "SECRET": "secret"}
TENANT = "11111111-2222-3333-4444-555555555555"
REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")
OFFLINE = ["openid", "profile", "email", "offline_access"]
VERIFIED = {"email": "ada@example.com", "email_verified": True}
ADA = "ada@example.com"

# What a script has: members of the discovery document, and claims of the ID token. Then: the user's address and roles.
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any], str | None, set[str]]] = {
    "Auth0": (
        {"scopes_supported": OFFLINE, "token_endpoint_auth_methods_supported": ["client_secret_post"]},
        VERIFIED | {"https://orders.example.com/roles": ["cook"]},
        ADA,
        {"cook"},
    ),
    "Okta": (
        {"scopes_supported": OFFLINE, "authorization_response_iss_parameter_supported": True},
        VERIFIED | {"groups": ["cook"]},
        ADA,
        {"cook"},
    ),
    "Amazon Cognito": (
        {"token_endpoint": "https://orders.auth.eu-west-1.amazoncognito.com/oauth2/token"},
        VERIFIED | {"cognito:groups": ["cook"]},
        ADA,
        {"cook"},
    ),
    "Keycloak": (
        {
            "scopes_supported": OFFLINE,
            "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_basic", "client_secret_jwt"],
            "authorization_response_iss_parameter_supported": True,
        },
        VERIFIED | {"realm_access": {"roles": ["cook"]}},
        ADA,
        {"cook"},
    ),
    "Authentik": (
        {"scopes_supported": OFFLINE},
        {"email": ADA, "email_verified": False, "groups": ["cook"]},
        None,
        {"cook"},
    ),
    "Zitadel": (
        {"scopes_supported": OFFLINE, "userinfo_endpoint": "https://orders-abc123.zitadel.cloud/userinfo"},
        {"urn:zitadel:iam:org:project:roles": {"cook": {"123": "orders.zitadel.cloud"}}},
        ADA,
        {"cook"},
    ),
    "Ory Network, Hydra": ({"token_endpoint_auth_methods_supported": ["client_secret_basic"]}, {}, None, set()),
    "GitLab": ({"scopes_supported": ["openid", "profile"]}, VERIFIED | {"groups_direct": ["cook"]}, ADA, {"cook"}),
    "WorkOS AuthKit": ({"scopes_supported": OFFLINE}, VERIFIED | {"org_id": "org_1"}, ADA, set()),
    "Descope": ({"scopes_supported": ["openid"]}, VERIFIED, ADA, set()),
    "Clerk": ({"scopes_supported": OFFLINE}, VERIFIED, ADA, set()),
    "Supabase": ({"token_endpoint_auth_methods_supported": ["client_secret_basic"]}, VERIFIED, ADA, set()),
    "Stytch": (
        {"authorization_endpoint": "https://orders.example.com/oauth2/authorize", "scopes_supported": OFFLINE},
        VERIFIED,
        ADA,
        set(),
    ),
    "PingOne, PingFederate": (
        {"pushed_authorization_request_endpoint": "https://auth.pingone.com/as/par"},
        VERIFIED,
        ADA,
        set(),
    ),
    "AD FS": ({"scopes_supported": ["openid", "allatclaims"]}, {"email": ADA, "roles": "cook"}, None, {"cook"}),
    "Azure AD B2C": ({"scopes_supported": ["openid"]}, {"emails": [ADA]}, None, set()),
    "Slack": ({"scopes_supported": ["openid"]}, VERIFIED | {"https://slack.com/team_id": "T1"}, ADA, set()),
    "Microsoft Entra ID": ({}, {"tid": TENANT, "oid": "ada"}, None, set()),
    "Google": ({}, VERIFIED | {"hd": "example.com"}, ADA, set()),
}


class Script(OpenIDHTTP):
    """An OpenID provider that takes pushed requests, and has an address at userinfo."""

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if url.endswith("/userinfo"):
            return 200, {"sub": "ada"} | VERIFIED
        if url.endswith("/par"):
            return 201, {"request_uri": "urn:1", "expires_in": 60}
        return super().answer(url, headers, form)


def constructed(code: str) -> Any:
    return eval(code, {"__builtins__": {}}, NAMES)


@pytest.mark.parametrize("provider", ROWS)
def test_each_row_constructs_its_upstream(provider: str) -> None:
    assert constructed(ROWS[provider]).name


@pytest.mark.parametrize("provider", FORMS)
async def test_a_user_signs_in_with_each_row_at_a_script_of_its_form(provider: str) -> None:
    document, claims, email, roles = FORMS[provider]
    upstream = constructed(ROWS[provider])
    client_id = upstream._client_id
    http = Script(upstream._issuer, client_id, **document)
    http.claims = {"sub": "ada", "name": "Ada"} | claims
    with_keys(upstream, http)._clock = Clock()
    assert await upstream.authorization_url(REQUEST)
    signed_in = await upstream.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")
    user = signed_in.user if "userinfo_endpoint" not in document else await signed_in.claims_request.send()
    assert (user.name, user.email, user.roles) == ("Ada", email, roles)
    assert user.claims.items() >= claims.items()
    renewed = await upstream.refresh(signed_in.refresh_token, user.subject)
    assert renewed.user == signed_in.user
    forms = [form for _, url, _, form in http.requests if url.endswith("token")]
    assert len(forms) == 2


def test_each_row_of_an_openid_provider_has_a_script() -> None:
    assert set(FORMS) == set(ROWS) - {"GitHub"}


# The recipes for providers with OAuth 2.0

RECIPES = dict(
    re.findall(
        r"^## (Discord|Slack|Notion|Linear|LinkedIn)\n.*?^```python\n(.*?)^```",
        (GUIDES / "sign-in-oauth2.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
USERS: dict[str, tuple[dict[str, Any], User, str]] = {
    "Discord": (
        {"id": "80351110224678912", "username": "ada", "global_name": "Ada", "verified": True, "email": ADA},
        User("80351110224678912", name="Ada", email=ADA),
        "identify email",
    ),
    "Slack": (
        {"ok": True, "team_id": "T1", "user_id": "U1", "user": "ada", "team": "Orders"},
        User("T1.U1", name="ada", tenant="T1"),
        "users:read",
    ),
    "Notion": (
        {"object": "user", "type": "bot", "bot": {"owner": {"type": "user", "user": {"id": "n1", "name": "Ada"}}}},
        User("n1", name="Ada"),
        "",
    ),
    "Linear": (
        {"data": {"viewer": {"id": "l1", "name": "Ada", "email": ADA, "organization": {"id": "o1"}}}},
        User("l1", name="Ada"),
        "read",
    ),
    "LinkedIn": (
        {"sub": "782bbtaQ", "name": "Ada"} | VERIFIED,
        User("782bbtaQ", name="Ada", email=ADA),
        "openid profile email",
    ),
}


class OAuth2Script(ScriptedHTTP):
    """Answers with tokens, and with who the user is."""

    def __init__(self, user: dict[str, Any]) -> None:
        super().__init__()
        self.user = user

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if "grant_type" in form:
            return 200, {"access_token": "at", "refresh_token": "rt", "token_type": "user", "ok": True}
        assert headers["authorization"] == "Bearer at"
        return 200, self.user


def recipe(title: str) -> OAuth2:
    namespace: dict[str, Any] = {}
    exec(RECIPES[title], namespace)
    upstream = namespace["upstream"]
    assert isinstance(upstream, OAuth2)
    return upstream


@pytest.mark.parametrize("title", USERS)
async def test_a_user_signs_in_with_each_recipe_at_a_script_of_its_form(title: str) -> None:
    answer, user, scope = USERS[title]
    upstream, http = recipe(title), OAuth2Script(answer)
    upstream._http = http
    query = dict(parse_qsl(urlsplit(await upstream.authorization_url(REQUEST)).query))
    assert query.get("scope", "") == scope
    signed_in = await upstream.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")
    assert signed_in.user == user
    assert (await upstream.refresh("refresh:rt", user.subject)).user == user
    assert (await upstream.refresh("user:at", user.subject)).user == user


def test_each_recipe_has_a_script() -> None:
    assert set(USERS) == set(RECIPES)

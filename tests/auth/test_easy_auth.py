"""Callers that App Service has signed in."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.easy_auth import EasyAuth
from funcmcp._auth.principal import Principal

ON = {"WEBSITE_AUTH_ENABLED": "True"}
ROLE = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"
NAME = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name"
NAME_ID = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier"
SCOPE = "http://schemas.microsoft.com/identity/claims/scope"
CLAIMS = [
    ("iss", "https://login.microsoftonline.com/t/v2.0"), (NAME_ID, "alice-id"), ("azp", "app"), ("name", "Alice"),
    (SCOPE, "orders.read orders.write"), ("roles", "admin"), ("roles", "auditor"), (NAME, "alice@example.com"),
]  # fmt: skip


def header(claims: list[tuple[str, str]], **members: object) -> dict[str, str]:
    listed = [{"typ": kind, "val": value} for kind, value in claims]
    content = {"auth_typ": "aad", "name_typ": NAME, "role_typ": ROLE, "claims": listed, **members}
    return {"x-ms-client-principal": base64.b64encode(json.dumps(content).encode()).decode()}


async def identity(headers: dict[str, str]) -> Principal | Challenge | None:
    return await EasyAuth(trust_platform=True, environ=ON)(headers)


async def test_the_caller_is_who_the_platform_says() -> None:
    principal = await identity(header(CLAIMS))
    assert isinstance(principal, Principal)
    assert principal.key == ("https://login.microsoftonline.com/t/v2.0", "app", "alice-id")
    assert principal.scopes == {"orders.read", "orders.write"}
    assert principal.roles == {"admin", "auditor"}
    assert principal.name == "alice@example.com"
    assert principal.claims["roles"] == ("admin", "auditor")


async def test_a_provider_without_an_issuer_is_one_by_itself() -> None:
    principal = await identity(header([(NAME_ID, "1")], auth_typ="github"))
    assert isinstance(principal, Principal)
    assert principal.key == ("easy-auth:github", "", "1")


async def test_roles_are_claims_of_the_type_that_the_platform_names() -> None:
    principal = await identity(header([("sub", "1"), ("groups", "a"), (ROLE, "b")], role_typ="groups"))
    assert isinstance(principal, Principal)
    assert principal.roles == {"a", "b"}


@pytest.mark.parametrize("environ", [{}, {"WEBSITE_AUTH_ENABLED": "False"}, {"WEBSITE_AUTH_ENABLED": ""}])
async def test_the_header_says_nothing_where_the_platform_does_not_check_it(environ: dict[str, str]) -> None:
    assert await EasyAuth(trust_platform=True, environ=environ)(header(CLAIMS)) is None


async def test_the_header_says_nothing_where_it_is_not_trusted() -> None:
    assert await EasyAuth(trust_platform=False, environ=ON)(header(CLAIMS)) is None


def test_trust_must_be_spelled_out() -> None:
    with pytest.raises(TypeError, match="trust_platform"):
        EasyAuth()  # type: ignore[call-arg]


async def test_the_environment_is_the_process_own_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBSITE_AUTH_ENABLED", raising=False)
    assert await EasyAuth(trust_platform=True)(header(CLAIMS)) is None
    monkeypatch.setenv("WEBSITE_AUTH_ENABLED", "true")
    assert isinstance(await EasyAuth(trust_platform=True)(header(CLAIMS)), Principal)


async def test_without_the_header_there_is_nobody() -> None:
    assert await identity({"x-ms-client-principal-id": "alice-id", "x-ms-client-principal-name": "alice"}) is None


def encoded(value: Any) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "field",
    [
        "",
        "!",
        "é",
        "\ud800",
        "e30",
        encoded(b"\xff"),
        encoded(b"{"),
        encoded(b"[" * 30_000),
        encoded([]),
        encoded({}),
        encoded({"claims": {}}),
        "!" + encoded({"claims": [{"typ": "sub", "val": "x"}]}),
        encoded({"claims": [1]}),
        encoded({"claims": [{"typ": 1, "val": "x"}]}),
        encoded({"claims": [{"typ": "sub", "val": ["x"]}]}),
        encoded({"claims": [{"typ": "sub", "val": "x"}], "auth_typ": 1}),
        encoded({"claims": []}),
        encoded({"claims": [{"typ": "sub", "val": ""}]}),
        encoded({"claims": [{"typ": "sub", "val": "x" * 70_000}]}),
    ],
)
async def test_a_header_that_the_platform_did_not_write_is_refused(field: str) -> None:
    result = await identity({"x-ms-client-principal": field})
    assert isinstance(result, Challenge)
    assert result.error == "invalid_token"


@settings(deadline=None)
@given(st.text() | st.binary().map(encoded))
async def test_no_header_breaks_anything(field: str) -> None:
    assert isinstance(await identity({"x-ms-client-principal": field}), Challenge)

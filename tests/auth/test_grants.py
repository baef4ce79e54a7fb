"""Options of grants: what a tool needs, and the services that give it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp import Auth
from funcmcp._auth.grants import KNOWN_PROVIDERS
from funcmcp.auth import APIKeys, Grant, GrantProvider

ANYBODY = APIKeys({"ada": "a-key-of-16-characters"})
ENDPOINTS = {"authorize": "https://code.example.com/authorize", "token": "https://code.example.com/token"}


def test_a_grant_has_its_scopes_once() -> None:
    assert Grant("github").scopes == ()
    assert Grant("github", ["repo", "gist", "repo"]) == Grant("github", ("repo", "gist"))


@pytest.mark.parametrize(
    ("scopes", "error", "message"),
    [
        ("repo", TypeError, "Grant.scopes is a list"),
        (["a b"], ValueError, "is not a scope"),
        (["a\n"], ValueError, "is not a scope"),
        ([str(number) for number in range(51)], ValueError, "more than 50"),
    ],
)
def test_scopes_that_are_not_valid_are_refused(scopes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Grant("github", scopes)


@pytest.mark.parametrize("name", KNOWN_PROVIDERS)
def test_the_name_of_a_known_service_is_enough(name: str) -> None:
    provider = GrantProvider(name, "id", "secret")
    assert provider.authorize == KNOWN_PROVIDERS[name]["authorize"]
    assert provider.title == KNOWN_PROVIDERS[name]["title"]
    assert "secret" not in repr(provider).replace("client_secret_post", "")
    assert hash(provider) != hash(GrantProvider(name, "another id"))


def test_options_replace_those_of_a_known_service() -> None:
    provider = GrantProvider("google", "id", title="Drive", parameters={"access_type": "online"})
    assert (provider.title, provider.parameters) == ("Drive", {"access_type": "online"})
    own = GrantProvider("github", "id", authorize="https://ghe.example.com/a", token="https://ghe.example.com/t")
    assert (own.title, own.revoke, own.includes) == ("github", None, {})


def test_a_scope_covers_those_that_it_includes() -> None:
    provider = GrantProvider("github", "id")
    assert {"repo", "public_repo"} <= provider.covers(["repo", "gist"])
    assert "repo" not in provider.covers(["public_repo"])
    assert provider.covers([]) == frozenset()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Git/Hub", ENDPOINTS, "lower-case letters"),
        ("../x", ENDPOINTS, "lower-case letters"),
        ("", ENDPOINTS, "lower-case letters"),
        (5, ENDPOINTS, "lower-case letters"),
        ("code", {}, "needs authorize= and token="),
        ("code", {"authorize": ENDPOINTS["authorize"]}, "needs authorize= and token="),
        ("github", {"token": ENDPOINTS["token"]}, "needs authorize= and token="),
        ("code", {**ENDPOINTS, "authorize": "javascript:alert(1)"}, "GrantProvider.authorize must be"),
        ("code", {**ENDPOINTS, "token": "http://code.example.com"}, "GrantProvider.token must begin with https"),
        ("code", {**ENDPOINTS, "revoke": "http://code.example.com"}, "GrantProvider.revoke must begin with https"),
        ("code", {**ENDPOINTS, "public_url": "http://x.example.com"}, "GrantProvider.public_url must begin with https"),
        ("code", {**ENDPOINTS, "parameters": {"state": "x", "scope": "y"}}, "can't contain scope, state"),
        ("code", {**ENDPOINTS, "client_id": ""}, "needs the client_id"),
        ("code", {**ENDPOINTS, "client_secret": "s", "credential": lambda: "x"}, "either client_secret or credential"),
        ("code", {**ENDPOINTS, "token_endpoint_auth_method": "none"}, "token_endpoint_auth_method must be"),
    ],
)
def test_options_that_are_not_safe_are_refused(name: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GrantProvider(name, **{"client_id": "id", **options})


def test_services_of_a_server_have_different_names() -> None:
    providers = [GrantProvider("github", "id"), GrantProvider("google", "id")]
    assert Auth(ANYBODY, grants=providers).grants == tuple(providers)
    assert Auth(ANYBODY).grants == ()
    with pytest.raises(ValueError, match="two providers with the name 'github'"):
        Auth(ANYBODY, grants=[*providers, GrantProvider("github", "other")])
    for value in (Grant("github"), GrantProvider, "github"):
        with pytest.raises(TypeError, match=r"Auth\.grants has GrantProvider"):
            Auth(ANYBODY, grants=[value])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"Auth\.grants is a list"):
        Auth(ANYBODY, grants=GrantProvider("github", "id"))  # type: ignore[arg-type]


def test_known_services_can_be_written_as_json() -> None:
    assert json.loads(json.dumps({name: dict(row) for name, row in KNOWN_PROVIDERS.items()}))

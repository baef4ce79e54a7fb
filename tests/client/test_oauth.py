"""Which authorization server a client trusts, and what it makes of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from starlette.responses import Response

from funcmcp._client.oauth import OAuth, RegisteredClient, parameters_of
from funcmcp._client.token_requests import RefusedError
from funcmcp.client import SignInError

if TYPE_CHECKING:
    from tests.client.authorizing import Authorizing


@pytest.mark.parametrize(
    ("challenge", "parameters"),
    [
        (None, {}),
        ("Basic realm=x", {}),
        ("Bearer", {}),
        ('bearer scope="a b", error=invalid_token', {"scope": "a b", "error": "invalid_token"}),
        ('Bearer realm="a, \\"b\\"", scope = "c"', {"realm": 'a, "b"', "scope": "c"}),
        ('Basic realm="x", Bearer resource_metadata="https://a/b"', {"resource_metadata": "https://a/b"}),
    ],
)
def test_the_parameters_of_a_challenge_are_read(challenge: str | None, parameters: dict[str, str]) -> None:
    assert parameters_of(challenge) == parameters


@pytest.mark.parametrize("url", ["http://orders.example.com/mcp", "https://ada@orders.example.com/mcp", "mcp"])
def test_no_token_is_sent_over_a_network_without_tls(url: str) -> None:
    with pytest.raises(ValueError, match="endpoint with sign_in"):
        OAuth(url)


async def test_the_server_names_its_authorization_server(server: Authorizing) -> None:
    assert server.resource is not None
    server.resource["scopes_supported"] = ["orders.read"]
    found = await OAuth(server.url).discover(None)
    assert (found.issuer, found.resource, found.resource_scopes) == (server.origin, server.url, ("orders.read",))


async def test_a_server_without_metadata_is_its_own_authorization_server(server: Authorizing) -> None:
    server.resource = None
    found = await OAuth(server.url).discover(f"{server.origin}/metadata")
    assert (found.issuer, found.resource, found.token_endpoint) == (server.origin, None, f"{server.origin}/token")


@pytest.mark.parametrize("path", ["", "/", "/mcp"])
async def test_the_resource_is_the_endpoint_or_contains_it(server: Authorizing, path: str) -> None:
    assert server.resource is not None
    server.resource["resource"] = server.origin + path
    assert (await OAuth(server.url).discover(None)).resource == server.origin + path


@pytest.mark.parametrize(
    "resource", ["https://evil.example/mcp", "{origin}/mc", "{origin}/mcp/other", "{origin}/mcp?a=1", 5]
)
async def test_metadata_of_another_resource_are_refused(server: Authorizing, resource: Any) -> None:
    assert server.resource is not None
    server.resource["resource"] = resource.format(origin=server.origin) if isinstance(resource, str) else resource
    with pytest.raises(SignInError, match="for another resource"):
        await OAuth(server.url).discover(None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"issuer": "https://evil.example"}, "of another issuer"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "must be an absolute URL"),
        ({"authorization_endpoint": 7}, "must be an absolute URL"),
        ({"token_endpoint": "http://evil.example/token"}, "must begin with https"),
        ({"registration_endpoint": "file:///etc/passwd"}, "must be an absolute URL"),
    ],
)
async def test_metadata_of_an_issuer_that_are_not_safe_are_refused(
    server: Authorizing, changes: dict[str, Any], message: str
) -> None:
    server.issuer |= changes
    with pytest.raises(SignInError, match=message):
        await OAuth(server.url).discover(None)


async def test_an_authorization_server_without_metadata_is_refused(server: Authorizing) -> None:
    assert server.resource is not None
    server.resource["authorization_servers"] = [f"{server.origin}/tenant"]
    with pytest.raises(SignInError, match="has no metadata"):
        await OAuth(server.url).discover(None)


async def test_a_server_on_the_network_can_not_name_a_server_on_this_machine(server: Authorizing) -> None:
    with pytest.raises(SignInError, match="names an authorization server on this machine"):
        await OAuth("https://orders.example.com/mcp").discover(f"{server.origin}/metadata")


async def test_redirects_of_metadata_are_not_followed(server: Authorizing) -> None:
    server.resource = None
    found = await OAuth(server.url).discover(f"{server.origin}/elsewhere")
    assert found.resource is None  # as of a server of 2025-03-26, whose origin is the issuer


@pytest.mark.parametrize(
    ("status", "answer", "error", "message"),
    [
        (400, {"error": "invalid_grant", "error_description": "used\x1b[2J"}, RefusedError, "invalid_grant used"),
        (401, {"error": "invalid_client"}, RefusedError, "401: invalid_client"),
        (500, {"error": "server_error"}, SignInError, "status 500"),
        (429, {"error": "slow_down"}, SignInError, "status 429"),
        (400, {"error": "temporarily_unavailable"}, SignInError, "temporarily_unavailable"),
        (200, {"error": "invalid_code"}, RefusedError, "200: invalid_code"),
        (200, {"ok": False, "error": "invalid_code", "access_token": "a"}, RefusedError, "invalid_code"),
        (200, {"token_type": "Bearer"}, SignInError, "issued no token"),
        (200, {"access_token": "a\r\nb", "token_type": "Bearer"}, SignInError, "issued no token"),
        (200, {"access_token": "a", "token_type": "mac"}, SignInError, "not a bearer token"),
        (200, Response("<html>"), RefusedError, "status 200"),
        (200, Response("x" * 300_000), SignInError, "too large"),
    ],
)
async def test_answers_of_the_token_endpoint_are_checked(
    server: Authorizing, status: int, answer: Any, error: type[Exception], message: str
) -> None:
    oauth = OAuth(server.url)
    found = await oauth.discover(None)
    server.answers = [(status, answer)]
    client = RegisteredClient("id", None, "none", "http://127.0.0.1:1/callback")
    with pytest.raises(error, match=message) as caught:
        await oauth.exchange(found, client, "code", "verifier", ())
    assert "\x1b" not in str(caught.value)
    assert isinstance(caught.value, RefusedError) == (error is RefusedError)


@pytest.mark.parametrize(
    ("method", "in_form"), [("client_secret_basic", False), ("client_secret_post", True), ("none", False)]
)
async def test_a_client_with_a_secret_authenticates_in_the_way_that_it_has_registered(
    server: Authorizing, method: str, in_form: bool
) -> None:
    oauth = OAuth(server.url)
    found = await oauth.discover(None)
    secret = None if method == "none" else "a secret"
    await oauth.exchange(found, RegisteredClient("id", secret, method, "http://127.0.0.1:1/callback"), "c", "v", ())
    form = server.those("token")[0]
    assert (form.get("client_secret") == "a secret") is in_form
    assert ("client_id" in form) is (method != "client_secret_basic")
    assert form["resource"] == server.url


async def test_an_authorization_server_that_registers_nobody_says_what_to_do(server: Authorizing) -> None:
    del server.issuer["registration_endpoint"]
    oauth = OAuth(server.url)
    found = await oauth.discover(None)
    with pytest.raises(SignInError, match=r"SignIn\(client_id=\.\.\.\)"):
        await oauth.register(found, "funcmcp", "http://127.0.0.1:1/callback")

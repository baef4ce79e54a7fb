"""Providers of FastMCP whose clients get tokens elsewhere."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.responses import JSONResponse
from starlette.routing import Route

from funcmcp import compat
from funcmcp._compat import remote_auth
from funcmcp.compat import (
    AuthKitProvider,
    DescopeProvider,
    FastMCP,
    MultiAuth,
    PropelAuthProvider,
    RemoteAuthProvider,
    StaticTokenVerifier,
    TokenVerificationError,
    TokenVerifier,
    get_access_token,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BASE = "https://orders.example.com"
LOGIN = "https://login.example.com"
PROVIDERS: dict[str, dict[str, Any]] = {
    "AuthKitProvider": {"authkit_domain": LOGIN},
    "Auth0MCPProvider": {"config_url": f"{LOGIN}/.well-known/openid-configuration"},
    "DescopeProvider": {"config_url": f"{LOGIN}/v1/apps/P1/.well-known/openid-configuration"},
    "ScalekitProvider": {"environment_url": LOGIN, "resource_id": "res_1"},
    "SupabaseProvider": {"project_url": LOGIN},
    "KeycloakAuthProvider": {"realm_url": f"{LOGIN}/realms/orders", "audience": BASE},
    "PropelAuthProvider": {
        "auth_url": LOGIN,
        "introspection_client_id": "me",
        "introspection_client_secret": "secret",
    },
}
TOKENS: dict[str, dict[str, Any]] = {"reader": {"client_id": "app", "scopes": ["read"], "sub": "ann"}}


@asynccontextmanager
async def client(auth: Any, path: str = "/mcp", url: str = BASE) -> AsyncIterator[httpx2.AsyncClient]:
    mcp = FastMCP("orders", auth=auth, stateless_http=True)

    @mcp.tool
    def who() -> str:
        token = get_access_token()
        assert token is not None
        return token.client_id

    transport = httpx2.ASGITransport(app=mcp.http_app(path=path))
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url=url) as http:
        yield http


async def status(http: httpx2.AsyncClient, token: str) -> int:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "arguments": {}}}
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {token}"}
    answer = await http.post("/mcp", json=message, headers={**headers, "mcp-protocol-version": "2025-11-25"})
    return answer.status_code


@pytest.mark.parametrize("name", PROVIDERS)
async def test_each_provider_leads_clients_to_its_issuer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def document(urls: list[str]) -> Any:
        asked.extend(urls)
        return {"issuer": LOGIN}

    monkeypatch.setattr(remote_auth, "_first_of", document)
    provider = getattr(compat, name)(base_url=f"{BASE}/", **PROVIDERS[name])
    async with client(provider) as http:
        resource = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert resource["resource"] == f"{BASE}/mcp"
        assert all(issuer.startswith(LOGIN) for issuer in resource["authorization_servers"])
        for _ in range(2):
            forwarded = await http.get("/.well-known/oauth-authorization-server")
        if provider.metadata_urls():
            assert forwarded.json() == {"issuer": LOGIN}
        else:
            assert forwarded.status_code == 404
        assert await status(http, "unknown") in {401, 503}
    assert asked == provider.metadata_urls()


async def test_metadata_that_are_not_available_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_urls: list[str]) -> None:
        return None

    monkeypatch.setattr(remote_auth, "_first_of", nothing)
    async with client(AuthKitProvider(authkit_domain=LOGIN, base_url=BASE)) as http:
        assert (await http.get("/.well-known/oauth-authorization-server")).status_code == 500


async def test_the_tokens_of_authkit_are_for_the_url_of_the_endpoint() -> None:
    provider = AuthKitProvider(authkit_domain=LOGIN, base_url=BASE)
    async with client(provider, "/api/mcp"):
        assert provider.token_verifier.audience == f"{BASE}/api/mcp"
    own = AuthKitProvider(authkit_domain=LOGIN, base_url=BASE, token_verifier=StaticTokenVerifier(TOKENS))
    async with client(own) as http:
        assert await status(http, "reader") == 200


async def test_scopes_are_demanded_and_named() -> None:
    provider = RemoteAuthProvider(
        StaticTokenVerifier(TOKENS), [LOGIN], BASE, ["read", "write"], required_scopes=["write"], resource_name="Orders"
    )
    async with client(provider) as http:
        document = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert (document["scopes_supported"], document["resource_name"]) == (["read", "write"], "Orders")
        assert await status(http, "reader") == 403


async def test_routes_of_a_subclass_are_served() -> None:
    class Company(RemoteAuthProvider):
        def get_routes(self, mcp_path: str | None = None) -> list[Any]:
            async def metadata(_: Any) -> Any:
                return JSONResponse({"issuer": LOGIN, "path": mcp_path})

            routes = super().get_routes(mcp_path)
            return [*routes, Route("/.well-known/oauth-authorization-server", metadata)]

    async with client(Company(StaticTokenVerifier(TOKENS), [LOGIN], BASE)) as http:
        answer = await http.get("/.well-known/oauth-authorization-server")
        assert answer.json() == {"issuer": LOGIN, "path": "/mcp"}
        assert (await http.get("/.well-known/oauth-protected-resource/mcp")).status_code == 200


@pytest.mark.parametrize(
    ("issuer", "accepted"),
    [
        (f"{LOGIN}/v1/apps/P1", True),
        (f"{LOGIN}/v1/apps/P1/T1", True),
        (f"{LOGIN}/v1/apps/agentic/P1/M1", True),
        (f"{LOGIN}/v1/apps/agentic/P1", False),
        (f"{LOGIN}/v1/apps/P1/T1/x", False),
        (f"{LOGIN}/v1/apps/P2", False),
        (f"{LOGIN}/v1/apps/agentic/P2/M1", False),
        (None, False),
    ],
)
def test_the_issuers_of_a_project_of_descope_are_accepted(issuer: str | None, accepted: bool) -> None:
    provider = DescopeProvider(project_id="P1", descope_base_url=LOGIN, base_url=BASE)
    assert provider.token_verifier._validate_issuer(issuer) is accepted


async def test_the_audience_of_propelauth_is_the_resource() -> None:
    provider = PropelAuthProvider(base_url=BASE, resource=BASE, **PROVIDERS["PropelAuthProvider"])
    tokens = {"good": {"client_id": "a", "aud": BASE}, "bad": {"client_id": "a", "aud": LOGIN}}
    provider.token_verifier = StaticTokenVerifier(tokens)
    assert await provider.verify_token("good") is not None
    assert await provider.verify_token("bad") is None


# Several sources


class Unavailable(TokenVerifier):
    async def verify_token(self, token: str) -> Any:
        if token == "fails":
            raise ValueError(token)
        raise TokenVerificationError("away")


async def test_callers_of_two_sources_are_different_callers() -> None:
    sources = {"one": StaticTokenVerifier({"a": TOKENS["reader"]}), "two": StaticTokenVerifier({"b": TOKENS["reader"]})}
    combined = MultiAuth(verifiers=sources)
    first, second = await combined.verify_token("a"), await combined.verify_token("b")
    assert first.client_id != second.client_id
    assert (first.original_client_id, second.original_client_id) == ("app", "app")
    assert await combined.verify_token("c") is None
    async with client(combined, url="http://127.0.0.1") as http:
        assert [await status(http, token) for token in ("a", "b", "c")] == [200, 200, 401]


async def test_a_source_that_can_not_answer_does_not_hide_the_others() -> None:
    combined = MultiAuth(verifiers=[Unavailable(), StaticTokenVerifier(TOKENS)])
    assert await combined.verify_token("reader") is not None
    async with client(combined, url="http://127.0.0.1") as http:
        assert await status(http, "unknown") == 503
        assert await status(http, "fails") == 401


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "at least a server or one verifier"),
        ({"server_source_id": "x", "verifiers": [StaticTokenVerifier({})]}, "requires a server"),
        ({"verifiers": [StaticTokenVerifier({}), StaticTokenVerifier({})]}, "unique"),
        ({"verifiers": {" x": StaticTokenVerifier({})}}, "nonempty"),
    ],
)
def test_sources_that_can_not_be_told_apart_stop_the_start(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        MultiAuth(**options)

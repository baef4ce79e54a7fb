"""Providers of FastMCP that sign users in."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import compat
from funcmcp._oauth_proxy.headless import HeadlessClient, HeadlessError
from funcmcp._serving.composition import runtime_of
from funcmcp.compat import FastMCP, MultiAuth, OAuthProxy, StaticTokenVerifier, get_access_token, require_scopes
from funcmcp.state import MemorySignIns
from tests.oauth_proxy.test_oauth2 import ProviderHTTP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BASE = "https://orders.example.com"
LOGIN = "https://login.example.com"
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
USERS: dict[str, dict[str, Any]] = {"at": {"client_id": "app", "sub": "ann", "scopes": ["read"], "login": "ann1"}}


def proxy(users: dict[str, dict[str, Any]] | None = None, **options: Any) -> OAuthProxy:
    """Return a provider whose users are signed in without a page."""
    provider = OAuthProxy(
        upstream_authorization_endpoint=f"{LOGIN}/authorize",
        upstream_token_endpoint=f"{LOGIN}/token",
        upstream_client_id="app",
        upstream_client_secret="secret",
        token_verifier=StaticTokenVerifier(USERS if users is None else users, required_scopes=["read"]),
        base_url=BASE,
        **options,
    )

    async def authorization_url(request: Any) -> str:
        return f"{request.redirect_uri}?code=c&state={request.state}"

    provider.upstream._http = ProviderHTTP()  # type: ignore[attr-defined]
    provider.upstream.authorization_url = authorization_url  # type: ignore[method-assign]
    return provider


def server(auth: Any) -> FastMCP:
    mcp = FastMCP("orders", auth=auth, stateless_http=True)

    @mcp.tool
    def who() -> dict[str, Any]:
        token = get_access_token()
        assert token is not None
        return {"parts": [token.token, token.scopes, token.subject, token.claims.get("login")]}

    @mcp.tool(auth=require_scopes("admin"))
    def close() -> str:
        return "closed"

    return mcp


@asynccontextmanager
async def client(mcp: FastMCP, app: Any = None) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app or mcp)
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
        yield http


async def signed_in(mcp: FastMCP, *scopes: str) -> str:
    native = runtime_of(mcp).proxy
    assert native is not None
    return await HeadlessClient(native, "orders").sign_in(scopes)


async def call(http: httpx2.AsyncClient, token: str, name: str) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    return await http.post("/mcp", json=message, headers={**HEADERS, "authorization": f"Bearer {token}"})


async def test_a_user_signs_in_and_calls_a_tool() -> None:
    mcp = server(proxy())
    token = await signed_in(mcp, "read")
    async with client(mcp) as http:
        result = (await call(http, token, "who")).json()["result"]
        assert result["structuredContent"]["parts"] == ["", ["read"], "ann", "ann1"]
        assert (await call(http, "at", "who")).status_code == 401
    assert (await mcp.auth.verify_token(token)).subject == "ann"
    assert await mcp.auth.verify_token("at") is None


async def test_a_user_has_only_the_scopes_that_the_provider_has_granted() -> None:
    mcp = server(proxy(valid_scopes=["read", "admin"]))
    token = await signed_in(mcp, "read", "admin")
    async with client(mcp) as http:
        assert (await call(http, token, "close")).json()["result"]["content"][0]["text"] == "Unknown tool: 'close'"
    granted = {"at": {**USERS["at"], "scopes": ["read", "admin"]}}
    mcp = server(proxy(granted, valid_scopes=["read", "admin"]))
    token = await signed_in(mcp, "read", "admin")
    async with client(mcp) as http:
        assert "closed" in (await call(http, token, "close")).text


@pytest.mark.parametrize("users", [{}, {"at": {**USERS["at"], "scopes": []}}, {"at": {**USERS["at"], "sub": None}}])
async def test_a_user_whom_the_verifier_does_not_accept_is_not_signed_in(users: dict[str, Any]) -> None:
    with pytest.raises(HeadlessError):
        await signed_in(server(proxy(users)), "read")


async def test_clients_whose_redirect_uris_match_no_pattern_are_refused() -> None:
    mcp = server(proxy(allowed_client_redirect_uris=["https://claude.ai/callback"]))
    with pytest.raises(HeadlessError):
        await signed_in(mcp, "read")
    async with client(mcp) as http:
        for uri, status in (("https://claude.ai/callback", 201), ("https://claude.ai/other", 400)):
            answer = await http.post("/oauth/register", json={"client_name": "c", "redirect_uris": [uri]})
            assert answer.status_code == status


async def test_the_redirect_uri_is_the_one_that_is_registered_for_fastmcp() -> None:
    for path in ("/auth/callback", "/custom/back"):
        chosen = None if path == "/auth/callback" else path
        native = runtime_of(server(proxy(redirect_path=chosen))).proxy
        assert native is not None
        assert native.callback == f"{BASE}{path}"
        assert path in native.paths


async def test_a_signing_key_and_a_store_keep_sign_ins() -> None:
    options: dict[str, Any] = {"jwt_signing_key": "secret", "client_storage": MemorySignIns()}
    first = server(proxy(fastmcp_access_token_expiry_seconds=60, **options))
    second = server(proxy(**options))
    token = await signed_in(first, "read")
    assert (await second.auth.verify_token(token)) is not None
    assert await server(proxy(jwt_signing_key="other")).auth.verify_token(token) is None


def test_a_store_of_another_kind_and_a_missing_consent_are_named(caplog: pytest.LogCaptureFixture) -> None:
    proxy(client_storage=object(), require_authorization_consent=False)
    assert "client_storage=object is ignored" in caplog.text
    assert "users are always asked" in caplog.text


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"identity_assertion": object()}, TypeError, "identity_assertions= of funcmcp"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"allowed_client_redirect_uris": "http://localhost"}, TypeError, "list of strings"),
    ],
)
def test_an_option_that_can_not_be_kept_stops_the_start(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        proxy(**options)


def test_a_resource_at_another_host_stops_the_start() -> None:
    with pytest.raises(ValueError, match="beginning of the URL"):
        server(proxy(resource_base_url="https://other.example.com"))


CONFIG = f"{LOGIN}/.well-known/openid-configuration"
APP: dict[str, Any] = {"client_id": "app", "client_secret": "secret", "base_url": BASE}
PROVIDERS: dict[str, dict[str, Any]] = {
    "GitHubProvider": {"required_scopes": ["user", "repo"]},
    "GoogleProvider": {"required_scopes": ["openid", "email"], "valid_scopes": ["openid"]},
    "DiscordProvider": {},
    "HuggingFaceProvider": {},
    "OIDCProxy": {"config_url": CONFIG, "audience": "orders"},
    "Auth0Provider": {"config_url": CONFIG, "audience": "orders"},
    "OCIProvider": {"config_url": CONFIG},
    "AWSCognitoProvider": {"user_pool_id": "eu-central-1_x"},
    "ClerkProvider": {"domain": "orders.clerk.accounts.dev"},
    "WorkOSProvider": {"authkit_domain": "https://orders.authkit.app"},
    "AzureProvider": {"tenant_id": "t", "required_scopes": ["read"]},
}


@pytest.mark.parametrize("name", PROVIDERS)
async def test_each_provider_leads_clients_to_its_sign_in(name: str) -> None:
    provider = getattr(compat, name)(**APP, **PROVIDERS[name])
    mcp = server(provider)
    async with client(mcp, mcp.http_app()) as http:
        resource = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert resource["resource"] == f"{BASE}/mcp"
        (issuer,) = resource["authorization_servers"]
        metadata = (await http.get("/.well-known/oauth-authorization-server")).json()
        assert metadata["issuer"] == issuer == BASE
        assert metadata["scopes_supported"] == provider.server_scopes
        challenge = (await http.post("/mcp", json={})).headers["www-authenticate"]
        assert f'resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp"' in challenge
    paths = [route.path for route in provider.get_well_known_routes("/mcp")]
    assert "/.well-known/oauth-authorization-server" in paths


async def test_the_path_of_the_endpoint_is_a_part_of_the_resource() -> None:
    mcp = server(proxy())
    async with client(mcp, mcp.http_app(path="/api/tools")) as http:
        resource = (await http.get("/.well-known/oauth-protected-resource/api/tools")).json()
        assert resource["resource"] == f"{BASE}/api/tools"


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("AzureProvider", {"tenant_id": "t", "required_scopes": ["openid"]}, "at least one non-OIDC scope"),
        ("OIDCProxy", {"config_url": LOGIN}, "must end with"),
        ("OIDCProxy", {"config_url": CONFIG, "algorithm": "RS256", "token_verifier": object()}, "'algorithm'"),
        ("GitHubProvider", {"base_url": "http://orders.example.com"}, "must begin with https"),
    ],
)
def test_options_that_can_not_be_meant_stop_the_start(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        getattr(compat, name)(**APP | options)


def test_a_user_flow_of_b2c_has_its_own_host() -> None:
    options: dict[str, Any] = {**APP, "required_scopes": ["read"]}
    provider = compat.AzureProvider.from_b2c(tenant_name="orders", policy_name="B2C_1_susi", **options)
    assert provider.token_verifier.issuer is None
    address = "https://orders.b2clogin.com/orders.onmicrosoft.com/B2C_1_susi/discovery/v2.0/keys"
    assert provider.token_verifier.jwks_uri == address
    with pytest.raises(ValueError, match=r"without \.onmicrosoft\.com"):
        compat.AzureProvider.from_b2c(tenant_name="orders.onmicrosoft.com", policy_name="p", **options)


async def test_a_proxy_and_a_verifier_are_combined() -> None:
    machine = StaticTokenVerifier({"machine": {"client_id": "robot", "scopes": ["read"], "sub": "robot"}})
    mcp = server(MultiAuth(server=proxy(), verifiers={"machines": machine}))
    token = await signed_in(mcp, "read")
    async with client(mcp) as http:
        for text in (token, "machine"):
            assert (await call(http, text, "who")).status_code == 200
        assert (await call(http, "at", "who")).status_code == 401
        assert (await http.get("/.well-known/oauth-authorization-server")).status_code == 200

"""Authorization servers of the official SDK and of FastMCP that an author has written."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse
from starlette.routing import Route

from funcmcp.compat import FastMCP, MCPServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BASE = "https://orders.example.com"


class Provider:
    """A part of an authorization server: it registers clients, and has one token."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = {"good": ["read"], "weak": []}
        if token not in known:
            return None
        return AccessToken(token=token, client_id="app", scopes=known[token], resource=f"{BASE}/mcp")


def settings(**options: Any) -> AuthSettings:
    return AuthSettings(
        issuer_url=AnyHttpUrl(BASE),
        resource_server_url=AnyHttpUrl(f"{BASE}/mcp"),
        required_scopes=["read"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True),
        **options,
    )


@asynccontextmanager
async def client(mcp: Any) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=mcp.streamable_http_app())
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
        yield http


async def statuses(http: httpx2.AsyncClient) -> list[int]:
    """Return the statuses of a request with each token."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    answers = []
    for token in ("good", "weak", "bad"):
        fields = {**headers, "authorization": f"Bearer {token}"}
        answers.append((await http.post("/mcp", json=message, headers=fields)).status_code)
    return answers


async def test_an_authorization_server_of_the_sdk_registers_clients_and_decides_about_tokens() -> None:
    provider = Provider()
    mcp = MCPServer("orders", auth=settings(), auth_server_provider=provider, stateless_http=True)
    async with client(mcp) as http:
        metadata = (await http.get("/.well-known/oauth-authorization-server")).json()
        assert metadata["registration_endpoint"] == f"{BASE}/register"
        body = {"redirect_uris": ["http://localhost:3000/callback"], "token_endpoint_auth_method": "none"}
        assert (await http.post("/register", json=body)).status_code == 201
        assert len(provider.clients) == 1
        resource = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert resource["authorization_servers"] == [f"{BASE}/"]
        assert await statuses(http) == [200, 403, 401]


def test_an_authorization_server_of_the_sdk_needs_its_settings() -> None:
    with pytest.raises(TypeError, match="needs auth=AuthSettings"):
        MCPServer("orders", auth_server_provider=Provider())
    with pytest.raises(TypeError, match="not both"):
        MCPServer("orders", auth=settings(), auth_server_provider=Provider(), token_verifier=object())


class WithRoutes:
    """A provider of FastMCP's own package, as far as a server needs it."""

    base_url = AnyHttpUrl(BASE)
    required_scopes = ("read",)

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        async def token(_: Any) -> Any:
            return JSONResponse({"path": mcp_path})

        return [Route("/token", token, methods=["POST"])]

    async def verify_token(self, token: str) -> AccessToken | None:
        return await Provider().load_access_token(token)


async def test_the_routes_of_a_provider_of_fastmcp_are_served() -> None:
    mcp = FastMCP("orders", auth=WithRoutes(), stateless_http=True)
    async with client(mcp) as http:
        assert (await http.post("/token")).json() == {"path": "/mcp"}
        assert (await http.get("/.well-known/oauth-protected-resource/mcp")).json()["resource"] == f"{BASE}/mcp"
        assert await statuses(http) == [200, 403, 401]

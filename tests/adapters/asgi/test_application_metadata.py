"""The metadata of a server inside another application, as docs/guides/authentication.md shows it."""

from __future__ import annotations

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from funcmcp import HTTPOptions, MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.policy import Auth
from funcmcp._auth.protected_resource import ProtectedResource

RESOURCE = ProtectedResource(
    resource="https://example.com/shop/mcp", authorization_servers=["https://login.example.com"]
)


@pytest.fixture
def app() -> Starlette:
    auth = Auth(APIKeys({"reporting": "kq3vJ8wZ1xP5sT7u"}), RESOURCE)
    mcp = MCPServer("Shop", auth=auth, http=HTTPOptions(allowed_hosts=["example.com"]))
    return Starlette(routes=[*(Route(path, mcp) for path in RESOURCE.paths), Mount("/shop", mcp)])


async def test_the_challenge_of_a_mounted_server_leads_to_metadata_that_names_its_url(app: Starlette) -> None:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://example.com") as http:
        refused = await http.post("/shop/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert refused.status_code == 401
        metadata = refused.headers["www-authenticate"].split('resource_metadata="')[1].rstrip('"')
        found = await http.get(metadata)
        assert (found.status_code, found.json()["resource"]) == (200, "https://example.com/shop/mcp")

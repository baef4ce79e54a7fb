"""Settings of the official SDK that are objects: they have the originals' members, and servers understand them."""

from __future__ import annotations

from typing import Any, cast

import httpx2
import pytest
from mcp.server import auth as original_auth
from mcp.server import caching as original_caching
from mcp.server import transport_security as original_security
from pydantic import AnyHttpUrl, ValidationError

from funcmcp.compat import AccessToken, FastMCP, TokenVerifier
from funcmcp.compat.mcp.server import CacheHint
from funcmcp.compat.mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from funcmcp.compat.mcp.server.transport_security import TransportSecuritySettings

URL = AnyHttpUrl("https://orders.example.com/mcp")
ISSUER = AnyHttpUrl("https://login.example.com")


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        resource = None if token == "elsewhere" else str(URL)
        return AccessToken(token=token, client_id="ann", scopes=["orders"], resource=resource)


def defaults_of(model: Any) -> dict[str, Any]:
    return {name: (field.default, field.default_factory) for name, field in model.model_fields.items()}


def test_settings_have_the_members_and_defaults_of_the_originals() -> None:
    originals = original_auth.settings
    assert defaults_of(AuthSettings) == defaults_of(originals.AuthSettings)
    assert defaults_of(ClientRegistrationOptions) == defaults_of(originals.ClientRegistrationOptions)
    assert defaults_of(RevocationOptions) == defaults_of(originals.RevocationOptions)
    assert defaults_of(TransportSecuritySettings) == defaults_of(original_security.TransportSecuritySettings)


def test_hints_for_caches_have_the_defaults_and_the_checks_of_the_originals() -> None:
    assert (CacheHint().ttl_ms, CacheHint().scope) == (0, "private")
    for hint in (CacheHint, original_caching.CacheHint):
        with pytest.raises(ValueError, match="ttl_ms must be >= 0, got -1"):
            hint(ttl_ms=-1)
        with pytest.raises(ValueError, match="scope must be 'public' or 'private', got 'all'"):
            hint(scope=cast("Any", "all"))


def test_a_choice_that_the_original_warns_of_warns_here() -> None:
    with pytest.warns(DeprecationWarning, match="accepts tokens that were issued for other resources"):
        AuthSettings(issuer_url=ISSUER, resource_server_url=URL)
    with pytest.raises(ValidationError, match="requires resource_server_url"):
        AuthSettings(issuer_url=ISSUER, resource_server_url=None, validate_token_resource=True)


async def test_a_server_follows_its_settings() -> None:
    auth = AuthSettings(
        issuer_url=ISSUER, resource_server_url=URL, required_scopes=["orders"], validate_token_resource=True
    )
    security = TransportSecuritySettings(allowed_hosts=["orders.example.com"])
    mcp = FastMCP("Orders", token_verifier=Verifier(), auth=auth, transport_security=security, stateless_http=True)

    @mcp.tool
    async def add() -> int:
        return 1

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {}}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    transport = httpx2.ASGITransport(app=cast("Any", mcp.http_app()))
    statuses: dict[str, int] = {}
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport) as client:
        for name, host, token in (
            ("right", "orders.example.com", "here"),
            ("other resource", "orders.example.com", "elsewhere"),
            ("other host", "evil.example.com", "here"),
        ):
            response = await client.post(
                f"https://{host}/mcp", json=call, headers={**headers, "authorization": f"Bearer {token}"}
            )
            statuses[name] = response.status_code
    assert statuses == {"right": 200, "other resource": 401, "other host": 421}

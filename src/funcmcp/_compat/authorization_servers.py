"""Authorization servers of an author: providers of FastMCP and the official SDK that issue tokens themselves.

How it works: such a provider is an object of the author's own framework, which makes routes of Starlette for its
endpoints. The server serves these routes without credentials, and asks the provider about each token.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from funcmcp._auth.protected_resource import ProtectedResource
from funcmcp._compat.auth import AuthProvider, refuse_middleware, settings_metadata, verifier_auth

if TYPE_CHECKING:
    from funcmcp._auth.policy import Auth


class FastMCPProvider(AuthProvider):
    """A provider of the package `fastmcp` that has routes.

    Args:
        provider: The provider.
    """

    def __init__(self, provider: Any) -> None:
        super().__init__(
            getattr(provider, "base_url", None),
            list(getattr(provider, "required_scopes", None) or ()),
            getattr(provider, "resource_base_url", None),
        )
        self.provider = provider

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is invalid."""
        return await self.provider.verify_token(token)

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return the routes of the provider."""
        routes: list[Any] = self.provider.get_routes(mcp_path)
        return routes

    def native_auth(self, path: str) -> Auth:
        """Return funcmcp's options of authentication."""
        self.set_mcp_path(path)
        refuse_middleware(type(self.provider))
        url = self._get_resource_url(path)
        issuers = getattr(self.provider, "authorization_servers", None)
        issuers = issuers or [getattr(self.provider, "issuer_url", None) or self.base_url]
        metadata = None
        if url is not None and issuers[0] is not None:
            metadata = ProtectedResource(
                resource=str(url), authorization_servers=list(map(str, issuers)), scopes=self.required_scopes
            )
        return verifier_auth(self, metadata=metadata)


class SDKProvider(AuthProvider):
    """An authorization server of the package `mcp`, with its settings.

    Args:
        provider: The ``OAuthAuthorizationServerProvider``.
        settings: The ``AuthSettings``.

    Raises:
        TypeError: There are no settings.
    """

    def __init__(self, provider: Any, settings: Any) -> None:
        if not hasattr(settings, "issuer_url"):
            raise TypeError("auth_server_provider= needs auth=AuthSettings(...) of the official SDK.")
        super().__init__(settings.issuer_url, list(settings.required_scopes or ()))
        self.provider = provider
        self.settings = settings

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is invalid."""
        return await self.provider.load_access_token(token)

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return the routes of the SDK for the provider."""
        self.set_mcp_path(mcp_path)
        settings = self.settings
        options: dict[str, Any] = {
            "provider": self.provider,
            "issuer_url": settings.issuer_url,
            "service_documentation_url": settings.service_documentation_url,
            "client_registration_options": settings.client_registration_options,
            "revocation_options": settings.revocation_options,
        }
        if getattr(settings, "identity_assertion_enabled", False):
            options["identity_assertion_enabled"] = True
        # The provider is an object of the SDK, so the SDK is there.
        routes: list[Any] = import_module("mcp.server.auth.routes").create_auth_routes(**options)
        return routes

    def native_auth(self, path: str) -> Auth:
        """Return funcmcp's options of authentication."""
        self.set_mcp_path(path)
        return verifier_auth(self, **settings_metadata(self.settings))

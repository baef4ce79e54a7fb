"""The orders sample with a sign-in of its own, for an identity provider that knows no MCP clients.

Run it in the folder of the repository with ``funcmcp run samples.signin.proxy:mcp``; see README.md. With another
provider only `upstream` changes, such as ``EntraID(...)`` or ``Google(...)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp import Context
from funcmcp.auth import OIDC, Auth, OAuthProxy

from .server import with_auth
from .settings import PROVIDER, PROVIDER_CLIENT, PROVIDER_SECRET, READ, SENTENCES, URL

if TYPE_CHECKING:
    from funcmcp import MCPServer


def behind_proxy(url: str, provider: str) -> MCPServer:
    """Return an orders server whose users sign in at an OpenID provider.

    Args:
        url: The URL of the server, as clients use it.
        provider: The issuer of the provider.
    """
    proxy = OAuthProxy(url, upstream=OIDC(provider, PROVIDER_CLIENT, PROVIDER_SECRET), scopes=SENTENCES)
    mcp = with_auth(Auth(proxy, scopes=[READ]))
    mcp.tool(read_only=True)(who_am_i)
    return mcp


def who_am_i(context: Context) -> dict[str, str | None]:
    """Return the subject and the name of the signed-in user."""
    principal = context.principal
    if principal is None:
        return {}
    return {"subject": principal.subject, "name": principal.name}


mcp = behind_proxy(URL, PROVIDER)

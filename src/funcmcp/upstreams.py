"""Other servers as features of this one: ``mcp.mount(Upstream("https://example.com/mcp"), prefix="docs")``.

See guides/gateway.md. Public names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._upstreams.auth import client_credentials, from_sign_in, on_behalf_of, static, token_exchange
    from funcmcp._upstreams.limits import UpstreamLimits, UpstreamTimeouts
    from funcmcp._upstreams.status import UpstreamError, UpstreamStatus
    from funcmcp._upstreams.upstream import Upstream
    from funcmcp._upstreams.user_grants import ask_user

__all__ = [
    "Upstream",
    "UpstreamError",
    "UpstreamLimits",
    "UpstreamStatus",
    "UpstreamTimeouts",
    "ask_user",
    "client_credentials",
    "from_sign_in",
    "on_behalf_of",
    "static",
    "token_exchange",
]

_HOMES = {
    "_upstreams.auth": ["client_credentials", "from_sign_in", "on_behalf_of", "static", "token_exchange"],
    "_upstreams.limits": ["UpstreamLimits", "UpstreamTimeouts"],
    "_upstreams.status": ["UpstreamError", "UpstreamStatus"],
    "_upstreams.upstream": ["Upstream"],
    "_upstreams.user_grants": ["ask_user"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

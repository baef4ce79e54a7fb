"""The sample that offers everything, with an OAuthProxy. The suite has no token: each request gets one on its way."""

from __future__ import annotations

from functools import partial
from time import time
from typing import Any

import funcmcp
from funcmcp._oauth_proxy.upstream import User
from funcmcp.auth import OIDC, Auth, OAuthProxy

_PROXY = OAuthProxy(
    "https://everything.example.com/mcp",
    upstream=OIDC("https://login.example.com", "everything"),
    scopes={"everything": "Use everything"},
)
_WITH_SIGN_IN: Any = partial(funcmcp.MCPServer, auth=Auth(_PROXY, scopes=["everything"]))
funcmcp.MCPServer = _WITH_SIGN_IN  # type: ignore[misc]

from samples.everything.server import mcp  # noqa: E402 - it has to find the class above

_NOW = time()
_TOKEN = _PROXY._settings.tokens.issue(User("ada"), "suite", ["everything"], signed_in=int(_NOW), now=_NOW)
_HEADER = b"authorization", f"Bearer {_TOKEN}".encode()


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http" and scope["path"] == "/mcp":
        scope = {**scope, "headers": [*scope["headers"], _HEADER]}
    await mcp(scope, receive, send)

"""Serves servers with token verifiers under one framework's names: ``python -m tests.compat.token_servers originals``.

It prints the port. The paths are ``/<name of the server>/mcp``. The clock stands still at `NOW`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
import warnings
from typing import Any

from tests.compat.token_cases import CASES, NOW, REQUIRED_SCOPES, RESOURCE, static_claims

time.time = lambda: NOW  # before the frameworks import it
warnings.simplefilter("ignore")


def sdk_servers(server_class: Any, token_class: Any) -> dict[str, Any]:
    """Return servers of the official SDK: with and without a check of the resource."""
    from mcp.server.auth.settings import AuthSettings
    from pydantic import AnyHttpUrl

    class Verifier:
        async def verify_token(self, token: str) -> Any:
            return token_class(token=token, **CASES[token]) if token in CASES else None

    def server(*, validates: bool) -> Any:
        settings = AuthSettings(
            issuer_url=AnyHttpUrl("https://login.example.com"),
            resource_server_url=AnyHttpUrl(RESOURCE),
            required_scopes=REQUIRED_SCOPES,
            validate_token_resource=validates,
        )
        return server_class("sdk", auth=settings, token_verifier=Verifier())

    return {"sdk-resource": server(validates=True), "sdk": server(validates=False)}


def fastmcp_servers(server_class: Any, verifier_class: Any, static_class: Any, token_class: Any) -> dict[str, Any]:
    """Return servers of FastMCP: with a verifier of an author, and with static tokens."""

    class Verifier(verifier_class):  # type: ignore[misc] # of either framework
        async def verify_token(self, token: str) -> Any:
            return token_class(token=token, **CASES[token]) if token in CASES else None

    static = static_class(static_claims(), required_scopes=REQUIRED_SCOPES)
    return {
        "fastmcp": server_class("fastmcp", auth=Verifier(required_scopes=REQUIRED_SCOPES)),
        "static": server_class("static", auth=static),
    }


def originals() -> dict[str, Any]:
    from fastmcp import FastMCP
    from fastmcp.server.auth import AccessToken, StaticTokenVerifier, TokenVerifier
    from mcp.server import MCPServer
    from mcp.server.auth.provider import AccessToken as SDKAccessToken

    sdk = sdk_servers(MCPServer, SDKAccessToken)
    fastmcp = fastmcp_servers(FastMCP, TokenVerifier, StaticTokenVerifier, AccessToken)
    return {
        **{name: server.streamable_http_app(stateless_http=True, json_response=True) for name, server in sdk.items()},
        **{name: server.http_app(stateless_http=True, json_response=True) for name, server in fastmcp.items()},
    }


def compat() -> dict[str, Any]:
    from funcmcp.compat import AccessToken, FastMCP, MCPServer, StaticTokenVerifier, TokenVerifier

    return {
        **sdk_servers(MCPServer, AccessToken),
        **fastmcp_servers(FastMCP, TokenVerifier, StaticTokenVerifier, AccessToken),
    }


async def serve(applications: dict[str, Any]) -> None:
    """Serve applications of Starlette, or of funcmcp, until the process is killed."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with contextlib.AsyncExitStack() as stack:
            for application in applications.values():
                if hasattr(application, "router"):
                    await stack.enter_async_context(application.router.lifespan_context(application))
                else:
                    await stack.enter_async_context(application.lifespan())
            yield

    app = Starlette(
        routes=[Mount(f"/{name}", application) for name, application in applications.items()], lifespan=lifespan
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve([listener])


if __name__ == "__main__":
    asyncio.run(serve(originals() if sys.argv[1] == "originals" else compat()))

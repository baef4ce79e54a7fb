"""A server with a proxy in front of a real OpenID provider."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._processes.server import origin_of
from funcmcp.auth import OIDC, Auth, OAuthProxy
from tests import nodejs
from tests.clients.signing_in import Recorder, serving_in_thread
from tests.requirements import require
from tests.serving import REPOSITORY
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.clients.signing_in import Asked

HERE = Path(__file__).parent
HOST = "127.0.0.1"
CLIENT_ID, SECRET = "funcmcp", "a secret: with +, % and &"
SCOPES = {"orders.read": "See your orders", "orders.write": "Place and cancel orders"}


@dataclass(frozen=True)
class SignIn:
    """What is served.

    Attributes:
        url: The endpoint.
        origin: The issuer of its tokens, which is the origin of the endpoint unless a test says otherwise.
        upstream: The issuer of the OpenID provider.
        log: The requests to the server.
    """

    url: str
    origin: str
    upstream: str
    log: list[Asked]


def orders(url: str, upstream: str, **options: Any) -> MCPServer:
    """Return a server with two tools, one of which takes a further scope, and a proxy with these options."""
    proxy = OAuthProxy(url, upstream=OIDC(upstream, CLIENT_ID, SECRET), scopes=SCOPES, **options)
    http = HTTPOptions(path=urlsplit(url).path)
    mcp = MCPServer("Orders", auth=Auth(proxy, scopes=["orders.read"]), http=http)

    @mcp.tool
    def who(context: Context) -> dict[str, Any]:
        assert context.principal is not None
        principal = context.principal
        return {"subject": principal.subject, "name": principal.name, "email": principal.claims.get("email")}

    @mcp.tool(scopes=["orders.write"])
    def order(dish: str) -> dict[str, str]:
        return {"ordered": dish}

    if "claims" in options:

        @mcp.tool(authorize=lambda principal: len(principal.claims.get("groups", [])) == 200)
        def groups(context: Context) -> int:
            assert context.principal is not None
            return len(context.principal.claims["groups"])

    return mcp


@contextmanager
def oidc_provider(
    redirect_uri: str, *, secret: str = SECRET, rotates: bool = True, conforms: bool = False, demands: bool = False
) -> Iterator[str]:
    """Run npm's oidc-provider; return its issuer.

    If it *conforms*, only userinfo has the claims of users. It may demand pushed requests and signed assertions.
    """
    script = nodejs.HOME / "identity-provider.mjs"
    nodejs.package("oidc-provider")
    switches = [str(switch).lower() for switch in (rotates, conforms, demands)]
    command = [str(nodejs.node()), str(script), CLIENT_ID, secret, redirect_uri, *switches]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def django(redirect_uri: str) -> Iterator[str]:
    """Run Django with its OAuth Toolkit as an OpenID provider; return its issuer."""
    python = REPOSITORY / ".servers/frameworks/bin/python"
    program = require("Django (scripts/setup-frameworks.sh)", str(python) if python.exists() else None)
    command = [program, str(HERE / "django_provider.py"), CLIENT_ID, SECRET, redirect_uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def signed_in(
    provider: Callable[[str], AbstractContextManager[str]] = oidc_provider, *, path: str = "", **options: Any
) -> Iterator[SignIn]:
    """Serve everything on loopback ports, the sign-in below a path of the host, with these options of the proxy."""
    listener = listen(HOST, 0)
    origin = origin_of(HOST, listener)
    log: list[Asked] = []
    issuer = f"{origin}{path}"
    with provider(f"{issuer}/oauth/callback") as upstream:
        mcp = orders(f"{issuer}/mcp", upstream, issuer=issuer, **options)
        with serving_in_thread(Recorder("orders", mcp, log), listener):
            yield SignIn(f"{issuer}/mcp", issuer, upstream, log)

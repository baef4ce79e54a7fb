"""The library's client binds its tokens to a key (DPoP), and the library's server requires it: over real HTTP."""

from __future__ import annotations

import base64
import hashlib
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx2
from joserfc.jwk import ECKey
from pydantic_core import from_json

from funcmcp import Context, MCPServer
from funcmcp._processes.server import origin_of
from funcmcp.auth import Auth, BearerTokens, OAuthProxy, ProtectedResource, StaticKeys
from funcmcp.client import Client, ClientCredentials, HTTPEndpoint, SignIn
from funcmcp.http import Request, Response
from tests.auth.making_tokens import Clock, key, public, sign
from tests.clients.signing_in import serving_in_thread
from tests.oauth_proxy.stage import KEYS, SCOPES, ScriptedUpstream
from tests.sign_in.browsing import visit
from tests.sign_in.people import HOST
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp._oauth_proxy.upstream import AuthorizationRequest


class Kept:
    """An ASGI application around another one that keeps the headers and the path of each request."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.statuses: list[int] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def keep(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.statuses.append(message["status"])
            await send(message)

        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append((scope["method"], scope["path"], headers))
        await self.app(scope, receive, keep if scope["type"] == "http" else send)


@contextmanager
def served(make: Callable[[str], MCPServer]) -> Iterator[tuple[str, Kept]]:
    """Serve what a function makes for an origin; yield the origin, and what was requested."""
    listener = listen(HOST, 0)
    origin = origin_of(HOST, listener)
    mcp = make(origin)

    @mcp.tool
    def who(context: Context) -> str:
        assert context.principal is not None
        return context.principal.subject

    kept = Kept(mcp)
    with serving_in_thread(kept, listener):
        yield origin, kept


async def check_that_no_request_works_twice(origin: str, kept: Kept) -> None:
    """Send a request that was accepted once more, and its token alone."""
    ((method, path, headers),) = [
        request for request in kept.requests if request[0] == "POST" and request[1] == "/mcp"
    ][-1:]
    scheme, token = headers["authorization"].split(" ")
    assert (method, path, scheme) == ("POST", "/mcp", "DPoP")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    sent = {name: headers[name] for name in ("authorization", "dpop", "content-type", "accept")}
    async with httpx2.AsyncClient() as thief:
        for stolen in (sent, sent | {"authorization": f"Bearer {token}"}):
            answer = await thief.post(f"{origin}/mcp", content=body, headers=stolen)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("DPoP error=")


def with_authorization_server(origin: str) -> MCPServer:
    """Return a server, and beside it an authorization server that binds tokens to the key of each proof."""
    tokens = BearerTokens(origin, f"{origin}/mcp", keys=StaticKeys(public()), dpop="required", dpop_nonces=True)
    resource = ProtectedResource(resource=f"{origin}/mcp", authorization_servers=[origin])
    mcp = MCPServer("Reports", auth=Auth(tokens, resource=resource))

    @mcp.custom_route("/.well-known/oauth-authorization-server", methods=["GET"], allow_anonymous=True)
    async def metadata(_request: Request) -> Response:
        return Response(
            {
                "issuer": origin,
                "token_endpoint": f"{origin}/token",
                "authorization_endpoint": f"{origin}/authorize",
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    @mcp.custom_route("/token", methods=["POST"], allow_anonymous=True)
    async def token(request: Request) -> Response:
        header = request.headers["dpop"].split(".")[0]
        jwk = from_json(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))["jwk"]
        claims = {"iss": origin, "aud": f"{origin}/mcp", "sub": "reports", "exp": int(time()) + 600}
        claims["cnf"] = {"jkt": ECKey.import_key(jwk).thumbprint()}
        return Response({"access_token": sign(claims, signer=key()), "token_type": "DPoP", "expires_in": 600})

    return mcp


async def test_a_program_calls_a_server_that_requires_proofs_with_nonces() -> None:
    with served(with_authorization_server) as (origin, kept):
        program = ClientCredentials("reports", "hush", dpop=True)
        async with Client(HTTPEndpoint(f"{origin}/mcp", sign_in=program)) as client:
            assert [(await client.call_tool("who")).text for _ in range(3)] == ["reports"] * 3
        await check_that_no_request_works_twice(origin, kept)
    calls = [headers["dpop"] for method, path, headers in kept.requests if path == "/mcp" and "dpop" in headers]
    assert kept.statuses.count(401) == 4  # without a token, without a nonce, and the two of the thief
    assert len({hashlib.sha256(value.encode()).digest() for value in calls}) == len(calls) - 2


class InstantUpstream(ScriptedUpstream):
    """An identity provider that sends the user back without a page."""

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        query = self.sign_in(await super().authorization_url(request))
        return f"{request.redirect_uri}?{urlencode(query)}"


async def test_a_user_signs_in_through_the_proxy_with_bound_tokens_and_renews_them() -> None:
    upstream, clock = InstantUpstream(), Clock(time())

    def make(origin: str) -> MCPServer:
        proxy = OAuthProxy(
            f"{origin}/mcp",
            upstream=upstream,
            scopes=SCOPES,
            keys=KEYS,
            dpop="required",
            dpop_nonces=True,
            clock=clock,
            access_seconds=100,
        )
        return MCPServer("Orders", auth=Auth(proxy, scopes=["orders.read"]))

    async def open_browser(address: str) -> None:
        await visit(address, "ada")

    with served(make) as (origin, kept):
        endpoint = HTTPEndpoint(f"{origin}/mcp", sign_in=SignIn(dpop=True, open_browser=open_browser))
        async with Client(endpoint) as client:
            assert [(await client.call_tool("who")).text for _ in range(3)] == ["ada"] * 3
            clock.now += 250  # the access token has expired, but not the nonce
            assert (await client.call_tool("who")).text == "ada"
        await check_that_no_request_works_twice(origin, kept)
    proofs = [headers["dpop"] for _, path, headers in kept.requests if path == "/oauth/token"]
    assert len(upstream.refreshes) == 1
    assert len(proofs) == 3  # without a nonce, for the code, and for the refresh token
    assert kept.statuses.count(401) == 4  # without a token, with an expired one, and the two of the thief
    assert len(set(proofs)) == len(proofs)

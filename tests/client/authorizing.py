"""A server with an authorization server at the same origin, whose documents and answers tests change."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from funcmcp import MCPServer
from funcmcp._processes.server import origin_of
from tests.clients.signing_in import serving_in_thread
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.requests import Request

HOST = "127.0.0.1"


class Authorizing:
    """The two servers.

    Attributes:
        origin: Their origin.
        resource: The metadata of the server.
        issuer: The metadata of the authorization server.
        returned: What the browser brings back beside the state.
        answers: The status and the JSON of the next answers of the token endpoint; by default new tokens.
        requests: The paths and the forms of requests to the authorization server.
        token_headers: The headers of requests to the token endpoint.
        calls: The headers of requests to the server.
        valid: The tokens that the server accepts.
        token_type: The type of tokens.
        nonces: The nonces that proofs need, by path: ``/token`` and ``/mcp``. Empty: proofs need none.
        scopes: The scopes of the tokens.
        accepts_nothing: Whether the server refuses every token.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.url = f"{origin}/mcp"
        mcp = MCPServer("Orders")

        @mcp.tool
        def greet() -> str:
            return "hello"

        @mcp.resource("menu://today")
        def menu() -> str:
            return "soup"

        @mcp.prompt
        def suggest() -> str:
            return "Suggest a dish."

        self._mcp = mcp
        self.reset()

    def reset(self) -> None:
        """Do as at the start."""
        origin = self.origin
        self.resource: dict[str, Any] | None = {"resource": self.url, "authorization_servers": [origin]}
        self.issuer: dict[str, Any] = {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.returned = {"code": "the-code", "iss": origin}
        self.answers: list[tuple[int, Any]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.token_headers: list[dict[str, str]] = []
        self.calls: list[dict[str, str]] = []
        self.token_type = "Bearer"
        self.nonces: dict[str, str] = {}
        self.expires_in: object = 3600
        self.refresh_token = True
        self.valid: set[str] = set()
        self.lacks_scope = False
        self.accepts_nothing = False
        self._count = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp":
            await (self._pages if scope["type"] == "http" else self._mcp)(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.calls.append({"method": scope["method"], **headers})
        nonce = self.nonces.get("/mcp")
        token_type, _, token = headers.get("authorization", "").rpartition(" ")
        if self.accepts_nothing or token not in self.valid or token_type != self.token_type:
            challenge = f'{self.token_type} resource_metadata="{self.origin}/metadata", scope="orders.read"'
            await Response(status_code=401, headers={"www-authenticate": challenge})(scope, receive, send)
        elif nonce is not None and nonce_of(headers) != nonce:
            answer = {"www-authenticate": 'DPoP error="use_dpop_nonce"', "dpop-nonce": nonce}
            await Response(status_code=401, headers=answer)(scope, receive, send)
        elif self.lacks_scope:
            challenge = 'Bearer error="insufficient_scope", scope="orders.write"'
            await Response(status_code=403, headers={"www-authenticate": challenge})(scope, receive, send)
        else:
            await self._mcp(scope, receive, send)

    @property
    def _pages(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/metadata", self._resource_metadata),
                Route("/.well-known/oauth-protected-resource/mcp", self._resource_metadata),
                Route("/.well-known/oauth-authorization-server", self._issuer_metadata),
                Route("/authorize", self._authorize),
                Route("/register", self._register, methods=["POST"]),
                Route("/token", self._token, methods=["POST"]),
                Route("/elsewhere", lambda _: RedirectResponse("/metadata")),
            ]
        )

    def _resource_metadata(self, _request: Request) -> Response:
        return Response(status_code=404) if self.resource is None else JSONResponse(self.resource)

    def _issuer_metadata(self, _request: Request) -> Response:
        return JSONResponse(self.issuer)

    def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        self.requests.append(("authorize", query))
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({'state': query['state'], **self.returned})}")

    async def _register(self, request: Request) -> Response:
        metadata = await request.json()
        self.requests.append(("register", metadata))
        return JSONResponse({**metadata, "client_id": f"client-{len(self.requests)}"}, 201)

    async def _token(self, request: Request) -> Response:
        self.requests.append(("token", dict(parse_qsl((await request.body()).decode()))))
        self.token_headers.append(dict(request.headers))
        nonce = self.nonces.get("/token")
        if nonce is not None and nonce_of(request.headers) != nonce:
            return JSONResponse({"error": "use_dpop_nonce"}, 400, {"dpop-nonce": nonce})
        if self.answers:
            status, answer = self.answers.pop(0)
            return answer if isinstance(answer, Response) else JSONResponse(answer, status)
        self._count += 1
        self.valid = {f"token-{self._count}"}
        tokens = {"access_token": f"token-{self._count}", "token_type": self.token_type, "expires_in": self.expires_in}
        if self.refresh_token:
            tokens["refresh_token"] = f"refresh-{self._count}"
        return JSONResponse(tokens)

    def those(self, path: str) -> list[dict[str, str]]:
        """Return the requests to a path."""
        return [values for name, values in self.requests if name == path]


def nonce_of(headers: Mapping[str, str]) -> str | None:
    """Return the nonce in the proof of a request; None without."""
    proof = headers.get("dpop", "..").split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(proof + "=" * (-len(proof) % 4)) or "{}")
    nonce: str | None = claims.get("nonce")
    return nonce


@contextmanager
def authorizing() -> Iterator[Authorizing]:
    """Serve both on a loopback port."""
    listener = listen(HOST, 0)
    server = Authorizing(origin_of(HOST, listener))
    with serving_in_thread(server, listener):
        yield server


class Visitor:
    """A browser with a user.

    Attributes:
        addresses: The addresses that were opened.
    """

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def __call__(self, address: str) -> None:
        self.addresses.append(address)
        async with httpx2.AsyncClient(follow_redirects=True, verify=False) as browser:
            (await browser.get(address)).raise_for_status()

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the last address."""
        return dict(parse_qsl(urlsplit(self.addresses[-1]).query))

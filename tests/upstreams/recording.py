"""Servers that record all that they receive: an upstream, and the token endpoint of an authorization server."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from funcmcp import MCPServer
from funcmcp._processes.server import origin_of
from tests.clients.signing_in import serving_in_thread
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

HOST = "127.0.0.1"


class Recording:
    """An upstream at ``/mcp``, and a token endpoint at ``/token``.

    Attributes:
        origin: Their origin.
        url: The endpoint of the upstream.
        token_url: The token endpoint.
        received: Each request as text: its target, its header and its body.
        calls: The headers of the requests to the upstream.
        forms: The forms of requests to the token endpoint.
        token_headers: Their headers.
        answers: The status and the JSON of the next answers of the token endpoint; by default new tokens.
        valid: The tokens that the upstream accepts; None for any request.
        challenge: What refuses all requests to the upstream with 403, if it is set.
        needs_token: The token that the challenge does not refuse.
        redirect: Where the upstream redirects to, if it is set.
        expires_in: The lifetime of tokens.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.url = f"{origin}/mcp"
        self.token_url = f"{origin}/token"
        self._mcp = MCPServer("Docs")

        @self._mcp.tool
        def search(query: str) -> str:
            return f"found {query}"

        self._pages = Starlette(
            routes=[
                Route("/token", self._token, methods=["POST"]),
                Route("/authorize", self._authorize),
            ]
        )
        self.reset()

    def reset(self) -> None:
        """Do as at the start."""
        self.received: list[str] = []
        self.calls: list[dict[str, str]] = []
        self.forms: list[dict[str, str]] = []
        self.token_headers: list[dict[str, str]] = []
        self.answers: list[tuple[int, Any]] = []
        self.valid: set[str] | None = None
        self.challenge: str | None = None
        self.needs_token: str | None = None
        self.redirect: str | None = None
        self.expires_in: object = 3600
        self.refresh_tokens = False
        self.count = 0
        self.returned: dict[str, str] = {"code": "the-code"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._mcp(scope, receive, send)
            return
        body, receive = await _read(receive)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.received.append(f"{scope['method']} {scope['path']}?{scope['query_string']!r} {headers} {body!r}")
        if scope["path"] != "/mcp":
            await self._pages(scope, receive, send)
            return
        self.calls.append({"method": scope["method"], **headers})
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.redirect is not None:
            await RedirectResponse(self.redirect, 307)(scope, receive, send)
        elif self.challenge is not None and token != self.needs_token:
            await Response(status_code=403, headers={"www-authenticate": self.challenge})(scope, receive, send)
        elif self.valid is not None and token not in self.valid:
            await Response(status_code=401, headers={"www-authenticate": "Bearer"})(scope, receive, send)
        else:
            await self._mcp(scope, receive, send)

    async def _token(self, request: Request) -> Response:
        self.forms.append(dict(parse_qsl((await request.body()).decode())))
        self.token_headers.append(dict(request.headers))
        if self.answers:
            status, answer = self.answers.pop(0)
            return answer if isinstance(answer, Response) else JSONResponse(answer, status)
        self.count += 1
        tokens = {"access_token": f"token-{self.count}", "token_type": "Bearer", "expires_in": self.expires_in}
        if self.refresh_tokens:
            tokens["refresh_token"] = f"refresh-{self.count}"
        return JSONResponse(tokens)

    def _authorize(self, request: Request) -> Response:
        query = request.query_params
        target = f"{query['redirect_uri']}?state={query['state']}"
        return RedirectResponse("&".join([target, *(f"{name}={value}" for name, value in self.returned.items())]))

    @property
    def tokens(self) -> set[str]:
        """The credentials of the requests to the upstream."""
        return {call.get("authorization", "") for call in self.calls}

    @property
    def everything(self) -> str:
        """All that was received, as one text."""
        return json.dumps(self.received)


async def _read(receive: Any) -> tuple[bytes, Any]:
    """Return the body of a request, and what returns it once more."""
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = b"".join(parts)
    replayed = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Any:
        message = next(replayed, None)
        return await receive() if message is None else message

    return body, again


@contextmanager
def recording() -> Iterator[Recording]:
    """Serve both on a loopback port."""
    listener = listen(HOST, 0)
    server = Recording(origin_of(HOST, listener))
    with serving_in_thread(server, listener):
        yield server

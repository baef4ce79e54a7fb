"""The sign-in sample with both of its servers, what they were asked, and a user with a browser."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import uvicorn
from pydantic_core import from_json

from funcmcp._processes.server import origin_of
from samples.orders.restaurant import OrderService
from samples.signin.authorization import AuthorizationServer
from samples.signin.server import signed_in
from samples.signin.settings import SCOPES
from tests.patience import PATIENCE
from tests.sockets import listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from funcmcp import MCPServer

HOST = "127.0.0.1"
BACK = "http://127.0.0.1:1/back"
"""Where a client's users go back to; the browser stops there."""

_TICKET = re.compile(r'name="ticket" value="([\w-]+)"')


@dataclass(frozen=True)
class Asked:
    """A request that one of the servers has answered.

    Attributes:
        server: ``"orders"`` or ``"authorization"``.
        what: method and path, and for messages the method or the tool of it.
        values: of the query or of the body.
        token: what came as a bearer token.
        status: of the answer.
        challenge: what it said in WWW-Authenticate.
    """

    server: str
    what: str
    values: dict[str, Any]
    token: str | None
    status: int
    challenge: str


@dataclass
class Recorder:
    """An ASGI application around another one that takes note of all requests, in the order of their answers."""

    server: str
    app: Any
    log: list[Asked]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = b""

        async def hear() -> Any:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            return message

        async def say(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, body, message)
            await send(message)

        await self.app(scope, hear, say)

    def _note(self, scope: Any, body: bytes, answer: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        said = {name.decode(): value.decode() for name, value in answer["headers"]}
        values = _values(scope, headers.get("content-type", ""), body)
        message = values.get("method", "")
        what = " ".join(filter(None, [scope["method"], scope["path"], message, values.get("params", {}).get("name")]))
        token = headers["authorization"].removeprefix("Bearer ") if "authorization" in headers else None
        self.log.append(Asked(self.server, what, values, token, answer["status"], said.get("www-authenticate", "")))


def _values(scope: Any, media_type: str, body: bytes) -> dict[str, Any]:
    if media_type.startswith("application/json") and body:
        found: dict[str, Any] = from_json(body)
        return found
    return dict(parse_qsl((scope["query_string"] + b"&" + body).decode()))


@dataclass(frozen=True)
class SignIn:
    """The sample, served.

    Attributes:
        url: the endpoint of the orders server.
        issuer: the authorization server.
        mcp: the orders server itself.
        authorization: the authorization server itself.
        log: what both were asked.
    """

    url: str
    issuer: str
    mcp: MCPServer
    authorization: AuthorizationServer
    log: list[Asked] = field(default_factory=list)

    def those(self, what: str) -> list[Asked]:
        """Return all requests of a kind."""
        return [one for one in self.log if one.what == what]


@contextmanager
def serve_sign_in(
    file: Path, issuer_path: str = "", algorithm: Any = "RS256", *, others: Sequence[str] = ()
) -> Iterator[SignIn]:
    """Serve both servers of the sample on free loopback ports, with an order book of their own.

    Args:
        file: the order book.
        issuer_path: where at its origin the authorization server is.
        algorithm: how tokens are signed.
        others: URLs of other servers that get tokens of the same issuer.
    """
    here, there = listen(HOST, 0), listen(HOST, 0)
    url, issuer = f"{origin_of(HOST, here)}/mcp", f"{origin_of(HOST, there)}{issuer_path}"
    mcp, authorization = (
        signed_in(url, issuer),
        AuthorizationServer(issuer, dict.fromkeys([url, *others], SCOPES), algorithm),
    )
    found = SignIn(url, issuer, mcp, authorization)
    with ExitStack() as stack:
        stack.enter_context(mcp.services.override(OrderService, OrderService(file)))
        stack.enter_context(serving_in_thread(Recorder("orders", mcp, found.log), here))
        stack.enter_context(serving_in_thread(Recorder("authorization", authorization.app, found.log), there))
        yield found


@contextmanager
def serving_in_thread(app: Any, listener: socket.socket, certificate: Path | None = None) -> Iterator[None]:
    """Serve an application in a thread, over TLS with a certificate; connections wait until it is ready."""
    config = uvicorn.Config(
        app, log_level="warning", lifespan="auto", timeout_graceful_shutdown=3, ssl_certfile=certificate
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()
        assert not thread.is_alive()


async def agree(url: str, *, user: str = "ada", decision: str = "allow") -> dict[str, str]:
    """Do as a user with a browser: open the page, press a button, and follow to where the client waits."""
    async with httpx2.AsyncClient(follow_redirects=False) as browser:
        page = await browser.get(url)
        ticket = _TICKET.search(page.text)
        if ticket is None:
            raise AssertionError(f"{page.status_code} {page.text} {page.headers.get('location')}")
        said = {"ticket": ticket[1], "user": user, "decision": decision}
        answer = await browser.post(str(page.url.join("consent")), data=said)
    assert answer.headers["location"].startswith(BACK + "?"), answer
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

"""Calls of one source tree in this process, without sockets: the worker of `hot_path.py` and `profile_calls.py`.

It reads commands from stdin. A command is a line with the name of a case and the number of calls. The answer is a line
with the CPU time of one call in microseconds. For the number 0 it is a line with the calls of Python functions that one
call makes, outermost first. With ``--seconds`` it calls `add` in both eras for so long.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from models import Customer, Line, Receipt, dish_of, receipt_of, review_of
from traffic import CALLS, DISH, ERAS, HANDSHAKE, Request, initialize, request

from funcmcp import Auth, HTTPOptions, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpRequest
from funcmcp.auth import BearerTokens, StaticKeys
from funcmcp.state import MemoryRates
from tests.python_calls import calls_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from joserfc.jwk import RSAKey

    Case = Callable[[int], Coroutine[Any, Any, None]]

HOST, PORT = "127.0.0.1", 8000
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "add": ("tools/call", {"name": "add", "arguments": CALLS["add"][0]}),
    "plain add": ("tools/call", {"name": "plain_add", "arguments": CALLS["add"][0]}),
    "order": ("tools/call", {"name": "create_order", "arguments": CALLS["create_order"][0]}),
    "prompts/get": ("prompts/get", {"name": "review", "arguments": {"code": "print(1 / 0)"}}),
    "resources/read": ("resources/read", {"uri": DISH}),
}
PARTS = {"token": (True, False), "rates": (False, True), "token, rates": (True, True)}


def make_server(key: RSAKey, *, has_tokens: bool = False, has_rates: bool = False) -> MCPServer:
    """Return a server with the features that are called."""
    from callers import AUDIENCE, ISSUER

    auth = None
    if has_tokens:
        auth = Auth(BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(key.as_dict(private=False))))
    rates = MemoryRates(1e9, 10**9) if has_rates else None
    mcp = MCPServer("bench", version="1.0.0", auth=auth, http=HTTPOptions(rates=rates))

    @mcp.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    def plain_add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    async def create_order(customer: Customer, lines: list[Line]) -> Receipt:
        """Place an order."""
        return receipt_of(customer, lines)

    @mcp.resource("menu://dishes/{number}")
    async def dish(number: int) -> dict[str, Any]:
        """Show a dish."""
        return dish_of(number)

    @mcp.prompt
    async def review(code: str) -> str:
        """Review code."""
        return review_of(code)

    return mcp


class CompleteRequest(HttpRequest):
    """A request whose body has arrived. Without `__slots__`, because older versions of `HttpRequest` have no `body`."""

    def __init__(self, pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__("POST", "/mcp", pairs, HOST)
        self.body = body

    async def read(self, limit: int, received: object = None) -> bytes:
        """Return the body."""
        del limit, received
        return self.body or b""

    @property
    def peer(self) -> str:
        """The address of the client."""
        return HOST


def pairs_of(message: Request, token: str | None = None) -> list[tuple[bytes, bytes]]:
    """Return the header lines of a request, as a client sends them."""
    headers = {"Host": f"{HOST}:{PORT}", "Content-Length": str(len(message.body)), **message.headers}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


async def open_session(mcp: MCPServer, token: str | None) -> str:
    """Initialize, and return the session id."""
    message = initialize()
    response = await runtime_of(mcp).exchange(CompleteRequest(pairs_of(message, token), message.body.encode()))
    return dict(response.headers)["mcp-session-id"]


def exchange_case(mcp: MCPServer, message: Request, token: str | None) -> Case:
    """Return the calls of the function from HttpRequest to HttpResponse."""
    pairs, body = pairs_of(message, token), message.body.encode()
    exchange = runtime_of(mcp).exchange

    async def run(count: int) -> None:
        for _ in range(count):
            response = await exchange(CompleteRequest(pairs, body))
        check(response.status, response.body)

    return run


def asgi_case(app: Any, message: Request, token: str | None) -> Case:
    """Return the calls of an ASGI application."""
    body = {"type": "http.request", "body": message.body.encode(), "more_body": False}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "headers": pairs_of(message, token),
        "server": (HOST, PORT),
        "client": (HOST, 50_000),
        "extensions": {},
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return body

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def run(count: int) -> None:
        for _ in range(count):
            sent.clear()
            await app(scope, receive, send)
        check(sent[0]["status"], sent[1]["body"])

    return run


def check(status: int, body: object) -> None:
    """Raise RuntimeError unless a response has a result."""
    if status != 200 or not isinstance(body, bytes) or b'"result":' not in body or b'"isError"' in body:
        raise RuntimeError(f"The answer has status {status}: {body!r}")


async def make_cases() -> dict[str, Case]:
    """Return the cases by name."""
    import floor_server
    from callers import token as make_token
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, {"kid": "bench"})
    token = make_token(key)
    cases: dict[str, Case] = {}
    mcp = make_server(key)
    session = await open_session(mcp, None)
    for era in ERAS:
        for name, (method, params) in METHODS.items():
            message = request(era, method, params, session if era == HANDSHAKE else None)
            cases[f"exchange, {era}, {name}"] = exchange_case(mcp, message, None)
        message = request(era, *METHODS["add"], session if era == HANDSHAKE else None)
        cases[f"ASGI, {era}, add"] = asgi_case(mcp, message, None)
        cases[f"floor, {era}, add"] = asgi_case(floor_server.app, message, None)
        order = request(era, *METHODS["order"], session if era == HANDSHAKE else None)
        cases[f"floor, {era}, order"] = asgi_case(floor_server.app, order, None)
    for part, (has_tokens, has_rates) in PARTS.items():
        guarded = make_server(key, has_tokens=has_tokens, has_rates=has_rates)
        who = token if has_tokens else None
        session = await open_session(guarded, who)
        for era in ERAS:
            message = request(era, *METHODS["add"], session if era == HANDSHAKE else None)
            cases[f"exchange, {era}, add, {part}"] = exchange_case(guarded, message, who)
    return cases


async def serve() -> None:
    """Answer commands until stdin ends."""
    cases = await make_cases()
    print(json.dumps(list(cases)), flush=True)
    for line in sys.stdin:
        name, count = json.loads(line)
        if not count:
            await cases[name](10)  # caches and plans exist afterwards
            print(json.dumps(list(map(str, calls_of(cases[name](1))))), flush=True)
            continue
        started = time.process_time()
        await cases[name](count)
        print(json.dumps((time.process_time() - started) / count * 1e6), flush=True)


async def repeat(seconds: float) -> None:
    """Call `add` in both eras for a time, to be profiled."""
    cases = await make_cases()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for era in ERAS:
            await cases[f"exchange, {era}, add"](1000)


def main() -> None:
    """Make the calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float)
    seconds = parser.parse_args().seconds
    asyncio.run(serve() if seconds is None else repeat(seconds))


if __name__ == "__main__":
    main()

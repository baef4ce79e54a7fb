"""Credentials that come twice in one request: 400 on every transport, whichever of them are good."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from funcmcp import MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.authenticator import first_of
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.keys import StaticKeys
from tests.auth.making_tokens import AUDIENCE, ISSUER, Clock, claims, public, sign
from tests.patience import PATIENCE
from tests.serving import serve
from tests.wire.callers import Shop
from tests.wire.peer import PER_REQUEST, exchange, to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

ALICE, BOB = "key-of-" + "alice" * 4, "key-of-" + "bobby" * 4

SERVER = f"""
from funcmcp import HTTPOptions, MCPServer, Context
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.authenticator import first_of

keys = {{"alice": {ALICE!r}, "bob": {BOB!r}}}
auth = first_of(APIKeys(keys, header="Authorization"), APIKeys(keys))
mcp = MCPServer("Twice", auth=auth, http=HTTPOptions(sse="/sse", websocket="/ws"), sessions="memory")


@mcp.tool(allow_anonymous=True)
def whoami(context: Context) -> str:
    print("ran", flush=True)
    return "nobody" if context.principal is None else context.principal.subject
"""
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "whoami",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
JSON = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
ERA = f"MCP-Protocol-Version: {PER_REQUEST}\r\nMcp-Method: tools/call\r\nMcp-Name: whoami\r\n"
EVENTS = "Accept: text/event-stream\r\n"
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n"
)
REQUESTS = {
    "POST": ("POST /mcp", JSON + ERA, json.dumps(CALL)),
    "POST of the handshake era": ("POST /mcp", JSON, json.dumps(CALL)),
    "GET": ("GET /mcp", EVENTS + "Mcp-Session-Id: x\r\n", ""),
    "DELETE": ("DELETE /mcp", "Mcp-Session-Id: x\r\n", ""),
    "SSE": ("GET /sse", EVENTS, ""),
    "POST of SSE": ("POST /sse?session_id=x", JSON, json.dumps(CALL)),
    "WebSocket": ("GET /ws", UPGRADE, ""),
}
TWICE = {
    "the same": f"Authorization: Bearer {ALICE}\r\nAuthorization: Bearer {ALICE}\r\n",
    "two callers": f"Authorization: Bearer {ALICE}\r\nauthorization: Bearer {BOB}\r\n",
    "good last": f"Authorization: Basic eDp5\r\nAuthorization: Bearer {ALICE}\r\n",
    "good first": f"Authorization: Bearer {ALICE}\r\nAuthorization: \r\n",
    "two keys": f"X-API-Key: {ALICE}\r\nx-api-key: {BOB}\r\n",
}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    file: Path = tmp_path_factory.mktemp("twice") / "twice.py"
    file.write_text(SERVER)
    with serve(file) as served:
        yield served.origin, served.output


def send(origin: str, line: str, headers: str, body: str) -> tuple[int, str]:
    """Send a request as it stands; return the status and all of the answer."""
    address = urlsplit(origin)
    connection = "" if "Upgrade" in headers else "Connection: close\r\n"
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    sent = f"{line} HTTP/1.1\r\nHost: {address.netloc}\r\n{connection}{headers}{length}\r\n{body}"
    with socket.create_connection((address.hostname, address.port), PATIENCE) as peer:
        peer.sendall(sent.encode())
        answer = b""
        while part := peer.recv(65536):
            answer += part
            if b" 101 " in answer:  # it would stay open
                break
    return int(answer.split(b" ", 2)[1]), answer.decode("latin-1")


@pytest.mark.parametrize("twice", TWICE)
@pytest.mark.parametrize("request_", REQUESTS)
def test_credentials_that_come_twice_are_400(output: tuple[str, list[str]], request_: str, twice: str) -> None:
    origin, printed = output
    line, headers, body = REQUESTS[request_]
    status, answer = send(origin, line, TWICE[twice] + headers, body)
    assert status == 400
    assert 'www-authenticate: Bearer error="invalid_request"' in answer
    assert "came more than once" in answer
    assert "ran" not in printed


def test_once_they_are_good(output: tuple[str, list[str]]) -> None:
    """The requests above are refused for nothing else."""
    line, headers, body = REQUESTS["POST"]
    for field in (f"Authorization: Bearer {BOB}\r\n", f"X-API-Key: {BOB}\r\n"):
        status, answer = send(output[0], line, field + headers, body)
        assert (status, '"text":"bob"' in answer) == (200, True)
    assert send(output[0], "GET /ws", f"X-API-Key: {BOB}\r\n{UPGRADE}", "")[0] == 101


def app_with(authenticate: object) -> Shop:
    shop = Shop(MCPServer("Shop", auth=authenticate))  # type: ignore[arg-type]

    @shop.mcp.tool(allow_anonymous=True)
    async def anything() -> str:
        shop.ran.append("anything")
        return "done"

    return shop


async def status(shop: Shop, *fields: tuple[str, str]) -> int:
    caller = shop.caller(revision=PER_REQUEST)
    message = caller.call_message("anything")
    pairs = [*caller.headers(message).items(), *fields]
    return (await exchange(shop.mcp, "POST", pairs, [to_bytes(message)]).answer()).status


async def test_a_second_signed_token_is_400_whoever_is_asked_first() -> None:
    tokens = BearerTokens(issuer=ISSUER, audience=AUDIENCE, keys=StaticKeys(public()), clock=Clock())
    for authenticate in (tokens, first_of(APIKeys({"alice": ALICE}), tokens)):
        shop = app_with(authenticate)
        good = ("authorization", f"Bearer {sign(claims())}")
        assert await status(app_with(authenticate), good) == 200
        assert await status(shop, good, good) == 400
        assert shop.ran == []


async def test_an_authors_own_header_that_comes_twice_is_400() -> None:
    async def by_certificate(headers: Mapping[str, str]) -> Principal | None:
        return Principal(headers["x-certificate"]) if "x-certificate" in headers else None

    shop = app_with(by_certificate)
    assert await status(shop, ("x-certificate", "a"), ("x-certificate", "b")) == 400
    assert shop.ran == []


async def test_headers_that_nobody_looks_at_and_lists_may_come_in_several_lines() -> None:
    async def by_cookie(headers: Mapping[str, str]) -> Principal:
        return Principal(headers["cookie"] + headers["accept"])

    lines = [("cookie", "a=1"), ("cookie", "b=2"), ("accept", "text/plain"), ("x-tag", "1"), ("x-tag", "2")]
    assert await status(app_with(by_cookie), *lines) == 200

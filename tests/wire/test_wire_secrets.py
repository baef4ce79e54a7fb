"""A real server whose every logger speaks, callers whose every header is a secret: none of it is in the output."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.wire.line import connection, head, request
from tests.wire.peer import BATCHES, ERAS, Peer, check, initialize, to_bytes

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hush-hush"
KEY = f"{SECRET}-key-of-alice"

SERVER = f"""
import logging

from funcmcp import HTTPOptions, MCPServer, Context, ToolError
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.authenticator import first_of
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.easy_auth import EasyAuth
from funcmcp._auth.tokens.jwks import JWKS
from funcmcp._auth.policy import Auth

logging.basicConfig(level=logging.DEBUG)

tokens = BearerTokens("https://login.example.com", "https://example.com/mcp", keys=JWKS("http://127.0.0.1:1/keys"))
auth = Auth(first_of(APIKeys({{"alice": "{KEY}"}}), EasyAuth(trust_platform=True), tokens), lists="open")
mcp = MCPServer("Secrets", auth=auth, http=HTTPOptions(sse="/sse", websocket="/ws"))


@mcp.tool
async def fail(how: str, context: Context) -> str:
    logging.getLogger("author").warning("%r %r", context, context.principal)
    if how == "tool error":
        raise ToolError("Closed.")
    raise ValueError(how)


@mcp.tool(allow_anonymous=True)
async def add(a: int, b: int) -> int:
    return a + b


@mcp.tool
async def done() -> str:
    logging.getLogger("author").warning("all was said")
    return "done"
"""

HEADERS = {
    "authorization": f"Basic {SECRET}",
    "cookie": f"session={SECRET}; {SECRET}={SECRET}",
    "x-api-key": KEY,
    "x-functions-key": SECRET,
    "x-ms-token-aad-access-token": SECRET,
    "x-ms-client-principal": SECRET,
    "proxy-authorization": f"Basic {SECRET}",
    "traceparent": SECRET,
    "referer": f"https://{SECRET}@example.com/?code={SECRET}",
    "forwarded": f"for={SECRET}",
    f"x-{SECRET}": SECRET,
    "last-event-id": SECRET,
    "user-agent": SECRET,
}
CLAIMS = {"iss": "https://login.example.com", "aud": "https://example.com/mcp", "exp": 4_102_444_800, "sub": SECRET}
JWT = ".".join(
    base64.urlsafe_b64encode(part).rstrip(b"=").decode()
    for part in (to_bytes({"alg": "RS256", "typ": "at+jwt", "kid": SECRET}), to_bytes(CLAIMS), b"signature")
)
FAULTS: list[dict[str, str]] = [
    {},
    {"authorization": f"Bearer {JWT}", "x-api-key": ""},
    {"authorization": f"Bearer {SECRET} {SECRET}"},
    {"x-api-key": SECRET},
    {"host": "other.example.com"},  # a name, which the log has
    {"origin": f"https://{SECRET}.example.com"},
    {"mcp-session-id": SECRET},
    {"mcp-protocol-version": SECRET},
    {"accept": SECRET},
    {"content-type": SECRET},
    {"content-encoding": SECRET},
    {"content-length": SECRET},
    {"transfer-encoding": SECRET},
    {"upgrade": SECRET, "connection": "upgrade"},
    {"expect": SECRET},
]


def everything(port: int, revision: str) -> None:
    """Ask right and wrong in every way, with secrets in all headers and in the query."""
    peer = Peer(None, revision)  # type: ignore[arg-type]  # it is served elsewhere
    bodies: list[Any] = [
        peer.call_message("fail", {"how": "value error"}),
        peer.call_message("fail", {"how": "tool error"}),
        peer.message("unheard/of"),
        initialize(BATCHES),
        SECRET.encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"' + SECRET.encode(),
    ]
    for body in bodies:
        for fault in FAULTS:
            usual = {"host": f"127.0.0.1:{port}", "content-length": str(len(to_bytes(body)))}
            pairs = {**peer.headers(body), **usual, **HEADERS, **fault, "connection": "close"}
            for path in ("/mcp", f"/mcp?code={SECRET}&access_token={SECRET}", f"/{SECRET}", "/sse?session_id=x"):
                with connection(port) as line:
                    line.try_to_send(head(pairs.items(), path=path) + to_bytes(body))
                    line.answer()
    for garbage in (f"{SECRET}", f"GET /{SECRET} HTTP/9.9\r\n{SECRET}", f"GET /ws?{SECRET} HTTP/1.1"):
        with connection(port) as line:
            line.try_to_send(f"{garbage}\r\n\r\n".encode())
            line.answer()


def alice(port: int, revision: str, tool: str, arguments: dict[str, Any]) -> str:
    """Call a tool with a good key."""
    peer = Peer(None, revision)  # type: ignore[arg-type]
    with connection(port) as line:
        if not peer.per_request:
            line.send(request(peer, port, initialize(revision), x_api_key=KEY))
            peer.session_id = check(line.answer(), revision).header("mcp-session-id")
        line.send(request(peer, port, peer.call_message(tool, arguments), x_api_key=KEY))
        return check(line.answer(), revision).text


@rules.verifies(rules.THREAT_10, rules.THREAT_34)
@pytest.mark.parametrize("revision", ERAS)
def test_a_server_with_secrets_in_every_header_prints_none_of_them(revision: str, tmp_path: Path) -> None:
    """All libraries log at the level DEBUG. The only tracebacks are those of the tool."""
    (tmp_path / "server.py").write_text(SERVER)
    env = {"WEBSITE_AUTH_ENABLED": "true"}
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path, env=env) as process:
        port = int(process.endpoint().rpartition(":")[2].partition("/")[0])
        everything(port, revision)
        assert "error id" in alice(port, revision, "fail", {"how": "how it was"})
        assert alice(port, revision, "done", {}) == "done"
        process.line_with("all was said")
        process.process.terminate()
        assert process.ended() == 0
    assert "ValueError: how it was" in process.output
    assert "event=jwks_fetch_failed" in process.output
    assert process.output.count("Traceback") == process.output.count(" feature=fail)") > 0
    assert SECRET not in process.output
    assert JWT not in process.output

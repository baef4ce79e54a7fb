"""Old and new clients with old and new servers, where new ones have a revision more."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError
from funcmcp._protocol.revisions import NEWEST, NEWEST_HANDSHAKE, REVISIONS, with_handshake
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import Client, InvalidResponseError, StdioCommand
from funcmcp.testing import post
from tests.client import next_revision as next_module
from tests.client.next_revision import NEXT, VARIABLE, added, server_of
from tests.patience import PATIENCE
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp import MCPServer
    from funcmcp._transports.http.messages import Exchange
    from funcmcp.testing import MemoryRequest

MISMATCH, NOT_FOUND = -32020, -32601

OLD_SERVERS = [
    ([NEWEST_HANDSHAKE, NEWEST], NEWEST),
    ([NEWEST], NEWEST),
    ([NEWEST_HANDSHAKE], NEWEST_HANDSHAKE),
]
"""The revisions of servers, and the one that a client of any age uses."""

NEW_SERVERS = [
    ([NEWEST_HANDSHAKE, NEWEST, NEXT], NEWEST),
    ([NEWEST, NEXT], NEWEST),
    ([NEWEST_HANDSHAKE, NEXT], NEWEST_HANDSHAKE),
]
"""The revisions of servers, and the one that an old client uses. New clients use `NEXT`."""


async def agreed(target: Any, **options: Any) -> str:
    """Return the revision that a client agrees on, after it has compared what that revision has."""
    async with Client(target, timeout=PATIENCE, **options) as client:
        has_next = client.revision == NEXT
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
        assert ("search" in client.capabilities) is has_next
        assert (await client.request("tools/list")).get("staleMs") == (120_000 if has_next else None)
        if has_next:
            assert (await client.request("tools/search", {"query": "ad"}))["tools"] == ["add"]
        else:
            with pytest.raises(MCPError) as raised:
                await client.request("tools/search", {"query": "ad"})
            assert raised.value.code == NOT_FOUND
        return client.revision


@contextlib.contextmanager
def as_old_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the clients of this process be older than its servers."""
    with monkeypatch.context() as patch:
        old = {date: revision for date, revision in REVISIONS.items() if date != NEXT}
        patch.setattr("funcmcp._client.requests.REVISIONS", old)
        yield


def asgi_exchange_of(mcp: MCPServer) -> Exchange:
    """Return a server as an ASGI application, without its streams for GET."""

    async def exchange(request: MemoryRequest) -> HttpResponse:
        if request.method == "GET":
            return HttpResponse(405, (), b"")
        sent: list[Any] = []
        scope = {
            "type": "http",
            "method": request.method,
            "path": request.path,
            "root_path": "",
            "query_string": b"",
            "headers": request.pairs,
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 50_000),
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        await mcp(scope, receive, send)
        headers = tuple((name.decode(), value.decode()) for name, value in sent[0]["headers"])
        return HttpResponse(sent[0]["status"], headers, b"".join(event.get("body", b"") for event in sent[1:]))

    return exchange  # type: ignore[return-value]


def itself(mcp: MCPServer) -> Any:
    return mcp


@pytest.mark.parametrize("target_of", [itself, asgi_exchange_of])
async def test_every_client_and_every_server_in_memory_agree_on_the_newest_revision_of_both(
    target_of: Callable[[MCPServer], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for revisions, expected in OLD_SERVERS:
        assert await agreed(target_of(server_of(revisions))) == expected
    with added():
        for revisions, expected in OLD_SERVERS:
            assert await agreed(target_of(server_of(revisions))) == expected
        for revisions, expected in NEW_SERVERS:
            target = target_of(server_of(revisions))
            assert await agreed(target) == NEXT
            assert await agreed(target, revision=expected) == expected
            with as_old_client(monkeypatch):
                assert await agreed(target) == expected
        assert await agreed(target_of(server_of([NEXT]))) == NEXT


async def all_pairs(old_server: Any, new_server: Any) -> None:
    """Let old and new clients call two processes."""
    assert await agreed(old_server) == NEWEST
    assert await agreed(new_server) == NEWEST
    with added():
        assert await agreed(old_server) == NEWEST
        assert await agreed(new_server) == NEXT


async def test_every_client_and_every_server_over_http_agree() -> None:
    file = Path(next_module.__file__)
    with contextlib.ExitStack() as stack:
        old_server, new_server = (
            stack.enter_context(serve(file, env={VARIABLE: age}, python=Path(sys.executable)))
            for age in ("", "released")
        )
        await all_pairs(old_server.url, new_server.url)


def command_of(age: str) -> StdioCommand:
    return StdioCommand(sys.executable, "-m", "tests.client.next_revision", env={VARIABLE: age}, cwd=REPOSITORY)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_every_client_and_every_server_over_stdio_agree() -> None:
    await all_pairs(command_of(""), command_of("released"))


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_draft_is_used_by_those_alone_that_name_it() -> None:
    with added(draft=True):
        assert await agreed(command_of("draft")) == NEWEST  # a server whose options have their defaults
        server = server_of([NEWEST_HANDSHAKE, NEWEST, NEXT])
        assert await agreed(server) == NEWEST
        assert await agreed(server, revision=NEXT) == NEXT
        with pytest.raises(MCPError, match="Unsupported protocol version"):
            await agreed(server_of([NEWEST]), revision=NEXT)
        with pytest.raises(InvalidResponseError, match=rf"It supports: {NEXT}\. The client supports: .*{NEWEST}\."):
            await agreed(server_of([NEXT]))
        assert with_handshake(REVISIONS)[-1] == NEWEST_HANDSHAKE


async def test_the_header_of_a_new_revision_has_to_agree_with_the_request() -> None:
    members = {"protocolVersion": NEXT, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in members.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/search", "params": {"query": "ad", "_meta": meta}}
    fields = {"mcp-protocol-version": NEXT, "mcp-method": "tools/search"}
    codes = []
    with added():
        exchange = runtime_of(server_of([NEXT])).exchange
        for header in ({"mcp-query": "ad"}, {"mcp-query": "=?base64?YWQ=?="}, {}, {"mcp-query": "sub"}):
            response = await post(exchange, "/mcp", json.dumps(body).encode(), {**fields, **header})
            assert isinstance(response.body, bytes)
            codes.append(json.loads(response.body).get("error", {}).get("code"))
    assert codes == [None, None, MISMATCH, MISMATCH]


@pytest.mark.parametrize("revision", [None, NEXT])
async def test_a_request_that_reaches_an_older_instance_is_sent_in_its_revision(revision: str | None) -> None:
    with added():
        instances = [server_of([NEWEST_HANDSHAKE, NEWEST, NEXT]), server_of([NEWEST_HANDSHAKE, NEWEST])]
        used = [runtime_of(mcp).exchange for mcp in instances]

        async def exchange(request: MemoryRequest) -> HttpResponse:
            return await used[0](request)

        async with Client(exchange, revision=revision) as client:  # type: ignore[arg-type]
            assert client.revision == NEXT
            used.reverse()
            if revision is not None:
                with pytest.raises(MCPError, match="Unsupported protocol version"):
                    await client.call_tool("add", {"a": 1, "b": 2})
                return
            for _ in range(2):
                assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
                assert client.revision == NEWEST
                used.reverse()

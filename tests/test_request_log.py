"""Records about requests."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Auth, HTTPOptions, MCPServer
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._protocol.errors import ToolError
from funcmcp._server.log import LoggedRequest
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.request_log import Entry, write_json_record, write_text_record
from funcmcp.auth import APIKeys
from funcmcp.upstreams import Upstream
from tests.server.parts import answer, context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._transports.http.messages import HttpResponse
    from funcmcp.http import Request

HEADERS = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"application/json")]


def message(method: str = "tools/list", request_id: int = 1, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


async def post(mcp: MCPServer, value: object, *headers: tuple[bytes, bytes], peer: str | None = None) -> HttpResponse:
    class FromPeer(MemoryRequest):
        @property
        def peer(self) -> str | None:
            return peer

    body = json.dumps(value).encode()
    return await runtime_of(mcp).exchange(FromPeer("POST", "/mcp", [*HEADERS, *headers], body))


def logged(mcp: MCPServer) -> list[Entry]:
    """Return a list of entries, which grows with each request."""
    entries: list[Entry] = []
    runtime_of(mcp).log_requests(entries.append)
    return entries


async def test_each_request_of_a_batch_is_an_entry_with_the_id_of_the_http_request() -> None:
    mcp = MCPServer("Shop", sessions=None)
    entries = logged(mcp)
    batch = [message(), message("tools/call", 2, name="missing")]
    await post(mcp, batch, (b"x-request-id", b"abc"), (b"mcp-protocol-version", b"2025-03-26"))
    assert [(entry.request.method, entry.request.name, entry.request.outcome) for entry in entries] == [
        ("tools/list", "", "ok"),
        ("tools/call", "missing", "error -32602"),
    ]
    assert {entry.request.request_id for entry in entries} == {"abc"}
    assert [entry.is_failure for entry in entries] == [False, True]


@pytest.mark.parametrize("value", [b"", b"a b", b"a\xff", b'x"y', b"x" * 129, b"a,b"])
async def test_an_id_that_could_be_another_field_is_replaced_by_a_random_one(value: bytes) -> None:
    mcp = MCPServer("Shop", sessions=None)
    entries = logged(mcp)
    await post(mcp, message(), (b"x-request-id", value))
    await post(mcp, message())
    first, second = (entry.request.request_id for entry in entries)
    assert len(first) == len(second) == 16
    assert first != second


async def test_the_caller_is_the_subject_or_the_address() -> None:
    mcp = MCPServer("Shop", sessions=None, auth=Auth(APIKeys({"alice": "k" * 32})))
    entries = logged(mcp)
    await post(mcp, message(), (b"x-api-key", b"k" * 32), peer="192.0.2.7")
    await post(mcp, message(), peer="192.0.2.7")
    assert [(entry.request.caller, entry.status) for entry in entries] == [("alice", 200), ("192.0.2.7", 401)]


async def test_the_address_behind_a_proxy_is_the_one_that_it_appended() -> None:
    mcp = MCPServer("Shop", sessions=None, http=HTTPOptions(proxies=1))
    entries = logged(mcp)
    await post(mcp, message(), (b"x-forwarded-for", b"evil caller=bob, 192.0.2.8"), peer="192.0.2.1")
    assert entries[0].request.caller == "192.0.2.8"


async def test_an_error_id_is_that_of_the_record_about_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("Shop", sessions=None)
    entries = logged(mcp)

    @mcp.tool
    def fail() -> None:
        raise KeyError("x")

    @mcp.tool
    def refuse() -> None:
        raise ToolError("closed")

    @mcp.custom_route("/broken", methods=["GET"])
    async def broken(_request: Request) -> None:
        raise KeyError("x")

    await post(mcp, message("tools/call", name="fail"))
    await post(mcp, message("tools/call", name="refuse"))
    await runtime_of(mcp).exchange(MemoryRequest("GET", "/broken", HEADERS, b""))
    ids = [record.__dict__["error_id"] for record in caplog.records if record.levelname == "ERROR"]
    assert [entry.request.error_id for entry in entries] == [ids[0], "", ids[1]]
    assert [entry.text.rpartition(" ")[0].rpartition(" ")[0] for entry in entries] == [
        "tools/call fail tool error",
        "tools/call refuse tool error",
        "GET /broken 500",
    ]


async def test_a_middleware_that_refuses_is_part_of_the_outcome() -> None:
    async def refuse(_context: object, _call_next: Callable[..., Awaitable[Any]]) -> Any:
        raise ToolError("closed")

    mcp = MCPServer("Shop", sessions=None, middleware=[refuse])
    entries = logged(mcp)
    await post(mcp, message("tools/call", name="x"))
    assert entries[0].request.outcome == "tool error"


async def test_a_request_without_http_is_an_entry_without_status() -> None:
    mcp = MCPServer("Shop")
    entries = logged(mcp)
    await answer(runtime_of(mcp).server, context("tools/list"))
    assert (entries[0].status, entries[0].request.caller, entries[0].text.split(" ")[:2]) == (
        0,
        "",
        ["tools/list", "ok"],
    )


async def test_requests_are_logged_once_whoever_asks_for_it() -> None:
    mcp = MCPServer("Shop", sessions=None)
    entries = logged(mcp)
    assert logged(mcp) == []
    await post(mcp, message())
    assert len(entries) == 1


async def test_the_id_of_a_task_is_a_digest() -> None:
    mcp = MCPServer("Shop", sessions=None)
    entries = logged(mcp)
    await post(mcp, message("tasks/get", taskId="secret-id"), (b"mcp-protocol-version", b"2025-11-25"))
    assert entries[0].request.method == "tasks/get"
    assert len(entries[0].request.name) == 16
    assert "secret" not in entries[0].text


@pytest.mark.parametrize("caller", ["x request_id=forged", 'x" request_id="forged', "", 'x\\" y'])
def test_no_value_of_a_line_can_be_read_as_another_field(caller: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "funcmcp.requests"):
        write_text_record(Entry(LoggedRequest("r1", caller, "tools/list", "", "", "ok"), 200, 0.001))
    details = caplog.records[0].getMessage().removeprefix("tools/list ok 1.0 ms ")
    if not caller:
        assert details == "request_id=r1"
        return
    assert details.startswith('caller="')
    value, end = json.JSONDecoder().raw_decode(details.removeprefix("caller="))
    assert value == caller
    assert details.removeprefix("caller=")[end:] == " request_id=r1"


async def test_a_uri_is_logged_without_credentials_and_query_and_a_long_name_is_cut() -> None:
    mcp = MCPServer("Shop", sessions=None)
    entries = logged(mcp)
    revision = (b"mcp-protocol-version", b"2025-06-18")
    await post(mcp, message("resources/read", uri="https://ann:secret@x.example/y?sig=secret"), revision)
    await post(mcp, message("tools/call", name="n" * 1000), revision)
    assert [entry.request.name for entry in entries] == ["https://ann:***@x.example/y?***", "n" * 100 + "..."]


async def test_a_feature_of_another_server_is_logged_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    docs, mcp = MCPServer("Docs"), MCPServer("Desk", sessions=None)

    @docs.tool
    def find() -> str:
        return "found"

    mcp.mount(Upstream(docs, name="the docs"), prefix="docs")
    entries = logged(mcp)
    async with mcp.lifespan():
        for body in (message(), message("tools/call", name="docs_find")):
            await post(mcp, body, (b"mcp-protocol-version", b"2025-06-18"))
    assert [entry.request.upstream for entry in entries] == ["", "the docs"]
    with caplog.at_level(logging.INFO, "funcmcp.requests"):
        write_text_record(entries[1])
        write_json_record(entries[1])
    assert 'ms upstream="the docs" request_id=' in caplog.records[0].getMessage()
    assert vars(caplog.records[1])["upstream"] == "the docs"

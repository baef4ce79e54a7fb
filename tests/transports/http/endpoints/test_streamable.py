"""The endpoint: which requests get in, and which era answers them."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._server.limits import Limits
from tests import schemas
from tests.server.parts import NEWEST, PER_REQUEST, tool
from tests.transports.http.endpoint import BOTH, INITIALIZE, Endpoint, Got, mirrored, per_request, request

LIST = per_request("tools/list")
MODERN = {"mcp-protocol-version": PER_REQUEST}


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint(tool("add"), limits=Limits(message_bytes=2000))


def is_refusal(got: Got, status: int, code: int = -32600) -> bool:
    """Tell whether a response is a JSON-RPC error without an id, valid wherever ids may be left out."""
    schemas.validate(got.answer, NEWEST)
    schemas.validate(got.answer, PER_REQUEST)
    assert got.headers["content-type"] == "application/json"
    return (got.status, got.code, "id" in got.answer) == (status, code, False)


async def test_a_foreign_host_is_refused(endpoint: Endpoint) -> None:
    assert is_refusal(await endpoint.send(LIST, {**mirrored(LIST), "host": "evil.example"}), 421)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
async def test_a_foreign_origin_is_forbidden_for_every_method(endpoint: Endpoint, method: str) -> None:
    got = await endpoint.send(LIST, {**mirrored(LIST), "origin": "https://evil.example"}, method=method)
    assert is_refusal(got, 403)


@pytest.mark.parametrize("name", ["host", "origin"])
async def test_a_second_host_or_origin_is_a_bad_request(endpoint: Endpoint, name: str) -> None:
    assert is_refusal(await endpoint.send(LIST, [(name, "127.0.0.1"), (name, "127.0.0.1")]), 400)


async def test_an_own_origin_gets_in(endpoint: Endpoint) -> None:
    assert (await endpoint.send(LIST, {**mirrored(LIST), "origin": "http://127.0.0.1"})).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_the_path_may_end_in_a_slash(endpoint: Endpoint, path: str) -> None:
    assert (await endpoint.send(LIST, mirrored(LIST), path=path)).status == 200


@pytest.mark.parametrize("path", ["/", "", "/mcp/x", "/MCP", "/mcpx", "//mcp"])
async def test_another_path_is_not_found_and_the_endpoint_named(endpoint: Endpoint, path: str) -> None:
    got = await endpoint.send(LIST, mirrored(LIST), path=path)
    assert is_refusal(got, 404)
    assert "/mcp" in got.answer["error"]["message"]


@pytest.mark.parametrize("path", ["/", ""])
async def test_the_endpoint_may_be_the_root(path: str) -> None:
    assert (await Endpoint(path="/").send(LIST, mirrored(LIST), path=path)).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize(
    ("version", "allowed"), [(None, "POST, DELETE"), (NEWEST, "POST, DELETE"), (PER_REQUEST, "POST")]
)
async def test_another_method_is_not_allowed_and_the_allowed_ones_are_named(
    endpoint: Endpoint, method: str, version: str | None, allowed: str
) -> None:
    got = await endpoint.send(b"", {"mcp-protocol-version": version}, method=method)
    assert is_refusal(got, 405)
    assert got.headers["allow"] == allowed


async def test_a_per_request_client_cannot_delete(endpoint: Endpoint) -> None:
    session = await endpoint.begin()
    got = await endpoint.send(b"", {**MODERN, **session}, method="DELETE")
    assert is_refusal(got, 405)
    assert got.headers["allow"] == "POST"
    assert (await endpoint.send(request("ping"), session)).status == 200


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/json;charset=latin-1"]
)
async def test_a_body_that_is_not_declared_as_json_is_refused(endpoint: Endpoint, content_type: str | None) -> None:
    assert is_refusal(await endpoint.send(LIST, {**mirrored(LIST), "content-type": content_type}), 415)


async def test_a_charset_of_utf_8_is_json(endpoint: Endpoint) -> None:
    got = await endpoint.send(LIST, {**mirrored(LIST), "content-type": "application/json; charset=utf-8"})
    assert got.status == 200


@pytest.mark.parametrize(
    ("encoding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 200), (" Identity ", 200)]
)
async def test_a_compressed_body_is_refused(endpoint: Endpoint, encoding: str, status: int) -> None:
    assert (await endpoint.send(LIST, {**mirrored(LIST), "content-encoding": encoding})).status == status


@pytest.mark.parametrize(
    ("accept", "status", "streamed"),
    [
        (None, 200, False),
        ("*/*", 200, False),
        ("application/json", 200, False),
        ("text/event-stream", 200, True),
        ("application/json;q=0, text/event-stream", 200, True),
        (BOTH, 200, False),
        ("text/html", 406, False),
        ("application/json;q=0", 406, False),
    ],
)
async def test_only_a_client_that_takes_neither_json_nor_events_is_refused(
    endpoint: Endpoint, accept: str | None, status: int, streamed: bool
) -> None:
    got = await endpoint.send(LIST, {**mirrored(LIST), "accept": accept})
    assert (got.status, got.streamed) == (status, streamed)
    assert len(got.messages) == 1


async def test_a_client_that_takes_only_events_gets_its_session_and_its_refusals_all_the_same(
    endpoint: Endpoint,
) -> None:
    only_events = {"accept": "text/event-stream"}
    begun = await endpoint.send(request("initialize", INITIALIZE), only_events)
    assert (begun.streamed, begun.answer["result"]["protocolVersion"]) == (True, NEWEST)
    session = {**only_events, "mcp-session-id": begun.headers["mcp-session-id"]}
    assert (await endpoint.send(request("ping"), session)).answer["result"] == {}
    notified = await endpoint.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    assert (notified.status, notified.body, notified.headers) == (202, b"", {})
    refused = await endpoint.send(request("ping"), only_events)
    assert (refused.status, refused.code, refused.answer["id"]) == (400, -32600, 1)


@pytest.mark.parametrize("length", [None, "5000", "2001", "9" * 400])
async def test_a_body_over_the_limit_is_refused_and_the_next_one_answered(
    endpoint: Endpoint, length: str | None
) -> None:
    got = await endpoint.send(b"[" + b" " * 2000 + b"]", {"content-length": length})
    assert is_refusal(got, 413)
    assert (await endpoint.send(LIST, mirrored(LIST))).status == 200


async def test_a_declared_length_over_the_limit_is_refused_before_the_body_is_read(endpoint: Endpoint) -> None:
    assert is_refusal(await endpoint.send(b"{}", {"content-length": "2001"}), 413)


@pytest.mark.parametrize("length", ["", "abc", "-5", "2000", "²"])
async def test_any_other_declared_length_is_left_to_the_platform(endpoint: Endpoint, length: str) -> None:
    assert (await endpoint.send(LIST, {**mirrored(LIST), "content-length": length})).status == 200


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"NaN", b'{"a":1e999}', b'"\\ud800"', b"[" * 500])
async def test_a_body_that_is_not_json_is_a_parse_error(endpoint: Endpoint, body: bytes) -> None:
    assert is_refusal(await endpoint.send(body), 400, -32700)


async def test_a_repeated_name_is_an_invalid_request(endpoint: Endpoint) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}'
    assert is_refusal(await endpoint.send(body), 400, -32600)


@pytest.mark.parametrize("body", [None, 1, "ping", True, [], [1], {}, {"jsonrpc": "1.0", "method": "ping"}])
@pytest.mark.parametrize("headers", [{}, MODERN])
async def test_a_body_that_is_no_message_is_a_bad_request(
    endpoint: Endpoint, body: Any, headers: dict[str, str]
) -> None:
    got = await endpoint.send(body, headers)
    assert got.status == 400
    assert got.code == -32600


@pytest.mark.parametrize(
    ("version", "meta", "modern"),
    [
        (None, False, False),
        (NEWEST, False, False),
        ("2024-11-05", False, False),
        (f" {NEWEST} ", False, False),
        (PER_REQUEST, True, True),
        (f"\t{PER_REQUEST} ", True, True),
        (None, True, True),
        (NEWEST, True, True),
        (PER_REQUEST, False, True),
        ("v999.0.0", False, True),
        ("", False, True),
    ],
)
async def test_the_era_is_told_by_the_version_header_or_the_meta(
    endpoint: Endpoint, version: str | None, meta: bool, modern: bool
) -> None:
    body = LIST if meta else request("tools/list")
    got = await endpoint.send(body, {"mcp-protocol-version": version})
    # The handshake era asks for a session first; the per-request era never mentions one.
    assert ("Mcp-Session-Id" not in got.body.decode()) is modern


async def test_both_eras_are_served_at_once(endpoint: Endpoint) -> None:
    session = await endpoint.begin()
    for _ in range(2):
        handshake = await endpoint.send(request("tools/list"), session)
        modern = await endpoint.send(LIST, mirrored(LIST))
        schemas.validate(handshake.answer, NEWEST, "tools/list")
        schemas.validate(modern.answer, PER_REQUEST, "tools/list")


async def test_an_initialize_may_name_its_version_in_the_header(endpoint: Endpoint) -> None:
    """An unknown one does not matter: https://github.com/xpzouying/xiaohongshu-mcp/issues/697."""
    for version in (NEWEST, PER_REQUEST, "2099-01-01"):
        got = await endpoint.send(request("initialize", INITIALIZE), {"mcp-protocol-version": version})
        assert (got.status, got.answer["result"]["protocolVersion"]) == (200, NEWEST)


async def test_the_revision_of_a_session_counts_whatever_the_header_names(endpoint: Endpoint) -> None:
    """Clients name their newest one after they have agreed on another: CodeWithCJ/SparkyFitness, pull request 2162."""
    session = await endpoint.begin()
    for version in (NEWEST, PER_REQUEST):
        got = await endpoint.send(request("tools/list"), {**session, "mcp-protocol-version": version})
        assert (got.status, got.answer["result"].keys()) == (200, {"tools"})  # not the result of 2026-07-28
    unknown = await endpoint.send(request("tools/list"), {**session, "mcp-protocol-version": "2099-01-01"})
    assert (unknown.status, unknown.code) == (400, -32022)
    without = await endpoint.send(request("tools/list"), {"mcp-protocol-version": PER_REQUEST})
    assert (without.status, without.code) == (400, -32602)

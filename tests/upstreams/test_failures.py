"""What the callers of tools get while an upstream over HTTP fails, and what the upstream gets."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._client.http_messages import post
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams import links as links_module
from funcmcp.client import Client, HTTPEndpoint
from funcmcp.upstreams import Upstream, UpstreamError, UpstreamTimeouts
from tests.patience import PATIENCE
from tests.upstreams.scripted import Exchange, ScriptedServer, scripted_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAX_RESPONSE_BYTES = 100_000
MAY_HAVE_RUN = "The request may have run there"


async def expired(exchange: Exchange) -> None:
    exchange.write("404 Not Found")


async def bad_gateway(exchange: Exchange) -> None:
    exchange.write("502 Bad Gateway", b"<html>", "text/html")


async def no_such_path(exchange: Exchange) -> None:
    exchange.write("405 Method Not Allowed", b"<html>", "text/html")


async def unavailable(exchange: Exchange) -> None:
    exchange.write("503 Service Unavailable", b"<html>", "text/html")


async def server_error(exchange: Exchange) -> None:
    exchange.write("500 Internal Server Error", b"oops", "text/plain")


async def too_many_requests(exchange: Exchange) -> None:
    exchange.write("429 Too Many Requests", b"slow down", "text/plain", retry_after="7")


async def too_many_requests_until_a_date(exchange: Exchange) -> None:
    exchange.write("429 Too Many Requests", retry_after="Wed, 21 Oct 2026 07:28:00 GMT")


async def reset(exchange: Exchange) -> None:
    connection = exchange.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.writer.transport.abort()


async def half_a_body(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
    await exchange.writer.drain()
    exchange.writer.close()


async def silence(exchange: Exchange) -> None:
    await exchange.writer.wait_closed()
    raise ConnectionResetError


async def wrong_type(exchange: Exchange) -> None:
    exchange.write("200 OK", b"hello", "text/plain")


async def wrong_id(exchange: Exchange) -> None:
    exchange.write("200 OK", b'{"jsonrpc": "2.0", "id": 99999, "result": {}}')


async def large(exchange: Exchange) -> None:
    exchange.text("x" * MAX_RESPONSE_BYTES)


async def empty(exchange: Exchange) -> None:
    exchange.write("200 OK")


async def other_origin(exchange: Exchange) -> None:
    exchange.write("307 Temporary Redirect", location="http://127.0.0.1:9/mcp")


async def unauthorized(exchange: Exchange) -> None:
    exchange.write("401 Unauthorized", www_authenticate='Bearer realm="secret"')


async def forbidden(exchange: Exchange) -> None:
    exchange.write("403 Forbidden", www_authenticate='Bearer error="insufficient_scope"')


async def refused(exchange: Exchange) -> None:
    exchange.write("403 Forbidden")


class Case(NamedTuple):
    """One failure of a call.

    Attributes:
        answer: What the upstream does.
        text: A part of what the caller gets.
        state: The state of the upstream after it.
    """

    answer: Any
    text: str
    state: str = "connected"


CASES = [
    Case(bad_gateway, "does not answer now (HTTP status 502)", "reconnecting"),
    Case(unavailable, "does not answer now (HTTP status 503)", "reconnecting"),
    Case(server_error, "sent an answer that is not valid"),
    Case(too_many_requests, "gets too many requests (HTTP status 429), and did not run this one. Try again in 7 s."),
    Case(
        too_many_requests_until_a_date,
        "gets too many requests (HTTP status 429), and did not run this one",
    ),
    Case(reset, "ended before its answer", "reconnecting"),
    Case(half_a_body, "ended before its answer", "reconnecting"),
    Case(silence, "ended before its answer", "reconnecting"),
    Case(wrong_type, "sent an answer that is not valid"),
    Case(wrong_id, "sent an answer that is not valid"),
    Case(large, "is larger than this server accepts. The request may have run there. Request less at once."),
    Case(empty, "sent an answer that is not valid"),
    Case(unauthorized, "does not accept the credentials of this server"),
    Case(forbidden, "does not accept the credentials of this server"),
    Case(refused, "refuses access (HTTP status 403)"),
]


@asynccontextmanager
async def client_of(scripted: ScriptedServer, **options: Any) -> AsyncIterator[tuple[Client, Upstream]]:
    mcp = MCPServer("Desk", http=HTTPOptions(health=True))
    upstream = Upstream(
        HTTPEndpoint(scripted.url, silence_seconds=1.0, max_response_bytes=MAX_RESPONSE_BYTES),
        name="scripted",
        **options,
    )
    mcp.mount(upstream, prefix="up")
    async with asyncio.timeout(PATIENCE), Client(mcp, revision="2025-11-25") as client:
        yield client, upstream


async def act(client: Client) -> str:
    return str((await client.call_tool("up_act")).content[0]["text"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.answer.__name__)
async def test_a_call_that_fails_is_sent_once_and_the_next_one_works(case: Case) -> None:
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        own_session = await act(client)
        calls = scripted.calls
        scripted.answers.append(case.answer)
        text = await act(client)
        assert f"'scripted' {case.text}" in text
        assert scripted.url not in text  # addresses inside are for operators
        assert upstream.status.state == case.state
        assert upstream.status.last_error
        assert scripted.calls == calls + 1
        assert await act(client) == own_session
        assert upstream.status.state == "connected"


@pytest.mark.parametrize("answer", [server_error, wrong_type, wrong_id, empty, too_many_requests])
async def test_a_call_that_could_not_be_sent_has_not_run(answer: Any) -> None:
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        await client.list_tools()
        ordinary = scripted._answer

        async def refuse(exchange: Exchange, method: str) -> None:
            await (answer(exchange) if method == "initialize" else ordinary(exchange, method))

        scripted._answer = refuse  # type: ignore[method-assign]
        text = await act(client)
        assert "nothing was sent to it" in text or "did not run this one" in text
        assert "may have run" not in text
        assert scripted.calls == 0
        assert upstream.status.last_error
        scripted._answer = ordinary  # type: ignore[method-assign]
        assert (await act(client)).startswith("session-")


async def test_credentials_that_are_refused_and_a_wrong_path_are_for_operators_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        await act(client)
        scripted.answers.append(unauthorized)
        await act(client)
        text = str(upstream.status.last_error)
        assert text.startswith('The server requires valid credentials (HTTP status 401): Bearer realm="secret". Pass ')
        assert "Upstream(auth=...)" in text
        assert "--bearer" in text
        assert text in caplog.text
        scripted.answers.append(no_such_path)
        await act(client)
        assert "(HTTP status 405, text/html). Check the path of the URL: most" in str(upstream.status.last_error)


async def test_an_expired_session_is_begun_again_once_and_the_call_repeated() -> None:
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        first = await act(client)
        scripted.open_sessions.discard(first)
        second = await act(client)
        assert second != first
        calls = [session for method, session in scripted.requests if method == "tools/call"]
        assert calls == [first, first, second]
        scripted.answers += [expired, expired]
        assert "has ended the session twice" in await act(client)
        assert await act(client) not in {first, second}
        assert upstream.status.state == "connected"


async def test_all_calls_in_flight_get_one_answer_when_their_session_expires() -> None:
    async with scripted_server() as scripted, client_of(scripted) as (client, _):
        first = await act(client)
        scripted.open_sessions.discard(first)
        texts = await asyncio.gather(*(act(client) for _ in range(20)))
        assert len(set(texts)) == 1
        assert first not in texts


async def test_an_upstream_that_is_not_there_is_away_and_found_when_it_comes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mcp = MCPServer("Desk")
    upstream = Upstream(f"http://127.0.0.1:{port}/mcp", name="scripted")
    mcp.mount(upstream, prefix="up")
    async with asyncio.timeout(PATIENCE), Client(mcp):
        with pytest.raises(UpstreamError, match="'scripted' is away, so nothing was sent to it"):
            await upstream.connect()
        status = upstream.status
        assert status.state == "reconnecting"
        assert status.away_since is not None
        assert f"No server answers at http://127.0.0.1:{port}/mcp" in str(status.last_error)
        scripted = ScriptedServer()
        server = await asyncio.start_server(scripted.serve, "127.0.0.1", port)
        await upstream.connect()
        assert upstream.status.state == "connected"
        assert upstream.status.away_since is None
        server.close()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_tls_with_a_server_without_it_is_away() -> None:
    async with scripted_server() as scripted:
        upstream = Upstream(scripted.url.replace("http:", "https:"), name="plain")
        MCPServer("Desk").mount(upstream)
        with pytest.raises(UpstreamError, match="'plain'"):
            await upstream.connect()
        assert upstream.status.state == "reconnecting"
        await upstream._links.aclose()


async def test_a_redirection_to_another_origin_is_not_followed() -> None:
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        await act(client)
        scripted.answers.append(other_origin)
        assert "'scripted'" in await act(client)
        assert "redirects to another server" in str(upstream.status.last_error)


@pytest.mark.parametrize(
    ("option", "timeouts"),
    [
        ("first_answer", UpstreamTimeouts(first_answer=0.1)),
        ("request", UpstreamTimeouts(request=0.1)),
        ("total", UpstreamTimeouts(total=0.1)),
    ],
)
async def test_a_time_limit_cancels_the_request_and_names_its_option(option: str, timeouts: UpstreamTimeouts) -> None:
    async with scripted_server() as scripted:
        async with client_of(scripted, timeouts=timeouts) as (client, upstream):
            scripted.answers.append(silence)
            assert f"(UpstreamTimeouts.{option})" in await act(client)
            assert upstream.status.state == "connected"
            session = next(session for method, session in scripted.requests if method == "tools/call")
        assert ("notifications/cancelled", session) in scripted.requests


async def test_a_server_that_does_not_answer_a_connection_names_the_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        upstream = Upstream(url, timeouts=UpstreamTimeouts(connect=0.1))
        MCPServer("Desk").mount(upstream)
        with pytest.raises(UpstreamError, match=r"within 0\.1 seconds \(UpstreamTimeouts\.connect\)"):
            await upstream.connect()
        await upstream._links.aclose()


async def test_readiness_needs_an_upstream_unless_it_is_optional() -> None:
    for optional in (False, True):
        mcp = MCPServer("Desk", http=HTTPOptions(health=True))
        mcp.mount(Upstream("http://127.0.0.1:9/mcp", optional=optional), prefix="up")

        @mcp.tool
        def local() -> str:
            return "here"

        async with asyncio.timeout(PATIENCE), Client(mcp) as client:
            response = await post(runtime_of(mcp).exchange, "/readyz", b"", {}, method="GET")
            assert response.status == (200 if optional else 503)
            assert [tool.name for tool in await client.list_tools()] == ["local"]
            assert (await client.call_tool("local")).content[0]["text"] == "here"


async def test_a_server_without_ping_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_module, "CHECK_SECONDS", -1.0)
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        scripted.missing.add("ping")
        assert await upstream.check()
        assert ("ping", "session-1") in scripted.requests
        assert await act(client)


async def test_a_server_that_answers_a_check_with_another_error_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(links_module, "CHECK_SECONDS", -1.0)
    async with scripted_server() as scripted, client_of(scripted) as (client, upstream):
        answer = scripted._answer

        async def refuse(exchange: Exchange, method: str) -> None:
            if method == "ping":
                error = {"jsonrpc": "2.0", "id": exchange.message["id"], "error": {"code": -32603, "message": "broken"}}
                exchange.write("200 OK", json.dumps(error).encode())
            else:
                await answer(exchange, method)

        scripted._answer = refuse  # type: ignore[method-assign]
        assert not await upstream.check()
        assert "broken" in caplog.text
        assert await act(client)


async def test_sessions_of_clients_end_at_the_upstream() -> None:
    async with scripted_server() as scripted:
        async with client_of(scripted) as (client, _):
            await act(client)
        assert scripted.open_sessions == set()

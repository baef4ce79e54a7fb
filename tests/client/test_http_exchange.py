"""The client over real HTTP: with a server of ours under uvicorn, and with bad servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._client.http_exchange import HTTPExchange
from funcmcp._client.http_messages import post
from funcmcp.client import (
    AuthenticationError,
    Client,
    ClientError,
    ConnectionFailedError,
    HTTPEndpoint,
    InvalidResponseError,
    LogMessage,
    ProgressUpdate,
)
from tests import schemas
from tests.certificates import server_context, write_certificate
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.client.servers import OK, answering, redirect, results_of, sending
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.lowest("httpx2 sends the requests."),
]
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = '''
import asyncio

from pydantic import BaseModel

from funcmcp import MCPServer, Context
from funcmcp._state.sessions.memory import MemorySessions

sessions = MemorySessions()
mcp = MCPServer("Remote", version="1.2", sessions=sessions)
cancelled = []


class Guest(BaseModel):
    name: str


@mcp.tool
async def greet(context: Context) -> str:
    """Ask for a name."""
    answer = await context.elicit("Who?", Guest)
    return f"Hello, {answer.content.name}!" if answer.content else answer.action


@mcp.tool
async def count(context: Context) -> str:
    """Report progress."""
    for number in (1, 2, 3):
        await context.report_progress(number, total=3)
    await context.log("warning", "counted")
    return "done"


@mcp.tool
async def wait() -> None:
    """Wait until the call is cancelled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.append(1)
        raise


@mcp.tool
def count_cancelled() -> int:
    """Return how many calls were cancelled."""
    return len(cancelled)


@mcp.tool
def count_sessions() -> int:
    """Return how many sessions are alive."""
    return len(sessions)
'''
ONE_OF_EACH_ERA = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


async def connect(target: Any, **options: Any) -> None:
    """Connect and leave again."""
    async with Client(target, **options):
        pass


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("remote")
    (folder / "server.py").write_text(SERVER)
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_every_revision_works_over_http(url: str, revision: str) -> None:
    async with Client(url, revision=revision) as client:
        assert (client.revision, client.server_info["name"]) == (revision, "Remote")
        assert "greet" in [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool("count_cancelled")).is_error is False


async def test_the_newest_revision_is_the_default(url: str) -> None:
    async with Client(HTTPEndpoint(url)) as client:
        assert client.revision == "2026-07-28"


@ONE_OF_EACH_ERA
async def test_questions_are_answered_over_http(url: str, revision: str) -> None:
    async def ada(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "Ada"}}

    async with Client(url, revision=revision, elicit=ada) as client:
        assert (await client.call_tool("greet")).text == "Hello, Ada!"


@ONE_OF_EACH_ERA
async def test_progress_and_log_messages_arrive_over_http(url: str, revision: str) -> None:
    progress: list[ProgressUpdate] = []
    logged: list[LogMessage] = []
    async with Client(url, revision=revision, on_progress=progress.append, on_log=logged.append) as client:
        assert (await client.call_tool("count")).text == "done"
    assert progress == [ProgressUpdate(number, 3) for number in (1, 2, 3)]
    assert [(message.level, message.data) for message in logged] == [("warning", "counted")]


@ONE_OF_EACH_ERA
async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(url: str, revision: str) -> None:
    async with Client(url, revision=revision) as client:
        before = (await client.call_tool("count_cancelled")).structured_content["result"]
        with pytest.raises(TimeoutError, match=r"tools/call got no response within 0\.2 seconds"):
            await client.call_tool("wait", timeout=0.2)
        async with asyncio.timeout(PATIENCE):
            while (await client.call_tool("count_cancelled")).structured_content["result"] == before:  # noqa: ASYNC110 - the server is another process
                await asyncio.sleep(0.02)


async def test_leaving_ends_the_session_over_http(url: str) -> None:
    async with Client(url, revision="2025-11-25") as client:
        assert client.session_id is not None
        during = (await client.call_tool("count_sessions")).structured_content["result"]
        await connect(url, revision="2025-11-25")
        assert (await client.call_tool("count_sessions")).structured_content["result"] == during


async def test_a_session_that_has_ended_is_replaced_by_a_new_one(url: str) -> None:
    async with Client(url, revision="2025-11-25") as client:
        ended = client.session_id
        exchange = HTTPExchange(HTTPEndpoint(url))
        exchange.open()
        await post(exchange, "/mcp", b"", {"mcp-session-id": ended or ""}, method="DELETE")
        await exchange.aclose()
        assert await client.list_tools()
        assert client.session_id not in {None, ended}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "http://ada:s3cret@127.0.0.1:1/mcp?code=s3cret#s",
            "No server answers at http://ada:***@127.0.0.1:1/mcp?***#s.",
        ),
        ("http://s3cret@127.0.0.1:1/mcp", "No server answers at http://***@127.0.0.1:1/mcp."),
    ],
)
async def test_errors_show_no_password_and_no_query_of_a_url(url: str, message: str) -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        await connect(url)
    assert str(caught.value).startswith(message)


def test_the_error_about_an_invalid_url_shows_no_password() -> None:
    with pytest.raises(ValueError, match=r"'http://ada:\*\*\*@/mcp' is not a URL"):
        Client("http://ada:s3cret@/mcp")


async def test_errors_about_redirections_show_no_password_and_no_query() -> None:
    location = redirect("http://bob:s3cret@other.example.com/mcp?code=s3cret")
    with sending(location) as url, pytest.raises(ConnectionFailedError, match="to another server") as caught:
        await connect(url.replace("127.0.0.1", "ada:s3cret@127.0.0.1"))
    assert "s3cret" not in str(caught.value)


async def test_a_client_can_connect_again(url: str) -> None:
    client = Client(url, revision="2025-11-25")
    sessions = set()
    for _ in range(2):
        async with client:
            sessions.add(client.session_id)
            assert await client.list_tools()
    assert len(sessions) == 2


async def test_requests_run_at_the_same_time(url: str) -> None:
    async with Client(url) as client:
        results = await asyncio.gather(*(client.call_tool("count") for _ in range(10)))
    assert [result.text for result in results] == ["done"] * 10


@_SLOW
async def test_missing_credentials_are_an_error_with_the_challenge() -> None:
    challenge = {"www-authenticate": 'Bearer resource_metadata="https://a.example/.well-known/x"'}
    with (
        answering(lambda _: (401, "text/plain", b"no"), challenge) as url,
        pytest.raises(AuthenticationError, match="requires valid credentials") as caught,
    ):
        await connect(url)
    assert (caught.value.status, caught.value.challenge) == (401, challenge["www-authenticate"])


@_SLOW
async def test_a_missing_scope_is_an_error_with_the_challenge() -> None:
    with (
        answering(lambda _: (403, "text/plain", b"no"), {"www-authenticate": 'Bearer scope="a"'}) as url,
        pytest.raises(AuthenticationError, match="denies access") as caught,
    ):
        await connect(url)
    assert (caught.value.status, caught.value.challenge) == (403, 'Bearer scope="a"')


@_SLOW
@pytest.mark.parametrize(
    ("status", "kind", "body", "text"),
    [
        (200, "text/html", b"<html>", r"not an MCP message \(HTTP status 200, text/html\)"),
        (404, "text/plain", b"Not Found", r"not an MCP message \(HTTP status 404, text/plain\)"),
        (502, "application/json", b'{"error": "x"}', r"not an MCP message \(HTTP status 502"),
        (200, "application/json", b'{"jsonrpc": "2.0", "id": 99, "result": {}}', "another id"),
        (200, "text/event-stream", b"data: what\n\n", "not an MCP message"),
        (200, "text/event-stream", b": nothing\n\n", "event stream ended without an answer to initialize"),
        (202, "text/plain", b"", r"initialize got no answer \(HTTP status 202\)"),
    ],
)
async def test_an_answer_that_is_not_mcp_is_a_clear_error(status: int, kind: str, body: bytes, text: str) -> None:
    with answering(lambda _: (status, kind, body)) as url, pytest.raises(InvalidResponseError, match=text):
        await connect(url)


@_SLOW
@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, "The result of initialize has no valid 'protocolVersion'"),
        ({"protocolVersion": "1999-01-01", "capabilities": {}}, "chose the revision '1999-01-01'"),
        ({"protocolVersion": "2026-07-28", "capabilities": {}}, "chose the revision '2026-07-28'"),
        ({"protocolVersion": "2025-11-25", "capabilities": 5}, "The result of initialize has no valid 'capabilities'"),
    ],
)
async def test_a_handshake_that_is_not_valid_is_a_clear_error(result: dict[str, Any], text: str) -> None:
    with answering(results_of({"initialize": result})) as url, pytest.raises(InvalidResponseError, match=text):
        await connect(url)


@_SLOW
async def test_a_session_id_that_is_not_visible_ascii_is_a_clear_error() -> None:
    with answering(results_of({}), {"mcp-session-id": "a b"}) as url, pytest.raises(InvalidResponseError) as caught:
        await connect(url)
    assert str(caught.value) == "The server sent a session id that is not visible ASCII."


async def test_a_port_where_nothing_listens_is_a_clear_error() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionFailedError, match=f"No server answers at http://127.0.0.1:{port}/mcp"):
        await connect(f"http://127.0.0.1:{port}/mcp")


async def test_a_connection_that_closes_early_is_a_clear_error() -> None:
    head = OK + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n"
    with (
        sending(head + b'{"jsonrpc"') as url,
        pytest.raises(ConnectionFailedError, match=r"The connection to .* failed"),
    ):
        await connect(url)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (OK + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
)
async def test_a_response_has_to_begin_and_end_in_time(first: bytes, again: bytes) -> None:
    with (
        sending(first, again) as url,
        pytest.raises(ConnectionFailedError, match=r"takes more than 0\.5 seconds to answer|more than 256 KiB"),
    ):
        await connect(HTTPEndpoint(url, silence_seconds=0.5, max_response_bytes=1 << 40))


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
async def test_the_bytes_of_a_response_are_limited(kind: bytes) -> None:
    with (
        sending(OK + b"content-type: " + kind + b"\r\n\r\n", b"data: " * 1000) as url,
        pytest.raises(ConnectionFailedError, match=r"answers with more than 10000 bytes\."),
    ):
        await connect(HTTPEndpoint(url, max_response_bytes=10_000))


@_SLOW
async def test_the_bytes_of_all_responses_are_limited_together() -> None:
    page = {"tools": [{"name": "t" * 1000, "inputSchema": {}}]}
    with answering(results_of({"tools/list": page})) as url:
        async with Client(HTTPEndpoint(url, max_total_bytes=20_000)) as client:
            assert len(await client.list_tools()) == 1
            with pytest.raises(ConnectionFailedError, match=r"sends more than 20000 bytes\."):
                await asyncio.gather(*(client.list_tools() for _ in range(20)))


async def test_a_body_of_small_parts_counts_more_than_its_bytes() -> None:
    head = OK + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    with (
        sending(head, b"1\r\n \r\n" * 100) as url,
        pytest.raises(ConnectionFailedError, match="answers with more than 100000 bytes"),
    ):
        await connect(HTTPEndpoint(url, max_response_bytes=100_000))


@pytest.mark.parametrize("location", ["http://127.0.0.2:9/mcp", "//localhost/mcp", "https://127.0.0.1:9/", "file:///x"])
async def test_credentials_do_not_follow_a_redirection_to_another_server(location: str) -> None:
    with sending(redirect(location)) as url, pytest.raises(ConnectionFailedError, match="redirects to another server"):
        await connect(url, headers={"authorization": "Bearer secret"})


async def test_a_redirection_in_a_circle_is_a_clear_error() -> None:
    with sending(redirect("/again")) as url, pytest.raises(ConnectionFailedError, match="redirects more than 5 times"):
        await connect(url)


async def test_a_compressed_response_is_not_unpacked() -> None:
    with (
        sending(OK + b"content-type: application/json\r\ncontent-encoding: gzip\r\n\r\nxx") as url,
        pytest.raises(ConnectionFailedError, match="content coding 'gzip'"),
    ):
        await connect(url)


@_SLOW
async def test_a_tool_whose_schema_is_not_valid_can_be_called_all_the_same() -> None:
    """A client excludes a tool with an invalid x-mcp-header from the headers, and not from use."""
    discovered = {"capabilities": {"tools": {}}, "supportedVersions": ["2026-07-28"], "resultType": "complete"}
    bad = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A b"}}}
    tools = [{"name": "bad", "inputSchema": bad}, {"name": "none"}, {"inputSchema": {}}]

    def respond(message: dict[str, Any]) -> tuple[int, str, bytes]:
        results = {"server/discover": discovered, "tools/list": {"tools": tools}, "tools/call": {"content": []}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        return 200, "application/json", json.dumps(answer).encode()

    with answering(respond) as url:
        async with Client(url) as client:
            assert (await client.call_tool("bad", {"a": {}})).content == []


async def test_an_exchange_has_to_be_open() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        await post(HTTPExchange(HTTPEndpoint("http://127.0.0.1:1/mcp")), "/mcp", b"", {})


@_SLOW
async def test_a_failed_connection_leaves_nothing_open() -> None:
    with answering(lambda _: (500, "text/plain", b"")) as url:
        for _ in range(3):
            with pytest.raises(ClientError):
                await connect(url)


async def test_a_context_for_tls_has_the_authority_and_the_certificate_of_the_client(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    authority = str(tmp_path / "cert.pem")
    served = server_context(tmp_path)
    served.verify_mode = ssl.CERT_REQUIRED
    served.load_verify_locations(authority)
    peers: list[object] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        peers.append(writer.get_extra_info("peercert")["subject"])
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        writer.close()

    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(authority, tmp_path / "key.pem")
    server = await asyncio.start_server(respond, "127.0.0.1", 0, ssl=served)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        for ssl_context in (context, None):
            exchange = HTTPExchange(HTTPEndpoint(url, ssl_context=ssl_context))
            exchange.open()
            async with contextlib.aclosing(exchange):
                if ssl_context is None:
                    with pytest.raises(ConnectionFailedError, match="is not accepted"):
                        await post(exchange, "/mcp", b"", {}, method="DELETE")
                else:
                    assert (await post(exchange, "/mcp", b"", {}, method="DELETE")).status == 204
    assert len(peers) == 1

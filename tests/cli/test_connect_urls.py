"""Commands with the URL of something that is not an MCP endpoint, or of a server of another make."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import socket
import threading
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.show import print_server
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.client.servers import NOT_INITIALIZED, OK, answering, redirect, results_of, sending

if TYPE_CHECKING:
    from pathlib import Path


_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")


def test_an_address_where_nobody_answers_is_one_clear_line() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    ended = funcmcp("inspect", f"http://127.0.0.1:{port}/mcp")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"No server answers at http://127.0.0.1:{port}/mcp. "
        "Check that the server is running and that the address is right.\n"
    )


@pytest.mark.parametrize("url", ["http://", "http:///mcp", "http://127.0.0.1:99999/mcp", "http://[::1/mcp"])
def test_a_url_that_is_none_is_one_clear_line(url: str) -> None:
    ended = funcmcp("call", url, "x")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"{url!r} is not a URL of an endpoint, such as http://127.0.0.1:8000/mcp.\n"


@_SLOW
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/html", b"<html>hello</html>"),
        (404, "text/plain", b"Not Found"),
        (200, "application/json", b"{}"),
        (200, "application/json", b'{"jsonrpc": "2.0", "id": 1, "result": {}}'),
        (200, "application/json", b'{"jsonrpc": "2.0", "id": 1, "result": 5}'),
        (200, "application/json", b'{"jsonrpc": "2.0", "id": 1, "error": "no"}'),
        (200, "text/event-stream", b"data: what\n\n"),
        (200, "text/event-stream", b""),
        (202, "text/plain", b""),
    ],
)
def test_an_answer_that_is_not_mcp_is_one_clear_line(status: int, kind: str, body: bytes) -> None:
    with answering(lambda _: (status, kind, body)) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{url} does not answer as an MCP server.")
    assert ended.stderr.count("\n") == 1


@_SLOW
def test_an_error_of_the_protocol_is_one_clear_line() -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Out of order"}}'
    with answering(lambda _: (500, "application/json", body)) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stderr) == (1, "The server answered with error -32603: Out of order\n")


def test_a_server_that_hangs_up_is_one_clear_line() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]

        def hang_up() -> None:
            for _ in range(2):
                listener.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        ended = funcmcp("inspect", f"http://127.0.0.1:{port}/mcp")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"The connection to http://127.0.0.1:{port}/mcp failed: ")
    assert ended.stderr.count("\n") == 1


@_SLOW
@pytest.mark.parametrize("refusal", [b"Bad Request", NOT_INITIALIZED])
def test_an_older_server_of_another_make_is_spoken_to_in_its_own_revision(refusal: bytes) -> None:
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "elder", "version": "3"},
        },
        "tools/list": {"tools": [{"name": "hi", "inputSchema": {"type": "object"}}]},
    }

    def respond(message: dict[str, Any]) -> tuple[int, str, bytes]:
        if "id" not in message:
            return 202, "text/plain", b""
        if message["method"] not in results:
            return 400, "application/json", refusal
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        return 200, "text/event-stream", f": hello\r\n\r\nevent: message\r\ndata: {json.dumps(answer)}\r\n\r\n".encode()

    with answering(respond) as url:
        shown = funcmcp("inspect", url, "--json")
    assert (shown.returncode, shown.stderr) == (0, "")
    facts = json.loads(shown.stdout)
    assert (facts["server"]["name"], facts["revision"]) == ("elder", "2025-03-26")
    assert [tool["name"] for tool in facts["tools"]] == ["hi"]


BENT: list[Any] = [
    {"name": 5, "description": 7, "title": 5, "inputSchema": {"type": 5, "properties": [1], "required": "a"}},
    {"inputSchema": {"properties": {"a": {"enum": 5}, "b": {"anyOf": {}}, "c": {"type": [1, {}]}, "d": {"type": {}}}}},
    {"name": "c", "inputSchema": None},
    "d",
]


@_SLOW
def test_a_server_whose_tools_are_not_as_mcp_has_them_is_shown_as_far_as_it_goes() -> None:
    info = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": 5}
    content = [{"type": "text"}, {"type": "resource"}, {"type": "resource_link"}, {"type": "image", "data": 5}, "x"]
    good = {"name": "good", "inputSchema": {}}
    results: dict[str, Any] = {"initialize": info, "tools/call": {"content": content}}

    def respond(message: dict[str, Any]) -> tuple[int, str, bytes]:
        if "id" not in message:
            return 202, "text/plain", b""
        results["tools/list"] = {"tools": [good, *bent]}
        if message["method"] not in results:
            return 400, "application/json", NOT_INITIALIZED
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        return 200, "application/json", json.dumps(answer).encode()

    bent = BENT
    with answering(respond) as url:
        shown = funcmcp("inspect", url)
        bent = []
        called = funcmcp("call", url, "good")
    for ended in (shown, called):
        assert (ended.returncode, ended.stderr) == (0, "")
    assert "good" in shown.stdout


STEERING = "\x1b[2J\x9b31m\u202e"


@_SLOW
@pytest.mark.parametrize(
    "arguments",
    [
        ["call", "t", "x=1"],
        ["call", "none"],
        ["call", "t", "n=1", "--input-json", "{}"],
        ["inspect"],
        ["inspect", "--json"],
    ],
)
def test_nothing_that_a_hostile_server_sends_steers_the_terminal(arguments: list[str]) -> None:
    properties = {STEERING: {"type": "integer"}, "n": {"type": STEERING}}
    tool = {"name": "t", "description": STEERING, "inputSchema": {"type": "object", "properties": properties}}
    other = {"name": STEERING, "inputSchema": {}}
    called = {"content": [{"type": "text", "text": STEERING}], "isError": True}
    respond = results_of({"tools/list": {"tools": [tool, other]}, "tools/call": called})
    with answering(respond) as url:
        ended = funcmcp(arguments[0], url, *arguments[1:])
    assert ended.stdout + ended.stderr
    assert not {"\x1b", "\x9b", "\u202e"} & {*ended.stdout, *ended.stderr}


TOO_MUCH = "answers with more than 64 MiB."


@_SLOW
@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
def test_a_response_without_end_is_one_clear_line(kind: bytes) -> None:
    with sending(OK + b"content-type: " + kind + b"\r\n\r\n", b"data: " * 100_000) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{url} {TOO_MUCH}\n")


def test_a_compressed_response_is_refused_before_it_is_unpacked() -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    head = b"content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    with sending(OK + head + bomb) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"{url} answers with content coding 'gzip', which the client did not accept.\n"


@pytest.mark.parametrize("location", ["http://127.0.0.2:9/mcp", "//localhost/mcp", "https://127.0.0.1:9/", "file:///x"])
def test_a_redirection_to_another_server_is_not_followed(location: str) -> None:
    with sending(redirect(location)) as url:
        ended = funcmcp("inspect", url, "--bearer", "secret")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{url} redirects to another server, ")
    assert ended.stderr.endswith("If you trust that server, use its URL.\n")


def test_a_redirection_in_a_circle_is_one_clear_line() -> None:
    with sending(redirect("/again")) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"{url} redirects more than 5 times. Use the server's own URL.\n"


@_SLOW
def test_a_redirection_on_the_same_server_is_followed(folder: Path) -> None:
    """Starlette redirects a mount without its slash like this."""
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as process:
        endpoint = process.endpoint()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/mcp":
                    self.send_response(307)
                    self.send_header("location", "/mcp/")
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                answer = urllib.request.urlopen(urllib.request.Request(endpoint, body, headers))
                with answer:
                    text = answer.read()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                """Write no log."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            shown = funcmcp("call", f"http://127.0.0.1:{server.server_port}/mcp", "greet", "name=Ann")
            server.shutdown()
            thread.join()
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "Hello, Ann!\n", "")


def test_a_response_in_chunks_of_one_byte_is_one_clear_line() -> None:
    head = b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    with sending(OK + head, b"1\r\n \r\n" * 10_000) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{url} {TOO_MUCH}\n")


@_SLOW
def test_a_message_of_too_many_values_is_one_clear_line() -> None:
    def respond(message: dict[str, Any]) -> tuple[int, str, bytes]:
        values = b"[]," * 2_000_000
        return 200, "application/json", b'{"jsonrpc":"2.0","id":%d,"result":{"x":[%s1]}}' % (message["id"], values)

    with answering(respond) as url:
        ended = funcmcp("inspect", url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"{url} does not answer as an MCP server. "
        "The answer is not an MCP message (HTTP status 200, application/json).\n"
    )


@_SLOW
def test_a_table_has_a_bounded_number_of_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp_cli.console.SafeConsole.is_terminal", True)
    tools = [{"name": f"tool-{number}", "inputSchema": {"type": "object"}} for number in range(1_500)]
    lists: dict[str, Any] = {"resources": [], "resourceTemplates": [], "prompts": []}
    facts = {"server": {}, "revision": "2026-07-28", "capabilities": {}, "instructions": None, "tools": tools, **lists}
    print_server(facts)
    shown = capsys.readouterr().out
    assert "tool-999 " in shown
    assert "tool-1000" not in shown
    assert shown.endswith("and 500 more; --json prints all of them\n")

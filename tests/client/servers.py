"""HTTP servers that are not MCP servers, or are ones of other makes: each sends what a test defines."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Respond = Callable[[dict[str, Any]], tuple[int, str, bytes]]

NOT_INITIALIZED = b'{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Not initialized"}, "id": null}'
OK = b"HTTP/1.1 200 OK\r\nconnection: close\r\n"


@contextlib.contextmanager
def answering(respond: Respond, headers: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve POSTs with a function from the message to status, media type and body; yield the URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, kind, body = respond(message)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_DELETE(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def results_of(results: dict[str, Any]) -> Respond:
    """Return a server of 2025-11-25 that answers each method with a fixed result, or a function of the message."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile"}}
    answers = {"initialize": hello, **results}

    def respond(message: dict[str, Any]) -> tuple[int, str, bytes]:
        if "id" not in message:
            return 202, "text/plain", b""
        if message["method"] not in answers:
            return 400, "application/json", NOT_INITIALIZED
        result = answers[message["method"]]
        result = result(message) if callable(result) else result
        return 200, "application/json", json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()

    return respond


@contextlib.contextmanager
def sending(*answers: bytes) -> Iterator[str]:
    """Send raw bytes to each connection, over and over from the last answer, until the peer hangs up; yield the URL."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def send(connection: socket.socket) -> None:
            with contextlib.closing(connection), contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(answers[0])
                while len(answers) > 1:
                    connection.sendall(answers[1])

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=send, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        listener.shutdown(socket.SHUT_RDWR)


def redirect(location: str) -> bytes:
    return f"HTTP/1.1 307 X\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()

"""A real connection: bytes in, and the answers read off the socket one by one."""

from __future__ import annotations

import http.client
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.patience import PATIENCE
from tests.wire.peer import Answer, to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.wire.peer import Peer


class Line:
    """One TCP connection to a server on loopback.

    Args:
        port: where it listens.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._reader = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def try_to_send(self, data: bytes) -> None:
        """Send as much as the other side takes: it may have answered and closed before."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def answer(self) -> Answer:
        """Read one whole answer."""
        status = int(self._reader.readline().split()[1])
        headers = http.client.parse_headers(self._reader)
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join(self._chunks())
        else:
            body = self._reader.read(int(headers.get("content-length", "0")))
        return Answer(status, headers.items(), body)

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._reader.readline(), 16):
            yield self._reader.read(size)
            self._reader.readline()
        self._reader.readline()

    def lines_until(self, text: bytes) -> list[bytes]:
        """Read lines until one begins so."""
        lines = []
        for line in self._reader:
            lines.append(line)
            if line.startswith(text):
                return lines
        raise AssertionError(f"the stream ended before {text!r}: {lines}")

    def is_closed(self) -> bool:
        """Wait until the other side closes the connection."""
        return self._socket.recv(1) == b""

    def close(self) -> None:
        """Leave."""
        self._reader.close()
        self._socket.close()


@contextmanager
def connection(port: int) -> Iterator[Line]:
    """Open a connection until the block ends."""
    line = Line(port)
    try:
        yield line
    finally:
        line.close()


def head(pairs: Iterable[tuple[str, str]], *, method: str = "POST", path: str = "/mcp") -> bytes:
    """Return the head of a request, with exactly these header lines."""
    lines = [f"{method} {path} HTTP/1.1", *[f"{name}: {value}" for name, value in pairs], "", ""]
    return "\r\n".join(lines).encode("latin-1")


def request(peer: Peer, port: int, message: object, **headers: str | None) -> bytes:
    """Return a whole request, with the peer's headers for the message; `more` replaces some, None takes one away."""
    body = to_bytes(message)
    usual = {**peer.headers(message), "host": f"127.0.0.1:{port}", "content-length": str(len(body))}
    chosen = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return head((name, value) for name, value in chosen.items() if value is not None) + body


def post(peer: Peer, port: int, message: object, **headers: str | None) -> Answer:
    """Post a message on a connection of its own."""
    with connection(port) as line:
        line.send(request(peer, port, message, **headers))
        return line.answer()

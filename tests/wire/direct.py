"""Exchanges over uvicorn's protocol in memory, as `funcmcp run` serves a usual POST: without ASGI.

The suite runs on two versions of Python. On the newer one, each POST that can go without ASGI does so, so both ways
pass the tests of this folder. FUNCMCP_WIRE=direct or FUNCMCP_WIRE=asgi chooses the way on any version.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import httptools
import uvicorn
from uvicorn.server import ServerState

from funcmcp._adapters.asgi.application import http_runtime_of
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.uvicorn.protocols import http_protocol
from fuzz.http_bytes import Transport

if TYPE_CHECKING:
    from collections.abc import Callable

DIRECT = os.environ.get("FUNCMCP_WIRE", "direct" if sys.version_info >= (3, 13) else "asgi") == "direct"
"""Whether POSTs go without ASGI where they can."""

_NAME = re.compile(rb"[a-z0-9-]+")
_VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
_OTHER_WAYS = {b"transfer-encoding", b"upgrade", b"expect", b"connection"}
_MAX_HEADER = 10_000

_configs: WeakKeyDictionary[Any, uvicorn.Config] = WeakKeyDictionary()


def goes_direct(app: Any, scope: Any, parts: list[bytes]) -> bool:
    """Return whether a request goes without ASGI, and means the same as bytes of a connection."""
    path = direct_path(app)
    if not DIRECT or path is None or len(parts) != 1 or scope["query_string"]:
        return False
    if (scope["method"], scope["path"]) != ("POST", path.path):
        return False
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return (
        lengths in ([], [b"%d" % len(parts[0])])
        and all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in scope["headers"])
        and _OTHER_WAYS.isdisjoint(name for name, _ in scope["headers"])
        and sum(len(name) + len(value) for name, value in scope["headers"]) < _MAX_HEADER
    )


class DirectConnection(Transport):
    """A connection with one request, whose response is reported as the events of ASGI.

    Args:
        app: The application.
        scope: The request.
        body: Its body.
        send: Gets the events.

    Attributes:
        task: The task that answers the request.
    """

    def __init__(self, app: Any, scope: Any, body: bytes, send: Callable[[Any], None]) -> None:
        super().__init__(reads=True)
        self._extra = {"sockname": scope["server"], "peername": scope["client"]}
        self._send = send
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = b""
        config = _config(app)
        state = ServerState()
        protocol_class: Any = config.http_protocol_class
        self.protocol = protocol_class(config, state, {}, asyncio.get_running_loop())
        self.protocol.connection_made(self)
        self.protocol.data_received(_bytes_of(scope, body))
        assert self.protocol.is_direct(self.protocol.cycle)
        [self.task] = state.tasks
        self.task.add_done_callback(lambda _: self.lose())

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return an address."""
        return self._extra.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Parse a part of the response."""
        if not self.closing:
            self._parser.feed_data(bytes(data))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a field. The framing of the body is no part of the events."""
        if name != b"transfer-encoding":
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Report the start of the response."""
        status = self._parser.get_status_code()
        self._send({"type": "http.response.start", "status": status, "headers": self._headers})

    def on_body(self, body: bytes) -> None:
        """Report a part of the body."""
        self._send({"type": "http.response.body", "body": body, "more_body": True})

    def on_message_complete(self) -> None:
        """Report the end of the body."""
        self._send({"type": "http.response.body", "body": b""})


def _config(app: Any) -> uvicorn.Config:
    config = _configs.get(app)
    if config is None:
        served = http_runtime_of(app)
        assert served is not None
        protocol = http_protocol(served.limits, "httptools", direct=direct_path(app))
        config = uvicorn.Config(
            app, http=protocol, ws="none", lifespan="off", log_config=None, proxy_headers=False, access_log=False
        )
        config.load()
        _configs[app] = config
    return config


def _bytes_of(scope: Any, body: bytes) -> bytes:
    fields = list(scope["headers"])
    if all(name != b"content-length" for name, _ in fields):
        fields.append((b"content-length", b"%d" % len(body)))
    lines = [b"POST %b HTTP/1.1" % scope["path"].encode(), *[b"%b: %b" % field for field in fields], b"", body]
    return b"\r\n".join(lines)

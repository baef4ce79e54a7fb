"""The port on which the app's libraries reach the host.

It is on the loopback address, and its path has a secret, so that no other program manages the app's orchestrations.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.server import ServerState

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp_host.durable.management import Reply

_HOST = "127.0.0.1"
_MAX_BODY = 64 * 1024 * 1024


class Listener:
    """Serves the requests of the app's libraries.

    Args:
        answer: Answers a request, by its method, path, query and body.

    Attributes:
        url: Where it is reached; it ends with a slash.
    """

    def __init__(self, answer: Callable[[str, str, str, bytes], Reply]) -> None:
        self._answer = answer
        self._prefix = f"/{secrets.token_urlsafe(24)}/durabletask/"
        self._server: asyncio.Server | None = None
        self._state = ServerState()
        self.url = ""

    async def start(self) -> None:
        """Begin to listen."""
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
        )
        config.load()
        make: Any = config.http_protocol_class
        listening = socket.create_server((_HOST, 0))
        self._server = await asyncio.get_running_loop().create_server(
            lambda: make(config=config, server_state=self._state, app_state={}), sock=listening
        )
        self.url = f"http://{_HOST}:{listening.getsockname()[1]}{self._prefix}"

    async def aclose(self) -> None:
        """Stop listening, and close the connections."""
        if self._server is not None:
            self._server.close()
            for connection in list(self._state.connections):
                connection.shutdown()

    async def _serve(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """The ASGI application."""
        path: str = scope["path"]
        if not secrets.compare_digest(path[: len(self._prefix)].encode(), self._prefix.encode()):
            await _send(send, 404, "This path does not exist.")  # before anything of the body is in memory
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if not message.get("more_body") or len(body) > _MAX_BODY:
                break
        if len(body) > _MAX_BODY:
            await _send(send, 413, f"The body must have at most {_MAX_BODY} bytes.")
            return
        query = scope["query_string"].decode("latin-1")
        reply = self._answer(scope["method"], path[len(self._prefix) :], query, bytes(body))
        await _send(send, reply.status, reply.content)


async def _send(send: Any, status: int, content: Any) -> None:
    data = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})

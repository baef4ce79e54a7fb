"""The server of a cassette, for tests: it plays calls, or passes them on to the real server and records them."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
from funcmcp._client.bridge import Bridge
from funcmcp._client.cassettes import Cassette, RecordingTransport, ReplayTransport
from funcmcp._client.target_transports import transport_for
from funcmcp._client_api.connection import Client
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from funcmcp._client.target_transports import Target
    from funcmcp._client.transport import Transport


def _check_cassette(cassette: object) -> None:
    """Raise TypeError for a value that is not a cassette, such as the path of one."""
    if not isinstance(cassette, Cassette):
        raise TypeError(
            f"CassetteServer takes a Cassette, not {type(cassette).__name__}. Write Cassette.load(path) to play calls, "
            "or Cassette(path) to record them."
        )


@public("funcmcp.testing")
class CassetteServer:
    """The server of a cassette: the recorded calls, or the real server while they are recorded.

    Args:
        cassette: The calls.
        target: The real server, which is recorded. None: the calls are played.
        headers: Header fields of every request to the real server.

    Attributes:
        cassette: The calls.

    Raises:
        TypeError: `cassette` is not a `Cassette`.
    """

    def __init__(
        self, cassette: Cassette, target: Target | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        _check_cassette(cassette)
        self.cassette: Cassette = cassette
        self._target = target
        self._headers = dict(headers or {})

    @property
    def is_recording(self) -> bool:
        """Whether the calls go to the real server."""
        return self._target is not None

    def transport(self) -> Transport:
        """Return a transport for ``Client(...)``."""
        if self._target is None:
            return ReplayTransport(self.cassette)
        return RecordingTransport(transport_for(self._target, self._headers), self.cassette)

    def client(self, **options: Any) -> Client:
        """Return a client of the server, not connected yet. The options are those of `Client`."""
        return Client(self.transport(), **options)

    @asynccontextmanager
    async def app(self) -> AsyncIterator[ASGIApplication]:
        """Serve any client over Streamable HTTP, at ``/mcp`` of an ASGI application."""
        bridge = Bridge(self.transport())
        try:
            yield ASGIApplication(HTTPRuntime(bridge.exchange))
        finally:
            await bridge.aclose()

    @property
    def command(self) -> list[str]:
        """The command of a process that plays the cassette to any client on stdio."""
        return [sys.executable, "-m", "funcmcp", "replay", str(self.cassette.path)]

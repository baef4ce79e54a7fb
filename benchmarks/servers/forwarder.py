"""A forwarder of bytes: what any proxy costs at least. Arguments: its port, and the port of the server behind it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    from typing import Any


class Side(asyncio.Protocol):
    """One side of a connection: writes what it reads to the other side."""

    other: asyncio.Transport | None = None
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._waiting = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Remember where to write."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        if self.other is None:
            self._waiting += data
        elif not self.other.is_closing():
            self.other.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """Close the other side."""
        if self.other is not None:
            self.other.close()

    def join(self, other: asyncio.Transport) -> None:
        """Begin to pass bytes on."""
        self.other = other
        other.write(bytes(self._waiting))
        self._waiting.clear()


class Front(Side):
    """The side of the client, which opens a connection to the server."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Connect to the server."""
        super().connection_made(transport)
        self._connecting = asyncio.create_task(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        _, back = await loop.create_connection(Side, "127.0.0.1", self._port)
        back.join(self.transport)
        self.join(back.transport)


async def main(port: int, behind: int) -> None:
    """Forward for ever."""
    server = await asyncio.get_running_loop().create_server(lambda: Front(behind), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(*map(int, sys.argv[1:])))

"""A TCP port in front of a Redis on a Unix socket, whose connections a test can reset."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 65536
_NO_LINGER = struct.pack("ii", 1, 0)
"""With this SO_LINGER, closing a socket sends RST instead of FIN."""


class Forwarder:
    """Forwards connections to a Unix socket, in a thread with an event loop of its own.

    Args:
        path: of the Unix socket.

    Attributes:
        url: for clients of Redis.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._clients: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._loss: tuple[int, threading.Event | None] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def start(self) -> None:
        """Begin to accept connections."""
        self._thread.start()
        serving = asyncio.start_server(self._forward, sock=self._listener)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()

    def lose_reply(self, after: int = 0, until: threading.Event | None = None) -> None:
        """Drop a reply of Redis and reset its connection: the first one behind so many others.

        Args:
            after: The number of replies before it.
            until: The connection is reset when this is set.
        """
        self._loss = (after, until)

    def stop(self) -> None:
        """Reset all connections and end the thread."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def reset(self) -> int:
        """Reset all connections of clients (TCP RST); return how many there were."""
        return asyncio.run_coroutine_threadsafe(self._reset(), self._loop).result()

    async def _reset(self) -> int:
        clients, self._clients = self._clients, set()
        for writer in clients:
            with contextlib.suppress(OSError):  # a connection that has just been closed
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            writer.transport.abort()
        return len(clients)

    async def _stop(self) -> None:
        self._server.close()
        await self._reset()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            upstream_reader, upstream_writer = await asyncio.open_unix_connection(self._path)
            try:
                await asyncio.gather(_copy(reader, upstream_writer), self._reply(upstream_reader, writer))
            finally:
                upstream_writer.transport.abort()
        except (OSError, asyncio.CancelledError):
            return
        finally:
            self._clients.discard(writer)
            writer.transport.abort()

    async def _reply(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass replies on, except for the one that is lost."""
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                if self._loss is not None:
                    after, until = self._loss
                    if after == 0:
                        self._loss = None
                        if until is not None:
                            await asyncio.to_thread(until.wait)
                        break
                    self._loss = (after - 1, until)
                sink.write(data)
                await sink.drain()
        sink.transport.abort()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
    sink.transport.abort()


@contextmanager
def forwarder(path: str) -> Iterator[Forwarder]:
    """Forward connections until the block ends."""
    running = Forwarder(path)
    running.start()
    try:
        yield running
    finally:
        running.stop()

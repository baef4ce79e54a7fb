"""Connections in the handshake of TLS, on the event loops of asyncio and uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.http1 import open_connections
from funcmcp._adapters.http1.open_connections import OpenConnections
from funcmcp._adapters.http1.tls_handshake import TLSHandshake
from fuzz.http_bytes import Transport
from tests.certificates import client_context, server_context, write_certificate
from tests.patience import PATIENCE

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias

    Run: TypeAlias = Callable[[Callable[[], Awaitable[None]]], None]

ATTACKER, USER = "127.0.0.2", "127.0.0.1"
DESCRIPTORS, PLACES = 64, 48


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a test in an event loop of asyncio or of uvloop."""
    loops: Any = pytest.importorskip("uvloop") if request.param == "uvloop" else asyncio

    async def in_time(test: Callable[[], Awaitable[None]]) -> None:
        async with asyncio.timeout(PATIENCE):
            await test()

    def in_loop(test: Callable[[], Awaitable[None]]) -> None:
        with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
            runner.run(in_time(test))

    return in_loop


class Echo(asyncio.Protocol):
    """What a connection becomes after its handshake."""

    transport: Any

    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        assert self._server.open_connections.add(self)  # type: ignore[arg-type]  # the rest is not called
        assert transport.get_extra_info("sslcontext") is not None

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open_connections.remove(self)  # type: ignore[arg-type]  # as above

    waiting_rank = None

    def give_way(self) -> None:
        raise AssertionError


class Server:
    """A server with TLS, without uvicorn.

    Attributes:
        handshakes: All that have begun, as long as they are in memory.
    """

    def __init__(self, folder: Path, seconds: float = PATIENCE) -> None:
        write_certificate(folder)
        self.open_connections = OpenConnections(DESCRIPTORS)
        self.connections: set[Any] = set()
        self.handshakes: list[weakref.ref[Any]] = []
        self.port = 0
        self._make: Any = partial(
            TLSHandshake,
            partial(Echo, self),
            server_context(folder),
            seconds,
            self.open_connections,
            self.connections,
        )

    def _begin(self) -> TLSHandshake:
        handshake: TLSHandshake = self._make()
        self.handshakes.append(weakref.ref(handshake))
        return handshake

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.get_running_loop().create_server(self._begin, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        yield
        server.close()
        await self.until(lambda: not self.open_connections._callers)

    async def until(self, is_true: Callable[[], object]) -> None:
        while not is_true():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)

    async def connect(
        self, address: str, context: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, local_addr=(address, 0))

    async def answers(self, data: bytes = b"ping") -> bool:
        reader, writer = await self.connect(USER, client_context())
        writer.write(data)
        echo = await reader.readexactly(len(data))
        writer.close()
        return echo == data


def test_an_address_with_many_handshakes_has_half_of_the_places_and_locks_nobody_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connections, "_descriptor_of", lambda _: 3)  # those of the clients do not count
    server = Server(tmp_path)

    async def attack() -> None:
        async with server.listening():
            silent = [await server.connect(ATTACKER) for _ in range(2 * DESCRIPTORS)]
            await server.until(lambda: len(server.handshakes) == 2 * DESCRIPTORS)
            await server.until(lambda: len(server.connections) == PLACES // 2)
            assert len(server.open_connections._callers) == PLACES // 2
            assert await server.answers()
            assert len(server.connections) == PLACES // 2, "a place of the attacker's address was left"
            for _, writer in silent:
                writer.close()

    run(attack)


def test_data_behind_the_handshake_of_any_size_is_received(run: Run, tmp_path: Path) -> None:
    server = Server(tmp_path)

    async def exchange() -> None:
        async with server.listening():
            for size in (1, 70_000, 400_000):
                assert await server.answers(b"x" * size)
            assert not server.connections

    run(exchange)


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"])
def test_a_handshake_that_does_not_end_has_its_time_and_one_that_fails_ends_at_once(
    run: Run, tmp_path: Path, data: bytes
) -> None:
    server = Server(tmp_path, 0.1)

    async def wait() -> None:
        async with server.listening():
            reader, writer = await server.connect(USER)
            writer.write(data)
            with contextlib.suppress(ConnectionResetError):
                await reader.read()
            writer.close()
            assert await server.answers()

    run(wait)


def test_a_server_that_ends_ends_the_handshakes(run: Run, tmp_path: Path) -> None:
    server = Server(tmp_path)

    async def end() -> None:
        async with server.listening():
            reader, writer = await server.connect(USER)
            await server.until(lambda: server.connections)
            for connection in list(server.connections):
                connection.shutdown()
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            await server.until(lambda: not server.connections)

    run(end)


async def test_a_connection_that_gives_way_at_once_begins_no_handshake(tmp_path: Path) -> None:
    """It would keep the memory of TLS for the time of the handshake."""
    server = Server(tmp_path)
    transport = Transport(reads=True)
    transport._start_tls_compatible = True  # type: ignore[attr-defined]  # what asyncio looks for
    transport.protocol = handshake = server._make()
    handshake.connection_made(transport)
    handshake.give_way()
    await server.until(lambda: handshake._task is None)
    assert transport.protocol is handshake
    assert not server.connections


def test_handshakes_are_freed_without_a_garbage_collection(run: Run, tmp_path: Path) -> None:
    """Those that are complete, that fail, that take too long, and those whose client leaves."""
    server = Server(tmp_path, 0.1)

    async def connect() -> None:
        async with server.listening():
            assert await server.answers()
            for data, leaves in ((b"nonsense\r\n\r\n", False), (b"", False), (b"", True)):
                reader, writer = await server.connect(USER)
                writer.write(data)
                if not leaves:
                    with contextlib.suppress(ConnectionResetError):
                        await reader.read()
                writer.close()
            await server.until(lambda: len(server.handshakes) == 4)
            await server.until(lambda: all(handshake() is None for handshake in server.handshakes))

    gc.collect()
    gc.disable()
    try:
        run(connect)
    finally:
        gc.enable()

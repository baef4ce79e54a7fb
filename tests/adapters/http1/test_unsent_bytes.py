"""Which connection ends when too many bytes wait for clients that do not read."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from funcmcp._adapters.http1.open_connections import OpenConnections
from funcmcp._adapters.http1.unsent_bytes import BoundedWriting, UnsentBytes, ask_from_first_byte
from funcmcp._server.limits import Limits
from tests.patience import PATIENCE

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")


class Transport:
    """A transport with so many unsent bytes."""

    def __init__(self, address: str | None, size: int) -> None:
        self.address = address
        self.size = size
        self.aborted = False
        self.ended = asyncio.Event()

    def get_extra_info(self, name: str) -> Any:
        assert name == "peername"
        return None if self.address is None else (self.address, 1)

    def get_write_buffer_size(self) -> int:
        return self.size

    def write(self, data: bytes) -> None:
        self.size += len(data)

    def abort(self) -> None:
        self.aborted = True
        self.ended.set()


class Connection(BoundedWriting, asyncio.Protocol):
    limits = Limits(write_seconds=60)

    def __init__(self, unsent: UnsentBytes, address: str | None, size: int) -> None:
        self.unsent = unsent  # type: ignore[misc]  # otherwise of the class
        self.open_connections = OpenConnections()  # type: ignore[misc]  # as above
        self.loop = asyncio.get_running_loop()
        self.transport = Transport(address, size)


async def test_the_address_with_most_bytes_loses_the_connection_that_waits_for_longest() -> None:
    unsent = UnsentBytes(100)
    one, first, second = (Connection(unsent, address, 40) for address in ("a", "b", "b"))
    for connection in (one, first, second):
        connection.pause_writing()
    assert [connection.transport.aborted for connection in (one, first, second)] == [False, True, False]
    for connection in (one, first, second):
        connection.connection_lost(None)


async def test_clients_that_are_cut_off_have_a_line_with_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for limit, seconds, reason in (
        (10, 60.0, "exceed 10 (Limits.unsent_bytes)"),
        (100, 0.001, "for 0.001 s (Limits.write"),
    ):
        caplog.clear()
        unsent = UnsentBytes(limit)
        connections = [Connection(unsent, "192.0.2.1", 40) for _ in range(2)]
        for connection in connections:
            connection.limits = Limits(write_seconds=seconds)  # type: ignore[misc]  # otherwise of the class
            connection.pause_writing()
        async with asyncio.timeout(PATIENCE):
            await connections[0].transport.ended.wait()
        [record] = caplog.records
        assert (record.levelname, reason in record.getMessage()) == ("INFO", True)
        assert record.getMessage().startswith("The client at 192.0.2.1 is cut off: ")
        for connection in connections:
            connection.connection_lost(None)


async def test_one_connection_may_have_more() -> None:
    unsent = UnsentBytes(100)
    one = Connection(unsent, None, 1000)
    one.pause_writing()
    assert not one.transport.aborted
    one.resume_writing()
    other = Connection(unsent, None, 90)
    other.pause_writing()
    assert not other.transport.aborted
    other.connection_lost(None)


async def test_data_counts_as_a_whole_until_its_last_byte_is_sent() -> None:
    unsent = UnsentBytes(100)
    connections = [Connection(unsent, "a", 0) for _ in range(3)]
    for connection in connections:
        connection.write(b"x" * 40)
        connection.transport.size = 1  # the kernel has taken the rest
        connection.pause_writing()
    assert [connection.transport.aborted for connection in connections] == [True, False, False]
    connection = connections[2]
    connection.write(b"y" * 5)
    assert connection.unsent_bytes == 45
    connection.resume_writing()
    connection.write(b"z" * 6)
    connection.transport.size = 1
    connection.pause_writing()
    assert connection.unsent_bytes == 6
    for connection in connections:
        connection.connection_lost(None)


async def test_responses_that_wait_count_as_well() -> None:
    unsent = UnsentBytes(100)
    one, other = Connection(unsent, "a", 10), Connection(unsent, "b", 10)
    one.pause_writing()
    other.pause_writing()
    one.waiting_bytes = 90
    unsent.check(one)
    assert [one.transport.aborted, other.transport.aborted] == [True, False]
    for connection in (one, other):
        connection.connection_lost(None)


@pytest.mark.parametrize(("context", "high"), [(None, 0), (object(), 1)])
def test_a_transport_asks_to_pause_for_the_first_unsent_byte_and_not_before(context: object, high: int) -> None:
    limits: list[dict[str, int]] = []
    transport = SimpleNamespace(
        get_extra_info={"sslcontext": context}.get, set_write_buffer_limits=lambda **options: limits.append(options)
    )
    ask_from_first_byte(transport)
    assert limits == [{"high": high, "low": 0}]

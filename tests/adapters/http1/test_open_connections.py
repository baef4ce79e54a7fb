"""Which connection ends when there are too many, or when their unfinished headers take up too much memory."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from funcmcp._adapters.http1.open_connections import OpenConnections, descriptor_limit
from funcmcp._server.limits import Limits
from funcmcp._server.load import Load

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")

IDLE, RECEIVING = 0, 1


class Connection:
    """A connection from an address, with the number of a descriptor."""

    def __init__(self, address: str | None, number: int = 0, rank: tuple[int, float] | None = (IDLE, 0)) -> None:
        extra = {"socket": SimpleNamespace(fileno=lambda: number), "peername": address and (address, 1)}
        self.transport = SimpleNamespace(get_extra_info=extra.get)
        self.waiting_rank = rank
        self.closed = False
        self.refused: int | None = None

    def give_way(self) -> None:
        self.closed, self.waiting_rank = True, None

    def refuse_unfinished(self, *, is_caller_limit: bool) -> None:
        self.refused = 429 if is_caller_limit else 503


def added(open_connections: OpenConnections, *connections: Connection) -> None:
    for connection in connections:
        assert open_connections.add(connection)


def test_a_connection_in_the_reserve_closes_the_one_that_is_idle_longest(caplog: pytest.LogCaptureFixture) -> None:
    """Of the address with most connections, before those whose requests are incomplete."""
    open_connections = OpenConnections(100)
    other = Connection("10.0.0.2", 1, (IDLE, 1))
    incomplete, busy, first, second = (
        Connection("10.0.0.1", 2 + index, rank)
        for index, rank in enumerate([(RECEIVING, 1), None, (IDLE, 2), (IDLE, 3)])
    )
    added(open_connections, other, incomplete, busy, second, first, Connection("10.0.0.3", 87, None))
    assert not first.closed
    for index, expected in enumerate([first, second, incomplete, other]):
        assert open_connections.add(Connection(f"10.1.0.{index}", 88, None))
        assert expected.closed
    assert not busy.closed
    assert not open_connections.add(Connection("10.0.0.3", 88, None))
    [record] = caplog.records
    assert "Descriptors run out (the limit is 100)" in record.getMessage()


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["2001:db8::1", "2001:db8::2"]], ids=["address", "network"])
def test_an_address_has_half_of_the_places(addresses: list[str], caplog: pytest.LogCaptureFixture) -> None:
    open_connections = OpenConnections(16)
    places = [Connection(addresses[index % len(addresses)], rank=(IDLE, index)) for index in range(6)]
    added(open_connections, *places)
    added(open_connections, *(Connection("10.0.0.9", rank=None) for _ in range(5)))
    assert not any(connection.closed for connection in places)
    added(open_connections, *(Connection(addresses[0], rank=(IDLE, 9)) for _ in range(2)))
    assert [connection.closed for connection in places] == [True, True, False, False, False, False]
    assert len(caplog.records) == 1
    assert "declare it with HTTPOptions(proxies=)" in caplog.text


def test_an_eighth_of_the_places_is_for_addresses_without_a_connection() -> None:
    """So a health check is answered while two addresses hold all the connections that they can get."""
    open_connections = OpenConnections(1000)
    taken = 0
    for address in ("10.0.0.1", "10.0.0.2"):
        while open_connections.add(held := Connection(address, rank=None)):
            taken += 1
        open_connections.remove(held)
    assert taken == 750 - 93
    for number in range(93):
        added(open_connections, Connection(f"10.1.0.{number}", rank=None))
    for address in ("10.0.0.2", "10.2.0.1"):
        refused = Connection(address, rank=None)
        assert not open_connections.add(refused)
        open_connections.remove(refused)
    idle = next(iter(open_connections._callers))
    open_connections.remove(idle)
    added(open_connections, Connection("10.2.0.1", rank=None))


@pytest.mark.parametrize("address", [None, "", "10.0.0.1"])
def test_addresses_of_unix_sockets_and_of_proxies_have_no_share(address: str | None) -> None:
    open_connections = OpenConnections(200, has_shares=address != "10.0.0.1")
    connections = [Connection(address) for _ in range(150)]
    added(open_connections, *connections)
    assert not any(connection.closed for connection in connections)


def test_a_free_number_among_many_descriptors_is_no_sign_of_places() -> None:
    """More connections may be accepted at once than there are places. Those that end free low numbers."""
    open_connections = OpenConnections(16)
    connections = [Connection(f"10.0.0.{number}", number, (IDLE, number)) for number in range(2, 16)]
    added(open_connections, *connections)
    for connection in connections:
        if connection.closed:
            open_connections.remove(connection)
    assert [connection.closed for connection in connections] == [True] * 4 + [False] * 10
    added(open_connections, Connection("10.0.0.99", 2))
    assert sum(connection.closed for connection in connections) == 5


def test_descriptors_that_are_no_connections_turn_nobody_away_until_half_of_the_reserve_is_used() -> None:
    """Such as those of files and of connections to other servers."""
    open_connections = OpenConnections(100)
    idle, busy = Connection("10.0.0.1", 10), Connection("10.0.0.2", 80, None)
    added(open_connections, idle, busy)
    assert not idle.closed
    added(open_connections, Connection("10.0.0.3", 88, None))
    assert idle.closed


def test_a_connection_that_has_ended_does_not_count() -> None:
    open_connections = OpenConnections(16)
    for _ in range(50):
        connection = Connection("10.0.0.1", rank=None)
        added(open_connections, connection)
        open_connections.remove(connection)
        open_connections.remove(connection)


def test_a_websocket_counts_in_place_of_its_http_connection() -> None:
    open_connections = OpenConnections(16)
    for _ in range(6):
        http, websocket = Connection("10.0.0.1"), Connection("10.0.0.1", rank=None)
        added(open_connections, http)
        open_connections.replace(http, websocket)
        assert open_connections.add(websocket)  # it is counted already
    assert not open_connections.add(Connection("10.0.0.1"))


def test_without_a_limit_nothing_is_closed() -> None:
    open_connections = OpenConnections(None)
    added(open_connections, *(Connection("10.0.0.1", 10**6, None) for _ in range(100)))


def test_unfinished_headers_have_the_memory_of_their_address() -> None:
    load = Load(Limits(memory_bytes=4000, memory_bytes_per_principal=100))
    open_connections = OpenConnections(None, headers=load.headers)
    first, second, third, other = (Connection(f"10.0.0.{number}") for number in (1, 1, 1, 2))
    added(open_connections, first, second, third, other)
    open_connections.hold(first, 40)
    open_connections.hold(second, 40)
    open_connections.hold(other, 90)
    open_connections.hold(first, 50)
    open_connections.hold(third, 30)  # the second one has not grown for longest
    assert [connection.refused for connection in (first, second, third, other)] == [None, 429, None, None]
    open_connections.hold(third, 101)
    assert (first.refused, third.refused) == (429, 429)
    open_connections.hold(other, 0)
    assert load.memory.used == 0
    open_connections.hold(other, 90)
    open_connections.remove(other)
    assert load.memory.used == 0


def test_unfinished_headers_of_many_addresses_leave_memory_to_the_requests_of_others() -> None:
    """They have a quarter of the memory, in which the oldest ones give way."""
    load = Load(Limits(memory_bytes=4000, memory_bytes_per_principal=200))
    open_connections = OpenConnections(None, headers=load.headers)
    flood = [Connection(f"10.0.{number}.1") for number in range(40)]
    added(open_connections, *flood)
    for connection in flood:
        open_connections.hold(connection, 200)
    assert [connection.refused for connection in flood] == [503] * 35 + [None] * 5
    load.bodies.budget.check("address:10.1.0.1", 200)
    slow = Connection("10.1.0.1")
    added(open_connections, slow)
    open_connections.hold(slow, 100)
    assert (slow.refused, flood[35].refused) == (None, 503)


def test_unfinished_headers_give_way_where_requests_take_up_the_memory() -> None:
    load = Load(Limits(memory_bytes=4000, memory_bytes_per_principal=4000))
    open_connections = OpenConnections(None, headers=load.headers)
    first, second = Connection("10.0.0.1"), Connection("10.0.0.2")
    added(open_connections, first, second)
    open_connections.hold(first, 100)
    load.memory.count("principal:alice", 3900)
    open_connections.hold(second, 100)
    assert (first.refused, second.refused) == (503, None)
    open_connections.hold(second, 101)
    assert second.refused == 503


def test_the_limit_of_descriptors_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource: Any = SimpleNamespace(RLIMIT_NOFILE=7, RLIM_INFINITY=-1, getrlimit=lambda kind: (1024 + kind, -1))
    monkeypatch.setitem(sys.modules, "resource", resource)
    assert descriptor_limit() == 1031
    resource.getrlimit = lambda _: (-1, -1)
    assert descriptor_limit() is None
    monkeypatch.setattr(sys, "platform", "win32")
    assert descriptor_limit() is None

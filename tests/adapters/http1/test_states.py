"""The tables of `states.py`: a connection does nothing that they do not have, and all that they have happens."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.http1 import states
from funcmcp._adapters.http1.connection import LAST_REQUEST_SECONDS, HTTPConnection
from funcmcp._adapters.http1.cycle import Cycle
from funcmcp._adapters.http1.states import Ending, RequestState, ResponseState, State
from funcmcp._server.limits import Limits
from tests.adapters.http1.test_connection_states import (
    COMPLETE,
    MESSAGE_SECONDS,
    PIPELINES,
    Clock,
    Connection,
    configured,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import Enum

MEMBERS = {"state": State, "ending": Ending, "request_state": RequestState, "response_state": ResponseState}
TRANSITIONS = {
    State: {
        "RECEIVING": "HELD IDLE LINGERING ENDED",
        "HELD": "REFUSING RECEIVING IDLE LINGERING ENDED",
        "REFUSING": "LINGERING ENDED",
        "IDLE": "RECEIVING HELD LINGERING ENDED",
        "LINGERING": "ENDED",
    },
    Ending: {"OPEN": "LAST HURRIED", "LAST": "HURRIED", "HURRIED": "LAST"},
    RequestState: {"EXPECTING": "BODY COMPLETE", "BODY": "COMPLETE", "COMPLETE": "READ"},
    ResponseState: {"WAITING": "RUNNING LOST", "RUNNING": "STARTED LOST", "STARTED": "ENDED CUT"},
}


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[Enum, Enum]]]:
    """The transitions of all connections and cycles of a test."""
    transitions: set[tuple[Enum, Enum]] = set()

    def observe(self: Any, name: str, value: Any) -> None:
        if name in MEMBERS:
            before = getattr(self, name, None)
            if before is not None and before is not value:
                transitions.add((before, value))
        object.__setattr__(self, name, value)

    for observed_class in (HTTPConnection, Cycle):
        monkeypatch.setattr(observed_class, "__setattr__", observe)
    yield transitions
    allowed = {
        (kind[before], kind[after])
        for kind, rows in TRANSITIONS.items()
        for before, names in rows.items()
        for after in names.split()
    }
    assert transitions <= allowed, transitions - allowed


@pytest.mark.parametrize("parser", ["httptools", "h11"])
@pytest.mark.parametrize("end", ["lost", "shutdown", "refused", "close_soon"])
async def test_all_transitions_are_in_the_tables(parser: Any, end: str, observed: set[tuple[Enum, Enum]]) -> None:
    config = configured(parser, Limits(message_seconds=MESSAGE_SECONDS))
    for names, half_closes in itertools.product(PIPELINES, [True, False]):
        data = b"".join(COMPLETE[name] for name in names)
        for size in {1, 20, len(data) // 2, len(data) - 1, len(data)}:
            connection = Connection(config, half_closes=half_closes)
            connection.receive(data[:size])
            if size % 2:
                await connection.turns()
            if end == "shutdown":
                connection.protocol.shutdown()
            elif end == "close_soon":
                connection.protocol.close_soon()
            elif end == "refused":
                connection.protocol.refuse_unfinished(is_caller_limit=True)
            connection.receive(data[size:])
            await connection.turns()
            connection.transport.abort()
            await connection.turns()
    assert observed


def test_a_header_in_time_ends_the_hurry_of_a_server_that_stops(observed: set[tuple[Enum, Enum]]) -> None:
    clock = Clock()

    async def stop() -> None:
        connection = Connection(configured("httptools", Limits(message_seconds=MESSAGE_SECONDS)), half_closes=True)
        connection.protocol.shutdown()
        connection.receive(COMPLETE["chunked"][:-5])
        await clock.pass_time(LAST_REQUEST_SECONDS, connection)
        await clock.pass_time(MESSAGE_SECONDS - 1, connection)
        connection.receive(COMPLETE["chunked"][-5:])
        await connection.turns()
        assert connection.transport.written.startswith(b"HTTP/1.1 200 OK")
        connection.transport.abort()

    with contextlib.closing(clock.loop):
        clock.loop.run_until_complete(stop())
    assert {(Ending.OPEN, Ending.HURRIED), (Ending.HURRIED, Ending.LAST)} <= observed


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_the_docstring_describes_each_state(kind: type[Enum]) -> None:
    assert all(f"\n| {state.name} |" in (states.__doc__ or "") for state in kind)

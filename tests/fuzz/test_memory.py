"""The most memory that one caller makes a server use, by one fixed sequence; `fuzz/memory.py` tries random ones."""

from __future__ import annotations

import sys

import pytest

from fuzz.memory import MAX_GROWTH, MOVES, attack

pytestmark = pytest.mark.slow("Thousands of random inputs are compared.")

SEQUENCE = [
    ("begin_sessions", 200),
    ("use_sessions", 200),
    ("create_large_tasks", 10),
    ("keep_results", 10),
    ("begin_bodies", 30),
    ("run_large_calls", 20),
    ("run_calls_of_many_values", 20),
    ("store_events", 10),
    ("subscribe", 20),
    ("listen", 100),
    ("open_sse", 200),
]
"""Without limits the server would hold about 700 MiB."""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read in /proc")
async def test_one_caller_makes_a_server_hold_no_more_than_its_share() -> None:
    assert {name for name, _ in SEQUENCE} <= set(MOVES)
    growth = await attack(SEQUENCE)
    assert max(growth) < 2 * MAX_GROWTH, growth  # a machine under load frees later what the server has dropped

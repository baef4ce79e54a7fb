"""How much the benchmarks measure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: Rounds of load for each row. Each round loads all targets in turn.
        seconds: Length of a round for one target.
        warm_up: Length of the first round, which does not count.
        concurrency: Numbers of connections of ``tools/call``.
        tools: Numbers of tools of ``tools/list``.
        starts: Process starts for each target.
        requests: Numbers of requests after which memory is read.
        sessions: Sessions that are opened to measure the memory of one.
        streams: Streams that receive a change at once.
    """

    rounds: int
    seconds: int
    warm_up: int = 1
    concurrency: tuple[int, ...] = (1, 16, 64)
    tools: tuple[int, ...] = (10, 100, 1000)
    starts: int = 9
    requests: tuple[int, int] = (10_000, 50_000)
    sessions: int = 5000
    streams: int = 2000

    @staticmethod
    def show(row: dict[str, Any]) -> None:
        """Print a row as soon as it is measured."""
        print(json.dumps(row), flush=True)

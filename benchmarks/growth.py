"""The cost of one call beside more and more tools, sessions, streams or principals."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from callers import token
from streams import open_streams
from targets import LOAD_CORE, Target, running
from traffic import HANDSHAKE, PER_REQUEST, Request, call, check_call, initialize, load, many, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plan import Plan

COUNTS = (1, 10, 100, 1000, 10_000)
STREAMS = (1, 10, 100, 1000, 2000)
CONNECTIONS = 16


def growing(plan: Plan) -> list[dict[str, Any]]:
    """Measure the CPU time of the server for a `tools/call` of add, by the number of things of each kind."""
    kinds: dict[str, tuple[tuple[int, ...], Callable[[Plan, int], float]]] = {
        "tools": (COUNTS[1:], _beside_tools),
        "sessions": (COUNTS, _beside_sessions),
        "streams": (STREAMS, _beside_streams),
        "principals": (COUNTS[:4], _for_principals),
    }
    rows = []
    for kind, (counts, measure) in kinds.items():
        times = {count: measure(plan, count) for count in counts}
        first = times[counts[0]]
        row = {
            "row": "growth",
            "kind": kind,
            "microseconds": {str(count): round(took, 1) for count, took in times.items()},
            "times_the_first": {str(count): round(took / first, 2) for count, took in times.items()},
        }
        plan.show(row)
        rows.append(row)
    return rows


def _beside_tools(plan: Plan, count: int) -> float:
    with running(("funcmcp",), BENCH_TOOLS=count) as targets:
        return _microseconds(plan, targets["funcmcp"], call(PER_REQUEST, "add"))


def _beside_sessions(plan: Plan, count: int) -> float:
    with running(("funcmcp",)) as targets:
        target = targets["funcmcp"]
        many(target.port, initialize(), count)
        return _microseconds(plan, target, call(HANDSHAKE, "add", open_session(target.port)))


def _beside_streams(plan: Plan, count: int) -> float:
    with running(("funcmcp",), BENCH_STREAMS=1) as targets:
        target = targets["funcmcp"]
        with _streams(target, count):
            return _microseconds(plan, target, call(PER_REQUEST, "add"))


def _for_principals(plan: Plan, count: int) -> float:
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, {"kid": "bench"})
    with running(("funcmcp",), BENCH_JWK=json.dumps(key.as_dict(private=False))) as targets:
        message = call(PER_REQUEST, "add")
        signed = [
            Request({**message.headers, "Authorization": f"Bearer {text}"}, message.body)
            for text in (token(key, subject=f"user-{number}") for number in range(count))
        ]
        return _microseconds(plan, targets["funcmcp"], *signed)


def _microseconds(plan: Plan, target: Target, *messages: Request) -> float:
    """Return the CPU time of the server for one request of several in turn, the median of all rounds."""
    check_call(target.port, messages[0], "add")
    took = []
    for turn in range(plan.rounds + 1):
        before = target.cpu()
        measured = load(
            target.port,
            messages,
            connections=CONNECTIONS,
            seconds=plan.seconds if turn else plan.warm_up,
            core=LOAD_CORE,
        )
        if turn:
            took.append((target.cpu() - before) / measured.requests * 1e6)
    return median(took)


@contextmanager
def _streams(target: Target, count: int) -> Iterator[None]:
    """Hold streams open, in a thread with an event loop, until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    opened, closing = threading.Event(), asyncio.Event()

    async def hold() -> None:
        async with open_streams(target, count):
            opened.set()
            await closing.wait()

    future = asyncio.run_coroutine_threadsafe(hold(), loop)
    try:
        while not opened.wait(0.05):
            if future.done():
                future.result()
        yield
    finally:
        loop.call_soon_threadsafe(closing.set)
        future.result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

"""Many open `subscriptions/listen` streams: what each takes, and how long one change takes to reach them all."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from targets import LOAD_CORE, RUN, running
from traffic import DISH, PER_REQUEST, Request, request, send

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from plan import Plan
    from targets import Target

Row = dict[str, Any]
_WARM = 50
_SECONDS = 30
_LISTEN = request(PER_REQUEST, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [DISH]}})
_CHANGE = request(PER_REQUEST, "tools/call", {"name": "change", "arguments": {}})


def listening(plan: Plan) -> list[Row]:
    """Measure resident memory for each stream, and the time from a change's request to its arrival on each stream."""
    rows = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * plan.streams)), hard))  # servers inherit it
    for server in ("funcmcp", RUN):
        with running((server,), BENCH_STREAMS=1) as targets, _on_core(LOAD_CORE):
            rows.append({"server": server, **asyncio.run(_measure(plan, targets[server]))})
        plan.show(rows[-1])
    return rows


async def _measure(plan: Plan, target: Target) -> Row:
    async with open_streams(target, _WARM) as streams:  # what the first ones take is not theirs alone
        await _tell(target, streams)
    before = target.memory()
    async with open_streams(target, plan.streams) as streams:
        opened = target.memory()
        arrivals = [took for _ in range(plan.rounds) for took in await _tell(target, streams)]
    return {
        "row": "subscriptions/listen",
        "era": PER_REQUEST,
        "streams": plan.streams,
        "kib_per_stream": round((opened - before) / plan.streams, 2),
        "arrival_p50_ms": round(median(arrivals) * 1000, 1),
        "arrival_p99_ms": round(quantiles(arrivals, n=100)[98] * 1000, 1),
    }


async def _tell(target: Target, streams: list[asyncio.StreamReader]) -> list[float]:
    """Change the resource once; return the seconds after which each stream told of it."""
    started = time.perf_counter()

    async def arrival(stream: asyncio.StreamReader) -> float:
        await _next(stream, b"notifications/resources/updated")
        return time.perf_counter() - started

    waiting = [asyncio.ensure_future(arrival(stream)) for stream in streams]
    status, _, body = await asyncio.to_thread(send, target.port, _CHANGE)
    if status != 200 or json.loads(body)["result"].get("isError"):
        raise RuntimeError(f"change was answered {status}: {body!r}")
    return await asyncio.gather(*waiting)


async def _next(stream: asyncio.StreamReader, method: bytes) -> None:
    """Read up to the next event, and see to it that it is the one that is wanted."""
    async with asyncio.timeout(_SECONDS):
        while True:
            line = await stream.readline()
            if line.startswith(b"data: "):
                break
            if not line:
                raise RuntimeError("A stream ended.")
    if method not in line:
        raise RuntimeError(f"A stream said {line!r}.")


@asynccontextmanager
async def open_streams(target: Target, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open streams, one connection for each, until the block ends."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            stack.push_async_callback(_close, writer)
            writer.write(_bytes_of(_LISTEN, target.port))
            await _next(reader, b"notifications/subscriptions/acknowledged")
            opened.append(reader)
        yield opened


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


def _bytes_of(message: Request, port: int) -> bytes:
    body = message.body.encode()
    headers = {"Host": f"127.0.0.1:{port}", **message.headers, "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


@contextmanager
def _on_core(core: int) -> Iterator[None]:
    """Keep this process on one core, so that it does not disturb the server."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)

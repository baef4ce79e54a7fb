"""Where the CPU time of a call through the proxy goes, by part of the code, and how many Python functions run there.

The proxy runs in this process without a socket of its own, in front of a server in another process. The profiler
counts CPU time and makes Python functions slower than the rest, so the shares count and not the microseconds; the time
without it is in the first line of each table. `python benchmarks/proxy_costs.py` writes `results/proxy_costs.md`.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop
from targets import HERE, RUN, Target
from traffic import ERAS, HANDSHAKE, Request, call, initialize

from funcmcp import MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp.testing import MemoryRequest
from funcmcp.upstreams import Upstream

if TYPE_CHECKING:
    from funcmcp._serving.composition import ServerRuntime
    from funcmcp._transports.http.messages import HttpResponse

CALLS, ROUNDS = 300, 7
PARTS = {
    "_client/http_connections": "sending and reading bytes (`_client/http_connections.py`, httptools, the socket)",
    "_client/http_exchange": "redirections, limits and places of an endpoint (`_client/http_exchange.py`)",
    "_client/": "the client: messages, headers, revisions (`_client`, the rest)",
    "_upstreams/": "the proxy: names, connections, questions, time limits (`_upstreams`)",
    "_server/": "the server: dispatch, routes, calls (`_server`)",
    "_transports/": "the server: HTTP (`_transports`)",
    "_protocol/": "encoding, headers and envelopes (`_protocol`, pydantic-core)",
    "funcmcp/": "the other packages of funcmcp",
    "asyncio/": "asyncio: time limits, tasks and locks",
    "": "the rest",
}
"""Parts of the code by a part of the path of their files; the first that fits counts."""


async def exchange(runtime: ServerRuntime, message: Request) -> HttpResponse:
    """Send a request to the proxy."""
    fields = {"host": "127.0.0.1", "content-length": str(len(message.body)), **message.headers}
    pairs = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    return await runtime.exchange(MemoryRequest("POST", "/mcp", pairs, message.body.encode()))


async def measure(era: str, url: str) -> list[str]:
    """Return the table of an era."""
    proxy = MCPServer("proxy")
    proxy.mount(Upstream(url))
    runtime = runtime_of(proxy)
    await runtime.services.lifespans.enter()
    try:
        session = None
        if era == HANDSHAKE:
            session = dict((await exchange(runtime, initialize())).headers)["mcp-session-id"]
        message = call(era, "add", session)
        if b'"result":3' not in (body := (await exchange(runtime, message)).body):  # type: ignore[operator]
            raise RuntimeError(f"add was answered {body!r}")
        times = [await _cpu_microseconds(runtime, message) for _ in range(ROUNDS)]
        profile = cProfile.Profile(time.process_time)
        profile.enable()
        for _ in range(CALLS):
            await exchange(runtime, message)
        profile.disable()
    finally:
        await runtime.services.lifespans.leave()
    return _table(era, min(times), pstats.Stats(profile))


async def _cpu_microseconds(runtime: ServerRuntime, message: Request) -> float:
    before = time.process_time()
    for _ in range(CALLS):
        await exchange(runtime, message)
    return (time.process_time() - before) / CALLS * 1e6


def _table(era: str, microseconds: float, stats: Any) -> list[str]:
    seconds: dict[str, float] = defaultdict(float)
    functions: dict[str, int] = defaultdict(int)
    for (file, _, _), (_, number, own, _, callers) in stats.stats.items():
        if file == "~":  # a function in C counts for those who call it
            for (caller_file, _, _), (_, _, caller_own, _) in callers.items():
                seconds[_part_of(caller_file)] += caller_own
        else:
            seconds[_part_of(file)] += own
            functions[_part_of(file)] += number
    total = sum(seconds.values())
    lines = ["", f"## {era}: {microseconds:.0f} µs of CPU time for a call", ""]
    lines += ["| part | share | µs | Python functions |", "|---|---|---|---|"]
    for part, took in sorted(seconds.items(), key=lambda item: -item[1]):
        share = took / total
        count = functions[part] / CALLS
        lines.append(f"| {part} | {share:.0%} | {share * microseconds:.0f} | {count:.0f} |")
    return lines


def _part_of(file: str) -> str:
    path = file.replace("\\", "/")
    return next(part for place, part in PARTS.items() if place in path)


def main() -> None:
    """Write the tables."""
    lines = ["# Where the CPU time of a call through the proxy goes", "", (__doc__ or "").partition("\n\n")[2].strip()]
    for era in ERAS:
        server = Target(RUN, BENCH_REVISIONS=era).wait()
        try:
            lines += uvloop.run(measure(era, f"http://127.0.0.1:{server.port}/mcp"))
        finally:
            server.stop()
    text = "\n".join(lines) + "\n"
    Path(HERE / "results/proxy_costs.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()

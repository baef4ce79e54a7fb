"""What a proxy adds to a call: funcmcp's, those of others, and a forwarder of bytes in front of the same server.

The load generator and the server share one core, and the proxy has the other. With one connection the time that a proxy
adds is the difference of the medians with it and without it; with sixteen, the proxy's core is the limit of the rate.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING, Any

from targets import HERE, LOAD_CORE, RUN, SERVERS, Target, rotated
from traffic import ERAS, HANDSHAKE, Load, Request, call, check_call, load, open_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plan import Plan

Row = dict[str, Any]
DIRECT, FORWARDER, FUNCMCP, FASTMCP, MCP_PROXY = "directly", "forwarder", "funcmcp", "fastmcp", "mcp-proxy"
PACKAGES = {FASTMCP: "fastmcp", MCP_PROXY: "mcp_proxy"}
CONNECTIONS = (1, 16)


def calls(plan: Plan) -> list[Row]:
    """Measure `tools/call` of add over HTTP and through proxies, in both eras, and in front of a process on stdio."""
    pythons = {name: _environment(name) for name in PACKAGES}
    rows = []
    for era in ERAS:
        with ExitStack() as stack:
            rows += _measure(plan, era, "http", _over_http(stack, era, pythons))
    with ExitStack() as stack:
        rows += _measure(plan, HANDSHAKE, "stdio", _over_stdio(stack, pythons))
    return rows


def _over_http(stack: ExitStack, era: str, pythons: dict[str, Path]) -> dict[str, Target]:
    """Start a server that speaks one era, and proxies in front of it."""
    server = _started(stack, Target(RUN, core=LOAD_CORE, BENCH_REVISIONS=era))
    url = json.dumps(f"http://127.0.0.1:{server.port}/mcp")
    forwarder = [sys.executable, "forwarder.py"]
    return {
        DIRECT: server,
        FORWARDER: _started(stack, Target(FORWARDER, lambda port: [*forwarder, str(port), str(server.port)])),
        FUNCMCP: _started(stack, Target(f"{RUN} proxy", BENCH_UPSTREAM=url)),
        FASTMCP: _started(stack, Target(FASTMCP, _uvicorn(pythons[FASTMCP], "fastmcp_proxy"), BENCH_UPSTREAM=url)),
    }


def _over_stdio(stack: ExitStack, pythons: dict[str, Path]) -> dict[str, Target]:
    """Start proxies that start the server, on both cores."""
    server = [sys.executable, "-m", "funcmcp", "run", str(SERVERS / "funcmcp_server.py:app"), "--stdio"]
    command = json.dumps(["taskset", "-c", str(LOAD_CORE), *server])
    mcp_proxy = [str(pythons[MCP_PROXY].with_name("mcp-proxy")), "--pass-environment"]
    arguments = ["taskset", "--", "-c", str(LOAD_CORE), *server]
    return {
        FUNCMCP: _started(stack, Target(f"{RUN} proxy", BENCH_UPSTREAM=command)),
        FASTMCP: _started(stack, Target(FASTMCP, _uvicorn(pythons[FASTMCP], "fastmcp_proxy"), BENCH_UPSTREAM=command)),
        MCP_PROXY: _started(stack, Target(MCP_PROXY, lambda port: [*mcp_proxy, "--port", str(port), *arguments])),
    }


def _uvicorn(python: Path, name: str) -> Callable[[int], list[str]]:
    """Return the command of a server in uvicorn for a port."""
    options = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    return lambda port: [str(python), "-m", "uvicorn", f"{name}_server:app", "--port", str(port), *options]


def _started(stack: ExitStack, target: Target) -> Target:
    stack.callback(target.stop)
    return target.wait()


def _environment(name: str) -> Path:
    """Return the interpreter of an environment with a proxy of another project, which is made if necessary."""
    requirements = HERE / f"requirements-{name}{'' if name == MCP_PROXY else '-proxy'}.txt"
    environment = f"bench-{name}"
    setup = [str(HERE.parent / "scripts/setup-environment.sh"), environment, str(requirements)]
    subprocess.run([*setup, "--requirement", str(requirements)], check=True)
    return HERE.parent / ".servers" / environment / "bin/python"


def _measure(plan: Plan, era: str, upstream: str, targets: dict[str, Target]) -> list[Row]:
    messages = {name: _call(target, era) for name, target in targets.items()}
    rows = []
    for connections in CONNECTIONS:
        rounds, processor_times = _rounds(plan, targets, messages, connections)
        row: Row = {"row": "proxy", "era": era, "upstream": upstream, "connections": connections}
        row["rate"] = {name: round(median(loads[name].rate for loads in rounds), 1) for name in targets}
        row["p50_ms"] = {name: round(median(loads[name].p50 for loads in rounds), 3) for name in targets}
        row["cpu_microseconds"] = {name: round(median(times[name] for times in processor_times), 1) for name in targets}
        if DIRECT in targets:
            row["added_ms"] = {
                name: round(median(loads[name].p50 - loads[DIRECT].p50 for loads in rounds), 3)
                for name in targets
                if name != DIRECT
            }
        rows.append(row)
        plan.show(row)
    return rows


def _rounds(
    plan: Plan, targets: dict[str, Target], messages: dict[str, Request], connections: int
) -> tuple[list[dict[str, Load]], list[dict[str, float]]]:
    """Load every target in turn, round after round; the first one only warms up."""
    rounds: list[dict[str, Load]] = []
    processor_times: list[dict[str, float]] = []
    for turn in range(plan.rounds + 1):
        loads, microseconds = {}, {}
        for name in rotated(tuple(targets), turn):
            target, before = targets[name], targets[name].cpu()
            seconds = plan.seconds if turn else plan.warm_up
            loads[name] = load(target.port, messages[name], connections=connections, seconds=seconds, core=LOAD_CORE)
            microseconds[name] = (target.cpu() - before) / max(loads[name].requests, 1) * 1e6
        if turn:
            rounds.append(loads)
            processor_times.append(microseconds)
    return rounds, processor_times


def _call(target: Target, era: str) -> Request:
    session = open_session(target.port) if era == HANDSHAKE else None
    message = call(era, "add", session)
    check_call(target.port, message, "add")
    return message

"""Measure funcmcp beside its peers and two limits, in one run with alternated rounds.

Needs Linux with two cores, taskset and wrk. The peers are installed in `benchmarks/.venv` at the first run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PYTHON = HERE / ".venv" / "bin" / "python"
PACKAGES = ("funcmcp", "mcp", "fastmcp", "pydantic", "uvicorn", "uvloop", "httptools")
MEASUREMENTS = ("calls", "tools", "resources", "prompts", "imports", "starts", "memory", "streams", "callers", "azure")


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: rounds of load for each row, each target in turn.
        seconds: length of a round for one target.
        warm_up: length of the first round, which does not count.
        concurrency: connections of `tools/call`.
        tools: numbers of tools of `tools/list`.
        starts: process starts for each target.
        requests: marks at which memory is read.
        sessions: sessions that are opened to measure what one takes.
        streams: streams that listen when one change is told to all of them.
    """

    rounds: int
    seconds: int
    warm_up: int = 1
    concurrency: tuple[int, ...] = (1, 16, 64)
    tools: tuple[int, ...] = (10, 100, 1000)
    starts: int = 9
    requests: tuple[int, int] = (10_000, 50_000)
    sessions: int = 5000
    streams: int = 500

    @staticmethod
    def show(row: dict[str, Any]) -> None:
        """Print a row as soon as it is there."""
        print(json.dumps(row), flush=True)


def main() -> None:
    """Run what is asked for and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few minutes; its figures mean little")
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="one kind of row; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    if Path(sys.prefix) != PYTHON.parent.parent.resolve():
        again_with_the_peers(Path(__file__))
    if shutil.which("wrk") is None or shutil.which("taskset") is None:
        sys.exit("The benchmarks need wrk and taskset: apt-get install wrk util-linux")
    plan = Plan(options.rounds, options.seconds)
    if options.quick:
        plan = Plan(1, 1, 1, (16,), (10, 1000), starts=2, requests=(2000, 4000), sessions=500, streams=100)
    write(measure(plan, tuple(options.only or MEASUREMENTS)))


def measure(plan: Plan, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the rows that are wanted."""
    import callers
    import startup
    import streams
    import throughput
    import workers

    kinds = {
        "calls": throughput.calls,
        "tools": throughput.many_tools,
        "resources": throughput.resources,
        "prompts": throughput.prompts,
        "imports": startup.imports,
        "starts": startup.first_calls,
        "memory": startup.memory,
        "streams": streams.listening,
        "callers": callers.signed,
        "azure": workers.function_apps,
    }
    return [row for name in wanted for row in kinds[name](plan)]


def write(rows: list[dict[str, Any]]) -> None:
    """Write the numbers, the table and the plot."""
    from importlib.metadata import version

    import report

    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {name: version(name) for name in PACKAGES},
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (RESULTS / "table.md").write_text(report.table(results))
    report.plot(results, RESULTS / "plot.png")
    print((RESULTS / "table.md").read_text())


def again_with_the_peers(program: Path) -> NoReturn:
    """Install the peers if need be, and run a program again with them."""
    wanted = (HERE / "requirements.txt").read_text()
    mark = HERE / ".venv" / ".ready"
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", HERE / ".venv"], check=True)
        install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-r", str(HERE / "requirements.txt"), "-e", f"{HERE.parent}[auth]"], check=True)
        mark.write_text(wanted)
    os.execv(PYTHON, [str(PYTHON), str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()

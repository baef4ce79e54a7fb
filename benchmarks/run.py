"""Measure funcmcp, its peers and two limits in one run with alternating rounds.

Requires Linux with two cores, taskset and wrk. The first run installs the peers in `benchmarks/.venv-peers-VERSION`.
The results of each version of Python are stored in a file of their own; the table shows those of all versions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from peers import PACKAGES, VERSION, run_with_peers
from plan import Plan

RESULTS = Path(__file__).parent / "results"
MEASUREMENTS = (
    "calls",
    "varied",
    "tools",
    "resources",
    "prompts",
    "imports",
    "starts",
    "memory",
    "streams",
    "callers",
    "growth",
    "azure",
    "proxies",
)


def main() -> None:
    """Run the measurements and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a run of a few minutes for a test of the benchmarks; its figures are not reliable",
    )
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="measure this only; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    run_with_peers(Path(__file__))
    if shutil.which("wrk") is None or shutil.which("taskset") is None:
        sys.exit("The benchmarks need wrk and taskset: apt-get install wrk util-linux")
    plan = Plan(options.rounds, options.seconds)
    if options.quick:
        plan = Plan(1, 1, 1, (16,), (10, 1000), starts=2, requests=(2000, 4000), sessions=500, streams=100)
    write(measure(plan, tuple(options.only or MEASUREMENTS)))


def measure(plan: Plan, names: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the named measurements."""
    import callers
    import growth
    import proxies
    import startup
    import streams
    import throughput
    import workers
    from targets import no_sleep

    kinds = {
        "calls": throughput.calls,
        "varied": throughput.varied,
        "tools": throughput.many_tools,
        "resources": throughput.resources,
        "prompts": throughput.prompts,
        "imports": startup.imports,
        "starts": startup.first_calls,
        "memory": startup.memory,
        "streams": streams.listening,
        "callers": callers.signed,
        "growth": growth.growing,
        "azure": workers.function_apps,
        "proxies": proxies.calls,
    }
    with no_sleep():
        return {name: kinds[name](plan) for name in names}


def write(measured: dict[str, list[dict[str, Any]]]) -> None:
    """Write the numbers, the tables and the plots; the other measurements keep the numbers of an earlier run."""
    from importlib.metadata import version

    import report

    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"results-{VERSION}.json"
    earlier = json.loads(file.read_text())["measurements"] if file.exists() else {}
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "measurements": {**earlier, **measured},
    }
    file.write_text(json.dumps(results, indent=1) + "\n")
    report.plot(results, RESULTS / f"plot-{VERSION}.png")
    report.plot_growth(results, RESULTS / f"growth-{VERSION}.png")
    versions = [json.loads(file.read_text()) for file in sorted(RESULTS.glob("results-*.json"))]
    (RESULTS / "table.md").write_text("\n".join(map(report.table, versions)))
    print(report.table(results))


if __name__ == "__main__":
    main()

"""Counts the checks of the official suite that pass with a proxy in front of a server and without one.

Run it as ``python -m tests.conformance.through_proxy URL ...``. Each URL may be ``NAME=URL``. It prints a table.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conformance.suite import disagreements, run
from tests.proxy.serving import proxy
from tests.proxy.wire import ERAS


def main(*upstreams: str) -> None:
    """Print a row for each upstream and era of the client."""
    print("| upstream | options | directly: scenarios, checks, failed, warnings, of tasks | through the proxy |")
    print("|---|---|---|---|")
    for upstream in upstreams:
        name, _, url = upstream.rpartition("=")
        for era in ERAS:
            with tempfile.TemporaryDirectory() as folder, proxy({"url": url}) as served:
                options = ["--requirements", era]
                direct = run("conformance-0.2", url, options, Path(folder, "direct"))
                proxied = run("conformance-0.2", served.url, options, Path(folder, "proxied"))
            cells = [", ".join(report.cells()) for report in (direct, proxied)]
            print(f"| {name or url} | `--requirements {era}` | {' | '.join(cells)} |", flush=True)
            failing = {(finding.scenario, finding.check) for finding in direct.findings}
            expected = [f"{scenario}:{check}" for scenario, check in failing]
            for line in disagreements(proxied, expected):
                print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs the differential test: `python -m tests.differential.run [CALLS [SEED]]`.

It prints the number of comparisons with each judge, how many disagreements each rule explains, and all disagreements
that no rule explains.
"""

from __future__ import annotations

import asyncio
import sys
import time

from tests.differential.comparison import compared


def main(calls: int = 20_000, seed: int | None = None) -> int:
    """Run the test and print the report; return the exit status."""
    seed = int(time.time()) if seed is None else seed
    report = asyncio.run(compared(seed, calls))
    print(f"Seed {seed}: {report.calls} calls, of which funcmcp accepted {report.accepted}.\n")
    print(report.table())
    for disagreement in report.unexplained:
        print(f"\n{disagreement}")
    print(f"\n{len(report.unexplained)} disagreements without a rule.")
    return int(bool(report.unexplained))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

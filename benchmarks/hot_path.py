"""Measure the CPU time of one call in this process's event loop, without sockets.

`hot_path.py --before DIRECTORY` compares two source trees: this one and another checkout. Each tree runs in a separate
process. The rounds alternate between them, so that other programs on the machine disturb both alike. The table has the
median CPU time of a call in microseconds for each case, and the median of the ratios within each round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent


class Tree:
    """A source tree whose calls are measured in a separate process.

    Args:
        root: The root of the checkout.

    Attributes:
        cases: The names of the cases.
    """

    def __init__(self, root: Path) -> None:
        paths = [root / "src", HERE, HERE / "servers"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "calls_in_process.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.cases: list[str] = self._answer()

    def measure(self, case: str, count: int) -> float:
        """Return the CPU time of one call in microseconds."""
        assert self._process.stdin is not None
        print(json.dumps([case, count]), file=self._process.stdin, flush=True)
        microseconds: float = self._answer()
        return microseconds

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("The process that makes the calls has ended.")
        return json.loads(line)


def main() -> None:
    """Measure the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the root of another checkout, with which this one is compared")
    parser.add_argument("--only", default="", help="measure the cases that contain this text")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000, help="calls of a case in a round")
    options = parser.parse_args()
    roots = [HERE.parent] if options.before is None else [options.before, HERE.parent]
    trees = [Tree(root) for root in roots]
    cases = [case for case in trees[0].cases if options.only in case]
    times: dict[str, list[list[float]]] = {case: [[] for _ in trees] for case in cases}
    for turn in range(options.rounds + 1):
        for case in cases:
            order = list(enumerate(trees))
            for index, tree in order if turn % 2 else reversed(order):
                took = tree.measure(case, options.calls)
                if turn:  # the first round warms up
                    times[case][index].append(took)
    for tree in trees:
        tree.stop()
    print(table(times))


def table(times: dict[str, list[list[float]]]) -> str:
    """Return the table as Markdown."""
    is_comparison = len(next(iter(times.values()))) > 1
    columns = ["before", "now", "ratio"] if is_comparison else ["us"]
    lines = [f"| case | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for case, measured in times.items():
        cells = [f"{median(values):.2f}" for values in measured]
        if is_comparison:
            cells.append(f"{median(now / before for before, now in zip(*measured, strict=True)):.3f}")
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Measure the CPU time of one call in this process's event loop, without sockets.

`hot_path.py --before DIRECTORY` compares two source trees: this one and another checkout. Each tree runs in a separate
process. The rounds alternate between them, so that other programs on the machine disturb both alike. The table has the
median CPU time of a call in microseconds for each case, and the median of the ratios within each round.

`--count` prints the numbers of Python functions that a call runs, and of their modules, instead. They are the same on
every machine. With `--only CASE` it also lists the functions.
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
        paths = [root / "src", HERE, HERE / "servers", HERE.parent]
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

    def count(self, case: str) -> list[str]:
        """Return the Python functions that one call runs, each with its module in brackets."""
        assert self._process.stdin is not None
        print(json.dumps([case, 0]), file=self._process.stdin, flush=True)
        calls: list[str] = self._answer()
        return calls

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
    parser.add_argument("--count", action="store_true", help="count the calls of Python functions")
    options = parser.parse_args()
    roots = [HERE.parent] if options.before is None else [options.before, HERE.parent]
    trees = [Tree(root) for root in roots]
    cases = [case for case in trees[0].cases if options.only in case]
    if options.count:
        print(counts(trees, [case for case in cases if "plain" not in case]))  # a call in a thread waits for it
        return
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


def counts(trees: list[Tree], cases: list[str]) -> str:
    """Return the numbers of calls and modules of each tree as Markdown, with the calls of the last one if few cases."""
    lines = ["| case | " + " | ".join(["calls, modules"] * len(trees)) + " |", "|---" * (len(trees) + 1) + "|"]
    calls: list[str] = []
    for case in cases:
        cells = []
        for tree in trees:
            calls = tree.count(case)
            cells.append(f"{len(calls)}, {len({call.rpartition('(')[2] for call in calls})}")
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join([*lines, *(calls if len(cases) == 1 else ())])


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

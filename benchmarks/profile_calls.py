"""Profile the hot path: calls of `add` in both eras, without sockets, with py-spy.

Writes `results/profile-VERSION.txt`, the share of each function in the time, and `results/profile-VERSION.svg`, a flame
graph, which also has the imports before the calls. The first run installs py-spy in `benchmarks/.venv-profile`.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PY_SPY = HERE / ".venv-profile" / "bin" / "py-spy"
REQUIREMENT = "py-spy==0.4.3"
RATE = 500
"""Samples per second."""

FIRST = "exchange_case.<locals>.run "
"""The function that makes the calls, of which everything in the text is a part."""

SHOWN = 60
"""Functions in the text."""


def main() -> None:
    """Write both files for the Python that runs this program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the directory of the two files")
    options = parser.parse_args()
    if not PY_SPY.exists():
        subprocess.run([sys.executable, "-m", "venv", PY_SPY.parent.parent], check=True)
        subprocess.run([HERE.parent / "scripts" / "install.sh", PY_SPY.parent / "python", REQUIREMENT], check=True)
    name = f"profile-{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.svg"
        record("flamegraph", options.seconds, graph)
        (options.results / f"{name}.svg").write_text(with_title(graph.read_text()))
        raw = Path(folder) / "raw.txt"
        record("raw", options.seconds, raw)
        (options.results / f"{name}.txt").write_text(text_of(raw.read_text()))


def record(form: str, seconds: int, output: Path) -> None:
    """Run the calls under py-spy and write its output."""
    paths = [HERE.parent / "src", HERE, HERE / "servers"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    spy = [str(PY_SPY), "record", "--format", form, "--rate", str(RATE), "--output", str(output), "--function"]
    calls = [sys.executable, str(HERE / "calls_in_process.py"), "--seconds", str(seconds)]
    subprocess.run(
        [*spy, "--", *calls], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def with_title(graph: str) -> str:
    """Return a flame graph with a title in place of the command, which names paths of this machine."""
    return re.sub(r"[^<>]*bin/py-spy [^<]*", f"Calls of add, Python {platform.python_version()}", graph)


def text_of(raw: str) -> str:
    """Return the share of each function in the time of the calls, from lines with a stack and its number of samples.

    The imports before the calls are left out.
    """
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    samples = 0
    for line in raw.splitlines():
        stack, _, number = line.rpartition(" ")
        functions = stack.split(";")
        starts = [index for index, function in enumerate(functions) if function.startswith(FIRST)]
        if not starts:
            continue
        samples += int(number)
        own[functions[-1]] += int(number)
        for function in set(functions[starts[0] :]):
            total[function] += int(number)
    lines = [
        f"Python {platform.python_version()}, calls of add in both eras, {samples} samples.",
        "Per cent of the time, with what a function calls and without:",
        "",
        "  total   self  function",
    ]
    for function, count in total.most_common(SHOWN):
        lines.append(f"{count / samples:7.1%} {own[function] / samples:6.1%}  {function}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

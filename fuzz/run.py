"""Runs targets, one after the other, and writes a line about each into a log: run.py [TARGET...].

The environment variable ``FUZZ_RUNS`` says how many inputs each of them gets, 1,000,000 by default. What was found to
reach new lines is kept in `.fuzz/corpus` for the next run, and what made a target fail in `.fuzz/crashes`.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEEDS, OUTPUT = ROOT / "fuzz" / "corpus", ROOT / ".fuzz"
TARGETS = tuple(sorted(path.name for path in SEEDS.iterdir() if path.is_dir()))
LOG = OUTPUT / "log.md"
_HEADINGS = ("date", "commit", "target", "inputs", "inputs/s", "crashes", "edges", "kept inputs")
_LAST = re.compile(r"^#(\d+)\s+\w+\s+cov: (\d+) ft: \d+ corp: (\d+)/\S+ .*?exec/s: (\d+)", re.MULTILINE)
_LONGEST, _SECONDS = 3500, 20


def fuzz(target: str, runs: int) -> bool:
    """Run a target and add a line to the log; return whether no input made it fail."""
    corpus, crashes = OUTPUT / "corpus" / target, OUTPUT / "crashes"
    for folder in (corpus, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    options = [f"-runs={runs}", f"-max_len={_LONGEST}", f"-timeout={_SECONDS}", f"-artifact_prefix={crashes}/{target}-"]
    command = [sys.executable, "-m", "fuzz.guided", target, *options, str(corpus), str(SEEDS / target)]
    report = OUTPUT / f"{target}.txt"
    with report.open("w", encoding="utf-8") as output:
        code = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False).returncode
    _log(target, report.read_text(encoding="utf-8", errors="replace"), failed=code != 0)
    return code == 0


def _log(target: str, report: str, *, failed: bool) -> None:
    inputs, edges, corpus_size, speed = (_LAST.findall(report) or [("0", "0", "0", "0")])[-1]
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    row = (today, commit, target, f"{int(inputs):,}", f"{int(speed):,}", str(int(failed)), edges, corpus_size)
    is_new = not LOG.exists()
    with LOG.open("a", encoding="utf-8") as log:
        if is_new:
            log.write(f"| {' | '.join(_HEADINGS)} |\n|{'---|' * len(_HEADINGS)}\n")
        log.write(f"| {' | '.join(row)} |\n")
    print(" ".join(row), "FAILED, see .fuzz" if failed else "", flush=True)


def main() -> int:
    """Run the targets in the arguments, or all targets."""
    runs = int(os.environ.get("FUZZ_RUNS", "1000000"))
    chosen = sys.argv[1:] or TARGETS
    failed = [target for target in chosen if not fuzz(target, runs)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

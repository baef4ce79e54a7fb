"""Lets each client convert and use the tools of all servers, and writes docs/development/clients.md.

Run it with `python -m tests.converters.run`, after scripts/setup-converters.sh.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.converters.libraries import LIBRARIES, REPOSITORY
from tests.converters.report import page
from tests.converters.sources import OWN, PEERS, serve_all
from tests.converters.verdicts import Problem, problems

PAGE = REPOSITORY / "docs" / "development" / "clients.md"


def main() -> int:
    """Write the page; return 1 if a tool of funcmcp is not usable without a known fault of the client."""
    all_problems: list[Problem] = []
    with tempfile.TemporaryDirectory() as folder, serve_all((*OWN, *PEERS), Path(folder)) as served:
        for library in LIBRARIES:
            played = library.play([server.plan for server in served])
            for server, outcome in zip(served, played, strict=True):
                all_problems += problems(library, server, outcome)
            print(library.name, flush=True)
        PAGE.write_text(page(served, all_problems), encoding="utf-8")
    groups = {source.group for source in OWN}
    unexplained = [problem for problem in all_problems if problem.group in groups and problem.fault is None]
    for problem in unexplained:
        print(problem)
    print(f"Wrote {PAGE.relative_to(REPOSITORY)}.")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())

"""Writes the table of docs/development/shutdown.md: `python -m tests.shutdown_table`, or `make shutdown`.

Each cell is a run of its own: a server starts, a client opens a stream, the server is ended. FastMCP runs in the
virtual environment of `scripts/setup-fastmcp.sh`, the official SDK in that of the tests.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.shutdown import ENDS, FASTMCP, IN_FASTAPI, KINDS, SDK, SERVERS, Ending, UnservedError, end, ends_of

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs/development/shutdown.md"
LIMIT_SECONDS = 12.0
_MARKER = "<!-- the table -->\n"
_AT_ONCE = 2
_FUNCMCP_ONLY = {IN_FASTAPI, "funcmcp run"}


class Library(NamedTuple):
    """A library whose application is served."""

    name: str
    code: str | None
    python: Path


LIBRARIES = (
    Library("funcmcp", None, Path(sys.executable)),
    Library("FastMCP", FASTMCP, REPOSITORY / ".servers/fastmcp/bin/python"),
    Library("SDK", SDK, Path(sys.executable)),
)


class Run(NamedTuple):
    """A cell of the table."""

    server: str
    kind: str
    library: Library
    by: str


def main() -> None:
    """Run all cells and write the table."""
    runs = [
        Run(server, kind, library, by) for server in SERVERS for kind in KINDS for library in LIBRARIES for by in ENDS
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        cells = dict(zip(runs, pool.map(_cell, runs), strict=True))
    before, _, _ = PAGE.read_text().partition(_MARKER)
    PAGE.write_text(before + _MARKER + _table(cells))


def _cell(run: Run) -> str:
    is_peer = run.library.code is not None
    if run.by not in ends_of(run.server) or (is_peer and run.server in _FUNCMCP_ONLY):
        return ""
    with TemporaryDirectory() as folder:
        try:
            ending = end(
                run.server,
                run.kind,
                run.by,
                Path(folder),
                code=run.library.code,
                python=run.library.python,
                seconds=LIMIT_SECONDS,
            )
        except UnservedError:
            text = "–"
        else:
            text = _text(ending)
    sys.stderr.write(f"{run.server}, {run.kind}, {run.library.name}, {run.by}: {text}\n")
    return text


def _text(ending: Ending) -> str:
    """Return the seconds, and a letter for each thing that did not happen."""
    words = [f"> {LIMIT_SECONDS:.0f}" if ending.seconds is None else f"{ending.seconds:.1f}"]
    if not ending.lifespan_ended:
        words.append("L")
    if not ending.complete:
        words.append("E")
    return " ".join(words)


def _table(cells: dict[Run, str]) -> str:
    columns = [(library, by) for library in LIBRARIES for by in ENDS]
    lines = [
        "| server | stream | " + " | ".join(f"{library.name}: {by}" for library, by in columns) + " |",
        "|---|---|" + "---|" * len(columns),
    ]
    for server in SERVERS:
        for kind in KINDS:
            texts = [cells[Run(server, kind, library, by)] for library, by in columns]
            lines.append(f"| {server} | {kind} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

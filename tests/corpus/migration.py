"""Migrates the servers of the corpus with `funcmcp migrate --write`, and compares old and new with `funcmcp diff`.

Run it with `python -m tests.corpus.migration [NAME...]`. Without names it writes docs/development/migrate.md.

How it works: the packages are those of `run`. Each is copied to `.corpus/migrated/`, and the copy is rewritten twice,
as `funcmcp migrate --write` does it; the second time nothing may change. Then `funcmcp diff` starts the old and the new
server on stdio, each in the environment of its library and without a network, and makes the calls of servers.toml on
both.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.plan import plan_migration, write_changes
from funcmcp_cli.migrate.verify import REASONS
from funcmcp_cli.migrate.verify import reason_of as deliberate_reason
from tests.corpus.run import REPOSITORY, STORE, Server, install, servers

PAGE = REPOSITORY / "docs" / "development" / "migrate.md"
_SECONDS = 300
_AT_ONCE = 4

_INTRODUCTION = """\
# Migrated servers

`make corpus` copies the published servers of the [corpus](corpus.md) that are written for FastMCP or for the decorators
of the official SDK, rewrites each copy with `funcmcp migrate --write`, and compares the original, on its own library,
with the copy by `funcmcp diff`. Both are served on stdio without a network, and the calls of the corpus are made on
both. A second `funcmcp migrate --write` changes nothing in any of them.

The script writes this page. A difference is breaking if a client of the old server can fail with the new one;
[Comparing servers](../reference/command-line.md#comparing-servers) has the levels.
"""
_HEAD = (
    "| server | version | library | files | calls | breaking | compatible | wording | reasons |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


class MigrationError(Exception):
    """A server could not be migrated, or one of the two did not answer."""


@dataclass
class Trial:
    """What came of migrating one server.

    Attributes:
        server: The server.
        files: The number of files that changed.
        staying: What the report names that is not rewritten.
        calls: The number of calls that were made.
        counts: The numbers of differences, by level.
        reasons: The numbers of breaking differences, by reason.
        unexplained: Breaking differences without a reason.
    """

    server: Server
    files: int = 0
    staying: list[str] = field(default_factory=list)
    calls: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


def eligible() -> list[Server]:
    """Return the servers that `funcmcp migrate` is for: those of FastMCP and of the official SDK's decorators."""
    return [server for server in servers() if not server.library.startswith("low-level")]


def migrated(server: Server) -> tuple[Path, Trial]:
    """Return a migrated copy of a server's package, and what `funcmcp migrate` reported."""
    folder = STORE / "migrated" / f"{server.package.replace('==', '-')}-{server.library.replace(' ', '')}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(server.folder, folder)
    name = server.options["load"].partition(":")[0].partition(".")[0]
    path = folder / name if (folder / name).is_dir() else folder / f"{name}.py"
    plan = plan_migration(path)
    write_changes(plan.changes)
    again = plan_migration(path)
    if again.changes:
        names = ", ".join(change.name for change in again.changes)
        raise MigrationError(f"{server.name}: the second run changes {names}")
    trial = Trial(server, len(plan.changes))
    trial.staying = list(dict.fromkeys(note.text for note in plan.notes if note.level != "moves"))
    return folder, trial


def compared(server: Server) -> Trial:
    """Migrate a server, and compare it with the old one; raise MigrationError."""
    folder, trial = migrated(server)
    calls = [{**call, "arguments": call.get("arguments", {})} for call in server.options.get("calls", [])]
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "calls.json")
        file.write_text(json.dumps(calls), encoding="utf-8")
        sides = [_command(server, place) for place in (server.folder, folder)]
        done = subprocess.run(
            [sys.executable, "-m", "funcmcp", "diff", *sides, "--calls", str(file), "--json"],
            cwd=home,
            env={**os.environ, "HOME": home, "TZ": "UTC", "PYTHONHASHSEED": "0", "PYTHONPATH": str(REPOSITORY / "src")},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    if done.returncode not in (0, 1) or not done.stdout:
        raise MigrationError(f"{server.name}: {done.stderr.strip()[-500:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    trial.calls = len(calls)
    trial.counts = result["counts"]
    for difference in result["differences"]:
        if difference["level"] == "breaking":
            reason = reason_of(difference, server.options.get("varies", []))
            trial.reasons[reason] += bool(reason)
            if not reason:
                trial.unexplained.append(f"{difference['subject']}: {difference['text']}")
    return trial


def reason_of(difference: dict[str, str], varies: list[str]) -> str:
    """Return the reason for a breaking difference; "" if there is none."""
    reason = deliberate_reason(difference["text"])
    if reason:
        return reason
    return "varies" if varies and difference["subject"].startswith("call ") else ""


def _command(server: Server, folder: Path) -> str:
    """Return the command that serves a server on stdio."""
    path = os.pathsep.join(map(str, (REPOSITORY / "src", REPOSITORY, folder)))
    python = STORE / server.generation / "bin" / "python"
    variables = [f"PYTHONPATH={path}", "PYTHONWARNINGS=ignore", "NO_COLOR=1"]
    return shlex.join(["env", *variables, str(python), "-m", "tests.corpus.serve", server.description()])


def compared_or_error(server: Server) -> Trial | str:
    """Return the trial, or the text of the MigrationError."""
    try:
        return compared(server)
    except (MigrationError, Failure, subprocess.TimeoutExpired) as error:
        return _cause(str(error))


def _cause(text: str) -> str:
    """Return the line of an error that names its cause, without the path of this machine."""
    lines = [line for line in text.splitlines() if not line.startswith("env ")]
    return lines[-1].strip().replace(f"{STORE}{os.sep}", "").replace("|", "\\|") if lines else text


def page(trials: list[tuple[Server, Trial | str]]) -> str:
    """Return docs/development/migrate.md."""
    lines = []
    reasons: Counter[str] = Counter()
    staying: Counter[str] = Counter()
    unexplained: list[str] = []
    for server, trial in trials:
        head = f"| {server.name} | {server.version} | {server.library} |"
        if isinstance(trial, str):
            lines.append(f"{head} not compared: {trial} | | | | | |")
            continue
        reasons += trial.reasons
        staying.update(trial.staying)
        unexplained += [f"- {server.name}, {line.replace('|', chr(92) + '|')}" for line in trial.unexplained]
        numbers = [trial.files, trial.calls, *(trial.counts[level] for level in ("breaking", "compatible", "wording"))]
        cells = " | ".join(map(str, numbers))
        lines.append(f"{head} {cells} | {', '.join(sorted(+trial.reasons))} |")
    explained = [f"- **{name}** ({reasons[name]}): {text}" for name, text in REASONS.items() if reasons[name]]
    kept = [f"| {text.replace('|', chr(92) + '|')} | {count} |" for text, count in staying.most_common()]
    summary = f"Compared are {len(trials)} of {len(servers())} servers.\n"
    parts = [
        _INTRODUCTION,
        summary,
        "## Results\n\n" + _HEAD + "\n".join(lines) + "\n",
        "## Breaking differences\n\nWith their numbers:\n\n" + "\n".join(explained) + "\n",
        "## Breaking differences without a reason\n\n" + ("\n".join(unexplained) or "None.") + "\n",
        "## What is not rewritten\n\n| use | servers |\n|---|---|\n" + "\n".join(kept) + "\n",
    ]
    return "\n".join(parts)


def main(names: list[str]) -> int:
    """Migrate the servers with these names, or all; return the exit status."""
    chosen = [server for server in eligible() if not names or any(name in server.name for name in names)]
    install(chosen)
    trials: list[tuple[Server, Trial | str]] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for server, trial in zip(chosen, pool.map(compared_or_error, chosen), strict=True):
            trials.append((server, trial))
            print(f"{server.name} {server.version} ({server.library})", flush=True)
            for line in [trial] if isinstance(trial, str) else trial.unexplained:
                print(f"    {line}", flush=True)
    if not names:
        PAGE.write_text(page(trials), encoding="utf-8")
        print(f"Wrote {PAGE.relative_to(REPOSITORY)}.")
    return int(any(isinstance(trial, str) or trial.unexplained for _, trial in trials))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

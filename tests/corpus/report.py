"""Writes what the corpus showed: lines for the terminal, and docs/development/corpus.md."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.corpus.compare import REASONS, Comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.corpus.run import Server

MIN_WORDS = 0.99
"""Share of the words of all descriptions that must be present on funcmcp."""

_INTRODUCTION = """\
# Servers written for other libraries

`make corpus` installs published MCP servers, serves each with its own library and with funcmcp, and compares what
clients get: names, words of the descriptions, schemas of arguments and results, prompts, resources, and the results of
some calls, also with an argument that the tool does not have. These servers were written by others for other libraries.
On funcmcp nothing changes but their imports: `tests/corpus/imports.py` makes each import of their library one of
`funcmcp.compat`. Tools of low-level servers are registered with their own schemas, which funcmcp sends unchanged, and
with handlers that call the original. `CI=true make test` has some of the servers.

The script writes this page. A cell such as "7 of 8" counts what is present, or the same but for the reasons below.
Words are those of the descriptions of tools, prompts, resources and their arguments, wherever in the feature they are
now.
"""
_COLUMNS = ("tools", "words", "arguments", "outputs", "prompts", "resources", "calls", "unknown arguments")


@dataclass(frozen=True)
class Unsupported:
    """The result of a server that is known not to run on funcmcp.

    Attributes:
        reason: Why it does not.
    """

    reason: str


def failures(result: Comparison | Unsupported | str) -> list[str]:
    """Return a line for each difference without a reason."""
    if isinstance(result, Unsupported):
        return []
    if isinstance(result, str):
        return [result]
    lines = [f"{difference.where}: {difference.detail}" for difference in result.unexplained]
    if result.counts["words same"] < MIN_WORDS * result.counts["words"]:
        lines += [f"{where}: missing words: {' '.join(missing)}" for where, missing in result.missing_words.items()]
    return lines


def page(rows: Sequence[tuple[Server, Comparison | Unsupported | str]]) -> str:
    """Return docs/development/corpus.md."""
    total: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    table = [
        f"| server | version | library | {' | '.join(_COLUMNS)} | reasons |",
        "|---" * (len(_COLUMNS) + 4) + "|",
    ]
    for server, result in rows:
        head = f"| {server.name} | {server.version} | {server.library} |"
        if isinstance(result, Unsupported):
            table.append(f"{head}{' |' * len(_COLUMNS)} does not run |")
            continue
        if isinstance(result, str):
            table.append(f"{head} not compared: {result}{' |' * (len(_COLUMNS) + 1)}")
            continue
        total += result.counts
        used = Counter(reason for difference in result.differences for reason in set(difference.reasons))
        reasons += used
        table.append(f"{head} {_cells(result.counts)} | {', '.join(sorted(used))} |")
    table.append(f"| **all {len(rows)}** | | | {_cells(total)} | |")
    explained = [f"- **{name}** ({reasons[name]}): {text}" for name, text in REASONS.items() if reasons[name]]
    without = [
        f"- {server.name} ({server.library}), {line.replace('|', chr(92) + '|')}"
        for server, result in rows
        for line in failures(result)
    ]
    parts = [
        _INTRODUCTION,
        _servers_that_run(rows),
        "## Results\n\n" + "\n".join(table) + "\n",
        "## Deliberate differences\n\nWith the number of features that have them:\n\n" + "\n".join(explained) + "\n",
        "## Differences without a reason\n\n" + ("\n".join(without) or "None.") + "\n",
    ]
    return "\n".join(parts)


def _servers_that_run(rows: Sequence[tuple[Server, Comparison | Unsupported | str]]) -> str:
    """Return the section that counts the servers of high-level libraries, and names those that don't run.

    A server that is compared on two libraries counts once.
    """
    results = [(server, result) for server, result in rows if not server.library.startswith("low-level")]
    names = {server.name for server, _ in results}
    failing = {server.name for server, result in results if isinstance(result, Unsupported) or failures(result)}
    lines = [f"- {server.name}: {result.reason}" for server, result in results if isinstance(result, Unsupported)]
    running = len(names) - len(failing)
    count = f"{running} of {len(names)}"
    share = 100 * running / len(names)
    text = f"{count} servers of FastMCP and the official SDK's high-level API run ({share:.0f} %)."
    if lines:
        text += " The others:\n\n" + "\n".join(lines)
    return f"## Servers that run with changed imports\n\n{text}\n"


def _cells(counts: Counter[str]) -> str:
    joined = counts.copy()
    joined["resources"] += counts["templates"]
    joined["resources same"] += counts["templates same"]
    return " | ".join(_cell(column, joined) for column in _COLUMNS)


def _cell(column: str, counts: Counter[str]) -> str:
    expected, present = counts[column], counts[f"{column} same"]
    if not expected:
        return ""
    if column == "words":
        return f"{100 * present / expected:.1f} %"
    return str(expected) if expected == present else f"{present} of {expected}"

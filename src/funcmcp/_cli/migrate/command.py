"""``funcmcp migrate``: move a server of FastMCP, of the official SDK or of Azure Functions to funcmcp."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from funcmcp._cli.commands import app
from funcmcp._cli.failure import Failure
from funcmcp._cli.output import write_json, write_line, write_text

if TYPE_CHECKING:
    from funcmcp._cli.migrate.plan import Plan


@app.command()
def migrate(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file or a project's folder.", show_default=False)],
    *,
    write: Annotated[bool, typer.Option("--write", help="Rewrite the files.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print the changes as a patch, and write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON document.")] = False,
    to: Annotated[
        Literal["auto", "native", "compat"],
        typer.Option(help="funcmcp's own API where the translation is sure, or only that, or always funcmcp.compat."),
    ] = "auto",
) -> None:
    """Report how a server for FastMCP, the official SDK or Azure Functions moves to funcmcp, and rewrite it."""
    try:
        from funcmcp._cli.migrate.plan import plan_migration, write_changes
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "libcst":
            raise
        raise Failure('libcst is not installed. The command needs: pip install "funcmcp[migrate]"') from error
    if write and diff:
        raise typer.BadParameter("--diff writes nothing: leave out --write.")
    plan = plan_migration(path, to)
    if diff:
        write_text("".join(change.patch() for change in plan.changes))
        return
    if as_json:
        _print_json(plan)
    else:
        _print(plan)
    if write:
        write_changes(plan.changes)
        if not as_json:
            write_line(f"Rewrote {len(plan.changes)} files. Run the tests, and compare: funcmcp diff OLD NEW")


def _print(plan: Plan) -> None:
    from funcmcp._cli.console import SafeConsole, styled
    from funcmcp._cli.migrate.notes import LEVELS

    colours = {"moves": "green", "differs": "yellow", "missing": "red"}
    console = SafeConsole()
    for note in plan.notes:
        console.print(styled(f"{note.level:7}", colours[note.level]), f" {note.place}: {note.text}", soft_wrap=True)
    if plan.target:
        console.print(f"The servers are written with {plan.target}.")
    counts = [f"{sum(note.level == level for note in plan.notes)} {level}" for level in LEVELS]
    console.print(f"{', '.join(counts)}; {len(plan.changes)} files change")


def _print_json(plan: Plan) -> None:
    from dataclasses import asdict

    files = [change.name for change in plan.changes]
    write_json({"target": plan.target, "files": files, "notes": [asdict(note) for note in plan.notes]})

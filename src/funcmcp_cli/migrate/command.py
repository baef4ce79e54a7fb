"""``funcmcp migrate``: move a server of FastMCP, of the official SDK or of Azure Functions to funcmcp."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

from dataclasses import replace
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from funcmcp._text.listing import counted
from funcmcp_cli.commands import Calls, app
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_json, write_line, write_text

if TYPE_CHECKING:
    from funcmcp_cli.migrate.plan import MigrationPlan
    from funcmcp_cli.migrate.verify import Verification

_FEATURES = {"tools": "tool", "resources": "resource", "resourceTemplates": "template", "prompts": "prompt"}


@app.command()
def migrate(  # noqa: PLR0913 - one for each option of the command
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file or a project's folder.", show_default=False)],
    *,
    write: Annotated[bool, typer.Option("--write", help="Rewrite the files.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print the changes as a patch, and write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON document.")] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Serve the server and its rewritten copy, and compare lists and calls."),
    ] = False,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help="With --verify: what serves a server on stdio in the folder, such as 'python server.py'.",
            show_default=False,
        ),
    ] = None,
    calls: Calls = None,
    call_tools: Annotated[
        bool, typer.Option("--call-tools", help="With --verify: also call tools that may have effects.")
    ] = False,
) -> None:
    """Report how a server for FastMCP, the official SDK or Azure Functions moves to funcmcp, and rewrite it.

    With --verify the exit code is 1 if a client can fail with the rewritten server, and --write then writes nothing.
    """
    from funcmcp_cli.migrate.plan import write_changes

    _check_options(
        write=write, diff=diff, verify=verify, verifies=calls is not None or call_tools or command is not None
    )
    plan = _plan(path)
    verification = None
    if verify:
        try:
            verification = _verify(path, plan, calls, call_tools=call_tools, command=command)
        except Failure as failure:  # what is known without serving anything is printed in any case
            _report(plan, None, as_json=as_json)
            raise Failure(f"Not compared. {failure}") from failure
    if diff:
        write_text("".join(change.patch() for change in plan.changes))
        return
    _report(plan, verification, as_json=as_json)
    if verification is not None and not verification.is_same:
        if write:
            write_line("No file was written: clients can fail with the rewritten server.", error=True)
        raise typer.Exit(1)
    if write:
        write_changes(plan.changes)
        if not as_json:
            write_line(_written(len(plan.changes)))


def _written(count: int) -> str:
    """Return what was rewritten, and what to do next."""
    if count == 0:
        return "No file was rewritten."
    return (
        f"Rewrote {_files(count)}. Run the tests. `funcmcp diff OLD NEW` compares the server before and after. "
        "A server that another library runs is a command there: 'python old/server.py'."
    )


def _plan(path: Path) -> MigrationPlan:
    """Return the plan. A terminal has a bar meanwhile."""
    from funcmcp_cli.console import progress_bar
    from funcmcp_cli.migrate.plan import plan_migration

    try:
        with progress_bar("Reading") as progress:
            return plan_migration(path, progress)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "libcst":
            raise
        text = 'libcst is not installed. Function apps need it: pip install "funcmcp[migrate]"'
        raise Failure(text) from error


def _check_options(*, write: bool, diff: bool, verify: bool, verifies: bool) -> None:
    if write and diff:
        raise typer.BadParameter("--diff writes nothing: leave out --write.")
    if verifies and not verify:
        raise typer.BadParameter("--calls, --call-tools and --command are options of --verify.")
    if verify and diff:
        raise typer.BadParameter("--diff prints the patch alone: leave out --verify.")


def _report(plan: MigrationPlan, verification: Verification | None, *, as_json: bool) -> None:
    if as_json:
        _print_json(plan, verification)
    else:
        _print(plan)
        _print_verification(verification)


def _print(plan: MigrationPlan) -> None:
    from funcmcp_cli.console import SafeConsole, styled
    from funcmcp_cli.migrate.notes import LEVELS

    colours = {"moves": "green", "differs": "yellow", "missing": "red"}
    console = SafeConsole()
    for note in plan.notes:
        console.print(styled(f"{note.level:7}", colours[note.level]), f" {note.place}: {note.text}", soft_wrap=True)
    counts = [f"{sum(note.level == level for note in plan.notes)} {level}" for level in LEVELS]
    verb = "changes" if len(plan.changes) == 1 else "change"
    console.print(f"{', '.join(counts)}; {_files(len(plan.changes))} {verb}")


def _files(count: int) -> str:
    """Return a number of files in words."""
    return f"{count} file{'' if count == 1 else 's'}"


def _verify(
    path: Path, plan: MigrationPlan, calls: Path | None, *, call_tools: bool, command: str | None
) -> Verification:
    import asyncio

    from funcmcp_cli.calls import read_calls
    from funcmcp_cli.migrate.verify import verify

    requested = [] if calls is None else read_calls(calls)
    return asyncio.run(verify(path, plan.changes, requested, call_tools=call_tools, command=command))


def _print_verification(verification: Verification | None) -> None:
    from funcmcp_cli.diff.differences import print_differences

    if verification is None:
        return
    from funcmcp_cli.migrate.verify import REASONS

    calls = counted(verification.calls, "call")
    write_line(f"Compared the server with its rewritten copy: the lists, and {calls}.")
    counts = [counted(count, _FEATURES[kind]) for kind, count in verification.listed.items() if count]
    write_line(f"The server lists {', '.join(counts) or 'nothing'}.")
    pairs = zip(verification.differences, verification.reasons, strict=True)
    print_differences([replace(item, text=f"{item.text} [{why}]") if why else item for item, why in pairs])
    for reason in sorted({*verification.reasons} - {""}):
        write_line(f"[{reason}] {REASONS[reason]}")
    if verification.not_called:
        names = ", ".join(verification.not_called)
        write_line(f"Not called, because they may have effects: {names}. Use --calls FILE, or --call-tools for all.")


def _print_json(plan: MigrationPlan, verification: Verification | None) -> None:
    from dataclasses import asdict

    files = [change.name for change in plan.changes]
    report = {"files": files, "notes": [asdict(note) for note in plan.notes]}
    write_json(report if verification is None else {**report, "verification": asdict(verification)})
